//! Conflicts between transactions, lost connections, and restarts of the server.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Barrier;

use super::*;

/// Each transaction locks a tenant that the other one waits for.
#[tokio::test]
async fn a_deadlocked_transaction_runs_again() {
    let Some(server) = server() else { return };
    let store = store(&server.database()).await;
    let tenants = [new_tenant(&*store).await, new_tenant(&*store).await];
    let (runs, both) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
    let writes = [tenants, [tenants[1], tenants[0]]].map(|[first, second]| {
        let (runs, both) = (Arc::clone(&runs), Arc::clone(&both));
        store.write("collides", (first, runs, both, second), async |tx, (first, runs, both, second)| {
            let number = tx.next_number(*first, tenants::NumberKind::Job).await?;
            tx.lock_tenant(*first).await?;
            if runs.fetch_add(1, Ordering::SeqCst) < 2 {
                both.wait().await;
            }
            tx.lock_tenant(*second).await?;
            Ok(number)
        })
    });
    assert_eq!(join_all(writes).await, [Ok(1), Ok(1)], "the number of a rolled-back transaction is used again");
    // On a busy machine it may run again before the other transaction has continued, so there can be more runs.
    assert!(runs.load(Ordering::SeqCst) >= 3);
}

/// Terminates the session that waits for a lock, as soon as there is one.
async fn terminate_waiting_session(connection: &PostgresConnection) {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'";
    let terminated = async { while connection.client.execute(sql, &[]).await.unwrap() == 0 {} };
    timeout(20 * SECOND, terminated).await.unwrap();
}

#[tokio::test]
async fn a_transaction_runs_once_more_when_its_connection_is_lost() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let tenant = new_tenant(&*store).await;
    // There are two connections, as a transaction sees the same snapshot of pg_stat_activity until it ends.
    let (other, operator) = (direct_connection(&url).await, direct_connection(&url).await);
    other.client.batch_execute(&format!("BEGIN; SELECT FROM tenants WHERE id = '{tenant}' FOR UPDATE")).await.unwrap();
    let write = |name| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.write(name, tenant, async |tx, &tenant| new_job(tx, tenant).await).await })
    };
    let lost_twice = write("lost twice");
    terminate_waiting_session(&operator).await;
    terminate_waiting_session(&operator).await;
    let refused = lost_twice.await.unwrap();
    assert!(
        matches!(refused, Err(Error::Store(StoreError::Unavailable(_)))),
        "it does not run a third time: {refused:?}"
    );
    let lost_once = write("lost once");
    terminate_waiting_session(&operator).await;
    other.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(lost_once.await.unwrap().unwrap().job_number, "JOB-0001");
}

#[tokio::test]
async fn the_outcome_is_unknown_when_the_connection_is_lost_at_the_commit() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let tenant = new_tenant(&*store).await;
    let trap = "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER die AFTER INSERT ON jobs DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION die()";
    direct_connection(&url).await.client.batch_execute(trap).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let open = store.write("open", (counted, tenant), async |tx, (counted, tenant)| {
        counted.fetch_add(1, Ordering::SeqCst);
        new_job(tx, *tenant).await
    });
    match open.await {
        Err(Error::Store(StoreError::OutcomeUnknown(_))) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1, "it may have been committed, so it does not run again");
    assert!(advance_clock_in(&*store, tenant).await.is_ok());
}

#[tokio::test]
async fn waiting_for_a_lock_has_a_timeout() {
    let Some(server) = server() else { return };
    let url = server.database();
    let short = format!("{url}&options=-c%20lock_timeout%3D100ms");
    let store = store(&short).await;
    let tenant = new_tenant(&*store).await;
    let other = direct_connection(&url).await;
    other.client.batch_execute(&format!("BEGIN; SELECT FROM tenants WHERE id = '{tenant}' FOR UPDATE")).await.unwrap();
    let refused = timeout(SECOND, advance_clock_in(&*store, tenant)).await.unwrap();
    assert!(matches!(refused, Err(Error::Store(StoreError::Unavailable(_)))), "{refused:?}");
    drop(other);
    assert!(advance_clock_in(&*store, tenant).await.is_ok());
    let setting = direct_connection(&url).await.client.query_one("SHOW statement_timeout", &[]).await.unwrap();
    assert_eq!(setting.get::<_, &str>(0), "10s");
}

