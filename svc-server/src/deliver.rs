//! The webhook sender of this process: drives svc-core's [delivery engine](svc_core::webhooks::engine) over HTTP.
//!
//! One loop polls for due work in a read transaction, runs one batch per tenant, each in a write transaction of its own,
//! and makes the claimed attempts concurrently. While the batch of a tenant commits, further outcomes of that tenant are
//! collected for its next batch. So batches grow with the load, and no tenant waits for another.
//!
//! The loop polls again when a commit of this process has made a delivery due, when an attempt or a batch ends, when the
//! next endpoint becomes due, and at least once a second, which finds what other processes have committed.

mod client;
mod echoes;
mod failure_log;
mod pacer;
mod parts;
pub(crate) mod tls;
mod tokens;

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use svc_core::error::Error;
use svc_core::store::{Endpoint, Store};
use svc_core::values::{TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog, Delivery};
use svc_core::webhooks::engine::{self, Attempt, AttemptResult, Batch, BatchResult, InFlight, Policy};
use svc_core::webhooks::statistics::{self, AttemptCounter};
use svc_core::webhooks::subscriptions::SubscriptionId;
use tokio::sync::mpsc;
use tracing::{Instrument as _, Span, field};

pub use self::client::HttpWebhookClient;
use self::failure_log::FailureLog;
use self::pacer::Pacer;
use self::parts::Parts;
use crate::metrics::Metrics;
use crate::telemetry::SPANS;

/// The longest time between two polls, and so the longest delay until a commit of another process is found.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The highest number of outcomes in one batch.
const MAX_BATCH_OUTCOMES: usize = 256;
/// How many endpoints have their waits bounded at a time, so that other transactions wait for a short time only.
const ENDPOINTS_PER_STEP: u32 = 64;
/// How often the counts of attempts are written, for charts.
const COUNTS_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after a failed transaction.
const STORE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Makes delivery attempts. [`HttpWebhookClient`] is the implementation over HTTP; a test can count or fail attempts
/// instead.
pub trait WebhookClient: Send + Sync + 'static {
    /// Sends one delivery to its endpoint and returns the outcome. A failure of any kind is an outcome as well, with its
    /// error in the log. The implementation ends every attempt within the timeout of the [`Policy`], before its lease does.
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, AttemptResult>;

    /// Gets a document by the same rules: from an address that was checked, without redirects, and no more than 64 KiB. A client
    /// that does not implement it gets none.
    ///
    /// # Errors
    ///
    /// The failure, in words.
    fn get(&self, url: WebhookUrl) -> BoxFuture<'static, Result<Bytes, String>> {
        let _ = url;
        Box::pin(std::future::ready(Err("this server gets no documents".to_owned())))
    }

    /// Sends one request by the same rules, to try an endpoint: nothing of it is stored. By default it is an attempt, of which
    /// the headers of the response are not known.
    fn try_endpoint(&self, attempt: Attempt) -> BoxFuture<'static, Trial> {
        let attempt = self.attempt(attempt);
        Box::pin(async move { Trial { log: attempt.await.log, headers: HeaderMap::new() } })
    }
}

/// The result of a trial request to an endpoint.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The status, the duration, the error and the beginning of the body, as of an attempt.
    pub log: AttemptLog,
    /// The headers of the response. Empty without a response.
    pub headers: HeaderMap,
}

/// Sends deliveries until `stop` is ready, then waits for the attempts in flight and records their outcomes.
///
/// It waits no longer than `grace`. Attempts that have not ended by then are repeated when their leases end.
pub async fn run(
    store: Arc<dyn Store>,
    policy: Policy,
    client: Arc<dyn WebhookClient>,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()>,
    grace: Duration,
) {
    let (event_sender, event_receiver) = mpsc::unbounded_channel();
    let mut driver = Driver {
        store,
        policy: Arc::new(policy),
        client,
        metrics,
        failure_log: FailureLog::default(),
        parts: Parts::default(),
        poll_error: None,
        in_flight: InFlight::default(),
        pacer: Arc::new(Pacer::new()),
        outcomes: BTreeMap::new(),
        counter: AttemptCounter::default(),
        counts_written_at: tokio::time::Instant::now(),
        running_batches: HashMap::new(),
        event_sender,
        event_receiver,
    };
    driver.run_until(stop).await;
    if tokio::time::timeout(grace, driver.drain()).await.is_err() {
        let attempts = driver.in_flight.attempts();
        let outcomes = driver.outcomes.values().map(Vec::len).chain(driver.running_batches.values().copied());
        let outcomes: usize = outcomes.sum();
        tracing::warn!(
            attempts,
            outcomes,
            "stopped with delivery attempts in flight, or with outcomes that could not be stored; they will be repeated"
        );
    }
    driver.write_counts().await;
    driver.failure_log.finish();
}

