//! The run: load, rounds, the drain, and the comparison.

use std::sync::Arc;
use std::time::Duration;

use svc_core::env::Env;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::check::{self, Verdict};
use crate::clients::{Client, Random};
use crate::found::{self, Found};
use crate::journal::Entry;
use crate::options::Options;
use crate::outage::{Disk, Outage, Watch};
use crate::receiver::Receiver;
use crate::rounds::Rounds;
use crate::world::World;
use svc_tests::Result;
use svc_tests::database::Database;
use svc_tests::http::Http;

/// How long clients may take to end once they are told to.
const LAST_REQUESTS: Duration = Duration::from_secs(60);
/// How long what is pending may take after the last kill, on top of the leases of the dead.
const DRAIN: Duration = Duration::from_secs(120);

/// Everything that was asked for.
pub(crate) fn run(options: &Options) -> Result<Verdict> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(crash(options))
}

async fn crash(options: &Options) -> Result<Verdict> {
    let seed = options.seed.unwrap_or_else(|| u64::from_be_bytes(Env::system().bytes()));
    let asked = options.database_url.as_deref();
    let disk = match options.faults {
        None => None,
        Some(faults) => match Disk::new(faults, asked.is_none())? {
            None => return Ok(Verdict { summary: "not run".to_owned(), ..Verdict::default() }),
            disk => disk,
        },
    };
    let database = match disk.as_ref().and_then(Disk::folder) {
        Some(folder) => Database::new_in(folder, asked)?,
        None => Database::new(asked)?,
    };
    let outage = Arc::new(Outage::new(disk.is_some()));
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
        let client = Client::new(
            (tenant, key),
            number,
            http.clone(),
            server.clone(),
            stopped.clone(),
            random,
            Arc::clone(&outage),
        );
        clients.spawn(client.run());
    }
    let random = Random::new(seed);
    let watch = Watch { database: &database, world: &world, http: &http, outage: &outage };
    let rounds = Rounds { options, watch, disk: disk.as_ref(), listens: &listens, random: &random };
    let (server, abandoned) = tokio::select! {
        done = rounds.run() => done?,
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
    verdict.summary = format!("seed {seed}, {} rounds\n{}", options.rounds, verdict.summary);
    Ok(verdict)
}
