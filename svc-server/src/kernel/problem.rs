//! Failures as responses. This is the only place that gives a failure its HTTP status, headers and body.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::accounts::grants::ACCESS_TOKEN_PREFIX;
use svc_core::accounts::signing::SignatureError;
use svc_core::error::{Error, FailingField, FieldCode, StoreError};
use uuid::Uuid;

use crate::kernel::limits::RateLimited;

/// The most failing fields of a request that are logged.
const LOGGED_FIELDS: usize = 5;
/// The `Retry-After` of a 503 response.
const UNAVAILABLE_RETRY: Duration = Duration::from_secs(2);

/// A failed request: an error of the rules or the store, or one of HTTP.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The rules refused the request, or the store failed.
    Core(Error),
    /// No operation has this path; holds what says which paths there are.
    RouteNotFound(String),
    /// No operation has this path, but one has it without the slash at its end.
    SlashAtEnd,
    /// The responses to the messages before this one of a batch are long enough.
    BatchTooLarge,
    /// The path has other methods; holds the value of `Allow`.
    MethodNotAllowed(String),
    /// The request has no `Authorization: Bearer` header; holds the prefix of the keys of this API.
    MissingCredentials(&'static str),
    /// The `Authorization` header is repeated.
    RepeatedCredentials,
    /// The key requires signed writes, and a signature header is missing.
    SignatureRequired,
    /// A signature header is repeated or is not ASCII.
    SignatureHeaderMalformed,
    /// The request signature was refused.
    SignatureInvalid(SignatureError),
    /// The request signature was accepted before, or may have been.
    SignatureReused,
    /// The operation has no query parameter of this name.
    UnknownParameter {
        /// Its name.
        name: String,
        /// The parameter that was probably meant.
        meant: Option<&'static str>,
    },
    /// `If-Match` has weak tags alone, and none of them is the ETag of a record (RFC 9110 §13.1.1).
    WeakTags,
    /// A rate limit is used up.
    RateLimited {
        /// The time until the window ends.
        retry_after: Duration,
    },
    /// The body is larger than [`MAX_BODY`](crate::MAX_BODY).
    BodyTooLarge,
    /// The memory for requests is used up.
    Overloaded,
    /// The request target is longer than [`MAX_URI`](crate::MAX_URI).
    UriTooLong,
    /// The headers are larger than [`MAX_HEADERS`](crate::MAX_HEADERS) in all.
    HeadersTooLarge,
    /// The body has another media type or a content encoding; holds a sentence that says what to send.
    UnsupportedMediaType(&'static str),
    /// The body did not arrive in full or not in time; holds a sentence that says which.
    BodyIncomplete(&'static str),
    /// The `Host` header is missing or repeated.
    HostCount,
    /// The `Host` header, or the host of an absolute request target, is not a host with an optional port.
    HostFormat,
    /// The `Transfer-Encoding` header is not `chunked` alone.
    TransferEncoding,
}

impl<E: Into<Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Core(error.into())
    }
}

/// All values of `code`, ordered by status (`docs/contract.md`, "Errors").
pub const CODES: [&str; 32] = [
    "invalid_json",
    "validation_failed",
    "unknown_parameter",
    "invalid_cursor",
    "empty_patch",
    "reference_not_found",
    "idempotency_key_reused",
    "missing_credentials",
    "invalid_key",
    "key_revoked",
    "key_expired",
    "signature_required",
    "signature_invalid",
    "signature_reused",
    "insufficient_scope",
    "access_not_approved",
    "not_found",
    "route_not_found",
    "method_not_allowed",
    "body_incomplete",
    "email_taken",
    "limit_reached",
    "idempotency_in_progress",
    "not_allowed",
    "precondition_failed",
    "body_too_large",
    "uri_too_long",
    "unsupported_media_type",
    "rate_limited",
    "headers_too_large",
    "internal_error",
    "unavailable",
];

/// The codes of a failing field that are also codes of the whole request, in addition to those of [`FieldCode`].
const SHARED_FIELD_CODES: [&str; 2] = ["invalid_cursor", "reference_not_found"];

/// Returns all values of `code` of a failing field.
pub(crate) fn field_codes() -> Vec<&'static str> {
    FieldCode::ALL.iter().map(|code| code.as_str()).chain(SHARED_FIELD_CODES).collect()
}

