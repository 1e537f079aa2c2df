//! Simulates a week of events with three days of retention, and draws how the size of the history, the time of a write and the
//! rows that wait for vacuum develop, as an SVG on stdout; of SQLite, the size of the whole file and its free pages. The figures
//! of each six hours are on stderr.
//!
//! ```text
//! cargo run --release -p svc-examples --bin week -- postgres://svc@localhost/empty 2000 > week.svg
//! cargo run --release -p svc-examples --bin week -- sqlite:///tmp/week.db 2000 > week.svg
//! ```
//!
//! The second argument is the number of events in an hour. The clock is simulated: hours follow each other as fast as the
//! database writes them, with a delivery and an attempt of each event, and a sweep after each hour.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::crud;
use svc_core::resources::jobs::{Job, JobCreate};
use svc_core::store::{DeliveryFilter, Store, Tx};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryStatus};
use svc_core::webhooks::retention::{self, DeletedCounts, Positions};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use svc_store::{Options, SecretKey};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HOUR: Duration = Duration::from_secs(60 * 60);
const HOURS: usize = 7 * 24;
const RETENTION: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// Events in one transaction. Those whose time is measured have one of their own.
const GROUP: usize = 50;

/// What is drawn of PostgreSQL, each with its unit.
const ON_POSTGRES: [&str; 3] =
    ["size of the history, MB", "99th percentile of a write, ms", "rows that wait for vacuum, thousands"];
/// The same of SQLite, whose sweep leaves free pages behind.
const ON_SQLITE: [&str; 3] =
    ["size of the file with its records, MB", "99th percentile of a write, ms", "free pages, thousands"];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of an empty database is missing")?;
    let events: usize = arguments.next().map_or(Ok(600), |events| events.parse())?;
    // Partitions begin after the migration, by the clock of the server.
    let start = Env::system().now().checked_add(HOUR * 48).ok_or("the clock has ended")?;
    let clock = ManualClock::at(start);
    let env = Env::new(clock.clone(), SeededEntropy::new(1));
    let options = Options { secret_key: Some(SecretKey::new([7; 32])), ..Options::default() };
    let store = svc_store::open_with(&url, env, options).await?;
    let tenant = account(&*store).await?;

    let step = HOUR / u32::try_from(events)?;
    let mut samples = Vec::new();
    for hour in 0..HOURS {
        let mut times = Vec::new();
        for at in (0..events).step_by(GROUP) {
            clock.advance(step * u32::try_from(GROUP.min(events - at))?);
            deliver(&store, tenant, GROUP.min(events - at) - 1).await?;
            let began = Instant::now();
            deliver(&store, tenant, 1).await?;
            times.push(began.elapsed());
        }
        let before = store.env().now().minus(RETENTION);
        let mut positions = Positions::new();
        while retention::sweep(&*store, &mut positions, before, false, || async {}).await? != DeletedCounts::default() {
        }
        times.sort_unstable();
        let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
        let (bytes, dead) = measure(&url).await?;
        samples.push([bytes / 1e6, p99.as_secs_f64() * 1e3, dead / 1e3]);
        if hour % 6 == 5 {
            let [size, p99, dead] = samples[hour];
            writeln!(std::io::stderr(), "hour {:3}: {size:8.1} MB  p99 {p99:6.2} ms  {dead:8.1} thousand", hour + 1)?;
        }
    }
    let names = if svc_store::sqlite_file(&url).is_some() { ON_SQLITE } else { ON_POSTGRES };
    writeln!(std::io::stdout(), "{}", picture(names, &samples))?;
    Ok(())
}

/// Creates an account with an endpoint.
async fn account(store: &dyn Store) -> std::result::Result<TenantId, Error> {
    let made = store.write("week", (), async |tx, ()| {
        let tenant = tenants::create(tx, TenantCreate::named("Week")).await?.id;
        let endpoint = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
        crud::create::<WebhookSubscription>(tx, tenant, endpoint).await?;
        Ok(tenant)
    });
    made.await
}

