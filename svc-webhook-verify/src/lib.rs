//! Verifies that a webhook delivery was sent by SVC and arrived unchanged.
//!
//! Each delivery carries the header `X-SVC-Signature: sha256=<hex>`: the HMAC-SHA256 ([RFC 2104]) of the raw body,
//! in lower-case hex. The key is the ASCII bytes of the subscription's whole `secret`, the `whsec_` included.
//!
//! [`verify`] checks one signature with one secret. A [`Verifier`] also takes several secrets, for a rotation, and
//! limits the age of a delivery, so that one that was recorded cannot be sent again later. The age is read from
//! `delivered_at`, which lies in the body and so is signed; each attempt is signed afresh, so retries are never stale.
//!
//! ```
//! use svc_webhook_verify::{VerifyError, verify};
//!
//! let secret = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
//! let signature = "sha256=9e2a27e2fc4f6aa3023adb2cc17d2e02081bc9d4562135dbc60c9aa4e219461c";
//! let body = b"{\"event\":\"\xff\xfe\x00\x80\"}";
//!
//! assert_eq!(verify(secret, signature, body), Ok(()));
//! assert_eq!(verify(secret, signature, b"{}"), Err(VerifyError::Mismatch));
//! ```
//!
//! # In a handler
//!
//! - Verify the bytes as received, before anything parses them: JSON that is parsed and written again differs.
//! - Read the kind from `event` in the body. `X-SVC-Event` and the other headers are not signed.
//! - Answer 2xx within 10 seconds and do the work later. Any other answer is a failed attempt: it is sent again, and
//!   ten failures in a row pause the subscription.
//! - A delivery can arrive twice. `X-SVC-Delivery` is the same on every retry.
//!
//! With axum 0.8:
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use axum::{
//!     Router,
//!     body::Bytes,
//!     extract::State,
//!     http::{HeaderMap, StatusCode},
//!     routing::post,
//! };
//! use svc_webhook_verify::{Verifier, VerifyError};
//!
//! fn router(secret: &str) -> Result<Router, VerifyError> {
//!     let verifier = Verifier::new(secret)?.max_age(Duration::from_secs(300));
//!     Ok(Router::new().route("/webhooks", post(receive)).with_state(Arc::new(verifier)))
//! }
//!
//! async fn receive(
//!     State(verifier): State<Arc<Verifier>>,
//!     headers: HeaderMap,
//!     body: Bytes,
//! ) -> Result<StatusCode, (StatusCode, String)> {
//!     let header = headers.get("x-svc-signature");
//!     let signature = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
//!     verifier
//!         .verify(signature, &body)
//!         .map_err(|error| (StatusCode::UNAUTHORIZED, error.to_string()))?;
//!     // Put the event in a queue here.
//!     Ok(StatusCode::NO_CONTENT)
//! }
//! # fn main() -> Result<(), VerifyError> { router("whsec_…").map(drop) }
//! ```
//!
//! With hyper 1, called as `service_fn(|request| receive(&verifier, request))`:
//!
//! ```no_run
//! use http_body_util::{BodyExt, Limited};
//! use hyper::{Request, Response, StatusCode, body::Incoming};
//! use svc_webhook_verify::Verifier;
//!
//! async fn receive(
//!     verifier: &Verifier,
//!     request: Request<Incoming>,
//! ) -> Result<Response<String>, hyper::http::Error> {
//!     let (head, body) = request.into_parts();
//!     let header = head.headers.get("x-svc-signature");
//!     let signature = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
//!     let (status, text) = match Limited::new(body, 2 << 20).collect().await {
//!         Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
//!         Ok(body) => match verifier.verify(signature, &body.to_bytes()) {
//!             Err(error) => (StatusCode::UNAUTHORIZED, error.to_string()),
//!             // Put the event in a queue here.
//!             Ok(()) => (StatusCode::NO_CONTENT, String::new()),
//!         },
//!     };
//!     Response::builder().status(status).body(text)
//! }
//! ```
//!
//! # Features
//!
//! - `serde`: `Event` and `Verifier::verify_event`, which verifies a delivery and reads it into a type.
//!
//! All else, the age limit included, works without it: `delivered_at` is found in the body by a small scanner, which
//! sees only bytes whose signature was right.
//!
//! [RFC 2104]: https://www.rfc-editor.org/rfc/rfc2104

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod parse;

use std::fmt;
use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub use self::error::VerifyError;
use self::parse::{
    decode_base64, find_delivered_at, parse_signature, parse_standard_signatures, parse_timestamp, parse_unix_seconds,
};

/// What every secret begins with.
const SECRET_PREFIX: &str = "whsec_";
/// What every `X-SVC-Signature` begins with.
const SIGNATURE_PREFIX: &str = "sha256=";

/// Verifies `X-SVC-Signature` with one secret and no limit of age.
///
/// `secret` is the subscription's whole secret, `signature_header` the value of `X-SVC-Signature` (`""` if it is
/// missing) and `body` the bytes as received. The comparison takes constant time; the body is not copied.
///
/// # Errors
///
/// A [`VerifyError`] that names the fault of the secret or of the header, or [`VerifyError::Mismatch`].
///
/// # Examples
///
/// ```
/// use svc_webhook_verify::{VerifyError, verify};
///
/// let secret = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
/// let signature = "sha256=a6b61cd6258c4ba2cd4ad5123acce1386872971facc0bc21894c6347157382bf";
/// assert_eq!(verify(secret, signature, b""), Ok(()));
/// assert_eq!(verify(secret, "", b""), Err(VerifyError::EmptyHeader));
/// ```
pub fn verify(secret: &str, signature_header: &str, body: &[u8]) -> Result<(), VerifyError> {
    let key = whole_key(secret)?;
    let signature = parse_signature(signature_header)?;
    if is_signature(key, body, &signature) { Ok(()) } else { Err(VerifyError::Mismatch) }
}

/// Verifies deliveries with one or more secrets and, if asked to, a limit of age.
///
/// Build it once and share it. It holds the keys in the form HMAC uses, never the secrets' text, and its `Debug` shows
/// neither.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use svc_webhook_verify::{Verifier, VerifyError};
///
/// # fn main() -> Result<(), VerifyError> {
/// let verifier = Verifier::new("whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=")?
///     // While the secret is rotated: the other one.
///     .with_secret("whsec_FXE7hanIybXwTvLAFfk4bZJjPTSZFkGlkzTgRNJBC+4=")?
///     .max_age(Duration::from_secs(300));
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
    max_age: Option<Duration>,
    future_tolerance: Duration,
}

