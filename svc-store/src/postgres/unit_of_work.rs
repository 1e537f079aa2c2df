//! Runs one job over a session, and bounds what it may do to the task that runs it.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use svc_core::accounts::audit::Actor;
use svc_core::error::{Error, StoreError};
use svc_core::store::UnitOfWork;
use svc_core::webhooks::deliveries::DeliveryWakeup;

use super::Shared;
use super::transaction::PostgresTransaction;
use crate::dialect::Dialect;
use crate::sql::SqlTx;

/// No job is longer, whatever it waits for. The server's own bounds are per statement.
pub(super) const MAX_DURATION: Duration = Duration::from_secs(30);

/// Runs a job to its end; a panic is its failure only.
pub(super) async fn run(
    name: &'static str,
    job: &UnitOfWork,
    session: &mut PostgresTransaction<'_>,
    shared: &Shared,
    delivery_wakeup: &DeliveryWakeup,
) -> Result<(), Error> {
    let Shared { env, cursor_key, .. } = shared;
    let mut tx =
        SqlTx { sql: session, env, cursor_key, delivery_wakeup, dialect: Dialect::Postgres, actor: Actor::System };
    match AssertUnwindSafe(async { job(&mut tx).await }).catch_unwind().await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Internal(format!("{name} panicked")).into()),
    }
}

pub(super) fn too_long(name: &str) -> StoreError {
    StoreError::Unavailable(format!("{name} took longer than {MAX_DURATION:?}"))
}

/// The job's own error, unless it only passes on what the database said: then the first of that.
pub(super) fn first_cause(result: Result<(), Error>, failure: &StoreError) -> Error {
    match result {
        Err(Error::Store(_)) | Ok(()) => failure.clone().into(),
        Err(own) => own,
    }
}