/// Creates jobs in one transaction, and logs an attempt of each delivery, which succeeds.
async fn deliver(store: &Arc<dyn Store>, tenant: TenantId, jobs: usize) -> std::result::Result<(), Error> {
    let written = store.write("week", (tenant, jobs), async |tx, &(tenant, jobs)| {
        for _ in 0..jobs {
            deliver_one(tx, tenant).await?;
        }
        Ok(())
    });
    written.await
}

async fn deliver_one(tx: &mut dyn Tx, tenant: TenantId) -> std::result::Result<(), Error> {
    crud::create::<Job>(tx, tenant, JobCreate::from_body(br#"{"title": "Hot water system"}"#)?).await?;
    let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
    let Some(mut delivery) = tx.list_deliveries(tenant, &newest).await?.pop() else { return Ok(()) };
    (delivery.status, delivery.attempts, delivery.next_attempt_at) = (DeliveryStatus::Succeeded, 1, None);
    let log = AttemptLog {
        attempt: 1,
        started_at: delivery.created_at,
        duration_ms: 20,
        status: 200,
        error: None,
        cause: None,
        response_body: Some("ok".repeat(50)),
        response_truncated: false,
        remote_addr: None,
    };
    tx.insert_attempt(tenant, delivery.id, &log).await?;
    tx.update_delivery(&delivery, None).await?;
    Ok(())
}

/// Returns the bytes that the history takes, and how many of its rows wait for vacuum: on SQLite the whole file, and its free
/// pages in place of rows.
async fn measure(url: &str) -> Result<(f64, f64)> {
    if let Some(file) = svc_store::sqlite_file(url) {
        let connection = rusqlite::Connection::open(file)?;
        let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, f64>(0));
        return Ok((pragma("page_count")? * pragma("page_size")?, pragma("freelist_count")?));
    }
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    let sql = "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8, coalesce(sum(n_dead_tup), 0)::float8 \
         FROM pg_stat_user_tables WHERE relname ~ '^(events|deliveries|delivery_attempts)_'";
    let row = client.query_one(sql, &[]).await?;
    let measured = (row.get(0), row.get(1));
    drop(client);
    connection.await??;
    Ok(measured)
}

/// Draws a curve of each figure, one below the other, over seven days.
fn picture(names: [&str; 3], samples: &[[f64; 3]]) -> String {
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 120.0;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>"#,
        WIDTH + 80.0,
        (HEIGHT + 50.0) * 3.0
    );
    for (number, name) in (0u8..).zip(names) {
        let top = f64::from(number) * (HEIGHT + 50.0) + 30.0;
        let values: Vec<f64> = samples.iter().map(|sample| sample[usize::from(number)]).collect();
        let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let place = |at: usize| 60.0 + WIDTH * at as f64 / values.len() as f64;
        let points: Vec<String> = (0..)
            .zip(&values)
            .map(|(at, value)| format!("{:.1},{:.1}", place(at), top + HEIGHT * (1.0 - value / most)))
            .collect();
        let bottom = top + HEIGHT;
        let _ = write!(
            svg,
            r##"
<text x="60" y="{}">{name}</text>
<text x="55" y="{}" text-anchor="end">{most:.1}</text>
<path d="M60 {top} V{bottom} H{}" fill="none" stroke="#999"/>
<polyline points="{}" fill="none" stroke="#06c" stroke-width="1.5"/>"##,
            top - 8.0,
            top + 10.0,
            60.0 + WIDTH,
            points.join(" ")
        );
        for day in 1..=7 {
            let x = 60.0 + WIDTH * f64::from(day) / 7.0;
            let _ =
                write!(svg, r#"<text x="{x}" y="{}" text-anchor="end" fill="gray">day {day}</text>"#, bottom + 16.0);
        }
    }
    svg.push_str("\n</svg>");
    svg
}
