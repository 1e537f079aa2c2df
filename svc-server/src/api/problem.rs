//! Errors as answers: the only place with status codes of failures.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::error::{Error, FieldCode, StoreError, Violation};
use uuid::Uuid;

/// How long a client should wait when the service is away.
const UNAVAILABLE_RETRY: Duration = Duration::from_secs(2);

/// Every way for a request to fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The rules or the store refused it.
    Core(Error),
    /// No operation has this path.
    RouteNotFound,
    /// The path has other methods, these.
    MethodNotAllowed(String),
    /// Too many requests.
    RateLimited {
        /// Until the window ends.
        retry_after: Duration,
    },
    /// The body is over its limit.
    BodyTooLarge,
    /// The request target is over its limit.
    UriTooLong,
    /// The headers are over their limit.
    HeadersTooLarge,
    /// The body is no plain JSON.
    UnsupportedMediaType(&'static str),
    /// The body did not arrive in time, or not whole.
    BodyIncomplete(&'static str),
    /// The Host header is missing or repeated.
    BadHost,
}

impl<E: Into<Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Core(error.into())
    }
}

/// Every code that an answer can have, by status (decisions §2 and what listening adds).
pub const CODES: [&str; 30] = [
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
    "insufficient_scope",
    "access_not_approved",
    "not_found",
    "route_not_found",
    "method_not_allowed",
    "body_incomplete",
    "email_taken",
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

/// Codes of failing fields beside those of [`FieldCode`], which name the failure of the whole request too.
const MORE_FIELD_CODES: [&str; 2] = ["invalid_cursor", "reference_not_found"];

fn field_codes() -> Vec<&'static str> {
    FieldCode::ALL.iter().map(|code| code.as_str()).chain(MORE_FIELD_CODES).collect()
}

/// Every failure but 429 has this body.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody<'a> {
    /// One sentence that says how to mend it.
    pub error: &'a str,
    /// What failed, for programs: a stable part of the contract.
    #[schemars(extend("enum" = CODES))]
    pub code: &'a str,
    /// On 400: the first failing field as a dotted path, or the name of the parameter or header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub field: Option<&'a str>,
    /// On 400: all failing fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub errors: Vec<FieldError<'a>>,
    /// On `email_taken`: the contact that has the email.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Uuid")]
    pub existing_id: Option<Uuid>,
}

/// One failing field.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FieldError<'a> {
    /// Dotted path of the field, or the name of the parameter or header.
    pub field: &'a str,
    /// What is wrong with it, for programs: a stable part of the contract.
    #[schemars(extend("enum" = field_codes()))]
    pub code: &'a str,
    /// What it must be, with its name.
    pub message: &'a str,
}

/// The body of 429.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RateLimitError")]
pub struct RateLimitBody<'a> {
    /// One sentence that says how to mend it.
    pub error: &'a str,
    /// Always `rate_limited`.
    #[schemars(extend("const" = "rate_limited"))]
    pub code: &'a str,
    /// Milliseconds until the next request is taken.
    pub retry_after_ms: u64,
}

