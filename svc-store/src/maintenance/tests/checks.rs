//! Each kind of damage that the check looks for is found.

use super::*;
use crate::maintenance::check::check_database;
use crate::{Finding, backup, check};

/// Kinds of damage: the statement that causes it, the table of the finding, and a part of its problem.
const DAMAGES: &[(&str, &str, &str)] = &[
    (
        "DELETE FROM events WHERE kind = 'contact.deleted'",
        "deliveries",
        "event_id refers to a row that does not exist in events",
    ),
    ("DELETE FROM deliveries WHERE attempts > 0", "delivery_attempts", "does not exist in deliveries"),
    ("DELETE FROM contacts WHERE email = 'Ada@example.com'", "invoices", "contact_id refers to"),
    ("DELETE FROM contacts WHERE email = 'Ada@example.com'", "jobs", "contact_id refers to"),
    ("DELETE FROM invoices WHERE currency = 'JPY'", "payments", "invoice_id refers to"),
    ("DELETE FROM subscriptions WHERE description = 'alles'", "deliveries", "subscription_id refers to"),
    ("DELETE FROM subscriptions WHERE description = 'alles'", "endpoint_schedule", "subscription_id refers to"),
    ("DELETE FROM subscriptions WHERE description = 'alles'", "subscription_kinds", "subscription_id refers to"),
    ("DELETE FROM subscriptions WHERE description = 'alles'", "events", "only_for refers to"),
    ("DELETE FROM api_keys WHERE name IS NOT NULL", "used_signatures", "key_id refers to"),
    ("DELETE FROM tenants WHERE name = 'Harbour Plumbing'", "contacts", "tenant_id refers to"),
    ("UPDATE tenants SET clock = clock + 100000000000000", "tenants", "the clock of the account is at"),
    ("UPDATE tenants SET sandbox_of = (SELECT id FROM contacts LIMIT 1)", "tenants", "sandbox_of refers to"),
    ("UPDATE tenants SET sandbox_id = (SELECT id FROM contacts LIMIT 1)", "tenants", "sandbox_id refers to"),
    ("UPDATE numbers SET last = 1 WHERE kind = 'INV'", "numbers", "the last number given is 1, but INV-0002 is in use"),
    ("DELETE FROM numbers WHERE kind = 'QUO'", "numbers", "the last number given is 0, but QUO-0001"),
    ("DELETE FROM endpoint_schedule", "subscriptions", "but no row in endpoint_schedule"),
    ("UPDATE deliveries SET next_attempt_at = NULL", "deliveries", "a pending delivery must have it"),
    ("UPDATE deliveries SET status = 'held' WHERE status = 'pending'", "deliveries", "no other delivery may have it"),
    ("UPDATE contacts SET deleted_at = NULL", "contacts", "does not agree with deleted_at"),
    ("DELETE FROM subscription_kinds WHERE kind = '*'", "subscription_kinds", "has no row for it"),
    ("UPDATE subscription_kinds SET paused = NOT paused", "subscription_kinds", "does not include this kind of event"),
    ("UPDATE subscription_kinds SET kind = 'job.created' WHERE kind = '*'", "subscription_kinds", "has no row for it"),
];

/// Damage that only SQLite permits, or that it reports in other words.
const OF_SQLITE: &[(&str, &str, &str)] = &[
    ("UPDATE subscriptions SET secret = zeroblob(60)", "subscriptions", "subscriptions.secret holds"),
    ("UPDATE subscriptions SET previous_secret = zeroblob(60)", "subscriptions", "subscriptions.previous_secret"),
    ("UPDATE api_keys SET signing_secret = zeroblob(60)", "api_keys", "api_keys.signing_secret holds"),
    ("UPDATE idempotency SET body = zeroblob(60)", "idempotency", "idempotency.body holds"),
    ("UPDATE contacts SET email = CAST(x'ff' AS TEXT)", "contacts", "not UTF-8"),
    ("UPDATE invoices SET due_date = '2026-02-30'", "invoices", "invoices.due_date holds"),
    ("UPDATE quotes SET currency = 'XYZ'", "quotes", "quotes.currency holds"),
    ("UPDATE jobs SET status = 'lost'", "jobs", "jobs.status holds"),
    ("UPDATE tenants SET time_zone = 'Mars/Olympus'", "tenants", "tenants.time_zone holds"),
    ("UPDATE tenants SET limits = 'all=0'", "tenants", "tenants.limits holds"),
    ("UPDATE events SET data = '{'", "events", "events.data holds"),
    ("UPDATE events SET kind = 'x'", "events", "events.kind holds"),
    ("UPDATE deliveries SET attempts = -1", "deliveries", "deliveries.attempts holds"),
    ("UPDATE delivery_attempts SET response_truncated = 2", "delivery_attempts", "response_truncated holds"),
    ("UPDATE replays SET statuses = 'lost'", "replays", "replays.statuses holds"),
];

