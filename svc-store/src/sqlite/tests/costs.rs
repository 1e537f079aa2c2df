//! The costs of a unit of work: statements, pages that are written, and instructions.

use std::sync::OnceLock;

use rusqlite::StatementStatus;
use svc_core::store::{DeliveryFilter, DeliveryRepository as _, StoreResult};
use svc_core::values::EventKind;
use svc_core::webhooks::{events, retention};

use super::*;
use crate::column::Param;
use crate::sql::{EachRow, Sql, SqlTx};

/// Counts the statements that run on a connection.
struct Counting<'a> {
    sql: &'a mut dyn Sql,
    statements: &'a AtomicUsize,
}

#[async_trait]
impl Sql for Counting<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        self.statements.fetch_add(1, Ordering::SeqCst);
        self.sql.execute(sql, params).await
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        self.statements.fetch_add(1, Ordering::SeqCst);
        self.sql.query(sql, params, each).await
    }
}

/// The statements are the same on both databases.
#[test]
fn the_statements_of_a_write_do_not_grow_with_its_deliveries() {
    const SUBSCRIPTIONS: u32 = 1000;
    let scratch = Scratch::new();
    let mut connection = scratch.connection();
    let mut env = env();
    env.max_webhooks = SUBSCRIPTIONS;
    let context = context(env);
    let statements = AtomicUsize::new(0);
    let sql = &mut Counting { sql: &mut connection.executor(&context.vault), statements: &statements };
    let mut tx = SqlTx::new(sql, Dialect::Sqlite, &context, &context.delivery_wakeup);
    let write = async {
        let tenant = tenants::create(&mut tx, TenantCreate::named("Test")).await?.id;
        for _ in 0..SUBSCRIPTIONS {
            let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
            crud::create::<WebhookSubscription>(&mut tx, tenant, Input::from_body(body)?).await?;
        }
        let now = advance_clock(&mut tx, tenant).await?;
        statements.store(0, Ordering::SeqCst);
        let stay = serde_json::json!({ "id": 1 });
        events::emit(&mut tx, tenant, now, &[EventKind::StayCreated], &stay).await?;
        let counted = statements.load(Ordering::SeqCst);
        let written = tx.list_deliveries(tenant, &DeliveryFilter::default()).await?.len();
        Ok::<_, Error>((counted, written))
    };
    let (counted, written) = write.now_or_never().unwrap().unwrap();
    assert_eq!(written, SUBSCRIPTIONS as usize);
    assert!(counted <= 50, "{counted} statements");
}

/// The cost of a write is the pages that it writes. An event for many subscriptions does not enter the history of each.
#[test]
fn an_event_for_many_subscriptions_writes_few_pages() {
    const SUBSCRIPTIONS: u32 = 200;
    let scratch = Scratch::new();
    let mut connection = scratch.connection();
    connection.disable_autocheckpoint().unwrap();
    let mut env = env();
    env.max_webhooks = SUBSCRIPTIONS;
    let context = context(env.clone());
    let tenant = Arc::new(OnceLock::new());
    let created = Arc::clone(&tenant);
    let create: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
        let created = Arc::clone(&created);
        Box::pin(async move {
            let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
            for _ in 0..SUBSCRIPTIONS {
                let body = br#"{"url": "https://example.com/", "events": ["*"]}"#;
                crud::create::<WebhookSubscription>(tx, tenant, Input::from_body(body)?).await?;
            }
            created.set(tenant).unwrap();
            Ok(())
        })
    });
    connection.run("create", &create, &context, None).unwrap();
    let history = "
        INSERT INTO events (tenant_id, id, kind, data, created_at) SELECT id, randomblob(16), 'job.created', '{}', 1
            FROM tenants;
        INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, failures, created_at)
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            SELECT s.tenant_id, randomblob(16), e.id, e.kind, s.id, 'succeeded', 1, 0, 1 FROM n, events e, subscriptions s;";
    connection.raw().execute_batch(history).unwrap();
    let before = connection.wal_pages().unwrap();
    let tenant = *tenant.get().unwrap();
    let write: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
        Box::pin(async move {
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::StayCreated], &serde_json::json!({ "id": 1 })).await
        })
    });
    connection.batch("BEGIN").unwrap();
    connection.run("write", &write, &context, None).unwrap();
    connection.batch("COMMIT").unwrap();
    let pages = connection.wal_pages().unwrap() - before;
    assert!(pages < 60, "{pages} pages");
}

