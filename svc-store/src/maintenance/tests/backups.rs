//! Tests of backups, also while a store writes.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::values::TenantId;

use super::*;
use crate::maintenance::copy::count;
use crate::maintenance::digest::digest;
use crate::maintenance::tables::TABLES;
use crate::{Digest, backup, check};

async fn digests(url: &str) -> Vec<Digest> {
    let mut database = open::existing(url, &Env::system()).await.unwrap();
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
    let tenant = store.read("test", (), async |tx, ()| Ok(tx.tenants(None, 1_000).await?[0].id)).await.unwrap();
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
        let mut database = open::existing(&url, &Env::system()).await.unwrap();
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
    let nowhere = backup(&url, &folder.path("no/folder.db")).await;
    assert!(matches!(nowhere, Err(MaintenanceError::File(_))), "{nowhere:?}");
    let server = backup("postgres://svc@127.0.0.1:1/svc", &folder.path("c.db")).await;
    assert!(matches!(server, Err(MaintenanceError::Unsupported(error)) if error.contains("pg_dump")));
}
