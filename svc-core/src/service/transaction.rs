//! Several operations in one transaction.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::lock::Mutex as AsyncMutex;
use tracing::{Instrument as _, field};

use super::executor::{Executor, Runner, TARGET};
use super::{Account, Accounts};
use crate::error::{Error, StoreError};
use crate::store::{Access, CallBoxed, Store, Tx, UnitOfWork};
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
    /// Returns the operations over something that runs them in a transaction.
    pub fn over(executor: &'t dyn Executor) -> Self {
        Self { executor }
    }

    /// Returns the operations on accounts.
    pub fn accounts(self) -> Accounts<'t> {
        Accounts::new(Runner::new(self.executor))
    }

    /// Returns the records of one account.
    pub fn account(self, id: TenantId) -> Account<'t> {
        Account::new(Runner::new(self.executor), id)
    }
}

/// A unit of work in progress, as an executor: operations run in it one after the other.
struct OpenTransaction<'x>(AsyncMutex<&'x mut dyn Tx>);

impl Executor for OpenTransaction<'_> {
    fn run(&self, _access: Access, _name: &'static str, work: UnitOfWork) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { work(&mut **self.0.lock().await).await })
    }
}

/// The closure of a transaction: an async closure over the transaction and its input, whose future can be sent between
/// threads. It is implemented for every such closure; there is no need to name it.
pub trait TransactionFn<I: 'static, T, E>:
    for<'t> AsyncFn(Transaction<'t>, &'t I) -> Result<T, E>
    + for<'t> CallBoxed<Transaction<'t>, &'t I, BoxFuture<'t, Result<T, E>>>
    + Send
    + Sync
    + 'static
{
}

impl<I: 'static, T, E, F> TransactionFn<I, T, E> for F where
    F: for<'t> AsyncFn(Transaction<'t>, &'t I) -> Result<T, E>
        + for<'t> CallBoxed<Transaction<'t>, &'t I, BoxFuture<'t, Result<T, E>>>
        + Send
        + Sync
        + 'static
{
}

/// The error that a unit of work returns to its store for one of the application's own.
fn rolled_back() -> Error {
    Error::NotAllowed("The transaction was rolled back by its closure.".to_owned())
}

/// Runs a transaction, and returns the result of its last run.
pub(super) async fn run<I, T, E>(
    store: &dyn Store,
    name: &'static str,
    input: I,
    work: impl TransactionFn<I, T, E>,
) -> Result<T, E>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let span = tracing::debug_span!(target: TARGET, "svc.transaction", name, error = field::Empty);
    let inside = span.clone();
    let last_result = Arc::new(Mutex::new(None));
    let (slot, closure) = (Arc::clone(&last_result), Arc::new((input, work)));
    let unit: UnitOfWork = Box::new(move |tx| {
        let (slot, closure) = (Arc::clone(&slot), Arc::clone(&closure));
        // The store may run this on another thread, where the operations have no span around them.
        let run = async move {
            let (input, work) = &*closure;
            let open = OpenTransaction(AsyncMutex::new(tx));
            let result = work.call_boxed(Transaction::over(&open), input).await;
            let returned = if result.is_ok() { Ok(()) } else { Err(rolled_back()) };
            *lock(&slot) = Some(result);
            returned
        };
        Box::pin(run.instrument(inside.clone()))
    });
    let outcome = store.run(Access::Write, name, unit).instrument(span.clone()).await;
    if let Err(error) = &outcome {
        span.record("error", error.code());
    }
    let result = lock(&last_result).take();
    match (outcome, result) {
        (Ok(()), Some(result)) => result,
        (Ok(()), None) => Err(Error::from(StoreError::Internal(format!("{name} ended without a result"))).into()),
        (Err(error), Some(Err(own))) if error == rolled_back() => Err(own),
        (Err(error), _) => Err(error.into()),
    }
}
