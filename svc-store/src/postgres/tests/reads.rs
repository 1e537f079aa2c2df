//! Reads that take an hour: deadlines, shares of accounts, and callers that are gone.

use tokio::sync::Notify;
use uuid::Uuid;

use super::transaction::MAX_DURATION;
use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const HOURS: ReadTimes = ReadTimes { shared: HOUR, slow: HOUR, system: HOUR, wait: HOUR };

/// Opens a store in which a list of members takes an hour.
async fn slow_store(url: &str, times: ReadTimes) -> Arc<PostgresStore> {
    drop(store(url).await);
    let slow = "ALTER TABLE members RENAME TO kept_members;
        CREATE FUNCTION slow_members() RETURNS SETOF kept_members LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_sleep(3600); RETURN; END $$;
        CREATE VIEW members AS SELECT * FROM slow_members()";
    direct_connection(url).await.client.batch_execute(slow).await.unwrap();
    let options = Options { read_connections: 4, ..options() };
    Arc::new(PostgresStore::connect(connect_options(url).unwrap(), Env::system(), options, times).await.unwrap())
}

async fn read_members(store: Arc<PostgresStore>, account: TenantId) -> Result<(), Error> {
    let store: &dyn Store = &*store;
    let read = store.read("members", account, async |tx, &account| {
        tx.read_as(account)?;
        Ok(tx.members(account, 10).await.map(|members| panic!("{members:?}"))?)
    });
    read.await
}

async fn tenant_of(store: &dyn Store, account: TenantId) -> bool {
    let read = store.read("tenant", account, async |tx, &account| {
        tx.read_as(account)?;
        Ok(tx.tenant(account).await?)
    });
    read.await.unwrap().is_some()
}

#[tokio::test]
async fn a_slow_read_ends_at_its_deadline() {
    let Some(server) = server() else { return };
    let moment = Duration::from_millis(100);
    let store = slow_store(&server.database(), ReadTimes { shared: moment, slow: moment, ..HOURS }).await;
    let late = read_members(Arc::clone(&store), TenantId(Uuid::from_u128(1))).await;
    assert!(matches!(&late, Err(Error::Store(StoreError::TooSlow(_)))), "{late:?}");
    store.close().await;
}

#[tokio::test]
async fn an_account_that_reads_without_end_does_not_keep_others_from_reading() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = slow_store(&url, ReadTimes { shared: Duration::from_millis(100), ..HOURS }).await;
    let (busy, other) = (new_tenant(&*store).await, new_tenant(&*store).await);
    let mut reads: Vec<_> = (0..20).map(|_| Box::pin(read_members(Arc::clone(&store), busy))).collect();
    for _ in 0..10 {
        assert!(reads.iter_mut().all(|read| read.now_or_never().is_none()));
        assert!(tenant_of(&*store, other).await);
    }
    // The server ends what runs when nobody waits for it any more, and the tasks of the store end.
    drop(reads);
    store.close().await;
    let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%FROM members%' AND pid <> pg_backend_pid()";
    let connection = direct_connection(&url).await;
    while connection.client.query_one(running, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
}

/// Reads an account again and again, without end.
async fn read_on(store: Arc<PostgresStore>, account: TenantId, begun: Arc<Notify>) -> Result<(), Error> {
    let store: &dyn Store = &*store;
    let read = store.read("many", (account, begun), async |tx, (account, begun)| {
        tx.read_as(*account)?;
        loop {
            tx.tenant(*account).await?;
            begun.notify_one();
        }
    });
    read.await
}

/// Each of its statements is fast.
#[tokio::test]
async fn a_read_of_many_statements_is_slow_as_well() {
    let Some(server) = server() else { return };
    let moment = Duration::from_millis(100);
    let options = Options { read_connections: 4, ..options() };
    let times = ReadTimes { shared: moment, slow: moment, ..HOURS };
    let connect_options = connect_options(&server.database()).unwrap();
    let store = Arc::new(PostgresStore::connect(connect_options, Env::system(), options, times).await.unwrap());
    let (busy, other) = (new_tenant(&*store).await, new_tenant(&*store).await);
    let late = read_on(Arc::clone(&store), busy, Arc::default()).await;
    assert!(matches!(&late, Err(Error::Store(StoreError::TooSlow(_)))), "{late:?}");
    assert!(tenant_of(&*store, other).await);
    store.close().await;
}

/// There is one connection, which would be busy for the longest time of a transaction.
#[tokio::test]
async fn a_read_on_a_shared_connection_ends_when_its_caller_is_gone() {
    let Some(server) = server() else { return };
    let options = Options { read_connections: 1, ..options() };
    let connect_options = connect_options(&server.database()).unwrap();
    let store = Arc::new(PostgresStore::connect(connect_options, Env::system(), options, HOURS).await.unwrap());
    let account = new_tenant(&*store).await;
    let begun = Arc::new(Notify::new());
    let mut read = Box::pin(read_on(Arc::clone(&store), account, Arc::clone(&begun)));
    assert!((&mut read).now_or_never().is_none());
    begun.notified().await;
    drop(read);
    let next = tokio::time::timeout(MAX_DURATION / 2, tenant_of(&*store, account)).await;
    assert_eq!(next, Ok(true));
    store.close().await;
}
