//! Tests that only concern SQLite, and the conformance suite.

mod groups;
mod migrations;
mod plans;
mod reads;

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use rusqlite::StatementStatus;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys as keys_of;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{ManualClock, SeededEntropy};
use svc_core::input::Input;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::store::{DeliveryFilter, DeliveryRepository as _, StoreResult, Tx};
use svc_core::values::{EventKind, Id, TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use svc_core::webhooks::{engine, events, retention};

use super::*;

use crate::dialect::Dialect;
use crate::new_file::with_suffix;
use crate::sql::{EachRow, Param, Sql, SqlTx};
use crate::statements::every_statement;

struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("svc.db");
        Self { _folder: folder, path }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.path, env()).unwrap())
    }

    fn connection(&self) -> SqliteConnection {
        let mut connection = SqliteConnection::open(&self.path).unwrap();
        connection.migrate(Timestamp::from_micros(0)).unwrap();
        connection
    }
}

/// SQLite would take the pages of the log for those of the backup.
#[test]
fn a_backup_beside_the_log_of_another_database_is_refused() {
    let scratch = Scratch::new();
    let backup = scratch.path.with_file_name("backup.db");
    let connection = scratch.connection();
    SqliteConnection::open_read_only(&scratch.path).unwrap().copy_into(&backup).unwrap();
    let (log, shared) = (with_suffix(&scratch.path, "-wal"), with_suffix(&scratch.path, "-shm"));
    let kept = std::fs::read(&log).unwrap();
    assert!(!kept.is_empty());
    drop(connection);
    // As a restore that left the log of a server that was killed.
    std::fs::rename(&backup, &scratch.path).unwrap();
    std::fs::write(&log, &kept).unwrap();
    for refused in
        [SqliteConnection::open(&scratch.path).map(drop), SqliteConnection::open_read_only(&scratch.path).map(drop)]
    {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("-wal is not of this file, which is a backup"), "{refused}");
    }
    assert_eq!(std::fs::read(&log).unwrap(), kept, "nothing was changed");
    std::fs::remove_file(log).unwrap();
    let _ = std::fs::remove_file(shared);
    let connection = scratch.connection();
    // Its own log is taken, also by a second connection and after a kill.
    assert!(SqliteConnection::open(&scratch.path).is_ok());
    let killed = scratch.path.with_file_name("killed.db");
    std::fs::copy(&scratch.path, &killed).unwrap();
    std::fs::copy(with_suffix(&scratch.path, "-wal"), with_suffix(&killed, "-wal")).unwrap();
    assert!(SqliteConnection::open(&killed).is_ok());
    drop(connection);
}

