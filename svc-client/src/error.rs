//! Everything that can go wrong in a call.

use std::fmt;
use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use uuid::Uuid;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The service refused the request, or failed, and said why.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// No response arrived: no connection, a connection that ended early, or a time-out.
    #[error(transparent)]
    Transport(TransportError),
    /// A response arrived that is not one of the API: an error page of a proxy, JSON of another form, or too much of it.
    #[error(transparent)]
    UnexpectedResponse(Box<UnexpectedResponse>),
    /// The request cannot be sent, or the client not be built, as this argument is not valid.
    #[error("{0}")]
    InvalidArgument(String),
    /// The service gave an app new tokens, and the app could not store them. They are not used; the next call gets them again.
    #[error("the new tokens of the app could not be stored: {0}")]
    TokensNotStored(#[source] StoreError),
}

/// The failure of an app to store its tokens.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure that the service reports (`docs/contract.md`, "Errors").
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The kind of failure, for programs, such as `validation_failed` or `email_taken`. Codes do not change.
    pub code: String,
    /// One English sentence that says what is wrong and how to correct it. It may be reworded.
    pub message: String,
    /// The first failing field, if a field failed.
    pub field: Option<String>,
    /// Every failing field, 100 at most.
    pub errors: Vec<FieldError>,
    /// The id of the contact that has the email address, with the code `email_taken`.
    pub existing_id: Option<Uuid>,
    /// When the service accepts the next request, counted from the response: on 429, and on 503.
    pub retry_after: Option<Duration>,
    /// The id by which the operator of the service finds the request in the log.
    pub request_id: Option<String>,
    /// How many attempts the client made.
    pub attempts: u32,
    /// The time of the service, as its response had it.
    pub(crate) date: Option<HeaderValue>,
}

/// One failing field.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct FieldError {
    /// The field of the body as a dotted path, such as `line_items.0`, or the name of a query parameter or header.
    pub field: String,
    /// The mistake, for programs, such as `required` or `too_long`.
    pub code: String,
    /// The mistake, as a sentence without a full stop.
    pub message: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {}, code {}", self.message, self.status, self.code)?;
        if let Some(id) = &self.request_id {
            write!(f, ", request {id}")?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for ApiError {}

/// The reason why no response arrived.
#[derive(Debug, thiserror::Error)]
#[error("{kind} after {attempts} attempts")]
#[non_exhaustive]
pub struct TransportError {
    /// The kind of the failure.
    pub kind: TransportErrorKind,
    /// How many attempts the client made.
    pub attempts: u32,
    source: reqwest::Error,
}

/// The fate of a request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// There was no connection to the service, so the request was not sent.
    NotConnected,
    /// The time for one attempt was over. Whether the service did what was asked is not known.
    TimedOut,
    /// The connection ended before the response did. Whether the service did what was asked is not known.
    ConnectionLost,
}

impl fmt::Display for TransportErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "no connection to the service",
            Self::TimedOut => "the service did not respond in time",
            Self::ConnectionLost => "the connection ended before the response did",
        })
    }
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        let kind = if error.is_connect() {
            TransportErrorKind::NotConnected
        } else if error.is_timeout() {
            TransportErrorKind::TimedOut
        } else {
            TransportErrorKind::ConnectionLost
        };
        // A URL may contain the email address of a filter.
        Self { kind, attempts: 1, source: error.without_url() }
    }
}

/// A response that is not one of the API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response with status {status} is not one of the API: {reason}; it begins with {start:?}")]
#[non_exhaustive]
pub struct UnexpectedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The fault of the response.
    pub reason: String,
    /// The first characters of the body.
    pub start: String,
    /// When the next request is welcome, from the header `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The id by which the operator of the service finds the request in the log, if the response has one.
    pub request_id: Option<String>,
    /// How many attempts the client made.
    pub attempts: u32,
}

impl Error {
    /// Returns the HTTP status of the response, if one arrived.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Api(error) => Some(error.status),
            Self::UnexpectedResponse(error) => Some(error.status),
            Self::Transport(_) | Self::InvalidArgument(_) | Self::TokensNotStored(_) => None,
        }
    }

    /// Returns the code of a failure that the service reported, such as `email_taken`.
    pub fn code(&self) -> Option<&str> {
        self.api().map(|error| error.code.as_str())
    }

    /// Returns what the service reported.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// Returns when the next request is welcome, counted from the response, if the response says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(error) => error.retry_after,
            Self::UnexpectedResponse(error) => error.retry_after,
            Self::Transport(_) | Self::InvalidArgument(_) | Self::TokensNotStored(_) => None,
        }
    }

    /// Returns how many attempts the client made.
    pub fn attempts(&self) -> u32 {
        match self {
            Self::Api(error) => error.attempts,
            Self::UnexpectedResponse(error) => error.attempts,
            Self::Transport(error) => error.attempts,
            Self::InvalidArgument(_) | Self::TokensNotStored(_) => 0,
        }
    }

    /// Returns the id by which the operator of the service finds the request in the log.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Api(error) => error.request_id.as_deref(),
            Self::UnexpectedResponse(error) => error.request_id.as_deref(),
            Self::Transport(_) | Self::InvalidArgument(_) | Self::TokensNotStored(_) => None,
        }
    }

    /// Returns whether the same request may succeed later: the service is busy or not reached.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transport(_) => true,
            // The statuses 502 and 504 are those of a proxy that did not reach the service.
            _ if matches!(self.status(), Some(429 | 502 | 503 | 504)) => true,
            _ => self.code() == Some("idempotency_in_progress"),
        }
    }

    /// Returns whether the service may have done what was asked although it did not say so.
    pub(crate) fn outcome_is_unknown(&self) -> bool {
        match self {
            Self::Transport(error) => error.kind != TransportErrorKind::NotConnected,
            _ => matches!(self.status(), Some(502..=504)),
        }
    }

    pub(crate) fn after_attempts(mut self, made: u32) -> Self {
        match &mut self {
            Self::Api(error) => error.attempts = made,
            Self::UnexpectedResponse(error) => error.attempts = made,
            Self::Transport(error) => error.attempts = made,
            Self::InvalidArgument(_) | Self::TokensNotStored(_) => {}
        }
        self
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}
