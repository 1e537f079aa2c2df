//! The tenants of a run.

use std::net::SocketAddr;
use std::sync::Arc;

use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::{Create, crud};
use svc_core::store::Store;
use svc_core::values::{EventSet, TenantId, WebhookUrl};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::tenant;

/// Contacts created in one transaction.
const BATCH: u32 = 500;

pub(crate) struct Tenant {
    /// The text of the tenant's API key.
    pub(crate) key: String,
    pub(crate) contacts: Vec<ContactId>,
}

/// Creates tenants with contacts, then a subscription to all events for each.
pub(crate) async fn create(
    database: &Database,
    tenants: u32,
    contacts: u32,
    endpoint: SocketAddr,
) -> Result<Arc<[Tenant]>> {
    let store = database.open().await?;
    let mut made = Vec::new();
    for _ in 0..tenants {
        made.push(tenant(&*store, contacts, endpoint).await?);
    }
    Ok(made.into())
}

async fn tenant(store: &dyn Store, contacts: u32, endpoint: SocketAddr) -> Result<Tenant> {
    let (id, key) = tenant::make(store).await?;
    let mut ids = Vec::new();
    for first in (0..contacts).step_by(BATCH as usize) {
        ids.extend(add_contacts(store, id, first..contacts.min(first + BATCH)).await?);
    }
    let subscribed = store.write("load.hook", (endpoint, id), async |tx, &(endpoint, id)| {
        let url = WebhookUrl::parse(&format!("http://{endpoint}/")).map_err(|error| error.on("url"))?;
        let input = WebhookCreate::new(url, EventSet::All);
        crud::create::<WebhookSubscription>(tx, id, input).await
    });
    subscribed.await?;
    Ok(Tenant { key, contacts: ids })
}

async fn add_contacts(
    store: &dyn Store,
    tenant: TenantId,
    numbers: std::ops::Range<u32>,
) -> std::result::Result<Vec<ContactId>, Error> {
    let added = store.write("load.contacts", (numbers, tenant), async |tx, (numbers, tenant)| {
        let mut ids = Vec::new();
        for number in numbers.clone() {
            let body = format!(r#"{{"email": "seed{number}@example.com", "first_name": "Ada"}}"#);
            let input = <Contact as Create>::Input::from_body(body.as_bytes())?;
            ids.push(crud::create::<Contact>(tx, *tenant, input).await?.id);
        }
        Ok(ids)
    });
    added.await
}
