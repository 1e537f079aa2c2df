//! Deliveries: one event on its way to one subscription (`docs/contract.md`, "Webhook deliveries").
//!
//! A delivery is `pending` with a due time until an attempt succeeds (`succeeded`), its retries are used up or its
//! subscription is deleted (`failed`), or its subscription is disabled or paused (`held`).
//!
//! Before a process makes an attempt, it claims the delivery by a lease: a token, and a due time after the longest
//! possible end of the attempt. Only the holder of the token can record the outcome. If the outcome is never recorded,
//! because the process has crashed, the delivery is due again when the lease ends. See [`engine`](super::engine).

pub use super::retries::{MAX_RETRY_AFTER, RetrySchedule};
use crate::webhooks::events::EventId;
use crate::webhooks::filters::Filter;
use crate::webhooks::subscriptions::SubscriptionId;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::env::time_of_id;
use crate::error::Error;
use crate::input::Record;
use crate::store::{DeliveryFilter, Endpoint, Tx};
use crate::values::EventKind;
use crate::values::{Id, TenantId, TextEnum, Timestamp};

/// The id of a delivery.
pub type DeliveryId = Id<Delivery>;

/// The number of failed attempts in a row after which a subscription is paused.
pub const PAUSE_AFTER: u32 = 10;

/// The status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum DeliveryStatus {
    /// An attempt is due at `next_attempt_at`, or is being made.
    Pending,
    /// The endpoint responded with a status of 2xx.
    Succeeded,
    /// All attempts of the retry schedule failed, or the endpoint responded with 410, and a replay sends the delivery
    /// again. Or the subscription was deleted.
    Failed,
    /// The subscription was disabled or paused. A replay sends the delivery.
    Held,
}

/// Why a delivery failed, if it was not for the outcome of its last attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
#[non_exhaustive]
pub enum FailureReason {
    /// The subscription was deleted while the delivery was pending or held.
    SubscriptionDeleted,
}

/// The next state of a delivery whose attempt failed while it has retries left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// It is retried.
    Retry,
    /// It is held, because the subscription was disabled or paused.
    Hold,
    /// It fails for good, for this reason.
    Fail(FailureReason),
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
#[non_exhaustive]
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
    /// The access token of the subscription could not be got, so nothing was sent to the endpoint.
    Token,
}

/// The cause of a failed attempt, for programs. It is stored as a word beside the error, which is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
#[non_exhaustive]
pub enum AttemptCause {
    /// The host name has no address.
    UnknownHost,
    /// Nothing listens on the port.
    ConnectionRefused,
    /// There is no route to the address.
    Unreachable,
    /// The connection failed for another reason.
    ConnectionFailed,
    /// The operator's proxy made no connection.
    ProxyFailed,
    /// The operator's proxy made no connection in time.
    ProxyTimeout,
    /// The connection was not made in time.
    ConnectionTimeout,
    /// The TLS session was not made in time.
    TlsTimeout,
    /// The response did not begin in time.
    ResponseTimeout,
    /// The response did not end in time.
    BodyTimeout,
    /// The TLS session failed.
    TlsFailed,
    /// The connection ended before the response began.
    ConnectionClosed,
    /// The connection ended within the response.
    ResponseCut,
    /// The response was not HTTP/1.1, or its head was too large.
    InvalidResponse,
    /// The sender itself failed.
    SenderFailed,
    /// The URL is not https.
    NotHttps,
    /// An address of the host is not public.
    NotPublic,
    /// The endpoint responded with a status other than 2xx.
    Status,
    /// The access token could not be got.
    TokenFailed,
}

impl AttemptCause {
    /// Returns the class of the failure, by which it is counted.
    pub fn class(self) -> FailureClass {
        match self {
            Self::UnknownHost => FailureClass::Dns,
            Self::ConnectionRefused | Self::Unreachable | Self::ConnectionFailed | Self::ProxyFailed => {
                FailureClass::Connect
            }
            Self::ProxyTimeout
            | Self::ConnectionTimeout
            | Self::TlsTimeout
            | Self::ResponseTimeout
            | Self::BodyTimeout => FailureClass::Timeout,
            Self::TlsFailed => FailureClass::Tls,
            Self::ConnectionClosed | Self::ResponseCut | Self::InvalidResponse | Self::SenderFailed => {
                FailureClass::Reset
            }
            Self::NotHttps | Self::NotPublic => FailureClass::Blocked,
            Self::Status => FailureClass::Status,
            Self::TokenFailed => FailureClass::Token,
        }
    }
}

/// The highest number of deliveries that a [`Backlog`] counts.
pub const MAX_BACKLOG_COUNT: u32 = 10_000;

/// The deliveries of all tenants that have one status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// The number of deliveries; [`MAX_BACKLOG_COUNT`] means that many or more.
    pub deliveries: u64,
    /// When the oldest event among the counted deliveries happened.
    pub oldest: Option<Timestamp>,
}

