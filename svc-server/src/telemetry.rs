//! The log and the traces of the server.
//!
//! The log goes to stderr, with one line per request and lines for everything else that operators need to know. It names
//! the things it is about in fields: `tenant`, `subscription`, `delivery`, `key`, `request_id`, `error`. Spans cover
//! requests and delivery attempts. With the feature `otlp` they are exported to a collector, and so are the log and the metrics.
//!
//! Spans have a level below that of the log, so a request whose span nobody collects creates none. An exporter that cannot keep
//! up drops them. Each delivery starts a trace of its own, since the request that caused it ended long ago; `traceparent` is
//! taken from clients and not sent to subscribers.
//!
//! Secrets never reach the log or a span: no Authorization header, no query string and no body is written.

#[cfg(feature = "standalone")]
mod lines;
#[cfg(feature = "standalone")]
mod log;
#[cfg(feature = "otlp")]
mod otlp;

#[cfg(not(feature = "otlp"))]
use http::HeaderMap;
#[cfg(not(feature = "otlp"))]
use tracing::Span;

#[cfg(feature = "standalone")]
pub(crate) use self::log::{DEFAULT_FILTER, end_log, export, flush, init_or};
#[cfg(feature = "standalone")]
pub use self::log::{LogFormat, init};

/// The target of spans. `SVC_LOG=info,svc_server::spans=debug` adds the fields of the spans to each line of the log.
pub(crate) const SPANS: &str = "svc_server::spans";

/// Makes the span of a request a part of the trace that its headers name.
#[cfg(feature = "otlp")]
pub(crate) use self::otlp::continue_trace;

/// Does nothing: no span is exported.
#[cfg(not(feature = "otlp"))]
pub(crate) fn continue_trace(_: &Span, _: &HeaderMap) {}
