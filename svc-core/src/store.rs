//! The interface between the rules of the product and a database.
//!
//! # Units of work
//!
//! A transaction is a *unit of work*: an async closure that gets `&mut dyn Tx` and its input. It is handed to
//! [`read`](trait.Store.html#method.read) or [`write`](trait.Store.html#method.write). The store decides where and when
//! it runs, commits when it returns `Ok`, and rolls back otherwise. The name labels metrics and log messages.
//!
//! ```
//! use svc_core::accounts::tenants::{self, TenantCreate};
//! use svc_core::env::Env;
//! use svc_core::store::{Store, memory::MemoryStore};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let store: &dyn Store = &MemoryStore::new(Env::system());
//! let tenant = store
//!     .write("example.create", TenantCreate::named("Harbour Plumbing"), async |tx, input| {
//!         tenants::create(tx, input.clone()).await
//!     })
//!     .await?;
//! let found = store.read("example.get", tenant.id, async |tx, &id| Ok(tx.tenant(id).await?)).await?;
//! assert_eq!(found.unwrap().name, "Harbour Plumbing");
//! # Ok::<(), svc_core::error::Error>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! # Reading and writing
//!
//! A read sees one consistent snapshot, which holds every write that was acknowledged before the read was requested. An
//! attempt to write in it fails. A write is all or nothing, and durable once `write` has returned `Ok`.
//!
//! # A unit of work may run more than once
//!
//! A store runs a unit of work again when it conflicted with another transaction, or when its connection was lost before
//! the commit. So the closure gets its input by reference and cannot capture anything, and it has no effects except through
//! its [`Tx`]. It gets the time, ids and randomness from [`Tx::env`].
//!
//! # A unit of work waits for its transaction only
//!
//! On SQLite it runs on the thread that owns the connection, where any other future would never become ready. It fails
//! there with [`StoreError::Internal`]. Make network requests and the like before or after the transaction.
//!
//! # Locking
//!
//! Write transactions may run concurrently. [`advance_clock`](TenantRepository::advance_clock) and
//! [`lock_tenant`](TenantRepository::lock_tenant) lock the row of a tenant until the transaction ends: from then on no
//! other transaction changes anything of that tenant. Call one of them before you read what you are going to write.
//!
//! A row that belongs to no tenant, or changes its tenant, is locked by itself: [`lock_app`](AppRepository::lock_app),
//! [`lock_platform_key`](PlatformKeyRepository::lock_platform_key) and [`lock_session`](SignInRepository::lock_session). Lock the
//! tenant first where a transaction locks both.
//!
//! # Repositories
//!
//! Each kind of row has a trait, and [`Tx`] combines them. [`memory`] implements them in memory, the
//! crate `svc-store` on SQLite and PostgreSQL, and the crate `svc-store-tests` has the suite that all of them pass.
//! `docs/stores.md` of the repository is a guide for writing another one.

mod apps;
mod attempts;
mod audit;
mod deliveries;
mod events;
mod keys;
mod members;
pub mod memory;
mod repository;
mod requests;
mod retention;
mod sandboxes;
mod search;
mod shared_links;
mod streams;
mod subscriptions;
mod tenants;
mod unit_of_work;
mod uploads;
mod wrapper;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::accounts::actor::Actor;
use crate::env::Env;
use crate::error::{Error, StoreError};
use crate::pages::CursorKey;
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::invoices::Invoice;
use crate::resources::jobs::Job;
use crate::resources::quotes::Quote;
use crate::values::TenantId;
use crate::webhooks::deliveries::DeliveryWakeup;
use crate::webhooks::events::WrittenEvents;
use crate::webhooks::subscriptions::WebhookSubscription;

pub use self::apps::{AppRepository, GrantRepository};
pub use self::attempts::{AttemptCountRepository, AttemptRepository, DeletedResponses};
pub use self::audit::AuditRepository;
pub use self::deliveries::{DeliveryFilter, DeliveryRepository, DueDelivery, ReplayRepository, WaitingFor};
pub use self::events::{
    EventFilter, EventRepository, EventWithActor, MAX_EVENT_BYTES, OperationalEventRepository, events_in_one_read,
    is_cut,
};
pub use self::keys::{ApiKeyRepository, KeyUse, PlatformKeyRepository, UsedSignatureRepository};
pub use self::members::{MemberRepository, SignInRepository};
pub use self::repository::{ContactEmailRepository, PaymentRepository, RecordsByStart, RecordsOfContact, Repository};
pub use self::requests::{CountChange, IdempotencyRepository, RequestCounts, RequestLogRepository, RequestWindow};
pub use self::retention::RetentionRepository;
pub use self::sandboxes::{SandboxRepository, SandboxRows};
pub use self::search::{IndexedText, SearchRepository};
pub use self::shared_links::SharedLinkRepository;
pub use self::streams::StreamRepository;
pub use self::subscriptions::{Endpoint, EndpointSchedule, MAX_EXCEPTED_TENANTS, SubscriptionMatching};
pub use self::tenants::{OwnedKind, OwnerRepository, TenantRepository};
pub use self::unit_of_work::{CallBoxed, UnitOfWork, UnitOfWorkFn};
pub(crate) use self::unit_of_work::{ResultSlot, unit_of_work};
pub use self::uploads::UploadRepository;
pub use self::wrapper::StoreWrapper;

