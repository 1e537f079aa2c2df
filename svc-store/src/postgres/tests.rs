//! Tests that only concern PostgreSQL, and the conformance suite.

mod apps;
mod citus;
mod clocks;
mod faults;
mod groups;
mod partitions;
mod plans;
mod reads;
mod refusals;
mod request_counts;
mod wire;

use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::keys::{self as keys_of, KeyCreate};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{ManualClock, SeededEntropy};
use svc_core::find;
use svc_core::input::Input;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::resources::jobs::{Job, JobCreate};
use svc_core::store::{Repository, Tx};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use svc_test_support::postgres::{is_installed, server};
use tokio::time::timeout;

use super::failure::TransactionFailure;
use super::*;
use crate::dialect::Dialect;
use crate::statements::every_statement;
use crate::test_databases::migrated_database;
use crate::{OpenError, Options, open_with};

const SECOND: Duration = Duration::from_secs(1);

/// Options with few connections, as every test opens stores of its own.
fn options() -> Options {
    Options {
        read_connections: 2,
        write_connections: 4,
        secret_key: Some(SecretKey::new([7; 32])),
        ..Options::default()
    }
}

fn env() -> Env {
    let start = Timestamp::parse("2026-03-14T15:09:26.535897Z").unwrap();
    Env::new(ManualClock::at(start), SeededEntropy::new(1))
}

async fn store(url: &str) -> Arc<dyn Store> {
    open_with(url, Env::system(), options()).await.unwrap()
}

/// Opens a connection that is independent of the store.
async fn direct_connection(url: &str) -> PostgresConnection {
    PostgresConnection::open(&ConnectOptions::parse(url).unwrap(), Role::Write).await.unwrap()
}

/// Locks the row of a tenant in a transaction of another process, and returns its connection.
async fn lock_row(url: &str, tenant: TenantId) -> PostgresConnection {
    let other = direct_connection(url).await;
    let lock = format!("BEGIN; SELECT 1 FROM tenants WHERE id = '{tenant}' FOR NO KEY UPDATE");
    other.client.batch_execute(&lock).await.unwrap();
    other
}

async fn new_tenant(store: &dyn Store) -> TenantId {
    let create = store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
    create.await.unwrap().id
}

async fn advance_clock_in(store: &dyn Store, tenant: TenantId) -> Result<Timestamp, Error> {
    store.write("test", tenant, async |tx, &tenant| advance_clock(tx, tenant).await).await
}