/// The body of every failed request, except 429.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody<'a> {
    /// A sentence for people that says what is wrong and how to correct it. It may be reworded at any time, so programs
    /// should use `code` instead.
    pub error: &'a str,
    /// The kind of failure, for programs. Codes are stable; new ones may be added.
    ///
    /// | Status | Code | Meaning |
    /// |---|---|---|
    /// | 400 | `invalid_json` | The body is not one JSON object in UTF-8, or nests deeper than 32 levels. |
    /// | 400 | `validation_failed` | Fields of the body, query, path or headers are not valid; `errors` lists them. |
    /// | 400 | `unknown_parameter` | The operation has no query parameter of this name. |
    /// | 400 | `invalid_cursor` | The cursor was not returned by this list with these filters. |
    /// | 400 | `empty_patch` | The PATCH has no field. |
    /// | 400 | `reference_not_found` | The `contact_id` is not a contact of this account, or the contact is deleted. |
    /// | 400 | `idempotency_key_reused` | The `Idempotency-Key` was used with another request. |
    /// | 401 | `missing_credentials` | The request has no `Authorization: Bearer` header. |
    /// | 401 | `invalid_key` | The API key is malformed or unknown, or the header is repeated. |
    /// | 401 | `key_revoked` | The API key was revoked. |
    /// | 401 | `key_expired` | The API key has expired. |
    /// | 401 | `signature_required` | The API key requires signed writes, and a signature header is missing. |
    /// | 401 | `signature_invalid` | The request signature is wrong, stale or malformed. |
    /// | 401 | `signature_reused` | The request signature was used before. |
    /// | 403 | `insufficient_scope` | The API key lacks the `write` scope. |
    /// | 403 | `access_not_approved` | Developer access of the account is pending or suspended. |
    /// | 404 | `not_found` | The account has no record with this id. |
    /// | 404 | `route_not_found` | No operation has this path. |
    /// | 405 | `method_not_allowed` | The path does not have this method; `Allow` lists those that it has. |
    /// | 408 | `body_incomplete` | The body did not arrive in full, or not in time. |
    /// | 409 | `email_taken` | Another contact that is not deleted has the email address. |
    /// | 409 | `limit_reached` | The account has as many webhook subscriptions as it can have. |
    /// | 409 | `idempotency_in_progress` | The first request with this `Idempotency-Key` is still running. |
    /// | 409 | `not_allowed` | The state of the record does not allow this step, such as a replay to a disabled webhook. |
    /// | 412 | `precondition_failed` | The record has none of the ETags in `If-Match`. |
    /// | 413 | `body_too_large` | The body is larger than 1 MiB. |
    /// | 414 | `uri_too_long` | The request target is longer than 8 KiB. |
    /// | 415 | `unsupported_media_type` | The body is not sent as JSON, or has a `Content-Encoding`. |
    /// | 429 | `rate_limited` | A rate limit is used up. |
    /// | 431 | `headers_too_large` | All headers together are larger than 16 KiB. |
    /// | 500 | `internal_error` | The service failed. |
    /// | 503 | `unavailable` | The service is not available right now. |
    #[schemars(extend("enum" = CODES))]
    pub code: &'a str,
    /// The first failing field, on 400 when a field failed: a dotted path into the body such as `line_items.0`, or the
    /// name of a query parameter or header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub field: Option<&'a str>,
    /// All failing fields, at most 100, on 400 when a field failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub errors: Vec<FieldError<'a>>,
    /// The id of the contact that has the email address, on 409 `email_taken`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Uuid")]
    pub existing_id: Option<Uuid>,
}

/// A field of the request that is not valid.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FieldError<'a> {
    /// A dotted path into the body such as `line_items.0`, or the name of a query parameter or header. Names longer
    /// than 200 characters are shortened.
    pub field: &'a str,
    /// The mistake in the field, for programs. Codes are stable; new ones may be added.
    ///
    /// | Code | Meaning |
    /// |---|---|
    /// | `required` | The field is missing. |
    /// | `invalid_type` | The value has another JSON type. Nothing is converted: `"100"` is not a number. |
    /// | `invalid_format` | The text has the wrong form, such as a timestamp without an offset. |
    /// | `invalid_enum` | The value is not one of the allowed values. |
    /// | `too_long`, `too_short` | The text or array is longer or shorter than allowed. |
    /// | `out_of_range` | The number or time is outside its range, or an amount has too many decimals. |
    /// | `not_nullable` | The field cannot be null. |
    /// | `unknown_field` | The request has no such field or query parameter. |
    /// | `read_only_field` | The service sets the field, or this request cannot change it. |
    /// | `duplicate_key` | The field or query parameter was sent more than once. |
    /// | `invalid_cursor` | The cursor was not returned by this list with these filters. |
    /// | `reference_not_found` | The field is not the id of a contact of this account, or the contact is deleted. |
    #[schemars(extend("enum" = field_codes()))]
    pub code: &'static str,
    /// A sentence for people that names the field and says what it must be.
    pub message: &'a str,
}

