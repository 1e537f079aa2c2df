//! Our server on PostgreSQL against pgbench, which runs the very same statements over as many connections.

mod database;
mod pgbench;
mod recording;
mod script;

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use self::database::{Database, SETTINGS};
use self::recording::Statement;
use self::script::{Known, Script};
use crate::child::Child;
use crate::options::{Options, Subject};
use crate::requests::Requests;
use crate::sample::{Sample, median};
use crate::table::{self, Ratio, Row};
use crate::{Result, load};

/// Has every statement written to the server's log.
const LOGGING: &str = "&options=-c%20log_statement%3Dall";
/// Until a COMMIT that nobody waits for is in the log.
const LULL: Duration = Duration::from_millis(300);
/// More rows than a client of pgbench creates in a round.
const ROWS_OF_A_ROUND: u64 = 10_000_000;

/// Measures the subjects that are PostgreSQL's. Without it that is said loudly; it only fails when it was asked for.
pub(crate) fn run(options: &Options, subjects: &[Subject]) -> Result<()> {
    let started = Instant::now();
    let Some(database) = Database::make(options.tenants, options.contacts)? else {
        let reason = "PostgreSQL (initdb, postgres, psql, pgbench) is not installed";
        if !options.only.is_empty() {
            return Err(reason.into());
        }
        return table::note(&format!("\n*** SKIPPED: pg-get, pg-list, pg-post: {reason} ***"));
    };
    let settings = SETTINGS.map(|(name, value)| format!("{name} = {value}")).join(", ");
    let (version, ready) = (database.version()?, started.elapsed().as_secs_f64());
    table::note(&format!(
        "\nPostgreSQL {version} with the same rows (ready in {ready:.0} s); fsync = on, {settings}\n"
    ))?;
    // Reads come first, so that they find the rows that were seeded, whatever is written later.
    let (writes, reads): (Vec<Subject>, Vec<Subject>) =
        subjects.iter().partition(|subject| **subject == Subject::PgPost);
    reads.into_iter().chain(writes).try_for_each(|subject| measure(options, subject, &database))
}

