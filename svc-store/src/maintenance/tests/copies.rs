//! Tests of copies between databases: complete, interrupted and refused.

use std::os::unix::fs::PermissionsExt as _;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::*;
use crate::maintenance::copy::copy_between;
use crate::maintenance::copy_position::{CopyPosition, setting};
use crate::maintenance::tables::TABLES;
use crate::{CopyReport, Phase, Progress, copy};

async fn copied(from: &str, to: &str, resume: bool) -> Result<CopyReport, MaintenanceError> {
    copy(from, to, resume, &mut |_| {}).await
}

#[track_caller]
fn assert_equal(report: &CopyReport) {
    for table in &report.tables {
        assert!(table.is_equal(), "{table:?}");
        assert!(table.source.rows > 0, "{} is empty, so the test shows nothing", table.table);
    }
    assert_eq!(report.tables.len(), TABLES.len());
}

#[track_caller]
fn refused(result: Result<CopyReport, MaintenanceError>, what: &str) {
    match result {
        Err(MaintenanceError::Refused(error)) => assert!(error.contains(what), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_is_copied_to_a_file() {
    let folder = Folder::new();
    let (from, to) = (folder.filled("from.db").await, folder.url("to.db"));
    let mut on_progress = Vec::new();
    let report = copy(&from, &to, false, &mut |progress| on_progress.push(progress)).await.unwrap();
    assert_equal(&report);
    assert_eq!(report.copied, report.tables.iter().map(|table| table.source.rows).sum::<u64>());
    assert!(on_progress.iter().all(|progress| progress.done <= progress.total), "{on_progress:?}");
    assert!(TABLES.iter().all(|table| on_progress.iter().any(|p| p.table == table.name && p.done == p.total)));
    let mode = |name: &str| std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("to.db"), mode("to.db.key")), (0o600, 0o600));
    // The secret key and the cursor key are copied, too.
    let key = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(key("from.db.key"), key("to.db.key"));
    let mut settings = Vec::new();
    for url in [&from, &to] {
        let mut database = open::existing(url, &Env::system(), Opening::Migrate).await.unwrap();
        settings
            .push(setting(&mut *database.connection.begin(Access::Read).await.unwrap(), "cursor_key").await.unwrap());
    }
    assert!(settings[0].is_some() && settings[0] == settings[1]);
    // The copy is an ordinary database: its secrets can be decrypted, and it can be copied.
    let store = store(&to).await;
    let opened = store.read("test", (), async |tx, ()| {
        let mut signed = 0;
        for tenant in tx.tenants(None, 1_000, false).await? {
            signed += tx.api_keys(tenant.id).await?.iter().filter(|key| key.signing_secret.is_some()).count();
        }
        Ok(signed)
    });
    assert_eq!(opened.await, Ok(4));
    assert_equal(&copied(&to, &folder.url("third.db"), false).await.unwrap());
}

#[tokio::test]
async fn a_file_is_copied_to_postgres_and_back() {
    let Some(server) = server() else { return };
    let folder = Folder::new();
    let (from, middle, to) = (folder.filled("from.db").await, server.database(), folder.url("to.db"));
    let env = Env::system();
    let source = open::existing(&from, &env, Opening::Migrate).await.unwrap();
    let there = copy_between(source, on_server(&middle, &from).await, false, &env, &mut |_| {}).await.unwrap();
    let source = on_server(&middle, &from).await;
    let target = open::copy_target(&to, &env, &source).await.unwrap();
    let back = copy_between(source, target, false, &env, &mut |_| {}).await.unwrap();
    for (there, back) in there.tables.iter().zip(&back.tables) {
        assert_eq!((there.source, there.target), (back.source, back.target), "{}", there.table);
    }
    assert_equal(&there);
    assert_equal(&back);
    let ends = (on_server(&middle, &from).await, on_server(&server.database(), &from).await);
    assert_equal(&copy_between(ends.0, ends.1, false, &env, &mut |_| {}).await.unwrap());
    let key = crate::vault::key_for(&folder.path("from.db"), &env, false).unwrap();
    let store = open_with(&middle, env, Options { secret_key: Some(key), ..Options::default() }).await.unwrap();
    let tenants = store.read("test", (), async |tx, ()| Ok(tx.tenants(None, 1_000, false).await?.len())).await;
    assert_eq!(tenants, Ok(2));
}

#[tokio::test]
async fn a_server_needs_the_key_of_the_source() {
    let Some(server) = server() else { return };
    let folder = Folder::new();
    let from = folder.filled("from.db").await;
    refused(copied(&from, &server.database(), false).await, "Set SVC_SECRET_KEY to the source's key");
}

/// A copy can be interrupted anywhere and then resumed.
#[tokio::test]
async fn an_interrupted_copy_is_resumed() {
    let folder = Folder::new();
    let from = folder.filled("from.db").await;
    // Tables of several batches.
    let tenant = "(SELECT id FROM tenants LIMIT 1)";
    let many = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1700)";
    let contacts = format!(
        "{many} INSERT INTO contacts (tenant_id, live, id, created_at, updated_at) \
         SELECT {tenant}, 1, randomblob(16), n, n FROM n"
    );
    let signatures = format!("{many} INSERT INTO used_signatures SELECT randomblob(16), randomblob(32), n FROM n");
    tamper(&from, &contacts).await;
    tamper(&from, &signatures).await;
    let mut steps = 0;
    let whole_report = copy(&from, &folder.url("whole.db"), false, &mut |_| steps += 1).await.unwrap();
    let to = folder.url("to.db");
    let mut sum = 0;
    for killed_at in [0, 1, 5, 6, 7, 12] {
        let mut step = 0;
        let mut kill = |progress: Progress| {
            assert!(progress.phase == Phase::Compare || step < killed_at, "killed");
            step += 1;
        };
        let killed = copy(&from, &to, true, &mut kill);
        assert!(AssertUnwindSafe(killed).catch_unwind().await.is_err(), "{killed_at}");
        let mut database = open::existing(&to, &Env::system(), Opening::Migrate).await.unwrap();
        let position =
            CopyPosition::read(&mut *database.connection.begin(Access::Read).await.unwrap()).await.unwrap().unwrap();
        assert!(position.table < TABLES.len());
        sum += killed_at;
    }
    refused(copied(&from, &to, false).await, "--resume");
    let resumed = copied(&from, &to, true).await.unwrap();
    assert_equal(&resumed);
    assert!(resumed.copied < whole_report.copied, "{sum} {steps}");
    // There is nothing left to copy.
    let again = copied(&from, &to, true).await.unwrap();
    assert_eq!(again.copied, 0);
    assert_equal(&again);
}

