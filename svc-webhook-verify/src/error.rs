//! The reasons why a delivery is refused.

use std::fmt;
use std::time::Duration;

/// The reason why a delivery was refused.
///
/// The message says what was wrong and what to do. It never contains a secret or a valid signature.
///
/// # Respond with 401
///
/// Respond to a refused delivery with a status outside 2xx, such as 401. svc then counts a failed attempt and retries
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
    /// The secret is a public key. Everyone may know it, and could sign with it.
    PublicKeyAsSecret,
    /// The public key is empty.
    EmptyPublicKey,
    /// The public key does not begin with `whpk_`, like a secret or a private key.
    NotPublicKey,
    /// The part of the public key after `whpk_` is not base64.
    PublicKeyNotBase64,
    /// The public key does not have 32 bytes.
    PublicKeyWrongLength {
        /// The number of bytes after `whpk_`, decoded.
        found: usize,
    },
    /// The public key is not a point on the curve of Ed25519, or one of small order, for which anyone can sign.
    InvalidPublicKey,
    /// `X-SVC-Signature` cannot be verified, since the verifier has public keys and no secret.
    NoSecret,
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
    /// The signature is not that of this body with any of the secrets or public keys.
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
    /// The verifier has public keys and no secret, and `webhook-signature` has no entry that begins with `v1a,`.
    NoV1aSignature,
    /// A `v1a,` entry of `webhook-signature` is not base64 of 64 bytes.
    V1aNotBase64,
    /// `webhook-signature` has more `v1a,` entries than are verified.
    TooManySignatures {
        /// The number of `v1a,` entries.
        found: usize,
    },
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
            Self::PublicKeyAsSecret => "public_key_as_secret",
            Self::EmptyPublicKey => "empty_public_key",
            Self::NotPublicKey => "not_public_key",
            Self::PublicKeyNotBase64 => "public_key_not_base64",
            Self::PublicKeyWrongLength { .. } => "public_key_wrong_length",
            Self::InvalidPublicKey => "invalid_public_key",
            Self::NoSecret => "no_secret",
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
            Self::NoV1aSignature => "no_v1a_signature",
            Self::V1aNotBase64 => "v1a_not_base64",
            Self::TooManySignatures { .. } => "too_many_signatures",
        }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::EmptySecret => {
                "the secret is empty; pass the `secret` that was returned when the webhook was created"
            }
            Self::SecretWhitespace => {
                "the secret contains white space; remove it, such as the line feed at the end of a file"
            }
            Self::SecretNotBase64 => "the secret is not `whsec_` followed by base64; pass the whole secret unchanged",
            Self::PublicKeyAsSecret => {
                "the secret is a public key, with which anyone could sign; pass the secret, which begins with \
                 `whsec_`, or pass the public key to `Verifier::with_public_key`"
            }
            Self::EmptyPublicKey => {
                "the public key is empty; pass the public key of the webhook, which begins with `whpk_`"
            }
            Self::NotPublicKey => {
                "the public key does not begin with `whpk_`; pass the public key of the webhook unchanged, not \
                 its secret (`whsec_`) and not a private key (`whsk_`)"
            }
            Self::PublicKeyNotBase64 => {
                "the public key is not base64 after `whpk_`; pass it unchanged, without white space such as the line \
                 feed at the end of a file"
            }
            Self::PublicKeyWrongLength { found } => {
                return write!(
                    f,
                    "the public key has {found} bytes after `whpk_`, not 32; pass the whole key unchanged"
                );
            }
            Self::InvalidPublicKey => {
                "the public key is not one of Ed25519; pass the public key of the webhook unchanged"
            }
            Self::NoSecret => {
                "X-SVC-Signature is made with the secret, and the verifier has only public keys; check that no proxy \
                 removes webhook-signature and verify it, or add the secret with `Verifier::with_secret`"
            }
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
                 written again, and the whole secret of this webhook, including `whsec_`, or its public key"
            }
            Self::MissingDeliveredAt => {
                "the body has no string `delivered_at`, which the maximum age requires; \
                 pass the whole body of an svc delivery, or verify without a maximum age"
            }
            Self::InvalidDeliveredAt => {
                "`delivered_at` is not an RFC 3339 time in UTC; \
                 pass the whole body of an svc delivery, or verify without a maximum age"
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
            Self::NoV1aSignature => {
                "webhook-signature has no entry that begins with `v1a,`, which a public key verifies; set `signature` \
                 of the webhook to `ed25519`, or verify with its secret"
            }
            Self::V1aNotBase64 => "webhook-signature is not base64 of 64 bytes after `v1a,`; pass the header unchanged",
            Self::TooManySignatures { found } => {
                return write!(
                    f,
                    "webhook-signature has {found} entries that begin with `v1a,`, and svc sends two at most; \
                     pass the header unchanged and once"
                );
            }
        };
        f.write_str(text)
    }
}

impl std::error::Error for VerifyError {}
