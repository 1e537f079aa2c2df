//! The reasons why a delivery is refused.

use std::fmt;
use std::time::Duration;

/// The reason why a delivery was refused.
///
/// The message says what was wrong and what to do. It never contains a secret or a valid signature.
///
/// # Respond with 401
///
/// Respond to a refused delivery with a status outside 2xx, such as 401. SVC then counts a failed attempt and retries
/// the delivery, so that no event is lost while you correct the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The secret is empty.
    EmptySecret,
    /// The secret contains white space, often a line feed at the end of a file.
    SecretWhitespace,
    /// The part of the secret after `whsec_` is not base64, which the Standard Webhooks headers require.
    SecretNotBase64,
    /// The signature header is empty or missing.
    EmptyHeader,
    /// `X-SVC-Signature` does not begin with `sha256=`.
    MissingPrefix,
    /// `X-SVC-Signature` does not have 64 hex digits.
    WrongLength {
        /// The number of bytes after `sha256=`.
        found: usize,
    },
    /// `X-SVC-Signature` contains characters that are not hex digits.
    NotHex,
    /// `X-SVC-Signature` contains upper-case hex digits.
    UpperCaseHex,
    /// The signature is not that of this body with any of the secrets.
    Mismatch,
    /// The age is limited, and the body is not a JSON object with a string `delivered_at`.
    MissingDeliveredAt,
    /// `delivered_at` is not an RFC 3339 time in UTC with `Z`.
    InvalidDeliveredAt,
    /// The delivery is older than the maximum age.
    Stale {
        /// The time since the delivery was sent.
        age: Duration,
    },
    /// The time of the delivery is in the future by more than the tolerance.
    FromFuture {
        /// How far the time of the delivery is in the future.
        ahead: Duration,
    },
    /// The signature is valid, but the body cannot be deserialized into the event type. Only with the feature `serde`.
    MalformedBody {
        /// The message of the JSON parser, which can quote the body.
        reason: String,
    },
    /// `webhook-id` is empty, missing or contains a dot.
    InvalidId,
    /// `webhook-timestamp` is missing or not a Unix time in seconds.
    InvalidTimestamp,
    /// `webhook-signature` has no entry that begins with `v1,`.
    NoV1Signature,
    /// A `v1,` entry of `webhook-signature` is not base64 of 32 bytes.
    NotBase64,
}

impl VerifyError {
    /// Returns the name of the variant in snake case, for logs and metrics. The name is stable.
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
            Self::EmptySecret => {
                "the secret is empty; pass the `secret` that was returned when the subscription was created"
            }
            Self::SecretWhitespace => {
                "the secret contains white space; remove it, such as the line feed at the end of a file"
            }
            Self::SecretNotBase64 => "the secret is not `whsec_` followed by base64; pass the whole secret unchanged",
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
                "the signature does not match; pass the bytes of the body as received, not parsed and \
                 written again, and the whole secret of this subscription, including `whsec_`"
            }
            Self::MissingDeliveredAt => {
                "the body has no string `delivered_at`, which the maximum age requires; \
                 pass the whole body of an SVC delivery, or verify without a maximum age"
            }
            Self::InvalidDeliveredAt => {
                "`delivered_at` is not an RFC 3339 time in UTC; \
                 pass the whole body of an SVC delivery, or verify without a maximum age"
            }
            Self::Stale { age } => {
                return write!(
                    f,
                    "the delivery was sent {} s ago, which is more than the maximum age; \
                     if it was not sent again by someone else, check the receiver's clock or raise the maximum age",
                    age.as_secs()
                );
            }
            Self::FromFuture { ahead } => {
                return write!(
                    f,
                    "the delivery was sent {} s in the future; \
                     check the receiver's clock or raise the tolerance",
                    ahead.as_secs()
                );
            }
            Self::MalformedBody { reason } => {
                return write!(
                    f,
                    "the body does not match the event type: {reason}; \
                     compare the type with the fields of the event"
                );
            }
            Self::InvalidId => "webhook-id is empty, missing or contains a dot; pass the header unchanged",
            Self::InvalidTimestamp => "webhook-timestamp is missing or not in Unix seconds; pass the header unchanged",
            Self::NoV1Signature => "webhook-signature has no entry that begins with `v1,`; pass the whole header",
            Self::NotBase64 => "webhook-signature is not base64 of 32 bytes after `v1,`; pass the header unchanged",
        };
        f.write_str(text)
    }
}

impl std::error::Error for VerifyError {}
