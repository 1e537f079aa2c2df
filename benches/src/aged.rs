//! Block `aged`: a fresh database against one that also holds millions of past attempts, with their deliveries and
//! events. The two are measured alternately.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use svc_core::env::Env;
use uuid::Uuid;

use crate::child::Child;
use crate::error::Result;
use crate::options::{Options, Subject};
use crate::random::{Random, body};
use crate::receiver::Receiver;
use crate::requests::Requests;
use crate::sample::Sample;
use crate::seed::Tenant;
use crate::table::{self, Ratio, Row};
use crate::{deliver, load, pending};

/// Deliveries that succeeded at the first attempt, for each that took two.
const FIRST_ATTEMPT_SHARE: u32 = 3;
/// The time between two events of a tenant.
const STEP: Duration = Duration::from_secs(10);

const DELIVERY: &str = "INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, \
     failures, last_status, created_at) VALUES (?1, ?2, ?3, 'contact.created', ?4, 'succeeded', ?5, ?5 - 1, 204, ?6)";
const ATTEMPT: &str = "INSERT INTO delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, \
     status, error, response_body, response_truncated, remote_addr) \
     VALUES (?1, ?2, ?3, ?4, 12, ?5, ?6, ?7, 0, '203.0.113.7:443')";

/// Measures both databases.
pub(crate) fn run(options: &Options, fresh: &Path, aged: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let started = Instant::now();
    let rows = add_history(aged, options.attempts)?;
    let (seconds, size) = (started.elapsed().as_secs_f64(), std::fs::metadata(aged)?.len() as f64 / 1e9);
    table::print_line(&format!(
        "aged database: {} attempts of {rows} deliveries, each with its event, written in {seconds:.0} s: {size:.1} GB",
        options.attempts
    ))?;
    for (subject, name) in
        [(Subject::Get, "GET by id"), (Subject::List, "list of 50"), (Subject::Post, "POST, durable")]
    {
        let requests = Requests::new(subject, tenants);
        let servers = [fresh, aged].map(serve);
        let mut rounds = [Vec::new(), Vec::new()];
        let length = Duration::from_secs(options.seconds);
        for _ in 0..options.rounds {
            for (server, rounds) in servers.iter().zip(&mut rounds) {
                let (child, address) = server.as_ref().map_err(ToString::to_string)?;
                rounds.push(load::round(child, *address, options.connections as usize, length, &requests)?);
            }
        }
        print(name, &rounds)?;
    }
    print("deliveries", &deliveries(options, [fresh, aged])?)
}

fn serve(file: &Path) -> Result<(Child, SocketAddr)> {
    let mut child = Child::start(&[OsStr::new("serve-svc"), file.as_os_str()])?;
    let address = child.read_line()?.parse()?;
    Ok((child, address))
}

fn deliveries(options: &Options, files: [&Path; 2]) -> Result<[Vec<Sample>; 2]> {
    let receiver = Receiver::start()?;
    for file in files {
        pending::set_endpoint(file, receiver.address)?;
        pending::add_backlog(file, options.pending)?;
    }
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        for (file, rounds) in files.iter().zip(&mut rounds) {
            rounds.push(deliver::burst(options, file, &receiver)?);
        }
    }
    Ok(rounds)
}

fn print(subject: &str, [fresh, aged]: &[Vec<Sample>; 2]) -> Result<()> {
    table::print_rows(&[
        Row { subject, contender: "fresh", rounds: fresh, ratio: Ratio::Baseline },
        Row { subject: "", contender: "aged", rounds: aged, ratio: Ratio::To(fresh) },
    ])
}

/// Adds this many completed attempts with their deliveries and events, and returns the number of deliveries. Uses
/// bare SQL in key order; the rows are those that the store would write.
fn add_history(file: &Path, attempts: u32) -> Result<u32> {
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -1000000;")?;
    let endpoints: Vec<(Uuid, Uuid)> = {
        let mut select = connection.prepare("SELECT tenant_id, id FROM subscriptions ORDER BY tenant_id")?;
        let rows = select.query_map([], |row| Ok((Uuid::from_bytes(row.get(0)?), Uuid::from_bytes(row.get(1)?))))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let each = attempts / endpoints.len() as u32 * (FIRST_ATTEMPT_SHARE + 1) / (FIRST_ATTEMPT_SHARE + 2);
    let (env, mut random) = (Env::system(), Random::new());
    let tx = connection.transaction()?;
    for (tenant, subscription) in &endpoints {
        let mut at = env.now().minus(STEP.saturating_mul(each.saturating_add(1)));
        for number in 0..each {
            at = at.checked_add(STEP).unwrap_or(at);
            let (contact, event, delivery): (Uuid, Uuid, Uuid) = (env.id(at), env.id(at), env.id(at));
            let data = format!(
                r#"{{"id":"{contact}","created_at":"{at}","updated_at":"{at}",{}"#,
                &body(&random.digits())[1..]
            );
            let (micros, tries) = (at.as_micros(), if number % (FIRST_ATTEMPT_SHARE + 1) == 0 { 2 } else { 1 });
            let (tenant, event, delivery) = (tenant.as_bytes(), event.as_bytes(), delivery.as_bytes());
            tx.prepare_cached(pending::EVENT)?.execute(params![tenant, event, data, micros])?;
            tx.prepare_cached(DELIVERY)?.execute(params![
                tenant,
                delivery,
                event,
                subscription.as_bytes(),
                tries,
                micros
            ])?;
            for attempt in 1..=tries {
                let fails = attempt < tries;
                let (status, error) = if fails { (503, Some("status")) } else { (204, None) };
                let response = fails.then_some("Service Unavailable");
                tx.prepare_cached(ATTEMPT)?
                    .execute(params![tenant, delivery, attempt, micros, status, error, response])?;
            }
        }
    }
    tx.commit()?;
    drop(connection);
    // Synced now, so that writing back does not disturb the measurements.
    std::fs::File::open(file)?.sync_all()?;
    Ok(each * endpoints.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;

    /// The bare SQL repeats the schema by hand, so it is checked.
    #[test]
    fn the_aged_database_is_consistent_and_has_nothing_pending() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("small.db");
        seed::seed(&file, 2, 4).unwrap();
        assert_eq!(add_history(&file, 100).unwrap(), 80);
        let url = format!("sqlite://{}", file.display());
        let checked = crate::child::runtime().unwrap().block_on(svc_store::check(&url));
        assert_eq!(checked.unwrap().findings, []);
        assert_eq!(pending::success_counts(&file).unwrap(), [80, 80]);
    }
}
