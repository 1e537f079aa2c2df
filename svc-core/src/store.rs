//! The seam between rules and databases.
//!
//! A transaction is a job: an async closure over `&mut dyn Tx`, handed to [`read`](trait.Store.html#method.read)
//! or [`write`](trait.Store.html#method.write). The store decides where it runs, commits it when it returns
//! `Ok`, rolls it back otherwise, and may run it again after a conflict with another transaction; so a job
//! keeps its input and has no effect except through its `Tx`. It must not wait for anything else: on SQLite
//! it runs on the database's own thread.
//!
//! Write jobs may run side by side. Once one has called `advance_clock` or `hold`, nothing of that tenant changes but by its own
//! hand; so that comes before it reads what it will write.

mod layer;
pub mod memory;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::accounts::audit::{Actor, Entry};
use crate::accounts::idempotency::StoredResponse;
use crate::accounts::keys::{ApiKey, Credential};
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::env::Env;
use crate::error::{Error, StoreError};
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::crud::Resource;
use crate::resources::invoices::{Invoice, Payment};
use crate::resources::jobs::Job;
use crate::resources::pages::{CursorKey, ListQuery};
use crate::resources::quotes::Quote;
use crate::values::EventKind;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{
    AttemptLog, AttemptSummary, Backlog, Delivery, DeliveryStatus, DeliveryWakeup, MatchedSubscription,
};
use crate::webhooks::events::Event;
use crate::webhooks::replays::Replay;
use crate::webhooks::retention::{EventRange, ExpiredKind};
use crate::webhooks::subscriptions::WebhookSubscription;

pub use self::layer::Layer;

/// What a job needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A consistent snapshot; writing fails.
    Read,
    /// A durable transaction.
    Write,
}

/// A job without its result type, for implementors of [`Store`].
pub type UnitOfWork = Box<dyn for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<(), Error>> + Send + Sync>;

/// A database that runs jobs.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Runs one job to its end, also if the caller stops waiting. `name` labels it in metrics and logs.
    /// After `Ok` a write is durable.
    async fn run(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error>;

    /// The time, ids and randomness that jobs get.
    fn env(&self) -> &Env;

    /// Where commits say that they brought something to send.
    fn delivery_wakeup(&self) -> &DeliveryWakeup;

    /// Where requests are counted for all processes on this database together; `None` when there is one process,
    /// which counts for itself.
    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        None
    }

    /// Lets someone watch how it works, from now on. A store without groups and retries has nothing to show.
    fn observe(&self, _observer: Arc<dyn Observer>) {}
}

/// Watches how a store works.
pub trait Observer: Send + Sync + 'static {
    /// So many jobs shared a transaction.
    fn group(&self, access: Access, jobs: usize);

    /// A job is run again, after a conflict with another transaction or the loss of its connection.
    fn retry(&self, job: &'static str);
}

/// Counts requests for all processes on a database together, beside its transactions.
#[async_trait]
pub trait RequestCounts: Send + Sync {
    /// Adds to counts, in one step; a window that has ended begins anew. Returns where each stands then, in the
    /// same order. What goes below zero is zero.
    ///
    /// # Errors
    /// [`StoreError`]; the caller then counts for itself.
    async fn add(&self, changes: &[CountChange], window: Duration) -> Result<Vec<RequestWindow>, StoreError>;
}

/// A change of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountChange {
    /// Whose requests: a key, or an address as 128 bits.
    pub subject: Uuid,
    /// Which of their requests: a name that all processes have in common.
    pub bucket: &'static str,
    /// When, which is when a new window begins.
    pub at: Timestamp,
    /// How many more, or fewer.
    pub by: i32,
}

/// Requests that were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestWindow {
    /// When the window began.
    pub started: Timestamp,
    /// Requests since.
    pub used: u32,
}

impl dyn Store {
    /// Runs a job over a consistent snapshot.
    ///
    /// # Errors
    /// The job's own, or [`Error::Store`].
    pub async fn read<T, F>(&self, name: &'static str, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        self.typed(Access::Read, name, job).await
    }

    /// Runs a job as a durable transaction: all of it or nothing.
    ///
    /// # Errors
    /// The job's own, or [`Error::Store`]; nothing was changed then, unless the store was lost during the
    /// commit itself.
    pub async fn write<T, F>(&self, name: &'static str, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        self.typed(Access::Write, name, job).await
    }

