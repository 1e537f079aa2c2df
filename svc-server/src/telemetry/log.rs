//! Starts the log of the program on stderr, and the export to a collector.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::lines::Lines;
use crate::metrics::Metrics;

/// The output that the log is written to.
static LINES: LazyLock<Lines> = LazyLock::new(|| {
    let lines = Lines::default();
    lines.write_sums();
    lines
});

/// The log filter unless `SVC_LOG` says otherwise.
pub(crate) const DEFAULT_FILTER: &str = "info";

/// The crates whose log is off unless the filter names them. That of MCP logs each message, some with what it says, and the
/// clients of engines each failure that the log has already.
const QUIET: [&str; 4] = ["rmcp", "async_nats", "lapin", "rskafka"];

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One line of text per event, for people.
    #[default]
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

/// Starts the log on stderr. The environment variable `SVC_LOG` filters it, as in `SVC_LOG=warn` or
/// `SVC_LOG=svc_server=debug`; the default is `info`.
///
/// With the feature `otlp`, also starts the export of spans and of the log to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT`
/// names.
///
/// If the host application has installed a subscriber already, that one stays.
pub fn init(format: LogFormat) {
    init_or(format, DEFAULT_FILTER);
}

/// Starts the log with another default filter.
pub(crate) fn init_or(format: LogFormat, default: &str) {
    let asked = std::env::var("SVC_LOG").ok();
    let filter = || filter(asked.as_deref(), default, &QUIET);
    #[cfg(feature = "otlp")]
    {
        let mut failed = Vec::new();
        let spans = super::otlp::spans().unwrap_or_else(|error| {
            failed.push(("traces", error));
            None
        });
        let records = super::otlp::records().unwrap_or_else(|error| {
            failed.push(("logs", error));
            None
        });
        if spans.is_some() || records.is_some() {
            // The filter applies to the log only, so that spans are exported at every level of the log.
            let exported = self::filter(asked.as_deref(), default, &[&QUIET[..], &["opentelemetry"]].concat());
            let records = records.map(|records| records.with_filter(exported));
            let log = log(format).with_filter(filter());
            install(tracing_subscriber::registry().with(log).with(records).with(spans));
        } else {
            install(tracing_subscriber::registry().with(filter()).with(log(format)));
        }
        for (signal, error) in failed {
            tracing::error!(signal, %error, "cannot export to the collector; continuing without");
        }
    }
    #[cfg(not(feature = "otlp"))]
    {
        install(tracing_subscriber::registry().with(filter()).with(log(format)));
        let variables =
            std::env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        for variable in ignored_endpoints(variables) {
            tracing::warn!(
                variable,
                "nothing is exported to a collector, as this program was built without the feature otlp; build it with \
                 --features otlp, or unset the variable"
            );
        }
    }
}

/// Returns the variables that name a collector.
#[cfg(any(not(feature = "otlp"), test))]
fn ignored_endpoints(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let names_collector = |name: &str| name.starts_with("OTEL_EXPORTER_OTLP_") && name.ends_with("ENDPOINT");
    let set = variables.filter(|(name, value)| names_collector(name) && !value.is_empty());
    set.map(|(name, _)| name).collect()
}

/// Returns the filter that `SVC_LOG` asks for, without the crates that it does not name although they need to be named. A log that
/// is exported is without those of OpenTelemetry, which log what becomes of their exports.
fn filter(asked: Option<&str>, default: &str, named_alone: &[&str]) -> EnvFilter {
    let asked = asked.filter(|text| EnvFilter::try_new(text).is_ok()).unwrap_or(default);
    let mut filter = asked.to_owned();
    for name in named_alone.iter().filter(|name| !asked.contains(**name)) {
        filter += &format!(",{name}=off");
    }
    EnvFilter::new(filter)
}

fn log<S: Subscriber + for<'a> LookupSpan<'a>>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync> {
    let log = tracing_subscriber::fmt::layer().with_writer(|| LINES.clone());
    match format {
        LogFormat::Text => log.with_ansi(false).boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    }
}

fn install(subscriber: impl SubscriberInitExt) {
    if subscriber.try_init().is_err() {
        tracing::debug!("a tracing subscriber is installed already");
    }
}

/// Starts the export of metrics to the collector that the environment names, if it names one. Does nothing without the feature
/// `otlp`.
pub(crate) fn export(metrics: &Arc<Metrics>) {
    #[cfg(feature = "otlp")]
    if let Err(error) = super::otlp::metrics::start(Arc::clone(metrics)) {
        tracing::error!(signal = "metrics", %error, "cannot export to the collector; continuing without");
    }
    #[cfg(not(feature = "otlp"))]
    let _ = metrics;
}

/// Writes what the log has not written yet, as the process ends.
pub(crate) fn end_log() {
    LINES.write_rest();
}

/// Exports what remains and waits for that, at most for `within`. Later records are not exported.
pub(crate) async fn flush(within: Duration) {
    #[cfg(feature = "otlp")]
    let _ = tokio::task::spawn_blocking(move || super::otlp::flush(within)).await;
    #[cfg(not(feature = "otlp"))]
    let _ = within;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_gets_nothing_is_named() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4318/v1/traces"),
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", ""),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10"),
            ("OTEL_SERVICE_NAME", "svc"),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
        assert_eq!(ignored_endpoints(variables), expected);
    }
}