/// A backup on a medium that cannot be written to.
#[test]
fn a_file_that_nobody_changes_is_read_without_files_beside_it() {
    let scratch = Scratch::new();
    let folder = scratch.path.with_file_name("a folder?#%");
    std::fs::create_dir(&folder).unwrap();
    let backup = folder.join("svc.db");
    drop(scratch.connection());
    std::fs::copy(&scratch.path, &backup).unwrap();
    let mut connection = SqliteConnection::open_immutable(&backup).unwrap();
    connection.check_schema(crate::migrations::ExpectedSchema::Current).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn an_error_of_rights_names_the_folder_and_who_this_process_is() {
    let scratch = Scratch::new();
    // Nothing is refused to the administrator, whom the tests may run as.
    let refused = || StoreError::Unavailable("unable to open database file".to_owned());
    let error = super::access::explained(&scratch.path, refused()).to_string();
    let folder = format!(". The folder {} belongs to the uid ", scratch.path.parent().unwrap().display());
    assert!(error.contains("unable to open database file") && error.contains(&folder), "{error}");
    assert!(error.contains("; this process has the uid "), "{error}");
    std::fs::create_dir(&scratch.path).unwrap();
    let error = SqliteConnection::open(&scratch.path).map(drop).unwrap_err().to_string();
    assert!(error.ends_with("svc.db is a folder; name a file in it"), "{error}");
}

fn context(env: Env) -> StoreContext {
    let vault = Vault::new(SecretKey::new([0; 32]), env.clone());
    StoreContext::new(env, CursorKey::new([0; 32]), vault)
}

fn env() -> Env {
    let start = Timestamp::parse("2026-03-14T15:09:26.535897Z").unwrap();
    Env::new(ManualClock::at(start), SeededEntropy::new(1))
}

#[test]
fn a_new_file_and_those_of_its_log_are_private_to_their_owner() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let names = std::fs::read_dir(scratch.path.parent().unwrap()).unwrap();
    let mut modes: Vec<(String, u32)> = names
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().permissions().mode() & 0o777))
        .collect();
    modes.sort();
    let expected = ["svc.db", "svc.db-shm", "svc.db-wal", "svc.db.key"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(modes, expected);
    drop(store);
    // The owner may let others read an existing file.
    std::fs::set_permissions(&scratch.path, std::fs::Permissions::from_mode(0o640)).unwrap();
    drop(scratch.store());
    assert_eq!(std::fs::metadata(&scratch.path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn the_store_passes_the_conformance_suite_when_every_write_fails_first() {
    svc_store_tests::run_all(|env| async {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("svc.db"), env).unwrap();
        svc_store_tests::fails_first(Arc::new(store), |runs| Box::pin(async { tokio::spawn(runs).await.unwrap() }))
    })
    .await;
}

#[tokio::test]
async fn the_store_passes_the_conformance_suite() {
    svc_store_tests::run_all(|env| async {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("svc.db"), env).unwrap();
        // The file stays usable while it is open, although its name is gone.
        Arc::new(store) as Arc<dyn Store>
    })
    .await;
}

#[test]
fn every_connection_is_durable_and_checked() {
    let scratch = Scratch::new();
    let writer = scratch.connection();
    let reader = SqliteConnection::open_read_only(&scratch.path).unwrap();
    for connection in [&writer, &reader] {
        let pragma = |name: &str| -> String {
            let value = connection
                .raw()
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get_ref(0).map(|v| format!("{v:?}")));
            value.unwrap()
        };
        assert_eq!(pragma("synchronous"), "Integer(2)", "FULL");
        assert_eq!(pragma("foreign_keys"), "Integer(1)");
        assert!(pragma("journal_mode").contains("119, 97, 108"), "wal: {}", pragma("journal_mode"));
    }
    let version = rusqlite::version_number();
    assert!(version >= 3_051_003, "SQLite {version} has the WAL-reset bug");
    assert!(reader.batch("DELETE FROM settings").is_err(), "readers cannot write");
}

#[tokio::test]
async fn what_was_queued_before_closing_is_completed() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let create = |_| store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
    let (created, ()) = tokio::join!(join_all((0..50).map(create)), store.close());
    assert!(created.iter().all(Result::is_ok), "{created:?}");
    assert_eq!(create(0).await, Err(StoreError::Closed.into()));
    let again = scratch.store();
    let stored = again.read("test", (), async |tx, ()| Ok(tx.tenants(None, 100, false).await?.len())).await;
    assert_eq!(stored, Ok(50));
}

#[tokio::test]
async fn a_read_in_place_runs_on_the_thread_that_asks_for_it() {
    let scratch = Scratch::new();
    let store = scratch.store();
    // A store that is shared forwards it.
    let shared: Arc<dyn Store> = Arc::new(Arc::clone(&store));
    for store in [store, shared] {
        let thread = store.read_in_place("test", (), async |_, ()| Ok(std::thread::current().id()));
        assert_eq!(thread.await, Ok(std::thread::current().id()));
    }
}