/// The state of the loop.
struct Driver {
    store: Arc<dyn Store>,
    policy: Arc<Policy>,
    client: Arc<dyn WebhookClient>,
    metrics: Arc<Metrics>,
    failure_log: FailureLog,
    parts: Parts,
    /// The error of the last poll, which was logged.
    poll_error: Option<Error>,
    in_flight: InFlight,
    pacer: Arc<Pacer>,
    /// The outcomes that wait for the next batch of their tenant.
    outcomes: BTreeMap<TenantId, Vec<AttemptResult>>,
    /// The attempts that wait to be counted in the store.
    counter: AttemptCounter,
    counts_written_at: tokio::time::Instant,
    /// The tenants whose batch is running, each with the number of its outcomes.
    running_batches: HashMap<TenantId, usize>,
    event_sender: mpsc::UnboundedSender<DriverEvent>,
    event_receiver: mpsc::UnboundedReceiver<DriverEvent>,
}

/// The reports of the tasks of attempts and batches to the loop.
enum DriverEvent {
    /// An attempt has ended.
    AttemptFinished(Box<AttemptResult>),
    /// A batch has ended, with its result and, after a failure, with the outcomes that are still to be recorded.
    BatchFinished { batch: Arc<Batch>, result: BatchResult, unrecorded: Vec<AttemptResult> },
}

impl Driver {
    async fn run_until(&mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut wait = Duration::ZERO;
        loop {
            let store = Arc::clone(&self.store);
            let waiting_since = tokio::time::Instant::now();
            let poll_now = tokio::select! {
                biased;
                () = &mut stop => return,
                Some(event) = self.event_receiver.recv() => self.handle_all(event),
                // The pause after a failed poll is not shortened by each write.
                () = store.delivery_wakeup().notified(), if self.poll_error.is_none() => true,
                () = tokio::time::sleep(wait) => {
                    wait = self.poll().await;
                    continue;
                }
            };
            let poll_now = poll_now && self.poll_error.is_none();
            wait = if poll_now { self.poll().await } else { wait.saturating_sub(waiting_since.elapsed()) };
        }
    }

    /// Records the collected outcomes and those of the attempts in flight. Claims nothing.
    async fn drain(&mut self) {
        loop {
            for (tenant, outcomes) in self.take_outcomes() {
                self.spawn_batch(Batch::outcomes_only(tenant, outcomes));
            }
            if self.in_flight.total() == 0 && self.running_batches.is_empty() {
                return;
            }
            if let Some(event) = self.event_receiver.recv().await {
                self.handle_all(event);
            }
        }
    }

    /// Handles this event and all others that have arrived. Returns whether to poll now.
    fn handle_all(&mut self, first: DriverEvent) -> bool {
        let mut poll_now = self.handle(first);
        while let Ok(event) = self.event_receiver.try_recv() {
            poll_now |= self.handle(event);
        }
        poll_now
    }

    fn handle(&mut self, event: DriverEvent) -> bool {
        match event {
            DriverEvent::AttemptFinished(outcome) => {
                self.in_flight.attempt_finished(&outcome);
                self.metrics.attempt(&outcome.log, outcome.log.started_at.since(outcome.delivery.created_at));
                let tenant = outcome.delivery.tenant_id;
                self.counter.add(tenant, outcome.delivery.subscription_id, &outcome.log);
                self.outcomes.entry(tenant).or_default().push(*outcome);
                !self.running_batches.contains_key(&tenant)
            }
            DriverEvent::BatchFinished { batch, result, unrecorded } => {
                self.running_batches.remove(&batch.tenant_id);
                self.in_flight.batch_finished(&batch, &result.attempts);
                let now = tokio::time::Instant::now();
                for failure in result.failures {
                    if failure.has_paused {
                        self.metrics.subscription_paused();
                    }
                    self.failure_log.record(failure, now);
                }
                self.spawn_attempts(result.attempts);
                self.metrics.in_flight(self.in_flight.attempts());
                if !unrecorded.is_empty() {
                    self.outcomes.entry(batch.tenant_id).or_default().splice(0..0, unrecorded);
                }
                true
            }
        }
    }

    /// Takes the outcomes of the tenants that have no running batch.
    fn take_outcomes(&mut self) -> BTreeMap<TenantId, Vec<AttemptResult>> {
        let mut taken = BTreeMap::new();
        let idle = self.outcomes.iter_mut().filter(|(tenant, _)| !self.running_batches.contains_key(*tenant));
        for (tenant, outcomes) in idle {
            taken.insert(*tenant, outcomes.drain(..outcomes.len().min(MAX_BATCH_OUTCOMES)).collect());
        }
        self.outcomes.retain(|_, outcomes| !outcomes.is_empty());
        taken
    }

