//! What the accessors run their operations with: a store, in a transaction each, or a transaction that is open.

use futures_util::future::BoxFuture;

use super::Svc;
use crate::error::Error;
use crate::store::{Access, ResultSlot, Tx, UnitOfWork, keep_result};

/// Runs units of work without their result types.
pub(super) trait Executor: Send + Sync {
    fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> BoxFuture<'_, Result<(), Error>>;
}

impl Executor for Svc {
    fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> BoxFuture<'_, Result<(), Error>> {
        self.store.run(access, name, work)
    }
}

/// Runs units of work and returns their results.
#[derive(Clone, Copy)]
pub(super) struct Runner<'e>(pub(super) &'e dyn Executor);

impl Runner<'_> {
    pub(super) async fn read<T, F>(self, name: &'static str, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        self.run(Access::Read, name, work).await
    }

    pub(super) async fn write<T, F>(self, name: &'static str, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        self.run(Access::Write, name, work).await
    }

    async fn run<T, F>(self, access: Access, name: &'static str, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        let slot = ResultSlot::default();
        self.0.run(access, name, keep_result(work, &slot)).await?;
        slot.take(name)
    }
}