#[tokio::test]
async fn a_second_read_in_place_runs_on_a_reader_thread() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (begin, begun) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let (first, ended) = (Arc::clone(&store), Mutex::new(ended));
    let first = std::thread::spawn(move || {
        let read = first.read_in_place("first", (begin, ended), async |_, (begin, ended)| {
            begin.send(()).unwrap();
            ended.lock().unwrap().recv().unwrap();
            Ok(())
        });
        read.now_or_never()
    });
    begun.recv().unwrap();
    let second = store.read_in_place("second", (), async |_, ()| Ok(std::thread::current().name().unwrap().to_owned()));
    assert!(second.await.unwrap().starts_with("sqlite-read-"));
    end.send(()).unwrap();
    assert_eq!(first.join().unwrap(), Some(Ok(())));
}

/// SQLite numbers `$n` by first appearance, so that must be 1, 2, 3, ….
#[test]
fn every_statement_prepares_and_counts_its_parameters_upwards() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for sql in every_statement(Dialect::Sqlite) {
        let statement = connection.raw().prepare(&sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
        for n in 1..=statement.parameter_count() {
            assert_eq!(statement.parameter_name(n), Some(format!("${n}").as_str()), "{sql}");
        }
    }
}

/// Counts the statements that run on a connection.
struct Counting<'a> {
    sql: &'a mut dyn Sql,
    statements: &'a AtomicUsize,
}

#[async_trait]
impl Sql for Counting<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        self.statements.fetch_add(1, Ordering::SeqCst);
        self.sql.execute(sql, params).await
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        self.statements.fetch_add(1, Ordering::SeqCst);
        self.sql.query(sql, params, each).await
    }
}

/// The statements are the same on both databases.
#[test]
fn the_statements_of_a_write_do_not_grow_with_its_deliveries() {
    const SUBSCRIPTIONS: u32 = 1000;
    let scratch = Scratch::new();
    let mut connection = scratch.connection();
    let mut env = env();
    env.max_webhooks = SUBSCRIPTIONS;
    let context = context(env);
    let statements = AtomicUsize::new(0);
    let sql = &mut Counting { sql: &mut connection.executor(&context.vault), statements: &statements };
    let mut tx = SqlTx::new(sql, Dialect::Sqlite, &context, &context.delivery_wakeup);
    let write = async {
        let tenant = tenants::create(&mut tx, TenantCreate::named("Test")).await?.id;
        for _ in 0..SUBSCRIPTIONS {
            let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
            crud::create::<WebhookSubscription>(&mut tx, tenant, Input::from_body(body)?).await?;
        }
        let now = advance_clock(&mut tx, tenant).await?;
        statements.store(0, Ordering::SeqCst);
        let stay = serde_json::json!({ "id": 1 });
        events::emit(&mut tx, tenant, now, &[EventKind::StayCreated], &stay).await?;
        let counted = statements.load(Ordering::SeqCst);
        let written = tx.list_deliveries(tenant, &DeliveryFilter::default()).await?.len();
        Ok::<_, Error>((counted, written))
    };
    let (counted, written) = write.now_or_never().unwrap().unwrap();
    assert_eq!(written, SUBSCRIPTIONS as usize);
    assert!(counted <= 50, "{counted} statements");
}

