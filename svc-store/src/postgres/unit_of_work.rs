//! Runs a unit of work in a transaction, and keeps its panics from ending the task that runs it.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use svc_core::error::{Error, StoreError};
use svc_core::store::UnitOfWork;
use svc_core::webhooks::deliveries::DeliveryWakeup;

use super::Shared;
use super::transaction::PostgresTransaction;
use crate::dialect::Dialect;
use crate::locked_tenants::LockedTenants;
use crate::sql::SqlTx;

/// The longest that a unit of work may take. The timeouts of the server apply to single statements only.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(30);

/// Runs a unit of work. A panic becomes an error.
pub(super) async fn run(
    name: &'static str,
    work: &UnitOfWork,
    transaction: &mut PostgresTransaction<'_>,
    shared: &Shared,
    delivery_wakeup: &DeliveryWakeup,
    locked: Option<&mut LockedTenants>,
) -> Result<(), Error> {
    let Shared { env, cursor_key, .. } = shared;
    let mut tx = SqlTx { locked, ..SqlTx::new(transaction, Dialect::Postgres, env, cursor_key, delivery_wakeup) };
    match AssertUnwindSafe(async { work(&mut tx).await }).catch_unwind().await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Internal(format!("{name} panicked")).into()),
    }
}

pub(crate) fn too_long(name: &str) -> StoreError {
    StoreError::Unavailable(format!("{name} took longer than {MAX_DURATION:?}"))
}

/// Returns the error of the unit of work, unless it only passes on an error of the database. Then it returns `failure`, the
/// first error of the transaction.
pub(super) fn first_cause(result: Result<(), Error>, failure: &StoreError) -> Error {
    match result {
        Err(Error::Store(_)) | Ok(()) => failure.clone().into(),
        Err(own) => own,
    }
}
