//! Refuses writes under a clock that is far ahead.
//!
//! The times of an account only go forward, so one write under a clock that is a year ahead would give its records times in
//! the future from then on. On PostgreSQL the store compares clocks with the database. A SQLite file has no clock, but the
//! file system has one: it gives a new file beside the database the time of its machine. Each write compares that.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};
use svc_core::values::Timestamp;

/// The largest lead with which a command writes.
const MAX_LEAD: Duration = Duration::from_secs(60);

/// Wraps a store on a SQLite file, so that writes are refused while the clock is far ahead of that of the file system.
pub(crate) fn guarded(store: Arc<dyn Store>, database: PathBuf) -> Arc<dyn Store> {
    Arc::new(ClockGuard { store, database })
}

struct ClockGuard {
    store: Arc<dyn Store>,
    database: PathBuf,
}

#[async_trait]
impl StoreWrapper for ClockGuard {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        if access == Access::Write {
            check(self.store.env(), &self.database)?;
        }
        self.store.run(access, name, work).await
    }
}

/// Returns an error if the clock is ahead of the time of the file system.
fn check(env: &Env, database: &Path) -> Result<(), Error> {
    // A folder in which no file can be made takes no writes to the database either, which says so itself.
    let Ok(file_time) = file_time(env, database) else { return Ok(()) };
    let now = env.now();
    let lead = now.since(file_time);
    if lead <= MAX_LEAD {
        return Ok(());
    }
    Err(Error::NotAllowed(format!(
        "The clock shows {now}, {} s ahead of the file system of the database, so nothing was written: a write would take \
         its account to that time, and it would stay there. Set the clock, or add --allow-clock-jump if it is right.",
        lead.as_secs()
    )))
}

/// Returns the time of the file system of a database: that of a new file beside it.
fn file_time(env: &Env, database: &Path) -> io::Result<Timestamp> {
    let mut probe = database.as_os_str().to_owned();
    probe.push(format!(".clock-{}", hex(env.bytes::<8>())));
    let probe = PathBuf::from(probe);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&probe)?;
    let modified = made.metadata().and_then(|metadata| metadata.modified());
    fs::remove_file(&probe)?;
    let since_epoch = modified?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX)))
}

fn hex(bytes: [u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::{ManualClock, SystemEntropy};

    use super::*;

    /// Creates an account under a clock that is this far ahead of the machine's, and reads its name.
    async fn write_under_a_lead(lead: Duration) -> Result<String, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("svc.db");
        let now = Env::system().now();
        let clock = ManualClock::at(now.checked_add(lead).unwrap());
        let env = Env::new(clock, SystemEntropy);
        let store = svc_store::open(&format!("sqlite://{}", path.display()), env).await.unwrap();
        let store = guarded(store, path);
        let created =
            store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Ada")).await).await;
        let stored = store.read("test", (), async |tx, ()| Ok(tx.tenants(None, 10, false).await?.len())).await;
        assert_eq!(stored, Ok(usize::from(created.is_ok())), "reads go on");
        let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
        assert!(files.into_iter().all(|name| !name.to_string_lossy().contains("clock")), "no file is left");
        Ok(created?.name)
    }

    #[tokio::test]
    async fn a_write_under_a_clock_that_is_ahead_is_refused() {
        for lead in [0, 30] {
            assert_eq!(write_under_a_lead(Duration::from_secs(lead)).await, Ok("Ada".to_owned()), "{lead} s");
        }
        let Err(Error::NotAllowed(reason)) = write_under_a_lead(Duration::from_secs(3600)).await else {
            panic!("a write under a clock that is an hour ahead was not refused")
        };
        assert!(reason.contains("s ahead of the file system") && reason.contains("--allow-clock-jump"), "{reason}");
    }
}
