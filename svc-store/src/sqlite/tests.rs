//! What is particular to SQLite. What every store must do is the conformance suite.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys as keys_of;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{ManualClock, SeededEntropy};
use svc_core::input::Input;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::store::{Tx, conformance};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::engine;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::*;
use crate::dialect::Dialect;
use crate::migrations::{Migration, SQLITE};
use crate::statements::{every_list, every_statement};
use crate::webhooks::{attempts, deliveries};

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

    fn connection(&self) -> Connection {
        let mut connection = Connection::open(&self.path).unwrap();
        connection.migrate(Timestamp::from_micros(0)).unwrap();
        connection
    }
}

fn env() -> Env {
    let start = Timestamp::parse("2026-03-14T15:09:26.535897Z").unwrap();
    Env::new(ManualClock::at(start), SeededEntropy::new(1))
}

#[tokio::test]
async fn the_store_passes_the_conformance_suite_when_every_write_fails_first() {
    conformance::run_all(|env| async {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("svc.db"), env).unwrap();
        conformance::fails_first(Arc::new(store), |runs| Box::pin(async { tokio::spawn(runs).await.unwrap() }))
    })
    .await;
}

#[tokio::test]
async fn the_store_passes_the_conformance_suite() {
    conformance::run_all(|env| async {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("svc.db"), env).unwrap();
        // The open file outlives its name.
        Arc::new(store) as Arc<dyn Store>
    })
    .await;
}

