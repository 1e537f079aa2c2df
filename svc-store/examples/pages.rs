//! Prints how many pages a commit on SQLite writes, by table and index: of 64 requests that create a contact each, of the
//! same with what the sender does at that pace, and of one event by the number of webhook subscriptions that want it, with
//! the time that its write takes.
//!
//! ```text
//! cargo run --profile dist -p svc-examples --bin pages
//! ```
//!
//! Pages do not depend on the build, nor on the machine and what else it does.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::store::{Store, Tx};
use svc_core::values::{EventKind, EventSet, TenantId, WebhookUrl};
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::engine::{self, Attempt, AttemptResult, InFlight, Policy};
use svc_core::webhooks::events;
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use svc_store::SqliteStore;

const TENANTS: usize = 20;
/// Contacts in the database before the first commit that counts.
const CONTACTS: usize = 40_000;
/// Requests in one commit: as many as there are connections in the benchmarks.
const GROUP: usize = 64;
/// Commits of each kind, of which the mean is printed.
const COMMITS: usize = 16;
/// Numbers of subscriptions that want an event.
const FAN_OUT: [usize; 4] = [0, 10, 100, 1_000];
/// Events before those that count, so that each endpoint has a history of its own.
const EARLIER_EVENTS: usize = 150;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut bench = Bench::open(&folder.path().join("svc.db"))?;
    let tenants = bench.tenants(TENANTS, 1).await?;
    let mut random = 1;
    for _ in 0..CONTACTS / 1_000 {
        bench.post(&tenants, 1_000, &mut random).await?;
        bench.deliver_all().await?;
    }

    let mut requests = Pages::default();
    for _ in 0..COMMITS {
        requests.add(bench.count(async |bench| bench.post(&tenants, GROUP, &mut random).await).await?);
    }
    requests.print(&format!("{GROUP} requests"))?;

    bench.deliver_all().await?;
    let mut pipe = Pages::default();
    for commit in 0..2 * COMMITS {
        let pages = bench.count(async |bench| bench.post_and_send(&tenants, GROUP, &mut random).await).await?;
        // At first there is less to claim and no outcome.
        if commit >= COMMITS {
            pipe.add(pages);
        }
    }
    pipe.print(&format!("{GROUP} requests, and the claims and outcomes of {GROUP} deliveries"))?;

    bench.deliver_all().await?;
    for subscriptions in FAN_OUT {
        bench.fan_out(subscriptions).await?.print(&format!("an event for {subscriptions} subscriptions"))?;
    }
    Ok(())
}

/// A database, and a sender whose attempts all succeed at once.
struct Bench {
    store: Box<dyn Store>,
    file: PathBuf,
    in_flight: InFlight,
    policy: Policy,
    /// The attempts whose outcomes are not recorded yet.
    attempts: Vec<Attempt>,
}

impl Bench {
    fn open(file: &Path) -> Result<Self, Failure> {
        let mut env = Env::system();
        env.max_webhooks = u32::try_from(FAN_OUT[3])?;
        let store = Box::new(SqliteStore::open(file, env)?);
        let policy = Policy { concurrency: 1_000_000, ..Policy::default() };
        Ok(Self { store, file: file.to_owned(), in_flight: InFlight::default(), policy, attempts: Vec::new() })
    }

    /// Creates tenants with this many subscriptions each.
    async fn tenants(&self, count: usize, subscriptions: usize) -> Result<Vec<TenantId>, Error> {
        let create = self.store.write("example", (count, subscriptions), async |tx, &(count, subscriptions)| {
            let mut created = Vec::new();
            for _ in 0..count {
                let tenant = tenants::create(tx, TenantCreate::named("Example")).await?.id;
                for number in 0..subscriptions {
                    let url =
                        WebhookUrl::parse(&format!("https://example.com/{number}")).map_err(|error| error.on("url"))?;
                    let input = WebhookCreate::new(url, EventSet::All);
                    crud::create::<WebhookSubscription>(tx, tenant, input).await?;
                }
                created.push(tenant);
            }
            Ok(created)
        });
        create.await
    }

