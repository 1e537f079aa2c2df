//! What the accessors run their operations with: a store, in a transaction each, or a transaction that is open.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tracing::{Instrument as _, Span, field};
use uuid::Uuid;

use super::Svc;
use crate::error::Error;
use crate::store::{Access, ResultSlot, UnitOfWork, UnitOfWorkFn, unit_of_work};
use crate::values::TenantId;

/// What runs the units of work of operations: a store, or a transaction that someone else commits.
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

/// An operation of the facade: its name, and the span of each call.
#[derive(Clone, Copy)]
pub(super) struct Traced {
    pub(super) name: &'static str,
    pub(super) span: fn() -> Span,
    pub(super) id: Option<Uuid>,
}

impl Traced {
    /// Names the record that this call is about.
    pub(super) fn on(self, id: impl Into<Uuid>) -> Self {
        Self { id: Some(id.into()), ..self }
    }
}

/// Makes a [`Traced`], and the record that it is about if there is one. A macro, as the name of a span is a constant
/// of the place that creates it.
macro_rules! operation {
    ($name:expr) => {
        $crate::service::executor::Traced {
            name: $name,
            span: || {
                tracing::debug_span!(
                    target: $crate::service::executor::TARGET,
                    $name,
                    tenant = tracing::field::Empty,
                    id = tracing::field::Empty,
                    error = tracing::field::Empty,
                )
            },
            id: None,
        }
    };
    ($name:expr, $id:ident) => {
        operation!($name).on($id)
    };
}

pub(super) use operation;

/// Runs units of work and returns their results.
#[derive(Clone, Copy)]
pub(super) struct Runner<'e> {
    executor: &'e dyn Executor,
    tenant: Option<TenantId>,
}

impl<'e> Runner<'e> {
    pub(super) fn new(executor: &'e dyn Executor) -> Self {
        Self { executor, tenant: None }
    }

    /// Returns a runner for the operations of one account.
    pub(super) fn of_tenant(self, id: TenantId) -> Self {
        Self { tenant: Some(id), ..self }
    }

    pub(super) async fn read<I, T>(self, operation: Traced, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Access::Read, operation, unit_of_work(&Arc::new((input, work)))).await
    }

    pub(super) async fn write<I, T>(
        self,
        operation: Traced,
        input: I,
        work: impl UnitOfWorkFn<I, T>,
    ) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Access::Write, operation, unit_of_work(&Arc::new((input, work)))).await
    }

    async fn run<T>(
        self,
        access: Access,
        operation: Traced,
        (work, result): (UnitOfWork, ResultSlot<T>),
    ) -> Result<T, Error> {
        let span = (operation.span)();
        if let Some(tenant) = self.tenant {
            span.record("tenant", field::display(tenant));
        }
        if let Some(id) = operation.id {
            span.record("id", field::display(id));
        }
        let work = match self.tenant {
            Some(tenant) => in_account(tenant, access, work),
            None => work,
        };
        let done = self.executor.run(access, operation.name, work).instrument(span.clone()).await;
        if let Err(error) = &done {
            span.record("error", error.code());
        }
        done?;
        result.take(operation.name)
    }
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
}
