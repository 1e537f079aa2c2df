//! The log: one line per request, and whatever else happens. Secrets never reach it: neither the
//! Authorization header nor query strings nor bodies are written.

use std::net::IpAddr;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, StatusCode};
use svc_core::types::TenantId;
use tracing_subscriber::EnvFilter;
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

/// Sends the log to stderr. `SVC_LOG` filters it, as in `SVC_LOG=warn` or `SVC_LOG=svc_server=debug`.
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_env("SVC_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let done = match format {
        LogFormat::Text => log.with_ansi(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    if done.is_err() {
        tracing::debug!("the host application writes the log");
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
        tenant = access.tenant.map(tracing::field::display),
        key = access.key.map(tracing::field::display),
        peer = %access.peer,
        micros = u64::try_from(access.elapsed.as_micros()).unwrap_or(u64::MAX),
        "request",
    );
}
