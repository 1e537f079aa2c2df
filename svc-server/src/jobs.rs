//! The work besides requests, step by step: storing when keys were last used and which requests there were, deleting what has
//! expired, marking invoices as overdue, the index of searches, operational events, and measuring the backlog of deliveries.
//!
//! [`Background`](crate::Background) has the table of when each runs.

use std::sync::Arc;
use std::time::Duration;

use svc_core::error::Error;
use svc_core::oauth::published;
use svc_core::requests;
use svc_core::resources::invoices::{self, OverdueChecks};
use svc_core::store::Store;
use svc_core::values::Timestamp;
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::retention::{self, DeletedCounts, Positions};
use svc_core::webhooks::{operational, statistics, subscriptions};
use tokio::sync::{Mutex, OnceCell};

use crate::kernel::Kernel;
use crate::metrics::Metrics;

/// The number of rows that one transaction of [`delete_expired`] deletes at most, so that other writes do not wait long.
const DELETE_BATCH: u32 = 500;
/// How many uploads are deleted in one transaction, each of up to 4 MiB.
const UPLOADS_BATCH: u32 = 8;

/// How long codes and tokens stay after they have expired.
const CODE_MEMORY: Duration = Duration::from_secs(60 * 60);

/// The pause after each transaction that deletes events or checks invoices, so that other writes can run in between.
const BATCH_PAUSE: Duration = Duration::from_millis(10);

/// How often a sweep starts again at the oldest event, to find those whose deliveries were unfinished the last time.
const SWEEP_RESTART_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How many times as long as a step of the index of searches the pause after it is.
const INDEX_PAUSE: u32 = 15;

/// The recurring work of [`Background`](crate::Background). A test of an application may call it at a time of its own.
pub struct Jobs {
    kernel: Arc<Kernel>,
    retention: RetentionSweep,
    /// Whether the platform webhook was set when the work began, or its URL may not receive webhooks.
    has_set_webhook: OnceCell<bool>,
}

impl Jobs {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Self {
        Self { kernel, retention: RetentionSweep::default(), has_set_webhook: OnceCell::new() }
    }

    fn store(&self) -> &dyn Store {
        &*self.kernel.store
    }

    /// Stores when API keys were last used, deletes expired idempotency responses, request signatures, logged requests, and apps
    /// that nobody has registered and no account uses any more, reports API keys that are about to expire, and measures the
    /// backlog of deliveries for the metrics.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`] when the store fails. Nothing is lost, and the next call does the work.
    pub async fn run_housekeeping(&self) -> Result<(), Error> {
        let settings = &self.kernel.settings;
        self.flush_last_used().await?;
        delete_expired(self.store(), settings.idempotency_ttl).await?;
        requests::delete_expired(self.store()).await?;
        statistics::delete_expired(self.store()).await?;
        subscriptions::delete_expired(self.store()).await?;
        if self.kernel.apps.as_ref().is_some_and(|apps| apps.takes_published) {
            published::delete_unused(self.store()).await?;
        }
        if settings.platform_webhook.is_some() {
            operational::report_expiring_keys(self.store()).await?;
        }
        measure_backlog(self.store(), &settings.metrics).await
    }

    /// Makes the platform webhook what [`Settings::platform_webhook`](crate::Settings::platform_webhook) says: a subscription at
    /// that URL, or one that is disabled.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Validation`] for a URL that may not receive webhooks, and [`Error::Store`] when the store fails.
    pub async fn set_platform_webhook(&self) -> Result<(), Error> {
        operational::set_webhook(self.store(), self.kernel.settings.platform_webhook.as_ref()).await
    }

    /// Writes the operational events that were recorded since the last call as events of the platform account, and returns
    /// how many there were.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`] when the store fails. Nothing is lost, and the next call does the work.
    pub async fn publish_operational_events(&self) -> Result<u64, Error> {
        operational::publish(self.store()).await
    }

    /// Publishes operational events if any may be recorded: for the platform webhook, which is set before, or for apps.
    pub(crate) async fn run_operational_events(&self) -> Result<(), Error> {
        let set = async || match self.set_platform_webhook().await {
            Err(error @ Error::Validation(_)) => {
                tracing::error!(%error, "cannot send operational events to the URL of the platform webhook");
                Ok(false)
            }
            set => set.map(|()| true),
        };
        let is_set = *self.has_set_webhook.get_or_try_init(set).await?;
        if is_set && (self.kernel.settings.platform_webhook.is_some() || self.kernel.apps.is_some()) {
            self.publish_operational_events().await?;
        }
        Ok(())
    }

