//! Spans to a collector: OTLP over HTTP, as protobuf.
//!
//! The standard variables of OpenTelemetry say where to and how; nothing is sent unless `OTEL_EXPORTER_OTLP_ENDPOINT`
//! or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. An https collector needs a certificate of a public authority.
//! Batches leave on threads of their own; when the collector is slow or away, spans are dropped and nothing waits.

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

/// What spans are from, unless `OTEL_SERVICE_NAME` names it.
const SERVICE: &str = "svc-server";
/// For one batch, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a collector's answer.
const MOST_READ: usize = 64 * 1024;

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Sends spans, if the environment says where to.
pub(super) fn layer<S>() -> Result<Option<impl Layer<S>>, Box<dyn StdError>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if !is_wanted() {
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

fn is_wanted() -> bool {
    let disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    !disabled && endpoints.into_iter().any(is_set)
}

/// An empty variable is like none, as OpenTelemetry's specification wants it.
fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn timeout() -> Duration {
    let variables = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
    let millis = variables.into_iter().find_map(|variable| env::var(variable).ok()?.parse().ok());
    millis.map_or(TIMEOUT, Duration::from_millis)
}

/// Makes the span a child of the client's, if its `traceparent` (W3C Trace Context) names one.
pub(super) fn continue_trace(span: &Span, headers: &HeaderMap) {
    if span.is_disabled() || !headers.contains_key("traceparent") {
        return;
    }
    // Where only the log takes the span, it has no place for a parent.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&HeaderExtractor(headers)));
}

/// Sends what is left, and nothing after that.
pub(super) fn flush(within: Duration) {
    if let Some(Err(error)) = PROVIDER.get().map(|provider| provider.shutdown_with_timeout(within)) {
        tracing::warn!(%error, "the last spans were not sent");
    }
}

/// The client that carries batches: the one of webhooks, which may dial any address here. The exporter's thread has no
/// runtime, so it has one of its own.
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
            let body = Limited::new(body, MOST_READ).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let timeout = self.timeout;
        self.runtime.spawn(async move { tokio::time::timeout(timeout, sending).await? }).await?
    }
}