/// Ids of deliveries sort like their times, and the table of attempts begins with them.
#[test]
fn the_attempts_of_many_tenants_are_appended_to_a_few_pages() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    connection.disable_autocheckpoint().unwrap();
    let insert = |prefix: &str, each: u32| {
        let sql = format!(
            "INSERT INTO delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, status,
                response_truncated) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50 * {each})
                SELECT CAST(printf('%016d', i % 50) AS BLOB), CAST(x'{prefix}' || randomblob(15) AS BLOB), 1, 1, 1, 204, 0
                FROM n"
        );
        connection.raw().execute_batch(&sql).unwrap();
    };
    connection.batch("PRAGMA foreign_keys = OFF").unwrap();
    insert("01", 100);
    let before = connection.wal_pages().unwrap();
    insert("02", 1);
    let pages = connection.wal_pages().unwrap() - before;
    assert!(pages < 10, "{pages} pages");
}

/// SQLite counts the instructions that its statements run: more or less a dozen for each row that they look at.
#[tokio::test]
async fn the_work_of_retention_grows_like_the_deliveries_of_an_event() {
    async fn work(deliveries: u32, status: &str) -> (u64, u64) {
        let scratch = Scratch::new();
        let connection = scratch.connection();
        let env = env();
        let tenant = TenantId(env.id(env.now()));
        let (subscription, event) = (env.id(env.now()), env.id(env.now()));
        let [tenant_id, subscription, event] = [tenant.0, subscription, event].map(|id| format!("x'{}'", id.simple()));
        let due_at = if status == "pending" { "1" } else { "NULL" };
        let rows = format!(
            "INSERT INTO tenants (id, name, developer_access, time_zone, currency, unique_contact_email, created_at, clock)
                VALUES ({tenant_id}, 'Ada', 'approved', 'UTC', 'AUD', 1, 1, 1);
            INSERT INTO subscriptions (tenant_id, live, id, url, events, enabled, created_at, consecutive_failures, secret,
                updated_at) VALUES ({tenant_id}, 1, {subscription}, 'https://example.com/', '*', 1, 1, 0, x'00', 1);
            INSERT INTO events (tenant_id, id, kind, data, created_at)
                VALUES ({tenant_id}, {event}, 'stay.created', '{{}}', 1);
            INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, failures, last_status,
                next_attempt_at, created_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {deliveries})
                SELECT {tenant_id}, CAST(substr({event}, 1, 9) || randomblob(7) AS BLOB), {event}, 'stay.created', {subscription},
                '{status}', 1, 0, 204, {due_at}, 1 FROM n;
            INSERT INTO delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, status,
                response_truncated) SELECT tenant_id, id, 1, 1, 1, 204, 0 FROM deliveries;"
        );
        connection.raw().execute_batch(&rows).unwrap();
        let context = context(env.clone());
        let mut connection = connection;
        let before = env.now().next();
        let next = Arc::new(std::sync::Mutex::new(Some(svc_core::env::first_id_at(Timestamp::from_micros(0)))));
        let (mut total, mut dearest) = (0, 0);
        loop {
            let Some(from) = *next.lock().unwrap() else { return (total, dearest) };
            let found = Arc::clone(&next);
            let step: UnitOfWork = Box::new(move |tx: &mut dyn Tx| {
                let found = Arc::clone(&found);
                Box::pin(async move {
                    let step = retention::step(tx, tenant, from, before).await?;
                    *found.lock().unwrap() = step.next;
                    Ok(())
                })
            });
            connection.run("step", &step, &context, None).unwrap();
            let instructions = crate::webhooks::retention::STATEMENTS.iter().map(|sql| {
                let statement = connection.raw().prepare_cached(sql).unwrap();
                u64::from(statement.reset_status(StatementStatus::VmStep).unsigned_abs())
            });
            let cost: u64 = instructions.sum();
            total += cost;
            dearest = dearest.max(cost);
        }
    }
    for status in ["succeeded", "pending"] {
        let ((few, _), (many, dearest)) = (work(1_000, status).await, work(16_000, status).await);
        assert!(many < 20 * few, "{status}: {few} instructions for 1,000 deliveries, {many} for 16,000");
        // Only the check that an event has no deliveries left reads all that are kept, once.
        assert!(status == "pending" || dearest < few, "{status}: {dearest} instructions in one step");
    }
}
