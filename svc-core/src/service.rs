//! The facade that an application uses: every operation as a method, over a store or inside a transaction.
//!
//! [`Svc`] is a handle to a store. [`Svc::account`] returns an [`Account`], and the account has an accessor for each kind of
//! record: [`contacts`](Account::contacts), [`invoices`](Account::invoices), [`webhooks`](Account::webhooks) and so on.
//!
//! ```
//! use svc_core::prelude::*;
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let svc = Svc::in_memory();
//! let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?;
//! let account = svc.account(tenant.id);
//!
//! let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
//! let invoice = InvoiceCreate { contact_id: Some(contact.id), ..InvoiceCreate::new("149.50".parse()?) };
//! let invoice = account.invoices().create(invoice).await?;
//! assert_eq!(invoice.invoice_number, "INV-0001");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! # Transactions
//!
//! Each call above is a transaction of its own: the change, its event and its deliveries are committed together.
//! [`Svc::transaction`] runs several operations in one. The closure gets a [`Transaction`], which has the same accessors
//! as [`Svc`].
//!
//! A store runs the closure again after a conflict with another transaction. Therefore the closure gets its input by
//! reference, and cannot capture anything: what it needs is part of the input. It must have no effects other than through
//! its transaction, and must not wait for anything else, such as a network request.
//!
//! # Spans
//!
//! Each operation is a span `svc.operation` of `tracing` with the level debug. Its fields are `operation`, which is the id that
//! the OpenAPI documents have, such as `createContact`; `tenant`; `id` of the record where the call names one; and `error` with
//! the code of an error. An operation that no API has is named after its call, such as `svc.contacts.names`. A transaction is the span
//! `svc.transaction`, with its `name`, around those of its operations.
//!
//! # Unknown accounts
//!
//! An operation on an account that the database does not have fails with [`Error::UnknownTenant`]. Lists are empty.
//!
//! # Locks
//!
//! A write locks the row of its account until its transaction ends. Writes of different accounts run at the same time.

mod account;
mod accounts;
mod apps;
mod calendar;
mod contacts;
mod dashboard;
mod deliveries;
mod events;
mod executor;
mod invoices;
mod keys;
mod members;
mod platform_keys;
mod quotes;
mod records;
mod replays;
mod requests;
mod sandbox;
mod submissions;
mod transaction;
mod webhooks;

use std::fmt;
use std::sync::Arc;

use crate::accounts::actor::{Actor, acting};
use crate::env::Env;
use crate::error::Error;
use crate::input::Input;
use crate::operation::{Operation, Target};
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::values::TenantId;

pub use self::accounts::Accounts;
pub use self::apps::{Apps, Grants};
pub use self::dashboard::Dashboard;
pub use self::deliveries::{Deliveries, MAX_ATTEMPTS};
pub use self::events::{AuditLog, EmittedEvent, Events};
use self::executor::Runner;
pub use self::executor::{Account, Executor};
pub use self::keys::Keys;
pub use self::members::Members;
pub use self::platform_keys::PlatformKeys;
pub use self::records::Records;
pub use self::replays::Replays;
pub use self::requests::Requests;
pub use self::sandbox::Sandbox;
pub use self::submissions::Submission;
pub use self::transaction::{Transaction, TransactionFn};

/// A handle to a store, with all operations. It is cheap to clone.
#[derive(Clone)]
pub struct Svc {
    store: Arc<dyn Store>,
}

impl Svc {
    /// Returns a handle to a store: one that [`svc_store::open`](https://docs.rs/svc-store) returned, or any other.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::env::Env;
    /// use svc_core::prelude::*;
    /// use svc_core::store::memory::MemoryStore;
    ///
    /// let svc = Svc::new(MemoryStore::new(Env::system()));
    /// ```
    pub fn new(store: impl Store) -> Self {
        Self { store: Arc::new(store) }
    }

