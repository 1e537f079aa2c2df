//! Reads that never end by themselves: deadlines, shares of accounts, and callers that are gone.

use std::time::Duration;

use svc_core::find;
use svc_core::resources::invoices::{self, InvoiceCreate};
use svc_core::values::Decimal;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const HOURS: ReadTimes = ReadTimes { shared: HOUR, slow: HOUR, system: HOUR, wait: HOUR };

impl Scratch {
    /// Opens a store in which lists of members never end.
    fn endless(&self, times: ReadTimes) -> Arc<SqliteStore> {
        let endless = "ALTER TABLE members RENAME TO kept_members;
            CREATE VIEW members AS WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
                SELECT kept_members.* FROM numbers CROSS JOIN kept_members";
        self.connection().raw().execute_batch(endless).unwrap();
        Arc::new(SqliteStore::open_with(&self.path, env(), None, Some(pause_while_busy), times).unwrap())
    }
}

/// Reads the list of members of an account.
async fn read_members(store: Arc<SqliteStore>, account: Option<TenantId>) -> Result<(), Error> {
    let store: &dyn Store = &*store;
    let read = store.read("members", account, async |tx, &account| {
        if let Some(account) = account {
            tx.read_as(account)?;
        }
        match tx.members(account.unwrap_or(TenantId(uuid::Uuid::nil())), 10).await {
            // A unit of work may return something else than the error of its statement.
            Err(StoreError::TooSlow(_)) => Ok(()),
            read => Ok(read.map(|members| panic!("{members:?}"))?),
        }
    });
    read.await
}

#[tokio::test]
async fn a_read_ends_at_its_deadline() {
    let scratch = Scratch::new();
    let moment = Duration::from_millis(1);
    let store = scratch.endless(ReadTimes { shared: moment, slow: moment, system: moment, wait: HOUR });
    for account in [Some(TenantId(uuid::Uuid::from_u128(1))), None] {
        let late = read_members(Arc::clone(&store), account).await;
        assert_eq!(late, Err(Error::Store(crate::slow_reads::too_slow("members"))));
    }
    store.close().await;
}

#[tokio::test]
async fn a_read_whose_caller_is_gone_ends() {
    let scratch = Scratch::new();
    for times in [HOURS, ReadTimes { shared: Duration::from_millis(1), ..HOURS }] {
        let scratch = if times.shared == HOUR { &scratch } else { &Scratch::new() };
        let store = scratch.endless(times);
        let reads =
            (0..8).map(|number| read_members(Arc::clone(&store), Some(TenantId(uuid::Uuid::from_u128(number)))));
        // Each is polled once, so that it is queued.
        let mut reads: Vec<_> = reads.map(Box::pin).collect();
        assert!(reads.iter_mut().all(|read| read.now_or_never().is_none()));
        drop(reads);
        // The threads end when the reads have.
        store.close().await;
    }
}

#[tokio::test]
async fn an_account_that_reads_without_end_does_not_keep_others_from_reading() {
    let scratch = Scratch::new();
    let store = scratch.endless(ReadTimes { shared: Duration::from_millis(100), ..HOURS });
    let (busy, other) = (new_tenant(&*store).await, new_tenant(&*store).await);
    let mut reads: Vec<_> = (0..20).map(|_| Box::pin(read_members(Arc::clone(&store), Some(busy)))).collect();
    for _ in 0..10 {
        assert!(reads.iter_mut().all(|read| read.now_or_never().is_none()));
        let store: &dyn Store = &*store;
        let read = store.read("tenant", other, async |tx, &other| {
            tx.read_as(other)?;
            Ok(tx.tenant(other).await?)
        });
        assert!(read.await.unwrap().is_some());
    }
    // Another account has slow reads of its own meanwhile, which begin although the first never end.
    let mut slow = Box::pin(read_members(Arc::clone(&store), Some(other)));
    assert!((&mut slow).now_or_never().is_none());
    drop((slow, reads));
    store.close().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_the_index_of_its_account_alone() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut accounts = [new_tenant(&*store).await, new_tenant(&*store).await];
    accounts.sort();
    let [first, second] = accounts;
    for account in accounts {
        let create = store.write("test", account, async |tx, &account| {
            invoices::create(tx, account, InvoiceCreate::new(Decimal::from(5))).await
        });
        create.await.unwrap();
    }
    let corrupt = "UPDATE invoices SET currency = '?!1' WHERE tenant_id = ?1";
    scratch.connection().raw().execute(corrupt, [first.0.as_bytes().as_slice()]).unwrap();
    let indexed = find::index_all(&*store, async |_| {}).await;
    assert!(matches!(&indexed, Err(Error::Store(StoreError::Corrupt { table: "invoices", .. }))), "{indexed:?}");
    let found = store.read("test", (second, find::parse("inv-00").unwrap()), async |tx, (account, text)| {
        find::find(tx, *account, text).await
    });
    assert_eq!(found.await.unwrap().data.len(), 1);
    let left = store.read("test", (), async |tx, ()| Ok(tx.tenants_to_index(None, 10).await?)).await;
    assert_eq!(left.unwrap(), [first]);
}
