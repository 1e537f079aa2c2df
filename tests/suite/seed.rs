//! The content of the database at the start of every test. It is written once per process and then copied.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, DeveloperAccess, TenantCreate};
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::error::Error;
use svc_core::input::Input;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::resources::invoices;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use svc_test_support::fixture::{Key, START};
use uuid::Uuid;

use crate::database::{self, Database};

/// The ids and keys in the seeded database.
#[derive(Clone)]
pub(crate) struct Seed {
    pub(crate) tenant: TenantId,
    pub(crate) other_tenant: TenantId,
    /// Keys by role: `write`, `read`, `signed`, `revoked`, `expired`, `other`, `pending`, `suspended`.
    pub(crate) keys: HashMap<&'static str, Key>,
    /// Ids by the name of their placeholder, such as `contact_id`.
    pub(crate) ids: HashMap<&'static str, Uuid>,
    /// The same ids of the other tenant.
    pub(crate) other_ids: HashMap<&'static str, Uuid>,
}

struct Template {
    database: Database,
    seed: Seed,
}

/// The database that is copied.
static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
    // Built on a thread of its own, because tests already run inside a runtime.
    std::thread::spawn(make).join().unwrap()
});

/// Returns a copy of the seeded database, and its ids and keys.
pub(crate) fn copy() -> (Database, Seed) {
    (TEMPLATE.database.copy(), TEMPLATE.seed.clone())
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse(START).unwrap()
}

fn make() -> Template {
    let database = Database::new();
    let clock = ManualClock::at(start().minus(Duration::from_secs(24 * 60 * 60)));
    let store = database.open(Env::new(clock.clone(), SeededEntropy::new(1)));
    let seed = database::RUNTIME.block_on(async {
        let tenants_and_keys =
            store.write("tenants_and_keys", (), async |tx, ()| tenants_and_keys(tx).await).await.unwrap();
        clock.set(start());
        store
            .write("records", tenants_and_keys, async |tx, tenants_and_keys| {
                records(tx, tenants_and_keys.clone()).await
            })
            .await
            .unwrap()
    });
    drop(store);
    database.settle();
    Template { database, seed }
}

async fn key(tx: &mut dyn Tx, tenant: TenantId, write: bool, signed: bool, hours: Option<u64>) -> Result<Key, Error> {
    let expires_in = hours.map(|hours| Duration::from_secs(hours * 60 * 60));
    Ok(keys::create(tx, tenant, KeyCreate { name: None, write, expires_in, signed }).await?.into())
}

/// Writes the tenants and keys, one day before the tests start.
async fn tenants_and_keys(tx: &mut dyn Tx) -> Result<Seed, Error> {
    let named = |name: &str, developer_access| TenantCreate { developer_access, ..TenantCreate::named(name) };
    let tenant = tenants::create(tx, named("Harbour Plumbing", DeveloperAccess::Approved)).await?.id;
    let other = tenants::create(tx, named("Hill Electric", DeveloperAccess::Approved)).await?.id;
    let pending = tenants::create(tx, named("Not Yet", DeveloperAccess::Pending)).await?.id;
    let suspended = tenants::create(tx, named("Not Any More", DeveloperAccess::Suspended)).await?.id;
    let mut keys = HashMap::new();
    keys.insert("write", key(tx, tenant, true, false, None).await?);
    keys.insert("read", key(tx, tenant, false, false, None).await?);
    keys.insert("signed", key(tx, tenant, true, true, None).await?);
    keys.insert("expired", key(tx, tenant, true, false, Some(1)).await?);
    keys.insert("revoked", key(tx, tenant, true, false, None).await?);
    keys.insert("other", key(tx, other, true, false, None).await?);
    keys.insert("pending", key(tx, pending, true, false, None).await?);
    keys.insert("suspended", key(tx, suspended, true, false, None).await?);
    svc_core::accounts::keys::revoke(tx, keys["revoked"].id).await?;
    Ok(Seed { tenant, other_tenant: other, keys, ids: HashMap::new(), other_ids: HashMap::new() })
}

async fn records(tx: &mut dyn Tx, mut seed: Seed) -> Result<Seed, Error> {
    seed.other_ids = one_of_each(tx, seed.other_tenant).await?;
    seed.ids = one_of_each(tx, seed.tenant).await?;
    let gone: Contact = crud::create(tx, seed.tenant, body(json!({ "email": "gone@example.com" }))?).await?;
    crud::delete::<Contact>(tx, seed.tenant, gone.id).await?;
    seed.ids.insert("deleted_contact_id", gone.id.uuid());
    seed.ids.insert("other_tenant_contact_id", seed.other_ids["contact_id"]);
    seed.ids.insert("unknown_id", Uuid::from_u128(0x0195_7f2e_6c00_7000_8000_0000_0000_0bad));
    Ok(seed)
}

async fn one_of_each(tx: &mut dyn Tx, tenant: TenantId) -> Result<HashMap<&'static str, Uuid>, Error> {
    let contact = json!({ "email": "existing@example.com", "first_name": "Ada", "last_name": "Nguyen" });
    let contact: Contact = crud::create(tx, tenant, body(contact)?).await?;
    let booking = json!({
        "contact_id": contact.id,
        "service_name": "Haircut",
        "start_time": "2026-03-20T09:00:00Z",
        "end_time": "2026-03-20T10:00:00Z",
    });
    let booking: Booking = crud::create(tx, tenant, body(booking)?).await?;
    let quote = json!({ "contact_id": contact.id, "total": 100, "currency": "AUD" });
    let quote: Quote = crud::create(tx, tenant, body(quote)?).await?;
    let job: Job = crud::create(tx, tenant, body(json!({ "title": "Fix tap" }))?).await?;
    let invoice = json!({ "contact_id": contact.id, "total": 250.5, "due_date": "2026-04-01" });
    let invoice = invoices::create(tx, tenant, body(invoice)?).await?;
    let webhook = json!({ "url": "https://hooks.example.com/svc", "events": ["*"] });
    let webhook: WebhookSubscription = crud::create(tx, tenant, body(webhook)?).await?;
    Ok(HashMap::from([
        ("contact_id", contact.id.uuid()),
        ("booking_id", booking.id.uuid()),
        ("quote_id", quote.id.uuid()),
        ("job_id", job.id.uuid()),
        ("invoice_id", invoice.id.uuid()),
        ("webhook_id", webhook.id.uuid()),
    ]))
}

pub(crate) fn body<I: Input>(json: Value) -> Result<I, Error> {
    I::from_body(json.to_string().as_bytes())
}
