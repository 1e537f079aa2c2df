//! Tests of the writer: groups of writes, and checkpoints beside them.

use super::*;

#[tokio::test]
async fn queued_writes_share_a_commit_and_each_has_its_own_result() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    let writes = (0..100_usize).map(|n| {
        let store = &store;
        async move {
            store
                .write("test", (tenant, n), async |tx, &(tenant, n)| {
                    let at = tx.advance_clock(tenant).await?.ok_or(Error::NotFound)?;
                    if n % 3 == 0 { Err(Error::PreconditionFailed) } else { Ok(at) }
                })
                .await
        }
    });
    let results = join_all(writes).await;
    let times: HashSet<Timestamp> = results.iter().filter_map(|result| result.as_ref().ok()).copied().collect();
    assert_eq!(times.len(), 66, "a unit of work that fails rolls back only itself");
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 34);
    let last = store.write("test", tenant, async |tx, &tenant| Ok(tx.advance_clock(tenant).await?)).await.unwrap();
    assert!(times.iter().all(|time| Some(*time) < last));
}

/// Most errors come before the first change. So units of work become savepoints only when one has failed after a change.
#[tokio::test]
async fn a_unit_of_work_that_fails_after_a_change_leaves_none_and_those_before_it_run_again() {
    let scratch = Scratch::new();
    let tenant = new_tenant(&*scratch.store()).await;
    let connection = scratch.connection();
    let (queue, mut units) = (Queue::new(), Vec::new());
    // Whether it makes a change other than of the clock, and whether it fails.
    for (changes, fails) in [(false, true), (true, false), (true, true), (true, false), (true, true), (true, false)] {
        let (runs, (result_sender, result)) = (Arc::<AtomicUsize>::default(), oneshot::channel());
        let counted = Arc::clone(&runs);
        let work: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                tx.advance_clock(tenant).await?;
                if changes {
                    tx.insert_tenant(&named(tx.env(), "Test")).await?;
                }
                if fails { Err(Error::PreconditionFailed) } else { Ok(()) }
            })
        });
        queue.push(QueuedWork { name: "test", work, result_sender, caller: Weak::new() }).unwrap();
        units.push((runs, result));
    }
    queue.close();
    let pool = ConnectionPool::new(scratch.path.clone(), Some(pause_while_busy), 0).unwrap();
    writer::run(connection, &pool, Checkpointer::new().0, &queue, &context(env()));
    let mut outcomes = Vec::new();
    for (runs, result) in units {
        outcomes.push((runs.load(Ordering::SeqCst), result.await.unwrap().is_ok()));
    }
    assert_eq!(outcomes, [(1, false), (2, true), (1, false), (1, true), (1, false), (1, true)]);
    let tenants: i64 =
        scratch.connection().raw().query_row("SELECT count(*) FROM tenants", [], |row| row.get(0)).unwrap();
    assert_eq!(tenants, 1 + 3);
}

#[tokio::test]
async fn a_full_database_refuses_writes_and_loses_none() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let tenant = new_tenant(&*store).await;
    drop(store);
    let full = SqliteConnection::open(&scratch.path).unwrap();
    let pages: i64 = full.raw().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    full.raw().query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    let (queue, mut results) = (Queue::new(), Vec::new());
    for n in 0..64 {
        results.push(push_tenant(&queue, format!("{n}{}", "x".repeat(2000))));
    }
    queue.close();
    let pool = ConnectionPool::new(scratch.path.clone(), Some(pause_while_busy), 0).unwrap();
    writer::run(full, &pool, Checkpointer::new().0, &queue, &context(env()));
    let results = join_all(results).await;
    let acknowledged = results.iter().filter(|result| matches!(result, Ok(Ok(())))).count();
    assert!(acknowledged < 64, "the database never filled up");
    let store = scratch.store();
    let stored = store.read("test", (), async |tx, ()| Ok(tx.tenants(None, 1_000, false).await?)).await.unwrap();
    assert_eq!(stored.len(), acknowledged + 1);
    assert!(stored.iter().any(|row| row.id == tenant));
}

/// Queues a write that adds a tenant with this name.
fn push_tenant(queue: &Queue, name: String) -> oneshot::Receiver<Result<(), Error>> {
    let (result_sender, result) = oneshot::channel();
    let work: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
        let tenant = named(tx.env(), &name);
        Box::pin(async move { Ok(tx.insert_tenant(&tenant).await?) })
    });
    queue.push(QueuedWork { name: "add", work, result_sender, caller: Weak::new() }).unwrap();
    result
}

#[tokio::test]
async fn commits_wait_for_no_checkpoint_beside_them_and_the_log_becomes_short_again() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    connection.disable_autocheckpoint().unwrap();
    let reader = SqliteConnection::open_read_only(&scratch.path).unwrap();
    let pool = Arc::new(ConnectionPool::new(scratch.path.clone(), Some(pause_while_busy), 0).unwrap());
    let (checkpointer, requests) = Checkpointer::new();
    let queue = Arc::new(Queue::new());
    let (writers_pool, writers_queue) = (Arc::clone(&pool), Arc::clone(&queue));
    let writer = std::thread::spawn(move || {
        writer::run(connection, &writers_pool, checkpointer, &writers_queue, &context(env()));
    });
    // Nobody makes the checkpoint that the writer asks for.
    while reader.wal_pages().unwrap() < 2 * writer::CHECKPOINT_PAGES {
        push_tenant(&queue, "x".repeat(4_000_000)).await.unwrap().unwrap();
    }
    let checkpoints = std::thread::spawn(move || checkpointer::run(&pool, &requests));
    let mut commits = 0;
    while reader.wal_pages().unwrap() >= writer::CHECKPOINT_PAGES {
        push_tenant(&queue, commits.to_string()).await.unwrap().unwrap();
        commits += 1;
        assert!(commits < 100_000, "the log was never emptied");
    }
    queue.close();
    writer.join().unwrap();
    checkpoints.join().unwrap();
    let tenants: i64 = reader.raw().query_row("SELECT count(*) FROM tenants", [], |row| row.get(0)).unwrap();
    assert!(tenants > commits);
}

fn named(env: &Env, name: &str) -> tenants::Tenant {
    let now = env.now();
    tenants::Tenant {
        id: TenantId(env.id(now)),
        name: name.to_owned(),
        developer_access: tenants::DeveloperAccess::Approved,
        time_zone: svc_core::values::TimeZone::UTC,
        currency: svc_core::values::Currency::AUD,
        address: None,
        tax_number: None,
        days_until_due: None,
        payment_details: None,
        unique_contact_email: true,
        limits: svc_core::accounts::limits::RateLimits::default(),
        max_webhooks: None,
        created_at: now,
        sandbox_of: None,
        sandbox_id: None,
    }
}