    /// Returns a handle to a new store in memory, for the tests of an application.
    ///
    /// # Examples
    ///
    /// ```
    /// # futures_util::FutureExt::now_or_never(async {
    /// let svc = svc_core::Svc::in_memory();
    /// assert_eq!(svc.accounts().list(None, 10).await?, []);
    /// # Ok::<(), svc_core::error::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn in_memory() -> Self {
        Self::new(MemoryStore::new(Env::system()))
    }

    /// Returns the store, for what the facade does not have.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns a handle whose changes the audit log attributes to this actor.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::accounts::actor::Actor;
    /// use svc_core::prelude::*;
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let svc = Svc::in_memory().acting_as(Actor::Cli("ada".to_owned()));
    /// let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?;
    /// let log = svc.account(tenant.id).audit_log().since(tenant.created_at, 10).await?;
    /// assert_eq!(log[0].actor, "cli:ada");
    /// # Ok::<(), Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { store: acting(Arc::clone(&self.store), actor) }
    }

    /// Runs an operation that the APIs have, as a trusted caller who may do everything: each of
    /// [`operations`](crate::platform::operations), whether or not it has a method here. The writes of a dry run of an
    /// operation are rolled back.
    ///
    /// # Errors
    /// The errors of the operation's rules, and [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::platform::operations::GET_ACCOUNT;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// assert_eq!(svc.call(&GET_ACCOUNT, tenant, ()).await?.name, "Harbour Plumbing");
    /// # Ok(()) });
    /// ```
    pub async fn call<K, I, O>(&self, operation: &Operation<K, I, O>, target: K, input: I) -> Result<O, Error>
    where
        K: Target,
        I: Input + Clone,
        O: Send + 'static,
    {
        if operation.is_dry_run(&input) {
            return self.store.dry_run(operation.id, (*operation, target, input), executor::run).await;
        }
        self.runner().call(operation, target, input).await
    }

    /// Returns the operations on accounts.
    pub fn accounts(&self) -> Accounts<'_> {
        Accounts::new(self.runner())
    }

    /// Returns the records of one account. Whether the account exists is checked by the operations, not here.
    pub fn account(&self, id: TenantId) -> Account<'_> {
        Account::new(self.runner(), id)
    }

    /// Returns the keys of the platform API.
    pub fn platform_keys(&self) -> PlatformKeys<'_> {
        PlatformKeys::new(self.runner())
    }

    /// Returns the third-party apps that can ask accounts for access.
    pub fn apps(&self) -> Apps<'_> {
        Apps::new(self, self.runner())
    }

    /// Returns the links and the sessions with which people use the dashboard.
    pub fn dashboard(&self) -> Dashboard<'_> {
        Dashboard::new(self.runner())
    }

    /// Runs several operations in one transaction: all of them are committed when the closure returns `Ok`, none when it
    /// returns `Err`. The name labels the transaction in metrics and in the log.
    ///
    /// The closure may run again, as described at [Transactions](self#transactions). It owns nothing but `input`, which it
    /// gets by reference.
    ///
    /// # Errors
    /// The error of the closure, or [`Error::Store`].
    ///
    /// # Cancel safety
    /// The transaction runs to its end also when the returned future is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let contact = ContactCreate::new("ada@example.com".parse()?);
    /// let fee = InvoiceCreate::new("25".parse()?);
    /// let invoice = svc
    ///     .transaction("sign up", (tenant, contact, fee), async |tx, (tenant, contact, fee)| {
    ///         let account = tx.account(*tenant);
    ///         let contact = account.contacts().create(contact.clone()).await?;
    ///         let fee = InvoiceCreate { contact_id: Some(contact.id), ..fee.clone() };
    ///         account.invoices().create(fee).await
    ///     })
    ///     .await?;
    /// assert!(invoice.contact_id.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn transaction<I, T>(
        &self,
        name: &'static str,
        input: I,
        work: impl TransactionFn<I, T, Error>,
    ) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        transaction::run(&*self.store, name, input, work).await
    }

    /// Runs several operations in one transaction, like [`transaction`](Self::transaction), with an error type of the
    /// application's own. The transaction is rolled back when the closure returns `Err`, whatever the error.
    ///
    /// # Errors
    /// The error of the closure, or [`Error::Store`] as one.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// #[derive(Debug)]
    /// enum SignUpError {
    ///     Closed,
    ///     Svc(Error),
    /// }
    ///
    /// impl From<Error> for SignUpError {
    ///     fn from(error: Error) -> Self {
    ///         Self::Svc(error)
    ///     }
    /// }
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let contact = ContactCreate::new("ada@example.com".parse()?);
    /// let result: Result<(), SignUpError> = svc
    ///     .try_transaction("sign up", (tenant, contact), async |tx, (tenant, contact)| {
    ///         tx.account(*tenant).contacts().create(contact.clone()).await?;
    ///         Err(SignUpError::Closed)
    ///     })
    ///     .await;
    /// assert!(matches!(result, Err(SignUpError::Closed)));
    /// let left = svc.account(tenant).contacts().list(ContactFilter::default(), ListParams::default()).await?;
    /// assert!(left.data.is_empty());
    /// # Ok(()) });
    /// ```
    pub async fn try_transaction<I, T, E>(
        &self,
        name: &'static str,
        input: I,
        work: impl TransactionFn<I, T, E>,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        transaction::run(&*self.store, name, input, work).await
    }

    /// Closes the store: what it has begun is completed, and every later operation fails with
    /// [`StoreError::Closed`](crate::error::StoreError::Closed). Returns when its threads or tasks have ended.
    ///
    /// Stop the listeners of the application and the work in the background first. Dropping the last handle closes the
    /// store as well, and does not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::error::{Error, StoreError};
    /// use svc_core::prelude::*;
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let svc = Svc::in_memory();
    /// svc.close().await;
    /// assert_eq!(svc.accounts().list(None, 10).await, Err(Error::Store(StoreError::Closed)));
    /// # }).unwrap();
    /// ```
    pub async fn close(&self) {
        self.store.close().await;
    }

    fn runner(&self) -> Runner<'_> {
        Runner::new(self)
    }
}

impl fmt::Debug for Svc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Svc").finish_non_exhaustive()
    }
}

/// Runs an example of the documentation with an account in a store in memory.
#[doc(hidden)]
#[expect(clippy::expect_used, reason = "an example that fails is a test that fails")]
pub fn example(run: impl AsyncFnOnce(Svc, TenantId) -> Result<(), Box<dyn std::error::Error>>) {
    let example = async {
        let svc = Svc::in_memory();
        let tenant = svc.accounts().create(crate::accounts::tenants::TenantCreate::named("Harbour Plumbing")).await?;
        run(svc, tenant.id).await
    };
    futures_util::FutureExt::now_or_never(example).expect("a store in memory never waits").expect("the example fails");
}
