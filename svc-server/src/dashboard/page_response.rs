//! Responses of pages, and those in place of a page.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, LOCATION, RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use maud::Markup;
use svc_core::error::{Error, StoreError};

use crate::kernel::response::Piece;
use crate::kernel::response::ResponseBody;

/// Keeps nginx from collecting a stream before it passes it on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The pieces of a file after its first, which are read when the browser takes them.
pub(super) type Pieces = BoxStream<'static, io::Result<Piece>>;

/// A response of the dashboard.
pub(super) struct PageResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: ResponseBody,
}

impl PageResponse {
    /// Returns a page.
    pub(super) fn page(page: Markup) -> Self {
        Self::content(HeaderValue::from_static("text/html; charset=utf-8"), page.into_string().into())
    }

    /// Returns a redirect to a page of the dashboard, which the browser asks for with GET.
    pub(super) fn see_other(url: &str) -> Self {
        let mut headers = HeaderMap::new();
        // URLs of pages consist of the mount, fixed paths and ids.
        if let Ok(location) = HeaderValue::try_from(url) {
            headers.insert(LOCATION, location);
        }
        Self { status: StatusCode::SEE_OTHER, headers, body: ResponseBody::default() }
    }

    /// Returns a file that never changes.
    pub(super) fn immutable(content_type: HeaderValue, body: Bytes) -> Self {
        let mut response = Self::content(content_type, body);
        response.headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
        response
    }

    /// Returns a CSV file that the browser saves. `name` is that of the file without its extension.
    pub(super) fn csv(name: &str, first: Piece, rest: Pieces, records: u32) -> Self {
        let body = ResponseBody::file(first, rest, records);
        Self::saved(HeaderValue::from_static("text/csv; charset=utf-8"), &format!("{name}.csv"), body)
    }

    /// Returns a JSON file that the browser saves.
    pub(super) fn json(name: &str, first: Piece, rest: Pieces, records: u32) -> Self {
        let body = ResponseBody::file(first, rest, records);
        Self::saved(HeaderValue::from_static("application/json"), &format!("{name}.json"), body)
    }

    fn saved(content_type: HeaderValue, file: &str, body: ResponseBody) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
        let mut response = Self { status: StatusCode::OK, headers, body };
        if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{file}\"")) {
            response.headers.insert(CONTENT_DISPOSITION, disposition);
        }
        response
    }

    /// Returns a stream of server-sent events.
    pub(super) fn events(events: BoxStream<'static, Bytes>) -> Self {
        let content_type = HeaderValue::from_static("text/event-stream");
        let buffering = (ACCEL_BUFFERING, HeaderValue::from_static("no"));
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type), buffering]);
        Self { status: StatusCode::OK, headers, body: ResponseBody::stream(events) }
    }

    /// Returns a file that a program reads again and again, with the version that it has.
    pub(super) fn file(content_type: &'static str, body: String, etag: &str) -> Self {
        Self::content(HeaderValue::from_static(content_type), body.into()).etag(etag)
    }

    /// Returns the response to a program that has this version of a file.
    pub(super) fn not_modified(etag: &str) -> Self {
        let (status, headers) = (StatusCode::NOT_MODIFIED, HeaderMap::new());
        Self { status, headers, body: ResponseBody::default() }.etag(etag)
    }

    fn etag(mut self, etag: &str) -> Self {
        if let Ok(etag) = HeaderValue::try_from(etag) {
            self.headers.insert(ETAG, etag);
        }
        self
    }

    fn content(content_type: HeaderValue, body: Bytes) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
        Self { status: StatusCode::OK, headers, body: body.into() }
    }

    /// Sets the status.
    pub(super) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Says that the method is not possible, and which are.
    pub(super) fn not_allowed(mut self, allowed: &'static str) -> Self {
        self.headers.insert(ALLOW, HeaderValue::from_static(allowed));
        self.status(StatusCode::METHOD_NOT_ALLOWED)
    }

    /// Tells when to ask again.
    pub(super) fn retry_after(mut self, wait: Duration) -> Self {
        self.headers.insert(RETRY_AFTER, (wait.as_secs() + 1).into());
        self
    }

    /// Lets the browser go on to a page of another host. A redirect of a form would need that host in `form-action`.
    pub(super) fn go_on_to(mut self, url: &str) -> Self {
        if let Ok(value) = HeaderValue::try_from(format!("0; url={url}")) {
            self.headers.insert(http::header::REFRESH, value);
        }
        self
    }

    /// Sets the policy of a page that has another one than those of the dashboard.
    pub(super) fn policy(mut self, policy: HeaderValue) -> Self {
        self.headers.insert(http::header::CONTENT_SECURITY_POLICY, policy);
        self
    }

    /// Adds a cookie.
    pub(super) fn cookie(mut self, cookie: HeaderValue) -> Self {
        self.headers.append(SET_COOKIE, cookie);
        self
    }

    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// The reason for which a request gets no page.