#[test]
fn every_connection_is_durable_and_checked() {
    let scratch = Scratch::new();
    let writer = scratch.connection();
    let reader = Connection::open_read_only(&scratch.path).unwrap();
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

#[test]
fn migrations_run_once_also_when_many_start_together() {
    let scratch = Scratch::new();
    let applied: Vec<usize> = std::thread::scope(|scope| {
        let open = || super::migrate(&scratch.path).unwrap().len();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(applied.iter().sum::<usize>(), SQLITE.len(), "{applied:?}");
}

/// A table that is made anew keeps its rows, and what refers to them.
#[test]
fn rows_of_an_older_schema_are_all_there_afterwards() {
    const TABLES: [&str; 5] = ["tenants", "subscriptions", "events", "deliveries", "delivery_attempts"];
    let scratch = Scratch::new();
    let mut connection = with_old_schema(&scratch, 4);
    let rows = "
        INSERT INTO tenants VALUES (zeroblob(16), 'Ada', 'approved', 'UTC', 'AUD', 1, 1, 1);
        INSERT INTO subscriptions VALUES (zeroblob(16), 1, randomblob(16), 'https://example.com/', '*', 1, NULL, 1, NULL,
            NULL, NULL, NULL, 0, x'00', NULL, NULL, 1, NULL);
        INSERT INTO events WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
            SELECT zeroblob(16), randomblob(16), 'contact.created', '{}', i, NULL FROM n;
        INSERT INTO deliveries SELECT tenant_id, randomblob(16), id, kind, (SELECT id FROM subscriptions), 'pending', 1, 1,
            500, created_at, NULL, created_at FROM events;
        INSERT INTO delivery_attempts SELECT tenant_id, id, 1, 1, 1, 500, 'odd', NULL, 0, NULL FROM deliveries;";
    connection.raw().execute_batch(rows).unwrap();
    let content = |connection: &Connection| {
        TABLES.map(|table| {
            // What came with a later schema is not compared.
            let columns = match table {
                "tenants" => "id, name, clock",
                "events" => "tenant_id, id, kind, data, created_at, only_for",
                _ => "*",
            };
            let sql = format!("SELECT {columns} FROM {table} ORDER BY 1, 2, 3");
            let mut select = connection.raw().prepare(&sql).unwrap();
            let width = select.column_count();
            let row = |row: &rusqlite::Row<'_>| (0..width).map(|cell| row.get(cell)).collect();
            let rows: Result<Vec<Vec<rusqlite::types::Value>>, _> = select.query_map([], row).unwrap().collect();
            rows.unwrap()
        })
    };
    let before = content(&connection);
    assert_eq!(before.each_ref().map(Vec::len), [1, 1, 50, 50, 50]);
    let applied = connection.migrate(Timestamp::from_micros(0)).unwrap();
    assert_eq!(applied.len(), SQLITE.len() - 4);
    assert!(content(&connection) == before);
    let refused = connection.raw().execute("DELETE FROM deliveries", []).unwrap_err();
    assert!(refused.to_string().contains("FOREIGN KEY"), "attempts still refer to them: {refused}");
}

/// Opens a file with the schema that the first `count` migrations made, from before checksums were stored.
fn with_old_schema(scratch: &Scratch, count: usize) -> Connection {
    let connection = Connection::open(&scratch.path).unwrap();
    let table = "CREATE TABLE schema_migrations (name TEXT NOT NULL PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT";
    connection.raw().execute_batch(table).unwrap();
    for Migration { name, sql } in &SQLITE[..count] {
        connection.raw().execute_batch(sql).unwrap();
        connection.raw().execute("INSERT INTO schema_migrations VALUES (?1, 0)", [name]).unwrap();
    }
    connection
}

#[test]
fn migrations_are_rolled_back_when_rows_refer_to_missing_rows() {
    let scratch = Scratch::new();
    let mut connection = with_old_schema(&scratch, 5);
    let orphan = "PRAGMA foreign_keys = OFF;
        INSERT INTO turns VALUES (zeroblob(16), zeroblob(16), 1);
        INSERT INTO payments VALUES (zeroblob(16), zeroblob(16), zeroblob(16), 1, 'AUD', 1);";
    connection.raw().execute_batch(orphan).unwrap();
    let refused = connection.migrate(Timestamp::from_micros(0)).unwrap_err();
    assert!(refused.to_string().contains("rows of payments refer to missing rows"), "{refused}");
    let applied: u32 =
        connection.raw().query_row("SELECT count(*) FROM schema_migrations", [], |row| row.get(0)).unwrap();
    assert_eq!(applied, 5);
}

#[test]
fn checksums_of_applied_migrations_are_stored_once() {
    let scratch = Scratch::new();
    let mut connection = with_old_schema(&scratch, SQLITE.len());
    assert_eq!(connection.migrate(Timestamp::from_micros(0)).unwrap(), Vec::<String>::new());
    let sql = "SELECT count(*) FROM schema_migrations WHERE length(checksum) = 32 AND applied_at = 0";
    let stored: u32 = connection.raw().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(stored as usize, SQLITE.len());
}

#[test]
fn a_changed_or_unknown_migration_is_refused() {
    for (change, expected) in [
        (
            "UPDATE schema_migrations SET checksum = zeroblob(32) WHERE name = '0003_retention'",
            "the migration 0003_retention of this program",
        ),
        (
            "INSERT INTO schema_migrations VALUES ('9999_later', 0, zeroblob(32))",
            "the migration 9999_later, which this program does not have",
        ),
    ] {
        let scratch = Scratch::new();
        scratch.connection().raw().execute_batch(change).unwrap();
        let refused = SqliteStore::open(&scratch.path, env()).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::SchemaMismatch(_)), "{refused:?}");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
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

/// A step of retention costs what it looks at, and so does the check that nothing refers to what goes.
#[test]
fn a_step_of_retention_walks_no_table() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for sql in crate::webhooks::retention::STATEMENTS {
        let mut explain = connection.raw().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan: Vec<String> = explain.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().unwrap();
        let text = plan.join("; ");
        let walks = text.replace("SCAN CONSTANT ROW", "").contains("SCAN ");
        assert!(!walks && !text.contains("TEMP B-TREE"), "{sql}: {text}");
        if sql.contains("deliveries d") {
            assert!(
                text.contains("d USING INDEX sqlite_autoindex_deliveries_1 (tenant_id=? AND id>? AND id<?)"),
                "{sql}: {text}"
            );
        }
    }
}

/// A page costs O(limit) when the plan walks one index in the order asked for: no scan, no sorting. The plan
/// depends on the schema alone, as this store never runs ANALYZE.
#[test]
fn every_list_walks_an_index_in_order() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for (name, sql, _) in every_list(Dialect::Sqlite) {
        let mut explain = connection.raw().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan: Vec<String> = explain.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().unwrap();
        let text = plan.join("; ");
        assert!(!text.contains("SCAN"), "{name}: {text}");
        // Contacts that share an address are few; an index of their changes would cost every write.
        let few = text.contains("contacts_by_email");
        assert!(few || !text.contains("TEMP B-TREE"), "{name}: {text}");
        assert!(plan.iter().any(|step| step.contains("tenant_id=?")), "{name}: {text}");
        // Every condition but the position narrows the index down, so that no row is read in vain.
        let equalities = |text: &str| text.matches("=?").count();
        for step in plan.iter().filter(|step| step.contains("SEARCH")) {
            let wanted = sql.split(" UNION ALL ").next().map_or(0, |arm| arm.matches(" = ").count());
            let unique = step.contains("_number=?");
            assert!(equalities(step) >= wanted || unique, "{name}: {step} of {sql}");
        }
    }
}

/// What is asked of one endpoint costs nothing for the deliveries to others, however many the tenant has.
#[test]
fn deliveries_of_an_endpoint_are_found_by_its_index() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    let mut seen = 0;
    let lists = deliveries::lists_of_an_endpoint();
    let statements = deliveries::statements().into_iter().chain(attempts::statements());
    for sql in statements.chain(lists.iter().map(String::as_str)) {
        if !sql.contains("subscription_id = $2") || !sql.contains(" deliveries") {
            continue;
        }
        seen += 1;
        let mut explain = connection.raw().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan: Vec<String> = explain.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().unwrap();
        let text = plan.join("; ");
        assert!(text.contains("INDEX deliveries_") && text.contains("subscription_id=?"), "{sql}: {text}");
        assert!(!text.contains("SCAN") && !text.contains("TEMP B-TREE"), "{sql}: {text}");
        assert!(plan[0].contains("INDEX deliveries_"), "the endpoint comes first: {sql}: {text}");
    }
    assert!(seen >= 8, "{seen}");
}