const OF_POSTGRES: &[(&str, &str, &str)] = &[
    ("UPDATE subscriptions SET secret = '\\x00'", "subscriptions", "subscriptions.secret holds"),
    ("UPDATE quotes SET currency = 'XYZ'", "quotes", "quotes.currency holds"),
    ("UPDATE events SET kind = 'x'", "events", "events.kind holds"),
    ("UPDATE invoices SET due_date = '12000-01-01'", "invoices", "invoices.due_date holds"),
];

#[track_caller]
fn assert_found(findings: &[Finding], damage: &(&str, &str, &str)) {
    let (statement, table, problem) = damage;
    let is_it = |finding: &&Finding| finding.table == *table && finding.problem.contains(problem);
    let finding = findings.iter().find(is_it).unwrap_or_else(|| panic!("{statement}: {findings:#?}"));
    assert!(finding.id.as_ref().is_some_and(|id| !id.is_empty()), "{finding:?}");
}

#[tokio::test]
async fn each_damage_to_a_file_is_found() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    let sound = check(&url).await.unwrap();
    assert_eq!(sound.findings, []);
    assert!(sound.rows > 80, "{}", sound.rows);
    for (at, damage) in DAMAGES.iter().chain(OF_SQLITE).enumerate() {
        let name = format!("{at}.db");
        let copy = folder.path(&name);
        std::fs::copy(folder.path("svc.db.key"), folder.path(&format!("{name}.key"))).unwrap();
        let original = rusqlite::Connection::open(folder.path("svc.db")).unwrap();
        original.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        let connection = rusqlite::Connection::open(&copy).unwrap();
        let lax = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;";
        connection.execute_batch(&format!("{lax} {}", damage.0)).unwrap();
        drop(connection);
        assert_found(&check(&folder.url(&name)).await.unwrap().findings, damage);
    }
}

/// They are written without the lock of their account, or are of an app or a platform key.
#[tokio::test]
async fn rows_that_outlive_their_account_are_no_damage() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    let connection = rusqlite::Connection::open(folder.path("svc.db")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let mut changed = 0;
    for table in ["idempotency", "request_log", "attempt_counts", "stream_positions", "streams"] {
        let gone = format!("UPDATE OR IGNORE {table} SET tenant_id = x'0195a3c8000070008000000000000099'");
        changed += connection.execute(&gone, []).unwrap();
    }
    assert!(changed > 0);
    drop(connection);
    assert_eq!(check(&url).await.unwrap().findings, []);
}

#[tokio::test]
async fn each_damage_to_a_server_database_is_found() {
    let Some(server) = server() else { return };
    let folder = Folder::new();
    let (from, url) = (folder.filled("svc.db").await, server.database());
    let env = Env::system();
    let source = open::existing(&from, &env, Opening::Migrate).await.unwrap();
    crate::maintenance::copy::copy_between(source, on_server(&url, &from).await, false, &env, &mut |_| {})
        .await
        .unwrap();
    let mut database = on_server(&url, &from).await;
    assert_eq!(check_database(&mut database, env.now()).await.unwrap().findings, []);
    let mut lax = String::from("SET session_replication_role = replica;");
    for table in ["deliveries", "contacts", "subscriptions"] {
        lax.push_str(&format!(
            "DO $$ DECLARE c text; BEGIN FOR c IN SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = \
             '{table}'::regclass LOOP EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I', c); END LOOP; END $$;"
        ));
    }
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&lax).await.unwrap();
    for (at, damage) in DAMAGES.iter().chain(OF_POSTGRES).enumerate() {
        // Copying a database needs that nobody is connected to it, so each damage is reverted instead.
        client.batch_execute(&format!("CREATE SCHEMA kept_{at}")).await.unwrap();
        for table in crate::maintenance::tables::TABLES {
            let keep = format!("CREATE TABLE kept_{at}.{0} AS TABLE {0}", table.name);
            client.batch_execute(&keep).await.unwrap();
        }
        client.batch_execute(damage.0).await.unwrap();
        assert_found(&check_database(&mut database, env.now()).await.unwrap().findings, damage);
        for table in crate::maintenance::tables::TABLES {
            let restore = format!("DELETE FROM {0}; INSERT INTO {0} SELECT * FROM kept_{at}.{0}", table.name);
            client.batch_execute(&restore).await.unwrap();
        }
    }
    assert_eq!(check_database(&mut database, env.now()).await.unwrap().findings, []);
}

