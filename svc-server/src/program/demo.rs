//! The sample data of `--demo`: a plumbing company in Sydney. It is created through the same rules as requests are, so it
//! has its events and numbers.

pub(super) mod receivers;

use std::collections::HashMap;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use svc_core::accounts::dashboard_links::{self, DashboardLinkCreate};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::{self, Tenant, TenantCreate};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::input::Input;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceId};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::resources::{Create, Update, crud};
use svc_core::store::{Store, Tx};
use svc_core::values::{Currency, Date, TenantId, TimeZone, Timestamp};

const TENANT: &str = include_str!("../../demo/tenant.json");
const CONTACTS: &str = include_str!("../../demo/contacts.json");
const INVOICES: &str = include_str!("../../demo/invoices.json");
const QUOTES: &str = include_str!("../../demo/quotes.json");
const BOOKINGS: &str = include_str!("../../demo/bookings.json");
const JOBS: &str = include_str!("../../demo/jobs.json");

/// The number of tenants among which the one of the sample data is looked for.
const MAX_TENANTS: u32 = 1_000;

/// The reason for which the sample data cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A file of `svc-server/demo` is not valid.
    #[error("invalid file in svc-server/demo: {0}")]
    Fixture(#[from] serde_json::Error),
    /// A rule or the store refused it.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// The folder of a demo's database. It is deleted when it is dropped.
pub struct DemoFolder(PathBuf);

impl DemoFolder {
    /// Creates a folder of its own, which only this user can read.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(env: &Env) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("svc-demo-{}", env.id::<uuid::Uuid>(env.now())));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.0.join("demo.db")
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "cannot delete the database of the demo");
        }
    }
}

/// The text that `--demo` prints: the account, its API key, and requests to try. Its [`Display`](fmt::Display) is that text.
pub struct Guide {
    url: String,
    database_url: String,
    tenant: Tenant,
    key: String,
    /// A link that signs in to the dashboard.
    dashboard: String,
}

#[derive(Deserialize)]
struct DemoTenant {
    name: String,
    time_zone: String,
    currency: String,
}

#[derive(Clone, Deserialize)]
struct DemoInvoice {
    contact: String,
    total: Value,
    currency: String,
    issue_in_days: i64,
    due_in_days: i64,
    steps: Vec<String>,
}

/// One sample record: its contact, the body that creates it, and the body that updates it afterwards.
#[derive(Clone)]
struct Sample {
    contact: Option<String>,
    create: Map<String, Value>,
    update: Option<Value>,
}

/// The sample data.
struct Samples {
    tenant: TenantCreate,
    contacts: Vec<Map<String, Value>>,
    quotes: Vec<Sample>,
    bookings: Vec<Sample>,
    jobs: Vec<Sample>,
    invoices: Vec<DemoInvoice>,
    /// The date in the time zone of the tenant.
    today: Date,
}

impl Samples {
    fn read(now: Timestamp) -> Result<Self, DemoError> {
        let DemoTenant { name, time_zone, currency } = serde_json::from_str(TENANT)?;
        let tenant = TenantCreate {
            time_zone: TimeZone::parse(&time_zone).map_err(|issue| issue.on("time_zone"))?,
            currency: Currency::parse(&currency).map_err(|issue| issue.on("currency"))?,
            ..TenantCreate::named(&name)
        };
        let today = tenant.time_zone.date_at(now);
        Ok(Self {
            tenant,
            contacts: serde_json::from_str(CONTACTS)?,
            quotes: samples(QUOTES, |row| quote(row, today))?,
            bookings: samples(BOOKINGS, |row| booking(row, now))?,
            jobs: samples(JOBS, |row| job(row, now))?,
            invoices: serde_json::from_str(INVOICES)?,
            today,
        })
    }