#[tokio::test]
async fn a_changed_cell_is_detected() {
    let folder = Folder::new();
    let from = folder.filled("from.db").await;
    for (at, change) in [
        "UPDATE contacts SET first_name = 'Eve' WHERE first_name = 'Bob'",
        "UPDATE invoices SET amount_paid = amount_paid - 1",
        "UPDATE subscriptions SET description = NULL",
        "DELETE FROM endpoint_schedule",
        "UPDATE tenants SET clock = clock + 1 WHERE name = 'Harbour Plumbing'",
        "UPDATE delivery_attempts SET response_truncated = NOT response_truncated WHERE attempt = 2",
        "UPDATE api_keys SET signing_secret = zeroblob(60) WHERE signing_secret IS NOT NULL",
    ]
    .into_iter()
    .enumerate()
    {
        let to = folder.url(&format!("{at}.db"));
        copied(&from, &to, false).await.unwrap();
        tamper(&to, change).await;
        let report = copied(&from, &to, true).await.unwrap();
        assert!(!report.is_equal(), "{change}");
        assert_eq!(report.tables.iter().filter(|table| !table.is_equal()).count(), 1, "{change}");
    }
}

#[tokio::test]
async fn existing_data_in_the_target_is_kept() {
    let folder = Folder::new();
    let (from, other, to) = (folder.filled("from.db").await, folder.filled("other.db").await, folder.url("to.db"));
    refused(copied(&from, &from, false).await, "the same database");
    let key = std::fs::read(folder.path("from.db.key")).unwrap();
    refused(copied(&from, &other, false).await, "Set SVC_SECRET_KEY to the source's key");
    refused(copied(&from, &other, true).await, "from.db.key");
    assert_ne!(key, std::fs::read(folder.path("other.db.key")).unwrap());

    copied(&from, &to, false).await.unwrap();
    refused(copied(&from, &to, false).await, "--resume");
    std::fs::write(folder.path("other.db.key"), &key).unwrap();
    let mut database = open::existing(&to, &Env::system(), Opening::Migrate).await.unwrap();
    let mut tx = database.connection.begin(Access::Write).await.unwrap();
    tx.execute("DELETE FROM settings WHERE name = 'copy'", &[]).await.unwrap();
    tx.commit().await.unwrap();
    refused(copied(&from, &to, false).await, "contains accounts already");
    refused(copied(&from, &to, true).await, "contains accounts already");

    // An unknown key file is kept.
    std::fs::write(folder.path("new.db.key"), "0".repeat(64)).unwrap();
    refused(copied(&from, &folder.url("new.db"), false).await, "new.db.key contains another key");

    let begun = folder.url("begun.db");
    let mut kill = |_| panic!("killed");
    let broken = copy(&from, &begun, false, &mut kill);
    assert!(AssertUnwindSafe(broken).catch_unwind().await.is_err());
    let third = folder.url("third.db");
    copied(&to, &third, false).await.unwrap();
    refused(copied(&third, &begun, true).await, "another database");
}

#[tokio::test]
async fn the_source_must_exist() {
    let folder = Folder::new();
    let missing = copied(&folder.url("missing.db"), &folder.url("to.db"), false).await;
    assert!(matches!(missing, Err(MaintenanceError::Open(_))), "{missing:?}");
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 0, "nothing is made");
    let odd = copied("mysql://x", &folder.url("to.db"), false).await;
    assert!(matches!(odd, Err(MaintenanceError::Open(crate::OpenError::InvalidUrl(_)))), "{odd:?}");
}
