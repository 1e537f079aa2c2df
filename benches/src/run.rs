//! The run: seeds the database, measures the contenders alternately, and prints the medians.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;

use crate::bare_server::FixedResponse;
use crate::child::Child;
use crate::error::Result;
use crate::options::{Committer, Options, Subject};
use crate::requests::Requests;
use crate::sample::Sample;
use crate::seed::{self, Tenant};
use crate::table::{self, Ratio, Row};
use crate::{aged, apps, dashboard, deliver, filters, growth, load, postgres, scale, search, worklists};

/// The default page size of the API.
const PAGE: u32 = 50;

/// Measures all blocks.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.contacts / options.tenants <= PAGE {
        return Err(format!("a tenant needs more than {PAGE} contacts").into());
    }
    let is_default = |subject: &Subject| *subject != Subject::Aged && subject.alone().is_none();
    let default = Subject::value_variants().iter().filter(|subject| is_default(subject));
    let subjects: Vec<Subject> =
        if options.only.is_empty() { default.copied().collect() } else { options.only.clone() };
    let (alone, subjects): (Vec<_>, Vec<_>) = subjects.into_iter().partition(|subject| subject.alone().is_some());
    let (on_postgres, on_sqlite): (Vec<_>, Vec<_>) = subjects.into_iter().partition(|subject| subject.is_postgres());
    for run in alone.into_iter().filter_map(Subject::alone) {
        run(options)?;
    }
    if on_postgres.is_empty() && on_sqlite.is_empty() {
        return Ok(());
    }
    table::print_header(options)?;
    if !on_sqlite.is_empty() {
        run_on_sqlite(options, &on_sqlite)?;
    }
    if on_postgres.is_empty() { Ok(()) } else { postgres::run(options, &on_postgres) }
}

impl Subject {
    /// Returns what measures a block that has databases of its own. It is measured only if it is named.
    fn alone(self) -> Option<fn(&Options) -> Result<()>> {
        match self {
            Self::Scale => Some(scale::run),
            Self::Dashboard => Some(dashboard::run),
            Self::Worklists => Some(worklists::run),
            Self::Growth => Some(growth::run),
            Self::Filters => Some(|_| filters::run()),
            Self::Search => Some(search::run),
            _ => None,
        }
    }
}

fn run_on_sqlite(options: &Options, subjects: &[Subject]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = options.keep.clone().unwrap_or_else(|| folder.path().join("seeded.db"));
    let started = Instant::now();
    seed::seed(&file, options.tenants, options.contacts)?;
    let tenants = seed::tenants(&file)?;
    table::print_line(&format!("SQLite (seeded in {:.0} s)", started.elapsed().as_secs_f64()))?;
    for subject in subjects {
        match subject {
            Subject::Get | Subject::List => serve(options, *subject, &file, &tenants)?,
            Subject::Post => serve(options, *subject, &copy(&file, folder.path())?, &tenants)?,
            Subject::Aged => {
                let [fresh, aged] = ["fresh.db", "aged.db"].map(|name| copy_as(&file, folder.path(), name));
                aged::run(options, &fresh?, &aged?, &tenants)?;
            }
            Subject::Token => token(options, &copy(&file, folder.path())?, &tenants)?,
            Subject::Commit => commit(options, &copy(&file, folder.path())?)?,
            Subject::Deliver => {
                deliver::backlog(options, &copy(&file, folder.path())?)?;
                deliver::latency(options, &copy(&file, folder.path())?, &tenants)?;
            }
            Subject::Mixed => mixed(options, &copy(&file, folder.path())?, &tenants)?,
            Subject::Pipe => deliver::pipe(options, &copy(&file, folder.path())?, &tenants)?,
            Subject::Scale
            | Subject::Growth
            | Subject::Dashboard
            | Subject::Filters
            | Subject::Search
            | Subject::Worklists
            | Subject::PgGet
            | Subject::PgList
            | Subject::PgPost => {}
        }
    }
    Ok(())
}

/// Writes go to a copy, so that each run starts with the same rows.
fn copy(file: &Path, folder: &Path) -> Result<PathBuf> {
    copy_as(file, folder, "copy.db")
}

fn copy_as(file: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let copy = folder.join(name);
    for left in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(with_ending(&copy, left));
    }
    std::fs::copy(file, &copy)?;
    // The key of the stored secrets, unless it is in the environment.
    if with_ending(file, ".key").exists() {
        std::fs::copy(with_ending(file, ".key"), with_ending(&copy, ".key"))?;
    }
    // Synced now, so that writing back does not disturb the measurements.
    std::fs::File::open(&copy)?.sync_all()?;
    Ok(copy)
}

/// Returns a file name with an ending appended.
fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Measures svc's server and the bare server alternately.
fn serve(options: &Options, subject: Subject, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let mut requests = Requests::new(subject, tenants);
    let before = seed::row_counts(file)?;
    let mut svc = Child::start(&[OsStr::new("serve-svc"), file.as_os_str()])?;
    let svc_address: SocketAddr = svc.read_line()?.parse()?;
    let response = response(subject, &load::send_once(svc_address, &mut requests)?)?;
    let mut bare = Child::start(&[OsStr::new("serve-bare")])?;
    bare.write_line(&serde_json::to_string(&response)?)?;
    let bare_address: SocketAddr = bare.read_line()?.parse()?;

    let (connections, length) = (options.connections as usize, Duration::from_secs(options.seconds));
    let (mut bare_rounds, mut svc_rounds) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        bare_rounds.push(load::round(&bare, bare_address, connections, length, &requests)?);
        svc_rounds.push(load::round(&svc, svc_address, connections, length, &requests)?);
    }
    drop((svc, bare));
    if subject == Subject::Post {
        check_written(file, before, &svc_rounds)?;
    }
    let name = match subject {
        Subject::Get => "GET by id",
        Subject::List => "list of 50",
        _ => "POST, durable",
    };
    table::print_rows(&[
        Row { subject: name, contender: "bare hyper", rounds: &bare_rounds, ratio: Ratio::Baseline },
        Row { subject: "", contender: "svc", rounds: &svc_rounds, ratio: Ratio::To(&bare_rounds) },
    ])
}