    /// Creates contacts of random tenants, with random addresses, in one commit.
    async fn post(&mut self, tenants: &[TenantId], count: usize, random: &mut u64) -> Result<(), Error> {
        let picked = pick(tenants, count, random);
        self.store.write("example", picked, async |tx, picked| create_contacts(tx, picked).await).await
    }

    /// Writes events of a tenant with this many subscriptions.
    async fn fan_out(&mut self, subscriptions: usize) -> Result<Pages, Failure> {
        let [tenant] = self.tenants(1, subscriptions).await?[..] else { return Err("one tenant".into()) };
        for _ in 0..EARLIER_EVENTS {
            self.write_event(tenant).await?;
            self.deliver_all().await?;
        }
        let mut pages = Pages::default();
        for _ in 0..COMMITS {
            pages.add(self.count(async |bench| bench.write_event(tenant).await).await?);
            self.deliver_all().await?;
        }
        Ok(pages)
    }

    async fn write_event(&mut self, tenant: TenantId) -> Result<(), Error> {
        let write = self.store.write("example", tenant, async |tx, &tenant| {
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::StayCreated], &serde_json::json!({ "id": 1 })).await
        });
        write.await
    }

    /// Creates contacts and does what the sender does meanwhile, in one commit: it records the outcomes of the attempts
    /// that the last commit claimed, and claims what the commit before made due.
    async fn post_and_send(&mut self, tenants: &[TenantId], count: usize, random: &mut u64) -> Result<(), Error> {
        let picked = pick(tenants, count, random);
        self.commit(picked).await.map(drop)
    }

    /// Sends until nothing is due.
    async fn deliver_all(&mut self) -> Result<(), Error> {
        while self.commit(Vec::new()).await? {}
        Ok(())
    }

    /// Returns whether there was anything to send.
    async fn commit(&mut self, contacts: Vec<(TenantId, u64)>) -> Result<bool, Error> {
        let due = self.store.read("example", (), async |tx, ()| engine::poll(tx).await).await?;
        let mut outcomes: BTreeMap<TenantId, Vec<AttemptResult>> = BTreeMap::new();
        for attempt in std::mem::take(&mut self.attempts) {
            let outcome = success(attempt, due.now);
            self.in_flight.attempt_finished(&outcome);
            outcomes.entry(outcome.delivery.tenant_id).or_default().push(outcome);
        }
        let batches = std::sync::Arc::new(self.in_flight.plan(&self.policy, &due, outcomes));
        let input = (std::sync::Arc::clone(&batches), self.policy.clone(), contacts);
        let results = self.store.write("example", input, async |tx, (batches, policy, contacts)| {
            create_contacts(tx, contacts).await?;
            let mut results: Vec<Vec<Attempt>> = Vec::new();
            for batch in &**batches {
                results.push(engine::run_batch(tx, policy, batch).await?.attempts);
            }
            Ok(results)
        });
        let results: Vec<Vec<Attempt>> = results.await?;
        for (batch, attempts) in batches.iter().zip(results) {
            self.in_flight.batch_finished(batch, &attempts);
            self.attempts.extend(attempts);
        }
        Ok(!batches.is_empty())
    }

    /// Counts the pages that a commit adds to the write-ahead log.
    async fn count(&mut self, commit: impl AsyncFnOnce(&mut Self) -> Result<(), Error>) -> Result<Pages, Failure> {
        let before = frames(&self.file)?;
        let started = Instant::now();
        commit(self).await?;
        let time = started.elapsed();
        let after = frames(&self.file)?;
        // The log begins again after a checkpoint.
        let written = if after.salt == before.salt { &after.pages[before.pages.len()..] } else { &after.pages[..] };
        Ok(Pages { times: vec![time], trees: by_tree(&self.file, written)? })
    }
}