/// Counting reads no more than it counts.
#[test]
fn backlogs_are_counted_by_partial_indexes() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for (sql, index) in deliveries::BACKLOGS {
        let mut explain = connection.raw().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan: Vec<String> = explain.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().unwrap();
        let text = plan.join("; ");
        assert!(text.contains(index) && !text.contains("TEMP B-TREE"), "{sql}: {text}");
    }
}

#[tokio::test]
async fn waiting_writers_share_commits_and_each_gets_its_own_answer() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    let jobs = (0..100_usize).map(|n| {
        let store = &store;
        async move {
            store
                .write("test", move |tx| {
                    Box::pin(async move {
                        let at = tx.advance_clock(tenant).await?.ok_or(Error::NotFound)?;
                        if n % 3 == 0 { Err(Error::PreconditionFailed) } else { Ok(at) }
                    })
                })
                .await
        }
    });
    let results = join_all(jobs).await;
    let times: HashSet<Timestamp> = results.iter().filter_map(|result| result.as_ref().ok()).copied().collect();
    assert_eq!(times.len(), 66, "a job that fails undoes only itself");
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 34);
    let last =
        store.write("test", move |tx| Box::pin(async move { Ok(tx.advance_clock(tenant).await?) })).await.unwrap();
    assert!(times.iter().all(|time| Some(*time) < last));
}

async fn new_tenant(store: &dyn Store) -> TenantId {
    let create = store.write("test", |tx| Box::pin(tenants::create(tx, TenantCreate::named("Test"))));
    create.await.unwrap().id
}

#[tokio::test]
async fn a_job_that_panics_or_waits_fails_alone() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let panics = store.write::<(), _>("panics", |_| Box::pin(async { panic!("a fault") }));
    assert!(matches!(panics.await, Err(Error::Store(StoreError::Internal(error))) if error == "panics panicked"));
    let waits = store.read::<(), _>("waits", |_| Box::pin(std::future::pending()));
    assert!(matches!(waits.await, Err(Error::Store(StoreError::Internal(_)))));
    new_tenant(&*store).await;
}

#[tokio::test]
async fn a_job_runs_to_its_end_though_nobody_waits_for_it() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let abandoned = store.write("abandoned", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    });
    // Polled once, so that the job is handed over, and then dropped.
    let mut abandoned = Box::pin(abandoned);
    let _ = (&mut abandoned).now_or_never();
    drop(abandoned);
    new_tenant(&*store).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_locked_database_is_unavailable_for_writes_and_open_for_reads() {
    let scratch = Scratch::new();
    let store = SqliteStore::open_with(&scratch.path, env(), None, std::time::Duration::ZERO).unwrap();
    let store: &dyn Store = &store;
    let tenant = new_tenant(store).await;
    let other = scratch.connection();
    other.batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.write("test", move |tx| Box::pin(async move { Ok(tx.advance_clock(tenant).await?) })).await;
    assert!(matches!(refused, Err(Error::Store(StoreError::Unavailable(_)))), "{refused:?}");
    assert!(
        store.read("test", move |tx| Box::pin(async move { Ok(tx.tenant(tenant).await?) })).await.unwrap().is_some()
    );
    other.batch("COMMIT").unwrap();
    new_tenant(store).await;
}

