//! Processes whose clock differs from the database's.

use std::sync::atomic::{AtomicI64, Ordering};

use svc_core::env::{Clock, SystemEntropy};
use tokio::task::yield_now;

use super::*;

/// The clock of the machine, moved by so many seconds.
#[derive(Clone, Default)]
pub(super) struct MovedClock(Arc<AtomicI64>);

impl MovedClock {
    fn move_to(&self, seconds: i64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(Env::system().now().as_micros() + self.0.load(Ordering::SeqCst) * 1_000_000)
    }
}

pub(super) fn moved(seconds: i64) -> (MovedClock, Env) {
    let clock = MovedClock::default();
    clock.move_to(seconds);
    (clock.clone(), Env::new(clock, SystemEntropy))
}

const YEAR: i64 = 365 * 24 * 60 * 60;

#[tokio::test]
async fn a_process_with_a_wrong_clock_takes_no_writes() {
    let Some(server) = server() else { return };
    let url = server.database();
    let right = store(&url).await;
    let tenant = new_tenant(&*right).await;
    for seconds in [3 * YEAR, 20, -20, -3 * YEAR] {
        let (clock, env) = moved(seconds);
        let wrong = open_with(&url, env, options()).await.unwrap();
        let direction = if seconds > 0 { "ahead of" } else { "behind" };
        for refused in [advance_clock_in(&*wrong, tenant).await.map(drop), wrong.check_writable().map_err(Error::from)]
        {
            let Err(Error::Store(StoreError::ClockSkew(reason))) = refused else { panic!("{refused:?}") };
            assert!(reason.contains(&format!(" s {direction} the database's; at most 10 s")), "{reason}");
        }
        let read = wrong.read("test", tenant, async |tx, &tenant| tenants::get(tx, tenant).await).await;
        assert_eq!(read.unwrap().id, tenant, "reads go on");
        let before = Env::system().now();
        let at = advance_clock_in(&*right, tenant).await.unwrap();
        assert!(at.since(before) < 10 * SECOND, "the tenant's clock has not moved: {at}");
        // The clock is set while the process runs.
        clock.move_to(5);
        assert_eq!(wrong.check_writable(), Ok(()));
        assert!(advance_clock_in(&*wrong, tenant).await.is_ok());
        // It jumps between two comparisons.
        clock.move_to(seconds);
        assert!(advance_clock_in(&*wrong, tenant).await.is_err());
    }
}

/// While a machine sleeps, time passes that it does not count.
#[tokio::test]
async fn a_refused_write_compares_the_clocks_again() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = PostgresStore::open(&url, Env::system(), options()).await;
    let Ok(store) = store else { panic!("the store opens") };
    let slept = Env::system().now().minus(Duration::from_secs(3600));
    store.shared.clock_watch.clock.set(slept, Instant::now(), Duration::ZERO);
    let compared = async {
        while store.check_writable().is_err() {
            yield_now().await;
        }
    };
    timeout(30 * SECOND, compared).await.unwrap();
}

#[tokio::test]
async fn a_simulated_clock_is_not_compared() {
    let Some(server) = server() else { return };
    let store = open_with(&server.database(), env(), options()).await.unwrap();
    assert_eq!(store.check_writable(), Ok(()));
    new_tenant(&*store).await;
}

/// Its time was checked when it was queued, and is taken when the row of its account is free.
#[tokio::test]
async fn a_write_that_waited_while_the_clock_jumped_is_refused() {
    let Some(server) = server() else { return };
    let url = server.database();
    for seconds in [3600, -3600, 3 * YEAR] {
        let (clock, env) = moved(0);
        let store = open_with(&url, env, options()).await.unwrap();
        let tenant = new_tenant(&*store).await;
        let before = advance_clock_in(&*store, tenant).await.unwrap();
        let (other, watcher) = (lock_row(&url, tenant).await, direct_connection(&url).await);
        let mut writes = Box::pin(join_all((0..8).map(|_| advance_clock_in(&*store, tenant))));
        let is_waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
             AND datname = current_database()";
        while watcher.client.query_one(is_waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            assert!((&mut writes).now_or_never().is_none());
            yield_now().await;
        }
        clock.move_to(seconds);
        other.client.batch_execute("COMMIT").await.unwrap();
        for refused in writes.await {
            assert!(matches!(refused, Err(Error::Store(StoreError::ClockSkew(_)))), "{seconds}: {refused:?}");
        }
        clock.move_to(0);
        let after = advance_clock_in(&*store, tenant).await.unwrap();
        assert!(after.since(before) < 60 * SECOND, "{seconds}: {before} to {after}");
    }
}

/// Whatever a machine shows, its reads go by the time of the database.
#[tokio::test]
async fn every_node_goes_by_the_time_of_the_database() {
    let Some(server) = server() else { return };
    let url = server.database();
    let right = store(&url).await;
    let tenant = new_tenant(&*right).await;
    let made = right.write("test", tenant, async |tx, &tenant| {
        let input = KeyCreate { name: None, write: true, expires_in: Some(Duration::from_secs(1800)), signed: false };
        keys_of::create(tx, tenant, input).await
    });
    let key = keys_of::KeyHash::of(made.await.unwrap().text.reveal()).unwrap();
    let authenticate = async |store: &dyn Store| {
        store.read("test", key, async |tx, &key| keys_of::authenticate(tx, key).await.map(drop)).await
    };
    let nodes = join_all([3600, -3600].map(|seconds| open_with(&url, moved(seconds).1, options()))).await;
    let nodes: Vec<Arc<dyn Store>> = nodes.into_iter().map(Result::unwrap).collect();
    for node in nodes.iter().chain([&right]) {
        assert_eq!(authenticate(&**node).await, Ok(()));
        let difference = node.env().now().as_micros() - Env::system().now().as_micros();
        assert!(difference.abs() < 10_000_000, "{difference}");
    }
    let expired = "UPDATE api_keys SET expires_at = now() - interval '1 minute'";
    direct_connection(&url).await.client.batch_execute(expired).await.unwrap();
    for node in nodes.iter().chain([&right]) {
        assert_eq!(authenticate(&**node).await, Err(Error::KeyExpired));
    }
}
