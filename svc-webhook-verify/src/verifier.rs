//! The verifier, with its secrets, its public keys and its limit of the age.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
#[cfg(feature = "ed25519")]
use ed25519_dalek::VerifyingKey;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

#[cfg(feature = "serde")]
use crate::Event;
use crate::parse::{
    StandardHeaders, find_delivered_at, parse_signature, parse_standard_signatures, parse_timestamp, parse_unix_seconds,
};
#[cfg(feature = "ed25519")]
use crate::public_keys;
use crate::{PUBLIC_KEY_PREFIX, VerifyError};

/// The prefix of every secret.
const SECRET_PREFIX: &str = "whsec_";

/// Verifies deliveries with one or more secrets or public keys, and limits their age to five minutes unless told
/// otherwise.
///
/// Create a verifier once and share it, for example in an `Arc`. It stores the secrets as HMAC keys. Its `Debug` output
/// contains neither secrets nor keys.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use svc_webhook_verify::{Verifier, VerifyError};
///
/// # fn main() -> Result<(), VerifyError> {
/// let verifier = Verifier::new("whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=")?
///     // The other secret, while the secret is being rotated.
///     .with_secret("whsec_FXE7hanIybXwTvLAFfk4bZJjPTSZFkGlkzTgRNJBC+4=")?;
///
/// let body = br#"{"delivered_at":"2026-03-14T09:26:53.000000Z"}"#;
/// let signature = "sha256=313e500740551accda06d2a3c2aba66e4c3bf4292c0d0cc98ced2f4c2da2d54e";
/// let sent = UNIX_EPOCH + Duration::from_secs(1_773_480_413);
/// assert_eq!(verifier.verify_at(signature, body, sent + Duration::from_secs(2)), Ok(()));
///
/// let age = Duration::from_secs(301);
/// assert_eq!(verifier.verify_at(signature, body, sent + age), Err(VerifyError::Stale { age }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Verifier {
    keys: Vec<Keys>,
    #[cfg(feature = "ed25519")]
    public_keys: Vec<VerifyingKey>,
    max_age: Option<Duration>,
    future_tolerance: Duration,
}

impl Verifier {
    /// The age up to which a verifier accepts deliveries by default: five minutes, as the libraries of Standard
    /// Webhooks do.
    pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(300);

    /// Creates a verifier for signatures made with `secret`, the webhook's whole secret including `whsec_`.
    ///
    /// It accepts deliveries that were sent at most [`DEFAULT_MAX_AGE`](Self::DEFAULT_MAX_AGE) ago.
    ///
    /// # Errors
    ///
    /// [`VerifyError::EmptySecret`], [`VerifyError::SecretWhitespace`] or [`VerifyError::PublicKeyAsSecret`] if the
    /// secret is not valid.
    pub fn new(secret: &str) -> Result<Self, VerifyError> {
        Self::without_keys().with_secret(secret)
    }

    /// Creates a verifier for Ed25519 signatures, which holds no secret. `key` is the webhook's public key,
    /// including `whpk_`.
    ///
    /// It verifies the entries `v1a` of `webhook-signature` and ignores the entries `v1`. It accepts deliveries that
    /// were sent at most [`DEFAULT_MAX_AGE`](Self::DEFAULT_MAX_AGE) ago.
    ///
    /// # Errors
    ///
    /// The same as [`with_public_key`](Self::with_public_key).
    #[cfg(feature = "ed25519")]
    #[cfg_attr(docsrs, doc(cfg(feature = "ed25519")))]
    pub fn from_public_key(key: &str) -> Result<Self, VerifyError> {
        Self::without_keys().with_public_key(key)
    }

    pub(crate) fn without_keys() -> Self {
        Self {
            keys: Vec::new(),
            #[cfg(feature = "ed25519")]
            public_keys: Vec::new(),
            max_age: Some(Self::DEFAULT_MAX_AGE),
            future_tolerance: Duration::from_secs(60),
        }
    }

