//! Signatures of requests, for API keys that opted in (`docs/contract.md`, "Request signing").

use subtle::ConstantTimeEq;

use crate::crypto::{self, hmac_sha256, sha256};
use crate::env::Env;
use crate::values::{Secret, Timestamp};

/// How far the timestamp of a signed request may be from the server's clock, in seconds.
pub const REQUEST_TOLERANCE_SECONDS: i64 = 300;

/// A new request-signing secret of an API key: `svcsig_` and 32 random bytes in base64.
pub fn new_request_secret(env: &Env) -> Secret {
    crypto::new_secret("svcsig_", env)
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
        let body = hex::encode(sha256(self.body));
        let lines = [self.timestamp, "\n", self.method, "\n", self.path_and_query, "\n", &body];
        hmac_sha256(secret.reveal().as_bytes(), &lines.map(str::as_bytes))
    }

    /// The value of `X-SVC-Signature`.
    pub fn sign(&self, secret: &Secret) -> String {
        format!("sha256={}", hex::encode(self.mac(secret)))
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
        if !bool::from(hex::encode(mac).as_bytes().ct_eq(digest.as_bytes())) {
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
    fn a_new_secret_has_its_prefix() {
        assert!(new_request_secret(&Env::system()).reveal().starts_with("svcsig_"));
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
}
