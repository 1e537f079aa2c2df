//! The run: seeds, starts the contenders, lets them take turns and hands the medians to the table.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;

use crate::bare::Answer;
use crate::child::Child;
use crate::options::{Committer, Options, Subject};
use crate::requests::Requests;
use crate::sample::Sample;
use crate::seed::{self, Tenant};
use crate::table::{self, Ratio, Row};
use crate::{Result, aged, deliver, load, postgres};

/// Rows on a page when a client does not say.
const PAGE: u32 = 50;

/// Measures everything that was asked for.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.contacts / options.tenants <= PAGE {
        return Err(format!("a tenant needs more than {PAGE} contacts").into());
    }
    let usual = Subject::value_variants().iter().filter(|subject| **subject != Subject::Aged);
    let asked: Vec<Subject> = if options.only.is_empty() { usual.copied().collect() } else { options.only.clone() };
    let (on_postgres, on_sqlite): (Vec<_>, Vec<_>) = asked.into_iter().partition(|subject| subject.is_postgres());
    table::begin(options)?;
    if !on_sqlite.is_empty() {
        run_on_sqlite(options, &on_sqlite)?;
    }
    if on_postgres.is_empty() { Ok(()) } else { postgres::run(options, &on_postgres) }
}

fn run_on_sqlite(options: &Options, subjects: &[Subject]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = options.keep.clone().unwrap_or_else(|| folder.path().join("seeded.db"));
    let started = Instant::now();
    seed::seed(&file, options.tenants, options.contacts)?;
    let tenants = seed::tenants(&file)?;
    table::note(&format!("SQLite (ready in {:.0} s)", started.elapsed().as_secs_f64()))?;
    for subject in subjects {
        match subject {
            Subject::Get | Subject::List => serve(options, *subject, &file, &tenants)?,
            Subject::Post => serve(options, *subject, &copy(&file, folder.path())?, &tenants)?,
            Subject::Aged => {
                let [fresh, aged] = ["fresh.db", "aged.db"].map(|name| copy_as(&file, folder.path(), name));
                aged::run(options, &fresh?, &aged?, &tenants)?;
            }
            Subject::Commit => commit(options, &copy(&file, folder.path())?)?,
            Subject::Deliver => {
                deliver::backlog(options, &copy(&file, folder.path())?)?;
                deliver::latency(options, &copy(&file, folder.path())?, &tenants)?;
            }
            Subject::Pipe => deliver::pipe(options, &copy(&file, folder.path())?, &tenants)?,
            Subject::PgGet | Subject::PgList | Subject::PgPost => {}
        }
    }
    Ok(())
}

/// Writes go to a copy, so that each run begins with the same rows.
fn copy(file: &Path, folder: &Path) -> Result<PathBuf> {
    copy_as(file, folder, "copy.db")
}

fn copy_as(file: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let copy = folder.join(name);
    for left in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(&copy, left));
    }
    std::fs::copy(file, &copy)?;
    // The key of its secrets, unless the environment holds that.
    if beside(file, ".key").exists() {
        std::fs::copy(beside(file, ".key"), beside(&copy, ".key"))?;
    }
    // Not while something is measured.
    std::fs::File::open(&copy)?.sync_all()?;
    Ok(copy)
}

/// A file whose name goes on.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Our server and the bare one in turns.
fn serve(options: &Options, subject: Subject, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let mut requests = Requests::new(subject, tenants);
    let before = seed::written(file)?;
    let mut ours = Child::start(&[OsStr::new("serve-ours"), file.as_os_str()])?;
    let our_address: SocketAddr = ours.hear()?.parse()?;
    let answer = answer(subject, &load::once(our_address, &mut requests)?)?;
    let mut bare = Child::start(&[OsStr::new("serve-bare")])?;
    bare.tell(&serde_json::to_string(&answer)?)?;
    let bare_address: SocketAddr = bare.hear()?.parse()?;

    let (connections, length) = (options.connections as usize, Duration::from_secs(options.seconds));
    let (mut bare_rounds, mut our_rounds) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        bare_rounds.push(load::round(&bare, bare_address, connections, length, &requests)?);
        our_rounds.push(load::round(&ours, our_address, connections, length, &requests)?);
    }
    drop((ours, bare));
    if subject == Subject::Post {
        check_written(file, before, &our_rounds)?;
    }
    let name = match subject {
        Subject::Get => "GET by id",
        Subject::List => "list of 50",
        _ => "POST, durable",
    };
    table::print(&[
        Row { subject: name, contender: "bare hyper", rounds: &bare_rounds, ratio: Ratio::Yardstick },
        Row { subject: "", contender: "svc", rounds: &our_rounds, ratio: Ratio::To(&bare_rounds) },
    ])
}

/// Takes an answer apart, for the bare server to return the same.
fn answer(subject: Subject, bytes: &[u8]) -> Result<Answer> {
    let text = std::str::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("an answer without a head")?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or("an answer without a status")?.parse()?;
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let json: serde_json::Value = serde_json::from_str(body)?;
    if subject == Subject::List && json["data"].as_array().map(Vec::len) != Some(PAGE as usize) {
        return Err("a list is not as long as it should be".into());
    }
    Ok(Answer { status, headers, body: body.to_owned() })
}

/// Whether each answer of 201 has left its three rows.
fn check_written(file: &Path, before: [u32; 3], rounds: &[Sample]) -> Result<()> {
    let after = seed::written(file)?;
    let acknowledged: usize = rounds.iter().map(|round| round.count).sum();
    let added = [after[0] - before[0], after[1] - before[1], after[2] - before[2]];
    // Warming up adds more than was counted.
    if added.iter().all(|rows| *rows == added[0]) && added[0] as usize > acknowledged {
        return Ok(());
    }
    Err(format!("{acknowledged} were acknowledged; contacts, events and deliveries grew by {added:?}").into())
}

/// Bare SQL and the store in turns.
fn commit(options: &Options, file: &Path) -> Result<()> {
    let mut rounds: [Vec<Sample>; 3] = Default::default();
    for _ in 0..options.rounds {
        for (by, samples) in [Committer::Each, Committer::Groups, Committer::Ours].into_iter().zip(&mut rounds) {
            let (by, seconds, at_once) = (by.to_string(), options.seconds.to_string(), options.connections.to_string());
            let words: [&OsStr; 5] =
                [OsStr::new("commit"), by.as_ref(), file.as_os_str(), seconds.as_ref(), at_once.as_ref()];
            let mut child = Child::start(&words)?;
            samples.push(serde_json::from_str(&child.hear()?)?);
        }
    }
    let [each, groups, ours] = &rounds;
    let grouped = format!("SQL, {} a commit", options.connections);
    table::print(&[
        Row { subject: "rows of a POST", contender: &grouped, rounds: groups, ratio: Ratio::Yardstick },
        Row { subject: "", contender: "SQL, 1 a commit", rounds: each, ratio: Ratio::To(groups) },
        Row { subject: "", contender: "svc's store", rounds: ours, ratio: Ratio::To(groups) },
    ])
}