impl Verifier {
    /// A verifier of signatures made with `secret`, the subscription's whole secret.
    ///
    /// # Errors
    ///
    /// [`VerifyError::EmptySecret`] or [`VerifyError::SecretWhitespace`].
    pub fn new(secret: &str) -> Result<Self, VerifyError> {
        Ok(Self { keys: vec![Keys::new(secret)?], max_age: None, future_tolerance: Duration::from_secs(60) })
    }

    /// Also accepts signatures made with `secret`. Use it while a secret is rotated, for either the new or the old one.
    ///
    /// # Errors
    ///
    /// [`VerifyError::EmptySecret`] or [`VerifyError::SecretWhitespace`].
    pub fn with_secret(mut self, secret: &str) -> Result<Self, VerifyError> {
        self.keys.push(Keys::new(secret)?);
        Ok(self)
    }

    /// Refuses deliveries that were sent more than `max_age` ago. Five minutes is a sound choice.
    ///
    /// Without it, neither clock nor body is looked at, and a delivery that was recorded can be sent again.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = Some(max_age);
        self
    }

    /// How far the sender's clock may be ahead; 60 seconds unless set. Has an effect only with
    /// [`max_age`](Self::max_age).
    #[must_use]
    pub fn future_tolerance(mut self, tolerance: Duration) -> Self {
        self.future_tolerance = tolerance;
        self
    }

    /// Verifies `X-SVC-Signature`, and the age by the system's clock.
    ///
    /// On a target without a clock, such as `wasm32-unknown-unknown`, use [`verify_at`](Self::verify_at).
    ///
    /// # Errors
    ///
    /// Those of [`verify_at`](Self::verify_at).
    pub fn verify(&self, signature_header: &str, body: &[u8]) -> Result<(), VerifyError> {
        self.verify_at(signature_header, body, system_time())
    }

    /// Verifies `X-SVC-Signature`, and the age at the time `now`.
    ///
    /// # Errors
    ///
    /// A [`VerifyError`] that names the fault of the header, or [`VerifyError::Mismatch`] if no secret fits. With a
    /// limit of age, and only once the signature was right: [`VerifyError::Stale`], [`VerifyError::FromFuture`], or the
    /// fault of `delivered_at`.
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
    /// assert_eq!(verifier.verify_at(signature, b"", now), Ok(()));
    ///
    /// let strict = verifier.max_age(Duration::from_secs(300));
    /// let refused = strict.verify_at(signature, b"", now);
    /// assert_eq!(refused, Err(VerifyError::MissingDeliveredAt));
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify_at(&self, signature_header: &str, body: &[u8], now: SystemTime) -> Result<(), VerifyError> {
        let signature = parse_signature(signature_header)?;
        // Each key is tried, whichever fits: the time taken does not tell which one did.
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

    /// Verifies as [`verify`](Self::verify) does, then reads the body into an [`Event`].
    ///
    /// # Errors
    ///
    /// Those of [`verify_at`](Self::verify_at); [`VerifyError::MalformedBody`] if the body is no event with such
    /// `data`.
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn verify_event<'a, T: serde::Deserialize<'a>>(
        &self,
        signature_header: &str,
        body: &'a [u8],
    ) -> Result<Event<T>, VerifyError> {
        self.verify_event_at(signature_header, body, system_time())
    }

    /// Verifies as [`verify_at`](Self::verify_at) does, then reads the body into an [`Event`].
    ///
    /// # Errors
    ///
    /// Those of [`verify_at`](Self::verify_at); [`VerifyError::MalformedBody`] if the body is no event with such
    /// `data`.
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
    /// let body = br#"{"event":"invoice.paid","data":{"invoice_number":"INV-0042"},"delivered_at":"2026-03-14T09:26:53.000000Z","tenant_id":"019a0000-0000-7000-8000-000000000001"}"#;
    /// let signature = "sha256=e8a13be0eff90080a8012c48bc4b54ec89ef297b8a81f6f559b7f9e31919b798";
    /// let now = UNIX_EPOCH + Duration::from_secs(1_773_480_414);
    ///
    /// let verifier = Verifier::new("whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=")?
    ///     .max_age(Duration::from_secs(300));
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
        serde_json::from_slice(body).map_err(|error| VerifyError::MalformedBody { reason: error.to_string() })
    }

    /// Verifies the headers of [Standard Webhooks], and the age by the system's clock.
    ///
    /// # Errors
    ///
    /// Those of [`verify_standard_at`](Self::verify_standard_at).
    ///
    /// [Standard Webhooks]: https://www.standardwebhooks.com
    pub fn verify_standard(&self, headers: StandardHeaders<'_>, body: &[u8]) -> Result<(), VerifyError> {
        self.verify_standard_at(headers, body, system_time())
    }

    /// Verifies the headers of [Standard Webhooks], and the age at the time `now`.
    ///
    /// These sign the id and the time along with the body, so a limit of age needs no look into the body. While a
    /// secret is rotated, they carry a signature by each of the two.
    ///
    /// # Errors
    ///
    /// A [`VerifyError`] that names the fault of a header; [`VerifyError::SecretNotBase64`] if any secret is not;
    /// [`VerifyError::Mismatch`] if no signature fits a secret. With a limit of age also [`VerifyError::Stale`] and
    /// [`VerifyError::FromFuture`].
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
    /// let verifier = Verifier::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")?
    ///     .max_age(Duration::from_secs(300));
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
        let StandardHeaders { id, timestamp, signature } = headers;
        // A dot in the id would let text inside the body pass for the timestamp.
        if id.is_empty() || id.contains('.') {
            return Err(VerifyError::InvalidId);
        }
        let sent = parse_unix_seconds(timestamp).ok_or(VerifyError::InvalidTimestamp)?;
        let signatures = parse_standard_signatures(signature)?;

        let mut matched = false;
        for keys in &self.keys {
            let key = keys.decoded.clone().ok_or(VerifyError::SecretNotBase64)?;
            let mac = [id, ".", timestamp, "."].iter().fold(key, Mac::chain_update).chain_update(body);
            for signature in &signatures {
                matched |= is_signature(mac.clone(), b"", signature);
            }
        }
        if !matched {
            return Err(VerifyError::Mismatch);
        }
        self.check_age(sent, now)
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
        f.debug_struct("Verifier")
            .field("secrets", &self.keys.len())
            .field("max_age", &self.max_age)
            .field("future_tolerance", &self.future_tolerance)
            .finish_non_exhaustive()
    }
}