/// The result of an operation of a store.
pub type StoreResult<T> = Result<T, StoreError>;

/// The rights of a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read a consistent snapshot. Writing fails.
    Read,
    /// Read and write in a durable transaction.
    Write,
}

/// A database that runs units of work.
///
/// Call `read` and `write` on a `dyn Store`; they return the result of the unit of work.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Runs a unit of work, and commits it when it returns `Ok`. `name` labels it in metrics and log messages.
    ///
    /// # Errors
    /// The error of the unit of work, or [`Error::Store`].
    ///
    /// # Cancel safety
    /// A write runs to its end also when the returned future is dropped. A read may end early then, as nobody waits for it.
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error>;

    /// Runs a read as [`run`](Self::run) does, on the thread that asks for it if the store can. By default it is an ordinary
    /// read.
    ///
    /// It blocks that thread for the time of the read. So it is for a short read in a loop that does nothing else meanwhile,
    /// such as that of the webhook sender. It spares the loop two handovers between threads.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    async fn run_in_place(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.run(Access::Read, name, work).await
    }

    /// Returns the clock, ids and randomness that units of work get.
    fn env(&self) -> &Env;

    /// Returns the wakeup that a commit signals when it adds deliveries or replays that are due.
    fn delivery_wakeup(&self) -> &DeliveryWakeup;

    /// Returns the request counts that all processes on this database share, or `None` if only one process can serve the
    /// database and counts in memory.
    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        None
    }

    /// Returns the servers that the accounts are on, or `None` if there is one alone.
    fn servers(&self) -> Option<&dyn AccountServers> {
        None
    }

    /// Checks that writes are taken, as far as this process can tell without asking the database.
    ///
    /// # Errors
    /// [`StoreError::ClockSkew`], with which all writes fail until the clock of this machine is set, and
    /// [`StoreError::Closed`].
    fn check_writable(&self) -> StoreResult<()>;

    /// Closes the store. Units of work that it has taken still run to their ends, and all later ones fail with
    /// [`StoreError::Closed`]. Returns when its threads or tasks have ended, also when it is called again.
    ///
    /// End everything that uses the store first, such as listeners and the sender of webhooks.
    ///
    /// # Cancel safety
    /// The store closes also when the returned future is dropped.
    async fn close(&self);

    /// Registers an observer, which is called from now on. A store without group commit and retries ignores it.
    fn observe(&self, _observer: Arc<dyn Observer>) {}
}

/// The servers that the accounts of a store are on, such as the workers of Citus. A query for the accounts of one needs no
/// other.
#[async_trait]
pub trait AccountServers: Send + Sync {
    /// Returns the number of each server, with its accounts, as far as they can be known while servers are away.
    ///
    /// # Errors
    /// [`StoreError`] when even that cannot be known.
    async fn accounts(&self) -> StoreResult<Vec<(i64, Vec<TenantId>)>>;
}

/// Receives measurements of how a store works.
pub trait Observer: Send + Sync + 'static {
    /// Is called when `units` units of work shared one transaction.
    fn group(&self, access: Access, units: usize);

    /// Is called when a unit of work runs again, after a conflict with another transaction or a lost connection. `name`
    /// is the name of the unit of work.
    fn retry(&self, name: &'static str);

    /// Is called after a step of the upkeep of partitions: for how long there are partitions ahead, and whether the step was not
    /// done as writes would have waited for it too long.
    fn partitions(&self, _ahead: Duration, _is_blocked: bool) {}
}

impl dyn Store {
    /// Runs a unit of work on a consistent snapshot and returns its result.
    ///
    /// # Errors
    /// The error of the unit of work, or [`Error::Store`].
    ///
    /// # Cancel safety
    /// The unit of work may end early when the returned future is dropped, as nobody waits for it.
    pub async fn read<I, T>(&self, name: &'static str, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (unit, result) = unit_of_work(&Arc::new((input, work)));
        self.run(Access::Read, name, unit).await?;
        result.take(name)
    }

