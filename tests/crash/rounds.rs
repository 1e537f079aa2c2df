//! The rounds. In each one the server runs for a random time, its disk may fail, and it is killed and started again.

use std::net::SocketAddr;
use std::time::Duration;

use svc_core::env::Env;
use tokio::sync::watch;

use crate::clients::Random;
use crate::journal::InterruptedAttempt;
use crate::options::Options;
use crate::outage::{Disk, OutageMonitor};
use crate::state;
use svc_test_support::Result;
use svc_test_support::node::{Node, Program};

/// The longest run time of a server that is killed shortly after its start.
const SHORT_LIFETIME: Duration = Duration::from_millis(40);

/// What the rounds need.
pub(crate) struct Rounds<'a> {
    pub(crate) options: &'a Options,
    pub(crate) watch: OutageMonitor<'a>,
    pub(crate) disk: Option<&'a Disk>,
    pub(crate) addresses: &'a watch::Sender<Option<SocketAddr>>,
    pub(crate) random: &'a Random,
}

impl Rounds<'_> {
    /// Runs all rounds. Returns the last server, which is still running, and the attempts that were in progress at
    /// the kills.
    pub(crate) async fn run(&self) -> Result<(Node, Vec<InterruptedAttempt>)> {
        let mut server = self.start().await?;
        let mut all: Vec<InterruptedAttempt> = Vec::new();
        for _ in 0..self.options.rounds {
            tokio::time::sleep(self.random_duration()).await;
            if self.survives_outage(server.address).await? {
                continue;
            }
            server.kill().await?;
            self.addresses.send(None)?;
            let killed_at = Env::system().now();
            if let Some(disk) = self.disk {
                disk.cut_power(self.watch.database, self.random)?;
            }
            // Only the new server may open the database first, because it must cope with what the killed one left.
            server = self.start().await?;
            let OutageMonitor { database, fixture, .. } = self.watch;
            all.extend(state::interrupted(database, fixture, killed_at, self.options.webhook_timeout).await?);
        }
        // An attempt may still be found at the next kill.
        all.sort_unstable();
        all.dedup();
        Ok((server, all))
    }

    /// Makes the disk fail, if the run has faults. Returns whether the server then keeps running.
    async fn survives_outage(&self, server: SocketAddr) -> Result<bool> {
        let Some(disk) = self.disk else { return Ok(false) };
        self.watch.fail(disk, self.random, server, self.random_duration()).await?;
        let end = self.random.below(4);
        if end == 0 {
            return Ok(false);
        }
        self.watch.recover(disk).await?;
        if end == 1 {
            tokio::time::sleep(self.random_duration()).await;
        }
        Ok(end != 1)
    }

    async fn start(&self) -> Result<Node> {
        let timeout = humantime::format_duration(self.options.webhook_timeout).to_string().replace(' ', "");
        // Enough retries that no delivery fails permanently because of a flaky endpoint.
        let retry = "50ms,100ms,200ms,400ms,1s,2s";
        let flags = ["--no-rate-limit", "--webhook-timeout", &timeout, "--webhook-retry", retry];
        let mut program = Program { file: self.options.server.clone(), log: "error", variables: Vec::new() };
        if let Some(disk) = self.disk {
            disk.heal(self.watch.outage, self.watch.database)?;
            program.variables = disk.variables();
            // Errors are expected during an outage.
            program.log = "off";
        }
        let server = program.start(self.watch.database, &flags).await?;
        self.addresses.send(Some(server.address))?;
        Ok(server)
    }

    /// Returns a random duration up to `--longest`, which is very short in one case of five.
    fn random_duration(&self) -> Duration {
        let Options { longest, .. } = *self.options;
        let longest = if self.random.below(5) == 0 { SHORT_LIFETIME.min(longest) } else { longest };
        let micros = usize::try_from(longest.as_micros()).unwrap_or(usize::MAX);
        Duration::from_micros(self.random.below(micros.saturating_add(1)) as u64)
    }
}
