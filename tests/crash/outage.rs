//! A disk that fails for a while, and checks of what must still work meanwhile.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::disk::{FailingDisk, Failure, SmallDisk};
use svc_test_support::http::{HttpClient, TestRequest};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::clients::Random;
use crate::fixture::Tenants;
use crate::options::Faults;

/// The interval of the checks during an outage.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How soon a write must succeed once the disk works again.
const RECOVERY: Duration = Duration::from_secs(20);

/// The state of the outage, as clients need it.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    is_expected: bool,
    /// Odd while nothing can be written; increases with each outage.
    number: AtomicU64,
    /// The number of acknowledged writes.
    written: AtomicU64,
}

impl Outage {
    pub(crate) fn new(is_expected: bool) -> Self {
        Self { is_expected, ..Self::default() }
    }

    /// Returns whether outages occur in this run, so that requests may be refused.
    pub(crate) fn is_expected(&self) -> bool {
        self.is_expected
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }

    /// Returns whether nothing could be written since this number was read.
    pub(crate) fn has_lasted_since(&self, number: u64) -> bool {
        number % 2 == 1 && self.number() == number
    }

    pub(crate) fn record_write(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    fn begin(&self) {
        self.number.fetch_or(1, Ordering::SeqCst);
    }

    fn end(&self) {
        let number = self.number();
        self.number.store(number + number % 2, Ordering::SeqCst);
    }
}

/// The disk of the database.
pub(crate) enum Disk {
    Failing { disk: FailingDisk, faults: Faults, _folder: TempDir },
    Small(SmallDisk),
}

impl Disk {
    /// Creates the disk for this kind of fault. Returns `None` where that is not possible.
    pub(crate) fn new(faults: Faults, on_sqlite: bool) -> Result<Option<Self>> {
        match faults {
            Faults::DiskFull => Ok(SmallDisk::mount()?.map(Self::Small)),
            _ if !on_sqlite => Err("PostgreSQL supports --faults disk-full only".into()),
            _ => {
                let folder = tempfile::tempdir()?;
                Ok(Some(Self::Failing { disk: FailingDisk::build(folder.path())?, faults, _folder: folder }))
            }
        }
    }

    /// Returns the folder that must contain the database, if there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Failing { .. } => None,
            Self::Small(disk) => Some(disk.folder()),
        }
    }

    /// Returns the environment variables of a server on this disk.
    pub(crate) fn variables(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        match self {
            Self::Failing { disk, .. } => disk.variables().into(),
            Self::Small(_) => Vec::new(),
        }
    }

    fn fail(&self, outage: &Outage, random: &Random) -> Result<()> {
        let (disk, failure) = match self {
            // Small writes may still fit.
            Self::Small(disk) => return disk.fill(),
            Self::Failing { disk, faults: Faults::NoSpace, .. } => (disk, Failure::Full),
            Self::Failing { disk, .. } if random.below(2) == 0 => (disk, Failure::Checkpoint),
            Self::Failing { disk, .. } => (disk, Failure::Fsync),
        };
        disk.fail(failure)?;
        if failure != Failure::Checkpoint {
            outage.begin();
        }
        Ok(())
    }

    /// Makes the disk work again, if it does not.
    pub(crate) fn heal(&self, outage: &Outage, database: &Database) -> Result<()> {
        outage.end();
        match self {
            Self::Failing { disk, .. } => {
                disk.heal();
                Ok(())
            }
            Self::Small(disk) => {
                disk.free()?;
                // PostgreSQL may have stopped because the disk was full.
                if let Some(server) = database.server() {
                    tokio::task::block_in_place(|| server.start());
                }
                Ok(())
            }
        }
    }

    /// After a kill: in half of the cases also discards what no fsync had confirmed, as a power cut does.
    pub(crate) fn cut_power(&self, database: &Database, random: &Random) -> Result<()> {
        match (self, database.folder()) {
            (Self::Failing { disk, .. }, Some(folder)) if random.below(2) == 0 => disk.cut_power(&folder),
            _ => Ok(()),
        }
    }
}

/// Makes the disk fail, and checks meanwhile that the server still responds.
pub(crate) struct OutageMonitor<'a> {
    pub(crate) database: &'a Database,
    pub(crate) fixture: &'a Tenants,
    pub(crate) http: &'a HttpClient,
    pub(crate) outage: &'a Outage,
}

impl OutageMonitor<'_> {
    /// Makes the disk fail for this time.
    pub(crate) async fn fail(
        &self,
        disk: &Disk,
        random: &Random,
        server: SocketAddr,
        duration: Duration,
    ) -> Result<()> {
        disk.fail(self.outage, random)?;
        let end = Instant::now() + duration;
        while Instant::now() < end {
            self.check_availability(server).await?;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Makes the disk work again, and waits for the next acknowledged write.
    pub(crate) async fn recover(&self, disk: &Disk) -> Result<()> {
        disk.heal(self.outage, self.database)?;
        let (before, deadline) = (self.outage.written.load(Ordering::SeqCst), Instant::now() + RECOVERY);
        while self.outage.written.load(Ordering::SeqCst) == before {
            if Instant::now() > deadline {
                return Err(format!("no write was acknowledged within {RECOVERY:?} after the outage").into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Reads must succeed and the process must be healthy. PostgreSQL may stop on a full disk, and then 503 is
    /// allowed.
    async fn check_availability(&self, server: SocketAddr) -> Result<()> {
        let key = self.fixture.tenants.first().map(|tenant| tenant.key.as_str()).unwrap_or_default();
        let read = self.http.send(server, &TestRequest::get("/contacts?limit=5", key)).await?.status;
        let (ready, healthy) = (self.http.probe(server, "/readyz").await?, self.http.probe(server, "/healthz").await?);
        let may_be_away = self.database.server().is_some();
        if [read, ready].iter().any(|status| *status != 200 && !(may_be_away && *status == 503)) || healthy != 200 {
            return Err(format!("during an outage: GET {read}, /readyz {ready}, /healthz {healthy}").into());
        }
        Ok(())
    }
}