    /// Accepts signatures made with `secret` as well.
    ///
    /// Use it while a secret is being rotated, when deliveries may be signed with the old or the new secret.
    ///
    /// # Errors
    ///
    /// [`VerifyError::EmptySecret`], [`VerifyError::SecretWhitespace`] or [`VerifyError::PublicKeyAsSecret`] if the
    /// secret is not valid.
    pub fn with_secret(mut self, secret: &str) -> Result<Self, VerifyError> {
        self.keys.push(Keys::new(secret)?);
        Ok(self)
    }

    /// Accepts Ed25519 signatures that `key` verifies as well: the webhook's public key, including `whpk_`.
    ///
    /// Use it while keys are being rotated, or while a webhook changes from HMAC to Ed25519. A signature that
    /// matches any of the secrets and public keys is enough.
    ///
    /// # Errors
    ///
    /// [`VerifyError::EmptyPublicKey`], [`VerifyError::NotPublicKey`], [`VerifyError::PublicKeyNotBase64`],
    /// [`VerifyError::PublicKeyWrongLength`] or [`VerifyError::InvalidPublicKey`] if the key is not valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_webhook_verify::{Verifier, VerifyError};
    ///
    /// # fn main() -> Result<(), VerifyError> {
    /// let verifier = Verifier::from_public_key("whpk_XVXAvYitvdsIQdpeflH9GAWiHK8UhPcdQZATxlDsiUc=")?
    ///     // The other key, while the key is being rotated.
    ///     .with_public_key("whpk_toS6mElJffq6nykHNJsbcUlMusVRI/Jl4Kq8E3/IsEs=")?;
    ///
    /// let secret = verifier.with_public_key("whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=");
    /// assert_eq!(secret.err(), Some(VerifyError::NotPublicKey));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "ed25519")]
    #[cfg_attr(docsrs, doc(cfg(feature = "ed25519")))]
    pub fn with_public_key(mut self, key: &str) -> Result<Self, VerifyError> {
        self.public_keys.push(public_keys::parse_public_key(key)?);
        Ok(self)
    }

