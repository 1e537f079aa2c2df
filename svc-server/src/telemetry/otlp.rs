//! The export of spans to a collector, by OTLP over HTTP as protobuf.
//!
//! It is configured by the standard environment variables of OpenTelemetry. Nothing is exported unless
//! `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. A collector with https needs a certificate
//! of a public certificate authority. Batches are sent on threads of their own. If the collector is slow or unavailable,
//! spans are dropped, and requests are not delayed.

use std::env;
use std::error::Error as StdError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
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
use crate::deliver::dial::{CHECKED_ADDRESSES, Dialer};
use crate::deliver::resolver::SystemResolver;

/// The service name of the spans, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` sets it.
const SERVICE: &str = "svc-server";
/// The timeout of the export of one batch, unless `OTEL_EXPORTER_OTLP_TIMEOUT` sets it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The highest number of bytes of a response of the collector that are read.
const MAX_RESPONSE: usize = 64 * 1024;

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Returns the layer that exports spans, if the environment configures a collector.
pub(super) fn layer<S>() -> Result<Option<impl Layer<S>>, Box<dyn StdError>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if !is_enabled() {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().with_http_client(Collector::new()?).build()?;
    let mut resource = Resource::builder();
    let named = env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|attributes| attributes.contains("service.name="));
    if !named && !is_set("OTEL_SERVICE_NAME") {
        resource = resource.with_service_name(SERVICE);
    }
    let provider = SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build();
    let tracer = PROVIDER.get_or_init(|| provider).tracer(SERVICE);
    let spans = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
    Ok(Some(spans.with_filter(Targets::new().with_target(SPANS, tracing::Level::DEBUG))))
}

fn is_enabled() -> bool {
    let disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    !disabled && endpoints.into_iter().any(is_set)
}

/// Returns whether a variable is set. An empty one counts as unset, as the OpenTelemetry specification requires.
fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn timeout() -> Duration {
    let variables = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
    let millis = variables.into_iter().find_map(|variable| env::var(variable).ok()?.parse().ok());
    millis.map_or(TIMEOUT, Duration::from_millis)
}

/// Makes the span a child of the client's span, if the request has a `traceparent` header (W3C Trace Context).
pub(super) fn continue_trace(span: &Span, headers: &HeaderMap) {
    if span.is_disabled() || !headers.contains_key("traceparent") {
        return;
    }
    // This fails for a span that only the log records, which needs no parent.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&HeaderExtractor(headers)));
}

/// Exports the remaining spans, and shuts the exporter down.
pub(super) fn flush(within: Duration) {
    if let Some(Err(error)) = PROVIDER.get().map(|provider| provider.shutdown_with_timeout(within)) {
        tracing::warn!(%error, "cannot export the remaining spans");
    }
}

/// The HTTP client of the exporter. It uses the dialer of webhook deliveries, with private addresses allowed. The threads of
/// the exporter have no runtime, so the client has one of its own.
#[derive(Debug)]
struct Collector {
    runtime: Runtime,
    client: Client<Dialer, Full<Bytes>>,
    dialer: Dialer,
    timeout: Duration,
}

impl Collector {
    fn new() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("otlp").enable_all().build()?;
        let dialer = Dialer::new(Arc::new(SystemResolver::default()), HostPolicy::AllowPrivate);
        let client = Client::builder(TokioExecutor::new()).build(dialer.clone());
        Ok(Self { runtime, client, dialer, timeout: timeout() })
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
