//! Tests of backups, also while a store writes.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::values::TenantId;

use super::*;
use crate::maintenance::backup::{Step, backup_in_steps};
use crate::maintenance::copy::count;
use crate::maintenance::digest::digest;
use crate::maintenance::tables::TABLES;
use crate::{Digest, backup, check};

async fn digests(url: &str) -> Vec<Digest> {
    let mut database = open::existing(url, &Env::system(), Opening::Migrate).await.unwrap();
    let mut tx = database.connection.begin(Access::Read).await.unwrap();
    let mut digests = Vec::new();
    for table in TABLES {
        digests.push(digest(&mut *tx, table, &mut |_| {}).await.unwrap());
    }
    digests
}

#[tokio::test]
async fn a_backup_has_the_same_rows() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    let file = folder.path("backup.db");
    let made = backup(&url, &file).await.unwrap();
    assert_eq!(made.bytes, std::fs::metadata(&file).unwrap().len());
    for name in ["backup.db", "backup.db.key"] {
        assert_eq!(std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(digests(&folder.url("backup.db")).await, digests(&url).await);
    // The statistics of the planner are copied, too.
    let statistics = |name: &str| -> i64 {
        let connection = rusqlite::Connection::open(folder.path(name)).unwrap();
        connection.query_row("SELECT count(*) FROM sqlite_stat1", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(statistics("backup.db"), statistics("svc.db"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_a_consistent_snapshot() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    let store = store(&url).await;
    let tenant = store.read("test", (), async |tx, ()| Ok(tx.tenants(None, 1_000, false).await?[0].id)).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU32::new(0));
    let writer = tokio::spawn(write(store, tenant, Arc::clone(&stop), Arc::clone(&written)));
    for number in 0..5 {
        while written.load(Ordering::Relaxed) < 20 * (number + 1) {
            tokio::task::yield_now().await;
        }
        let name = format!("{number}.db");
        backup(&url, &folder.path(&name)).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    let mut before = 0;
    for number in 0..5 {
        let url = folder.url(&format!("{number}.db"));
        assert_eq!(check(&url).await.unwrap().findings, []);
        let mut database = open::existing(&url, &Env::system(), Opening::Migrate).await.unwrap();
        let mut tx = database.connection.begin(Access::Read).await.unwrap();
        let contacts = count(&mut *tx, "contacts").await.unwrap();
        assert!(contacts > before, "{contacts}");
        before = contacts;
        // A contact and its event are written in one transaction.
        let events = count(&mut *tx, "events WHERE kind = 'contact.created' AND only_for IS NULL").await.unwrap();
        assert_eq!(events, contacts);
    }
}

async fn write(store: Arc<dyn Store>, tenant: TenantId, stop: Arc<AtomicBool>, written: Arc<AtomicU32>) {
    while !stop.load(Ordering::Relaxed) {
        let number = written.load(Ordering::Relaxed);
        let body = format!(r#"{{"email": "w{number}@example.com"}}"#);
        let create = store.write("test", (tenant, body), async |tx, (tenant, body)| {
            crud::create::<Contact>(tx, *tenant, ContactCreate::from_body(body.as_bytes())?).await
        });
        create.await.unwrap();
        written.store(number + 1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn existing_files_are_kept_and_unfinished_files_removed() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    let refused = |made: Result<crate::Backup, MaintenanceError>, name: &str| match made {
        Err(MaintenanceError::Refused(error)) => assert!(error.contains(name), "{error}"),
        other => panic!("{other:?}"),
    };
    std::fs::write(folder.path("a.db"), "mine").unwrap();
    refused(backup(&url, &folder.path("a.db")).await, "a.db exists");
    assert_eq!(std::fs::read(folder.path("a.db")).unwrap(), b"mine");
    assert!(!folder.path("a.db.key").exists());
    std::fs::write(folder.path("b.db.key"), "mine").unwrap();
    refused(backup(&url, &folder.path("b.db")).await, "b.db.key exists");
    assert!(!folder.path("b.db").exists());
    assert!(matches!(backup(&folder.url("none.db"), &folder.path("c.db")).await, Err(MaintenanceError::Open(_))));
    assert!(!folder.path("none.db").exists() && !folder.path("c.db").exists());
    match backup(&url, &folder.path("no/folder.db")).await {
        Err(MaintenanceError::File(error)) => {
            let missing = format!("the folder {} does not exist", folder.path("no").display());
            assert!(error.contains(&missing), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let server = backup("postgres://svc@127.0.0.1:1/svc", &folder.path("c.db")).await;
    assert!(matches!(server, Err(MaintenanceError::Unsupported(error)) if error.contains("pg_dump")));
}

/// The variables of [`is_killed_after_a_step`]: the database, the file, and the step.
const VARIABLES: [&str; 3] = ["SVC_TEST_DATABASE", "SVC_TEST_FILE", "SVC_TEST_STEP"];
/// The exit code of a process that ended in the middle of a backup.
const KILLED: i32 = 9;

/// Makes a backup, and ends the process after a step without running anything else, as a kill does.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn is_killed_after_a_step() {
    let [Ok(url), Ok(file), Ok(step)] = VARIABLES.map(std::env::var) else { return };
    let mut kill = |after: Step| {
        if format!("{after:?}") == step {
            std::process::exit(KILLED);
        }
    };
    backup_in_steps(&url, file.as_ref(), &mut kill).unwrap();
}

fn kill_backup(url: &str, file: &std::path::Path, step: Step) {
    let name = format!("{}::is_killed_after_a_step", module_path!().split_once("::").unwrap().1);
    let mut test = std::process::Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", &name, "--ignored"]).env(VARIABLES[0], url).env(VARIABLES[1], file);
    let output = test.env(VARIABLES[2], format!("{step:?}")).output().unwrap();
    assert_eq!(output.status.code(), Some(KILLED), "{step:?}: {output:?}");
}

#[tokio::test]
async fn a_backup_that_is_killed_never_looks_like_a_good_one() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    for step in [Step::Created, Step::KeyWritten, Step::Written, Step::KeyPublished, Step::Published] {
        let target = Folder::new();
        let file = target.path("b.db");
        kill_backup(&url, &file, step);
        assert_eq!(file.exists(), step == Step::Published, "{step:?}");
        assert_eq!(target.path("b.db.key").exists(), matches!(step, Step::KeyPublished | Step::Published), "{step:?}");
        assert!(target.path("b.db.partial").exists(), "{step:?}");
        if step == Step::Published {
            assert_eq!(digests(&target.url("b.db")).await, digests(&url).await);
            // What is left is the finished backup under another name, so the next one must not write to it.
            std::fs::rename(&file, target.path("moved.db")).unwrap();
            std::fs::rename(target.path("b.db.key"), target.path("moved.db.key")).unwrap();
        } else {
            // A server that is started on it makes no database.
            let started = crate::open(&target.url("b.db"), Env::system()).await.map(drop);
            assert_eq!(started.is_err(), step == Step::KeyPublished, "{step:?}: {started:?}");
            if started.is_ok() {
                std::fs::remove_file(&file).unwrap();
                std::fs::remove_file(target.path("b.db.key")).unwrap();
            }
            // It may have been killed in the middle of writing.
            std::fs::write(target.path("b.db.partial"), "a part").unwrap();
            std::fs::write(target.path("b.db.partial-journal"), "a journal").unwrap();
        }
        backup(&url, &file).await.unwrap();
        assert_eq!(digests(&target.url("b.db")).await, digests(&url).await, "{step:?}");
        if step == Step::Published {
            assert_eq!(digests(&target.url("moved.db")).await, digests(&url).await);
        }
        let left = std::fs::read_dir(target.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("partial")).collect();
        assert!(left.is_empty(), "{step:?}: {left:?}");
    }
}

#[tokio::test]
async fn two_backups_at_a_time_do_not_write_to_the_same_file() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    let file = folder.path("b.db");
    let mut refused = 0;
    let mut again = |step: Step| {
        let error = backup_in_steps(&url, &file, &mut |_| {}).unwrap_err().to_string();
        let reason = if step == Step::Published { "exists already" } else { "Another backup is being written" };
        assert!(error.contains(reason), "{step:?}: {error}");
        refused += 1;
    };
    backup_in_steps(&url, &file, &mut again).unwrap();
    assert_eq!(refused, 5);
    assert_eq!(digests(&folder.url("b.db")).await, digests(&url).await);
}

#[tokio::test]
async fn files_that_others_make_during_a_backup_are_kept() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    for (file, taken) in [("a.db", "a.db"), ("b.db", "b.db.key")] {
        let mut take = |step| {
            if step == Step::Written {
                std::fs::write(folder.path(taken), "mine").unwrap();
            }
        };
        let error = backup_in_steps(&url, &folder.path(file), &mut take).unwrap_err().to_string();
        assert!(error.contains(&format!("{taken} exists already")), "{error}");
        assert_eq!(std::fs::read(folder.path(taken)).unwrap(), b"mine");
        let left = std::fs::read_dir(folder.0.path()).unwrap();
        let left = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(&file[..4]));
        assert_eq!(left.count(), 1, "{file}");
    }
}
