//! The sender of a stream: takes its lease, publishes batches, and moves its positions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use uuid::Uuid;

use super::batch::{self, AccountBatch};
use super::{Message, Stream, StreamKey};
use crate::env::Env;
use crate::error::Error;
use crate::store::Store;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::events::EventId;

/// How long a lease lasts. Another process takes over so long after the one that sent has ended without giving it back.
pub const LEASE: Duration = Duration::from_secs(20);
/// How long an [`Broker`] may take for a message, with its connection. So much of a lease has to be left for one to be published.
pub const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a process without the lease looks whether it is free.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The wait after the first failure. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The place that the messages of a stream are published to.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Publishes the first of some messages of one account, at least one, and returns how many there were once the broker has
    /// stored all of them. They must not be empty.
    ///
    /// It publishes several only if the broker stores them in their order and all or none of them. It takes less
    /// than [`MESSAGE_TIMEOUT`].
    ///
    /// # Errors
    /// [`PublishError`]. Some of the messages may have been stored nevertheless.
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError>;
}

/// Why messages were not published, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The broker does not take this message. The account waits, and the others go on.
    #[error("the broker refuses the message: {0}")]
    Refused(String),
    /// The broker cannot be reached or takes no message. All accounts wait.
    #[error("the broker is not available: {0}")]
    Unavailable(String),
}

/// A message that was not published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The tenant of the event.
    pub tenant_id: TenantId,
    /// The event.
    pub event_id: EventId,
    /// The error.
    pub error: PublishError,
}

/// When the next step is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once, as there is more to send.
    Now,
    /// When something may have been written.
    Poll,
    /// After a failure, or without the lease, when this time has passed.
    Wait(Duration),
}

/// The effect of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// Whether this process has the lease. Without it, nothing was done.
    pub is_held: bool,
    /// The number of messages that were confirmed.
    pub sent: u64,
    /// The messages that were not published, one of each account at most.
    pub failures: Vec<Failure>,
    /// When the next step is to be taken.
    pub next: Next,
}

impl StepReport {
    fn idle(is_held: bool, next: Next) -> Self {
        Self { is_held, sent: 0, failures: Vec::new(), next }
    }
}

/// An account whose next message the broker refuses.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    failures: u32,
    until: Timestamp,
}

/// The knowledge of a process about a stream that it sends, or would send if no other did.
#[derive(Debug)]
pub struct Sender {
    key: StreamKey,
    lease: Uuid,
    lease_ends_at: Option<Timestamp>,
    after: Option<TenantId>,
    /// How many steps in a row found the broker unavailable.
    failures: u32,
    refused: BTreeMap<TenantId, Refusal>,
}

impl Sender {
    /// Returns a sender of a stream. That of the server is made by the first step, and begins then.
    pub fn new(env: &Env, key: StreamKey) -> Self {
        let (lease, refused) = (env.id(env.now()), BTreeMap::new());
        Self { key, lease, lease_ends_at: None, after: None, failures: 0, refused }
    }

    /// Takes the lease if it is free, publishes the next messages, and moves the positions over those that were confirmed.
    ///
    /// # Errors
    /// [`Error::Store`]. Messages whose position was not stored are published again.
    ///
    /// # Cancel safety
    /// A step that is dropped leaves messages that are published again.
    pub async fn step(&mut self, store: &dyn Store, broker: &dyn Broker) -> Result<StepReport, Error> {
        let Some(lease_ends_at) = self.hold(store).await? else {
            return Ok(StepReport::idle(false, Next::Wait(LOOK_AGAIN)));
        };
        let now = store.env().now();
        let waiting = self.refused.iter().filter(|(_, refusal)| refusal.until > now).map(|(tenant, _)| *tenant);
        let except: BTreeSet<TenantId> = waiting.collect();
        let input = (self.key, self.after, except);
        let batch = store
            .read("streams.read", input, async |tx, (key, after, except)| batch::read(tx, *key, *after, except).await);
        let Some(batch) = batch.await? else {
            self.lease_ends_at = None;
            return Ok(StepReport::idle(false, Next::Wait(LOOK_AGAIN)));
        };
        let deadline = lease_ends_at.minus(MESSAGE_TIMEOUT);
        let published = join_all(batch.accounts.iter().map(|account| publish(broker, store.env(), account, deadline)));
        let published = published.await;

        let mut report = StepReport::idle(true, if batch.has_more { Next::Now } else { Next::Poll });
        let mut positions = Vec::with_capacity(batch.accounts.len());
        for (account, (confirmed, error)) in batch.accounts.iter().zip(published) {
            report.sent += confirmed as u64;
            if confirmed > 0 || account.messages.is_empty() {
                positions.push((account.tenant_id, account.is_sandbox, account.position(confirmed)));
                self.refused.remove(&account.tenant_id);
            }
            let event_id = account.messages.get(confirmed).map(|message| message.event.id);
            if error.is_none() && event_id.is_some() {
                report.next = Next::Now;
            }
            if let Some((error, event_id)) = error.zip(event_id) {
                report.failures.push(Failure { tenant_id: account.tenant_id, event_id, error });
            }
        }
        self.after = batch.after;
        if !positions.is_empty() && !self.advance(store, positions).await? {
            // Another process has the lease, and publishes again what this one did.
            self.lease_ends_at = None;
            return Ok(StepReport { is_held: false, next: Next::Wait(LOOK_AGAIN), ..report });
        }
        self.record_failures(store.env(), &mut report);
        Ok(report)
    }