impl Problem {
    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::RouteNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BodyIncomplete(_) => StatusCode::REQUEST_TIMEOUT,
            Self::BadHost => StatusCode::BAD_REQUEST,
            Self::Core(error) => match error {
                Error::InvalidJson(_)
                | Error::Validation(_)
                | Error::UnknownParameter(_)
                | Error::InvalidCursor
                | Error::EmptyPatch
                | Error::ReferenceNotFound(_)
                | Error::IdempotencyKeyReused => StatusCode::BAD_REQUEST,
                Error::MissingCredentials
                | Error::InvalidKey
                | Error::KeyRevoked
                | Error::KeyExpired
                | Error::SignatureRequired
                | Error::SignatureInvalid(_) => StatusCode::UNAUTHORIZED,
                Error::InsufficientScope | Error::AccessNotApproved => StatusCode::FORBIDDEN,
                Error::NotFound => StatusCode::NOT_FOUND,
                Error::EmailTaken { .. } | Error::IdempotencyInProgress | Error::NotAllowed(_) => StatusCode::CONFLICT,
                Error::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
                Error::Store(reason) if reason.is_transient() => StatusCode::SERVICE_UNAVAILABLE,
                Error::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
            },
        }
    }

    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Core(error) => error.code(),
            Self::RouteNotFound => "route_not_found",
            Self::MethodNotAllowed(_) => "method_not_allowed",
            Self::RateLimited { .. } => "rate_limited",
            Self::BodyTooLarge => "body_too_large",
            Self::UriTooLong => "uri_too_long",
            Self::HeadersTooLarge => "headers_too_large",
            Self::UnsupportedMediaType(_) => "unsupported_media_type",
            Self::BodyIncomplete(_) => "body_incomplete",
            Self::BadHost => "validation_failed",
        }
    }

    /// Its sentence. Causes inside the store are for the log and never stand here.
    fn message(&self) -> String {
        match self {
            Self::Core(Error::Store(StoreError::OutcomeUnknown(_))) => {
                "The service broke off while it made this change, which may be made or not; look, or repeat the \
                 request under its Idempotency-Key."
                    .to_owned()
            }
            Self::Core(Error::Store(_)) if self.status() == StatusCode::SERVICE_UNAVAILABLE => {
                "The service is not available right now; try again in a moment.".to_owned()
            }
            Self::Core(Error::Store(_)) => {
                "Something failed on our side; try again, and tell us the X-Request-Id if it goes on.".to_owned()
            }
            Self::Core(error) => error.to_string(),
            Self::RouteNotFound => "No operation has this path; see /api/v1/openapi.json.".to_owned(),
            Self::MethodNotAllowed(allowed) => format!("This path takes {allowed} only."),
            Self::RateLimited { retry_after } => {
                format!("Too many requests; try again in {} s.", whole_seconds(*retry_after))
            }
            Self::BodyTooLarge => "The body must not be larger than 1 MiB (1048576 bytes).".to_owned(),
            Self::UriTooLong => "The request target must not be longer than 8 KiB (8192 bytes).".to_owned(),
            Self::HeadersTooLarge => "The headers must not be larger than 16 KiB (16384 bytes) in all.".to_owned(),
            Self::UnsupportedMediaType(error) | Self::BodyIncomplete(error) => (*error).to_owned(),
            Self::BadHost => "Send exactly one Host header.".to_owned(),
        }
    }

    /// The headers that only this problem has.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let seconds = |wait: Duration| HeaderValue::from(whole_seconds(wait));
        match self {
            Self::MethodNotAllowed(allowed) => {
                HeaderValue::from_str(allowed).map(|value| vec![(ALLOW, value)]).unwrap_or_default()
            }
            Self::RateLimited { retry_after } => vec![(RETRY_AFTER, seconds(*retry_after))],
            _ => match self.status() {
                StatusCode::UNAUTHORIZED => vec![(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))],
                StatusCode::SERVICE_UNAVAILABLE => vec![(RETRY_AFTER, seconds(UNAVAILABLE_RETRY))],
                _ => Vec::new(),
            },
        }
    }

    /// Its body.
    pub fn body(&self) -> Bytes {
        let message = self.message();
        if let Self::RateLimited { retry_after } = self {
            // Rounded up: a wait that is cut short would meet the same limit again.
            let retry_after_ms = u64::try_from(retry_after.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
            return json(&RateLimitBody { error: &message, code: self.code(), retry_after_ms });
        }
        let mut body =
            ErrorBody { error: &message, code: self.code(), field: None, errors: Vec::new(), existing_id: None };
        match self {
            Self::Core(Error::Validation(violations)) => {
                body.errors = violations.as_slice().iter().map(field_error).collect();
            }
            Self::Core(Error::UnknownParameter(name)) => {
                body.errors = vec![self.about(name, "unknown_field", &message)]
            }
            Self::Core(Error::ReferenceNotFound(field)) => body.errors = vec![self.about(field, self.code(), &message)],
            Self::Core(Error::InvalidCursor) => body.errors = vec![self.about("cursor", self.code(), &message)],
            Self::BadHost => body.errors = vec![self.about("Host", "required", &message)],
            Self::Core(Error::EmailTaken { existing_id }) => body.existing_id = Some(*existing_id),
            _ => {}
        }
        body.field = body.errors.first().map(|first| first.field);
        json(&body)
    }

    fn about<'a>(&self, field: &'a str, code: &'a str, message: &'a str) -> FieldError<'a> {
        FieldError { field, code, message }
    }
}

fn field_error(violation: &Violation) -> FieldError<'_> {
    FieldError { field: &violation.field, code: violation.code.as_str(), message: &violation.message }
}

/// Bodies are texts and numbers: they always serialise.
fn json(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body).unwrap_or_default().into()
}

/// Whole seconds, at least 1, never less than `wait`.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0 || wait.as_secs() == 0)
}