fn pick(tenants: &[TenantId], count: usize, random: &mut u64) -> Vec<(TenantId, u64)> {
    let mut next = || {
        // Xorshift.
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        *random
    };
    (0..count).map(|_| (tenants[usize::try_from(next() >> 33).unwrap_or_default() % tenants.len()], next())).collect()
}

async fn create_contacts(tx: &mut dyn Tx, contacts: &[(TenantId, u64)]) -> Result<(), Error> {
    for (tenant, number) in contacts {
        let body = format!(
            r#"{{"email": "{number:016x}@example.com", "first_name": "Ada", "last_name": "Lovelace {}", "phone":
            "0400000000", "company_name": "Example", "city": "Perth", "state": "WA", "postcode": "6000"}}"#,
            number % 1_000
        );
        crud::create::<Contact>(tx, *tenant, ContactCreate::from_body(body.as_bytes())?).await?;
    }
    Ok(())
}

fn success(attempt: Attempt, now: svc_core::values::Timestamp) -> AttemptResult {
    let log = AttemptLog {
        attempt: attempt.delivery.attempts,
        started_at: now,
        duration_ms: 5,
        status: 204,
        error: None,
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: Some("192.0.2.1:443".to_owned()),
    };
    AttemptResult { delivery: attempt.delivery, log, retry_after: None }
}

/// The pages of a write-ahead log.
struct Frames {
    salt: Vec<u8>,
    pages: Vec<u32>,
}

/// Reads the numbers of the pages in the log of a database file.
fn frames(file: &Path) -> Result<Frames, Failure> {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    let log = std::fs::read(PathBuf::from(name))?;
    let word = |bytes: &[u8], at: usize| bytes[at..at + 4].try_into().map(u32::from_be_bytes);
    let page = usize::try_from(word(&log, 8)?)?;
    let salt = log[16..24].to_vec();
    let mut pages = Vec::new();
    for frame in log[32..].chunks_exact(24 + page).take_while(|frame| frame[8..16] == salt[..]) {
        pages.push(word(frame, 0)?);
    }
    Ok(Frames { salt, pages })
}

/// Counts pages by table and index.
fn by_tree(file: &Path, pages: &[u32]) -> Result<BTreeMap<String, usize>, Failure> {
    let distinct: HashSet<u32> = pages.iter().copied().collect();
    let connection = rusqlite::Connection::open(file)?;
    let mut select = connection.prepare("SELECT pageno, name FROM dbstat")?;
    let mut trees = BTreeMap::new();
    let mut rows = select.query([])?;
    let mut found = 0;
    while let Some(row) = rows.next()? {
        if distinct.contains(&row.get(0)?) {
            *trees.entry(row.get(1)?).or_default() += 1;
            found += 1;
        }
    }
    trees.insert("free, or written twice".to_owned(), pages.len() - found);
    Ok(trees)
}

/// The pages that some commits wrote, and how long they took.
#[derive(Default)]
struct Pages {
    times: Vec<Duration>,
    trees: BTreeMap<String, usize>,
}

impl Pages {
    fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        for (tree, pages) in other.trees {
            *self.trees.entry(tree).or_default() += pages;
        }
    }

    fn print(mut self, what: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout();
        self.times.sort_unstable();
        let commits = self.times.len();
        let (median, mean) = (self.times[commits / 2], |pages: usize| (pages + commits / 2) / commits);
        writeln!(out, "{what}: {} pages, {median:.1?}", mean(self.trees.values().sum()))?;
        let mut trees: Vec<(&String, &usize)> = self.trees.iter().collect();
        trees.sort_by_key(|(_, pages)| std::cmp::Reverse(*pages));
        for (tree, pages) in trees.into_iter().filter(|(_, pages)| mean(**pages) > 0) {
            writeln!(out, "{:>6} {tree}", mean(*pages))?;
        }
        Ok(())
    }
}
