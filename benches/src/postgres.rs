//! The blocks on PostgreSQL: svc's server against pgbench, which runs the same statements over as many connections.

mod database;
mod pgbench;
mod recording;
mod script;

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

pub(crate) use self::database::Database;
use self::database::SETTINGS;
use self::recording::Statement;
use self::script::{Dataset, Script};
use crate::child::Child;
use crate::error::Result;
use crate::load;
use crate::options::{Options, Subject};
use crate::requests::Requests;
use crate::sample::{Sample, median};
use crate::table::{self, Ratio, Row};

/// Makes PostgreSQL log every statement.
const LOGGING: &str = "&options=-c%20log_statement%3Dall";
/// Time for the last COMMIT, which the response does not wait for, to appear in the log.
const LOG_DELAY: Duration = Duration::from_millis(300);
/// More rows than a pgbench client creates in a round.
const ROWS_OF_A_ROUND: u64 = 10_000_000;

/// Measures the blocks on PostgreSQL. If it is not installed, prints a notice, or fails if the blocks were named.
pub(crate) fn run(options: &Options, subjects: &[Subject]) -> Result<()> {
    let started = Instant::now();
    let Some(database) = Database::create(options.tenants, options.contacts)? else {
        let reason = "PostgreSQL (initdb, postgres, psql, pgbench) is not installed";
        if !options.only.is_empty() {
            return Err(reason.into());
        }
        return table::print_line(&format!("\n*** SKIPPED: pg-get, pg-list, pg-post: {reason} ***"));
    };
    let settings = SETTINGS.map(|(name, value)| format!("{name} = {value}")).join(", ");
    let (version, ready) = (database.version()?, started.elapsed().as_secs_f64());
    table::print_line(&format!(
        "\nPostgreSQL {version} with the same rows (ready in {ready:.0} s); fsync = on, {settings}\n"
    ))?;
    // Reads come first, so that their rows are the seeded ones.
    let (writes, reads): (Vec<Subject>, Vec<Subject>) =
        subjects.iter().partition(|subject| **subject == Subject::PgPost);
    reads.into_iter().chain(writes).try_for_each(|subject| measure(options, subject, &database))
}

/// Measures svc's server and pgbench alternately.
fn measure(options: &Options, subject: Subject, database: &Database) -> Result<()> {
    let writes = subject == Subject::PgPost;
    let recorded = record(subject, database)?;
    let dataset = dataset(options, subject, database)?;
    let mut contenders = vec![("pgbench", script::write(&recorded, &dataset, true)?, Vec::new())];
    if !writes {
        contenders.push(("pgbench, no BEGIN", script::write(&recorded, &dataset, false)?, Vec::new()));
    }
    let before = database.row_counts()?;
    let requests = Requests::new(subject, &database.tenants);
    let (child, address) = start(&database.url, false)?;
    let (counting, counting_address) = start(&database.url, true)?;
    let (connections, length) = (options.connections, Duration::from_secs(options.seconds));
    let (mut svc, mut counted, mut postgres_cpu) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..u64::from(options.rounds) {
        for (_, script, samples) in &mut contenders {
            let first = round * ROWS_OF_A_ROUND;
            samples.push(pgbench::round(database, script, first, connections, options.seconds)?);
        }
        let (cpu, started) = (database.cpu()?, Instant::now());
        let sample = load::round(&child, address, connections as usize, length, &requests)?;
        // This time includes the warm-up, which has the same rate.
        let cpu = database.cpu()?.saturating_sub(cpu).as_secs_f64();
        postgres_cpu.push(cpu * 1e6 / started.elapsed().as_secs_f64() / sample.rate());
        svc.push(sample);
        // Writes have limits of their own, which would be reached.
        if !writes {
            counted.push(load::round(&counting, counting_address, connections as usize, length, &requests)?);
        }
    }
    drop((child, counting));
    if writes {
        let all = contenders.iter().flat_map(|(_, _, samples)| samples).chain(&svc);
        check_written(before, database.row_counts()?, all)?;
    }
    print(subject, &contenders, &svc, &counted, median(postgres_cpu))
}

