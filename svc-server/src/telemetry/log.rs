//! Starts the log of the program on stderr, and the export of spans.

use std::time::Duration;

use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// What the log has unless `SVC_LOG` says otherwise.
pub(crate) const DEFAULT_FILTER: &str = "info";

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
/// With the feature `otlp`, also starts the export of spans to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names.
///
/// If the host application has installed a subscriber already, that one stays.
pub fn init(format: LogFormat) {
    init_or(format, DEFAULT_FILTER);
}

/// Starts the log with another default filter.
pub(crate) fn init_or(format: LogFormat, default: &str) {
    let filter = filter(std::env::var("SVC_LOG").ok().as_deref(), default);
    #[cfg(feature = "otlp")]
    let filter = match super::otlp::layer() {
        Ok(None) => filter,
        Ok(Some(spans)) => {
            // The filter applies to the log only, so that spans are exported at every level of the log.
            return install(tracing_subscriber::registry().with(log(format).with_filter(filter)).with(spans));
        }
        Err(error) => {
            install(tracing_subscriber::registry().with(filter).with(log(format)));
            return tracing::error!(%error, "cannot export spans; continuing without");
        }
    };
    install(tracing_subscriber::registry().with(filter).with(log(format)));
}

/// Returns the filter that `SVC_LOG` asks for. The crate of MCP logs each message, some with what it says, unless it is named.
fn filter(asked: Option<&str>, default: &str) -> EnvFilter {
    let asked = asked.filter(|text| EnvFilter::try_new(text).is_ok()).unwrap_or(default);
    if asked.contains("rmcp") { EnvFilter::new(asked) } else { EnvFilter::new(format!("{asked},rmcp=off")) }
}

fn log<S: Subscriber + for<'a> LookupSpan<'a>>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync> {
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
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

/// Exports the remaining spans and waits for that, at most for `within`. Later spans are not exported.
pub(crate) async fn flush(within: Duration) {
    #[cfg(feature = "otlp")]
    let _ = tokio::task::spawn_blocking(move || super::otlp::flush(within)).await;
    #[cfg(not(feature = "otlp"))]
    let _ = within;
}
