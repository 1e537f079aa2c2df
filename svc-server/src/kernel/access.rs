//! The parts of the logs about a request: its id, its span and its line.

use std::net::IpAddr;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use svc_core::accounts::shared_links;
use svc_core::env::Env;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::events::WrittenEvents;
use tracing::{Span, field};
use uuid::Uuid;

use super::auth::Principal;
use super::limits::RateLimitStatus;
use crate::telemetry::{self, SPANS};

/// The header with the id of a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Returns the path of a request for a log, without the secret of a shared link.
pub(crate) fn logged_path(parts: &Parts) -> &str {
    let path = parts.uri.path();
    if path.starts_with(shared_links::PAGES) { shared_links::PAGES } else { path }
}

/// Returns the `X-Request-Id` that the client sent, or a new UUID when it is missing or malformed.
pub(crate) fn request_id(headers: &HeaderMap, env: &Env, now: Timestamp) -> HeaderValue {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let given = headers
        .get(REQUEST_ID)
        .filter(|value| (1..=128).contains(&value.len()) && value.as_bytes().iter().all(allowed));
    given
        .cloned()
        // A UUID is a valid header value, so the last fallback is never used.
        .unwrap_or_else(|| {
            HeaderValue::try_from(env.id::<Uuid>(now).to_string()).unwrap_or(HeaderValue::from_static("-"))
        })
}

/// Creates the span of a request. Its level is debug, so it costs nothing unless it is logged or exported.
pub(crate) fn request_span(request_id: &HeaderValue, parts: &Parts, operation: Option<&'static str>) -> Span {
    let span = tracing::debug_span!(
        target: SPANS,
        "request",
        otel.name = operation.unwrap_or(parts.method.as_str()),
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.request.method = parts.method.as_str(),
        http.response.status_code = field::Empty,
        url.path = logged_path(parts),
        request_id = request_id.to_str().unwrap_or_default(),
        operation,
        tenant = field::Empty,
        code = field::Empty,
    );
    telemetry::continue_trace(&span, &parts.headers);
    span
}

/// The facts about a request in the logs and the response headers, besides its response.
#[derive(Default)]
pub(crate) struct AccessRecord {
    pub(crate) client: Option<Principal>,
    pub(crate) status: Option<RateLimitStatus>,
    pub(crate) written: WrittenEvents,
    /// Whether it is a message of an assistant. The log of the account has the requests that messages become.
    pub(crate) is_message: bool,
}

/// A request that has its response, for the log of the server and for that of the account.
pub(crate) struct Access<'a> {
    pub(crate) request_id: &'a HeaderValue,
    pub(crate) parts: &'a Parts,
    pub(crate) peer: IpAddr,
    pub(crate) operation: Option<&'static str>,
    pub(crate) client: Option<&'a Principal>,
    pub(crate) status: StatusCode,
    pub(crate) code: Option<&'static str>,
    /// The first fields that failed, each with its code.
    pub(crate) failing_fields: Vec<(String, &'static str)>,
    pub(crate) started_at: Timestamp,
    pub(crate) elapsed: Duration,
    pub(crate) written: WrittenEvents,
}

impl Access<'_> {
    fn tenant(&self) -> Option<TenantId> {
        self.client.and_then(Principal::account)
    }

    /// Adds the fields that are known at the end of a request to its span.
    pub(crate) fn record(&self, span: &Span) {
        if span.is_disabled() {
            return;
        }
        span.record("http.response.status_code", self.status.as_u16());
        span.record("code", self.code).record("tenant", self.tenant().map(field::display));
        if self.status.is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
    }
}

/// Writes the log line of a request.
pub(crate) fn write(access: &Access<'_>) {
    tracing::info!(
        target: "svc_server::access",
        request_id = access.request_id.to_str().unwrap_or_default(),
        method = access.parts.method.as_str(),
        path = logged_path(access.parts),
        operation = access.operation,
        status = access.status.as_u16(),
        code = access.code,
        tenant = access.tenant().map(field::display),
        key = access.client.map(Principal::key_id).map(field::display),
        peer = %access.peer,
        micros = u64::try_from(access.elapsed.as_micros()).unwrap_or(u64::MAX),
        "request",
    );
}

#[cfg(all(test, feature = "standalone"))]
mod tests {
    use http::Request;
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn no_log_has_the_secret_of_a_shared_link() {
        for (path, logged) in [
            ("/share/3q2-7_Secret", "/share/"),
            ("/share/", "/share/"),
            ("/share/a/b", "/share/"),
            ("/shared/a", "/shared/a"),
            ("/api/v1/quotes", "/api/v1/quotes"),
        ] {
            let (parts, ()) = Request::get(path).body(()).unwrap().into_parts();
            assert_eq!(logged_path(&parts), logged);
        }
    }

    #[test]
    fn a_span_is_created_only_if_the_filter_selects_it() {
        let (parts, ()) = Request::get("/api/v1/ping").body(()).unwrap().into_parts();
        let id = HeaderValue::from_static("an-id");
        for (filter, wanted) in
            [("info", false), ("info,svc_server=debug", true), ("info,svc_server::spans=debug", true)]
        {
            let subscriber = tracing_subscriber::registry().with(EnvFilter::new(filter));
            tracing::subscriber::with_default(subscriber, || {
                assert_eq!(!request_span(&id, &parts, None).is_disabled(), wanted, "{filter}");
            });
        }
    }
}