    /// Gives the lease back, so that another process takes over at once.
    ///
    /// # Errors
    /// [`Error::Store`]; the lease then ends by itself.
    pub async fn release(&mut self, store: &dyn Store) -> Result<(), Error> {
        if self.lease_ends_at.take().is_none() {
            return Ok(());
        }
        let release = store.write("streams.release", (self.key, self.lease), async |tx, &(key, lease)| {
            let now = tx.env().now();
            Ok(tx.renew_stream(key, lease, now).await?)
        });
        release.await.map(drop)
    }

    /// Returns when the lease ends that this process has, after it has taken or renewed it if need be.
    async fn hold(&mut self, store: &dyn Store) -> Result<Option<Timestamp>, Error> {
        let now = store.env().now();
        if let Some(ends_at) = self.lease_ends_at.filter(|ends_at| ends_at.minus(LEASE / 2 + FIRST_WAIT) > now) {
            return Ok(Some(ends_at));
        }
        let claim = store.write("streams.claim", (self.key, self.lease), async |tx, &(key, lease)| {
            let now = tx.env().now();
            if key == StreamKey::SERVER && tx.stream(key).await?.is_none() {
                tx.insert_stream(&Stream::new(key, now)).await?;
            }
            let ends_at = now.checked_add(LEASE).unwrap_or(now);
            Ok(tx.claim_stream(key, lease, now, ends_at).await?.then_some(ends_at))
        });
        self.lease_ends_at = None;
        self.lease_ends_at = claim.await?;
        Ok(self.lease_ends_at)
    }

    /// Moves positions forward, unless another process has taken the lease. Returns whether it did.
    /// A sandbox that was deleted meanwhile gets no position: nobody would delete it.
    async fn advance(&mut self, store: &dyn Store, positions: Vec<(TenantId, bool, Timestamp)>) -> Result<bool, Error> {
        let input = (self.key, self.lease, positions);
        let advance = store.write("streams.advance", input, async |tx, (key, lease, positions)| {
            let now = tx.env().now();
            let ends_at = now.checked_add(LEASE).unwrap_or(now);
            if !tx.renew_stream(*key, *lease, ends_at).await? {
                return Ok(None);
            }
            for (tenant, is_sandbox, sent_until) in positions {
                if *is_sandbox && !tx.lock_tenant(*tenant).await? {
                    continue;
                }
                tx.advance_stream(*key, *tenant, *sent_until).await?;
            }
            Ok(Some(ends_at))
        });
        self.lease_ends_at = None;
        self.lease_ends_at = advance.await?;
        Ok(self.lease_ends_at.is_some())
    }

    /// Says how long to wait after the failures of a step, and which accounts wait by themselves.
    fn record_failures(&mut self, env: &Env, report: &mut StepReport) {
        let now = env.now();
        let mut is_unavailable = false;
        for failure in &report.failures {
            match failure.error {
                PublishError::Unavailable(_) => is_unavailable = true,
                PublishError::Refused(_) => {
                    let failures = self.refused.get(&failure.tenant_id).map_or(0, |refusal| refusal.failures);
                    let until = now.checked_add(wait(env, failures)).unwrap_or(now);
                    self.refused.insert(failure.tenant_id, Refusal { failures: failures + 1, until });
                }
            }
        }
        if report.sent > 0 || !is_unavailable {
            self.failures = 0;
        }
        if is_unavailable {
            report.next = Next::Wait(wait(env, self.failures));
            self.failures += 1;
        }
    }
}

/// Publishes the messages of an account in their order until one fails or the time is up. Returns how many were confirmed.
async fn publish(
    broker: &dyn Broker,
    env: &Env,
    account: &AccountBatch,
    deadline: Timestamp,
) -> (usize, Option<PublishError>) {
    let mut confirmed = 0;
    while confirmed < account.messages.len() && env.now() < deadline {
        match broker.publish(&account.messages[confirmed..]).await {
            Ok(published) => confirmed += published.clamp(1, account.messages.len() - confirmed),
            Err(error) => return (confirmed, Some(error)),
        }
    }
    (confirmed, None)
}

/// Returns how long to wait after so many failures and another one: up to twice as long each time, and by chance at least
/// half of that, so that several processes do not come back at the same time.
fn wait(env: &Env, failures: u32) -> Duration {
    let longest = FIRST_WAIT.saturating_mul(1 << failures.min(6)).min(LONGEST_WAIT);
    let [chance] = env.bytes();
    longest / 2 + longest / 2 * u32::from(chance) / 255
}