/// Our server and pgbench in turns.
fn measure(options: &Options, subject: Subject, database: &Database) -> Result<()> {
    let writes = subject == Subject::PgPost;
    let recorded = record(subject, database)?;
    let known = known(options, subject, database)?;
    let mut contenders = vec![("pgbench", script::write(&recorded, &known, true)?, Vec::new())];
    if !writes {
        contenders.push(("pgbench, no BEGIN", script::write(&recorded, &known, false)?, Vec::new()));
    }
    let before = database.written()?;
    let requests = Requests::new(subject, &database.tenants);
    let (child, address) = start(&database.url, false)?;
    let (counting, counting_address) = start(&database.url, true)?;
    let (connections, length) = (options.connections, Duration::from_secs(options.seconds));
    let (mut ours, mut counted, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..u64::from(options.rounds) {
        for (_, script, samples) in &mut contenders {
            let first = round * ROWS_OF_A_ROUND;
            samples.push(pgbench::round(database, script, first, connections, options.seconds)?);
        }
        let (cpu, started) = (database.cpu()?, Instant::now());
        let sample = load::round(&child, address, connections as usize, length, &requests)?;
        // The warm-up is part of this time, at the same rate.
        let cpu = database.cpu()?.saturating_sub(cpu).as_secs_f64();
        theirs.push(cpu * 1e6 / started.elapsed().as_secs_f64() / sample.rate());
        ours.push(sample);
        // Writes have caps of their own, which would be reached.
        if !writes {
            counted.push(load::round(&counting, counting_address, connections as usize, length, &requests)?);
        }
    }
    drop((child, counting));
    if writes {
        let all = contenders.iter().flat_map(|(_, _, samples)| samples).chain(&ours);
        check_written(before, database.written()?, all)?;
    }
    print(subject, &contenders, &ours, &counted, median(theirs))
}

fn print(
    subject: Subject,
    contenders: &[(&str, Script, Vec<Sample>)],
    ours: &[Sample],
    counted: &[Sample],
    theirs: f64,
) -> Result<()> {
    let name = match subject {
        Subject::PgGet => "GET, PostgreSQL",
        Subject::PgList => "list, PostgreSQL",
        _ => "POST, PostgreSQL",
    };
    let Some((_, _, yardstick)) = contenders.first() else { return Ok(()) };
    let mut rows = Vec::new();
    for (number, (contender, _, rounds)) in contenders.iter().enumerate() {
        let (subject, ratio) = if number == 0 { (name, Ratio::Yardstick) } else { ("", Ratio::To(yardstick)) };
        rows.push(Row { subject, contender, rounds, ratio });
    }
    rows.push(Row { subject: "", contender: "svc", rounds: ours, ratio: Ratio::To(yardstick) });
    if !counted.is_empty() {
        rows.push(Row { subject: "", contender: "svc, all counted", rounds: counted, ratio: Ratio::To(yardstick) });
    }
    table::print(&rows)?;
    let each = median(yardstick.iter().map(Sample::cpu_each));
    table::note(&format!("CPU µs of PostgreSQL for each: {each:.1} of pgbench's, {theirs:.1} of svc's"))
}

/// Our server, without the sender.
fn start(url: &str, counting: bool) -> Result<(Child, SocketAddr)> {
    let words = ["serve-ours", url, "--counting"].map(AsRef::as_ref);
    let mut child = Child::start(if counting { &words } else { &words[..2] })?;
    let address = child.hear()?.parse()?;
    Ok((child, address))
}

/// What our server sends to PostgreSQL for a request of the first tenant.
fn record(subject: Subject, database: &Database) -> Result<Vec<Statement>> {
    let (_child, address) = start(&format!("{}{LOGGING}", database.url), false)?;
    let first = database.tenants.first().ok_or("no tenants")?;
    let first = crate::seed::Tenant { key: first.key.clone(), contacts: first.contacts.clone() };
    let mut requests = Requests::new(subject, &Arc::from([first]));
    // The first request opens connections and prepares.
    load::once(address, &mut requests)?;
    std::thread::sleep(LULL);
    let mut log = File::open(database.log())?;
    log.seek(SeekFrom::End(0))?;
    load::once(address, &mut requests)?;
    std::thread::sleep(LULL);
    let mut text = String::new();
    log.read_to_string(&mut text)?;
    recording::last_transaction(&text)
}

fn known(options: &Options, subject: Subject, database: &Database) -> Result<Known> {
    let id = |sql: &str| -> Result<Uuid> { Ok(database.psql(sql)?.parse()?) };
    Ok(Known {
        tenants: options.tenants,
        contacts: options.contacts,
        tenant: id("SELECT id FROM tenants ORDER BY id LIMIT 1")?,
        subscription: id("SELECT id FROM subscriptions ORDER BY tenant_id LIMIT 1")?,
        creates: subject == Subject::PgPost,
    })
}

/// Whether each POST of either has left its three rows.
fn check_written<'a>(before: [u64; 3], after: [u64; 3], rounds: impl Iterator<Item = &'a Sample>) -> Result<()> {
    let counted: usize = rounds.map(|round| round.count).sum();
    let added = [after[0] - before[0], after[1] - before[1], after[2] - before[2]];
    // Warming up adds more than was counted.
    if added.iter().all(|rows| *rows == added[0]) && added[0] > counted as u64 {
        return Ok(());
    }
    Err(format!("{counted} were acknowledged; contacts, events and deliveries grew by {added:?}").into())
}

/// Whether a path is that of a database on PostgreSQL.
pub(crate) fn is_url(database: &Path) -> Option<&str> {
    database.to_str().filter(|url| url.starts_with("postgres://"))
}
