//! Finds a record and its tenant by the record's id alone.

use std::pin::Pin;

use svc_core::error::Error;
use svc_core::resources::crud::Resource;
use svc_core::store::{Store, Tx};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::Delivery;
use uuid::Uuid;

/// A record and the tenant that owns it.
pub(super) struct Owned<R> {
    pub(super) tenant_id: TenantId,
    pub(super) record: R,
}

/// Returns the record with this id, unless it is deleted. A record never changes its tenant, so the tenant is still
/// right in a later transaction.
///
/// # Errors
/// [`Error::NotFound`].
pub(super) async fn find<R: Resource>(store: &dyn Store, id: Uuid) -> Result<Owned<R>, Error> {
    search(store, move |tx, tenant_id| {
        Box::pin(async move {
            let record = R::repository(tx).get(tenant_id, id).await?;
            Ok(record.filter(|record| record.deleted_at().is_none()).map(|record| Owned { tenant_id, record }))
        })
    })
    .await
}

/// Returns the delivery with this id.
///
/// # Errors
/// [`Error::NotFound`].
pub(super) async fn delivery(store: &dyn Store, id: Uuid) -> Result<Delivery, Error> {
    search(store, move |tx, tenant| Box::pin(async move { Ok(tx.delivery(tenant, id).await?) })).await
}

type Lookup<'t, T> = Pin<Box<dyn Future<Output = Result<Option<T>, Error>> + Send + 't>>;

/// Runs a lookup for one tenant after the other until it finds something. The store deliberately has no lookup across
/// tenants.
async fn search<T, F>(store: &dyn Store, lookup: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> Lookup<'t, T> + Copy + Send + Sync + 'static,
{
    store
        .read("cli.find", move |tx| {
            Box::pin(async move {
                for tenant in tx.tenants().await? {
                    if let Some(found) = lookup(tx, tenant.id).await? {
                        return Ok(found);
                    }
                }
                Err(Error::NotFound)
            })
        })
        .await
}
