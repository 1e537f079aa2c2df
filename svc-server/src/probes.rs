//! The probes of supervisors: whether the process is well, and what it measures.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;
use svc_core::error::{Error, StoreError};
use svc_core::values::TenantId;
use uuid::Uuid;

use crate::kernel::Kernel;
use crate::kernel::accept;
use crate::kernel::listener::{Kind, Route, Surface};
use crate::kernel::problem::Problem;
use crate::kernel::response::{ApiResponse, Outcome};
use crate::metrics;

/// How long `/readyz` waits for the database.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// The tenant that `/readyz` looks up. It does not exist; the lookup only shows that the database responds.
const NO_TENANT: TenantId = TenantId(Uuid::nil());

/// `/healthz` and `/readyz`, which every listener has, and `/metrics` for operators.
pub(crate) struct Probes {
    kernel: Arc<Kernel>,
    has_metrics: bool,
}

impl Probes {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Self {
        Self { kernel, has_metrics: false }
    }

    /// Returns those of the operations listener.
    pub(crate) fn with_metrics(kernel: Arc<Kernel>) -> Self {
        Self { kernel, has_metrics: true }
    }

    async fn check_database(&self) -> Result<(), Error> {
        let store = &self.kernel.store;
        let lookup = store.read("readyz", (), async |tx, ()| Ok(tx.tenant(NO_TENANT).await.map(drop)?));
        let timed_out = |_| StoreError::Unavailable(format!("no response within {READY_TIMEOUT:?}"));
        tokio::time::timeout(READY_TIMEOUT, lookup).await.map_err(timed_out)??;
        Ok(store.check_writable()?)
    }

    fn metrics(&self, request: &HeaderMap) -> Outcome {
        // Prometheus names both and wants OpenMetrics more. A client that does not name it, such as curl, may not know it.
        let metrics = &self.kernel.settings.metrics;
        let open = accept::ranges(request).filter(|(range, _)| range == "application/openmetrics-text");
        let open = open.map(|(_, weight)| weight).reduce(f32::max).unwrap_or_default();
        let (text, media_type) = match open > 0.0 && open >= accept::weight(request, "text/plain") {
            true => (metrics.render(), metrics::CONTENT_TYPE),
            false => (metrics.render_plain(), metrics::PLAIN_CONTENT_TYPE),
        };
        let headers =
            [(CONTENT_TYPE, HeaderValue::from_static(media_type)), (VARY, HeaderValue::from_static("accept"))];
        Outcome::ok(HeaderMap::from_iter(headers), text)
    }
}

impl Surface for Probes {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        Some(match parts.uri.path() {
            "/healthz" => Route::read(Kind::Probe, parts, |_| async { status("ok") }),
            "/readyz" => Route::read(Kind::Probe, parts, |_| async {
                self.check_database().await?;
                status("ready")
            }),
            "/metrics" if self.has_metrics => {
                Route::read(Kind::Probe, parts, |_| async { Ok(self.metrics(&parts.headers)) })
            }
            _ => return None,
        })
    }
}

fn status(status: &str) -> Result<Outcome, Problem> {
    Ok(Outcome::Api(ApiResponse::json(StatusCode::OK, &json!({ "status": status }))?))
}