/// What a write costs is the pages that it writes. An event for many subscriptions does not enter the history of each.
#[test]
fn an_event_for_many_subscriptions_writes_few_pages() {
    const SUBSCRIPTIONS: u32 = 200;
    let scratch = Scratch::new();
    let mut connection = scratch.connection();
    connection.disable_autocheckpoint().unwrap();
    let mut env = env();
    env.max_webhooks = SUBSCRIPTIONS;
    let context = context(env.clone());
    let tenant = Arc::new(OnceLock::new());
    let created = Arc::clone(&tenant);
    let create: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
        let created = Arc::clone(&created);
        Box::pin(async move {
            let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
            for _ in 0..SUBSCRIPTIONS {
                let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
                crud::create::<WebhookSubscription>(tx, tenant, Input::from_body(body)?).await?;
            }
            created.set(tenant).unwrap();
            Ok(())
        })
    });
    connection.run("create", &create, &context, None).unwrap();
    let history = "
        INSERT INTO events (tenant_id, id, kind, data, created_at) SELECT id, randomblob(16), 'job.created', '{}', 1
            FROM tenants;
        INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, failures, created_at)
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            SELECT s.tenant_id, randomblob(16), e.id, e.kind, s.id, 'succeeded', 1, 0, 1 FROM n, events e, subscriptions s;";
    connection.raw().execute_batch(history).unwrap();
    let before = connection.wal_pages().unwrap();
    let tenant = *tenant.get().unwrap();
    let write: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
        Box::pin(async move {
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::StayCreated], &serde_json::json!({ "id": 1 })).await
        })
    });
    connection.batch("BEGIN").unwrap();
    connection.run("write", &write, &context, None).unwrap();
    connection.batch("COMMIT").unwrap();
    let pages = connection.wal_pages().unwrap() - before;
    assert!(pages < 60, "{pages} pages");
}

/// Ids of deliveries sort like their times, and the table of attempts begins with them.
#[test]
fn the_attempts_of_many_tenants_are_appended_to_a_few_pages() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    connection.disable_autocheckpoint().unwrap();
    let insert = |prefix: &str, each: u32| {
        let sql = format!(
            "INSERT INTO delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, status,
                response_truncated) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50 * {each})
                SELECT CAST(printf('%016d', i % 50) AS BLOB), CAST(x'{prefix}' || randomblob(15) AS BLOB), 1, 1, 1, 204, 0
                FROM n"
        );
        connection.raw().execute_batch(&sql).unwrap();
    };
    connection.batch("PRAGMA foreign_keys = OFF").unwrap();
    insert("01", 100);
    let before = connection.wal_pages().unwrap();
    insert("02", 1);
    let pages = connection.wal_pages().unwrap() - before;
    assert!(pages < 10, "{pages} pages");
}

/// SQLite counts the instructions that its statements run: more or less a dozen for each row that they look at.
#[tokio::test]
async fn the_work_of_retention_grows_like_the_deliveries_of_an_event() {
    async fn work(deliveries: u32, status: &str) -> (u64, u64) {
        let scratch = Scratch::new();
        let connection = scratch.connection();
        let env = env();
        let tenant = TenantId(env.id(env.now()));
        let (subscription, event) = (env.id(env.now()), env.id(env.now()));
        let [tenant_id, subscription, event] = [tenant.0, subscription, event].map(|id| format!("x'{}'", id.simple()));
        let due_at = if status == "pending" { "1" } else { "NULL" };
        let rows = format!(
            "INSERT INTO tenants (id, name, developer_access, time_zone, currency, unique_contact_email, created_at, clock)
                VALUES ({tenant_id}, 'Ada', 'approved', 'UTC', 'AUD', 1, 1, 1);
            INSERT INTO subscriptions (tenant_id, live, id, url, events, enabled, created_at, consecutive_failures, secret,
                updated_at) VALUES ({tenant_id}, 1, {subscription}, 'https://example.com/', '*', 1, 1, 0, x'00', 1);
            INSERT INTO events (tenant_id, id, kind, data, created_at)
                VALUES ({tenant_id}, {event}, 'stay.created', '{{}}', 1);
            INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, failures, last_status,
                next_attempt_at, created_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {deliveries})
                SELECT {tenant_id}, CAST(substr({event}, 1, 9) || randomblob(7) AS BLOB), {event}, 'stay.created', {subscription},
                '{status}', 1, 0, 204, {due_at}, 1 FROM n;
            INSERT INTO delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, status,
                response_truncated) SELECT tenant_id, id, 1, 1, 1, 204, 0 FROM deliveries;"
        );
        connection.raw().execute_batch(&rows).unwrap();
        let context = context(env.clone());
        let mut connection = connection;
        let before = env.now().next();
        let next = Arc::new(std::sync::Mutex::new(Some(svc_core::env::first_id_at(Timestamp::from_micros(0)))));
        let (mut total, mut dearest) = (0, 0);
        loop {
            let Some(from) = *next.lock().unwrap() else { return (total, dearest) };
            let found = Arc::clone(&next);
            let step: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
                let found = Arc::clone(&found);
                Box::pin(async move {
                    let step = retention::step(tx, tenant, from, before).await?;
                    *found.lock().unwrap() = step.next;
                    Ok(())
                })
            });
            connection.run("step", &step, &context, None).unwrap();
            let instructions = crate::webhooks::retention::STATEMENTS.iter().map(|sql| {
                let statement = connection.raw().prepare_cached(sql).unwrap();
                u64::from(statement.reset_status(StatementStatus::VmStep).unsigned_abs())
            });
            let cost: u64 = instructions.sum();
            total += cost;
            dearest = dearest.max(cost);
        }
    }
    for status in ["succeeded", "pending"] {
        let ((few, _), (many, dearest)) = (work(1_000, status).await, work(16_000, status).await);
        assert!(many < 20 * few, "{status}: {few} instructions for 1,000 deliveries, {many} for 16,000");
        // Only the check that an event has no deliveries left reads all that are kept, once.
        assert!(status == "pending" || dearest < few, "{status}: {dearest} instructions in one step");
    }
}

