//! Units of work: closures that a store runs in a transaction.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;

use super::Tx;
use crate::error::{Error, StoreError};
use crate::sync::lock;

/// A unit of work without its input and result types, for implementors of [`Store`](super::Store).
pub type UnitOfWork = Box<dyn for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<(), Error>> + Send + Sync>;

/// The closure of a unit of work: an async closure over the transaction and its input.
///
/// It is implemented for each such closure whose future can be sent between threads, and for each such `async fn`. There is
/// no need to implement it, and only functions that hand a unit of work on need to name it:
///
/// ```
/// use svc_core::error::Error;
/// use svc_core::store::{Store, UnitOfWorkFn};
///
/// async fn write_twice<I: Clone + Send + Sync + 'static, T: Send + 'static>(
///     store: &dyn Store,
///     input: I,
///     work: impl UnitOfWorkFn<I, T> + Clone,
/// ) -> Result<T, Error> {
///     store.write("first", input.clone(), work.clone()).await?;
///     store.write("second", input, work).await
/// }
/// ```
pub trait UnitOfWorkFn<I: 'static, T>:
    for<'t> AsyncFn(&'t mut dyn Tx, &'t I) -> Result<T, Error>
    + for<'t> CallBoxed<&'t mut dyn Tx, &'t I, BoxFuture<'t, Result<T, Error>>>
    + Send
    + Sync
    + 'static
{
}

impl<I: 'static, T, F> UnitOfWorkFn<I, T> for F where
    F: for<'t> AsyncFn(&'t mut dyn Tx, &'t I) -> Result<T, Error>
        + for<'t> CallBoxed<&'t mut dyn Tx, &'t I, BoxFuture<'t, Result<T, Error>>>
        + Send
        + Sync
        + 'static
{
}

/// Calls an async closure and boxes its future, which can be sent between threads. `AsyncFn` alone cannot say that it can.
pub trait CallBoxed<X, I, Future> {
    /// Calls the closure.
    fn call_boxed(&self, tx: X, input: I) -> Future;
}

impl<'t, X, I, T, F, Running> CallBoxed<X, I, BoxFuture<'t, T>> for F
where
    F: Fn(X, I) -> Running,
    Running: Future<Output = T> + Send + 't,
{
    fn call_boxed(&self, tx: X, input: I) -> BoxFuture<'t, T> {
        Box::pin(self(tx, input))
    }
}

/// The result of the last run of a unit of work.
pub(crate) struct ResultSlot<T>(Arc<Mutex<Option<T>>>);

impl<T> ResultSlot<T> {
    /// Returns the result, after the unit of work with this name was committed.
    pub(crate) fn take(self, name: &str) -> Result<T, Error> {
        let value = lock(&self.0).take();
        value.ok_or_else(|| StoreError::Internal(format!("{name} ended without a result")).into())
    }
}

/// Returns the unit of work of a closure and its input, and where its result will be.
pub(crate) fn unit_of_work<I, T, F>(closure: &Arc<(I, F)>) -> (UnitOfWork, ResultSlot<T>)
where
    I: Send + Sync + 'static,
    T: Send + 'static,
    F: UnitOfWorkFn<I, T>,
{
    let slot = Arc::new(Mutex::new(None));
    let (closure, result) = (Arc::clone(closure), Arc::clone(&slot));
    let unit: UnitOfWork = Box::new(move |tx| {
        let (closure, result) = (Arc::clone(&closure), Arc::clone(&result));
        Box::pin(async move {
            let (input, work) = &*closure;
            let value = work.call_boxed(tx, input).await?;
            *lock(&result) = Some(value);
            Ok(())
        })
    });
    (unit, ResultSlot(slot))
}