/// The headers of [Standard Webhooks], each as received, `""` if missing.
///
/// [Standard Webhooks]: https://www.standardwebhooks.com
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandardHeaders<'a> {
    /// `webhook-id`: the delivery, the same on every retry.
    pub id: &'a str,
    /// `webhook-timestamp`: when this attempt was sent, in Unix seconds.
    pub timestamp: &'a str,
    /// `webhook-signature`: one or more `v1,<base64>`, with spaces between.
    pub signature: &'a str,
}

/// The body of a delivery.
///
/// [`Verifier::verify_event`] reads one. `T` is the type of the record; the default takes any.
#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Event<T = serde_json::Value> {
    /// The event kind, such as `invoice.paid`.
    pub event: String,
    /// The record the event concerns, as it was right after the change.
    pub data: T,
    /// When this attempt was sent: RFC 3339, UTC, in microseconds. It differs between retries.
    pub delivered_at: String,
    /// The tenant the record belongs to, a UUID.
    pub tenant_id: String,
}

/// Compiles the Rust of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// One secret as the keys of the two schemes.
#[derive(Clone)]
struct Keys {
    /// Of `X-SVC-Signature`: the whole text.
    whole: Hmac<Sha256>,
    /// Of Standard Webhooks: the bytes that the base64 after the prefix stands for. `None` if it is none.
    decoded: Option<Hmac<Sha256>>,
}

impl Keys {
    fn new(secret: &str) -> Result<Self, VerifyError> {
        let whole = whole_key(secret)?;
        let text = secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret);
        let decoded = decode_base64(text).filter(|key| !key.is_empty());
        Ok(Self { whole, decoded: decoded.and_then(|key| Hmac::new_from_slice(&key).ok()) })
    }
}

fn whole_key(secret: &str) -> Result<Hmac<Sha256>, VerifyError> {
    // Anyone can sign with an empty key, such as that of a variable nobody set.
    if secret.is_empty() {
        return Err(VerifyError::EmptySecret);
    }
    if secret.contains(char::is_whitespace) {
        return Err(VerifyError::SecretWhitespace);
    }
    // Never fails: HMAC takes keys of any length.
    Hmac::new_from_slice(secret.as_bytes()).map_err(|_| VerifyError::EmptySecret)
}

/// Whether `signature` is the MAC of what `key` was fed and `rest`, in constant time.
fn is_signature(key: Hmac<Sha256>, rest: &[u8], signature: &[u8; 32]) -> bool {
    key.chain_update(rest).verify_slice(signature).is_ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "subscribers run this crate, not the service; `verify_at` takes the time instead"
)]
fn system_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