    /// Polls once and starts the batches that follow from it. Returns how long to wait for the next poll.
    async fn poll(&mut self) -> Duration {
        self.failure_log.end_minutes(tokio::time::Instant::now());
        if self.counts_written_at.elapsed() >= COUNTS_INTERVAL {
            tokio::spawn(self.write_counts());
        }
        let store = Arc::clone(&self.store);
        let mut due_work = match self.parts.poll(&*store).await {
            Ok(due_work) => due_work,
            Err(error) => {
                if self.poll_error.replace(error.clone()).as_ref() != Some(&error) {
                    tracing::error!(%error, "cannot read the due deliveries; trying again");
                }
                return STORE_RETRY_DELAY;
            }
        };
        if self.poll_error.take().is_some() {
            tracing::info!("the due deliveries can be read again");
        }
        let earliest_due_at = due_work.earliest_due_at;
        self.metrics.overdue(earliest_due_at.map_or(Duration::ZERO, |due_at| due_work.now.since(due_at)));
        due_work.exclude_tenants(|tenant| self.running_batches.contains_key(&tenant));
        let outcomes = self.take_outcomes();
        for batch in self.in_flight.plan(&self.policy, &due_work, outcomes) {
            self.spawn_batch(batch);
        }
        if self.in_flight.must_bound_waits() {
            tokio::spawn(bound_waits(Arc::clone(&self.store), Arc::clone(&self.policy)));
        }
        due_work.next_due_at().map_or(POLL_INTERVAL, |due_at| due_at.since(due_work.now).min(POLL_INTERVAL))
    }

    /// Writes the counts of attempts. Charts lack what the store does not take, and nothing else.
    fn write_counts(&mut self) -> impl Future<Output = ()> + use<> {
        self.counts_written_at = tokio::time::Instant::now();
        let (store, counts) = (Arc::clone(&self.store), self.counter.take());
        async move {
            if let Err(error) = statistics::record(&*store, &counts).await {
                tracing::warn!(%error, "cannot write the statistics of deliveries; their charts lack the last seconds");
            }
        }
    }

    fn spawn_batch(&mut self, batch: Batch) {
        self.running_batches.insert(batch.tenant_id, batch.outcomes.len());
        let (store, policy, event_sender) =
            (Arc::clone(&self.store), Arc::clone(&self.policy), self.event_sender.clone());
        let batch = Arc::new(batch);
        tokio::spawn(async move {
            let (result, unrecorded) = match run_batch(&*store, &policy, &batch).await {
                Ok(result) => (result, Vec::new()),
                Err(error) => {
                    let (tenant, outcomes) = (batch.tenant_id, batch.outcomes.len());
                    tracing::error!(%error, %tenant, outcomes, "a batch of deliveries failed");
                    tokio::time::sleep(STORE_RETRY_DELAY).await;
                    record_singly(&*store, &policy, &batch, &error).await
                }
            };
            // The receiver is gone only when the driver has ended. The leases then make the deliveries due again.
            let _ = event_sender.send(DriverEvent::BatchFinished { batch, result, unrecorded });
        });
    }

    fn spawn_attempts(&self, attempts: Vec<Attempt>) {
        let now = self.store.env().now();
        for attempt in attempts {
            let (client, event_sender) = (Arc::clone(&self.client), self.event_sender.clone());
            // An endpoint that may hang takes no place, as the others would wait for it.
            let succeeds = self.in_flight.has_grown_window(attempt.delivery.subscription_id);
            let pacer = succeeds.then(|| Arc::clone(&self.pacer));
            tokio::spawn(async move {
                let (delivery, span) = (attempt.delivery.clone(), attempt_span(&attempt.delivery));
                let attempt = async move {
                    if !attempt.options.delay.is_zero() {
                        tokio::time::sleep(attempt.options.delay).await;
                    }
                    match pacer {
                        Some(pacer) => pacer.run(|| client.attempt(attempt)).await,
                        None => client.attempt(attempt).await,
                    }
                }
                .instrument(span.clone());
                let outcome = AssertUnwindSafe(attempt).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|panic| client_panicked(delivery, now, &*panic));
                record_attempt(&span, &outcome.log);
                let _ = event_sender.send(DriverEvent::AttemptFinished(Box::new(outcome)));
            });
        }
    }
}