#[tokio::test]
async fn a_corrupt_file_is_found() {
    let folder = Folder::new();
    let url = folder.filled("svc.db").await;
    let connection = rusqlite::Connection::open(folder.path("svc.db")).unwrap();
    let page: i64 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'quotes_changed'", [], |row| row.get(0))
        .unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE").unwrap();
    drop(connection);
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::options().write(true).open(folder.path("svc.db")).unwrap();
    file.write_all_at(&[0xff; 64], u64::try_from(page - 1).unwrap() * 4096).unwrap();
    let findings = check(&url).await.unwrap().findings;
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding.table == "sqlite_schema"), "{findings:?}");
}

/// A file that is not a complete database of svc is refused, and stays as it is.
#[tokio::test]
async fn what_is_not_a_complete_database_is_refused_and_kept() {
    let folder = Folder::new();
    let sound = folder.filled("svc.db").await;
    std::fs::write(folder.path("empty.db"), "").unwrap();
    std::fs::write(folder.path("text.db"), "no database, but long enough for its header\n".repeat(100)).unwrap();
    for (name, statements) in [
        ("foreign.db", "CREATE TABLE posts (id INTEGER)"),
        ("rails.db", "CREATE TABLE schema_migrations (version TEXT); INSERT INTO schema_migrations VALUES ('1')"),
        ("tables.db", "CREATE TABLE schema_migrations (name TEXT, applied_at INTEGER, checksum BLOB)"),
    ] {
        rusqlite::Connection::open(folder.path(name)).unwrap().execute_batch(statements).unwrap();
    }
    let half = std::panic::AssertUnwindSafe(async {
        crate::copy(&sound, &folder.url("half.db"), false, &mut |progress| {
            assert_ne!(progress.table, "subscriptions", "the copy is interrupted");
        })
        .await
    });
    assert!(futures_util::FutureExt::catch_unwind(half).await.is_err());
    for (name, reason) in [
        ("empty.db", "no schema of svc"),
        ("text.db", "file is not a database"),
        ("foreign.db", "no schema of svc"),
        ("rails.db", "no schema of svc"),
        ("tables.db", "no schema of svc"),
        ("half.db", "the copy into it was interrupted"),
    ] {
        let key = folder.path(&format!("{name}.key"));
        if !key.exists() {
            std::fs::copy(folder.path("svc.db.key"), key).unwrap();
        }
        let before = std::fs::read(folder.path(name)).unwrap();
        match check(&folder.url(name)).await {
            Err(MaintenanceError::Open(error)) => assert!(error.to_string().contains(reason), "{name}: {error}"),
            other => panic!("{name}: {other:?}"),
        }
        assert!(std::fs::read(folder.path(name)).unwrap() == before, "{name}");
        assert!(!folder.path(&format!("{name}-wal")).exists(), "{name}");
        let backed_up = backup(&folder.url(name), &folder.path("backup.db")).await;
        assert_eq!(backed_up.is_err(), name != "half.db", "{name}: {backed_up:?}");
        let opened = crate::open(&folder.url(name), Env::system()).await.map(drop);
        // svc makes its tables beside those of another program.
        assert_eq!(opened.is_ok(), name == "foreign.db", "{name}: {opened:?}");
    }
    match check(&folder.url("none.db")).await {
        Err(MaintenanceError::Open(crate::OpenError::NotFound(_))) => {}
        other => panic!("{other:?}"),
    }
    assert!(!folder.path("none.db").exists());
}
