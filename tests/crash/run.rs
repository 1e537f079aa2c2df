//! The run: load, kills, the drain, and the comparison.

use std::net::SocketAddr;
use std::time::Duration;

use svc_core::env::Env;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::check::{self, Verdict};
use crate::clients::{Client, Random};
use crate::found::{self, Found};
use crate::journal::Abandoned;
use crate::journal::Entry;
use crate::options::Options;
use crate::receiver::Receiver;
use crate::world::World;
use svc_tests::Result;
use svc_tests::database::Database;
use svc_tests::http::Http;
use svc_tests::node::{Node, Program};

/// How long clients may take to end once they are told to.
const LAST_REQUESTS: Duration = Duration::from_secs(60);
/// How long what is pending may take after the last kill, on top of the leases of the dead.
const DRAIN: Duration = Duration::from_secs(120);
/// Now and then a kill comes while the server has hardly started.
const EARLY: Duration = Duration::from_millis(40);

/// Everything that was asked for.
pub(crate) fn run(options: &Options) -> Result<Verdict> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(crash(options))
}

async fn crash(options: &Options) -> Result<Verdict> {
    let seed = options.seed.unwrap_or_else(|| u64::from_be_bytes(Env::system().bytes()));
    let database = Database::new(options.database_url.as_deref())?;
    let receiver = Receiver::listen().await?;
    let world = World::make(&database, options, receiver.address).await?;
    receiver.expect(&world);

    let http = Http::default();
    let (listens, server) = watch::channel(None);
    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    for number in 0..options.tenants * options.clients {
        let tenant = (number % options.tenants) as usize;
        let key = world.tenants[tenant].key.as_str();
        // A stream of its own for each, and one more for the kills.
        let random = Random::new(seed.wrapping_add(u64::from(number) + 1));
        let client = Client::new((tenant, key), number, http.clone(), server.clone(), stopped.clone(), random);
        clients.spawn(client.run());
    }
    let random = Random::new(seed);
    let killed = kills(options, &database, &world, &listens, &random);
    let (server, abandoned) = tokio::select! {
        killed = killed => killed?,
        // None ends before it is told to, unless something is wrong.
        Some(ended) = clients.join_next() => return Err(ended?.err().unwrap_or("a client ended early".into())),
    };

    stop.send(true)?;
    let mut entries: Vec<Entry> = Vec::new();
    tokio::time::timeout(LAST_REQUESTS, async {
        while let Some(ended) = clients.join_next().await {
            entries.extend(ended??);
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    })
    .await??;
    found::drained(&database, &world, DRAIN + options.webhook_timeout * 2).await?;
    let mut found = Vec::new();
    for tenant in &world.tenants {
        found.push(Found::read(&database, tenant, &http, server.address).await?);
    }
    server.stop().await?;
    let mut verdict = check::check(&world, &entries, &receiver.take(), &abandoned, &found);
    verdict.summary = format!("seed {seed}, {} kills\n{}", options.rounds, verdict.summary);
    Ok(verdict)
}

/// Starts the server and kills it, round by round; returns the last one, which lives, and the attempts that were
/// under way at the kills.
async fn kills(
    options: &Options,
    database: &Database,
    world: &World,
    listens: &watch::Sender<Option<SocketAddr>>,
    random: &Random,
) -> Result<(Node, Vec<Abandoned>)> {
    let mut server = start(options, database).await?;
    let mut all: Vec<Abandoned> = Vec::new();
    listens.send(Some(server.address))?;
    for _ in 0..options.rounds {
        tokio::time::sleep(moment(options, random)).await;
        server.kill().await?;
        listens.send(None)?;
        let killed_at = Env::system().now();
        // The new process must find the database as the dead one left it: nobody else opens it before.
        server = start(options, database).await?;
        listens.send(Some(server.address))?;
        all.extend(found::abandoned(database, world, killed_at, options.webhook_timeout).await?);
    }
    // The same attempt may still be found at the next kill.
    all.sort_unstable();
    all.dedup();
    Ok((server, all))
}

async fn start(options: &Options, database: &Database) -> Result<Node> {
    let timeout = humantime::format_duration(options.webhook_timeout).to_string().replace(' ', "");
    // Enough retries that an endpoint's mood never makes a delivery fail for good.
    let retry = "50ms,100ms,200ms,400ms,1s,2s";
    let flags = ["--no-rate-limit", "--webhook-timeout", &timeout, "--webhook-retry", retry];
    Program { file: options.server.clone(), log: "error" }.start(database, &flags).await
}

/// How long the server lives: any time up to the longest, and now and then hardly at all.
fn moment(options: &Options, random: &Random) -> Duration {
    let longest = if random.below(5) == 0 { EARLY.min(options.longest) } else { options.longest };
    let micros = usize::try_from(longest.as_micros()).unwrap_or(usize::MAX);
    Duration::from_micros(random.below(micros.saturating_add(1)) as u64)
}