/// The body of a request that was refused because a rate limit is used up.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RateLimitError")]
pub struct RateLimitBody<'a> {
    /// A sentence for people that says how long to wait.
    pub error: &'a str,
    /// The error code, which is always `rate_limited`.
    #[schemars(extend("const" = "rate_limited"))]
    pub code: &'a str,
    /// The number of milliseconds until the next request is accepted.
    pub retry_after_ms: u64,
}

impl Problem {
    /// Returns the problem of a request over a limit.
    pub(crate) fn rate_limited(limited: &RateLimited) -> Self {
        Self::RateLimited { retry_after: limited.retry_after }
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status_and_code().0
    }

    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        self.status_and_code().1
    }

    fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Core(error) => (status_of(error), error.code()),
            Self::RouteNotFound(_) | Self::SlashAtEnd => (StatusCode::NOT_FOUND, "route_not_found"),
            Self::BatchTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::MethodNotAllowed(_) => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::MissingCredentials(_) => (StatusCode::UNAUTHORIZED, "missing_credentials"),
            Self::SignatureRequired => (StatusCode::UNAUTHORIZED, "signature_required"),
            Self::RepeatedCredentials => (StatusCode::UNAUTHORIZED, "invalid_key"),
            Self::SignatureHeaderMalformed | Self::SignatureInvalid(_) => {
                (StatusCode::UNAUTHORIZED, "signature_invalid")
            }
            Self::SignatureReused => (StatusCode::UNAUTHORIZED, "signature_reused"),
            Self::UnknownParameter { .. } => (StatusCode::BAD_REQUEST, "unknown_parameter"),
            Self::WeakTags => (StatusCode::PRECONDITION_FAILED, "precondition_failed"),
            Self::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            Self::UriTooLong => (StatusCode::URI_TOO_LONG, "uri_too_long"),
            Self::HeadersTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large"),
            Self::UnsupportedMediaType(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type"),
            Self::BodyIncomplete(_) => (StatusCode::REQUEST_TIMEOUT, "body_incomplete"),
            Self::HostCount | Self::HostFormat | Self::TransferEncoding => {
                (StatusCode::BAD_REQUEST, "validation_failed")
            }
        }
    }

    /// Returns the error that a challenge for tokens names (RFC 6750 §3.1), which has less codes than the API. A request without
    /// credentials gets none.
    pub(crate) fn bearer_error(&self) -> Option<&'static str> {
        match self {
            // Neither of the two is wrong.
            Self::RepeatedCredentials => Some("invalid_request"),
            _ => match self.status_and_code() {
                // An API key is a token as well.
                (StatusCode::UNAUTHORIZED, "invalid_token" | "invalid_key" | "key_revoked" | "key_expired") => {
                    Some("invalid_token")
                }
                (StatusCode::FORBIDDEN, "insufficient_scope") => Some("insufficient_scope"),
                _ => None,
            },
        }
    }

    /// Returns the sentence for the client. It holds no details of the store, which are for the log.
    fn message(&self) -> String {
        let text = match self {
            Self::Core(Error::Store(StoreError::OutcomeUnknown(_))) => {
                "The service lost its database while it committed this change, which may or may not have been made; \
                 read the record, or repeat the request with the same Idempotency-Key."
            }
            Self::Core(Error::Store(StoreError::TooSlow(_))) => {
                "This request took too long and was ended; ask for less, such as a shorter page or a longer text to search \
                 for, or try again in a moment."
            }
            Self::Core(Error::Store(StoreError::ClockSkew(_))) => {
                "The clock of this server is wrong, so it takes no writes; try again in a moment."
            }
            Self::Core(Error::Store(_)) if self.status() == StatusCode::SERVICE_UNAVAILABLE => {
                "The service is not available right now; try again in a moment."
            }
            Self::Core(Error::Store(_)) => {
                "Something failed on our side; try again, and tell us the X-Request-Id if it keeps failing."
            }
            // The rules know no URLs, headers and ETags.
            Self::Core(Error::NotFound | Error::UnknownTenant(_)) => "Nothing was found at this address; check the id.",
            Self::Core(Error::IdempotencyKeyReused) => {
                "This Idempotency-Key was used with another request; use a new key for each new request, and repeat a request \
                 byte for byte."
            }
            Self::Core(Error::IdempotencyInProgress) => {
                "A request with this Idempotency-Key is still running; try again in a moment."
            }
            Self::Core(Error::PreconditionFailed) => {
                "The resource has changed; get it again and repeat the change on its new ETag."
            }
            Self::Core(error) => return error.to_string(),
            Self::RouteNotFound(see) => return format!("No operation has this path; see {see}."),
            Self::SlashAtEnd => "No operation has this path with a slash at its end; leave the slash out.",
            Self::BatchTooLarge => {
                "The responses of the batch have at most 1 MiB together, so there is none to this message, which has changed nothing; \
                 send it by itself."
            }
            Self::MethodNotAllowed(allowed) => return format!("This path only has the methods {allowed}."),
            Self::MissingCredentials(ACCESS_TOKEN_PREFIX) => {
                "Send an API key or the access token of an app as: Authorization: Bearer …; the URL cannot have it."
            }
            Self::RepeatedCredentials => "Send exactly one Authorization header.",
            Self::MissingCredentials(prefix) => {
                return format!("Send your API key as: Authorization: Bearer {prefix}…");
            }
            Self::SignatureRequired => "This key signs its writes; send X-SVC-Timestamp and X-SVC-Signature.",
            Self::SignatureHeaderMalformed => "Send X-SVC-Timestamp and X-SVC-Signature once each, in ASCII.",
            Self::SignatureInvalid(SignatureError::MalformedTimestamp) => {
                "X-SVC-Timestamp must be the time in Unix seconds, with up to six decimals."
            }
            Self::SignatureInvalid(SignatureError::MalformedSignature) => {
                "X-SVC-Signature must be sha256= and 64 lower-case hex digits."
            }
            Self::SignatureInvalid(SignatureError::Mismatch) => {
                "X-SVC-Signature does not match this request; sign the timestamp, the method, the path with its query, \
                 and the body, byte for byte as they are sent."
            }
            Self::SignatureInvalid(SignatureError::TimestampOutOfRange) => {
                "X-SVC-Timestamp is more than 300 seconds off; set the clock and sign again."
            }
            Self::SignatureReused => {
                "This signature was used before, or may have been; sign each request again with the current time, in \
                 microseconds if you send several within a second."
            }
            Self::UnknownParameter { name, meant: Some(meant) } => {
                return format!("{name} is not a parameter of this operation (did you mean {meant}?).");
            }
            Self::UnknownParameter { name, meant: None } => {
                return format!("{name} is not a parameter of this operation; see the API description.");
            }
            Self::WeakTags => {
                "The ETag in If-Match is weak, so it matches no version; send it without W/, and have the proxy that made \
                 it weak leave responses as they are."
            }
            Self::RateLimited { retry_after } => {
                return format!("Too many requests; try again in {} s.", whole_seconds(*retry_after));
            }
            Self::BodyTooLarge => "The body must not be larger than 1 MiB (1048576 bytes).",
            Self::Overloaded => "The service is not available right now; try again in a moment.",
            Self::UriTooLong => "The request target must not be longer than 8 KiB (8192 bytes).",
            Self::HeadersTooLarge => "The headers must not be larger than 16 KiB (16384 bytes) in all.",
            Self::UnsupportedMediaType(text) | Self::BodyIncomplete(text) => text,
            Self::HostCount => "Send exactly one Host header.",
            Self::HostFormat => "Host must be a host with an optional port, such as api.example.com:8443.",
            Self::TransferEncoding => "Transfer-Encoding must be chunked alone; send the body without another coding.",
        };
        text.to_owned()
    }

    /// Returns the first fields that failed, each with its code, for the log.
    pub(crate) fn failing_fields(&self) -> Vec<(String, &'static str)> {
        let (message, failing) = (self.message(), self.failing());
        let errors = self.errors(&message, &failing);
        errors.into_iter().take(LOGGED_FIELDS).map(|error| (error.field.to_owned(), error.code)).collect()
    }

    fn failing(&self) -> Vec<FailingField<'_>> {
        match self {
            Self::Core(error) => error.failing_fields(),
            _ => Vec::new(),
        }
    }

    /// Returns the fields that failed: those of the rules, or the one that the problem itself is about.
    fn errors<'a>(&'a self, message: &'a str, failing: &'a [FailingField<'a>]) -> Vec<FieldError<'a>> {
        let field = |field, code| vec![FieldError { field, code, message }];
        match self {
            Self::UnknownParameter { name, .. } => field(name, "unknown_field"),
            Self::HostCount => field("Host", "required"),
            Self::HostFormat => field("Host", "invalid_format"),
            Self::TransferEncoding => field("Transfer-Encoding", "invalid_format"),
            _ => failing.iter().map(FieldError::from).collect(),
        }
    }

    /// Returns the headers that only this problem has.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let seconds = |wait: Duration| HeaderValue::from(whole_seconds(wait));
        match self {
            Self::MethodNotAllowed(allowed) => {
                HeaderValue::from_str(allowed).map(|value| vec![(ALLOW, value)]).unwrap_or_default()
            }
            Self::RateLimited { retry_after } => vec![(RETRY_AFTER, seconds(*retry_after))],
            // A proxy may see another end of the body.
            Self::TransferEncoding => vec![(CONNECTION, HeaderValue::from_static("close"))],
            _ => match self.status() {
                StatusCode::UNAUTHORIZED => vec![(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))],
                StatusCode::SERVICE_UNAVAILABLE => vec![(RETRY_AFTER, seconds(UNAVAILABLE_RETRY))],
                _ => Vec::new(),
            },
        }
    }

    /// Returns the JSON body.
    pub fn body(&self) -> Bytes {
        let message = self.message();
        if let Self::RateLimited { retry_after } = self {
            // Rounded up, as a client that waits too short a time is refused again.
            let retry_after_ms = u64::try_from(retry_after.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
            return json(&RateLimitBody { error: &message, code: self.code(), retry_after_ms });
        }
        let existing_id = match self {
            Self::Core(error) => error.existing_id(),
            _ => None,
        };
        let failing = self.failing();
        let errors = self.errors(&message, &failing);
        let field = errors.first().map(|first| first.field);
        json(&ErrorBody { error: &message, code: self.code(), field, errors, existing_id })
    }
}

