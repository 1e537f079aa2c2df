//! The webhook sender: drives svc-core's delivery engine.
//!
//! One loop: look what there is to do, in a read job; carry out one round per tenant, each a write job of its own
//! that stores outcomes and begins attempts; make the attempts side by side. While the round of a tenant commits, its
//! further outcomes gather, so a busy sender batches by itself, and no tenant waits for the row of another. It wakes
//! when a commit of this process has something to send, when an attempt or a round ends, when the next turn comes,
//! and once a second for what other processes wrote.

mod client;
pub(crate) mod dial;
pub mod resolver;

use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, FailureClass};
use svc_core::webhooks::engine::{self, Attempt, Batch, BatchResult, InFlight, Outcome, Policy};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tracing::Instrument as _;

pub use self::client::HttpWebhookClient;
use crate::metrics::Metrics;
use crate::telemetry;

/// The longest sleep: what other processes wrote is found within it.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Outcomes that one round stores at most.
const BATCH: usize = 256;
/// The pause after the store failed.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// Makes attempts.
pub trait WebhookClient: Send + Sync + 'static {
    /// Posts a delivery to its endpoint. Every failure is an outcome.
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, Outcome>;
}

/// Sends what is due until `stop` is ready, then waits for what is in flight, at most `grace`.
pub async fn run(
    store: Arc<dyn Store>,
    policy: Policy,
    client: Arc<dyn WebhookClient>,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()>,
    grace: Duration,
) {
    let (report, reports) = mpsc::unbounded_channel();
    let (policy, in_flight) = (Arc::new(policy), InFlight::default());
    let (ended, busy) = (BTreeMap::new(), HashSet::new());
    let mut sender = Sender { store, policy, client, metrics, in_flight, ended, busy, report, reports };
    sender.until(stop).await;
    if tokio::time::timeout(grace, sender.drain()).await.is_err() {
        let attempts = sender.in_flight.total();
        tracing::warn!(attempts, "attempts were still running at the end of the grace; they repeat");
    }
}

struct Sender {
    store: Arc<dyn Store>,
    policy: Arc<Policy>,
    client: Arc<dyn WebhookClient>,
    metrics: Arc<Metrics>,
    in_flight: InFlight,
    /// Outcomes that are not stored yet.
    ended: BTreeMap<TenantId, Vec<Outcome>>,
    /// Tenants whose round is not over.
    busy: HashSet<TenantId>,
    report: mpsc::UnboundedSender<Report>,
    reports: mpsc::UnboundedReceiver<Report>,
}

/// What tasks of the sender tell it.
enum Report {
    /// An attempt is over.
    Ended(Box<Outcome>),
    /// A round is over: what it began, or the outcomes that are still to be stored.
    Over(Arc<Batch>, Result<BatchResult, Vec<Outcome>>),
}

impl Sender {
    async fn until(&mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut wait = Duration::ZERO;
        loop {
            let store = Arc::clone(&self.store);
            let woken = tokio::time::Instant::now();
            let poll_now = tokio::select! {
                biased;
                () = &mut stop => return,
                Some(report) = self.reports.recv() => self.take_all(report),
                () = store.delivery_wakeup().changed() => true,
                () = tokio::time::sleep(wait) => true,
            };
            wait = if poll_now { self.poll().await } else { wait.saturating_sub(woken.elapsed()) };
        }
    }

    /// Stores the outcomes that are left, and those of what still runs.
    async fn drain(&mut self) {
        loop {
            for (tenant, outcomes) in self.outcomes() {
                self.start(Batch::last(tenant, outcomes));
            }
            if self.in_flight.total() == 0 && self.busy.is_empty() {
                return;
            }
            if let Some(report) = self.reports.recv().await {
                self.take_all(report);
            }
        }
    }

    /// Takes in this report and all others that have come; whether there may be something to do now.
    fn take_all(&mut self, first: Report) -> bool {
        let mut poll_now = self.take(first);
        while let Ok(report) = self.reports.try_recv() {
            poll_now |= self.take(report);
        }
        poll_now
    }

    fn take(&mut self, report: Report) -> bool {
        match report {
            Report::Ended(outcome) => {
                self.in_flight.end(&outcome);
                self.metrics.attempt(&outcome.log, outcome.log.started_at.since(outcome.delivery.created_at));
                let tenant = outcome.delivery.tenant_id;
                self.ended.entry(tenant).or_default().push(*outcome);
                !self.busy.contains(&tenant)
            }
            Report::Over(batch, begun) => {
                self.busy.remove(&batch.tenant_id);
                self.in_flight.began(&batch, begun.as_ref().map_or(&[], |begun| &begun.attempts));
                self.metrics.in_flight(self.in_flight.total());
                match begun {
                    Ok(BatchResult { attempts, paused }) => {
                        for subscription in paused {
                            self.metrics.subscription_paused();
                            tracing::warn!(tenant = %batch.tenant_id, %subscription, "paused after ten failures in a row");
                        }
                        self.begin(attempts);
                    }
                    Err(left) => drop(self.ended.entry(batch.tenant_id).or_default().splice(0..0, left)),
                }
                true
            }
        }
    }