#[tokio::test]
async fn a_full_database_refuses_and_loses_nothing() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    drop(store);
    let full = Connection::open(&scratch.path).unwrap();
    let pages: i64 = full.raw().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    full.raw().query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    let vault = Arc::new(Vault::new(SecretKey::new([0; 32]), env()));
    let context = Context {
        env: env(),
        cursor_key: CursorKey::new([0; 32]),
        delivery_wakeup: Arc::default(),
        vault,
        observer: Arc::default(),
    };
    let (queue, mut answers) = (Queue::new(), Vec::new());
    for n in 0..64 {
        let (answer, answered) = oneshot::channel();
        let job: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
            Box::pin(async move {
                let name = format!("{n}{}", "x".repeat(2000));
                Ok(tx.insert_tenant(&named(tx.env(), &name)).await?)
            })
        });
        queue.push(Waiting { name: "fill", job, answer }).unwrap();
        answers.push(answered);
    }
    queue.close();
    let pool = ConnectionPool::new(scratch.path.clone(), connection::BUSY_TIMEOUT, 0).unwrap();
    writer::run(full, &pool, &queue, &context);
    let results = join_all(answers).await;
    let acknowledged = results.iter().filter(|result| matches!(result, Ok(Ok(())))).count();
    assert!(acknowledged < 64, "the database never filled up");
    let store = scratch.store();
    let stored = store.read("test", |tx| Box::pin(async move { Ok(tx.tenants().await?) })).await.unwrap();
    assert_eq!(stored.len(), acknowledged + 1);
    assert!(stored.iter().any(|row| row.id == tenant));
}

fn named(env: &Env, name: &str) -> tenants::Tenant {
    let now = env.now();
    tenants::Tenant {
        id: TenantId(env.id(now)),
        name: name.to_owned(),
        developer_access: tenants::DeveloperAccess::Approved,
        time_zone: svc_core::values::TimeZone::UTC,
        currency: svc_core::values::Currency::AUD,
        unique_contact_email: true,
        limits: svc_core::accounts::limits::RateLimits::default(),
        max_webhooks: None,
        created_at: now,
    }
}

#[tokio::test]
async fn what_is_no_database_of_ours_is_refused() {
    let scratch = Scratch::new();
    std::fs::write(&scratch.path, vec![7; 4096]).unwrap();
    assert!(matches!(SqliteStore::open(&scratch.path, env()), Err(StoreError::Unavailable(_))));
    assert!(matches!(SqliteStore::open(&scratch.path.join("no/such"), env()), Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn a_damaged_cell_is_named_and_stops_nobody_else() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    scratch.connection().raw().execute("UPDATE tenants SET time_zone = 'Nowhere'", []).unwrap();
    let read = store.read("test", move |tx| Box::pin(async move { Ok(tx.tenant(tenant).await?) })).await;
    assert!(matches!(read, Err(Error::Store(StoreError::Corrupt { table: "tenants", .. }))), "{read:?}");
    new_tenant(&*store).await;
}

#[tokio::test]
async fn no_secret_lies_in_the_file_and_another_key_opens_none() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    let made = store.write("test", move |tx| {
        Box::pin(async move {
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
        })
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
    let read = back.read("test", move |tx| {
        Box::pin(async move {
            Ok((tx.api_key(key.key.id).await?, crud::get::<WebhookSubscription>(tx, tenant, hook.id).await?))
        })
    });
    let (same_key, same_hook) = read.await.unwrap();
    assert_eq!((same_key.unwrap().signing_secret.as_ref(), &same_hook.secret), (Some(&secrets[0]), &secrets[1]));
    drop(back);
    std::fs::write(scratch.path.with_extension("db.key"), "0".repeat(64)).unwrap();
    let refused = SqliteStore::open(&scratch.path, env()).map(drop);
    assert!(matches!(refused, Err(StoreError::Unavailable(error)) if error.contains("SVC_SECRET_KEY")));
}

#[tokio::test]
async fn a_damaged_delivery_stops_its_own_endpoint_only() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    let fill = store.write("test", move |tx| {
        Box::pin(async move {
            let mut hooks = Vec::new();
            for _ in 0..2 {
                let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
                hooks.push(crud::create::<WebhookSubscription>(tx, tenant, Input::from_body(body)?).await?.id);
            }
            crud::create::<Contact>(tx, tenant, Input::from_body(br#"{"email": "ada@example.com"}"#)?).await?;
            Ok(hooks)
        })
    });
    let hooks = fill.await.unwrap();
    let damage = "UPDATE deliveries SET kind = 'no.such' WHERE subscription_id = ?1";
    scratch.connection().raw().execute(damage, [hooks[0].as_bytes()]).unwrap();
    let begun = store.write("test", |tx| {
        Box::pin(async move {
            let (look, policy) = (engine::poll(tx).await?, engine::Policy::default());
            let mut begun = Vec::new();
            for round in engine::InFlight::default().plan(&policy, &look, Default::default()) {
                begun.extend(engine::run_batch(tx, &policy, &round).await?.attempts);
            }
            Ok((begun, engine::poll(tx).await?.endpoints))
        })
    });
    let (begun, next) = begun.await.unwrap();
    let to: Vec<_> = begun.iter().map(|attempt| attempt.delivery.subscription_id).collect();
    assert_eq!(to, hooks[1..]);
    assert_eq!(next, [], "it is not looked at all the time");
}
