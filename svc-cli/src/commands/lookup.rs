//! Finds a record and its tenant by the record's id.
//!
//! Ids are unique within a tenant. An import can give records of two tenants the same id, so a command that is given an
//! id alone refuses an id that several of them have.

use std::fmt::Display;
use std::pin::Pin;

use svc_core::accounts::keys::{self, ApiKey, KeyId};
use svc_core::accounts::tenants::{self, Tenant};
use svc_core::error::Error;
use svc_core::resources::crud::Resource;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::quotes::Quote;
use svc_core::store::{OwnedKind, Store, Tx};
use svc_core::values::{Id, TenantId};
use svc_core::webhooks::deliveries::{Delivery, DeliveryId};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::cli::Owner;
use crate::exit::{Exit, Failure, OrNotFound};
use crate::output::plain;

/// A record and the tenant that owns it.
pub(super) struct Owned<R> {
    pub(super) tenant_id: TenantId,
    pub(super) record: R,
}

/// Why no single record was found.
pub(super) enum LookupError {
    /// The tenant that was named has no such record.
    NotInTenant(TenantId),
    /// Several tenants have a record with the id, and none of them was named.
    Ambiguous(Vec<Tenant>),
    /// Any other error, [`Error::NotFound`] included.
    Other(Error),
}

impl<E: Into<Error>> From<E> for LookupError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl<T> OrNotFound<T> for Result<T, LookupError> {
    fn or_not_found(self, what: &str, id: impl Display, hint: &str) -> Result<T, Failure> {
        self.or_else(|error| match error {
            LookupError::Other(error) => Err(error).or_not_found(what, id, hint),
            LookupError::NotInTenant(tenant) => {
                Err(Failure::new(Exit::NotFound, format!("Tenant {tenant} has no {what} {id}; {hint}.")))
            }
            LookupError::Ambiguous(tenants) => {
                let candidates: String =
                    tenants.iter().map(|tenant| format!("\n  {}  {}", tenant.id, plain(&tenant.name))).collect();
                let count = tenants.len();
                let message =
                    format!("The {what} {id} exists in {count} tenants; name one of them with --tenant:{candidates}");
                Err(Failure::new(Exit::Refused, message))
            }
        })
    }
}

/// A resource whose records are found by their id alone.
pub(super) trait FoundById: Resource {
    const KIND: OwnedKind;
}

impl FoundById for Invoice {
    const KIND: OwnedKind = OwnedKind::Invoice;
}

impl FoundById for Quote {
    const KIND: OwnedKind = OwnedKind::Quote;
}

impl FoundById for WebhookSubscription {
    const KIND: OwnedKind = OwnedKind::Subscription;
}

/// Returns the record with this id, unless it is deleted. A record never changes its tenant, so the tenant is still
/// right in a later transaction.
///
/// # Errors
/// No tenant has the record, or several have one.
pub(super) async fn find<R: FoundById>(store: &dyn Store, id: Id<R>, owner: Owner) -> Result<Owned<R>, LookupError> {
    search(store, (R::KIND, id.uuid()), owner, move |tx, tenant_id| {
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
/// No tenant has the delivery, or several have one.
pub(super) async fn delivery(store: &dyn Store, id: DeliveryId, owner: Owner) -> Result<Delivery, LookupError> {
    search(store, (OwnedKind::Delivery, id.uuid()), owner, move |tx, tenant| {
        Box::pin(async move { Ok(tx.delivery(tenant, id).await?) })
    })
    .await
}

/// Returns the API key with this id. The ids of keys are unique among all tenants, since keys are never imported.
///
/// # Errors
/// The key does not exist, or it belongs to another tenant than the one that was named.
pub(super) async fn key(store: &dyn Store, id: KeyId, owner: Owner) -> Result<ApiKey, LookupError> {
    let key = store.read("key.show", move |tx| Box::pin(keys::get(tx, id))).await?;
    match owner.tenant {
        Some(tenant) if tenant != key.tenant_id => Err(LookupError::NotInTenant(tenant)),
        _ => Ok(key),
    }
}

type Lookup<'t, T> = Pin<Box<dyn Future<Output = Result<Option<T>, Error>> + Send + 't>>;

/// Runs a lookup for the tenant that was named, or for those that have a record with the id.
async fn search<T, F>(
    store: &dyn Store,
    (kind, id): (OwnedKind, Uuid),
    owner: Owner,
    lookup: F,
) -> Result<T, LookupError>
where
    T: Send + 'static,
    F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> Lookup<'t, T> + Copy + Send + Sync + 'static,
{
    if let Some(tenant) = owner.tenant {
        let found = store.read("cli.find", move |tx| lookup(tx, tenant)).await?;
        return found.ok_or(LookupError::NotInTenant(tenant));
    }
    let found = store.read("cli.find", move |tx| {
        Box::pin(async move {
            let mut found = Vec::new();
            for owner in tx.owners(kind, id).await? {
                if let Some(record) = lookup(tx, owner).await? {
                    found.push((tenants::get(tx, owner).await?, record));
                }
            }
            Ok(found)
        })
    });
    let mut found: Vec<(Tenant, T)> = found.await?;
    match found.pop() {
        None => Err(Error::NotFound.into()),
        Some((_, record)) if found.is_empty() => Ok(record),
        Some((last, _)) => {
            Err(LookupError::Ambiguous(found.into_iter().map(|(tenant, _)| tenant).chain([last]).collect()))
        }
    }
}