/// One event on its way to one subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The identifier, the same on every attempt and every replay.
    pub id: DeliveryId,
    /// The tenant of the event and of the subscription.
    pub tenant_id: TenantId,
    /// The event that is delivered.
    pub event_id: EventId,
    /// The kind of that event.
    pub kind: EventKind,
    /// The subscription that receives it.
    pub subscription_id: SubscriptionId,
    /// The status. It changes when an outcome is recorded, when the subscription stops sending, and by a replay.
    pub status: DeliveryStatus,
    /// The number of attempts that were claimed, over all replays.
    pub attempts: u32,
    /// The number of attempts that failed since the delivery was created or last replayed.
    pub failures: u32,
    /// The result of the last attempt: an HTTP status, 0 for a network failure or timeout, -1 for a blocked address.
    pub last_status: Option<i32>,
    /// When the next attempt is due. While an attempt is in progress, the end of its lease. `None` unless pending.
    pub next_attempt_at: Option<Timestamp>,
    /// The fencing token of the attempt in progress: an id that was made for the time at which the lease ends.
    /// It is not part of the JSON.
    #[serde(skip)]
    pub lease: Option<Uuid>,
    /// Why the delivery failed, if it was not for the outcome of its last attempt. `None` unless failed.
    pub failure_reason: Option<FailureReason>,
    /// When the event happened.
    pub created_at: Timestamp,
    /// The key that the deliveries which wait for each other have in common, if the subscription orders them
    /// ([`Event::order_key`](super::events::Event::order_key)). `None` otherwise. It is not part of the JSON.
    #[serde(skip)]
    pub order_key: Option<Uuid>,
}

/// The time at which a delivery is due that waits for another one of its record: never. It is due when that one has ended.
pub const WAITS_FOR_ANOTHER: Timestamp = Timestamp::MAX;

/// The number of deliveries that one [`search`] reads.
const SEARCHED: u32 = 10_000;

/// The result of one [`search`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SearchResult {
    /// The deliveries that match, newest first.
    pub deliveries: Vec<Delivery>,
    /// Where the next search goes on: deliveries of events before this time were not read. `None` if all were.
    pub next_until: Option<Timestamp>,
}

/// Returns the newest deliveries of a tenant that match a filter, among the newest 10,000 that an index finds for it. So its
/// cost is bounded, also if few of many deliveries match.
///
/// Run each search in a transaction of its own, so that a long one does not hold one snapshot.
///
/// # Errors
/// [`Error::Store`].
pub async fn search(tx: &mut dyn Tx, tenant: TenantId, filter: &DeliveryFilter) -> Result<SearchResult, Error> {
    let last = tx.nth_listed(tenant, filter, SEARCHED).await?;
    let since = filter.since.max(last);
    let deliveries = tx.list_deliveries(tenant, &DeliveryFilter { since, ..filter.clone() }).await?;
    Ok(SearchResult { deliveries, next_until: last })
}

/// A subscription that receives an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedSubscription {
    /// The identifier of the subscription.
    pub subscription_id: SubscriptionId,
    /// Whether the service has paused it, so that its deliveries are held.
    pub paused: bool,
    /// The events that it receives, by what is in them. All of the kind, if `None`.
    pub filter: Option<Filter>,
    /// Whether the deliveries of a record wait for each other.
    pub is_ordered: bool,
}

/// The log of an attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct AttemptLog {
    /// The number of the attempt within its delivery, from 1 on.
    pub attempt: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
    /// The HTTP status, 0 for a network failure or timeout, -1 for an address that is not allowed.
    pub status: i32,
    /// The error of a failed attempt: its class, a colon, and what happened. Null if it succeeded.
    pub error: Option<String>,
    /// The cause of a failed attempt. `None` if it succeeded.
    #[serde(skip)]
    pub cause: Option<AttemptCause>,
    /// The first 16 KiB of the response body. Null if there is none, or if it was deleted because the subscription had too
    /// many that day.
    pub response_body: Option<String>,
    /// Whether the response body was longer than that, or was deleted.
    pub response_truncated: bool,
    /// The IP address and port that the request was sent to. Null if none was.
    pub remote_addr: Option<String>,
}

impl AttemptLog {
    /// Marks the attempt as failed: sets its cause, and its error with this reason.
    pub fn fail(&mut self, cause: AttemptCause, reason: impl fmt::Display) {
        (self.cause, self.error) = (Some(cause), Some(format!("{}: {reason}", cause.class())));
    }

    /// Returns the reason in the error of a failed attempt, without the class of the failure.
    pub fn reason(&self) -> Option<&str> {
        let error = self.error.as_deref()?;
        let class = self.cause.map_or("", |cause| cause.class().as_str());
        Some(error.strip_prefix(class).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(error))
    }

