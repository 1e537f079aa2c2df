//! The work that belongs to an API besides its responses: sending webhooks, upkeep and retention.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use svc_core::error::Error;
use svc_core::resources::invoices::OverdueChecks;
use svc_core::webhooks::engine::Policy;
use svc_core::webhooks::retention::DeletedCounts;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::compose::Api;
use crate::deliver::{self, WebhookClient};
use crate::jobs::Jobs;
use crate::streams::Streams;

/// Some work that is done at once, and then again and again.
struct Job {
    interval: Duration,
    run: for<'a> fn(&'a Jobs) -> BoxFuture<'a, Result<(), Error>>,
    /// The message in the log if it fails.
    failed: &'static str,
}

/// The jobs of each process; those on the same database share the work.
const JOBS: [Job; 5] = [
    Job {
        interval: Duration::from_secs(10),
        run: |jobs| Box::pin(jobs.run_housekeeping()),
        failed: "periodic maintenance failed",
    },
    Job {
        interval: Duration::from_secs(2),
        // It says by itself which requests are lost.
        run: |jobs| Box::pin(jobs.flush_request_log().map(Ok)),
        failed: "writing the request log failed",
    },
    Job {
        interval: Duration::from_secs(60),
        run: |jobs| Box::pin(run_retention(jobs)),
        failed: "deleting expired events and deliveries failed",
    },
    Job {
        interval: Duration::from_secs(5),
        run: |jobs| Box::pin(jobs.index_changes()),
        failed: "bringing the index of searches up to date failed",
    },
    Job {
        interval: Duration::from_secs(1),
        run: |jobs| Box::pin(jobs.run_operational_events()),
        failed: "cannot publish operational events",
    },
];

/// Finds the accounts for which a day has begun since their invoices were checked.
const OVERDUE: Job = Job {
    interval: Duration::from_secs(60),
    run: |jobs| Box::pin(run_overdue(jobs)),
    failed: "checking which invoices are overdue failed",
};

/// The work of an [`Api`] in the background: it sends webhooks and streams, stores when keys were last used and which requests
/// there were, deletes what has expired, marks invoices as overdue, keeps the index of searches up to date, publishes
/// operational events, and keeps the metrics of backlogs up to date.
///
/// [`Builder::build`](crate::Builder::build) returns it beside the API. Every process that serves the API runs it; those
/// on the same database share the work. An API that is served without it logs an error every minute.
#[must_use = "no webhook is sent and nothing that has expired is deleted until `run` is awaited or spawned"]
pub struct Background {
    pub(crate) api: Api,
    pub(crate) policy: Policy,
    pub(crate) client: Arc<dyn WebhookClient>,
    pub(crate) shutdown_grace: Duration,
    /// Whether to mark invoices as overdue.
    pub(crate) overdue: bool,
    pub(crate) streams: Streams,
}

impl Background {
    /// Works until `shutdown` is ready. Then it claims no more deliveries, waits for the attempts in flight as long as
    /// [`Builder::shutdown_grace`](crate::Builder::shutdown_grace) allows, and stores their outcomes. The live lists of the
    /// dashboard end as well, so that the connections that send them can be closed.
    ///
    /// A failure of the store is logged and the work tried again, so this does not end before `shutdown` is ready. It needs
    /// a tokio runtime with its timer and I/O. Deliveries whose attempts are cut short, also by dropping the future, are
    /// attempted again after 30 seconds with the default settings.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { api, policy, client, shutdown_grace, overdue, streams } = self;
        let mut running = api.background_reminder().silence_while_running();
        let mut periodic = JoinSet::new();
        for job in JOBS.into_iter().chain(overdue.then_some(OVERDUE)) {
            periodic.spawn(repeat(job, api.clone()));
        }
        let (stop_streams, stopping) = watch::channel(());
        let streams = tokio::spawn(streams.run(api.store(), api.metrics(), stopping));
        let stop = async {
            shutdown.await;
            drop(stop_streams);
            api.end_streams();
            periodic.abort_all();
        };
        deliver::run(api.store(), policy, client, api.metrics(), stop, shutdown_grace).await;
        if tokio::time::timeout(shutdown_grace, streams).await.is_err() {
            tracing::warn!("stopped while a stream published events; those without a confirmation will be repeated");
        }
        if let Err(error) = api.jobs().flush_last_used().await {
            tracing::warn!(%error, "cannot store when API keys were last used");
        }
        api.jobs().flush_request_log().await;
        running.has_ended = true;
    }
}

/// Does a job at once, and then again and again.
async fn repeat(job: Job, api: Api) {
    let mut interval = tokio::time::interval(job.interval);
    loop {
        interval.tick().await;
        if let Err(error) = (job.run)(api.jobs()).await {
            tracing::warn!(%error, "{}; trying again later", job.failed);
        }
    }
}

/// Deletes what is older than the retention period.
async fn run_retention(jobs: &Jobs) -> Result<(), Error> {
    let deleted = jobs.delete_expired_events().await?;
    if deleted != DeletedCounts::default() {
        tracing::info!(?deleted, "deleted events and deliveries that were older than the retention period");
    }
    Ok(())
}

/// Marks invoices as overdue after midnight in the time zone of their account.
async fn run_overdue(jobs: &Jobs) -> Result<(), Error> {
    let OverdueChecks { marked, failed } = jobs.check_overdue_invoices().await?;
    if marked > 0 {
        tracing::info!(invoices = marked, "marked invoices as overdue");
    }
    for (tenant, error) in failed {
        tracing::error!(%tenant, %error, "cannot check which invoices are overdue; trying again in an hour");
    }
    Ok(())
}
