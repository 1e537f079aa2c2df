//! The run: load, rounds, waiting for deliveries, and the check.

use std::sync::Arc;
use std::time::Duration;

use svc_core::env::Env;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::check::{self, CheckResult};
use crate::clients::{Client, Random};
use crate::fixture::Tenants;
use crate::journal::Entry;
use crate::options::Options;
use crate::outage::{Disk, Outage, OutageMonitor};
use crate::receiver::Receiver;
use crate::rounds::Rounds;
use crate::state::{self, DatabaseState};
use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::http::HttpClient;

/// How long clients may take to finish after they are stopped.
const LAST_REQUESTS: Duration = Duration::from_secs(60);
/// How long pending deliveries may take after the last kill, in addition to the leases of the killed server.
const DRAIN: Duration = Duration::from_secs(120);

/// Runs everything and returns the result.
pub(crate) fn run(options: &Options) -> Result<CheckResult> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(crash(options))
}

async fn crash(options: &Options) -> Result<CheckResult> {
    let seed = options.seed.unwrap_or_else(|| u64::from_be_bytes(Env::system().bytes()));
    let asked = options.database_url.as_deref();
    let disk = match options.faults {
        None => None,
        Some(faults) => match Disk::new(faults, asked.is_none())? {
            None => return Ok(CheckResult { summary: "not run".to_owned(), ..CheckResult::default() }),
            disk => disk,
        },
    };
    let database = match disk.as_ref().and_then(Disk::folder) {
        Some(folder) => Database::new_in(folder, asked)?,
        None => Database::new(asked)?,
    };
    let outage = Arc::new(Outage::new(disk.is_some()));
    let receiver = Receiver::listen().await?;
    let fixture = Tenants::create(&database, options, receiver.address).await?;
    receiver.expect(&fixture);

    let http = HttpClient::default();
    let (addresses, server) = watch::channel(None);
    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    for number in 0..options.tenants * options.clients {
        let tenant = (number % options.tenants) as usize;
        let key = fixture.tenants[tenant].key.as_str();
        // Each client has its own random numbers, and so have the kills.
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
    let watch = OutageMonitor { database: &database, fixture: &fixture, http: &http, outage: &outage };
    let rounds = Rounds { options, watch, disk: disk.as_ref(), addresses: &addresses, random: &random };
    let (server, interrupted) = tokio::select! {
        done = rounds.run() => done?,
        // No client ends before it is stopped, except with an error.
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
    state::drained(&database, &fixture, DRAIN + options.webhook_timeout * 2).await?;
    let mut state = Vec::new();
    for tenant in &fixture.tenants {
        state.push(DatabaseState::read(&database, tenant, &http, server.address).await?);
    }
    server.stop().await?;
    let mut result = check::check(&fixture, &entries, &receiver.take(), &interrupted, &state);
    result.summary = format!("seed {seed}, {} rounds\n{}", options.rounds, result.summary);
    Ok(result)
}
