//! The webhook sender: drives svc-core's delivery engine.
//!
//! One loop: store the outcomes that have come and begin what is due, in one write job, then make the attempts
//! side by side. While the job commits further outcomes gather, so a busy sender batches by itself. It wakes
//! when a commit of this process has something to send, when an attempt ends, when the next turn comes, and
//! once a second for what other processes wrote.

mod client;
mod dial;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use svc_core::deliveries::{AttemptLog, Delivery, FailureClass};
use svc_core::sender::{self, Attempt, InFlight, Outcome, Policy, Step};
use svc_core::store::Store;
use svc_core::types::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinError;

pub use self::client::HttpCourier;

/// The longest sleep: what other processes wrote is found within it.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Outcomes that one step stores at most.
const BATCH: usize = 256;
/// The pause after the store failed.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// Makes attempts.
pub trait Courier: Send + Sync + 'static {
    /// Posts a delivery to its endpoint. Every failure is an outcome.
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, Outcome>;
}

/// Sends what is due until `stop` is ready, then waits for what is in flight, at most `grace`.
pub async fn run(
    store: Arc<dyn Store>,
    policy: Policy,
    courier: Arc<dyn Courier>,
    stop: impl Future<Output = ()>,
    grace: Duration,
) {
    let (ended, outcomes) = mpsc::unbounded_channel();
    let in_flight = Arc::new(Mutex::new(InFlight::default()));
    let mut sender = Sender { store, policy: Arc::new(policy), courier, in_flight, ended, outcomes };
    let unsaved = sender.until(stop).await;
    if tokio::time::timeout(grace, sender.drain(unsaved)).await.is_err() {
        tracing::warn!(attempts = sender.running(), "attempts were still running at the end of the grace; they repeat");
    }
}

struct Sender {
    store: Arc<dyn Store>,
    policy: Arc<Policy>,
    courier: Arc<dyn Courier>,
    in_flight: Arc<Mutex<InFlight>>,
    ended: mpsc::UnboundedSender<Outcome>,
    outcomes: mpsc::UnboundedReceiver<Outcome>,
}

impl Sender {
    /// Returns the outcomes that are not stored yet.
    async fn until(&mut self, stop: impl Future<Output = ()>) -> Vec<Outcome> {
        tokio::pin!(stop);
        let mut batch = Vec::with_capacity(BATCH);
        let mut wait = Duration::ZERO;
        loop {
            let store = Arc::clone(&self.store);
            tokio::select! {
                biased;
                () = &mut stop => return batch,
                Some(outcome) = self.outcomes.recv(), if batch.is_empty() => self.end(outcome, &mut batch),
                () = store.outgoing().changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
            wait = self.step(&mut batch, true).await;
        }
    }

    /// Stores these outcomes, and those of what still runs.
    async fn drain(&mut self, mut batch: Vec<Outcome>) {
        while self.running() > 0 || !batch.is_empty() {
            if batch.is_empty()
                && let Some(outcome) = self.outcomes.recv().await
            {
                self.end(outcome, &mut batch);
            }
            let pause = self.step(&mut batch, false).await;
            if !batch.is_empty() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// One step, with all outcomes that have come; empties `batch` once it is stored. Returns how long there is
    /// nothing to do.
    async fn step(&mut self, batch: &mut Vec<Outcome>, begin: bool) -> Duration {
        while batch.len() < BATCH
            && let Ok(outcome) = self.outcomes.try_recv()
        {
            self.end(outcome, batch);
        }
        let outcomes: Arc<[Outcome]> = batch.as_slice().into();
        let (policy, in_flight) = (Arc::clone(&self.policy), Arc::clone(&self.in_flight));
        let step = self.store.write("deliver", move |tx| {
            let (policy, outcomes, in_flight) = (Arc::clone(&policy), Arc::clone(&outcomes), Arc::clone(&in_flight));
            Box::pin(async move { sender::step(tx, &policy, &outcomes, begin.then_some(&*in_flight)).await })
        });
        match step.await {
            Ok(Step { attempts, next }) => {
                batch.clear();
                self.begin(attempts);
                let now = self.store.env().now();
                next.map_or(LOOK_EVERY, |next| next.since(now).min(LOOK_EVERY))
            }
            Err(why) => {
                tracing::error!(%why, outcomes = batch.len(), "deliveries wait for the store");
                STORE_PAUSE
            }
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> usize {
        self.in_flight().total()
    }

    fn begin(&self, attempts: Vec<Attempt>) {
        self.in_flight().begin(&attempts);
        let now = self.store.env().now();
        for attempt in attempts {
            let (courier, ended) = (Arc::clone(&self.courier), self.ended.clone());
            tokio::spawn(async move {
                let delivery = attempt.delivery.clone();
                let outcome = tokio::spawn(courier.attempt(attempt)).await;
                // The receiver goes only with the sender itself; the lease then brings the delivery back.
                let _ = ended.send(outcome.unwrap_or_else(|why| broken(delivery, now, &why)));
            });
        }
    }

    fn end(&self, outcome: Outcome, batch: &mut Vec<Outcome>) {
        self.in_flight().end(&outcome);
        batch.push(outcome);
    }
}

/// A fault of the courier is a failed attempt, so that its place in flight is free again.
fn broken(delivery: Delivery, started_at: Timestamp, why: &JoinError) -> Outcome {
    let log = AttemptLog {
        attempt: delivery.attempts,
        started_at,
        duration_ms: 0,
        status: 0,
        error: Some(format!("{}: {why}", FailureClass::Reset)),
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    };
    Outcome { delivery, log, retry_after: None }
}
