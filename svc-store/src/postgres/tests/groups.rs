//! Writes of one tenant that wait for each other share a commit.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use svc_core::accounts::clocks::advance_clock;
use svc_core::store::KeyUse;
use svc_core::values::Id;

use super::*;

/// The numbers of units of work of the write transactions, in their order, and how many ran again.
#[derive(Default)]
struct Groups(Mutex<Vec<usize>>, AtomicUsize);

impl Observer for Groups {
    fn group(&self, access: Access, units: usize) {
        if access == Access::Write {
            lock(&self.0).push(units);
        }
    }
    fn retry(&self, _name: &'static str) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

struct ObservedStore {
    url: String,
    store: Arc<dyn Store>,
    tenant: TenantId,
    groups: Arc<Groups>,
}

impl ObservedStore {
    async fn new(server: &svc_test_support::postgres::Server) -> Self {
        Self::with(server, options()).await
    }

    /// A fixture whose only connection for writing is busy as soon as one write waits.
    async fn with_one_connection(server: &svc_test_support::postgres::Server) -> Self {
        Self::with(server, Options { write_connections: 1, ..options() }).await
    }

    async fn with(server: &svc_test_support::postgres::Server, options: Options) -> Self {
        let url = server.database();
        let store = open_with(&url, Env::system(), options).await.unwrap();
        let tenant = new_tenant(&*store).await;
        let groups = Arc::new(Groups::default());
        store.observe(Arc::<Groups>::clone(&groups));
        Self { url, store, tenant, groups }
    }

    /// Asserts that these were the groups, and that nothing ran again.
    #[track_caller]
    fn assert_groups(&self, want: &[usize]) {
        assert_eq!((&**lock(&self.groups.0), self.groups.1.load(Ordering::SeqCst)), (want, 0));
    }

    /// Runs writes of the tenant that were all queued before the first of them could lock its row.
    async fn run_together<T: Send + 'static>(
        &self,
        writes: Vec<BoxFuture<'_, Result<T, Error>>>,
    ) -> Vec<Result<T, Error>> {
        let other = lock_row(&self.url, self.tenant).await;
        let mut together = Box::pin(join_all(writes));
        assert!((&mut together).now_or_never().is_none());
        // Another tenant's write is behind them in the queue, so all have been looked at when it has completed.
        let free = new_tenant(&*self.store).await;
        for _ in 0..4 {
            assert!((&mut together).now_or_never().is_none());
            advance_clock_in(&*self.store, free).await.unwrap();
        }
        lock(&self.groups.0).clear();
        other.client.batch_execute("COMMIT").await.unwrap();
        together.await
    }

    fn job(&self, then: fn() -> Result<(), Error>) -> BoxFuture<'_, Result<String, Error>> {
        let tenant = self.tenant;
        let write = self.store.write("job", (tenant, then), async |tx, &(tenant, then)| {
            let number = new_job(tx, tenant).await?.job_number;
            then().map(|()| number)
        });
        Box::pin(write)
    }
}

#[tokio::test]
async fn writes_that_wait_for_their_tenant_share_a_commit() {
    let Some(server) = server() else { return };
    let fixture = ObservedStore::new(server).await;
    let numbers = fixture.run_together((0..40).map(|_| fixture.job(|| Ok(()))).collect()).await;
    let mut numbers: Vec<String> = numbers.into_iter().map(Result::unwrap).collect();
    numbers.sort();
    assert_eq!(numbers, (1..=40).map(|number| format!("JOB-{number:04}")).collect::<Vec<_>>());
    let groups = lock(&fixture.groups.0).clone();
    assert_eq!(groups.iter().sum::<usize>(), 40, "{groups:?}");
    // However slow the machine is, a second one joins.
    assert!(groups.len() <= 20 && groups.iter().all(|units| *units <= 32), "{groups:?}");
}

#[tokio::test]
async fn a_write_that_returns_an_error_or_panics_is_rolled_back_alone() {
    let Some(server) = server() else { return };
    let fixture = ObservedStore::new(server).await;
    let outcome = |at| match at % 4 {
        1 => || Err(Error::PreconditionFailed),
        3 => || panic!("a fault"),
        _ => || Ok(()),
    };
    let results = fixture.run_together((0..24).map(|at| fixture.job(outcome(at))).collect()).await;
    let mut numbers = Vec::new();
    for (at, result) in results.into_iter().enumerate() {
        match at % 4 {
            1 => assert_eq!(result, Err(Error::PreconditionFailed)),
            3 => assert!(matches!(result, Err(Error::Store(StoreError::Internal(_)))), "{result:?}"),
            _ => numbers.push(result.unwrap()),
        }
    }
    numbers.sort();
    assert_eq!(numbers, (1..=12).map(|number| format!("JOB-{number:04}")).collect::<Vec<_>>());
}

