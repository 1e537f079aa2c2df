//! SHA-256, HMAC-SHA256 and new signing secrets.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::env::Env;
use crate::values::Secret;

/// Returns the HMAC-SHA256 (RFC 2104) of the concatenation of `parts`.
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns the SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns a new secret: `prefix` and 32 random bytes in standard base64.
pub(crate) fn new_secret(prefix: &str, env: &Env) -> Secret {
    Secret::new(format!("{prefix}{}", STANDARD.encode(env.bytes::<32>())))
}

/// Returns a new token of 256 random bits, which can be part of a URL.
pub(crate) fn new_token(env: &Env) -> Secret {
    Secret::new(URL_SAFE_NO_PAD.encode(env.bytes::<32>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test cases 1, 2 and 6.
    #[test]
    fn hmac_matches_the_test_vectors_of_rfc_4231() {
        let cases: [(&[u8], &[u8], &str); 3] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, data, want) in cases {
            let (head, tail) = data.split_at(3);
            assert_eq!(hex::encode(hmac_sha256(key, &[head, tail])), want);
        }
    }
}