async fn new_job(tx: &mut dyn Tx, tenant: TenantId) -> Result<Job, Error> {
    crud::create(tx, tenant, JobCreate::from_body(br#"{"title": "x"}"#)?).await
}

#[tokio::test]
async fn the_store_passes_the_conformance_suite() {
    if !is_installed() {
        return;
    }
    svc_store_tests::run_all(|env| async { open_with(&migrated_database(), env, options()).await.unwrap() }).await;
}

#[tokio::test]
#[ignore = "a run once more, which .ci/release runs"]
async fn the_store_passes_the_conformance_suite_when_every_write_fails_first_once_more() {
    if !is_installed() {
        return;
    }
    let open = |env| async {
        let store = open_with(&migrated_database(), env, options()).await.unwrap();
        svc_store_tests::fails_first(store, |runs| Box::pin(async { tokio::spawn(runs).await.unwrap() }))
    };
    svc_store_tests::run_all(open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_run_once_also_when_many_start_together() {
    let Some(server) = server() else { return };
    let url = server.database_on_socket();
    let applied = join_all((0..8).map(|_| {
        tokio::spawn({
            let url = url.clone();
            async move { crate::migrate(&url).await.unwrap().len() }
        })
    }));
    let applied: Vec<usize> = applied.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(applied.iter().sum::<usize>(), crate::migrations::POSTGRES.len(), "{applied:?}");
    let stores = join_all((0..8).map(|_| store(&url))).await;
    let tenant = new_tenant(&*stores[0]).await;
    assert!(advance_clock_in(&*stores[7], tenant).await.is_ok());
}

#[tokio::test]
async fn without_the_right_to_create_extensions_searches_read_all_texts() {
    let Some(server) = server() else { return };
    let url = server.database();
    let superuser = direct_connection(&url).await;
    let plain = "CREATE ROLE plain LOGIN; GRANT CREATE, USAGE ON SCHEMA public TO plain";
    superuser.client.batch_execute(plain).await.unwrap();
    let store = store(&url.replace("://svc@", "://plain@")).await;
    let extensions = "SELECT 1 FROM pg_extension WHERE extname IN ('pg_trgm', 'btree_gin')";
    assert!(superuser.client.query(extensions, &[]).await.unwrap().is_empty());
    let tenant = new_tenant(&*store).await;
    let create = store.write("test", tenant, async |tx, &tenant| {
        let mia =
            ContactCreate::from_body(br#"{"first_name": "Mia", "city": "Geelong", "email": "mia@kiln.example"}"#)?;
        crud::create::<Contact>(tx, tenant, mia).await
    });
    let mia = create.await.unwrap();
    find::index_all(&*store, |_| std::future::ready(())).await.unwrap();
    for text in ["mia", "geelo", "kiln.ex"] {
        let found = store.read("test", (tenant, find::parse(text).unwrap()), async |tx, (tenant, text)| {
            find::find(tx, *tenant, text).await
        });
        let ids: Vec<_> = found.await.unwrap().data.iter().map(|hit| hit.id).collect();
        assert_eq!(ids, [mia.id.uuid()], "{text}");
    }
}

#[tokio::test]
async fn a_changed_or_unknown_migration_is_refused() {
    let Some(server) = server() else { return };
    for (change, expected) in [
        (
            "UPDATE schema_migrations SET checksum = '\\x00' WHERE name = '0001_schema'",
            "the migration 0001_schema of this program",
        ),
        (
            "INSERT INTO schema_migrations (name, checksum) VALUES ('9999_later', '\\x00')",
            "the migration 9999_later, which this program does not have",
        ),
    ] {
        let url = server.database();
        crate::migrate(&url).await.unwrap();
        direct_connection(&url).await.client.batch_execute(change).await.unwrap();
        let refused = open_with(&url, env(), options()).await.map(drop).unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn a_database_with_tables_of_something_else_is_refused() {
    let Some(server) = server() else { return };
    for table in ["contacts (name text)", "schema_migrations (version text)"] {
        let url = server.database();
        direct_connection(&url).await.client.batch_execute(&format!("CREATE TABLE {table}")).await.unwrap();
        let refused = open_with(&url, env(), options()).await.map(drop).unwrap_err();
        assert!(
            matches!(&refused, OpenError::Unavailable { source: StoreError::SchemaMismatch(_), .. }),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("something else has created"), "{refused}");
    }
}

#[tokio::test]
async fn what_was_queued_before_closing_is_completed() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let create = |_| store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
    let (created, ()) = tokio::join!(join_all((0..50).map(create)), store.close());
    assert!(created.iter().all(Result::is_ok), "{created:?}");
    assert_eq!(create(0).await, Err(StoreError::Closed.into()));
    let counted = store.request_counts().unwrap().add(&[], SECOND).await;
    assert_eq!(counted, Err(StoreError::Closed));
    let again = self::store(&url).await;
    let stored = again.read("test", (), async |tx, ()| Ok(tx.tenants(None, 100, false).await?.len())).await;
    assert_eq!(stored, Ok(50));
}

#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_is_gone() {
    let Some(server) = svc_test_support::postgres::another() else { return };
    let store = store(&server.database()).await;
    server.stop();
    let lost = store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
    let (lost, closed) = tokio::join!(lost, timeout(10 * SECOND, store.close()));
    assert!(matches!(lost, Err(Error::Store(_))), "{lost:?}");
    assert_eq!(closed, Ok(()));
}

#[tokio::test]
async fn a_url_of_several_hosts_leads_to_the_one_that_takes_writes() {
    let Some(server) = svc_test_support::postgres::another() else { return };
    let url = server.database();
    let store = store(&url).await;
    let tenant = new_tenant(&*store).await;
    store.close().await;
    let Some(standby) = server.standby() else { return };
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", standby.port(), server.port());
    let of_both = url.replace(&format!("127.0.0.1:{}", server.port()), &hosts);
    let asks = async |url: &str, role, sql: &str| -> String {
        let connection = PostgresConnection::open(&ConnectOptions::parse(url).unwrap(), role).await.unwrap();
        connection.client.query_one(sql, &[]).await.unwrap().get(0)
    };
    let is_standby = "SELECT pg_is_in_recovery()::text";
    assert_eq!(asks(&of_both, Role::Read, is_standby).await, "true", "without more, the first host is taken");
    let of_both = format!("{of_both}&target_session_attrs=read-write");
    for (role, is_read_only) in [(Role::Read, "on"), (Role::Write, "off"), (Role::Volatile, "off")] {
        assert_eq!(asks(&of_both, role, is_standby).await, "false", "{role:?}");
        assert_eq!(asks(&of_both, role, "SHOW transaction_read_only").await, is_read_only, "{role:?}");
    }
    let store = self::store(&of_both).await;
    let job = store.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await.unwrap();
    let asked = (tenant, job.id);
    let read = store.read("test", asked, async |tx, &(tenant, id)| crud::get::<Job>(tx, tenant, id).await);
    assert_eq!(read.await, Ok(job));
}

#[tokio::test]
async fn a_migration_that_is_broken_off_for_a_deadlock_is_applied_again() {
    let Some(server) = server() else { return };
    let url = server.database();
    let [gate, node, migrating] =
        [direct_connection(&url).await, direct_connection(&url).await, direct_connection(&url).await];
    gate.client.batch_execute("CREATE TABLE one (); CREATE TABLE two ()").await.unwrap();
    gate.client.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(1)").await.unwrap();
    // The migration alone looks for deadlocks, and is broken off.
    node.client
        .batch_execute("SET lock_timeout = 0; SET deadlock_timeout = '1h'; BEGIN; LOCK TABLE two")
        .await
        .unwrap();
    let sql = "LOCK TABLE one; SELECT pg_advisory_xact_lock(1); LOCK TABLE two; CREATE TABLE three ();";
    let migration = [crate::migrations::Migration { name: "0001_three", sql }];
    let waits_for = async |lock: &str| {
        let waiting = format!(
            "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON datname = current_database() \
             WHERE database = pg_database.oid AND locktype = '{lock}' AND NOT granted)"
        );
        while !gate.client.query_one(&waiting, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::task::yield_now().await;
        }
    };
    let other = async {
        waits_for("advisory").await;
        let both = async {
            node.client.batch_execute("LOCK TABLE one; COMMIT").await.unwrap();
        };
        let opens = async {
            waits_for("relation").await;
            gate.client.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(both, opens);
    };
    let (applied, ()) = tokio::join!(super::migrate::apply(&migrating.client, &migration), other);
    assert_eq!(applied, Ok(vec!["0001_three".to_owned()]));
    gate.client.batch_execute("TABLE three").await.unwrap();
}

#[tokio::test]
async fn every_statement_prepares() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    let counts = super::request_counts::STATEMENTS.iter().map(|sql| (*sql).to_owned());
    for sql in every_statement(Dialect::Postgres).into_iter().chain(counts) {
        connection.prepare(&sql).await.unwrap_or_else(|error| panic!("{:?}: {sql}", TransactionFailure::of(&error)));
    }
}

#[tokio::test]
async fn writes_wait_only_for_writes_of_the_same_tenant() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let (busy, free) = (new_tenant(&*store).await, new_tenant(&*store).await);
    let other = lock_row(&url, busy).await;
    let mut waits = Box::pin(store.write("waits", busy, async |tx, &busy| new_job(tx, busy).await));
    assert!(timeout(Duration::from_millis(200), &mut waits).await.is_err());
    for _ in 0..20 {
        let runs = store.write("runs", free, async |tx, &free| new_job(tx, free).await);
        timeout(SECOND, runs).await.unwrap().unwrap();
    }
    let read = store.read("reads", busy, async |tx, &busy| Ok(tx.tenant(busy).await?));
    assert!(timeout(SECOND, read).await.unwrap().unwrap().is_some(), "reads do not wait");
    other.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(waits.await.unwrap().job_number, "JOB-0001");
}

/// However many writes of a tenant wait for its row, they take one connection, and all complete in the end.
#[tokio::test]
async fn a_tenant_that_waits_for_its_row_leaves_connections_to_others() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let (busy, free) = (new_tenant(&*store).await, new_tenant(&*store).await);
    let other = lock_row(&url, busy).await;
    let writes = (0..32).map(|_| store.write("waits", busy, async |tx, &busy| new_job(tx, busy).await));
    let mut waits = Box::pin(join_all(writes));
    for _ in 0..20 {
        assert!((&mut waits).now_or_never().is_none());
        let runs = store.write("runs", free, async |tx, &free| new_job(tx, free).await);
        timeout(SECOND, runs).await.unwrap().unwrap();
    }
    other.client.batch_execute("COMMIT").await.unwrap();
    let mut numbers: Vec<String> = waits.await.into_iter().map(|job| job.unwrap().job_number).collect();
    numbers.sort();
    assert_eq!(numbers, (1..=32).map(|number| format!("JOB-{number:04}")).collect::<Vec<_>>());
}

/// A unit of work that is set aside fails like everything else that waits too long.
#[tokio::test]
async fn a_write_that_is_set_aside_does_not_wait_for_ever() {
    let Some(server) = server() else { return };
    let url = server.database();
    let options = Options { acquire_timeout: Duration::from_millis(300), ..options() };
    let store = open_with(&url, Env::system(), options).await.unwrap();
    let busy = new_tenant(&*store).await;
    let other = lock_row(&url, busy).await;
    let mut first = Box::pin(store.write("waits", busy, async |tx, &busy| new_job(tx, busy).await));
    assert!(timeout(Duration::from_millis(100), &mut first).await.is_err());
    let second = store.write("waits", busy, async |tx, &busy| new_job(tx, busy).await);
    let refused = timeout(5 * SECOND, second).await.unwrap();
    assert!(matches!(refused, Err(Error::Store(StoreError::Unavailable(_)))), "{refused:?}");
    other.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(first.await.unwrap().job_number, "JOB-0001");
}

#[tokio::test]
async fn a_unit_of_work_that_panics_fails_alone() {
    let Some(server) = server() else { return };
    let store = store(&server.database()).await;
    let tenant = new_tenant(&*store).await;
    let panics = store.write("panics", tenant, async |tx, &tenant| -> Result<(), Error> {
        new_job(tx, tenant).await?;
        panic!("a fault")
    });
    assert!(matches!(panics.await, Err(Error::Store(StoreError::Internal(error))) if error == "panics panicked"));
    let reads = (0..8).map(|at| {
        store.read("panics", (at, tenant), async |tx, &(at, tenant)| {
            assert_ne!(at, 3, "a fault");
            Ok(Repository::<Job>::get(tx, tenant, tenant.0.into()).await?.is_none())
        })
    });
    let reads = join_all(reads).await;
    assert_eq!(reads.iter().filter(|read| **read == Ok(true)).count(), 7, "{reads:?}");
    let number = store.write("test", tenant, async |tx, &tenant| Ok(new_job(tx, tenant).await?.job_number));
    assert_eq!(number.await.unwrap(), "JOB-0001", "the failed transaction was rolled back");
}

#[tokio::test]
async fn a_failed_read_does_not_affect_reads_of_its_group() {
    let Some(server) = server() else { return };
    let store = store(&server.database()).await;
    let tenant = new_tenant(&*store).await;
    for _ in 0..10 {
        let reads = join_all((0..40).map(|at| {
            store.read("test", (at, tenant), async |tx, &(at, tenant)| match at % 8 {
                3 => Ok(tx.advance_clock(tenant).await?.map(|_| at)),
                5 => Err(Error::PreconditionFailed),
                _ => Ok(tx.tenant(tenant).await?.map(|_| at)),
            })
        }));
        for (at, read) in reads.await.into_iter().enumerate() {
            match at % 8 {
                3 => assert!(matches!(read, Err(Error::Store(_))), "{read:?}"),
                5 => assert_eq!(read, Err(Error::PreconditionFailed)),
                _ => assert_eq!(read, Ok(Some(at))),
            }
        }
    }
}

#[tokio::test]
async fn a_unit_of_work_completes_when_its_caller_is_dropped() {
    let Some(server) = server() else { return };
    let store = store(&server.database()).await;
    let tenant = new_tenant(&*store).await;
    let mut abandoned = Box::pin(store.write("abandoned", tenant, async |tx, &tenant| new_job(tx, tenant).await));
    let _ = (&mut abandoned).now_or_never();
    drop(abandoned);
    let start = Instant::now();
    loop {
        let jobs = store.write("test", tenant, async |tx, &tenant| Ok(new_job(tx, tenant).await?.job_number));
        if jobs.await.unwrap() != "JOB-0001" || start.elapsed() > SECOND {
            break;
        }
    }
    assert!(start.elapsed() < SECOND);
}

#[tokio::test]
async fn a_commit_wakes_the_sender_of_another_node() {
    let Some(server) = server() else { return };
    let url = server.database();
    let (here, there) = (store(&url).await, store(&url).await);
    let tenant = new_tenant(&*here).await;
    let hook = here.write("test", tenant, async |tx, &tenant| {
        let input = Input::from_body(br#"{"url": "https://example.com/", "events": ["*"]}"#);
        crud::create::<WebhookSubscription>(tx, tenant, input?).await
    });
    hook.await.unwrap();
    // Wait until both nodes listen.
    for _ in 0..2 {
        let woken = there.delivery_wakeup().notified();
        let start = Instant::now();
        let write = async {
            loop {
                here.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = woken => {}
            () = write => {}
        }
        assert!(start.elapsed() < 5 * SECOND);
    }
    let start = Instant::now();
    while there.delivery_wakeup().notified().now_or_never().is_some() {}
    here.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await.unwrap();
    assert!(here.delivery_wakeup().notified().now_or_never().is_some(), "the sender of the same node is woken at once");
    timeout(SECOND, there.delivery_wakeup().notified()).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(10), "the node that wrote has a head start");
    // A node is not woken by its own notifications, nor by a commit without due deliveries.
    tokio::time::sleep(Duration::from_millis(100)).await;
    while here.delivery_wakeup().notified().now_or_never().is_some() {}
    advance_clock_in(&*here, tenant).await.unwrap();
    assert!(timeout(Duration::from_millis(200), here.delivery_wakeup().notified()).await.is_err());
}

#[tokio::test]
async fn secrets_are_encrypted_and_another_key_is_refused() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let tenant = new_tenant(&*store).await;
    let made = store.write("test", tenant, async |tx, &tenant| {
        let input = KeyCreate { name: None, write: true, expires_in: None, signed: true };
        keys_of::create(tx, tenant, input).await
    });
    let key = made.await.unwrap();
    let secret = key.key.signing_secret.clone().unwrap();
    let back = store.read("test", key.key.id, async |tx, &id| Ok(tx.api_key(id).await?)).await.unwrap();
    assert_eq!(back.unwrap().signing_secret.as_ref(), Some(&secret));
    let row = direct_connection(&url).await.client.query_one("SELECT signing_secret FROM api_keys", &[]).await.unwrap();
    let sealed: Vec<u8> = row.get(0);
    assert!(!sealed.windows(6).any(|bytes| bytes == b"svcsig"));

    let other = Options { secret_key: Some(SecretKey::new([8; 32])), ..options() };
    let refused = open_with(&url, env(), other).await.map(drop);
    assert!(matches!(&refused, Err(OpenError::Unavailable { .. })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("SVC_SECRET_KEY"));
    let none = Options { secret_key: None, ..options() };
    if std::env::var_os("SVC_SECRET_KEY").is_none() {
        let reason = open_with(&url, env(), none).await.map(drop).unwrap_err().to_string();
        assert!(reason.contains("openssl rand -hex 32"), "{reason}");
    }
}

#[tokio::test]
async fn errors_of_connecting_do_not_contain_the_password() {
    for url in [
        "postgres://svc:s3cret@127.0.0.1:1/svc",
        "postgres://svc:s3cret@127.0.0.1:1/svc?sslmode=require",
        "postgres://svc:s3cret@127.0.0.1:1/svc?sslmode=verify-full&sslrootcert=/no/such/file",
        "postgres://svc:s3cret@[/svc",
    ] {
        let reason = open_with(url, env(), options()).await.map(drop).unwrap_err();
        assert!(!format!("{reason} {reason:?}").contains("s3cret"), "{reason:?}");
    }
}

#[tokio::test]
async fn an_invalid_value_is_reported_with_its_column() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let tenant = new_tenant(&*store).await;
    direct_connection(&url).await.client.execute("UPDATE tenants SET time_zone = 'Nowhere'", &[]).await.unwrap();
    let read = store.read("test", tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?)).await;
    assert!(matches!(read, Err(Error::Store(StoreError::Corrupt { table: "tenants", .. }))), "{read:?}");
    new_tenant(&*store).await;
}

#[tokio::test]
async fn the_data_of_an_event_is_stored_byte_by_byte() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let tenant = new_tenant(&*store).await;
    let data = r#"{ "b":1e2 , "a": "\u0000\ud83d\ude00é", "a":0.10}"#;
    let stored = store.write("test", tenant, async |tx, &tenant| {
        let created_at = advance_clock(tx, tenant).await?;
        let data = serde_json::value::RawValue::from_string(data.to_owned()).unwrap();
        let (id, kind) = (tx.env().id(created_at), svc_core::values::EventKind::StayCreated);
        let event = svc_core::webhooks::events::Event { id, tenant_id: tenant, kind, data, created_at, only_for: None };
        tx.insert_event(&event).await?;
        Ok(tx.event(tenant, id).await?.map(|event| event.data.get().to_owned()))
    });
    assert_eq!(stored.await.unwrap().as_deref(), Some(data));
    let contact: Option<Contact> = store
        .read("test", tenant, async |tx, &tenant| Ok(Repository::get(tx, tenant, tenant.0.into()).await?))
        .await
        .unwrap();
    assert_eq!(contact, None);
}