/// A pipelined statement fails after the units of work behind it have begun.
#[tokio::test]
async fn a_statement_that_fails_fails_one_write_of_its_group() {
    let Some(server) = server() else { return };
    let fixture = ObservedStore::new(server).await;
    let tenant = fixture.tenant;
    let create = |at: u32| -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(fixture.store.write("contact", (tenant, at), async |tx, &(tenant, at)| {
            let now = advance_clock(tx, tenant).await?;
            // Every fourth write has an id of its own, and the others have the same one.
            let id = if at.is_multiple_of(4) { tx.env().id(now) } else { Id::new(tenant.0) };
            let contact = Contact { id, created_at: now, updated_at: now, ..Contact::default() };
            Ok(Repository::<Contact>::insert(tx, tenant, &contact).await?)
        }))
    };
    let results = fixture.run_together((0..16).map(create).collect()).await;
    let failed = |result: &&Result<(), Error>| matches!(result, Err(Error::Store(StoreError::Conflict { .. })));
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 5, "{results:?}");
    assert_eq!(results.iter().filter(failed).count(), 11, "{results:?}");
}

#[tokio::test]
async fn the_outcome_of_a_group_is_unknown_when_the_connection_is_lost_at_its_commit() {
    let Some(server) = server() else { return };
    let fixture = ObservedStore::new(server).await;
    let trap = "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER die AFTER INSERT ON jobs DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION die()";
    direct_connection(&fixture.url).await.client.batch_execute(trap).await.unwrap();
    let outcome = |at| if at == 5 { || Err(Error::PreconditionFailed) } else { || Ok(()) };
    let results = fixture.run_together((0..8).map(|at| fixture.job(outcome(at))).collect()).await;
    for (at, result) in results.into_iter().enumerate() {
        match result {
            Err(Error::PreconditionFailed) if at == 5 => {}
            Err(Error::Store(StoreError::OutcomeUnknown(_))) if at != 5 => {}
            other => panic!("{at}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn writes_of_other_tenants_join_when_all_connections_are_busy() {
    let Some(server) = server() else { return };
    let fixture = ObservedStore::with_one_connection(server).await;
    let store = &*fixture.store;
    let mut tenants = vec![fixture.tenant];
    tenants.extend(join_all((0..5).map(|_| new_tenant(store))).await);
    lock(&fixture.groups.0).clear();
    let other = lock_row(&fixture.url, fixture.tenant).await;
    let mut together =
        Box::pin(join_all(tenants.iter().chain(&tenants).map(|tenant| advance_clock_in(store, *tenant))));
    assert!((&mut together).now_or_never().is_none());
    other.client.batch_execute("COMMIT").await.unwrap();
    let times: Vec<Timestamp> = together.await.into_iter().map(Result::unwrap).collect();
    fixture.assert_groups(&[12]);
    // The clocks were stored.
    for (tenant, last) in tenants.into_iter().zip(&times[6..]) {
        assert!(advance_clock_in(store, tenant).await.unwrap() > *last);
    }
}

#[tokio::test]
async fn a_write_that_joins_waits_for_no_row() {
    let Some(server) = server() else { return };
    let fixture = ObservedStore::with_one_connection(server).await;
    let store = &*fixture.store;
    let (busy, free) = (new_tenant(store).await, new_tenant(store).await);
    lock(&fixture.groups.0).clear();
    let (first, elsewhere) = (lock_row(&fixture.url, fixture.tenant).await, lock_row(&fixture.url, busy).await);
    let mut waiting = Box::pin(join_all([busy, busy].map(|tenant| advance_clock_in(store, tenant))));
    let mut together = Box::pin(join_all([fixture.tenant, free].map(|tenant| advance_clock_in(store, tenant))));
    // The first write waits for its row, and the others are behind it in the queue.
    assert!((&mut together).now_or_never().is_none() && (&mut waiting).now_or_never().is_none());
    first.client.batch_execute("COMMIT").await.unwrap();
    assert!(together.await.iter().all(Result::is_ok));
    assert!((&mut waiting).now_or_never().is_none());
    elsewhere.client.batch_execute("COMMIT").await.unwrap();
    assert!(waiting.await.iter().all(Result::is_ok));
    fixture.assert_groups(&[2, 2]);
}

#[tokio::test]
async fn a_write_of_no_tenant_has_a_transaction_of_its_own() {
    let Some(server) = server() else { return };
    let fixture = ObservedStore::with_one_connection(server).await;
    let (store, tenant) = (&*fixture.store, fixture.tenant);
    let used = KeyUse { key_id: Id::nil(), used_at: Timestamp::from_micros(0) };
    let of_none = || {
        store.write("uses", (used, tenant), async |tx, &(used, tenant)| {
            Ok(tx.record_key_uses(&[used]).await.map(|()| tenant)?)
        })
    };
    let other = lock_row(&fixture.url, tenant).await;
    lock(&fixture.groups.0).clear();
    let of_tenant =
        || store.write("lock", tenant, async |tx, &tenant| Ok(tx.lock_tenant(tenant).await.map(|_| tenant)?));
    let writes: Vec<BoxFuture<'_, Result<TenantId, Error>>> = vec![
        Box::pin(of_tenant()),
        Box::pin(of_none()),
        Box::pin(of_none()),
        Box::pin(of_tenant()),
        Box::pin(of_tenant()),
    ];
    let mut together = Box::pin(join_all(writes));
    assert!((&mut together).now_or_never().is_none());
    other.client.batch_execute("COMMIT").await.unwrap();
    assert!(together.await.iter().all(Result::is_ok));
    fixture.assert_groups(&[1, 1, 1, 2]);
}
