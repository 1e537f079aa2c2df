//! The partitions of events, deliveries, attempts and logs.

use svc_core::webhooks::retention::{self, Positions};
use svc_core::webhooks::streams::{Stream, StreamKey};

use super::*;
use crate::migrations;

/// Rows of each table that has partitions.
const ROWS: &str = "
SET session_replication_role = replica;
INSERT INTO tenants (id, name, developer_access, time_zone, currency, unique_contact_email, created_at, clock)
    VALUES ('0195a3c8-0000-7000-8000-000000000001', 'Test', 'approved', 'UTC', 'AUD', true, now(), 1);
INSERT INTO events (tenant_id, id, kind, data, created_at)
    SELECT tenants.id, ('0195a3c8-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'job.created', '{}', now()
    FROM tenants, generate_series(1, 100) n;
INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, failures, created_at)
    SELECT tenant_id, id, id, kind, id, 'succeeded', 1, 0, now() FROM events;
INSERT INTO delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, status, response_truncated)
    SELECT tenant_id, id, 1, now(), 1, 200, false FROM deliveries;
INSERT INTO audit_log (tenant_id, id, at, actor, action, object_kind, object_id)
    SELECT tenant_id, id, now(), 'x', 'create', 'job', id FROM events;
INSERT INTO request_log (tenant_id, id, request_id, key_id, method, path, status, started_at, duration_us, events)
    SELECT tenant_id, id, 'x', id, 'GET', '/', 200, now(), 1, 0 FROM events;
SET session_replication_role = origin";

const PARTITIONED: [&str; 5] = ["events", "deliveries", "delivery_attempts", "request_log", "audit_log"];

#[tokio::test]
async fn each_table_of_what_happened_has_partitions_from_the_beginning() {
    let Some(server) = server() else { return };
    let connection = direct_connection(&server.database()).await;
    migrate::apply(&connection.client, migrations::POSTGRES).await.unwrap();
    connection.client.batch_execute(ROWS).await.unwrap();
    let names = async |table| {
        let names = "SELECT name FROM partitions_of($1) ORDER BY 1";
        let names = connection.client.query(names, &[&table]).await.unwrap();
        names.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    for table in PARTITIONED {
        assert_eq!(names(table).await, [format!("{table}_ahead"), format!("{table}_kept")]);
        let rows = connection.client.query_one(&format!("SELECT count(*) FROM {table}_kept"), &[]).await.unwrap();
        assert_eq!(rows.get::<_, i64>(0), 100, "{table}");
    }
    let step = "SELECT prepare_partition(now(), 1, '3 days'); SELECT step_partitions(now(), '-infinity', 1, '3 days')";
    // Each step makes one partition, those of this table last.
    while names("audit_log").await.len() < 3 {
        connection.client.batch_execute(step).await.unwrap();
    }
    let day = &names("audit_log").await[0];
    for refused in [
        "DELETE FROM audit_log",
        "UPDATE audit_log SET actor = 'y'",
        "UPDATE audit_log_kept SET actor = 'y'",
        "UPDATE audit_log_ahead SET actor = 'y'",
        "TRUNCATE audit_log_ahead",
        &format!("TRUNCATE {day}"),
    ] {
        let error = connection.client.batch_execute(refused).await.unwrap_err();
        let message = error.as_db_error().unwrap().message();
        assert!(message.contains("append-only"), "{refused}: {message}");
    }
}

/// The rights that the owner has to give to a role with fewer rights, and that nobody else has.
#[tokio::test]
async fn a_role_without_tables_of_its_own_moves_partitions_if_it_may() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let owner = direct_connection(&url).await;
    owner.client.batch_execute("CREATE ROLE node LOGIN").await.unwrap();
    let node = direct_connection(&url.replace("://svc@", "://node@")).await;
    let moved = "SELECT prepare_partition(now() + interval '9 days', 1, '0'); \
         SELECT step_partitions(now() + interval '9 days', now(), 1, '0')";
    let error = node.client.batch_execute(moved).await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("42501"));
    let granted = "GRANT EXECUTE ON FUNCTION prepare_partition, step_partitions TO node";
    owner.client.batch_execute(granted).await.unwrap();
    node.client.batch_execute(moved).await.unwrap();
}