async fn new_tenant(store: &dyn Store) -> TenantId {
    let create = store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
    create.await.unwrap().id
}

#[tokio::test]
async fn a_unit_of_work_that_panics_or_waits_fails_alone() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let panics = store.write("panics", (), async |_, ()| -> Result<(), Error> { panic!("a fault") });
    assert!(matches!(panics.await, Err(Error::Store(StoreError::Internal(error))) if error == "panics panicked"));
    let waits = store.read("waits", (), async |_, ()| std::future::pending::<Result<(), Error>>().await);
    assert!(matches!(waits.await, Err(Error::Store(StoreError::Internal(_)))));
    new_tenant(&*store).await;
}

#[tokio::test]
async fn a_unit_of_work_completes_when_its_caller_is_dropped() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let abandoned = store.write("abandoned", counted, async |_, counted| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    // Poll the future once, so that the unit of work is queued, and then drop it.
    let mut abandoned = Box::pin(abandoned);
    let _ = (&mut abandoned).now_or_never();
    drop(abandoned);
    new_tenant(&*store).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_locked_database_can_be_read_but_not_written() {
    let scratch = Scratch::new();
    let store =
        SqliteStore::open_with(&scratch.path, env(), None, std::time::Duration::ZERO, ReadTimes::default()).unwrap();
    let store: &dyn Store = &store;
    let tenant = new_tenant(store).await;
    let other = scratch.connection();
    other.batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.write("test", tenant, async |tx, &tenant| Ok(tx.advance_clock(tenant).await?)).await;
    assert!(matches!(refused, Err(Error::Store(StoreError::Unavailable(_)))), "{refused:?}");
    assert!(store.read("test", tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?)).await.unwrap().is_some());
    other.batch("COMMIT").unwrap();
    new_tenant(store).await;
}

