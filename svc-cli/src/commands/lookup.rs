//! Finds the tenant that a row belongs to, for commands that are given the row's id alone.

use svc_core::error::Error;
use svc_core::resource::Resource;
use svc_core::store::Store;
use svc_core::types::TenantId;
use uuid::Uuid;

/// The live row with this id, and its tenant. The store has no look-up across tenants, on purpose, so each
/// is asked. Rows never move, so the answer still holds in the job that follows.
///
/// # Errors
/// [`Error::NotFound`].
pub(super) async fn find<R: Resource>(store: &dyn Store, id: Uuid) -> Result<(TenantId, R), Error> {
    store
        .read("cli.find", move |tx| {
            Box::pin(async move {
                for tenant in tx.tenants().await? {
                    let row = R::rows(tx).get(tenant.id, id).await?;
                    if let Some(row) = row.filter(|row| row.deleted_at().is_none()) {
                        return Ok((tenant.id, row));
                    }
                }
                Err(Error::NotFound)
            })
        })
        .await
}