/// A backup reads tables for hours.
#[tokio::test]
async fn nobody_waits_for_partitions_while_somebody_reads_a_table() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let reader = direct_connection(&url).await;
    reader.client.batch_execute("BEGIN; SELECT 1 FROM deliveries LIMIT 1").await.unwrap();
    let sweep = async || {
        let before = store.env().now();
        retention::sweep(&*store, &mut Positions::new(), before, false, || async {}).await
    };
    assert_eq!(sweep().await.unwrap().partitions, 0);
    let tenant = new_tenant(&*store).await;
    advance_clock_in(&*store, tenant).await.unwrap();
    let count = "SELECT count(*) FROM partitions_of('deliveries')";
    assert_eq!(reader.client.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 2);
    reader.client.batch_execute("COMMIT").await.unwrap();
    sweep().await.unwrap();
    assert_eq!(reader.client.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 3);
}

/// Makes each change of a table take so long.
async fn slow_changes(connection: &PostgresConnection, seconds: &str) {
    let slow = format!(
        "CREATE OR REPLACE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep({seconds}); END'; \
         DROP EVENT TRIGGER IF EXISTS slow; \
         CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION slow()"
    );
    connection.client.batch_execute(&slow).await.unwrap();
}

/// As on Citus, where a change of a table is one of each of its shards. Writes wait for a second at most, and what could not be done
/// ends nothing else; `svc db migrate` does it without the limit, a table at a time.
#[tokio::test]
async fn a_partition_that_takes_too_long_is_not_made_while_nodes_serve() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let owner = direct_connection(&url).await;
    let count = "SELECT count(*) FROM pg_inherits WHERE inhparent IN \
         ('events'::regclass, 'deliveries'::regclass, 'delivery_attempts'::regclass, 'request_log'::regclass)";
    let partitions = async || owner.client.query_one(count, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(partitions().await, 8);
    slow_changes(&owner, "0.4").await;
    let day = 24 * 60 * 60 * SECOND;
    let swept =
        retention::sweep(&*store, &mut Positions::new(), store.env().now().minus(day), false, || async {}).await;
    assert_eq!(swept.unwrap().partitions, 0);
    assert_eq!(partitions().await, 8, "three changes take more than a second");
    let tenant = new_tenant(&*store).await;
    store.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await.unwrap();
    // A person may wait for it.
    let by_hand = open_with(&url, Env::system(), Options { is_short_lived: true, ..options() }).await.unwrap();
    let before = store.env().now().minus(day);
    let step = by_hand.write("test", before, async |tx, &before| {
        let now = tx.env().now();
        tx.prepare_partition(now, before).await?;
        Ok(tx.drop_expired(now, before, before).await?)
    });
    assert!(step.await.unwrap().has_more);
    assert_eq!(partitions().await, 9);
    slow_changes(&owner, "0.05").await;
    crate::migrate(&url).await.unwrap();
    let after = partitions().await;
    assert!(after > 20, "{after}");
    crate::migrate(&url).await.unwrap();
    assert_eq!(partitions().await, after, "they reach a week ahead");
}

/// As while `pg_dump` runs.
#[tokio::test]
async fn a_migration_says_that_a_table_is_locked() {
    let Some(server) = server() else { return };
    let url = server.database();
    let (owner, reader) = (direct_connection(&url).await, direct_connection(&url).await);
    migrate::apply(&owner.client, migrations::POSTGRES).await.unwrap();
    reader.client.batch_execute("BEGIN; LOCK TABLE events IN ACCESS SHARE MODE").await.unwrap();
    let report = crate::migrate_and_report(&url).await.unwrap();
    assert!(report.note.as_deref().is_some_and(|note| note.contains("locked their tables")), "{report:?}");
    reader.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(crate::migrate_and_report(&url).await.unwrap(), crate::MigrationReport::default());
}

