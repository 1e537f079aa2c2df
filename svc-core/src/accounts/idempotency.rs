//! Idempotency keys (decisions §9): the first answer to a POST is kept, and a repeat gets it again.

use crate::crypto::sha256;
use crate::error::{Error, FieldCode, Issue};
use crate::values::Timestamp;

/// Longest key in characters.
pub const MAX_KEY_LENGTH: usize = 255;

/// What is kept under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// Digest of the request that the key was first used with.
    pub fingerprint: [u8; 32],
    /// HTTP status of its answer.
    pub status: u16,
    /// `Location` of what it created.
    pub location: Option<String>,
    /// `ETag` of what it created.
    pub etag: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
    /// When it was answered.
    pub created_at: Timestamp,
}

/// The digest that tells a repeat from another request: method, path below the version, and body.
pub fn fingerprint(method: &str, path: &str, body: &[u8]) -> [u8; 32] {
    sha256(&[method.as_bytes(), b" ", path.as_bytes(), b"\n", body].concat())
}

/// Checks the form of a key: 1 to 255 printable ASCII characters.
///
/// # Errors
/// `validation_failed` with the header as the field.
pub fn check_key(key: &str) -> Result<(), Error> {
    let issue = if key.is_empty() {
        Issue::new(FieldCode::TooShort, "must not be empty")
    } else if key.len() > MAX_KEY_LENGTH {
        Issue::new(FieldCode::TooLong, format!("must have at most {MAX_KEY_LENGTH} characters"))
    } else if !key.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        Issue::new(FieldCode::InvalidFormat, "must be printable ASCII")
    } else {
        return Ok(());
    };
    Err(issue.on("Idempotency-Key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let print = fingerprint("POST", "/contacts", b"{}");
        assert_eq!(print, fingerprint("POST", "/contacts", b"{}"));
        assert_ne!(print, fingerprint("POST", "/quotes", b"{}"));
        assert_ne!(print, fingerprint("POST", "/contacts", b"{ }"));
    }

    #[test]
    fn keys_have_bounds() {
        assert!(check_key(&"k".repeat(255)).is_ok());
        for bad in ["", &"k".repeat(256), "k\u{e9}"] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }
}
