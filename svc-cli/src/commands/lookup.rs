//! Finds the tenant that a row belongs to, for commands that are given the row's id alone.

use std::pin::Pin;

use svc_core::error::Error;
use svc_core::resources::crud::Resource;
use svc_core::store::{Store, Tx};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::Delivery;
use uuid::Uuid;

/// The live row with this id, and its tenant. Rows never move, so the answer still holds in the job that follows.
///
/// # Errors
/// [`Error::NotFound`].
pub(super) async fn find<R: Resource>(store: &dyn Store, id: Uuid) -> Result<(TenantId, R), Error> {
    first(store, move |tx, tenant| {
        Box::pin(async move {
            let row = R::repository(tx).get(tenant, id).await?;
            Ok(row.filter(|row| row.deleted_at().is_none()).map(|row| (tenant, row)))
        })
    })
    .await
}

/// The delivery with this id.
///
/// # Errors
/// [`Error::NotFound`].
pub(super) async fn delivery(store: &dyn Store, id: Uuid) -> Result<Delivery, Error> {
    first(store, move |tx, tenant| Box::pin(async move { Ok(tx.delivery(tenant, id).await?) })).await
}

type Look<'t, T> = Pin<Box<dyn Future<Output = Result<Option<T>, Error>> + Send + 't>>;

/// What the first tenant has that has it. The store has no look-up across tenants, on purpose, so each is asked.
async fn first<T, F>(store: &dyn Store, look: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> Look<'t, T> + Copy + Send + Sync + 'static,
{
    store
        .read("cli.find", move |tx| {
            Box::pin(async move {
                for tenant in tx.tenants().await? {
                    if let Some(found) = look(tx, tenant.id).await? {
                        return Ok(found);
                    }
                }
                Err(Error::NotFound)
            })
        })
        .await
}
