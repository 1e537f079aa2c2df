//! Signatures of requests, for API keys that opted in (`docs/contract.md`, "Request signing").
//!
//! A signature is an HMAC-SHA256, keyed with the signing secret of the API key, over the time of signing, the method,
//! the path with its query, and the SHA-256 of the body. It is valid for 300 seconds and accepted once; the store
//! remembers which signatures were used.

use subtle::ConstantTimeEq;

use crate::crypto::{self, hmac_sha256, sha256};
use crate::env::Env;
use crate::values::{Secret, Timestamp};

/// How far the timestamp of a signed request may be from the current time in either direction, in seconds.
pub const REQUEST_TOLERANCE_SECONDS: i64 = 300;

/// Creates the signing secret of an API key: `svcsig_` and 32 random bytes in base64.
pub fn new_request_secret(env: &Env) -> Secret {
    crypto::new_secret("svcsig_", env)
}

/// The parts of a request that its signature covers.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The time of signing in Unix seconds with up to six decimals, as the text that was sent.
    pub timestamp: &'a str,
    /// The method in upper case.
    pub method: &'a str,
    /// The path and query as in the request line.
    pub path_and_query: &'a str,
    /// The raw body, empty when there is none.
    pub body: &'a [u8],
}

/// A signature that is valid for its request, and may have been used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedSignature {
    /// The MAC, by which a second use is recognized.
    pub mac: [u8; 32],
    /// When the request was signed, by its timestamp.
    pub signed_at: Timestamp,
}

/// The reason why a request signature is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The timestamp is not a number of Unix seconds with up to six decimals.
    #[error("the timestamp must be the time in Unix seconds, with up to six decimals")]
    MalformedTimestamp,
    /// The signature does not start with `sha256=`.
    #[error("the signature must be sha256= and 64 lower-case hex digits")]
    MalformedSignature,
    /// The signature is not that of this request with this secret.
    #[error("the signature does not match the request")]
    Mismatch,
    /// The timestamp is more than [`REQUEST_TOLERANCE_SECONDS`] from the current time.
    #[error("the timestamp is more than {REQUEST_TOLERANCE_SECONDS} seconds off")]
    TimestampOutOfRange,
}

impl SignedRequest<'_> {
    fn mac(&self, secret: &Secret) -> [u8; 32] {
        let body = hex::encode(sha256(self.body));
        let lines = [self.timestamp, "\n", self.method, "\n", self.path_and_query, "\n", &body];
        hmac_sha256(secret.reveal().as_bytes(), &lines.map(str::as_bytes))
    }

    /// Signs the request: `sha256=` and the MAC in lower-case hex.
    pub fn sign(&self, secret: &Secret) -> String {
        format!("sha256={}", hex::encode(self.mac(secret)))
    }

    /// Checks a signature in constant time, and then the age of its timestamp. The caller has to refuse a second use.
    ///
    /// # Errors
    ///
    /// Returns the first [`SignatureError`] in the order of the enum.
    pub fn verify(
        &self,
        secret: &Secret,
        signature: &str,
        now: Timestamp,
    ) -> Result<VerifiedSignature, SignatureError> {
        let signed_at = parse_timestamp(self.timestamp).ok_or(SignatureError::MalformedTimestamp)?;
        let digest = signature.strip_prefix("sha256=").ok_or(SignatureError::MalformedSignature)?;
        let mac = self.mac(secret);
        if !bool::from(hex::encode(mac).as_bytes().ct_eq(digest.as_bytes())) {
            return Err(SignatureError::Mismatch);
        }
        if now.as_seconds().abs_diff(signed_at.as_seconds()) > REQUEST_TOLERANCE_SECONDS.unsigned_abs() {
            return Err(SignatureError::TimestampOutOfRange);
        }
        Ok(VerifiedSignature { mac, signed_at })
    }
}

/// Parses Unix seconds with up to six decimals.
fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (seconds, decimals) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !is_digits(seconds) || !is_digits(decimals) || decimals.len() > 6 {
        return None;
    }
    // `MAX` is far in the future, where the timestamp is out of range whatever its last digits are.
    let micros = format!("{seconds}{decimals:0<6}").parse().unwrap_or(i64::MAX);
    Some(Timestamp::from_micros(micros))
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
        let other = Secret::new("svcsig_other");
        assert_eq!(request.verify(&other, &signature, now), Err(SignatureError::Mismatch));
        assert_eq!(request.verify(&secret, &signature.to_uppercase(), now), Err(SignatureError::MalformedSignature));
        let digits = signature.trim_start_matches("sha256=");
        assert_eq!(request.verify(&secret, digits, now), Err(SignatureError::MalformedSignature));
    }

    #[test]
    fn a_new_secret_starts_with_its_prefix() {
        assert!(new_request_secret(&Env::system()).reveal().starts_with("svcsig_"));
    }

    #[test]
    fn a_timestamp_may_be_five_minutes_off_in_either_direction() {
        let secret = Secret::new("svcsig_test");
        let request = SignedRequest { timestamp: "1000000000", method: "POST", path_and_query: "/", body: b"" };
        let signature = request.sign(&secret);
        let at =
            |seconds: i64| request.verify(&secret, &signature, Timestamp::from_micros(seconds * 1_000_000)).map(|_| ());
        assert_eq!((at(1_000_000_300), at(999_999_700)), (Ok(()), Ok(())));
        for seconds in [1_000_000_301, 999_999_699] {
            assert_eq!(at(seconds), Err(SignatureError::TimestampOutOfRange));
        }
        let verify = |timestamp| {
            let other = SignedRequest { timestamp, ..request };
            other.verify(&secret, &other.sign(&secret), Timestamp::from_micros(1_000_000_000_000_000))
        };
        for timestamp in
            ["", ".", ".5", "1e9", "-1", "+1000000000", "1000000000.", "1000000000.1234567", "1.-1", "1.1.1"]
        {
            assert_eq!(verify(timestamp), Err(SignatureError::MalformedTimestamp), "{timestamp}");
        }
        assert_eq!(verify("99999999999999999999.5"), Err(SignatureError::TimestampOutOfRange));
        for (timestamp, micros) in [
            ("1000000000", 1_000_000_000_000_000),
            ("1000000000.5", 1_000_000_000_500_000),
            ("1000000300.999999", 1_000_000_300_999_999),
            ("0999999700.000001", 999_999_700_000_001),
        ] {
            let signed_at = verify(timestamp).map(|verified| verified.signed_at);
            assert_eq!(signed_at, Ok(Timestamp::from_micros(micros)), "{timestamp}");
        }
    }
}
