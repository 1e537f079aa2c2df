//! The export of spans, of the log and of metrics to a collector, by OTLP over HTTP as protobuf.
//!
//! It is configured by the standard environment variables of OpenTelemetry. Nothing is exported unless
//! `OTEL_EXPORTER_OTLP_ENDPOINT`, or that of a signal such as `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, is set, and a signal with
//! `OTEL_TRACES_EXPORTER=none` (or `METRICS`, `LOGS`) is left out. A collector with https needs a certificate of a public
//! certificate authority. Batches are sent on threads of their own. If the collector is slow or unavailable, spans and log
//! records are dropped, and requests are not delayed. Metrics are cumulative, so the next export has what a failed one lacks.
//!
//! # No export of the export
//!
//! A line of the log about an export must not cause another export. OpenTelemetry marks the threads of its exporters, on which
//! neither spans nor log records are made for export; the threads of the [`Collector`] are marked in the same way. The log on
//! stderr has these lines.

pub(super) mod metrics;
mod openmetrics;

use std::env;
use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{LogExporter, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use svc_core::values::HostPolicy;
use tokio::runtime::{Builder, Runtime};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use super::SPANS;
use crate::outbound::dial::{CHECKED_ADDRESSES, Dialer};
use crate::outbound::resolver::SystemResolver;

/// The name of the service, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` sets it.
const SERVICE: &str = "svc-server";
/// The timeout of the export of one batch, unless `OTEL_EXPORTER_OTLP_TIMEOUT` sets it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The highest number of bytes of a response of the collector that are read.
const MAX_RESPONSE: usize = 64 * 1024;

static TRACER: OnceLock<SdkTracerProvider> = OnceLock::new();
static LOGGER: OnceLock<SdkLoggerProvider> = OnceLock::new();

/// The reason for which an export cannot be set up.
pub(super) type SetupError = Box<dyn StdError>;

/// The exported signals, each with a path of its own.
#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
        }
    }

    /// Returns the value of a variable for this signal, such as `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT`, if it is set.
    fn own(self, suffix: &str) -> Option<String> {
        variable(&format!("OTEL_EXPORTER_OTLP_{}_{suffix}", self.name()))
    }

    /// Returns the value for this signal, or that for all of them.
    fn setting(self, suffix: &str) -> Option<String> {
        self.own(suffix).or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{suffix}")))
    }

    fn is_enabled(self) -> Result<bool, SetupError> {
        let disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if disabled || self.setting("ENDPOINT").is_none() {
            return Ok(false);
        }
        let chooses = format!("OTEL_{}_EXPORTER", self.name());
        match variable(&chooses).as_deref() {
            None | Some("otlp") => Ok(true),
            Some("none") => Ok(false),
            Some(other) => Err(format!("{chooses} is {other:?}, and must be otlp or none").into()),
        }
    }

    fn timeout(self) -> Duration {
        self.setting("TIMEOUT").and_then(|millis| millis.parse().ok()).map_or(TIMEOUT, Duration::from_millis)
    }
}

/// Returns the value of a variable. An empty one counts as unset, as the OpenTelemetry specification requires.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns what is known of the process, for all signals.
fn resource() -> Resource {
    let mut resource = Resource::builder();
    let named = variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|attributes| attributes.contains("service.name="));
    if !named && variable("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(SERVICE);
    }
    resource.build()
}

/// Returns the layer that exports spans, if the environment configures a collector.
pub(super) fn spans<S>() -> Result<Option<impl Layer<S>>, SetupError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if !Signal::Traces.is_enabled()? {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().with_http_client(Collector::new(Signal::Traces)?).build()?;
    let provider = SdkTracerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build();
    let tracer = TRACER.get_or_init(|| provider).tracer(SERVICE);
    let spans = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
    Ok(Some(spans.with_filter(Targets::new().with_target(SPANS, tracing::Level::DEBUG))))
}

/// Returns the layer that exports the events of the log as log records, if the environment configures a collector.
pub(super) fn records<S>() -> Result<Option<impl Layer<S>>, SetupError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if !Signal::Logs.is_enabled()? {
        return Ok(None);
    }
    let exporter = LogExporter::builder().with_http().with_http_client(Collector::new(Signal::Logs)?).build()?;
    let provider = SdkLoggerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build();
    Ok(Some(OpenTelemetryTracingBridge::new(LOGGER.get_or_init(|| provider))))
}

/// Makes the span a child of the client's span, if the request has a `traceparent` header (W3C Trace Context).
pub(crate) fn continue_trace(span: &Span, headers: &HeaderMap) {
    if span.is_disabled() || !headers.contains_key("traceparent") {
        return;
    }
    // This fails for a span that only the log records, which needs no parent.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&HeaderExtractor(headers)));
}

/// Exports what remains, and shuts the exporters down. The log comes last, as it has what the others say of their end.
pub(super) fn flush(within: Duration) {
    let end = Instant::now() + within;
    let left = || end.saturating_duration_since(Instant::now());
    if let Some(Err(error)) = TRACER.get().map(|provider| provider.shutdown_with_timeout(left())) {
        tracing::warn!(signal = "traces", %error, "cannot export what remains");
    }
    if let Err(error) = metrics::flush(left()) {
        tracing::warn!(signal = "metrics", error, "cannot export what remains");
    }
    if let Some(Err(error)) = LOGGER.get().map(|provider| provider.shutdown_with_timeout(left())) {
        tracing::warn!(signal = "logs", %error, "cannot export what remains");
    }
}

/// The HTTP client of an exporter. It uses the dialer of webhook deliveries, with private addresses allowed. The threads of
/// the exporter have no runtime, so the client has one of its own.
#[derive(Debug)]
struct Collector {
    runtime: Runtime,
    client: Client<Dialer, Full<Bytes>>,
    dialer: Dialer,
    timeout: Duration,
}

impl Collector {
    fn new(signal: Signal) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("otlp")
            // For as long as the thread lives.
            .on_thread_start(|| std::mem::forget(Context::enter_telemetry_suppressed_scope()))
            .enable_all()
            .build()?;
        let dialer = Dialer::new(Arc::new(SystemResolver::default()), HostPolicy::AllowPrivate);
        let client = Client::builder(TokioExecutor::new()).build(dialer.clone());
        Ok(Self { runtime, client, dialer, timeout: signal.timeout() })
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, dialer) = (self.client.clone(), self.dialer.clone());
        let sending = async move {
            let addresses = dialer.check_addresses(request.uri()).await?;
            let response = CHECKED_ADDRESSES.scope(addresses, client.request(request.map(Full::new))).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let timeout = self.timeout;
        self.runtime.spawn(async move { tokio::time::timeout(timeout, sending).await? }).await?
    }
}
