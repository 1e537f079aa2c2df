//! The log: one line per request, and whatever else happens; and spans of requests and of delivery attempts. Secrets
//! never reach them: neither the Authorization header nor query strings nor bodies are written.

#[cfg(feature = "otlp")]
mod otlp;

use std::net::IpAddr;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, StatusCode};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::{AttemptLog, Delivery};
use tracing::{Span, Subscriber, field};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};
use uuid::Uuid;

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The target of spans: `SVC_LOG=info,svc_server::spans=debug` adds what they know to each line of the log.
const SPANS: &str = "svc_server::spans";

/// Sends the log to stderr. `SVC_LOG` filters it, as in `SVC_LOG=warn` or `SVC_LOG=svc_server=debug`.
///
/// With the feature `otlp`, sends spans of requests and delivery attempts to the collector that
/// `OTEL_EXPORTER_OTLP_ENDPOINT` names.
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_env("SVC_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    #[cfg(feature = "otlp")]
    let filter = match otlp::layer() {
        Ok(None) => filter,
        Ok(Some(spans)) => {
            // What the log leaves out is a span all the same.
            return started(tracing_subscriber::registry().with(log(format).with_filter(filter)).with(spans));
        }
        Err(reason) => {
            started(tracing_subscriber::registry().with(filter).with(log(format)));
            return tracing::error!(error = %reason, "no spans are sent");
        }
    };
    started(tracing_subscriber::registry().with(filter).with(log(format)));
}

fn log<S: Subscriber + for<'a> LookupSpan<'a>>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync> {
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(false).boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    }
}

fn started(subscriber: impl SubscriberInitExt) {
    if subscriber.try_init().is_err() {
        tracing::debug!("the host application writes the log");
    }
}

/// Sends the spans that are left, and waits for that no longer than this. None is sent afterwards.
pub(crate) async fn flush(within: Duration) {
    #[cfg(feature = "otlp")]
    let _ = tokio::task::spawn_blocking(move || otlp::flush(within)).await;
    #[cfg(not(feature = "otlp"))]
    let _ = within;
}

/// The span of a request. Its level is debug, so it costs nothing where nobody wants it.
pub(crate) fn request_span(request_id: &HeaderValue, parts: &Parts, operation: Option<&'static str>) -> Span {
    let span = tracing::debug_span!(
        target: SPANS,
        "request",
        otel.name = operation.unwrap_or(parts.method.as_str()),
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.request.method = parts.method.as_str(),
        http.response.status_code = field::Empty,
        url.path = parts.uri.path(),
        request_id = request_id.to_str().unwrap_or_default(),
        operation,
        tenant = field::Empty,
        code = field::Empty,
    );
    #[cfg(feature = "otlp")]
    otlp::continue_trace(&span, &parts.headers);
    span
}

/// The span of an attempt at a delivery. It begins a trace: the request whose change it tells of is long answered.
pub(crate) fn attempt_span(delivery: &Delivery) -> Span {
    tracing::debug_span!(
        target: SPANS,
        "delivery",
        otel.kind = "client",
        otel.status_code = field::Empty,
        http.response.status_code = field::Empty,
        tenant = %delivery.tenant_id,
        delivery = %delivery.id,
        subscription = %delivery.subscription_id,
        event = delivery.kind.as_str(),
        attempt = delivery.attempts,
        error = field::Empty,
    )
}

/// Adds to the span of an attempt what came of it.
pub(crate) fn record_attempt(span: &Span, log: &AttemptLog) {
    if log.status > 0 {
        span.record("http.response.status_code", log.status);
    }
    if let Some(error) = &log.error {
        span.record("error", error.as_str()).record("otel.status_code", "ERROR");
    }
}

/// What the log says of a request.
pub(crate) struct Access<'a> {
    pub(crate) request_id: &'a HeaderValue,
    pub(crate) parts: &'a Parts,
    pub(crate) peer: IpAddr,
    pub(crate) operation: Option<&'static str>,
    pub(crate) tenant: Option<TenantId>,
    pub(crate) key: Option<Uuid>,
    pub(crate) status: StatusCode,
    pub(crate) code: Option<&'static str>,
    pub(crate) elapsed: Duration,
}

impl Access<'_> {
    /// Adds to the span of the request what is known at its end.
    pub(crate) fn record(&self, span: &Span) {
        if span.is_disabled() {
            return;
        }
        span.record("http.response.status_code", self.status.as_u16());
        span.record("code", self.code).record("tenant", self.tenant.map(field::display));
        if self.status.is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
    }
}

/// Writes the line of a request.
pub(crate) fn access(access: &Access<'_>) {
    tracing::info!(
        target: "svc_server::access",
        request_id = access.request_id.to_str().unwrap_or_default(),
        method = access.parts.method.as_str(),
        path = access.parts.uri.path(),
        operation = access.operation,
        status = access.status.as_u16(),
        code = access.code,
        tenant = access.tenant.map(field::display),
        key = access.key.map(field::display),
        peer = %access.peer,
        micros = u64::try_from(access.elapsed.as_micros()).unwrap_or(u64::MAX),
        "request",
    );
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_span_is_made_only_for_who_asks() {
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