/// A connection that finds no lock on the file takes itself for the last one, and deletes the log. A process loses its locks
/// on a file when it closes the file anywhere.
#[cfg(target_os = "linux")]
#[test]
fn a_second_store_of_a_process_leaves_the_locks_of_the_first_alone() {
    use std::os::unix::fs::MetadataExt as _;

    let scratch = Scratch::new();
    let store = scratch.store();
    // It has all connections that a store opens.
    let read = store.read_in_place("test", (), async |tx, ()| Ok(tx.tenants(None, 1, false).await?));
    assert_eq!(read.now_or_never(), Some(Ok(Vec::new())));
    drop(scratch.store());
    let inode = format!(":{} ", std::fs::metadata(&scratch.path).unwrap().ino());
    let is_locked = || std::fs::read_to_string("/proc/locks").unwrap().lines().any(|lock| lock.contains(&inode));
    assert!(is_locked());
    drop(store);
    assert!(!is_locked());
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let scratch = Scratch::new();
    std::fs::write(&scratch.path, vec![7; 4096]).unwrap();
    assert!(matches!(SqliteStore::open(&scratch.path, env()), Err(StoreError::Unavailable(_))));
    assert!(matches!(SqliteStore::open(&scratch.path.join("no/such"), env()), Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn a_database_that_was_not_restored_completely_is_not_made_anew() {
    type Make = dyn Fn(&std::path::Path);
    let scratch = Scratch::new();
    drop(scratch.store());
    let key = std::fs::read(scratch.path.with_extension("db.key")).unwrap();
    let empty = |path: &std::path::Path| {
        // It has a header and no tables.
        drop(SqliteConnection::open(path).unwrap());
        assert!(std::fs::metadata(path).unwrap().len() > 0);
    };
    let states: [(&str, &Make); 3] = [
        ("does not exist", &|_| {}),
        ("is empty", &|path| std::fs::write(path, "").unwrap()),
        ("has no tables", &empty),
    ];
    for (reason, make) in states {
        let restored = Scratch::new();
        make(&restored.path);
        std::fs::write(restored.path.with_extension("db.key"), &key).unwrap();
        let before = std::fs::read(&restored.path).ok();
        for opened in [SqliteStore::open(&restored.path, env()).map(drop), super::migrate(&restored.path).map(drop)] {
            assert!(matches!(&opened, Err(StoreError::Incomplete(error)) if error.contains(reason)), "{opened:?}");
        }
        assert_eq!(std::fs::read(&restored.path).ok(), before);
        // Without the key file it is the first start.
        std::fs::remove_file(restored.path.with_extension("db.key")).unwrap();
        drop(restored.store());
    }
}

/// A process that is killed during the first start can be started again.
#[tokio::test]
async fn the_first_start_can_be_killed_anywhere() {
    let states: [&dyn Fn(&Scratch); 4] = [
        &|scratch| std::fs::write(&scratch.path, "").unwrap(),
        &|scratch| drop(SqliteConnection::open(&scratch.path).unwrap()),
        &|scratch| drop(scratch.connection()),
        &|scratch| {
            drop(scratch.connection());
            vault::key_for(&scratch.path, &env(), true).unwrap();
        },
    ];
    for state in states {
        let scratch = Scratch::new();
        state(&scratch);
        new_tenant(&*scratch.store()).await;
    }
}

#[tokio::test]
async fn an_invalid_value_is_reported_with_its_column() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    scratch.connection().raw().execute("UPDATE tenants SET time_zone = 'Nowhere'", []).unwrap();
    let read = store.read("test", tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?)).await;
    assert!(matches!(read, Err(Error::Store(StoreError::Corrupt { table: "tenants", .. }))), "{read:?}");
    new_tenant(&*store).await;
}

#[tokio::test]
async fn secrets_are_encrypted_and_another_key_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    let made = store.write("test", tenant, async |tx, &tenant| {
        let input = keys_of::KeyCreate { name: None, write: true, expires_in: None, signed: true };
        let key = keys_of::create(tx, tenant, input).await?;
        let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
        let hook: WebhookSubscription = crud::create(tx, tenant, Input::from_body(body)?).await?;
        let answer = StoredResponse {
            fingerprint: [0; 32],
            status: 201,
            location: None,
            etag: None,
            body: hook.secret.reveal().into(),
            created_at: tx.env().now(),
        };
        tx.store_response(tenant, "k", &answer).await?;
        Ok((key, hook))
    });
    let (key, hook) = made.await.unwrap();
    let secrets = [key.key.signing_secret.clone().unwrap(), hook.secret.clone(), key.text];
    drop(store);
    let mut bytes = std::fs::read(&scratch.path).unwrap();
    bytes.extend(std::fs::read(scratch.path.with_extension("db-wal")).unwrap_or_default());
    for secret in &secrets {
        let text = secret.reveal().as_bytes();
        assert!(!bytes.windows(text.len()).any(|window| window == text));
    }
    let back = scratch.store();
    let read = back.read("test", (key.key.id, tenant, hook.id), async |tx, &(key, tenant, id)| {
        Ok((tx.api_key(key).await?, crud::get::<WebhookSubscription>(tx, tenant, id).await?))
    });
    let (same_key, same_hook) = read.await.unwrap();
    assert_eq!((same_key.unwrap().signing_secret.as_ref(), &same_hook.secret), (Some(&secrets[0]), &secrets[1]));
    drop(back);
    std::fs::write(scratch.path.with_extension("db.key"), "0".repeat(64)).unwrap();
    let refused = SqliteStore::open(&scratch.path, env()).map(drop);
    assert!(matches!(refused, Err(StoreError::SecretKey(error)) if error.contains("SVC_SECRET_KEY")));
}