    /// Refuses deliveries that were sent more than `max_age` ago, instead of more than
    /// [`DEFAULT_MAX_AGE`](Self::DEFAULT_MAX_AGE) ago.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = Some(max_age);
        self
    }

    /// Accepts deliveries of any age: neither the clock nor `delivered_at` is read.
    ///
    /// # Recorded deliveries are accepted
    ///
    /// Someone who recorded a delivery can then send it again at any time. Use this only where the time of arrival says
    /// nothing, for example to verify deliveries that you stored, and recognise duplicates in another way.
    #[must_use]
    pub fn without_max_age(mut self) -> Self {
        self.max_age = None;
        self
    }

    /// Sets how far the sender's clock may be ahead. The default is 60 seconds.
    ///
    /// The tolerance has no effect [without a maximum age](Self::without_max_age).
    #[must_use]
    pub fn future_tolerance(mut self, tolerance: Duration) -> Self {
        self.future_tolerance = tolerance;
        self
    }

    /// Verifies `X-SVC-Signature`, and the age of the delivery by the system clock.
    ///
    /// `signature_header` is the value of `X-SVC-Signature`, or `""` if the header is missing. `body` is the raw body.
    ///
    /// # Errors
    ///
    /// The same as [`verify_at`](Self::verify_at).
    ///
    /// # Panics
    ///
    /// On targets without a clock, such as `wasm32-unknown-unknown`. Use [`verify_at`](Self::verify_at) there.
    pub fn verify(&self, signature_header: &str, body: &[u8]) -> Result<(), VerifyError> {
        self.verify_at(signature_header, body, system_time())
    }

    /// Verifies `X-SVC-Signature`, and the age of the delivery at the time `now`.
    ///
    /// # Errors
    ///
    /// - [`VerifyError::EmptyHeader`], [`VerifyError::MissingPrefix`], [`VerifyError::WrongLength`],
    ///   [`VerifyError::NotHex`] or [`VerifyError::UpperCaseHex`] if the header is not valid.
    /// - [`VerifyError::NoSecret`] if the verifier has public keys and no secret.
    /// - [`VerifyError::Mismatch`] if the signature is not that of this body with any of the secrets.
    /// - After the signature was verified, unless there is [no maximum age](Self::without_max_age):
    ///   [`VerifyError::MissingDeliveredAt`], [`VerifyError::InvalidDeliveredAt`], [`VerifyError::Stale`] or
    ///   [`VerifyError::FromFuture`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use svc_webhook_verify::{Verifier, VerifyError};
    ///
    /// # fn main() -> Result<(), VerifyError> {
    /// let verifier = Verifier::new("whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=")?;
    /// let signature = "sha256=a6b61cd6258c4ba2cd4ad5123acce1386872971facc0bc21894c6347157382bf";
    /// let now = UNIX_EPOCH + Duration::from_secs(1_773_480_413);
    /// let refused = verifier.verify_at(signature, b"", now);
    /// assert_eq!(refused, Err(VerifyError::MissingDeliveredAt));
    ///
    /// let of_any_age = verifier.without_max_age();
    /// assert_eq!(of_any_age.verify_at(signature, b"", now), Ok(()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify_at(&self, signature_header: &str, body: &[u8], now: SystemTime) -> Result<(), VerifyError> {
        // No value is right without a secret, so its form does not matter.
        if self.keys.is_empty() && !signature_header.is_empty() {
            return Err(VerifyError::NoSecret);
        }
        let signature = parse_signature(signature_header)?;
        // Every key is tried, even after a match, so that the time does not reveal which key matched.
        let matched =
            self.keys.iter().fold(false, |matched, keys| matched | is_signature(keys.whole.clone(), body, &signature));
        if !matched {
            return Err(VerifyError::Mismatch);
        }
        if self.max_age.is_some() {
            let text = find_delivered_at(body).ok_or(VerifyError::MissingDeliveredAt)?;
            let sent = parse_timestamp(text).ok_or(VerifyError::InvalidDeliveredAt)?;
            self.check_age(sent, now)?;
        }
        Ok(())
    }

    /// Verifies like [`verify`](Self::verify), then deserializes the body into an [`Event`].
    ///
    /// # Errors
    ///
    /// The same as [`verify_at`](Self::verify_at), and [`VerifyError::MalformedBody`] if the body cannot be
    /// deserialized.
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn verify_event<'a, T: serde::Deserialize<'a>>(
        &self,
        signature_header: &str,
        body: &'a [u8],
    ) -> Result<Event<T>, VerifyError> {
        self.verify_event_at(signature_header, body, system_time())
    }

    /// Verifies like [`verify_at`](Self::verify_at), then deserializes the body into an [`Event`].
    ///
    /// # Errors
    ///
    /// The same as [`verify_at`](Self::verify_at), and [`VerifyError::MalformedBody`] if the body cannot be
    /// deserialized.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use svc_webhook_verify::{Event, Verifier, VerifyError};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Invoice<'a> {
    ///     invoice_number: &'a str,
    /// }
    ///
    /// # fn main() -> Result<(), VerifyError> {
    /// let body =
    /// br#"{"event":"invoice.paid","data":{"invoice_number":"INV-0042"},"delivered_at":"2026-03-14T09:26:53.000000Z","tenant_id":"019a0000-0000-7000-8000-000000000001"}"#;
    /// let signature = "sha256=e8a13be0eff90080a8012c48bc4b54ec89ef297b8a81f6f559b7f9e31919b798";
    /// let now = UNIX_EPOCH + Duration::from_secs(1_773_480_414);
    ///
    /// let verifier = Verifier::new("whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=")?;
    /// let event: Event<Invoice<'_>> = verifier.verify_event_at(signature, body, now)?;
    /// assert_eq!(event.event, "invoice.paid");
    /// assert_eq!(event.data.invoice_number, "INV-0042");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn verify_event_at<'a, T: serde::Deserialize<'a>>(
        &self,
        signature_header: &str,
        body: &'a [u8],
        now: SystemTime,
    ) -> Result<Event<T>, VerifyError> {
        self.verify_at(signature_header, body, now)?;
        parse_event(body)
    }

    /// Verifies the headers of [Standard Webhooks], and the age by the system clock.
    ///
    /// # Errors
    ///
    /// The same as [`verify_standard_at`](Self::verify_standard_at).
    ///
    /// # Panics
    ///
    /// On targets without a clock, such as `wasm32-unknown-unknown`. Use
    /// [`verify_standard_at`](Self::verify_standard_at) there.
    ///
    /// [Standard Webhooks]: https://www.standardwebhooks.com
    pub fn verify_standard(&self, headers: StandardHeaders<'_>, body: &[u8]) -> Result<(), VerifyError> {
        self.verify_standard_at(headers, body, system_time())
    }

    /// Verifies the headers of [Standard Webhooks], and the age at the time `now`.
    ///
    /// This signature covers `webhook-id` and `webhook-timestamp` as well as the body. The age is the time since
    /// `webhook-timestamp`. While a secret is being rotated, `webhook-signature` contains a signature for each of the
    /// two secrets.
    ///
    /// Secrets verify the entries `v1`, and public keys the entries `v1a`. With both, the delivery is accepted if
    /// either would accept it alone.
    ///
    /// # Errors
    ///
    /// - [`VerifyError::InvalidId`], [`VerifyError::InvalidTimestamp`], [`VerifyError::EmptyHeader`],
    ///   [`VerifyError::NoV1Signature`] or [`VerifyError::NotBase64`] if a header is not valid.
    /// - [`VerifyError::SecretNotBase64`] if one of the secrets is not base64.
    /// - [`VerifyError::NoV1aSignature`], [`VerifyError::V1aNotBase64`] or [`VerifyError::TooManySignatures`] if the
    ///   header is not valid for public keys.
    /// - [`VerifyError::Mismatch`] if no signature matches any of the secrets and public keys.
    /// - [`VerifyError::Stale`] or [`VerifyError::FromFuture`] if the age is not acceptable.
    ///
    /// [Standard Webhooks]: https://www.standardwebhooks.com
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use svc_webhook_verify::{StandardHeaders, Verifier, VerifyError};
    ///
    /// # fn main() -> Result<(), VerifyError> {
    /// let verifier = Verifier::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")?;
    /// let headers = StandardHeaders {
    ///     id: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
    ///     timestamp: "1649367553",
    ///     signature: "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
    /// };
    /// let body = br#"{"email":"test@example.com","username":"test_user"}"#;
    /// let now = UNIX_EPOCH + Duration::from_secs(1_649_367_555);
    /// verifier.verify_standard_at(headers, body, now)
    /// # }
    /// ```
    pub fn verify_standard_at(
        &self,
        headers: StandardHeaders<'_>,
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), VerifyError> {
        let StandardHeaders { id, timestamp, .. } = headers;
        // With a dot in the id, part of the body could be passed off as the timestamp.
        if id.is_empty() || id.contains('.') {
            return Err(VerifyError::InvalidId);
        }
        let sent = parse_unix_seconds(timestamp).ok_or(VerifyError::InvalidTimestamp)?;
        self.check_signatures(headers, body)?;
        self.check_age(sent, now)
    }

    /// Verifies the signature and the age of a request by its headers, by the system clock.
    ///
    /// # Errors
    ///
    /// The same as [`verify_headers_at`](Self::verify_headers_at).
    ///
    /// # Panics
    ///
    /// On targets without a clock, such as `wasm32-unknown-unknown`. Use
    /// [`verify_headers_at`](Self::verify_headers_at) there.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn verify_headers(&self, headers: &http::HeaderMap, body: &[u8]) -> Result<(), VerifyError> {
        self.verify_headers_at(headers, body, system_time())
    }

    /// Verifies the signature and the age of a request by its headers, at the time `now`.
    ///
    /// The headers of Standard Webhooks are verified if `webhook-signature` is there, since they cover more than the
    /// body and stay valid while a secret is being rotated. Otherwise, `X-SVC-Signature` is verified. One valid
    /// signature is enough, so a proxy may remove the headers of either scheme.
    ///
    /// # A captured delivery
    ///
    /// Someone who captured a delivery can remove `webhook-signature` too, and send it under another id for five minutes. If that
    /// matters, refuse requests without the header, or call [`verify_standard`](Self::verify_standard).
    ///
    /// # Errors
    ///
    /// - With `webhook-signature`, the same as [`verify_standard_at`](Self::verify_standard_at).
    /// - Otherwise, the same as [`verify_at`](Self::verify_at). [`VerifyError::EmptyHeader`] if neither header is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use http::{HeaderMap, HeaderValue};
    /// use svc_webhook_verify::{Verifier, VerifyError};
    ///
    /// # fn main() -> Result<(), VerifyError> {
    /// let verifier = Verifier::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")?;
    /// let mut headers = HeaderMap::new();
    /// for (name, value) in [
    ///     ("webhook-id", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk"),
    ///     ("webhook-timestamp", "1649367553"),
    ///     ("webhook-signature", "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="),
    /// ] {
    ///     headers.insert(name, HeaderValue::from_static(value));
    /// }
    /// let body = br#"{"email":"test@example.com","username":"test_user"}"#;
    /// let now = UNIX_EPOCH + Duration::from_secs(1_649_367_555);
    /// verifier.verify_headers_at(&headers, body, now)
    /// # }
    /// ```
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn verify_headers_at(
        &self,
        headers: &http::HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), VerifyError> {
        let value = |name| headers.get(name).map(http::HeaderValue::as_bytes);
        let text = |name| value(name).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        if headers.contains_key("webhook-signature") {
            let [id, timestamp, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(text);
            self.verify_standard_at(StandardHeaders { id, timestamp, signature }, body, now)
        } else {
            self.verify_at(text("x-svc-signature"), body, now)
        }
    }

    /// Verifies like [`verify_headers`](Self::verify_headers), then deserializes the body into an [`Event`].
    ///
    /// # Errors
    ///
    /// The same as [`verify_headers_at`](Self::verify_headers_at), and [`VerifyError::MalformedBody`] if the body cannot be
    /// deserialized.
    ///
    /// # Panics
    ///
    /// As [`verify_headers`](Self::verify_headers).
    #[cfg(all(feature = "http", feature = "serde"))]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "http", feature = "serde"))))]
    pub fn verify_event_headers<'a, T: serde::Deserialize<'a>>(
        &self,
        headers: &http::HeaderMap,
        body: &'a [u8],
    ) -> Result<Event<T>, VerifyError> {
        self.verify_event_headers_at(headers, body, system_time())
    }

    /// Verifies like [`verify_headers_at`](Self::verify_headers_at), then deserializes the body into an [`Event`].
    ///
    /// # Errors
    ///
    /// The same as [`verify_headers_at`](Self::verify_headers_at), and [`VerifyError::MalformedBody`] if the body cannot be
    /// deserialized.
    #[cfg(all(feature = "http", feature = "serde"))]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "http", feature = "serde"))))]
    pub fn verify_event_headers_at<'a, T: serde::Deserialize<'a>>(
        &self,
        headers: &http::HeaderMap,
        body: &'a [u8],
        now: SystemTime,
    ) -> Result<Event<T>, VerifyError> {
        self.verify_headers_at(headers, body, now)?;
        parse_event(body)
    }

    #[cfg(not(feature = "ed25519"))]
    fn check_signatures(&self, headers: StandardHeaders<'_>, body: &[u8]) -> Result<(), VerifyError> {
        self.check_macs(headers, body)
    }

    /// Checks that `webhook-signature` has an entry that matches any secret or public key.
    #[cfg(feature = "ed25519")]
    fn check_signatures(&self, headers: StandardHeaders<'_>, body: &[u8]) -> Result<(), VerifyError> {
        if self.public_keys.is_empty() {
            return self.check_macs(headers, body);
        }
        if self.keys.is_empty() {
            return public_keys::check(&self.public_keys, headers, body);
        }
        let Err(by_secret) = self.check_macs(headers, body) else { return Ok(()) };
        let Err(by_key) = public_keys::check(&self.public_keys, headers, body) else { return Ok(()) };
        // The error is about the entries that are there.
        let only_v1a = by_secret == VerifyError::NoV1Signature && by_key != VerifyError::NoV1aSignature;
        Err(if only_v1a { by_key } else { by_secret })
    }

    /// Checks that a `v1` entry of `webhook-signature` matches any of the secrets.
    fn check_macs(&self, headers: StandardHeaders<'_>, body: &[u8]) -> Result<(), VerifyError> {
        let StandardHeaders { id, timestamp, signature } = headers;
        let signatures = parse_standard_signatures(signature)?;

        let mut matched = false;
        for keys in &self.keys {
            let key = keys.decoded.clone().ok_or(VerifyError::SecretNotBase64)?;
            let mac = [id, ".", timestamp, "."].iter().fold(key, Mac::chain_update).chain_update(body);
            for signature in &signatures {
                matched |= is_signature(mac.clone(), b"", signature);
            }
        }
        if matched { Ok(()) } else { Err(VerifyError::Mismatch) }
    }

    fn check_age(&self, sent: SystemTime, now: SystemTime) -> Result<(), VerifyError> {
        let Some(max_age) = self.max_age else {
            return Ok(());
        };
        match now.duration_since(sent) {
            Ok(age) if age > max_age => Err(VerifyError::Stale { age }),
            Err(ahead) if ahead.duration() > self.future_tolerance => {
                Err(VerifyError::FromFuture { ahead: ahead.duration() })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Verifier");
        fields.field("secrets", &self.keys.len());
        #[cfg(feature = "ed25519")]
        fields.field("public_keys", &self.public_keys.len());
        fields.field("max_age", &self.max_age).field("future_tolerance", &self.future_tolerance).finish_non_exhaustive()
    }
}

#[cfg(feature = "serde")]
fn parse_event<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<Event<T>, VerifyError> {
    serde_json::from_slice(body).map_err(|error| VerifyError::MalformedBody { reason: error.to_string() })
}

/// The keys that the two signature schemes derive from one secret.
#[derive(Clone)]
struct Keys {
    /// The key of `X-SVC-Signature`: the whole text of the secret.
    whole: Hmac<Sha256>,
    /// The key of Standard Webhooks: the decoded base64 after the prefix. `None` if it is not base64 or empty.
    decoded: Option<Hmac<Sha256>>,
}

impl Keys {
    fn new(secret: &str) -> Result<Self, VerifyError> {
        let whole = whole_key(secret)?;
        let text = secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret);
        let decoded = STANDARD.decode(text).ok().filter(|key| !key.is_empty());
        Ok(Self { whole, decoded: decoded.and_then(|key| Hmac::new_from_slice(&key).ok()) })
    }
}

/// Returns the key of `X-SVC-Signature`.
pub(crate) fn whole_key(secret: &str) -> Result<Hmac<Sha256>, VerifyError> {
    // Anyone can sign with an empty key, which an unset environment variable would result in.
    if secret.is_empty() {
        return Err(VerifyError::EmptySecret);
    }
    if secret.starts_with(PUBLIC_KEY_PREFIX) {
        return Err(VerifyError::PublicKeyAsSecret);
    }
    if secret.contains(char::is_whitespace) {
        return Err(VerifyError::SecretWhitespace);
    }
    // This never fails, since HMAC accepts keys of any length.
    Hmac::new_from_slice(secret.as_bytes()).map_err(|_| VerifyError::EmptySecret)
}

/// Returns whether `signature` is the MAC of the input of `key` followed by `rest`. Compares in constant time.
pub(crate) fn is_signature(key: Hmac<Sha256>, rest: &[u8], signature: &[u8; 32]) -> bool {
    key.chain_update(rest).verify_slice(signature).is_ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "this crate runs in the programs of subscribers; `verify_at` accepts the time as an argument"
)]
fn system_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