fn print(
    subject: Subject,
    contenders: &[(&str, Script, Vec<Sample>)],
    svc: &[Sample],
    counted: &[Sample],
    postgres_cpu: f64,
) -> Result<()> {
    let name = match subject {
        Subject::PgGet => "GET, PostgreSQL",
        Subject::PgList => "list, PostgreSQL",
        _ => "POST, PostgreSQL",
    };
    let Some((_, _, baseline)) = contenders.first() else { return Ok(()) };
    let mut rows = Vec::new();
    for (number, (contender, _, rounds)) in contenders.iter().enumerate() {
        let (subject, ratio) = if number == 0 { (name, Ratio::Baseline) } else { ("", Ratio::To(baseline)) };
        rows.push(Row { subject, contender, rounds, ratio });
    }
    rows.push(Row { subject: "", contender: "svc", rounds: svc, ratio: Ratio::To(baseline) });
    if !counted.is_empty() {
        rows.push(Row { subject: "", contender: "svc, all counted", rounds: counted, ratio: Ratio::To(baseline) });
    }
    table::print_rows(&rows)?;
    let each = median(baseline.iter().map(Sample::cpu_each));
    table::print_line(&format!("CPU µs of PostgreSQL per request: {each:.1} for pgbench, {postgres_cpu:.1} for svc"))
}

/// Starts svc's server without the sender.
fn start(url: &str, counting: bool) -> Result<(Child, SocketAddr)> {
    let words = ["serve-svc", url, "--counting"].map(AsRef::as_ref);
    let mut child = Child::start(if counting { &words } else { &words[..2] })?;
    let address = child.read_line()?.parse()?;
    Ok((child, address))
}

/// Records what svc's server sends to PostgreSQL for one request of the first tenant.
fn record(subject: Subject, database: &Database) -> Result<Vec<Statement>> {
    let (_child, address) = start(&format!("{}{LOGGING}", database.url), false)?;
    let first = database.tenants.first().ok_or("no tenants")?;
    let first = crate::seed::Tenant { key: first.key.clone(), contacts: first.contacts.clone() };
    let mut requests = Requests::new(subject, &Arc::from([first]));
    // The first request opens connections and prepares statements.
    load::send_once(address, &mut requests)?;
    std::thread::sleep(LOG_DELAY);
    let mut log = File::open(database.log())?;
    log.seek(SeekFrom::End(0))?;
    load::send_once(address, &mut requests)?;
    std::thread::sleep(LOG_DELAY);
    let mut text = String::new();
    log.read_to_string(&mut text)?;
    recording::last_transaction(&text, " contacts ")
}

fn dataset(options: &Options, subject: Subject, database: &Database) -> Result<Dataset> {
    let id = |sql: &str| -> Result<Uuid> { Ok(database.psql(sql)?.parse()?) };
    Ok(Dataset {
        tenants: options.tenants,
        contacts: options.contacts,
        tenant: id("SELECT id FROM tenants ORDER BY id LIMIT 1")?,
        subscription: id("SELECT id FROM subscriptions ORDER BY tenant_id LIMIT 1")?,
        creates: subject == Subject::PgPost,
    })
}

/// Checks that each POST of svc and pgbench has left its three rows.
fn check_written<'a>(before: [u64; 3], after: [u64; 3], rounds: impl Iterator<Item = &'a Sample>) -> Result<()> {
    let counted: usize = rounds.map(|round| round.count).sum();
    let added = [after[0] - before[0], after[1] - before[1], after[2] - before[2]];
    // Warm-up requests add more rows than were counted.
    if added.iter().all(|rows| *rows == added[0]) && added[0] > counted as u64 {
        return Ok(());
    }
    Err(format!("{counted} were acknowledged; contacts, events and deliveries grew by {added:?}").into())
}
