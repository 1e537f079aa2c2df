//! Idempotency keys (`docs/contract.md`, "Idempotency").
//!
//! A client may name a create with a key of its own. The response to the first request under a key is stored in the
//! transaction of the create, and a repeat gets the stored response instead of a second record. This module has the
//! form of a key and the fingerprint that tells a repeat from another request.

use crate::crypto::sha256;
use crate::error::{FieldCode, Issue};
use crate::values::Timestamp;

/// The length of the longest key, in characters.
pub const MAX_KEY_LENGTH: usize = 255;

/// The response to a request with an idempotency key, as the caller wants it back for a repeat.
///
/// The store returns it exactly as it was written. Only `fingerprint` and `created_at` have a meaning here; the other
/// fields belong to the caller, which may store anything in them. The server of this project stores its HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// The [`fingerprint`] of the request that the key was first used with.
    pub fingerprint: [u8; 32],
    /// The status, opaque to the store.
    pub status: u16,
    /// The location of the created record, opaque to the store.
    pub location: Option<String>,
    /// The version of the created record, opaque to the store.
    pub etag: Option<String>,
    /// The body, opaque to the store.
    pub body: Vec<u8>,
    /// When the response was stored; it expires a fixed time after this.
    pub created_at: Timestamp,
}

/// Returns the fingerprint of a request: a SHA-256 of the name of its operation and of its body.
///
/// Two requests are the same when their fingerprints are. The name must not contain a line feed.
pub fn fingerprint(operation: &str, body: &[u8]) -> [u8; 32] {
    sha256(&[operation.as_bytes(), b"\n", body].concat())
}

/// Checks the form of a key: 1 to 255 printable ASCII characters.
///
/// # Errors
///
/// Returns `too_short`, `too_long` or `invalid_format`. The caller adds the name of the field.
pub fn check_key(key: &str) -> Result<(), Issue> {
    if key.is_empty() {
        Err(Issue::new(FieldCode::TooShort, "must not be empty"))
    } else if key.len() > MAX_KEY_LENGTH {
        Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_KEY_LENGTH} characters")))
    } else if !key.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        Err(Issue::new(FieldCode::InvalidFormat, "must be printable ASCII"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_depends_on_the_operation_and_the_body() {
        let print = fingerprint("POST /contacts", b"{}");
        assert_eq!(print, fingerprint("POST /contacts", b"{}"));
        assert_ne!(print, fingerprint("POST /quotes", b"{}"));
        assert_ne!(print, fingerprint("POST /contacts", b"{ }"));
    }

    #[test]
    fn a_key_has_1_to_255_printable_ascii_characters() {
        assert!(check_key(&"k".repeat(255)).is_ok());
        for bad in ["", &"k".repeat(256), "k\u{e9}"] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }
}
