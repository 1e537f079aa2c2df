//! The conformance suite in transactions of sqlx, and what applications rely on.

use std::path::Path;
use std::sync::Arc;

use ::sqlx::postgres::PgPoolOptions;
use ::sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use ::sqlx::{PgPool, SqlitePool};
use async_trait::async_trait;
use futures_util::FutureExt as _;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::input::Input as _;
use svc_core::pages::ListParams;
use svc_core::resources::contacts::{Contact, ContactCreate, ContactFilter};
use svc_core::resources::{Create, Filter as _, crud};
use svc_core::store::{Access, Observer, RequestCounts, Store, StoreResult, UnitOfWork};
use svc_core::values::TenantId;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use svc_test_support::postgres::{is_installed, server};

use super::*;
use crate::test_databases::migrated_database;
use crate::{Options, PostgresStore, SecretKey, SqliteStore};

/// A store whose writes are transactions of sqlx, which svc joins.
struct JoiningStore<S, P> {
    store: Arc<S>,
    pool: P,
    /// Notified as an application notifies the sender of its own process. That of the store would be notified a second
    /// time, by PostgreSQL.
    wakeup: Arc<DeliveryWakeup>,
}

/// A pool that begins transactions for writing.
#[async_trait]
trait Begin: Clone + Send + Sync + 'static {
    type Database: Database;
    async fn begin_write(&self) -> Result<Transaction<'static, Self::Database>, ::sqlx::Error>;
}

#[async_trait]
impl Begin for SqlitePool {
    type Database = ::sqlx::Sqlite;
    async fn begin_write(&self) -> Result<Transaction<'static, ::sqlx::Sqlite>, ::sqlx::Error> {
        self.begin_with("BEGIN IMMEDIATE").await
    }
}

#[async_trait]
impl Begin for PgPool {
    type Database = ::sqlx::Postgres;
    async fn begin_write(&self) -> Result<Transaction<'static, ::sqlx::Postgres>, ::sqlx::Error> {
        self.begin().await
    }
}

#[async_trait]
impl<S, P> Store for JoiningStore<S, P>
where
    P: Begin,
    S: Store + Join<P::Database>,
{
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        if access == Access::Read {
            return self.store.run(access, name, work).await;
        }
        let (store, pool, wakeup) = (Arc::clone(&self.store), self.pool.clone(), Arc::clone(&self.wakeup));
        let work = Arc::new(work);
        let run = tokio::spawn(async move {
            loop {
                let mut tx = pool.begin_write().await.unwrap();
                let joined = join(&mut tx, &*store);
                let again = Arc::clone(&work);
                let done = joined.run(access, name, Box::new(move |tx| again(tx))).await;
                let has_due_deliveries = joined.has_due_deliveries();
                match done {
                    Ok(()) => {
                        tx.commit().await.unwrap();
                        if has_due_deliveries {
                            wakeup.notify();
                        }
                        return Ok(());
                    }
                    Err(Error::Store(error)) if error.is_transient() => tx.rollback().await.unwrap(),
                    Err(error) => return Err(error),
                }
            }
        });
        run.await.unwrap()
    }

    fn env(&self) -> &Env {
        self.store.env()
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        &self.wakeup
    }

    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        self.store.request_counts()
    }

    fn check_writable(&self) -> StoreResult<()> {
        self.store.check_writable()
    }

    async fn close(&self) {
        self.store.close().await;
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.store.observe(observer);
    }
}

async fn sqlite_pool(path: &Path) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(path);
    SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap()
}

async fn on_sqlite(env: Env) -> (JoiningStore<SqliteStore, SqlitePool>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("svc.db");
    let store = Arc::new(SqliteStore::open(&path, env).unwrap());
    (JoiningStore { store, pool: sqlite_pool(&path).await, wakeup: Arc::default() }, folder)
}