    /// Returns whether the endpoint accepted the delivery: a status of 2xx, and no error.
    pub fn succeeded(&self) -> bool {
        self.summary().succeeded()
    }

    /// Returns when the attempt ended.
    pub fn ended_at(&self) -> Timestamp {
        self.started_at.checked_add(Duration::from_millis(self.duration_ms.into())).unwrap_or(self.started_at)
    }

    /// Returns the part of the log that statistics need.
    pub fn summary(&self) -> AttemptSummary {
        AttemptSummary { status: self.status, failed: self.error.is_some(), duration_ms: self.duration_ms }
    }
}

/// The part of an attempt's log that statistics need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct AttemptSummary {
    /// The HTTP status, 0 for a network failure or timeout, -1 for an address that is not allowed.
    pub status: i32,
    /// Whether an error was logged.
    pub failed: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
}

impl AttemptSummary {
    /// Returns whether the endpoint accepted the delivery: a status of 2xx, and no error.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.status) && !self.failed
    }
}

impl Delivery {
    /// Returns the endpoint that the delivery goes to: a subscription of a tenant.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { tenant_id: self.tenant_id, subscription_id: self.subscription_id }
    }

    /// Claims the delivery for an attempt: counts the attempt, and stores its lease. Until `lease_ends` no other process
    /// claims the delivery.
    pub fn claim(&mut self, lease: Uuid, lease_ends: Timestamp) {
        self.attempts += 1;
        self.lease = Some(lease);
        self.next_attempt_at = Some(lease_ends);
    }

    /// Records the outcome of the attempt that holds the lease, and ends the lease.
    ///
    /// After a failure, the next attempt is due `delay` after `now`; without a `delay` the retries are used up and the
    /// delivery has failed. `after_failure` says what becomes of a delivery that has retries left.
    pub fn record_outcome(
        &mut self,
        log: &AttemptLog,
        delay: Option<Duration>,
        now: Timestamp,
        after_failure: AfterFailure,
    ) {
        self.lease = None;
        self.last_status = Some(log.status);
        self.next_attempt_at = None;
        self.failure_reason = None;
        self.status = match (delay, after_failure) {
            _ if log.succeeded() => DeliveryStatus::Succeeded,
            (None, _) => DeliveryStatus::Failed,
            (Some(delay), AfterFailure::Retry) => {
                self.next_attempt_at = Some(now.checked_add(delay).unwrap_or(now));
                DeliveryStatus::Pending
            }
            (Some(_), AfterFailure::Hold) => DeliveryStatus::Held,
            (Some(_), AfterFailure::Fail(reason)) => {
                self.failure_reason = Some(reason);
                DeliveryStatus::Failed
            }
        };
    }

    /// Returns when the lease of the attempt in progress ends, or `None` if no attempt is in progress at `now`.
    pub fn leased_until(&self, now: Timestamp) -> Option<Timestamp> {
        // A delivery that was held or failed during its attempt has no due time. The token contains the end of the lease.
        let ends = self.next_attempt_at.or(self.lease.map(time_of_id));
        ends.filter(|ends| self.lease.is_some() && *ends > now)
    }

    /// Restarts the delivery: sets it to pending with an attempt due now, and all its retries ahead. An attempt that is in
    /// progress keeps its lease, and is the first of the new schedule.
    pub fn restart(&mut self, now: Timestamp) {
        let leased_until = self.leased_until(now);
        self.status = DeliveryStatus::Pending;
        self.failure_reason = None;
        self.failures = 0;
        self.lease = self.lease.filter(|_| leased_until.is_some());
        self.next_attempt_at = leased_until.or(Some(now));
    }
}

/// Wakes the delivery engine of this process when a commit has made a delivery due, so that it need not wait for its next
/// poll.
///
/// The store drives it in two steps: a transaction that schedules an endpoint calls [`mark`](Self::mark), and after its
/// commit the store calls [`take_mark`](Self::take_mark) and, if it was marked, [`notify`](Self::notify).
#[derive(Debug, Default)]
pub struct DeliveryWakeup {
    marked: AtomicBool,
    notified: AtomicBool,
    waker: AtomicWaker,
}

impl DeliveryWakeup {
    /// Marks that the current transaction makes a delivery due.
    pub fn mark(&self) {
        self.marked.store(true, Ordering::Release);
    }

    /// Returns whether the transaction that ends now was marked, and clears the mark.
    pub fn take_mark(&self) -> bool {
        self.marked.swap(false, Ordering::AcqRel)
    }

    /// Wakes the waiting engine, or the next one that waits. Called after the commit of a marked transaction.
    pub fn notify(&self) {
        self.notified.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Waits until [`notify`](Self::notify) has been called since the last time that this returned. Only one task may wait
    /// at a time.
    ///
    /// # Cancel safety
    /// Dropping the future loses no notification.
    pub async fn notified(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            if self.notified.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests;
