//! Block `search`: finding records by a text on both databases, and what the index costs a POST. Each is printed as a line.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::env::Env;
use svc_core::find;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use svc_core::store::Store;
use svc_store::SqliteStore;

use crate::child::Child;
use crate::error::Result;
use crate::options::{Options, Subject};
use crate::postgres::Database;
use crate::requests::Requests;
use crate::sample::Sample;
use crate::table::{self, Ratio, Row};
use crate::{load, seed, server};

/// The number of contacts whose fields are looked for.
const SEARCHES: u32 = 200;

/// Measures all figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = crate::child::runtime()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("search.db");
    seed::seed(&file, 1, options.contacts)?;
    let size = || file.metadata().map(|file| file.len());
    let before = size()?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&file, Env::system())?);
    runtime.block_on(searches("SQLite", store))?;
    let bytes = size()?.saturating_sub(before) / u64::from(options.contacts);
    table::print_line(&format!("SQLite: the index has {bytes} bytes for a contact"))?;
    if let Some(database) = Database::create(1, options.contacts)? {
        let before: u64 = database.psql("SELECT pg_database_size(current_database())")?.parse()?;
        let store = runtime.block_on(server::open(Path::new(&database.url)))?;
        runtime.block_on(searches("PostgreSQL", store))?;
        let after: u64 = database.psql("SELECT pg_database_size(current_database())")?.parse()?;
        let bytes = after.saturating_sub(before) / u64::from(options.contacts);
        table::print_line(&format!("PostgreSQL: the index has {bytes} bytes for a contact"))?;
    }
    writes(options, &file)
}

/// Indexes all contacts, and prints how long that took and how long searches take.
async fn searches(database: &str, store: Arc<dyn Store>) -> Result<()> {
    let svc = Svc::new(Arc::clone(&store));
    let tenant = svc.accounts().list(None, 1).await?.pop().ok_or("no tenant")?.id;
    let started = Instant::now();
    find::index_all(&*store, |_| std::future::ready(())).await?;
    table::print_line(&format!("{database}: indexed in {:.1} s", started.elapsed().as_secs_f64()))?;
    let newest = ListParams { limit: Limit::new(SEARCHES), ..ListParams::default() };
    let contacts = svc.account(tenant).contacts().list(ContactFilter::default(), newest).await?.data;
    for (what, of) in TEXTS {
        let (mut taken, mut found) = (Vec::new(), 0);
        for contact in &contacts {
            let text = find::parse(&of(contact))?;
            let started = Instant::now();
            found += svc.account(tenant).find(text).await?.data.len();
            taken.push(started.elapsed());
        }
        taken.sort_unstable();
        let of = |percent: usize| taken[taken.len() * percent / 100].as_secs_f64() * 1e3;
        let found = found as f64 / f64::from(SEARCHES);
        table::print_line(&format!(
            "{database}: {:>8.2} ms p50 {:>8.2} ms p99, {found:>4.1} hits  {what}",
            of(50),
            of(99)
        ))?;
    }
    Ok(())
}

/// Returns what is looked for from a contact.
type TextOf = fn(&Contact) -> String;

/// What people look for, as a field of a contact has it.
const TEXTS: [(&str, TextOf); 7] = [
    ("the whole email address", email),
    ("six characters of an email address", |contact| email(contact).chars().skip(2).take(6).collect()),
    ("the last eight characters of a phone number", |contact| tail(&field(contact.phone.as_ref()), 8)),
    ("a name that one in 64 has", |contact| contact.display_name()),
    ("a company that one in two has", |_| "Analytical".to_owned()),
    ("three characters of a suburb", |contact| field(contact.city.as_ref()).chars().take(3).collect()),
    ("what none has", |contact| format!("zz{}", tail(&contact.id.to_string(), 6))),
];

fn email(contact: &Contact) -> String {
    contact.email.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn field<const MAX: usize>(text: Option<&Text<MAX>>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

fn tail(text: &str, length: usize) -> String {
    text.chars().skip(text.chars().count().saturating_sub(length)).collect()
}

/// Prints POSTs with and without the index, in turns.
fn writes(options: &Options, file: &Path) -> Result<()> {
    let tenants = seed::tenants(file)?;
    let requests = Requests::new(Subject::Post, &tenants);
    let (connections, length) = (options.connections as usize, Duration::from_secs(options.seconds));
    let mut rounds: [Vec<Sample>; 2] = Default::default();
    for _ in 0..options.rounds {
        for (is_indexed, rounds) in [false, true].into_iter().zip(&mut rounds) {
            let mut words = vec![OsStr::new("serve-svc"), file.as_os_str()];
            words.extend(is_indexed.then_some(OsStr::new("--indexing")));
            let mut server = Child::start(&words)?;
            let address = server.read_line()?.parse()?;
            rounds.push(load::round(&server, address, connections, length, &requests)?);
        }
    }
    let [without, with] = &rounds;
    table::print_header(options)?;
    table::print_rows(&[
        Row { subject: "POST, durable", contender: "without the index", rounds: without, ratio: Ratio::Baseline },
        Row { subject: "", contender: "with the index", rounds: with, ratio: Ratio::To(without) },
    ])
}
