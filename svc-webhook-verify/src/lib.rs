//! Verifies the signatures of webhook deliveries from svc.
//!
//! Anyone who knows the URL of your endpoint can send requests to it. svc therefore signs every delivery with the
//! secret of the webhook. Verify the signature before you act on a delivery: it proves that svc sent the
//! body and that nobody changed it.
//!
//! # Examples
//!
//! Create a [`Verifier`] once, and call [`Verifier::verify`] with the value of the header `X-SVC-Signature` and the raw
//! body of each request. It checks the signature, and that the delivery was sent at most five minutes ago:
//!
//! ```
//! use std::time::{Duration, UNIX_EPOCH};
//! use svc_webhook_verify::{Verifier, VerifyError};
//!
//! # fn main() -> Result<(), VerifyError> {
//! let verifier = Verifier::new("whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=")?;
//!
//! let signature = "sha256=c86bf134cb52f674d94452086e16d121cfbeeab00ef366d08fad42a9307c8395";
//! let body = br#"{"delivered_at":"2026-03-14T09:26:53.000000Z"}"#;
//!
//! // The same as `verify`, at a given time.
//! let now = UNIX_EPOCH + Duration::from_secs(1_773_480_415);
//! assert_eq!(verifier.verify_at(signature, body, now), Ok(()));
//! assert_eq!(verifier.verify_at(signature, b"{}", now), Err(VerifyError::Mismatch));
//!
//! let refused = verifier.verify_at(signature, body, now + Duration::from_secs(3600));
//! assert_eq!(refused, Err(VerifyError::Stale { age: Duration::from_secs(3602) }));
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `http`, `Verifier::verify_headers` takes the headers of the request instead of one value, as the
//! handlers below do. The function [`verify`] checks a single signature and nothing else: it does not limit the age of
//! the delivery.
//!
//! ## With axum 0.8
//!
#![cfg_attr(feature = "http", doc = "```no_run")]
#![cfg_attr(not(feature = "http"), doc = "```ignore")]
//! use std::sync::Arc;
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
//!     let verifier = Verifier::new(secret)?;
//!     Ok(Router::new().route("/webhooks", post(receive)).with_state(Arc::new(verifier)))
//! }
//!
//! async fn receive(
//!     State(verifier): State<Arc<Verifier>>,
//!     headers: HeaderMap,
//!     body: Bytes,
//! ) -> Result<StatusCode, (StatusCode, String)> {
//!     verifier
//!         .verify_headers(&headers, &body)
//!         .map_err(|error| (StatusCode::UNAUTHORIZED, error.to_string()))?;
//!     // Put the event in a queue here.
//!     Ok(StatusCode::NO_CONTENT)
//! }
//! # fn main() -> Result<(), VerifyError> { router("whsec_…").map(drop) }
//! ```
//!
//! ## With hyper 1
//!
//! The handler is called as `service_fn(|request| receive(&verifier, request))`:
//!
#![cfg_attr(feature = "http", doc = "```no_run")]
#![cfg_attr(not(feature = "http"), doc = "```ignore")]
//! use http_body_util::{BodyExt, Limited};
//! use hyper::{Request, Response, StatusCode, body::Incoming};
//! use svc_webhook_verify::Verifier;
//!
//! async fn receive(
//!     verifier: &Verifier,
//!     request: Request<Incoming>,
//! ) -> Result<Response<String>, hyper::http::Error> {
//!     let (head, body) = request.into_parts();
//!     let (status, text) = match Limited::new(body, 2 << 20).collect().await {
//!         Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
//!         Ok(body) => match verifier.verify_headers(&head.headers, &body.to_bytes()) {
//!             Err(error) => (StatusCode::UNAUTHORIZED, error.to_string()),
//!             // Put the event in a queue here.
//!             Ok(()) => (StatusCode::NO_CONTENT, String::new()),
//!         },
//!     };
//!     Response::builder().status(status).body(text)
//! }
//! ```
//!
//! # How deliveries are signed
//!
//! Each delivery has the header `X-SVC-Signature: sha256=<hex>`. It contains the HMAC-SHA256 ([RFC 2104]) of the raw
//! body in lower-case hex. The key is the ASCII text of the webhook's whole secret, including `whsec_`.
//!
//! Each delivery also has the headers of [Standard Webhooks], which [`Verifier::verify_standard`] verifies with the
//! same secret: `webhook-signature` is `v1,` and the base64 of the HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}`, keyed with
//! the bytes that the base64 after `whsec_` encodes. One of the two signatures is enough.
//!
//! # Public keys
//!
//! Anyone who knows the secret, or steals it from the receiver, can sign. A webhook whose `signature` is `ed25519`
//! also has a pair of keys: svc signs with the private key, and the receiver verifies with the public key, which is no
//! secret. `webhook-signature` then has an entry `v1a,<base64>` beside `v1,<base64>`. It is the Ed25519
//! signature ([RFC 8032]) of `webhook-id`, `webhook-timestamp` and the raw body. With the feature `ed25519`,
//! `Verifier::from_public_key` creates a verifier that needs no secret:
//!
#![cfg_attr(feature = "ed25519", doc = "```")]
#![cfg_attr(not(feature = "ed25519"), doc = "```ignore")]
//! use std::time::{Duration, UNIX_EPOCH};
//! use svc_webhook_verify::{StandardHeaders, Verifier, VerifyError};
//!
//! # fn main() -> Result<(), VerifyError> {
//! let verifier = Verifier::from_public_key("whpk_XVXAvYitvdsIQdpeflH9GAWiHK8UhPcdQZATxlDsiUc=")?;
//!
//! let headers = StandardHeaders {
//!     id: "019a0000-0000-7000-8000-00000000d001",
//!     timestamp: "1773480413",
//!     signature: "v1a,78jPvZst3PxKKpsn8alA6WL9Uck8lB9oXTFPr+idcxL3Iwx/1SRBFrH2fc2FOPz8xRQe+PDj4SEz3lVA4+TNDw==",
//! };
//! let body = br#"{"delivered_at":"2026-03-14T09:26:53.000000Z"}"#;
//! let now = UNIX_EPOCH + Duration::from_secs(1_773_480_415);
//! assert_eq!(verifier.verify_standard_at(headers, body, now), Ok(()));
//! assert_eq!(verifier.verify_standard_at(headers, b"{}", now), Err(VerifyError::Mismatch));
//! # Ok(())
//! # }
//! ```
//!
//! Handlers call `Verifier::verify_headers`, as above. `Verifier::with_public_key` adds a key to a verifier that has
//! secrets or other keys, and one valid signature is enough. Without a secret, the entries `v1` are ignored, and
//! [`Verifier::verify`] returns [`VerifyError::NoSecret`], since `X-SVC-Signature` is always made with the secret.
//!
//! # Verify the raw body
//!
//! Verify the bytes as they were received, before anything parses them. JSON that was parsed and written again differs
//! in white space, number formats or escapes, and its signature does not match.
//!
//! # The age is limited
//!
//! A signature alone does not stop someone who recorded a delivery from sending it again. A [`Verifier`] therefore
//! refuses deliveries that were sent more than five minutes ago ([`Verifier::DEFAULT_MAX_AGE`]). The age is the time
//! since `delivered_at` in the body, or since `webhook-timestamp`; both are signed. Each attempt has its own time and
//! signature, so a retry is never too old.
//!
//! [`Verifier::max_age`] sets another limit. [`Verifier::without_max_age`] removes it, for deliveries that you
//! recorded yourself or that waited in a queue before they are verified.
//!
//! # Read the event kind from the body
//!
//! `X-SVC-Signature` covers the body and none of the headers. Read the kind from the member `event` of the body, not
//! from the header `X-SVC-Event`.
//!
//! # Respond within 10 seconds
//!
//! Respond with a 2xx status, and process the event afterwards. Any other response, or none within 10 seconds, is a
//! failed attempt. Failed attempts are retried, and ten failures in a row pause the webhook.
//!
//! # Expect duplicates
//!
//! A delivery can arrive more than once, for example when your response was lost. The header `webhook-id` (also
//! `X-SVC-Delivery`) has the same value in every attempt. `X-SVC-Signature` does not cover it, so a captured delivery can
//! be sent again with another id for five minutes: [`Verifier::verify_standard`] prevents that.
//!
//! # Rotate secrets
//!
//! When a secret is rotated, `X-SVC-Signature` is made with the old secret until the overlap ends, and with the new one
//! from then on. So deploy the new secret beside the old one before the overlap ends: [`Verifier::with_secret`] adds it,
//! and both are accepted. Remove the old one afterwards. For [`Verifier::verify_standard`] one of the two is enough:
//! during the overlap, `webhook-signature` contains a signature for each. Public keys are rotated in the same way, so a
//! receiver may replace the old key by the new one at any time during the overlap.
//!
//! # Errors
//!
//! Every failure is a [`VerifyError`]. Its message says what was wrong and what to do, and contains neither a secret
//! nor a valid signature, so it can be logged and returned to the sender. [`VerifyError::code`] is a stable name for
//! metrics.
//!
//! # Features
//!
//! - `ed25519` adds `Verifier::from_public_key` and `Verifier::with_public_key`, which verify Ed25519 signatures.
//! - `http` adds `Verifier::verify_headers`, which takes a `HeaderMap` of the crate `http`, as axum and hyper have it.
//! - `serde` adds `Event` and `Verifier::verify_event`, which verifies a delivery and deserializes its body. With `http` as well,
//!   `Verifier::verify_event_headers` takes the headers of the request.
//!
//! Everything else works without them, including the limit of the age: a small scanner finds `delivered_at` in the body
//! after the signature was verified.
//!
//! [RFC 2104]: https://www.rfc-editor.org/rfc/rfc2104
//! [RFC 8032]: https://www.rfc-editor.org/rfc/rfc8032
//! [Standard Webhooks]: https://www.standardwebhooks.com

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod parse;
#[cfg(feature = "ed25519")]
mod public_keys;
mod verifier;

