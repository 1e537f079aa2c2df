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

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

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

/// Why a delivery was refused. `Display` says how to mend it; no text holds a secret or a right signature.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The secret is empty.
    EmptySecret,
    /// The secret holds white space, often a line feed at the end of a file.
    SecretWhitespace,
    /// The part of the secret after `whsec_` is not base64, which the Standard Webhooks headers need.
    SecretNotBase64,
    /// The signature header is empty or missing.
    EmptyHeader,
    /// `X-SVC-Signature` does not begin with `sha256=`.
    MissingPrefix,
    /// `X-SVC-Signature` does not have 64 digits.
    WrongLength {
        /// Bytes after `sha256=`.
        found: usize,
    },
    /// `X-SVC-Signature` holds something other than hex digits.
    NotHex,
    /// `X-SVC-Signature` holds upper-case hex digits.
    UpperCaseHex,
    /// The signature is not that of this body with any of the secrets.
    Mismatch,
    /// An age was to be checked, and the body is no JSON object with a string `delivered_at`.
    MissingDeliveredAt,
    /// `delivered_at` is not RFC 3339 in UTC with `Z`.
    InvalidDeliveredAt,
    /// The delivery was sent longer ago than the limit allows.
    Stale {
        /// The time since it was sent.
        age: Duration,
    },
    /// The delivery was sent later than now, by more than the tolerance.
    FromFuture {
        /// The time until it is sent.
        ahead: Duration,
    },
    /// The signature is right, but the body cannot be read into the event type. Only with the feature `serde`.
    MalformedBody {
        /// What the JSON parser said; it can quote the body.
        reason: String,
    },
    /// `webhook-id` is empty or missing, or holds a dot.
    InvalidId,
    /// `webhook-timestamp` is missing or is no Unix time in seconds.
    InvalidTimestamp,
    /// `webhook-signature` holds no entry that begins with `v1,`.
    NoV1Signature,
    /// A `v1,` entry of `webhook-signature` is not base64 of 32 bytes.
    NotBase64,
}

impl VerifyError {
    /// The variant's name in snake case, for logs and metrics. It does not change.
    ///
    /// ```
    /// use svc_webhook_verify::VerifyError;
    ///
    /// assert_eq!(VerifyError::UpperCaseHex.code(), "upper_case_hex");
    /// ```
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptySecret => "empty_secret",
            Self::SecretWhitespace => "secret_whitespace",
            Self::SecretNotBase64 => "secret_not_base64",
            Self::EmptyHeader => "empty_header",
            Self::MissingPrefix => "missing_prefix",
            Self::WrongLength { .. } => "wrong_length",
            Self::NotHex => "not_hex",
            Self::UpperCaseHex => "upper_case_hex",
            Self::Mismatch => "mismatch",
            Self::MissingDeliveredAt => "missing_delivered_at",
            Self::InvalidDeliveredAt => "invalid_delivered_at",
            Self::Stale { .. } => "stale",
            Self::FromFuture { .. } => "from_future",
            Self::MalformedBody { .. } => "malformed_body",
            Self::InvalidId => "invalid_id",
            Self::InvalidTimestamp => "invalid_timestamp",
            Self::NoV1Signature => "no_v1_signature",
            Self::NotBase64 => "not_base64",
        }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::EmptySecret => "the secret is empty; pass the `secret` the subscription was created with",
            Self::SecretWhitespace => "the secret holds white space; trim it, a file often ends with a line feed",
            Self::SecretNotBase64 => "the secret is not `whsec_` and base64; pass it unchanged and whole",
            Self::EmptyHeader => "the signature header is empty or missing; check that no proxy removes it",
            Self::MissingPrefix => "the signature does not begin with `sha256=`; pass X-SVC-Signature unchanged",
            Self::WrongLength { found } => {
                return write!(
                    f,
                    "the signature has {found} bytes after `sha256=`, not 64; \
                     pass X-SVC-Signature unchanged and once"
                );
            }
            Self::NotHex => "the signature is not hex; pass X-SVC-Signature unchanged",
            Self::UpperCaseHex => "the signature is in upper-case hex; pass X-SVC-Signature unchanged, in lower case",
            Self::Mismatch => {
                "the signature does not match; pass the body's bytes as received, not parsed and \
                 written again, and this subscription's whole secret with its `whsec_`"
            }
            Self::MissingDeliveredAt => {
                "the body has no string `delivered_at` to tell its age; \
                 pass the whole body of an SVC delivery, or set no maximum age"
            }
            Self::InvalidDeliveredAt => {
                "`delivered_at` is not an RFC 3339 time in UTC; \
                 pass the whole body of an SVC delivery, or set no maximum age"
            }
            Self::Stale { age } => {
                return write!(
                    f,
                    "the delivery was sent {} s ago, longer than allowed; \
                     if it is no repetition, set the receiver's clock or raise the maximum age",
                    age.as_secs()
                );
            }
            Self::FromFuture { ahead } => {
                return write!(
                    f,
                    "the delivery was sent {} s after now; \
                     set the receiver's clock or raise the tolerance",
                    ahead.as_secs()
                );
            }
            Self::MalformedBody { reason } => {
                return write!(
                    f,
                    "the body does not fit the event type: {reason}; \
                     compare the type with the fields of the event"
                );
            }
            Self::InvalidId => "webhook-id is empty, missing or holds a dot; pass the header unchanged",
            Self::InvalidTimestamp => "webhook-timestamp is missing or not in Unix seconds; pass the header unchanged",
            Self::NoV1Signature => "webhook-signature has no entry that begins with `v1,`; pass the header whole",
            Self::NotBase64 => "webhook-signature is not base64 of 32 bytes after `v1,`; pass the header unchanged",
        };
        f.write_str(text)
    }
}