    /// The outcomes that can be stored now.
    fn outcomes(&mut self) -> BTreeMap<TenantId, Vec<Outcome>> {
        let mut now = BTreeMap::new();
        for (tenant, outcomes) in self.ended.iter_mut().filter(|(tenant, _)| !self.busy.contains(*tenant)) {
            now.insert(*tenant, outcomes.drain(..outcomes.len().min(BATCH)).collect());
        }
        self.ended.retain(|_, outcomes| !outcomes.is_empty());
        now
    }

    /// Starts the rounds that there is a reason for. Returns how long there is nothing else to do.
    async fn poll(&mut self) -> Duration {
        let mut due_work = match self.store.read("deliver.due_work", |tx| Box::pin(engine::poll(tx))).await {
            Ok(due_work) => due_work,
            Err(reason) => {
                tracing::error!(error = %reason, "deliveries wait for the store");
                return STORE_PAUSE;
            }
        };
        self.metrics.overdue(due_work.first.map_or(Duration::ZERO, |first| due_work.now.since(first)));
        due_work.leave_out(|tenant| self.busy.contains(&tenant));
        let outcomes = self.outcomes();
        for batch in self.in_flight.plan(&self.policy, &due_work, outcomes) {
            self.start(batch);
        }
        due_work.next().map_or(POLL_INTERVAL, |next| next.since(due_work.now).min(POLL_INTERVAL))
    }

    fn start(&mut self, batch: Batch) {
        self.busy.insert(batch.tenant_id);
        let (store, policy, report) = (Arc::clone(&self.store), Arc::clone(&self.policy), self.report.clone());
        let batch = Arc::new(batch);
        tokio::spawn(async move {
            let begun = match run_batch(&*store, &policy, &batch).await {
                Ok(begun) => Ok(begun),
                Err(reason) => {
                    tracing::error!(error = %reason, tenant = %batch.tenant_id, outcomes = batch.outcomes.len(), "a round failed");
                    tokio::time::sleep(STORE_PAUSE).await;
                    Err(singly(&*store, &policy, &batch, &reason).await)
                }
            };
            // The receiver goes only with the sender itself; leases then bring back what was begun.
            let _ = report.send(Report::Over(batch, begun));
        });
    }

    fn begin(&self, attempts: Vec<Attempt>) {
        let now = self.store.env().now();
        for attempt in attempts {
            let (client, report) = (Arc::clone(&self.client), self.report.clone());
            tokio::spawn(async move {
                let (delivery, span) = (attempt.delivery.clone(), telemetry::attempt_span(&attempt.delivery));
                let outcome = tokio::spawn(client.attempt(attempt).instrument(span.clone())).await;
                let outcome = outcome.unwrap_or_else(|error| broken(delivery, now, &error));
                telemetry::attempted(&span, &outcome.log);
                let _ = report.send(Report::Ended(Box::new(outcome)));
            });
        }
    }
}

async fn run_batch(store: &dyn Store, policy: &Arc<Policy>, batch: &Arc<Batch>) -> Result<BatchResult, Error> {
    let (policy, batch) = (Arc::clone(policy), Arc::clone(batch));
    let begun = store.write("deliver.batch", move |tx| {
        let (policy, batch) = (Arc::clone(&policy), Arc::clone(&batch));
        Box::pin(async move { engine::run_batch(tx, &policy, &batch).await })
    });
    begun.await
}

/// What is left of the outcomes of a round that failed. While the store is away, all; otherwise something in the round
/// is at fault, and each is stored by itself, so that what is sound is. What is not is dropped, and its delivery comes
/// back when its lease ends.
async fn singly(store: &dyn Store, policy: &Arc<Policy>, batch: &Batch, reason: &Error) -> Vec<Outcome> {
    if matches!(reason, Error::Store(reason) if reason.is_transient()) {
        return batch.outcomes.clone();
    }
    let mut left = Vec::new();
    for outcome in &batch.outcomes {
        let alone = Arc::new(Batch::last(batch.tenant_id, vec![outcome.clone()]));
        match run_batch(store, policy, &alone).await {
            Ok(_) => {}
            Err(Error::Store(reason)) if reason.is_transient() => left.push(outcome.clone()),
            Err(reason) => {
                tracing::error!(error = %reason, delivery = %outcome.delivery.id, "an outcome cannot be stored")
            }
        }
    }
    left
}

/// A fault of the courier is a failed attempt, so that its place in flight is free again.
fn broken(delivery: Delivery, started_at: Timestamp, reason: &JoinError) -> Outcome {
    let log = AttemptLog {
        attempt: delivery.attempts,
        started_at,
        duration_ms: 0,
        status: 0,
        error: Some(format!("{}: {reason}", FailureClass::Reset)),
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    };
    Outcome { delivery, log, retry_after: None }
}
