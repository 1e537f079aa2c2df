//! Deliveries: one event on its way to one subscription (decisions §7).
//!
//! A delivery is `pending` with a due time until an attempt is answered with 2xx (`succeeded`), its retries are
//! used up (`failed`), or its subscription stops taking deliveries (`held`). Whoever makes an attempt first
//! takes a lease: a token, and a due time that lies behind the longest attempt. Only the holder of the token
//! can store the outcome, and when it never comes, the delivery is due again by itself.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use uuid::Uuid;

use crate::accounts::audit::{self, Object};
use crate::env::time_of_id;
use crate::error::Error;
use crate::resources::crud;
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{TenantId, TextEnum, Timestamp};
use crate::webhooks::events::Event;
use crate::webhooks::subscriptions::WebhookSubscription;

/// Failed attempts in a row after which a subscription is paused.
pub const PAUSE_AFTER: u32 = 10;

/// The longest wait that a `Retry-After` can ask for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(4 * 60 * 60);

/// The status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum DeliveryStatus {
    /// An attempt is due at `next_attempt_at`, or is being made.
    Pending,
    /// The endpoint responded with a status of 2xx.
    Succeeded,
    /// All attempts of the retry schedule failed. A replay sends the delivery again.
    Failed,
    /// The subscription is disabled, paused or deleted. A replay sends the delivery, unless the subscription is
    /// deleted.
    Held,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum FailureClass {
    /// The host name could not be resolved.
    Dns,
    /// The connection could not be established.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The attempt took longer than its deadline.
    Timeout,
    /// The connection was lost before the response was complete.
    Reset,
    /// An address of the host is not public, so nothing was sent.
    Blocked,
    /// The endpoint responded with a status other than 2xx.
    Status,
}

/// Deliveries that a [`Backlog`] counts at most.
pub const BACKLOG_COUNTED: u32 = 10_000;

/// The deliveries of all tenants in one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many there are; [`BACKLOG_COUNTED`] stands for so many or more.
    pub deliveries: u64,
    /// When the oldest event of those that were counted happened.
    pub oldest: Option<Timestamp>,
}

/// One event on its way to one subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The same on every attempt.
    pub id: Uuid,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// What is delivered.
    pub event_id: Uuid,
    /// What kind of event that is.
    pub kind: EventKind,
    /// To whom.
    pub subscription_id: Uuid,
    /// How far it is.
    pub status: DeliveryStatus,
    /// Attempts begun, over all replays.
    pub attempts: u32,
    /// Attempts failed since the schedule of retries began.
    pub failures: u32,
    /// What the last attempt came to: an HTTP status, 0 for a network failure, -1 for a blocked address.
    pub last_status: Option<i32>,
    /// When the next attempt is due; `None` unless pending.
    pub next_attempt_at: Option<Timestamp>,
    /// Who makes an attempt right now: an id for the time when that ends at the latest.
    pub lease: Option<Uuid>,
    /// When the event happened.
    pub created_at: Timestamp,
}

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptLog {
    /// Number of the attempt, from 1 on.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
    /// HTTP status, 0 for a network failure or time-out, -1 for a blocked address.
    pub status: i32,
    /// Why it failed: a [`FailureClass`], and after a colon what happened.
    pub error: Option<String>,
    /// The first 16 KiB of the answer's body.
    pub response_body: Option<String>,
    /// Whether the body went on.
    pub response_truncated: bool,
    /// The address that was dialled.
    pub remote_addr: Option<String>,
}

impl AttemptLog {
    /// Whether the endpoint took the delivery.
    pub fn succeeded(&self) -> bool {
        self.summary().succeeded()
    }

    /// The little that statistics need of it.
    pub fn summary(&self) -> AttemptSummary {
        AttemptSummary { status: self.status, failed: self.error.is_some(), duration_ms: self.duration_ms }
    }
}

/// The little that statistics need of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptSummary {
    /// HTTP status, 0 for a network failure or time-out, -1 for a blocked address.
    pub status: i32,
    /// Whether an error was noted.
    pub failed: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
}

impl AttemptSummary {
    /// Whether the endpoint took the delivery.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.status) && !self.failed
    }
}

/// The waits before the retries of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySchedule(Vec<Duration>);

impl Default for RetrySchedule {
    /// 1, 4, 16, 64 and 240 minutes.
    fn default() -> Self {
        Self([1, 4, 16, 64, 240].map(|minutes| Duration::from_secs(minutes * 60)).to_vec())
    }
}

impl RetrySchedule {
    /// These waits, one per retry.
    pub fn new(waits: Vec<Duration>) -> Self {
        Self(waits)
    }