    async fn typed<T, F>(&self, access: Access, name: &'static str, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let erased: UnitOfWork = Box::new(move |tx| {
            let work = job(tx);
            let slot = Arc::clone(&slot);
            Box::pin(async move {
                let value = work.await?;
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(())
            })
        });
        self.run(access, name, erased).await?;
        let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.ok_or_else(|| StoreError::Internal(format!("{name} ended without a result")).into())
    }
}

/// A transaction: everything that rules ask of a database.
pub trait Tx:
    Repository<Contact>
    + Repository<Invoice>
    + Repository<Booking>
    + Repository<Quote>
    + Repository<Job>
    + Repository<WebhookSubscription>
    + TenantStore
    + KeyStore
    + Outbox
    + DeliveryStore
    + RetentionStore
    + AuditStore
    + Send
{
    /// The time, ids and randomness of this store.
    fn env(&self) -> &Env;

    /// The key of this store's cursors.
    fn cursor_key(&self) -> &CursorKey;

    /// Who acts in this transaction: [`Actor::System`], unless somebody else was named.
    fn actor(&self) -> &Actor;

    /// Names who acts, from here on.
    fn act_as(&mut self, actor: Actor);
}

/// The rows of one resource. Every method sees only rows of the tenant it is given.
#[async_trait]
pub trait Repository<R: Resource>: Send {
    /// The row, deleted ones included.
    async fn get(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<R>, StoreError>;

    /// The rows of a listing in its order, at most its limit. Costs O(limit), whatever the filter. Ids come from
    /// [`Env::id`] and so sort like `created_at`; a store may order by either.
    async fn list(&mut self, tenant: TenantId, listing: &ListQuery<R::Filter>) -> Result<Vec<R>, StoreError>;

    /// Adds a row.
    async fn insert(&mut self, tenant: TenantId, row: &R) -> Result<(), StoreError>;

    /// Replaces the row with the same id.
    async fn update(&mut self, tenant: TenantId, row: &R) -> Result<(), StoreError>;
}

/// Tenants, their clocks and their numbers.
#[async_trait]
pub trait TenantStore: Send {
    /// One tenant.
    async fn tenant(&mut self, id: TenantId) -> Result<Option<Tenant>, StoreError>;

    /// All tenants, oldest first.
    async fn tenants(&mut self) -> Result<Vec<Tenant>, StoreError>;

    /// Adds a tenant, whose clock starts at its `created_at`.
    async fn insert_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError>;

    /// Replaces the tenant's settings.
    async fn update_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError>;

    /// Moves the tenant's clock on to `max(wall clock, last + 1 µs)` and returns it. Holds the tenant's row
    /// from then on, so writes of one tenant happen one after the other and commit in this order.
    /// `None` when there is no such tenant.
    async fn advance_clock(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError>;

    /// Holds the tenant's row as [`advance_clock`](TenantStore::tick) does, without moving its clock: what is read after it
    /// is not changed by other writes of the tenant until this one ends. `false` when there is no such tenant.
    async fn lock_tenant(&mut self, tenant: TenantId) -> Result<bool, StoreError>;

    /// The next number of a kind: 1, 2, 3, … without gaps.
    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> Result<u64, StoreError>;

    /// Lets the count of a kind go on behind `number`, which is at least 1, unless it is there already.
    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> Result<(), StoreError>;
}

/// API keys, and the traces they leave.
#[async_trait]
pub trait KeyStore: Send {
    /// What is needed to admit the bearer of the key with this SHA-256.
    async fn credential(&mut self, key_hash: &[u8; 32]) -> Result<Option<Credential>, StoreError>;

    /// One key.
    async fn key(&mut self, id: Uuid) -> Result<Option<ApiKey>, StoreError>;

    /// The keys of a tenant, oldest first.
    async fn keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>, StoreError>;

    /// Adds a key with the SHA-256 of its text.
    async fn insert_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> Result<(), StoreError>;

    /// Stores expiry and revocation.
    async fn update_key(&mut self, key: &ApiKey) -> Result<(), StoreError>;

