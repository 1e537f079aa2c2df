//! The log of the failures of a stream.

use std::time::Duration;

use svc_core::values::StreamBroker;
use svc_core::webhooks::streams::{Failure, StepReport, StreamKey};
use tokio::time::Instant;

/// How often a failure is logged while it lasts.
const INTERVAL: Duration = Duration::from_secs(60);

/// Logs the first failure of a stream, one a minute while there are more, and that events are published again.
pub(super) struct FailureLog {
    key: StreamKey,
    kind: StreamBroker,
    logged_at: Option<Instant>,
    failures: u64,
}

impl FailureLog {
    pub(super) fn new(key: StreamKey, kind: StreamBroker) -> Self {
        Self { key, kind, logged_at: None, failures: 0 }
    }

    pub(super) fn record(&mut self, report: &StepReport) {
        let (stream, subscription) = (self.kind, self.key.id);
        if let Some(Failure { tenant_id: tenant, event_id: event, error }) = report.failures.first() {
            self.failures += report.failures.len() as u64;
            if self.logged_at.is_none_or(|at| at.elapsed() >= INTERVAL) {
                self.logged_at = Some(Instant::now());
                let failures = self.failures;
                let message = "cannot publish events; they wait and are tried again";
                if self.key == StreamKey::SERVER {
                    tracing::warn!(%stream, %tenant, %event, %error, failures, "{message}");
                } else {
                    tracing::warn!(%stream, %subscription, %tenant, %event, %error, failures, "{message}");
                }
            }
        } else if self.failures > 0 && report.sent > 0 {
            tracing::info!(%stream, failures = self.failures, "events are published again");
            (self.logged_at, self.failures) = (None, 0);
        }
    }
}