#[tokio::test]
async fn an_invalid_delivery_stops_only_its_own_endpoint() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    let fill = store.write("test", tenant, async |tx, &tenant| {
        let mut hooks = Vec::new();
        for _ in 0..2 {
            let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
            hooks.push(crud::create::<WebhookSubscription>(tx, tenant, Input::from_body(body)?).await?.id);
        }
        crud::create::<Contact>(tx, tenant, Input::from_body(br#"{"email": "ada@example.com"}"#)?).await?;
        Ok(hooks)
    });
    let hooks = fill.await.unwrap();
    let damage = "UPDATE deliveries SET kind = 'nosuch' WHERE subscription_id = ?1";
    scratch.connection().raw().execute(damage, [hooks[0].uuid().as_bytes()]).unwrap();
    let run = store.write("test", (), async |tx, ()| {
        let (due_work, policy) = (engine::poll(tx).await?, engine::Policy::default());
        let mut attempts = Vec::new();
        for batch in engine::InFlight::default().plan(&policy, &due_work, Default::default()) {
            attempts.extend(engine::run_batch(tx, &policy, &batch).await?.attempts);
        }
        Ok((attempts, engine::poll(tx).await?.endpoints))
    });
    let (attempts, next) = run.await.unwrap();
    let to: Vec<_> = attempts.iter().map(|attempt| attempt.delivery.subscription_id).collect();
    assert_eq!(to, hooks[1..]);
    assert_eq!(next, [], "the endpoint with the invalid delivery is not due at once");
}

fn queued(name: &'static str) -> QueuedWork {
    QueuedWork {
        name,
        work: Box::new(|_| Box::pin(async { Ok(()) })),
        result_sender: tokio::sync::oneshot::channel().0,
        caller: Weak::new(),
    }
}

#[test]
fn each_unit_of_work_wakes_a_thread_of_its_own_while_one_waits() {
    let queue = Arc::new(Queue::new());
    let (sender, receiver) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let (queue, sender) = (Arc::clone(&queue), sender.clone());
        // It takes one unit and waits for no other.
        std::thread::spawn(move || sender.send(queue.wait(1).unwrap()[0].name));
    }
    while queue.lock().idle < 2 {
        std::thread::yield_now();
    }
    queue.push(queued("first")).unwrap();
    queue.push(queued("second")).unwrap();
    // Nobody waits.
    queue.push(queued("third")).unwrap();
    let taken = [(); 2].map(|()| receiver.recv_timeout(Duration::from_secs(10)).unwrap());
    assert!(taken.contains(&"first") && taken.contains(&"second"), "{taken:?}");
    assert_eq!(queue.lock().idle, 0);
    assert_eq!(queue.wait(9).unwrap().len(), 1);
}