/// Rows that belong to a pending delivery stay, table by table.
#[tokio::test]
async fn what_is_pending_outlives_its_partition() {
    let Some(server) = server() else { return };
    let url = server.database();
    let connection = direct_connection(&url).await;
    migrate::apply(&connection.client, migrations::POSTGRES).await.unwrap();
    let day = "1 day";
    let rows = format!("{ROWS}; SET session_replication_role = origin");
    connection
        .client
        .batch_execute(&rows.replace(
            "('0195a3c8-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid",
            "(left(partition_bound(now() + interval '80 hours')::text, 24) || lpad(n::text, 12, '0'))::uuid",
        ))
        .await
        .unwrap();
    let pending = "SET session_replication_role = replica; \
         UPDATE deliveries SET status = 'pending', next_attempt_at = now() WHERE id IN (SELECT id FROM deliveries LIMIT 7)";
    connection.client.batch_execute(pending).await.unwrap();
    let step = format!(
        "SELECT prepare_partition(now() + interval '4 days', 1, '0'); \
         SELECT step_partitions(now() + interval '4 days', now() + interval '30 days', 1, interval '{day}')"
    );
    let consistent = "SELECT (SELECT count(*) FROM delivery_attempts a WHERE NOT EXISTS \
         (SELECT FROM deliveries d WHERE d.id = a.delivery_id)) + (SELECT count(*) FROM deliveries d WHERE NOT EXISTS \
         (SELECT FROM events e WHERE e.id = d.event_id))";
    for _ in 0..40 {
        connection.client.batch_execute(&step).await.unwrap();
        let orphans: i64 = connection.client.query_one(consistent, &[]).await.unwrap().get(0);
        assert_eq!(orphans, 0, "after each step");
    }
    for table in ["events", "deliveries", "delivery_attempts"] {
        let kept = connection.client.query_one(&format!("SELECT count(*) FROM {table}_kept"), &[]).await.unwrap();
        assert_eq!(kept.get::<_, i64>(0), 7, "{table}");
        let all = connection.client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap();
        assert_eq!(all.get::<_, i64>(0), 7, "{table}");
    }
}

/// Events that a stream has still to send are not dropped.
#[tokio::test]
async fn partitions_wait_for_streams() {
    let Some(server) = server() else { return };
    let day = 24 * 60 * 60 * SECOND;
    // After the end of the first partition, two days after the tables are made.
    let start = Env::system().now().checked_add(day * 3).unwrap();
    let clock = ManualClock::at(start);
    let env = Env::new(clock.clone(), SeededEntropy::new(1));
    let store = open_with(&server.database(), env, options()).await.unwrap();
    let tenant = new_tenant(&*store).await;
    let sweep = async || {
        let (before, mut positions) = (store.env().now().minus(day), Positions::new());
        retention::sweep(&*store, &mut positions, before, false, || async {}).await.unwrap().partitions
    };
    sweep().await;
    let stream = Stream::new(StreamKey::SERVER, start);
    let written = store.write("test", (tenant, stream), async |tx, (tenant, stream)| {
        tx.insert_stream(stream).await?;
        let (lease, now) = (uuid::Uuid::max(), tx.env().now());
        tx.claim_stream(StreamKey::SERVER, lease, now, Timestamp::MAX).await?;
        new_job(tx, *tenant).await
    });
    written.await.unwrap();
    for _ in 0..9 {
        clock.advance(day);
        assert_eq!(sweep().await, 0);
    }
    let sent = store.write("test", tenant, async |tx, &tenant| {
        let now = tx.advance_clock(tenant).await?.unwrap_or_default();
        Ok(tx.advance_stream(StreamKey::SERVER, tenant, now).await?)
    });
    sent.await.unwrap();
    assert_eq!(sweep().await, 8);
}
