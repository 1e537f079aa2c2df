//! The executors of operations: a store, in a transaction each, or a transaction that is open.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tracing::{Instrument as _, field};
use uuid::Uuid;

use super::Svc;
use crate::error::Error;
use crate::input::Input;
use crate::operation::{Method, Operation, Target};
use crate::store::{Access, ResultSlot, Tx, UnitOfWork, UnitOfWorkFn, unit_of_work};
use crate::values::{Id, TenantId};

/// The executor of the units of work of operations: a store, or a transaction that the caller commits.
///
/// Implement it to put the operations of svc on a transaction of another crate, and make a
/// [`Transaction`](super::Transaction::over) of it.
pub trait Executor: Send + Sync {
    /// Runs a unit of work. Inside a transaction that is open, `access` and `name` say nothing.
    fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> BoxFuture<'_, Result<(), Error>>;
}

impl Executor for Svc {
    fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> BoxFuture<'_, Result<(), Error>> {
        self.store.run(access, name, work)
    }
}

/// The target of the spans.
pub(super) const TARGET: &str = "svc_core::service";

/// Runs operations and units of work, and returns their results.
#[derive(Clone, Copy)]
pub(super) struct Runner<'e> {
    executor: &'e dyn Executor,
    tenant: Option<TenantId>,
    /// The record that the next one is about, for its span.
    id: Option<Uuid>,
}

impl<'e> Runner<'e> {
    pub(super) fn new(executor: &'e dyn Executor) -> Self {
        Self { executor, tenant: None, id: None }
    }

    /// Returns a runner for the operations of one account.
    pub(super) fn of_tenant(self, id: TenantId) -> Self {
        Self { tenant: Some(id), ..self }
    }

    /// Returns a runner for what is done with one record.
    pub(super) fn on(self, id: impl Into<Uuid>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Runs an operation that the APIs have, as a trusted caller.
    pub(super) async fn call<K, I, O>(self, operation: &Operation<K, I, O>, target: K, input: I) -> Result<O, Error>
    where
        K: Target,
        I: Input + Clone,
        O: Send + 'static,
    {
        let access = if operation.method == Method::Get { Access::Read } else { Access::Write };
        let runner = Self { tenant: target.account(), id: target.id(), ..self };
        runner.run(access, operation.id, unit_of_work(&Arc::new(((*operation, target, input), run)))).await
    }

    /// Runs a read that no API has as an operation.
    pub(super) async fn read<I, T>(
        self,
        name: &'static str,
        input: I,
        work: impl UnitOfWorkFn<I, T>,
    ) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Access::Read, name, unit_of_work(&Arc::new((input, work)))).await
    }

    /// Runs a write that no API has as an operation.
    pub(super) async fn write<I, T>(
        self,
        name: &'static str,
        input: I,
        work: impl UnitOfWorkFn<I, T>,
    ) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Access::Write, name, unit_of_work(&Arc::new((input, work)))).await
    }

    async fn run<T>(
        self,
        access: Access,
        name: &'static str,
        (work, result): (UnitOfWork, ResultSlot<T>),
    ) -> Result<T, Error> {
        let span = tracing::debug_span!(
            target: TARGET,
            "svc.operation",
            operation = name,
            tenant = field::Empty,
            id = field::Empty,
            error = field::Empty,
        );
        if let Some(tenant) = self.tenant {
            span.record("tenant", field::display(tenant));
        }
        if let Some(id) = self.id {
            span.record("id", field::display(id));
        }
        let work = match self.tenant {
            Some(tenant) => in_account(tenant, access, work),
            None => work,
        };
        let done = self.executor.run(access, name, work).instrument(span.clone()).await;
        if let Err(error) = &done {
            span.record("error", error.code());
        }
        done?;
        result.take(name)
    }
}

/// Runs an operation inside a transaction.
pub(super) async fn run<K, I, O>(
    tx: &mut dyn Tx,
    (operation, target, input): &(Operation<K, I, O>, K, I),
) -> Result<O, Error>
where
    K: Target,
    I: Input + Clone,
    O: Send + 'static,
{
    operation.run(tx, *target, input).await
}

/// Makes a read one of its account. Tells the error of an operation that finds nothing because there is no such account, which
/// may be in another database, from that of one whose record is not found.
fn in_account(tenant: TenantId, access: Access, work: UnitOfWork) -> UnitOfWork {
    let work = Arc::new(work);
    Box::new(move |tx| {
        let work = Arc::clone(&work);
        Box::pin(async move {
            if access == Access::Read {
                tx.read_as(tenant)?;
            }
            match work(tx).await {
                Err(Error::NotFound) if tx.tenant(tenant).await?.is_none() => Err(Error::UnknownTenant(tenant)),
                done => done,
            }
        })
    })
}

/// The records and settings of one account.
///
/// [`Svc::account`](super::Svc::account) returns it, and [`Transaction::account`](super::Transaction::account) inside a
/// transaction. The accessors do nothing by themselves; their methods do.
#[derive(Clone, Copy)]
pub struct Account<'e> {
    pub(super) runner: Runner<'e>,
    pub(super) id: TenantId,
}

impl<'e> Account<'e> {
    pub(super) fn new(runner: Runner<'e>, id: TenantId) -> Self {
        Self { runner: runner.of_tenant(id), id }
    }

    /// Runs an operation on the account.
    pub(super) async fn call<I, O>(self, operation: &Operation<TenantId, I, O>, input: I) -> Result<O, Error>
    where
        I: Input + Clone,
        O: Send + 'static,
    {
        self.runner.call(operation, self.id, input).await
    }

    /// Runs an operation on a record of the account.
    pub(super) async fn call_on<R, I, O>(
        self,
        operation: &Operation<(TenantId, Id<R>), I, O>,
        id: Id<R>,
        input: I,
    ) -> Result<O, Error>
    where
        R: 'static,
        I: Input + Clone,
        O: Send + 'static,
    {
        self.runner.call(operation, (self.id, id), input).await
    }
}