    /// Creates the tenant with its endpoints and all its records.
    async fn create(&self, tx: &mut dyn Tx, receivers: Option<&str>) -> Result<Tenant, Error> {
        let tenant = tenants::create(tx, self.tenant.clone()).await?;
        if let Some(url) = receivers {
            receivers::subscribe(tx, tenant.id, url).await?;
        }
        let contacts = self.create_contacts(tx, tenant.id).await?;
        create_all::<Quote>(tx, tenant.id, &contacts, &self.quotes).await?;
        create_all::<Booking>(tx, tenant.id, &contacts, &self.bookings).await?;
        create_all::<Job>(tx, tenant.id, &contacts, &self.jobs).await?;
        for sample in &self.invoices {
            let body = json!({
                "contact_id": contacts.get(&sample.contact),
                "total": sample.total,
                "currency": sample.currency,
                "issue_date": self.today.plus_days(sample.issue_in_days),
                "due_date": self.today.plus_days(sample.due_in_days),
            });
            let invoice = invoices::create(tx, tenant.id, input::<InvoiceCreate>(&body)?).await?;
            for step in &sample.steps {
                apply_step(tx, tenant.id, invoice.id, step).await?;
            }
        }
        receivers::disable(tx, tenant.id).await?;
        Ok(tenant)
    }

    /// Creates the contacts, and returns their ids by their names in the samples.
    async fn create_contacts(&self, tx: &mut dyn Tx, tenant: TenantId) -> Result<HashMap<String, ContactId>, Error> {
        let mut created = HashMap::new();
        for row in &self.contacts {
            let mut body = row.clone();
            let name = take_text(&mut body, "ref").unwrap_or_default();
            let contact: Contact = crud::create(tx, tenant, input(&body.into())?).await?;
            created.insert(name, contact.id);
        }
        Ok(created)
    }
}

/// Creates the sample data unless the database has it, and an API key, all in one transaction. `receivers` is the URL of
/// the sample endpoints, or `None` for none. Returns the guide to print.
///
/// # Errors
/// [`DemoError`] if the data is not accepted, which is a bug, or the store fails.
pub async fn prepare(
    store: &dyn Store,
    url: &str,
    database_url: &str,
    receivers: Option<&str>,
) -> Result<Guide, DemoError> {
    let samples = Arc::new(Samples::read(store.env().now())?);
    let receivers: Option<Arc<str>> = receivers.map(Into::into);
    let prepared = store.write("demo", (samples, receivers), async |tx, (samples, receivers)| {
        let known = tx.tenants(None, MAX_TENANTS).await?.into_iter().find(|tenant| tenant.name == samples.tenant.name);
        let tenant = match known {
            Some(tenant) => {
                if let Some(url) = receivers {
                    receivers::move_to(tx, tenant.id, url).await?;
                }
                tenant
            }
            None => samples.create(tx, receivers.as_deref()).await?,
        };
        // The text of an earlier key is not stored, so each start needs its own.
        let input = KeyCreate { name: Some("Demo".to_owned()), write: true, expires_in: None, signed: false };
        let key = keys::create(tx, tenant.id, input).await?;
        let link = dashboard_links::create(tx, DashboardLinkCreate::to(tenant.id, Role::Owner)).await?;
        Ok((tenant, key.text.reveal().to_owned(), link))
    });
    let (tenant, key, link) = prepared.await?;
    let database_url = svc_store::absolute_url(database_url);
    Ok(Guide { url: url.to_owned(), database_url, tenant, key, dashboard: link.url(url) })
}

/// Creates the records of one resource, and updates those that are not in their initial status.
async fn create_all<R: Create + Update>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    contacts: &HashMap<String, ContactId>,
    samples: &[Sample],
) -> Result<(), Error> {
    for sample in samples {
        let mut body = sample.create.clone();
        if let Some(contact) = &sample.contact {
            body.insert("contact_id".to_owned(), json!(contacts.get(contact)));
        }
        let record: R = crud::create(tx, tenant, input(&body.into())?).await?;
        if let Some(change) = &sample.update {
            crud::update::<R>(tx, tenant, record.id(), input(change)?).await?;
        }
    }
    Ok(())
}

fn samples(text: &str, read: impl Fn(Map<String, Value>) -> Sample) -> Result<Vec<Sample>, DemoError> {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(text)?;
    Ok(rows.into_iter().map(read).collect())
}