    /// Runs a short read as `read` does, on the calling thread if the store can: see [`Store::run_in_place`].
    ///
    /// # Errors
    /// The error of the unit of work, or [`Error::Store`].
    ///
    /// # Cancel safety
    /// The unit of work runs to its end also when the returned future is dropped.
    pub async fn read_in_place<I, T>(
        &self,
        name: &'static str,
        input: I,
        work: impl UnitOfWorkFn<I, T>,
    ) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (unit, result) = unit_of_work(&Arc::new((input, work)));
        self.run_in_place(name, unit).await?;
        result.take(name)
    }

    /// Runs a unit of work as a durable transaction, all or nothing, and returns its result.
    ///
    /// # Errors
    /// The error of the unit of work, or [`Error::Store`]. Nothing was changed in either case, except after
    /// [`StoreError::OutcomeUnknown`]: the database was lost during the commit.
    ///
    /// # Cancel safety
    /// The unit of work runs to its end also when the returned future is dropped.
    pub async fn write<I, T>(&self, name: &'static str, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (unit, result) = unit_of_work(&Arc::new((input, work)));
        self.run(Access::Write, name, unit).await?;
        result.take(name)
    }

    /// Runs a unit of work as `write` does, but never commits it. Returns its result: what a write would have
    /// returned.
    ///
    /// # Errors
    /// As `write`.
    pub async fn dry_run<I, T>(&self, name: &'static str, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        // The transaction fails at its end, so nothing is committed.
        let end = || Error::NotAllowed("This is the end of a dry run.".to_owned());
        let (unit, result) = unit_of_work(&Arc::new((input, work)));
        let unit = Arc::new(unit);
        let failing: UnitOfWork = Box::new(move |tx| {
            let unit = Arc::clone(&unit);
            Box::pin(async move {
                unit(tx).await?;
                Err(end())
            })
        });
        match self.run(Access::Write, name, failing).await {
            Err(error) if error == end() => result.take(name),
            Err(error) => Err(error),
            Ok(()) => Err(StoreError::Internal(format!("{name} was committed")).into()),
        }
    }

    /// Runs a write that deletes at most `batch` rows again and again, until it deletes fewer. Returns how many it deleted
    /// in all. So a large deletion is many small transactions, between which other writes run.
    ///
    /// # Errors
    /// The first error of the write. Rows that earlier runs have deleted stay deleted.
    pub async fn delete_in_steps<I: Send + Sync + 'static>(
        &self,
        name: &'static str,
        batch: u32,
        input: I,
        delete: impl UnitOfWorkFn<I, u64>,
    ) -> Result<u64, Error> {
        let closure = Arc::new((input, delete));
        let mut deleted = 0;
        loop {
            let (unit, result) = unit_of_work(&closure);
            self.run(Access::Write, name, unit).await?;
            let step: u64 = result.take(name)?;
            deleted += step;
            if step < u64::from(batch) {
                return Ok(deleted);
            }
        }
    }
}

/// A transaction: all database operations that the rules of the product need.
pub trait Tx:
    Repository<Contact>
    + Repository<Invoice>
    + Repository<Booking>
    + Repository<Quote>
    + Repository<Job>
    + Repository<WebhookSubscription>
    + RecordsOfContact<Invoice>
    + RecordsOfContact<Booking>
    + RecordsOfContact<Quote>
    + RecordsOfContact<Job>
    + RecordsByStart<Booking>
    + RecordsByStart<Job>
    + RecordsByStart<Invoice>
    + ContactEmailRepository
    + TenantRepository
    + ApiKeyRepository
    + PlatformKeyRepository
    + AppRepository
    + GrantRepository
    + UsedSignatureRepository
    + SignInRepository
    + MemberRepository
    + SharedLinkRepository
    + UploadRepository
    + IdempotencyRepository
    + SubscriptionMatching
    + EventRepository
    + OperationalEventRepository
    + PaymentRepository
    + DeliveryRepository
    + EndpointSchedule
    + AttemptRepository
    + AttemptCountRepository
    + ReplayRepository
    + RetentionRepository
    + SandboxRepository
    + AuditRepository
    + RequestLogRepository
    + OwnerRepository
    + SearchRepository
    + StreamRepository
    + Send
{
    /// Returns the clock, ids and randomness of this store.
    fn env(&self) -> &Env;

    /// Returns the key that seals the cursors of this store.
    fn cursor_key(&self) -> &CursorKey;

    /// Returns the actor of this transaction, which is [`Actor::System`] until [`act_as`](Tx::act_as) is called.
    fn actor(&self) -> &Actor;

    /// Sets the actor of everything that this transaction does from now on.
    fn act_as(&mut self, actor: Actor);

    /// Says that this transaction, if it is a read, is one of an account. Each account has a share of what runs reads, so one
    /// that reads a lot does not keep the others from reading. Call it as soon as the account is known.
    ///
    /// # Errors
    /// [`StoreError::TooSlow`] if the read has to run again in its turn: the unit of work should end, and its result does not
    /// count.
    fn read_as(&mut self, account: TenantId) -> StoreResult<()> {
        let _ = account;
        Ok(())
    }

    /// Returns the events that this transaction has written so far.
    fn written_events(&self) -> WrittenEvents;
}