/// Bounds the waits of all endpoints, a few at a time.
async fn bound_waits(store: Arc<dyn Store>, policy: Arc<Policy>) {
    let mut after = None;
    loop {
        let next = store.read("deliver.scheduled_endpoints", after, async |tx, &after| {
            Ok(tx.scheduled_endpoints(after, ENDPOINTS_PER_STEP).await?)
        });
        let result = match next.await {
            Ok(endpoints) if endpoints.is_empty() => return,
            Ok(endpoints) => bound_waits_of(&*store, &policy, &endpoints).await.map(|()| endpoints.last().copied()),
            Err(error) => Err(error),
        };
        match result {
            Ok(last) => after = last,
            Err(error) => {
                tracing::error!(%error, "cannot bound the waits of deliveries; trying again");
                tokio::time::sleep(STORE_RETRY_DELAY).await;
            }
        }
    }
}

/// Bounds the waits of some endpoints, in one transaction for each tenant.
async fn bound_waits_of(store: &dyn Store, policy: &Arc<Policy>, endpoints: &[Endpoint]) -> Result<(), Error> {
    for of_tenant in endpoints.chunk_by(|a, b| a.tenant_id == b.tenant_id) {
        let tenant = of_tenant[0].tenant_id;
        let subscriptions: Arc<[SubscriptionId]> = of_tenant.iter().map(|endpoint| endpoint.subscription_id).collect();
        let policy = Arc::clone(policy);
        let bound = store.write(
            "deliver.bound_waits",
            (policy, tenant, subscriptions),
            async |tx, (policy, tenant, subscriptions)| engine::bound_waits(tx, policy, *tenant, subscriptions).await,
        );
        bound.await?;
    }
    Ok(())
}

async fn run_batch(store: &dyn Store, policy: &Arc<Policy>, batch: &Arc<Batch>) -> Result<BatchResult, Error> {
    let (policy, batch) = (Arc::clone(policy), Arc::clone(batch));
    let result = store.write("deliver.batch", (policy, batch), async |tx, (policy, batch)| {
        engine::run_batch(tx, policy, batch).await
    });
    result.await
}

/// Returns what could be done of a failed batch, and its outcomes that are still to be recorded.
///
/// While the store is unavailable, these are all outcomes. Otherwise one of them is the cause of the failure, so each is
/// recorded in a transaction of its own. One that cannot be recorded is dropped, and its delivery becomes due again when
/// its lease ends.
async fn record_singly(
    store: &dyn Store,
    policy: &Arc<Policy>,
    batch: &Batch,
    error: &Error,
) -> (BatchResult, Vec<AttemptResult>) {
    let (mut recorded, mut unrecorded) = (BatchResult::default(), Vec::new());
    if matches!(error, Error::Store(error) if error.is_transient()) {
        return (recorded, batch.outcomes.clone());
    }
    for outcome in &batch.outcomes {
        let single = Arc::new(Batch::outcomes_only(batch.tenant_id, vec![outcome.clone()]));
        match run_batch(store, policy, &single).await {
            Ok(result) => recorded.failures.extend(result.failures),
            Err(Error::Store(error)) if error.is_transient() => unrecorded.push(outcome.clone()),
            Err(error) => {
                let (tenant, delivery) = (batch.tenant_id, outcome.delivery.id);
                tracing::error!(%error, %tenant, %delivery, "cannot record the outcome of a delivery attempt");
            }
        }
    }
    (recorded, unrecorded)
}

/// Returns the outcome of an attempt whose client panicked: a failed attempt, so that its capacity is freed.
fn client_panicked(delivery: Delivery, started_at: Timestamp, panic: &(dyn Any + Send)) -> AttemptResult {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str));
    let mut log = AttemptLog {
        attempt: delivery.attempts,
        started_at,
        duration_ms: 0,
        status: 0,
        error: None,
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    };
    log.fail(AttemptCause::SenderFailed, format_args!("the client panicked: {}", message.unwrap_or("no message")));
    AttemptResult { delivery, log, retry_after: None }
}

/// Creates the span of a delivery attempt. It starts a trace of its own, because the request that caused the event has
/// ended by then.
fn attempt_span(delivery: &Delivery) -> Span {
    tracing::debug_span!(
        target: SPANS,
        "delivery",
        otel.kind = "client",
        otel.status_code = field::Empty,
        http.response.status_code = field::Empty,
        tenant = %delivery.tenant_id,
        delivery = %delivery.id,
        subscription = %delivery.subscription_id,
        event = delivery.kind.as_str(),
        attempt = delivery.attempts,
        error = field::Empty,
    )
}

/// Adds the outcome of a delivery attempt to its span.
fn record_attempt(span: &Span, log: &AttemptLog) {
    if log.status > 0 {
        span.record("http.response.status_code", log.status);
    }
    if let Some(error) = &log.error {
        span.record("error", error.as_str()).record("otel.status_code", "ERROR");
    }
}