/// Measures the same GETs by keys and by access tokens of an app, alternately at one server.
fn token(options: &Options, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let by_key = Requests::new(Subject::Token, tenants);
    let by_token = Requests::new(Subject::Token, &apps::with_tokens(file, tenants)?);
    let mut svc = Child::start(&[OsStr::new("serve-svc"), file.as_os_str()])?;
    let address: SocketAddr = svc.read_line()?.parse()?;
    let (connections, length) = (options.connections as usize, Duration::from_secs(options.seconds));
    let (mut key_rounds, mut token_rounds) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        key_rounds.push(load::round(&svc, address, connections, length, &by_key)?);
        token_rounds.push(load::round(&svc, address, connections, length, &by_token)?);
    }
    table::print_rows(&[
        Row { subject: "GET by id", contender: "by key", rounds: &key_rounds, ratio: Ratio::Baseline },
        Row { subject: "", contender: "by token", rounds: &token_rounds, ratio: Ratio::To(&key_rounds) },
    ])
}

/// Measures nine GETs for each POST at fixed rates, with half of the POSTs that the server answers when it does nothing
/// else.
fn mixed(options: &Options, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let (gets, posts) = (Requests::new(Subject::Get, tenants), Requests::new(Subject::Post, tenants));
    let mut svc = Child::start(&[OsStr::new("serve-svc"), file.as_os_str()])?;
    let address: SocketAddr = svc.read_line()?.parse()?;
    let (connections, length) = (options.connections as usize, Duration::from_secs(options.seconds));
    let round = |requests: &Requests| load::round(&svc, address, connections, length, requests);
    let mut rounds: [Vec<Sample>; 3] = Default::default();
    for _ in 0..options.rounds {
        let alone = round(&posts)?;
        let half = alone.rate() / 2.0;
        let (gets, posts) = (gets.fork().per_second(9.0 * half), posts.fork().per_second(half));
        let (gets, posts) = std::thread::scope(|scope| {
            let posts = scope.spawn(|| round(&posts));
            let gets = round(&gets)?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((
                gets,
                posts.join().map_err(|_| "the load generator panicked")??,
            ))
        })?;
        rounds.iter_mut().zip([alone, gets, posts]).for_each(|(rounds, round)| rounds.push(round));
    }
    let [alone, gets, posts] = &rounds;
    table::print_rows(&[
        Row { subject: "mixed", contender: "POSTs alone", rounds: alone, ratio: Ratio::Baseline },
        Row { subject: "", contender: "GETs, nine times", rounds: gets, ratio: Ratio::None },
        Row { subject: "", contender: "POSTs, half", rounds: posts, ratio: Ratio::To(alone) },
    ])
}

/// Parses a response, for the bare server to return the same.
fn response(subject: Subject, bytes: &[u8]) -> Result<FixedResponse> {
    let text = std::str::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("the response has no head")?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or("the response has no status")?.parse()?;
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let json: serde_json::Value = serde_json::from_str(body)?;
    if subject == Subject::List && json["data"].as_array().map(Vec::len) != Some(PAGE as usize) {
        return Err("a list does not have the default page size".into());
    }
    Ok(FixedResponse { status, headers, body: body.to_owned() })
}

/// Checks that each 201 has left its three rows.
fn check_written(file: &Path, before: [u32; 3], rounds: &[Sample]) -> Result<()> {
    let after = seed::row_counts(file)?;
    let acknowledged: usize = rounds.iter().map(|round| round.count).sum();
    let added = [after[0] - before[0], after[1] - before[1], after[2] - before[2]];
    // Warm-up requests add more rows than were counted.
    if added.iter().all(|rows| *rows == added[0]) && added[0] as usize > acknowledged {
        return Ok(());
    }
    Err(format!("{acknowledged} POSTs were acknowledged, but contacts, events and deliveries grew by {added:?}").into())
}

/// Measures bare SQL and the store alternately.
fn commit(options: &Options, file: &Path) -> Result<()> {
    let mut rounds: [Vec<Sample>; 3] = Default::default();
    for _ in 0..options.rounds {
        for (by, samples) in [Committer::Each, Committer::Groups, Committer::Svc].into_iter().zip(&mut rounds) {
            let (by, seconds, concurrency) =
                (by.to_string(), options.seconds.to_string(), options.connections.to_string());
            let words: [&OsStr; 5] =
                [OsStr::new("commit"), by.as_ref(), file.as_os_str(), seconds.as_ref(), concurrency.as_ref()];
            let mut child = Child::start(&words)?;
            samples.push(serde_json::from_str(&child.read_line()?)?);
        }
    }
    let [each, groups, svc] = &rounds;
    let grouped = format!("SQL, {} per commit", options.connections);
    table::print_rows(&[
        Row { subject: "rows of a POST", contender: &grouped, rounds: groups, ratio: Ratio::Baseline },
        Row { subject: "", contender: "SQL, 1 per commit", rounds: each, ratio: Ratio::To(groups) },
        Row { subject: "", contender: "svc's store", rounds: svc, ratio: Ratio::To(groups) },
    ])
}