    /// Notes when keys were last used.
    async fn touch_keys(&mut self, used: &[(Uuid, Timestamp)]) -> Result<(), StoreError>;

    /// Marks a request signature as used until `expires_at`; `false` when it was used before.
    async fn claim_signature(&mut self, key: Uuid, mac: &[u8; 32], expires_at: Timestamp) -> Result<bool, StoreError>;

    /// Claims an Idempotency-Key until the end of the transaction; `false` while another one has it. Stores that
    /// run one write job after the other need not tell: there is no other.
    async fn claim_idempotency(&mut self, tenant: TenantId, key: &str) -> Result<bool, StoreError>;

    /// The answer kept under an Idempotency-Key since `after`.
    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> Result<Option<StoredResponse>, StoreError>;

    /// Keeps an answer under an Idempotency-Key, in place of an older one.
    async fn store_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        recorded: &StoredResponse,
    ) -> Result<(), StoreError>;

    /// Drops answers recorded before `recorded_before` and signatures that expired before `now`, at most
    /// `limit` of each. Returns how many rows went.
    async fn prune(&mut self, recorded_before: Timestamp, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}

/// Events and the deliveries they cause.
#[async_trait]
pub trait Outbox: Send {
    /// The tenant's live subscriptions that want events of this kind and are enabled or auto-paused.
    async fn matches(&mut self, tenant: TenantId, kind: EventKind) -> Result<Vec<MatchedSubscription>, StoreError>;

    /// Adds an event, with who acts ([`Tx::actor`]).
    async fn insert_event(&mut self, event: &Event) -> Result<(), StoreError>;