    /// The wait after the `failures`th failure, with 0 to 10 % added by `jitter` (0 to 255), and at least
    /// what the endpoint asked for. `None` when the retries are used up.
    ///
    /// ```
    /// use std::time::Duration;
    /// let schedule = svc_core::webhooks::deliveries::RetrySchedule::default();
    /// assert_eq!(schedule.wait(1, 0, None), Some(Duration::from_secs(60)));
    /// assert_eq!(schedule.wait(5, 255, None), Some(Duration::from_secs(264 * 60)));
    /// assert_eq!(schedule.wait(6, 0, None), None);
    /// ```
    pub fn wait(&self, failures: u32, jitter: u8, retry_after: Option<Duration>) -> Option<Duration> {
        let index = usize::try_from(failures.checked_sub(1)?).ok()?;
        let wait = *self.0.get(index)?;
        let wait = wait.saturating_add(wait.saturating_mul(u32::from(jitter)) / 2550);
        Some(wait.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)))
    }
}

impl Delivery {
    /// A delivery of `event`, due at once unless its subscription is paused.
    pub fn new(id: Uuid, event: &Event, subscription: Uuid, paused: bool) -> Self {
        Self {
            id,
            tenant_id: event.tenant_id,
            event_id: event.id,
            kind: event.kind,
            subscription_id: subscription,
            status: if paused { DeliveryStatus::Held } else { DeliveryStatus::Pending },
            attempts: 0,
            failures: 0,
            last_status: None,
            next_attempt_at: (!paused).then_some(event.created_at),
            lease: None,
            created_at: event.created_at,
        }
    }

    /// Where it goes: a subscription of a tenant.
    pub fn endpoint(&self) -> (TenantId, Uuid) {
        (self.tenant_id, self.subscription_id)
    }

    /// Begins an attempt: its number counts, and until the lease ends nobody else begins one.
    pub fn begin(&mut self, lease: Uuid, lease_ends: Timestamp) {
        self.attempts += 1;
        self.lease = Some(lease);
        self.next_attempt_at = Some(lease_ends);
    }

    /// Ends an attempt. `wait` is that before the next, if there is to be one; a subscription that takes no
    /// deliveries any more holds what would have been tried again.
    pub fn end(&mut self, log: &AttemptLog, wait: Option<Duration>, now: Timestamp, taking: bool) {
        self.lease = None;
        self.last_status = Some(log.status);
        self.next_attempt_at = None;
        self.status = if log.succeeded() {
            DeliveryStatus::Succeeded
        } else {
            match wait {
                None => DeliveryStatus::Failed,
                Some(_) if !taking => DeliveryStatus::Held,
                Some(wait) => {
                    self.next_attempt_at = Some(now.checked_add(wait).unwrap_or(now));
                    DeliveryStatus::Pending
                }
            }
        };
    }

    /// When the attempt that is being made ends at the latest; `None` when none is.
    pub fn busy_until(&self, now: Timestamp) -> Option<Timestamp> {
        // What was held meanwhile has no due time, but its lease still says.
        let ends = self.next_attempt_at.or(self.lease.map(time_of_id));
        ends.filter(|ends| self.lease.is_some() && *ends > now)
    }

    /// Starts the schedule anew, with an attempt due at once; one that is being made is its first.
    pub fn replay(&mut self, now: Timestamp) {
        let busy_until = self.busy_until(now);
        self.status = DeliveryStatus::Pending;
        self.failures = 0;
        self.lease = self.lease.filter(|_| busy_until.is_some());
        self.next_attempt_at = busy_until.or(Some(now));
    }
}

/// Sends one delivery again: its id stays, its attempts go on counting, its retries start anew.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when its subscription is deleted or disabled, or an attempt is
/// being made.
pub async fn replay(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Delivery, Error> {
    crud::advance_clock(tx, tenant).await?;
    let now = tx.env().now();
    let mut delivery = tx.delivery(tenant, id).await?.ok_or(Error::NotFound)?;
    let subscription = Repository::<WebhookSubscription>::get(tx, tenant, delivery.subscription_id).await?;
    if !subscription.is_some_and(|subscription| subscription.sends()) {
        let reason = "The subscription of this delivery is deleted or disabled; enable it first.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    if delivery.busy_until(now).is_some() {
        return Err(Error::NotAllowed("An attempt at this delivery is being made right now.".to_owned()));
    }
    let lease = delivery.lease;
    delivery.replay(now);
    tx.update_delivery(&delivery, lease).await?;
    tx.schedule_endpoint_by(tenant, delivery.subscription_id, now).await?;
    audit::record::<()>(tx, tenant, "replay", Object { kind: "delivery", id }, None, None).await?;
    Ok(delivery)
}

/// Tells the sender of this process that a commit brought something to send, so that it need not wait for
/// its next look.
#[derive(Debug, Default)]
pub struct DeliveryWakeup {
    marked: AtomicBool,
    released: AtomicBool,
    waker: AtomicWaker,
}

impl DeliveryWakeup {
    /// A transaction has something to send.
    pub fn mark(&self) {
        self.marked.store(true, Ordering::Release);
    }

    /// Whether the transaction that ends here has marked, for the store to release once it is committed.
    pub fn unmark(&self) -> bool {
        self.marked.swap(false, Ordering::AcqRel)
    }

    /// What was marked is committed.
    pub fn release(&self) {
        self.released.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Waits until something was released since the last call. For one waiter.
    pub async fn changed(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            if self.released.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests;