pub use self::error::VerifyError;
pub use self::parse::StandardHeaders;
use self::parse::parse_signature;
pub use self::verifier::Verifier;
use self::verifier::{is_signature, whole_key};

/// The prefix of every public key.
const PUBLIC_KEY_PREFIX: &str = "whpk_";
/// The prefix of every `X-SVC-Signature`.
const SIGNATURE_PREFIX: &str = "sha256=";

/// Verifies `X-SVC-Signature` with one secret.
///
/// `secret` is the webhook's whole secret, including `whsec_`. `signature_header` is the value of
/// `X-SVC-Signature`, or `""` if the header is missing. `body` is the raw body, which is not copied. Signatures are
/// compared in constant time.
///
/// # The age is not checked
///
/// This function checks the signature and nothing else, so its result depends on its arguments alone. It accepts a
/// recorded delivery that is sent again later. A [`Verifier`] refuses it.
///
/// # Errors
///
/// - [`VerifyError::EmptySecret`], [`VerifyError::SecretWhitespace`] or [`VerifyError::PublicKeyAsSecret`] if the
///   secret is not valid.
/// - [`VerifyError::EmptyHeader`], [`VerifyError::MissingPrefix`], [`VerifyError::WrongLength`],
///   [`VerifyError::NotHex`] or [`VerifyError::UpperCaseHex`] if the header is not valid.
/// - [`VerifyError::Mismatch`] if the signature is not that of this body with this secret.
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

/// The body of a delivery, as [`Verifier::verify_event`] returns it.
///
/// `T` is the type of the record. The default accepts any JSON.
///
/// Fields that this type does not know are ignored, since the service may add some.
#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Event<T = serde_json::Value> {
    /// The event kind, such as `invoice.paid`.
    pub event: String,
    /// The record that the event is about, as it was right after the change.
    pub data: T,
    /// The time of this attempt: RFC 3339, UTC, with microseconds. It differs between attempts.
    pub delivered_at: String,
    /// The id of the account that owns the record, a UUID.
    pub tenant_id: String,
}

/// Compiles the Rust code of the README.
#[cfg(all(doctest, feature = "ed25519", feature = "http"))]
#[doc = include_str!("../README.md")]
struct Readme;