    /// The newest events of a tenant at or after `since`, newest first, with who caused each; `None` where that was
    /// not noted yet.
    async fn caused(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(Event, Option<String>)>, StoreError>;

    /// The tenant's events after an instant, oldest first.
    async fn events(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// One event.
    async fn event(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Event>, StoreError>;

    /// Adds a payment.
    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> Result<(), StoreError>;
}

/// Deliveries, their attempts, and the turns of endpoints.
#[async_trait]
pub trait DeliveryStore: Send {
    /// Adds a delivery, whose id was made for the time of its event ([`Env::id`]): stores may find it by that. A pending
    /// one brings its endpoint's turn forward to when it is due.
    async fn insert_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError>;

    /// One delivery.
    async fn delivery(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Delivery>, StoreError>;

    /// Those of a tenant's deliveries that have these ids, in any order.
    async fn deliveries(&mut self, tenant: TenantId, ids: &[Uuid]) -> Result<Vec<Delivery>, StoreError>;

    /// Stores how far a delivery is, if `lease` is still the one that holds it; changes nothing otherwise. Whoever
    /// has to know which holds the tenant and has read the delivery.
    async fn update_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> Result<(), StoreError>;

    /// Deliveries of a tenant, newest first unless the filter says otherwise.
    async fn list_deliveries(&mut self, tenant: TenantId, filter: &DeliveryFilter)
    -> Result<Vec<Delivery>, StoreError>;

    /// The pending deliveries of an endpoint that are due, longest due first, each with its event.
    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(Delivery, Event)>, StoreError>;

    /// When the next pending delivery of an endpoint is due.
    async fn next_due(&mut self, tenant: TenantId, subscription: Uuid) -> Result<Option<Timestamp>, StoreError>;

    /// Holds what is pending for an endpoint, also what is being attempted.
    async fn hold_deliveries(&mut self, tenant: TenantId, subscription: Uuid) -> Result<(), StoreError>;

    /// The endpoints whose turn has come, in order of their turns.
    async fn due_endpoints(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, Uuid)>, StoreError>;

    /// The first turn of all.
    async fn next_endpoint_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// Sets an endpoint's turn; `None` when it has nothing to send.
    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Option<Timestamp>,
    ) -> Result<(), StoreError>;

    /// Sets an endpoint's turn unless it has an earlier one, and wakes the sender after the commit.
    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Adds to a delivery's log.
    async fn insert_attempt(&mut self, tenant: TenantId, delivery: Uuid, log: &AttemptLog) -> Result<(), StoreError>;

    /// A delivery's log, first attempt first.
    async fn attempts(&mut self, tenant: TenantId, delivery: Uuid) -> Result<Vec<AttemptLog>, StoreError>;

    /// The attempts at an endpoint's deliveries of events at or after `since` and before `until`, in any order.
    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<AttemptSummary>, StoreError>;

    /// How many of an endpoint's deliveries are in a state. Walks over all of them.
    async fn count_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        state: DeliveryStatus,
    ) -> Result<u64, StoreError>;

    /// How many deliveries of all tenants are in a state, up to a bound, so that it costs the same however many there
    /// are. Of those that failed or are held, the oldest are counted. What succeeded waits for nothing: it is none.
    async fn backlog(&mut self, state: DeliveryStatus) -> Result<Backlog, StoreError>;

    /// Adds a bulk replay, and wakes the sender after the commit.
    async fn insert_replay(&mut self, replay: &Replay) -> Result<(), StoreError>;

    /// One bulk replay.
    async fn replay(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Replay>, StoreError>;

    /// The bulk replays of a tenant, newest first.
    async fn replays(&mut self, tenant: TenantId, limit: u32) -> Result<Vec<Replay>, StoreError>;

    /// The tenant's unfinished bulk replay that waited longest for a step.
    async fn unfinished_replay(&mut self, tenant: TenantId) -> Result<Option<Replay>, StoreError>;

    /// Whose bulk replays are not finished, those that waited longest for a step first.
    async fn tenants_with_replays(&mut self, limit: u32) -> Result<Vec<TenantId>, StoreError>;

    /// Stores how far a bulk replay has come.
    async fn update_replay(&mut self, replay: &Replay) -> Result<(), StoreError>;

    /// Stores what attempts changed of a subscription: its last delivery and its failures in a row.
    async fn update_delivery_state(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> Result<(), StoreError>;
}

/// What has had its day.
#[async_trait]
pub trait RetentionStore: Send {
    /// The last of the tenant's next `limit` events behind `after` that are older than `before`.
    async fn expired_until(
        &mut self,
        tenant: TenantId,
        after: Uuid,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<Uuid>, StoreError>;

    /// Deletes at most `limit` rows of what is left of these events, and returns how many. Costs no more than the
    /// events have deliveries.
    async fn drop_expired(
        &mut self,
        tenant: TenantId,
        remains: ExpiredKind,
        range: EventRange,
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// How many rows are left of these events, of those that [`RetentionStore::drop_expired`] would delete in the end.
    async fn count_expired(
        &mut self,
        tenant: TenantId,
        remains: ExpiredKind,
        range: EventRange,
    ) -> Result<u64, StoreError>;

    /// Deletes at most `limit` bulk replays of the tenant that were finished before `before`.
    async fn drop_replays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// How many bulk replays of the tenant were finished before `before`.
    async fn count_replays(&mut self, tenant: TenantId, before: Timestamp) -> Result<u64, StoreError>;

    /// How many rows [`KeyStore::prune`] would drop in the end.
    async fn count_prunable(&mut self, recorded_before: Timestamp, now: Timestamp) -> Result<u64, StoreError>;
}

/// The log of changes. Nothing in it is ever changed or deleted.
#[async_trait]
pub trait AuditStore: Send {
    /// Adds an entry.
    async fn insert_audit(&mut self, entry: &Entry) -> Result<(), StoreError>;

    /// The newest entries of a tenant at or after `since`, newest first.
    async fn audit(&mut self, tenant: TenantId, since: Timestamp, limit: u32) -> Result<Vec<Entry>, StoreError>;
}

/// Which deliveries are wanted. Every condition that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// To this subscription.
    pub subscription_id: Option<Uuid>,
    /// Of this event.
    pub event_id: Option<Uuid>,
    /// In this state.
    pub status: Option<DeliveryStatus>,
    /// Of events of this kind.
    pub kind: Option<EventKind>,
    /// Of events at or after this time.
    pub since: Option<Timestamp>,
    /// Of events before this time.
    pub until: Option<Timestamp>,
    /// Oldest first instead of newest first.
    pub oldest_first: bool,
    /// At most so many; 0 for all.
    pub limit: u32,
}

impl DeliveryFilter {
    /// All deliveries of an event.
    pub fn of_event(event: Uuid) -> Self {
        Self { event_id: Some(event), ..Self::default() }
    }
}