    /// Deletes the events that are older than [`Settings::retention`](crate::Settings::retention), with their finished
    /// deliveries, logs and replays, and returns the numbers of deleted rows.
    ///
    /// It works in small transactions with pauses, so that requests are not delayed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`] when the store fails. The next call continues.
    pub async fn delete_expired_events(&self) -> Result<DeletedCounts, Error> {
        self.retention.run(self.store(), self.kernel.settings.retention).await
    }

    /// Marks the overdue invoices of the accounts for which a day has begun since their last check, and returns how many
    /// became overdue.
    ///
    /// It works in small transactions with pauses, so that requests are not delayed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`] when the store is not available. The next call continues.
    pub async fn check_overdue_invoices(&self) -> Result<OverdueChecks, Error> {
        invoices::check_overdue(self.store(), || tokio::time::sleep(BATCH_PAUSE)).await
    }

    /// Brings the index of searches up to date ([`find`](svc_core::find)). It works a sixteenth of the time, so that writes hardly
    /// notice.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`] when the store is not available. The next call continues.
    pub async fn index_changes(&self) -> Result<(), Error> {
        svc_core::find::index_all(self.store(), |took| tokio::time::sleep(took * INDEX_PAUSE)).await
    }

    /// Stores when API keys were last used. [`Background`](crate::Background) calls it when it ends; call it once more
    /// when the last request has ended later than that.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`] when the store fails. Nothing is lost, and the next call does the work.
    pub async fn flush_last_used(&self) -> Result<(), Error> {
        self.kernel.last_used.flush(self.store()).await
    }

    /// Writes the requests that were answered since the last call to the request log of their accounts.
    ///
    /// If the store fails, these requests are missing in the log, which is reported to the log of the program and counted in the
    /// metrics.
    pub async fn flush_request_log(&self) {
        if let Err((error, lost)) = self.kernel.request_log.flush(self.store()).await {
            self.kernel.settings.metrics.requests_not_logged(lost);
            tracing::warn!(requests = lost, %error, "cannot write the request log; these requests are missing in it");
        }
    }
}

/// Deletes events that are older than the retention. It continues where the last call stopped.
#[derive(Default)]
struct RetentionSweep(Mutex<SweepProgress>);

#[derive(Default)]
struct SweepProgress {
    positions: Positions,
    /// When the sweep started at the oldest event.
    started_at: Option<Timestamp>,
}

impl RetentionSweep {
    /// Deletes all events that have expired, and returns how many rows it deleted.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`]; the next call continues.
    async fn run(&self, store: &dyn Store, retention: Duration) -> Result<DeletedCounts, Error> {
        let mut progress = self.0.lock().await;
        let now = store.env().now();
        if progress.started_at.is_none_or(|started_at| now.since(started_at) >= SWEEP_RESTART_INTERVAL) {
            *progress = SweepProgress { positions: Positions::new(), started_at: Some(now) };
        }
        let before = now.minus(retention);
        retention::sweep(store, &mut progress.positions, before, false, || tokio::time::sleep(BATCH_PAUSE)).await
    }
}

/// Deletes expired stored responses, request signatures, codes and tokens of apps, and links, sessions and uploads of the dashboard, in small transactions.
async fn delete_expired(store: &dyn Store, idempotency_ttl: Duration) -> Result<(), Error> {
    let delete = store.delete_in_steps("prune", DELETE_BATCH, idempotency_ttl, async |tx, &idempotency_ttl| {
        let now = tx.env().now();
        let requests = tx.delete_request_records(now.minus(idempotency_ttl), now, DELETE_BATCH).await?;
        // A code is kept for an hour, so that one which comes again is known.
        let tokens = tx.delete_expired_tokens(now.minus(CODE_MEMORY), DELETE_BATCH).await?;
        Ok(requests.max(tokens).max(tx.delete_expired_sign_ins(now, DELETE_BATCH).await?))
    });
    delete.await?;
    let uploads = store.delete_in_steps("prune.uploads", UPLOADS_BATCH, (), async |tx, ()| {
        let now = tx.env().now();
        Ok(tx.delete_expired_uploads(now, UPLOADS_BATCH).await?)
    });
    uploads.await.map(drop)
}