#[derive(Debug)]
pub(super) enum PageError {
    /// There is no such page, or no such record in the account.
    NotFound,
    /// The page takes other methods, which it holds as the header `Allow` has them.
    MethodNotAllowed(&'static str),
    /// Nobody is signed in, or the session has ended.
    SignedOut,
    /// The person lacks a role; holds which one, as sentences.
    Forbidden(String),
    /// A form that does not come from a page of this session.
    ForeignForm,
    /// The link that was to sign in does not work any more.
    UsedLink(String),
    /// The identity provider did not sign the person in; holds the status and what to do, as sentences.
    NotSignedIn(StatusCode, String),
    RateLimited(Duration),
    /// A form with more than 64 KiB.
    FormTooLarge,
    /// A form with a file that is too large.
    FileTooLarge,
    /// A form that the pages do not make; holds the reason as a sentence.
    Invalid(String),
    /// The rules refused a change; holds the reason as a sentence.
    Refused(String),
    /// More live lists are open than the session, the account or the process may have.
    TooManyViewers,
    /// The store failed.
    Internal(StoreError),
}

/// Returns what was read, or `None` if it is not there.
pub(super) fn if_found<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(Error::NotFound) => Ok(None),
        found => found.map(Some),
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::NotFound,
            Error::Store(error) => Self::Internal(error),
            refused => Self::Refused(refused.to_string()),
        }
    }
}

impl PageError {
    /// Returns the status, the title and the text of the page.
    pub(super) fn parts(&self) -> (StatusCode, &'static str, &str) {
        match self {
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "Page not found",
                "There is no such page, or the record does not belong to this account.",
            ),
            Self::MethodNotAllowed(_) => {
                (StatusCode::METHOD_NOT_ALLOWED, "Not possible", "This address does not take such a request.")
            }
            Self::SignedOut => (
                StatusCode::UNAUTHORIZED,
                "You are signed out",
                "A session ends after twelve hours and after an hour without use, unless you stay signed in on the device. Sign in again.",
            ),
            Self::Forbidden(reason) => (StatusCode::FORBIDDEN, "Your role does not allow this", reason),
            Self::ForeignForm => (
                StatusCode::FORBIDDEN,
                "The form was not accepted",
                "It was not sent from a page of this dashboard, or you have signed in again since. Nothing was changed: \
                 go back, reload the page and send the form again.",
            ),
            Self::UsedLink(reason) => (StatusCode::GONE, "This link does not work any more", reason),
            Self::NotSignedIn(status, reason) => (*status, "You are not signed in", reason),
            Self::RateLimited(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "Too many requests", "Wait a minute, then load the page again.")
            }
            Self::FormTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "The form was not accepted",
                "A form must not be larger than 64 KiB. Nothing was changed: go back and shorten its texts.",
            ),
            Self::FileTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "The file is too large",
                "A file must not be larger than 4 MiB. Nothing was uploaded: go back and upload it in parts, or import it with svc \
                 import, which takes files of any size.",
            ),
            Self::Invalid(reason) => (StatusCode::UNPROCESSABLE_ENTITY, "The form was not accepted", reason),
            Self::Refused(reason) => (StatusCode::CONFLICT, "This cannot be done", reason),
            Self::TooManyViewers => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many lists are live",
                "A person, an account and this server have a number of live lists at a time. The list itself works: reload \
                 its page to see what is new, or close another page with a live list.",
            ),
            Self::Internal(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The database did not respond",
                "Nothing may have changed. Try again in a moment.",
            ),
        }
    }

    /// Returns whether the person has to sign in before anything else.
    pub(super) fn is_before_sign_in(&self) -> bool {
        matches!(self, Self::SignedOut | Self::UsedLink(_) | Self::NotSignedIn(..))
    }
}
