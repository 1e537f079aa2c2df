//! The export of metrics: at each interval, what `/metrics` shows at that moment.
//!
//! The SDK of OpenTelemetry exports only what it has counted itself, so the metrics would have to be counted twice. Instead the
//! text of `/metrics` becomes the message of OTLP ([`openmetrics`]), and is sent by the client of the other exporters.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use opentelemetry_http::{HttpClient as _, HttpError, Request};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use percent_encoding::percent_decode_str;
use prost::Message as _;
use svc_core::env::Env;

use super::{Collector, SERVICE, SetupError, Signal, openmetrics, variable};
use crate::metrics::Metrics;

/// The time between two exports, unless `OTEL_METRIC_EXPORT_INTERVAL` sets it.
const INTERVAL: Duration = Duration::from_secs(60);

static EXPORT: OnceLock<Arc<Export>> = OnceLock::new();

/// The export of the metrics of this process.
struct Export {
    metrics: Arc<Metrics>,
    collector: Collector,
    url: Uri,
    headers: HeaderMap,
    resource: Resource,
    env: Env,
    /// When the counters were 0, in nanoseconds since 1970.
    started: u64,
}

/// Starts the export of these metrics, if the environment configures a collector.
pub(in crate::telemetry) fn start(metrics: Arc<Metrics>) -> Result<(), SetupError> {
    if !Signal::Metrics.is_enabled()? {
        return Ok(());
    }
    let env = Env::system();
    let export = Export {
        metrics,
        collector: Collector::new(Signal::Metrics)?,
        url: url()?,
        headers: headers(&Signal::Metrics.setting("HEADERS").unwrap_or_default())?,
        resource: Resource {
            attributes: ResourceAttributesWithSchema::from(&super::resource()).attributes.0,
            ..Resource::default()
        },
        started: nanos(&env),
        env,
    };
    let interval = variable("OTEL_METRIC_EXPORT_INTERVAL").and_then(|millis| millis.parse().ok());
    let interval = interval.filter(|millis| *millis > 0).map_or(INTERVAL, Duration::from_millis);
    let export = EXPORT.get_or_init(|| Arc::new(export));
    let repeated = Arc::clone(export);
    export.collector.runtime.spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            if let Err(error) = repeated.run().await {
                tracing::warn!(error, "cannot export metrics; trying again after the interval");
            }
        }
    });
    Ok(())
}

/// Exports the metrics once more.
pub(super) fn flush(within: Duration) -> Result<(), String> {
    let Some(export) = EXPORT.get() else { return Ok(()) };
    let exported = async { tokio::time::timeout(within, export.run()).await };
    export.collector.runtime.block_on(exported).map_err(|elapsed| elapsed.to_string())?
}

impl Export {
    async fn run(&self) -> Result<(), String> {
        let now = nanos(&self.env);
        let metrics = openmetrics::read(&self.metrics.render(), self.started, now);
        let scope = InstrumentationScope { name: SERVICE.to_owned(), ..InstrumentationScope::default() };
        let of_scope = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
        let of_resource = ResourceMetrics {
            resource: Some(self.resource.clone()),
            scope_metrics: vec![of_scope],
            ..ResourceMetrics::default()
        };
        let message = ExportMetricsServiceRequest { resource_metrics: vec![of_resource] };
        let mut request = Request::new(message.encode_to_vec().into());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let sent: Result<_, HttpError> = self.collector.send_bytes(request).await;
        match sent.map_err(|error| error.to_string())?.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the collector responded with {status}")),
        }
    }
}

fn nanos(env: &Env) -> u64 {
    u64::try_from(env.now().as_micros()).unwrap_or_default().saturating_mul(1000)
}

/// Returns the URL: that of metrics as it is, or a path below that for all signals.
fn url() -> Result<Uri, SetupError> {
    let url = Signal::Metrics.own("ENDPOINT").or_else(|| {
        Signal::Metrics.setting("ENDPOINT").map(|base| format!("{}/v1/metrics", base.trim_end_matches('/')))
    });
    Ok(url.unwrap_or_default().parse()?)
}

/// Reads headers as the specification writes them: `name=value` separated by commas, with values that are percent-encoded.
fn headers(text: &str) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    for (name, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
        let value = percent_decode_str(value.trim()).decode_utf8()?;
        headers.insert(name.trim().parse::<HeaderName>()?, value.parse::<HeaderValue>()?);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_separated_by_commas_and_percent_encoded() {
        let headers = headers("Authorization=Bearer%20abc, x-team = api").unwrap();
        assert_eq!(
            (&headers["authorization"], &headers["x-team"]),
            (&"Bearer abc".parse().unwrap(), &"api".parse().unwrap())
        );
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert!(super::headers("a b=c").is_err());
    }
}