/// The statuses of deliveries that wait: for their next attempt, for an operator or for a replay.
const WAITING: [DeliveryStatus; 3] = [DeliveryStatus::Pending, DeliveryStatus::Failed, DeliveryStatus::Held];

/// Measures the backlog of deliveries for the metrics.
///
/// This runs on a schedule and not with each scrape, and the store reads a bounded number of rows.
async fn measure_backlog(store: &dyn Store, metrics: &Metrics) -> Result<(), Error> {
    for status in WAITING {
        let backlog =
            store.read("deliveries.backlog", status, async |tx, &status| Ok(tx.backlog(status).await?)).await?;
        metrics.backlog(status, backlog, store.env().now());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::accounts::uploads::{self, UploadCreate};
    use svc_core::env::{Env, ManualClock, SystemEntropy};
    use svc_core::input::Input as _;
    use svc_core::resources::contacts::Contact;
    use svc_core::resources::{Create, crud};
    use svc_core::store::memory::MemoryStore;
    use svc_core::webhooks::subscriptions::{self, WebhookCreate, WebhookSubscription};

    use super::*;
    use crate::{Api, Settings};

    #[tokio::test]
    async fn events_older_than_the_retention_are_deleted() {
        let day = Duration::from_secs(24 * 3600);
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::new(clock.clone(), SystemEntropy)));
        let api = Api::new(Arc::clone(&store), Settings { retention: day * 7, ..Settings::default() });
        let made = store.write("test", (), async |tx, ()| {
            let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
            let input = <Contact as Create>::Input::from_body(br#"{"email": "ada@example.com"}"#)?;
            crud::create::<Contact>(tx, tenant, input).await
        });
        made.await.unwrap();
        clock.advance(day * 7);
        assert_eq!(api.jobs().delete_expired_events().await, Ok(DeletedCounts::default()));
        clock.advance(day);
        assert_eq!(api.jobs().delete_expired_events().await.map(|deleted| deleted.events), Ok(1));
        assert_eq!(api.jobs().delete_expired_events().await, Ok(DeletedCounts::default()));
    }

    #[tokio::test]
    async fn webhooks_that_nobody_keeps_are_deleted() {
        let minute = Duration::from_secs(60);
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::new(clock.clone(), SystemEntropy)));
        let api = Api::new(Arc::clone(&store), Settings::default());
        let made = store.write("test", minute, async |tx, &minute| {
            let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
            let input = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
            let webhook = crud::create::<WebhookSubscription>(tx, tenant, input).await?.id;
            subscriptions::keep_for(tx, tenant, webhook, minute).await?;
            Ok((tenant, webhook))
        });
        let (tenant, webhook) = made.await.unwrap();
        let is_live = async || {
            api.jobs().run_housekeeping().await.unwrap();
            store
                .read("test", (tenant, webhook), async |tx, &(tenant, webhook)| {
                    crud::get::<WebhookSubscription>(tx, tenant, webhook).await
                })
                .await
                .is_ok()
        };
        assert!(is_live().await);
        clock.advance(minute);
        assert!(!is_live().await);
    }

    /// More than one transaction deletes.
    #[tokio::test]
    async fn uploads_are_deleted_after_a_day() {
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::new(clock.clone(), SystemEntropy)));
        let api = Api::new(Arc::clone(&store), Settings::default());
        let made = store.write("test", (), async |tx, ()| {
            let mut accounts = Vec::new();
            for _ in 0..=UPLOADS_BATCH {
                let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
                let [name, created_by, choices] = ["a.csv", "test", ""].map(str::to_owned);
                uploads::create(tx, tenant, &UploadCreate { name, created_by, choices, content: b"email".to_vec() })
                    .await?;
                accounts.push(tenant);
            }
            Ok(accounts)
        });
        let accounts = made.await.unwrap();
        let count = async || {
            api.jobs().run_housekeeping().await.unwrap();
            let count = store.read("test", accounts.clone(), async |tx, accounts| {
                let mut count = 0;
                for tenant in accounts.clone() {
                    count += tx.uploads(tenant).await?.len();
                }
                Ok(count)
            });
            count.await.unwrap()
        };
        clock.advance(uploads::LIFETIME);
        assert_eq!(count().await, accounts.len());
        clock.advance(Duration::from_micros(1));
        assert_eq!(count().await, 0);
    }
}