#[tokio::test]
async fn waiting_for_a_connection_has_a_timeout() {
    let Some(server) = server() else { return };
    let url = server.database();
    let settings = Options { write_connections: 1, acquire_timeout: Duration::from_millis(200), ..options() };
    let store = open_with(&url, Env::system(), settings).await.unwrap();
    let tenant = new_tenant(&*store).await;
    let other = direct_connection(&url).await;
    other.client.batch_execute(&format!("BEGIN; SELECT FROM tenants WHERE id = '{tenant}' FOR UPDATE")).await.unwrap();
    let mut first = Box::pin(advance_clock_in(&*store, tenant));
    assert!(timeout(Duration::from_millis(50), &mut first).await.is_err());
    let second = timeout(SECOND, advance_clock_in(&*store, tenant)).await.unwrap();
    let text = format!("{second:?}");
    assert!(text.contains("no connection within 200ms: all connections are busy"), "{text}");
    other.client.batch_execute("COMMIT").await.unwrap();
    assert!(first.await.is_ok());
}

/// The number of tasks that write and read while the server is restarted.
const WORKERS: usize = 6;

/// Tasks write and read throughout, and every acknowledged write is stored afterwards.
async fn survive(stop: fn(&svc_test_support::postgres::Server)) {
    let Some(server) = svc_test_support::postgres::another() else { return };
    let settings = Options { acquire_timeout: Duration::from_millis(300), ..options() };
    let store = open_with(&server.database(), Env::system(), settings).await.unwrap();
    let tenant = new_tenant(&*store).await;
    let [done, written, missed] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            let (written, missed) = (Arc::clone(&written), Arc::clone(&missed));
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                while done.load(Ordering::SeqCst) == 0 {
                    match store.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await {
                        Ok(job) => {
                            acknowledged.push(job.id);
                            written.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(Error::Store(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_))) => {
                            missed.fetch_add(1, Ordering::SeqCst);
                        }
                        other => panic!("{other:?}"),
                    }
                    let read = store.read("test", tenant, async |tx, &tenant| Ok(tx.tenant(tenant).await?));
                    assert!(matches!(read.await, Ok(Some(_)) | Err(Error::Store(StoreError::Unavailable(_)))));
                }
                acknowledged
            })
        })
        .collect();
    let server = tokio::task::spawn_blocking(move || {
        while written.load(Ordering::SeqCst) < 50 {
            std::thread::yield_now();
        }
        stop(&server);
        // The server stays stopped until some writes have failed.
        let (before, stopped_at) = (missed.load(Ordering::SeqCst), Instant::now());
        while missed.load(Ordering::SeqCst) < before + 2 * WORKERS {
            assert!(stopped_at.elapsed() < 30 * SECOND, "no write fails");
            std::thread::yield_now();
        }
        server.start();
        server
    });
    let server = server.await.unwrap();
    let started_at = Instant::now();
    while advance_clock_in(&*store, tenant).await.is_err() {
        assert!(started_at.elapsed() < 5 * SECOND, "the store does not reconnect");
    }
    done.store(1, Ordering::SeqCst);
    for worker in workers {
        for id in worker.await.unwrap() {
            let row = store.read("test", (tenant, id), async |tx, &(tenant, id)| {
                Ok(Repository::<Job>::get(tx, tenant, id).await?)
            });
            assert!(row.await.unwrap().is_some(), "an acknowledged write is lost");
        }
    }
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_reconnects_after_a_restart() {
    survive(svc_test_support::postgres::Server::stop).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_reconnects_after_a_crash() {
    survive(svc_test_support::postgres::Server::crash).await;
}
