//! The sample data of `--demo`: a plumbing company in Sydney. It is created through the same rules as requests are, so it
//! has its events and numbers.

mod calendar;
mod clock;
mod history;
pub(super) mod receivers;
mod samples;

use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use svc_core::accounts::dashboard_links::{self, DashboardLinkCreate};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::Tenant;
use svc_core::error::Error;
use svc_core::input::Input;
use svc_core::store::{Store, Tx};
use tokio::sync::mpsc;

pub use self::clock::DemoClock;
use self::receivers::Receivers;
use self::samples::Samples;

/// The number of tenants among which the one of the sample data is looked for.
const MAX_TENANTS: u32 = 1_000;
/// The name of the key in the guide.
const KEY: &str = "Demo";
/// How long the link in the guide signs in.
const LINK_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// The number of deliveries that are printed.
const SHOWN_DELIVERIES: u32 = 10;

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
    pub fn create() -> io::Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix("svc-demo-").tempdir()?.keep()))
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

/// The text that `--demo` prints: the account, its API key, and requests to try. Its [`Display`](fmt::Display) is that text,
/// which fits on a screen of 24 rows and 80 columns.
pub struct Guide {
    url: String,
    database_url: String,
    tenant: Tenant,
    key: String,
    /// A link that signs in to the dashboard.
    dashboard: String,
}

/// Creates the sample data unless the database has it. `receivers` is the URL of the sample endpoints, or `None` for none.
///
/// With the `clock` of the environment of the store, the account has a history of 30 days. It should be given before anything
/// else uses the store. Without it, everything happens now.
///
/// # Errors
/// [`DemoError`] if the data is not accepted, which is a bug, or the store fails.
pub async fn fill(store: &dyn Store, clock: Option<&DemoClock>, receivers: Option<&str>) -> Result<(), DemoError> {
    let samples = Arc::new(Samples::read(store.env().now())?);
    let (clock, receivers) = (clock.cloned(), receivers.map(str::to_owned));
    let given = (samples, clock.clone(), receivers);
    let filled =
        store.write("demo.fill", given, async |tx, (samples, clock, receivers)| match tenant(tx, samples).await? {
            Some(tenant) => match receivers {
                Some(url) => receivers::move_to(tx, tenant.id, url).await,
                None => Ok(()),
            },
            None => history::create(tx, samples, clock.as_ref(), receivers.as_deref()).await.map(drop),
        });
    let filled = filled.await;
    if let Some(clock) = clock {
        clock.release();
    }
    Ok(filled?)
}

/// Starts the sample endpoints. Returns a line for each delivery that one of them verifies.
///
/// # Errors
/// [`DemoError`] if the database does not have the sample data, or the store fails.
pub(super) async fn receive(store: &dyn Store, receivers: Receivers) -> Result<mpsc::Receiver<String>, DemoError> {
    let samples = Arc::new(Samples::read(store.env().now())?);
    let verifier = store.read("demo.receive", samples, async |tx, samples| {
        let tenant = tenant(tx, samples).await?.ok_or(Error::NotFound)?;
        receivers::verifier(tx, tenant.id).await
    });
    Ok(receivers.receive(store.env().clone(), verifier.await?))
}

/// Prints the first deliveries that were verified, a line each. The dashboard has them all.
pub(super) async fn print(mut received: mpsc::Receiver<String>) {
    for _ in 0..SHOWN_DELIVERIES {
        let Some(line) = received.recv().await else { return };
        // Nobody reads further lines of a stdout that was closed.
        if writeln!(io::stdout(), "{line}").is_err() {
            return;
        }
    }
}

/// Creates an API key for the account of the sample data, and returns the guide to print.
///
/// # Errors
/// [`DemoError`] if the database does not have the sample data, or the store fails.
pub async fn guide(store: &dyn Store, url: &str, database_url: &str) -> Result<Guide, DemoError> {
    let samples = Arc::new(Samples::read(store.env().now())?);
    let created = store.write("demo.guide", samples, async |tx, samples| {
        let tenant = tenant(tx, samples).await?.ok_or(Error::NotFound)?;
        // The text of an earlier key is not stored, so each start needs its own, which takes the place of the one before.
        let earlier = tx.api_keys(tenant.id).await?;
        for key in earlier.iter().filter(|key| key.name.as_deref() == Some(KEY) && key.revoked_at.is_none()) {
            keys::revoke(tx, key.id).await?;
        }
        let input = KeyCreate { name: Some(KEY.to_owned()), write: true, expires_in: None, signed: false };
        let key = keys::create(tx, tenant.id, input).await?;
        let link = DashboardLinkCreate::to(tenant.id, Role::Owner).valid_for(LINK_LIFETIME);
        let link = dashboard_links::create(tx, link).await?;
        Ok((tenant, key.text.reveal().to_owned(), link))
    });
    let (tenant, key, link) = created.await?;
    let database_url = svc_store::absolute_url(database_url);
    Ok(Guide { url: url.to_owned(), database_url, tenant, key, dashboard: link.url(url) })
}