fn input<I: Input>(body: &Value) -> Result<I, Error> {
    I::from_body(body.to_string().as_bytes())
}

fn take_text(row: &mut Map<String, Value>, name: &str) -> Option<String> {
    row.remove(name)?.as_str().map(str::to_owned)
}

fn take_number(row: &mut Map<String, Value>, name: &str) -> Option<i64> {
    row.remove(name)?.as_i64()
}

/// Takes the status of a row, and returns the update that sets it, unless it is the initial one.
fn status_change(row: &mut Map<String, Value>, first: &str) -> Option<Value> {
    take_text(row, "status").filter(|status| status != first).map(|status| json!({ "status": status }))
}

fn in_hours(now: Timestamp, hours: i64) -> Timestamp {
    let distance = Duration::from_secs(hours.unsigned_abs() * 3600);
    if hours < 0 { now.minus(distance) } else { now.checked_add(distance).unwrap_or(now) }
}

fn quote(mut row: Map<String, Value>, today: Date) -> Sample {
    let contact = take_text(&mut row, "contact");
    let update = status_change(&mut row, "draft");
    if let Some(days) = take_number(&mut row, "valid_in_days") {
        row.insert("valid_until".to_owned(), json!(today.plus_days(days)));
    }
    Sample { contact, create: row, update }
}

fn booking(mut row: Map<String, Value>, now: Timestamp) -> Sample {
    let contact = take_text(&mut row, "contact");
    let update = status_change(&mut row, "confirmed");
    let start = in_hours(now, take_number(&mut row, "starts_in_hours").unwrap_or_default());
    let minutes = take_number(&mut row, "minutes").unwrap_or(60).unsigned_abs();
    row.insert("start_time".to_owned(), json!(start));
    row.insert("end_time".to_owned(), json!(start.checked_add(Duration::from_secs(minutes * 60))));
    Sample { contact, create: row, update }
}

fn job(mut row: Map<String, Value>, now: Timestamp) -> Sample {
    let contact = take_text(&mut row, "contact");
    let update = status_change(&mut row, "quoted");
    let hours = take_number(&mut row, "hours").unwrap_or(1);
    if let Some(begin) = take_number(&mut row, "scheduled_in_hours") {
        row.insert("scheduled_start".to_owned(), json!(in_hours(now, begin)));
        row.insert("scheduled_end".to_owned(), json!(in_hours(now, begin + hours)));
    }
    Sample { contact, create: row, update }
}

async fn apply_step(tx: &mut dyn Tx, tenant: TenantId, id: InvoiceId, step: &str) -> Result<Invoice, Error> {
    match step {
        "send" => invoices::send(tx, tenant, id).await,
        "view" => invoices::view(tx, tenant, id).await,
        "pay" => invoices::pay(tx, tenant, id, None).await,
        "void" => invoices::void(tx, tenant, id).await,
        "resend" => invoices::resend(tx, tenant, id).await,
        other => Err(Error::NotAllowed(format!("{other:?} is not a step of an invoice"))),
    }
}

impl fmt::Display for Guide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, database_url, tenant, key, dashboard } = self;
        // It can be quoted unless it has a NUL, which no URL that was opened has.
        let quoted_url = shlex::try_quote(database_url).unwrap_or_default();
        write!(
            f,
            r#"
{} (account {})
API key: {key}
dashboard: {dashboard}

For your shell:
export SVC_URL={url}
export SVC_KEY={key}
export SVC_TENANT={}
export SVC_DATABASE_URL={quoted_url}

Try:
  curl -s {url}/api/v1/ping -H 'Authorization: Bearer {key}'
  curl -s '{url}/api/v1/contacts?limit=3' -H 'Authorization: Bearer {key}'
  curl -s '{url}/api/v1/invoices?status=paid&limit=2' -H 'Authorization: Bearer {key}'
  curl -s {url}/api/v1/contacts -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -H 'Idempotency-Key: try-1' -d '{{"email": "grace@example.com", "first_name": "Grace"}}'
  curl -s {url}/api/v1/openapi.json

Stop with Ctrl-C."#,
            tenant.name, tenant.id, tenant.id
        )
    }
}