impl std::error::Error for VerifyError {}

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

/// The bytes of `sha256=<64 lower-case hex digits>`. The header is no secret, so this need not take constant time.
fn parse_signature(header: &str) -> Result<[u8; 32], VerifyError> {
    if header.is_empty() {
        return Err(VerifyError::EmptyHeader);
    }
    let hex = header.strip_prefix(SIGNATURE_PREFIX).ok_or(VerifyError::MissingPrefix)?.as_bytes();
    if hex.len() != 64 {
        return Err(VerifyError::WrongLength { found: hex.len() });
    }
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return Err(VerifyError::NotHex);
    }
    if hex.iter().any(u8::is_ascii_uppercase) {
        return Err(VerifyError::UpperCaseHex);
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte - b'0',
        _ => byte - b'a' + 10,
    };
    let mut signature = [0; 32];
    for (byte, pair) in signature.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, &hex| byte << 4 | digit(hex));
    }
    Ok(signature)
}

/// The `v1` entries of `webhook-signature`. Entries of other versions are passed over.
fn parse_standard_signatures(header: &str) -> Result<Vec<[u8; 32]>, VerifyError> {
    if header.is_empty() {
        return Err(VerifyError::EmptyHeader);
    }
    let signatures = header
        .split(' ')
        .filter_map(|entry| entry.strip_prefix("v1,"))
        .map(|text| decode_base64(text).and_then(|bytes| bytes.try_into().ok()))
        .collect::<Option<Vec<_>>>()
        .ok_or(VerifyError::NotBase64)?;
    if signatures.is_empty() {
        return Err(VerifyError::NoV1Signature);
    }
    Ok(signatures)
}

/// Standard base64 with padding, in its one canonical form (RFC 4648, sections 4 and 3.5).
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut buffer, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        buffer = buffer << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits) as u8);
            buffer &= (1 << bits) - 1;
        }
    }
    (buffer == 0).then_some(bytes)
}

/// The string `delivered_at` of the JSON object `body`, not of objects inside it. Expects JSON: the body's signature
/// was right. SVC writes neither the name nor the value with escapes.
fn find_delivered_at(body: &[u8]) -> Option<&str> {
    let mut depth = 0_usize;
    let mut rest = body;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let (text, after) = split_string(tail)?;
                rest = after;
                // Only a member's name has a colon after it.
                if depth == 1
                    && text == b"delivered_at"
                    && let [b':', value @ ..] = after.trim_ascii_start()
                {
                    let value = value.trim_ascii_start().strip_prefix(b"\"")?;
                    return std::str::from_utf8(split_string(value)?.0).ok();
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits what follows an opening quote into the string and what follows its closing quote.
fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = bytes.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (text, quote) = bytes.split_at_checked(end)?;
    Some((text, quote.get(1..)?))
}

/// RFC 3339 in the form SVC writes: UTC with `Z`, up to 9 digits of a fraction, from 1970 on.
fn parse_timestamp(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z')?;
    let (seconds, fraction) = match text.split_once('.') {
        Some((seconds, fraction)) => (seconds, Some(fraction)),
        None => (text, None),
    };
    let (date, time) = seconds.split_once('T')?;
    let [year, month, day] = parse_fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = parse_fields(time, ':', [2, 2, 2])?;

    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }

    // Years begin in March here, so that the leap day comes last. 719 468 days lead from 0000-03-01 to 1970-01-01.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds = ((days.checked_sub(719_468)? * 24 + hour) * 60 + minute) * 60 + second;
    let nanos = match fraction {
        None => 0,
        Some(fraction) => {
            let width = u32::try_from(fraction.len()).ok()?;
            parse_digits(fraction)? * 10_u64.pow(9_u32.checked_sub(width)?)
        }
    };
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?.checked_add(Duration::from_nanos(nanos))
}

/// Numbers of exactly these `widths`, `separator` between them.
fn parse_fields<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u64; N]> {
    let mut fields = [0; N];
    let mut parts = text.split(separator);
    for (field, width) in fields.iter_mut().zip(widths) {
        *field = parse_digits(parts.next().filter(|part| part.len() == width)?)?;
    }
    parts.next().is_none().then_some(fields)
}

fn parse_unix_seconds(text: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(parse_digits(text)?))
}

/// A number of digits alone: `parse` would also take a `+`.
fn parse_digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
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