/// Creates the sample data without a history unless the database has it, and an API key. Returns the guide to print.
///
/// # Errors
/// [`DemoError`] if the data is not accepted, which is a bug, or the store fails.
pub async fn prepare(
    store: &dyn Store,
    url: &str,
    database_url: &str,
    receivers: Option<&str>,
) -> Result<Guide, DemoError> {
    fill(store, None, receivers).await?;
    guide(store, url, database_url).await
}

/// Returns the tenant of the sample data.
async fn tenant(tx: &mut dyn Tx, samples: &Samples) -> Result<Option<Tenant>, Error> {
    let tenants = tx.tenants(None, MAX_TENANTS, false).await?;
    Ok(tenants.into_iter().find(|tenant| tenant.name == samples.tenant.name))
}

fn input<I: Input>(body: &Value) -> Result<I, Error> {
    I::from_body(body.to_string().as_bytes())
}

impl fmt::Display for Guide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, database_url, tenant, key, dashboard } = self;
        // It can be quoted unless it has a NUL, which no URL that was opened has.
        let quoted_url = shlex::try_quote(database_url).unwrap_or_default();
        write!(
            f,
            r#"{} (account {})
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
  curl -s {url}/api/v1/contacts -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -H 'Idempotency-Key: try-1' -d '{{"email": "grace@example.com"}}'
  curl -s {url}/api/v1/openapi.json
Stop with Ctrl-C."#,
            tenant.name, tenant.id, tenant.id
        )
    }
}

#[cfg(test)]
mod tests {
    use svc_core::env::{Env, ManualClock, SeededEntropy};
    use svc_core::pages::{Limit, ListParams};
    use svc_core::prelude::*;
    use svc_core::requests::RequestFilter;
    use svc_core::store::memory::MemoryStore;
    use svc_core::values::HostPolicy;

    use super::*;

    async fn demo(now: &str) -> (Svc, TenantId, Guide) {
        let clock = DemoClock::over(ManualClock::at(Timestamp::parse(now).unwrap()));
        let mut env = Env::new(clock.clone(), SeededEntropy::new(1));
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let svc = Svc::new(Arc::new(MemoryStore::new(env)));
        let store = &**svc.store();
        fill(store, Some(&clock), Some("http://127.0.0.1:9")).await.unwrap();
        let guide = guide(store, "http://127.0.0.1:8080", "sqlite:///tmp/svc-demo-01234567/demo.db").await.unwrap();
        let tenant = guide.tenant.id;
        (svc, tenant, guide)
    }

    #[tokio::test]
    async fn the_account_has_a_history_that_ends_now() {
        // In Sydney: at noon of a workday, on Monday morning, at a Sunday's end of summer time, and around midnight.
        for now in [
            "2026-11-26T01:15:00Z",
            "2026-11-22T20:05:00Z",
            "2026-04-04T17:00:00Z",
            "2026-12-31T12:59:59Z",
            "2026-07-05T14:00:01Z",
        ] {
            check_history(now).await;
        }
    }

    async fn check_history(now: &str) {
        let (svc, tenant, _) = demo(now).await;
        let (account, now) = (svc.account(tenant), svc.store().env().now());
        let zone = account.settings().await.unwrap().time_zone;
        let all = || ListParams { limit: Limit::new(100), ..ListParams::default() };

        let overdue = InvoiceFilter { status: Some(InvoiceStatus::Overdue), number: None };
        let overdue = account.invoices().list(overdue, all()).await.unwrap().data;
        assert_eq!(overdue.len(), 2);
        assert!(overdue.iter().all(|invoice| invoice.due_date.unwrap() < zone.date_at(now)), "{overdue:?}");
        let bookings = account.bookings().list(BookingFilter::default(), all()).await.unwrap().data;
        for booking in &bookings {
            let local = zone.date_and_time_at(booking.start_time);
            assert!(("07:00:00".."18:00:00").contains(&&local[11..]), "{local}");
            assert!(booking.created_at < now && booking.created_at < booking.start_time);
        }
        let hours = account.deliveries().attempts_by_hour(None).await.unwrap();
        assert!(hours.iter().filter(|hour| hour.tally.attempts() > 0).count() > 12, "{hours:?}");
        for (status, least) in
            [(DeliveryStatus::Succeeded, 100), (DeliveryStatus::Failed, 3), (DeliveryStatus::Held, 3)]
        {
            let of_status = DeliveryFilter { status: Some(status), limit: 100, ..DeliveryFilter::default() };
            let found = account.deliveries().list(of_status).await.unwrap();
            assert!(found.len() >= least, "{status:?}: {}", found.len());
        }
        let requests = account.requests().list(RequestFilter::default()).await.unwrap();
        assert!(requests.len() > 100 && requests.iter().any(|request| request.events > 1), "{}", requests.len());
        let oldest = account.events().since(Timestamp::from_micros(0), 1).await.unwrap().remove(0);
        assert!(now.since(oldest.created_at).as_secs() / 86_400 >= 28, "{oldest:?}");
    }

    #[tokio::test]
    async fn the_guide_fits_on_a_screen() {
        let (_, _, guide) = demo("2026-11-26T01:15:00Z").await;
        let rows: usize = guide.to_string().lines().map(|line| line.chars().count().div_ceil(80)).sum();
        // Before it comes the line with the address.
        assert!(rows < 22, "{rows} rows:\n{guide}");
    }
}
