//! Several operations in one transaction.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::lock::Mutex as AsyncMutex;

use super::executor::{Executor, Runner};
use super::{Account, Tenants};
use crate::error::{Error, StoreError};
use crate::store::{Access, Store, Tx, UnitOfWork};
use crate::sync::lock;
use crate::values::TenantId;

/// A transaction, with the same operations as [`Svc`](super::Svc).
///
/// [`Svc::transaction`](super::Svc::transaction) hands it to its closure. It is a handle that can be copied and passed to
/// functions. Operations run one after the other, in the order in which they are awaited.
#[derive(Clone, Copy)]
pub struct Transaction<'t> {
    executor: &'t dyn Executor,
}

impl<'t> Transaction<'t> {
    /// Returns the operations on tenants, the business accounts.
    pub fn tenants(self) -> Tenants<'t> {
        Tenants::new(Runner(self.executor))
    }

    /// Returns the records of one tenant.
    pub fn tenant(self, id: TenantId) -> Account<'t> {
        Account::new(Runner(self.executor), id)
    }
}

/// Operations in a transaction that someone else commits, for crates that join svc's operations to a transaction of the
/// application.
///
/// # Examples
///
/// ```
/// use svc_core::prelude::*;
/// use svc_core::service::OpenTransaction;
/// use svc_core::store::{Store, Tx};
///
/// /// Is called with the transaction of a store.
/// async fn sign_up(tx: &mut dyn Tx) -> Result<Tenant, Error> {
///     let tx = OpenTransaction::new(tx);
///     tx.tenants().create(TenantCreate::named("Harbour Plumbing")).await
/// }
///
/// # futures_util::FutureExt::now_or_never(async {
/// let svc = Svc::in_memory();
/// let tenant = svc.store().write("sign up", |tx| Box::pin(sign_up(tx))).await?;
/// assert_eq!(tenant.name, "Harbour Plumbing");
/// # Ok::<(), Error>(())
/// # }).unwrap().unwrap();
/// ```
pub struct OpenTransaction<'x> {
    tx: AsyncMutex<Held<'x>>,
}

enum Held<'x> {
    Borrowed(&'x mut dyn Tx),
    Owned(Box<dyn Tx + 'x>),
}

impl<'x> OpenTransaction<'x> {
    /// Returns the operations in a transaction of a store.
    pub fn new(tx: &'x mut dyn Tx) -> Self {
        Self { tx: AsyncMutex::new(Held::Borrowed(tx)) }
    }

    /// Returns the operations in a transaction that this value keeps.
    pub fn owning(tx: Box<dyn Tx + 'x>) -> Self {
        Self { tx: AsyncMutex::new(Held::Owned(tx)) }
    }

    /// Returns a handle that can be copied.
    pub fn transaction(&self) -> Transaction<'_> {
        Transaction { executor: self }
    }

    /// Returns the operations on tenants, the business accounts.
    pub fn tenants(&self) -> Tenants<'_> {
        self.transaction().tenants()
    }

    /// Returns the records of one tenant.
    pub fn tenant(&self, id: TenantId) -> Account<'_> {
        self.transaction().tenant(id)
    }
}

impl Executor for OpenTransaction<'_> {
    fn run(&self, _access: Access, _name: &'static str, work: UnitOfWork) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            match &mut *self.tx.lock().await {
                Held::Borrowed(tx) => work(&mut **tx).await,
                Held::Owned(tx) => work(&mut **tx).await,
            }
        })
    }
}

/// The closure of a transaction: an async closure over the transaction and the input, whose future can be sent between
/// threads. It is implemented for every such closure; there is no need to name it.
pub trait TransactionFn<'t, I: 't, Out> {
    /// Calls the closure.
    fn call(&self, tx: Transaction<'t>, input: &'t I) -> BoxFuture<'t, Out>;
}

impl<'t, I, Out, F, Fut> TransactionFn<'t, I, Out> for F
where
    I: 't,
    F: Fn(Transaction<'t>, &'t I) -> Fut,
    Fut: Future<Output = Out> + Send + 't,
{
    fn call(&self, tx: Transaction<'t>, input: &'t I) -> BoxFuture<'t, Out> {
        Box::pin(self(tx, input))
    }
}

/// The error that a unit of work returns to its store for one of the application's own.
fn rolled_back() -> Error {
    Error::NotAllowed("The transaction was rolled back by its closure.".to_owned())
}

/// Runs a transaction, and returns the result of its last run.
pub(super) async fn run<I, T, E, F>(store: &dyn Store, name: &'static str, input: I, work: F) -> Result<T, E>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
    F: for<'t> TransactionFn<'t, I, Result<T, E>> + Send + Sync + 'static,
{
    let last_result = Arc::new(Mutex::new(None));
    let (slot, closure) = (Arc::clone(&last_result), Arc::new((input, work)));
    let unit: UnitOfWork = Box::new(move |tx| {
        let (slot, closure) = (Arc::clone(&slot), Arc::clone(&closure));
        Box::pin(async move {
            let (input, work) = &*closure;
            let open = OpenTransaction::new(tx);
            let result = work.call(open.transaction(), input).await;
            let returned = if result.is_ok() { Ok(()) } else { Err(rolled_back()) };
            *lock(&slot) = Some(result);
            returned
        })
    });
    let outcome = store.run(Access::Write, name, unit).await;
    let result = lock(&last_result).take();
    match (outcome, result) {
        (Ok(()), Some(result)) => result,
        (Ok(()), None) => Err(Error::from(StoreError::Internal(format!("{name} ended without a result"))).into()),
        (Err(error), Some(Err(own))) if error == rolled_back() => Err(own),
        (Err(error), _) => Err(error.into()),
    }
}
