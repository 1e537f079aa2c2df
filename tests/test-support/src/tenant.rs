//! A tenant with a key.

use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::store::Store;
use svc_core::values::TenantId;

use crate::Result;

/// Creates a tenant. Returns its id and the text of a key that reads and writes.
pub async fn make(store: &dyn Store) -> Result<(TenantId, String)> {
    let made = store.write("tests.tenant", (), async |tx, ()| {
        let id = tenants::create(tx, TenantCreate::named("Tenant")).await?.id;
        // Duplicate contacts must not be hidden by this rule.
        tenants::update(tx, id.0, |tenant| tenant.unique_contact_email = false).await?;
        let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
        Ok((id, keys::create(tx, id, input).await?.text.reveal().to_owned()))
    });
    Ok(made.await?)
}
