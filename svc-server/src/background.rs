//! The work that belongs to an API besides its responses: sending webhooks, upkeep and retention.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use svc_core::error::Error;
use svc_core::resources::invoices::OverdueChecks;
use svc_core::webhooks::engine::Policy;
use svc_core::webhooks::retention::DeletedCounts;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::Api;
use crate::deliver::{self, WebhookClient};
use crate::streams::Streams;

/// How often the last uses of keys are stored and expired rows are deleted.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(10);
/// How often the requests that were answered are written to the request log.
const REQUEST_LOG_INTERVAL: Duration = Duration::from_secs(2);
/// How often operational events are published.
const OPERATIONAL_EVENTS_INTERVAL: Duration = Duration::from_secs(1);
/// How often events and deliveries that are older than the retention period are deleted.
const RETENTION_INTERVAL: Duration = Duration::from_secs(60);
/// How often what changed enters the index of searches.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);
/// How often the accounts are found for which a day has begun since their invoices were checked.
const OVERDUE_INTERVAL: Duration = Duration::from_secs(60);

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
        periodic.spawn(every(HOUSEKEEPING_INTERVAL, api.clone(), run_housekeeping));
        periodic.spawn(every(REQUEST_LOG_INTERVAL, api.clone(), |api| async move { api.flush_request_log().await }));
        periodic.spawn(every(RETENTION_INTERVAL, api.clone(), run_retention));
        periodic.spawn(every(SEARCH_INTERVAL, api.clone(), run_search));
        periodic.spawn(run_operational_events(api.clone()));
        if overdue {
            periodic.spawn(every(OVERDUE_INTERVAL, api.clone(), run_overdue));
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
        if let Err(error) = api.flush_last_used().await {
            tracing::warn!(%error, "cannot store when API keys were last used");
        }
        api.flush_request_log().await;
        running.has_ended = true;
    }
}

/// Does some work at once, and then again and again.
async fn every<F: Future<Output = ()>>(interval: Duration, api: Api, work: impl Fn(Api) -> F) {
    let mut interval = tokio::time::interval(interval);
    loop {
        interval.tick().await;
        work(api.clone()).await;
    }
}

/// Stores the last uses of keys and deletes expired rows.
async fn run_housekeeping(api: Api) {
    if let Err(error) = api.run_housekeeping().await {
        tracing::warn!(%error, "periodic maintenance failed; trying again later");
    }
}

/// Deletes what is older than the retention period.
async fn run_retention(api: Api) {
    match api.delete_expired_events().await {
        Ok(deleted) if deleted != DeletedCounts::default() => {
            tracing::info!(?deleted, "deleted events and deliveries that were older than the retention period")
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, "deleting expired events and deliveries failed; trying again later")
        }
    }
}

/// Sets the platform webhook, and publishes operational events again and again if there is one.
async fn run_operational_events(api: Api) {
    let mut interval = tokio::time::interval(OPERATIONAL_EVENTS_INTERVAL);
    loop {
        interval.tick().await;
        match api.set_platform_webhook().await {
            Ok(()) => break,
            Err(error @ Error::Validation(_)) => {
                tracing::error!(%error, "cannot send operational events to the URL of the platform webhook");
                return;
            }
            Err(error) => tracing::warn!(%error, "cannot set the platform webhook; trying again"),
        }
    }
    while api.has_operational_events() {
        if let Err(error) = api.publish_operational_events().await {
            tracing::warn!(%error, "cannot publish operational events; trying again later");
        }
        interval.tick().await;
    }
}

/// Brings the index of searches up to date.
async fn run_search(api: Api) {
    if let Err(error) = api.index_changes().await {
        tracing::warn!(%error, "bringing the index of searches up to date failed; trying again later");
    }
}

/// Marks invoices as overdue after midnight in the time zone of their account.
async fn run_overdue(api: Api) {
    match api.check_overdue_invoices().await {
        Ok(OverdueChecks { marked, failed }) => {
            if marked > 0 {
                tracing::info!(invoices = marked, "marked invoices as overdue");
            }
            for (tenant, error) in failed {
                tracing::error!(%tenant, %error, "cannot check which invoices are overdue; trying again in an hour");
            }
        }
        Err(error) => tracing::warn!(%error, "checking which invoices are overdue failed; trying again later"),
    }
}
