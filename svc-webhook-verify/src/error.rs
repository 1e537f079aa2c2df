//! Why a delivery was refused.

use std::fmt;
use std::time::Duration;

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
