//! Tests that only concern SQLite, and the conformance suite.

mod costs;
mod files;
mod groups;
mod migrations;
mod plans;
mod reads;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys as keys_of;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{ManualClock, SeededEntropy};
use svc_core::input::Input;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::store::Tx;
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::engine;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::*;

use crate::dialect::Dialect;
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

fn context(env: Env) -> StoreContext {
    let vault = Vault::new(SecretKey::new([0; 32]), env.clone());
    StoreContext::new(env, CursorKey::new([0; 32]), vault)
}

fn env() -> Env {
    let start = Timestamp::parse("2026-03-14T15:09:26.535897Z").unwrap();
    Env::new(ManualClock::at(start), SeededEntropy::new(1))
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
    let store = SqliteStore::open_with(&scratch.path, env(), None, None, ReadTimes::default()).unwrap();
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

/// `docs/operations/alerts.md`, "SvcStoreAway".
#[test]
fn a_write_tries_again_each_millisecond_for_five_seconds() {
    let attempts = [0, 1, 4_999, 5_000].map(pause_while_busy);
    assert_eq!(attempts, [true, true, true, false]);
}

#[tokio::test]
async fn a_database_is_opened_while_another_process_writes() {
    let scratch = Scratch::new();
    let tenant = new_tenant(&*scratch.store()).await;
    let other = scratch.connection();
    other.batch("BEGIN IMMEDIATE").unwrap();
    let store = SqliteStore::open_with(&scratch.path, env(), None, None, ReadTimes::default()).unwrap();
    let store: &dyn Store = &store;
    assert!(store.read("test", tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?)).await.unwrap().is_some());
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