async fn on_postgres(url: &str, env: Env) -> JoiningStore<PostgresStore, PgPool> {
    let options = Options {
        read_connections: 2,
        write_connections: 2,
        secret_key: Some(SecretKey::new([7; 32])),
        ..Options::default()
    };
    let store = Arc::new(PostgresStore::open(url, env, options).await.unwrap());
    JoiningStore { store, pool: PgPool::connect(url).await.unwrap(), wakeup: Arc::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joined_transactions_pass_the_conformance_suite_on_sqlite() {
    let folders = std::sync::Mutex::new(Vec::new());
    let open = |env| async {
        let (store, folder) = on_sqlite(env).await;
        svc_core::sync::lock(&folders).push(folder);
        Arc::new(store) as Arc<dyn Store>
    };
    svc_store_tests::run_all(open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run once more, which .ci/release runs"]
async fn joined_transactions_pass_the_conformance_suite_on_postgres_once_more() {
    if !is_installed() {
        return;
    }
    let open = |env| async { Arc::new(on_postgres(&migrated_database(), env).await) as Arc<dyn Store> };
    svc_store_tests::run_all(open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run once more, which .ci/release runs"]
async fn a_pool_of_the_application_passes_the_conformance_suite_once_more() {
    if !is_installed() {
        return;
    }
    let open = |env| async { Arc::new(pooled(&migrated_database(), env).await) as Arc<dyn Store> };
    svc_store_tests::run_all(open).await;
}

async fn pooled(url: &str, env: Env) -> PooledStore {
    let options = Options {
        read_connections: 1,
        write_connections: 1,
        secret_key: Some(SecretKey::new([7; 32])),
        ..Options::default()
    };
    let pool = PgPoolOptions::new().max_connections(8).connect(url);
    PooledStore::new(Arc::new(PostgresStore::open(url, env, options).await.unwrap()), pool.await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_on_another_database_is_refused() {
    let Some(server) = server() else { return };
    let here = on_postgres(&server.database(), Env::system()).await;
    let pooled: &dyn Store = &PooledStore::new(here.store, PgPool::connect(&server.database()).await.unwrap());
    let refused = pooled.read("test", (), async |tx, ()| Ok(tx.tenants(None, 1, false).await?)).await;
    let error = refused.map(drop).unwrap_err().to_string();
    assert!(error.contains("another database than the store"), "{error}");
}

/// Two transactions that lock two tenants in opposite orders: one of them runs again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_on_the_pool_runs_again() {
    let Some(server) = server() else { return };
    let store = Arc::new(pooled(&server.database(), Env::system()).await);
    let tenants = [tenant(&*store).await, tenant(&*store).await];
    let both_have_one = Arc::new(tokio::sync::Barrier::new(2));
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let lock = |first: TenantId, second: TenantId| {
        let (both_have_one, runs, store) = (Arc::clone(&both_have_one), Arc::clone(&runs), Arc::clone(&store));
        async move {
            let store: &dyn Store = &*store;
            let lock = store.write(
                "test",
                (first, runs, both_have_one, second),
                async |tx, (first, runs, both_have_one, second)| {
                    advance_clock(tx, *first).await?;
                    if runs.fetch_add(1, Ordering::Relaxed) < 2 {
                        both_have_one.wait().await;
                    }
                    advance_clock(tx, *second).await
                },
            );
            lock.await
        }
    };
    let (one, other) = tokio::join!(lock(tenants[0], tenants[1]), lock(tenants[1], tenants[0]));
    assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

async fn tenant(store: &dyn Store) -> TenantId {
    let created = store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
    created.await.unwrap().id
}

async fn create(joined: &Joined<'_>, tenant: TenantId, email: &str) -> Result<Contact, Error> {
    joined.account(tenant).contacts().create(ContactCreate::new(email.parse().unwrap())).await
}

/// The email addresses of the tenant's contacts, the newest first, as the store reads them.
async fn emails(store: &dyn Store, tenant: TenantId) -> Vec<String> {
    let listed = store.read("test", tenant, async |tx, &tenant| {
        let list = ListParams { limit: None, cursor: None, updated_since: None };
        let page = crud::list::<Contact>(tx, tenant, &list, &ContactFilter::none()).await?;
        Ok(page.data.into_iter().filter_map(|contact| contact.email).map(|email| email.to_string()).collect())
    });
    listed.await.unwrap()
}

/// Checks the guarantees on both databases.
async fn promises<S, P>(joining: JoiningStore<S, P>)
where
    P: Begin,
    S: Store + Join<P::Database>,
{
    let JoiningStore { store, pool, .. } = joining;
    let store = &*store;
    let tenant = tenant(store).await;

    // A failed operation leaves nothing, and the transaction goes on.
    let mut tx = pool.begin_write().await.unwrap();
    let joined = join(&mut tx, store);
    create(&joined, tenant, "kept@example.com").await.unwrap();
    let failing: UnitOfWork = Box::new(move |tx| {
        Box::pin(async move {
            for email in ["gone@example.com", "kept@example.com"] {
                crud::create::<Contact>(tx, tenant, ContactCreate::new(email.parse().unwrap())).await?;
            }
            Ok(())
        })
    });
    assert_eq!(joined.run(Access::Write, "test", failing).await.unwrap_err().code(), "email_taken");
    create(&joined, tenant, "also@example.com").await.unwrap();
    assert_eq!(emails(store, tenant).await, [""; 0], "nothing is seen before the commit");
    tx.commit().await.unwrap();
    assert_eq!(emails(store, tenant).await, ["also@example.com", "kept@example.com"]);

    // A rollback leaves nothing, and so does an application that ends before its commit.
    for ended in [true, false] {
        let mut tx = pool.begin_write().await.unwrap();
        create(&join(&mut tx, store), tenant, "gone@example.com").await.unwrap();
        if ended {
            tx.rollback().await.unwrap();
        } else {
            drop(tx);
        }
        assert_eq!(emails(store, tenant).await.len(), 2);
    }

    // Of two applications that create the same contact, the second finds that of the first.
    let race = async || {
        let mut tx = pool.begin_write().await.unwrap();
        let created = create(&join(&mut tx, store), tenant, "race@example.com").await;
        tx.commit().await.unwrap();
        created.map(drop).map_err(|error| error.code())
    };
    let (one, other) = tokio::join!(race(), race());
    assert_eq!([one, other].into_iter().filter(Result::is_ok).count(), 1, "{one:?} {other:?}");
    assert_eq!(emails(store, tenant).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joined_transactions_keep_their_promises_on_sqlite() {
    let (joining, _folder) = on_sqlite(Env::system()).await;
    promises(joining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joined_transactions_keep_their_promises_on_postgres() {
    let Some(server) = server() else { return };
    promises(on_postgres(&server.database(), Env::system()).await).await;
}

/// Checks the errors for wrong use on both databases. `empty` is a pool on a database that svc has never opened.
async fn refusals<S, P>(here: JoiningStore<S, P>, there: JoiningStore<S, P>, empty: P)
where
    P: Begin,
    S: Store + Join<P::Database>,
{
    let ours = tenant(&*here.store).await;
    let theirs = tenant(&*there.store).await;
    for pool in [&there.pool, &empty] {
        let mut tx = pool.begin_write().await.unwrap();
        let refused = create(&join(&mut tx, &*here.store), ours, "ada@example.com").await;
        let error = refused.map(drop).unwrap_err().to_string();
        assert!(error.contains("another database than the store"), "{error}");
    }

    let mut tx = here.pool.begin_write().await.unwrap();
    let refused = create(&join(&mut tx, &*here.store), theirs, "ada@example.com").await;
    assert_eq!(refused, Err(Error::UnknownTenant(theirs)));
    tx.commit().await.unwrap();

    here.store.close().await;
    let mut tx = here.pool.begin_write().await.unwrap();
    let refused = create(&join(&mut tx, &*here.store), ours, "ada@example.com").await;
    assert_eq!(refused, Err(StoreError::Closed.into()));
}

#[tokio::test]
async fn bad_use_is_refused_on_sqlite() {
    let (here, _folder) = on_sqlite(Env::system()).await;
    let (there, _other) = on_sqlite(Env::system()).await;
    refusals(here, there, SqlitePool::connect("sqlite::memory:").await.unwrap()).await;
}

#[tokio::test]
async fn bad_use_is_refused_on_postgres() {
    let Some(server) = server() else { return };
    let here = on_postgres(&server.database(), Env::system()).await;
    let there = on_postgres(&server.database(), Env::system()).await;
    refusals(here, there, PgPool::connect(&server.database()).await.unwrap()).await;
}

#[tokio::test]
async fn a_deadlock_can_be_tried_again() {
    let Some(server) = server() else { return };
    let JoiningStore { store, pool, .. } = on_postgres(&server.database(), Env::system()).await;
    let tenants = [tenant(&*store).await, tenant(&*store).await];
    // Each locks one tenant, and then that of the other.
    let both_have_one = tokio::sync::Barrier::new(2);
    let lock = async |first: TenantId, second: TenantId| {
        let mut tx = pool.begin_write().await.unwrap();
        let joined = join(&mut tx, &*store);
        create(&joined, first, "first@example.com").await.unwrap();
        both_have_one.wait().await;
        let done = create(&joined, second, "second@example.com").await;
        tx.rollback().await.unwrap();
        done.map(drop)
    };
    let (one, other) = tokio::join!(lock(tenants[0], tenants[1]), lock(tenants[1], tenants[0]));
    let failed: Vec<Error> = [one, other].into_iter().filter_map(Result::err).collect();
    assert!(matches!(&*failed, [Error::Store(error)] if error.is_transient()), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_wakes_the_senders_of_all_processes_on_postgres() {
    let Some(server) = server() else { return };
    let joining = on_postgres(&server.database(), Env::system()).await;
    let store: &dyn Store = &*joining.store;
    let tenant = tenant(store).await;
    let subscribe = store.write("test", tenant, async |tx, &tenant| {
        let input = <WebhookSubscription as Create>::Input::from_body(
            br#"{"url": "https://hooks.example.com/", "events": ["*"]}"#,
        )?;
        crud::create::<WebhookSubscription>(tx, tenant, input).await
    });
    subscribe.await.unwrap();
    let mut tx = joining.pool.begin_write().await.unwrap();
    create(&join(&mut tx, &*joining.store), tenant, "ada@example.com").await.unwrap();
    assert!(store.delivery_wakeup().notified().now_or_never().is_none());
    tx.commit().await.unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(5), store.delivery_wakeup().notified()).await.unwrap();
}