/// Returns the HTTP status of an error of the rules or the store.
fn status_of(error: &Error) -> StatusCode {
    match error {
        Error::InvalidJson(_)
        | Error::Validation(_)
        | Error::InvalidCursor
        | Error::EmptyPatch
        | Error::ReferenceNotFound(_)
        | Error::IdempotencyKeyReused => StatusCode::BAD_REQUEST,
        Error::InvalidKey | Error::KeyRevoked | Error::KeyExpired | Error::InvalidToken => StatusCode::UNAUTHORIZED,
        Error::InsufficientScope
        | Error::InsufficientGrant
        | Error::MissingPlatformScope(_)
        | Error::AccessNotApproved => StatusCode::FORBIDDEN,
        Error::NotFound | Error::UnknownTenant(_) => StatusCode::NOT_FOUND,
        Error::EmailTaken { .. }
        | Error::LimitReached { .. }
        | Error::IdempotencyInProgress
        | Error::NotAllowed(_)
        | Error::AlreadyConverted { .. } => StatusCode::CONFLICT,
        Error::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        Error::Store(StoreError::Closed) => StatusCode::SERVICE_UNAVAILABLE,
        Error::Store(error) if error.is_transient() => StatusCode::SERVICE_UNAVAILABLE,
        // Among them an error that came after this was written: errors may be added.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl<'a> From<&'a FailingField<'_>> for FieldError<'a> {
    fn from(failing: &'a FailingField<'_>) -> Self {
        Self { field: failing.field, code: failing.code, message: &failing.message }
    }
}

/// Serializes a body, which has only texts and numbers and so never fails. It ends with a line feed, as all bodies do.
fn json(body: &impl Serialize) -> Bytes {
    let mut body = serde_json::to_vec(body).unwrap_or_default();
    body.push(b'\n');
    body.into()
}

/// Rounds up to whole seconds, at least 1.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0 || wait.as_secs() == 0)
}
