//! Every HMAC of the service: request signatures (decisions §9), webhook signatures (decisions §7), and
//! the keyed hash behind cursors.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::env::Env;
use crate::types::{Secret, Timestamp};

/// How far the timestamp of a signed request may be from the server's clock, in seconds.
pub const REQUEST_TOLERANCE_SECONDS: i64 = 300;

/// HMAC-SHA256 (RFC 2104) over the concatenation of `parts`.
pub fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

const WEBHOOK_PREFIX: &str = "whsec_";

fn new_secret(prefix: &str, env: &Env) -> Secret {
    Secret::new(format!("{prefix}{}", STANDARD.encode(env.bytes::<32>())))
}

/// A new signing secret of a webhook subscription: `whsec_` and 32 random bytes in base64.
pub fn new_webhook_secret(env: &Env) -> Secret {
    new_secret(WEBHOOK_PREFIX, env)
}

/// A new request-signing secret of an API key: `svcsig_` and 32 random bytes in base64.
pub fn new_request_secret(env: &Env) -> Secret {
    new_secret("svcsig_", env)
}

/// The value of `X-SVC-Signature` on a delivery: `sha256=` and the hex HMAC of the raw body, keyed with the
/// bytes of the whole secret text.
///
/// ```
/// use svc_core::{signing, types::Secret};
/// let signature = signing::webhook_signature(&Secret::new("whsec_dGVzdA=="), b"{}");
/// assert_eq!(signature, "sha256=00850923c6e3021c39db699664a5fbda4d62d6fb12a06566cda33074bfac21b1");
/// ```
pub fn webhook_signature(secret: &Secret, body: &[u8]) -> String {
    format!("sha256={}", hex(&hmac(secret.reveal().as_bytes(), &[body])))
}

/// The value of `webhook-signature` on a delivery (Standard Webhooks): `v1,` and the base64 HMAC of
/// `{id}.{timestamp}.{body}`, keyed with the bytes that the secret encodes after `whsec_`.
pub fn standard_webhook_signature(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> String {
    let encoded = secret.reveal().strip_prefix(WEBHOOK_PREFIX).unwrap_or(secret.reveal());
    // A secret of another form has no such bytes; its own text keeps the header well-formed.
    let key = STANDARD.decode(encoded).unwrap_or_else(|_| encoded.as_bytes().to_vec());
    let mac = hmac(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
    format!("v1,{}", STANDARD.encode(mac))
}

/// What a client signs: timestamp, method, path with query, and the hash of the body.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// Value of `X-SVC-Timestamp`: Unix seconds.
    pub timestamp: &'a str,
    /// Method in upper case.
    pub method: &'a str,
    /// Path and query as in the request line.
    pub path_and_query: &'a str,
    /// Raw body, empty when there is none.
    pub body: &'a [u8],
}

impl SignedRequest<'_> {
    fn mac(&self, secret: &Secret) -> [u8; 32] {
        let body = hex(&sha256(self.body));
        let lines = [self.timestamp, "\n", self.method, "\n", self.path_and_query, "\n", &body];
        hmac(secret.reveal().as_bytes(), &lines.map(str::as_bytes))
    }

    /// The value of `X-SVC-Signature`.
    pub fn sign(&self, secret: &Secret) -> String {
        format!("sha256={}", hex(&self.mac(secret)))
    }

    /// Checks a signature, in constant time, and the age of its timestamp. Returns the MAC, by which a
    /// second use is recognised.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn verify(&self, secret: &Secret, signature: &str, now: Timestamp) -> Result<[u8; 32], &'static str> {
        let sent: i64 = Some(self.timestamp)
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .ok_or("X-SVC-Timestamp must be the time in Unix seconds.")?;
        let Some(digest) = signature.strip_prefix("sha256=") else {
            return Err("X-SVC-Signature must be sha256= and 64 lower-case hex digits.");
        };
        let mac = self.mac(secret);
        if !bool::from(hex(&mac).as_bytes().ct_eq(digest.as_bytes())) {
            return Err("X-SVC-Signature does not fit this request; sign timestamp, method, path with query and body.");
        }
        if now.as_seconds().abs_diff(sent) > REQUEST_TOLERANCE_SECONDS.unsigned_abs() {
            return Err("X-SVC-Timestamp is more than 300 seconds off; set the clock and sign again.");
        }
        Ok(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test cases 1, 2 and 6.
    #[test]
    fn hmac_agrees_with_rfc_4231() {
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
            assert_eq!(hex(&hmac(key, &[head, tail])), want);
        }
    }

    /// The example of the Standard Webhooks specification, which its libraries test as well.
    #[test]
    fn a_standard_webhook_signature_is_as_specified() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let sign = |body| standard_webhook_signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        assert_eq!(sign(br#"{"test": 2432232314}"#), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_ne!(sign(br#"{"test": 2432232315}"#), sign(br#"{"test": 2432232314}"#));
        let bare = Secret::new("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        assert_eq!(
            standard_webhook_signature(&bare, "1", "2", b""),
            standard_webhook_signature(&Secret::new(format!("whsec_{}", bare.reveal())), "1", "2", b"")
        );
    }

    #[test]
    fn a_request_signature_covers_every_part() {
        let secret = Secret::new("svcsig_test");
        let now = Timestamp::from_micros(1_000_000_000_000_000);
        let request =
            SignedRequest { timestamp: "1000000000", method: "POST", path_and_query: "/api/v1/contacts", body: b"{}" };
        let signature = request.sign(&secret);
        assert!(request.verify(&secret, &signature, now).is_ok());
        for changed in [
            SignedRequest { timestamp: "1000000001", ..request },
            SignedRequest { method: "PATCH", ..request },
            SignedRequest { path_and_query: "/api/v1/contacts?", ..request },
            SignedRequest { body: b"{ }", ..request },
        ] {
            assert!(changed.verify(&secret, &signature, now).is_err(), "{changed:?}");
        }
        assert!(request.verify(&Secret::new("svcsig_other"), &signature, now).is_err());
        assert!(request.verify(&secret, &signature.to_uppercase(), now).is_err());
        assert!(request.verify(&secret, signature.trim_start_matches("sha256="), now).is_err());
    }

    #[test]
    fn a_timestamp_is_good_for_five_minutes_either_way() {
        let secret = Secret::new("svcsig_test");
        let request = SignedRequest { timestamp: "1000000000", method: "POST", path_and_query: "/", body: b"" };
        let signature = request.sign(&secret);
        let at =
            |seconds: i64| request.verify(&secret, &signature, Timestamp::from_micros(seconds * 1_000_000)).is_ok();
        assert!(at(1_000_000_300) && at(999_999_700));
        assert!(!at(1_000_000_301) && !at(999_999_699));
        for timestamp in ["", "1e9", "-1", "+1000000000", "1000000000.0", "99999999999999999999"] {
            let odd = SignedRequest { timestamp, ..request };
            assert!(odd.verify(&secret, &odd.sign(&secret), Timestamp::from_micros(0)).is_err(), "{timestamp}");
        }
    }

    #[test]
    fn secrets_have_their_form() {
        let env = Env::system();
        let secret = new_webhook_secret(&env);
        let bytes = STANDARD.decode(secret.reveal().strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(bytes.len(), 32);
        assert!(new_request_secret(&env).reveal().starts_with("svcsig_"));
        assert_ne!(new_webhook_secret(&env), secret);
    }
}
