//! The partitions of events, deliveries, attempts and logs.

use svc_core::webhooks::retention::{self, Positions};
use svc_core::webhooks::streams::{Stream, StreamKey};

use super::*;
use crate::migrations;

/// Rows of a database from before there were partitions.
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
async fn a_filled_database_gets_partitions_and_loses_nothing() {
    let Some(server) = server() else { return };
    let url = server.database();
    let connection = direct_connection(&url).await;
    let first = migrations::POSTGRES.iter().position(|migration| migration.name == "0035_bounds_of_history").unwrap();
    migrate::apply(&connection.client, &migrations::POSTGRES[..first]).await.unwrap();
    connection.client.batch_execute(ROWS).await.unwrap();
    let definitions = "SELECT pg_get_indexdef(indexrelid) FROM pg_index \
         WHERE indrelid::regclass::text = ANY ($1::text[]) AND NOT indisprimary ORDER BY 1";
    let indexes = async || {
        let rows = connection.client.query(definitions, &[&PARTITIONED.to_vec()]).await.unwrap();
        rows.iter().map(|row| row.get::<_, String>(0).replace(" ON ONLY ", " ON ")).collect::<Vec<_>>()
    };
    let mut indexes_before = indexes().await;
    crate::migrate(&url).await.unwrap();
    // Its key has the tenant now.
    indexes_before.retain(|index| !index.contains("request_log_of_tenant"));
    assert_eq!(indexes().await, indexes_before);

    for table in PARTITIONED {
        let rows = connection.client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap();
        assert_eq!(rows.get::<_, i64>(0), 100, "{table}");
        let partitions = "SELECT name FROM partitions_of($1) ORDER BY 1";
        let partitions = connection.client.query(partitions, &[&table]).await.unwrap();
        let names: Vec<String> = partitions.iter().map(|row| row.get(0)).collect();
        assert_eq!(names, [format!("{table}_ahead"), format!("{table}_kept")]);
    }
    connection.client.batch_execute("SELECT move_partitions(now(), now(), 1)").await.unwrap();
    for refused in [
        "DELETE FROM audit_log",
        "UPDATE audit_log SET actor = 'y'",
        "UPDATE audit_log_kept SET actor = 'y'",
        "UPDATE audit_log_ahead SET actor = 'y'",
        "TRUNCATE audit_log_ahead",
    ] {
        let error = connection.client.batch_execute(refused).await.unwrap_err();
        let message = error.as_db_error().unwrap().message();
        assert!(message.contains("append-only"), "{refused}: {message}");
    }
}

/// What the owner has to let a role with fewer rights do, and what nobody else may.
#[tokio::test]
async fn a_role_without_tables_of_its_own_moves_partitions_if_it_may() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let owner = direct_connection(&url).await;
    owner.client.batch_execute("CREATE ROLE node LOGIN").await.unwrap();
    let node = direct_connection(&url.replace("://svc@", "://node@")).await;
    let moved = "SELECT move_partitions(now() + interval '9 days', now(), 1)";
    let error = node.client.batch_execute(moved).await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("42501"));
    owner.client.batch_execute("GRANT EXECUTE ON FUNCTION move_partitions TO node").await.unwrap();
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
        store.write("test", before, async |tx, &before| Ok(tx.drop_expired(before, before, before).await?)).await
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

/// What a stream has still to send is not dropped.
#[tokio::test]
async fn partitions_wait_for_streams() {
    let Some(server) = server() else { return };
    let day = 24 * 60 * 60 * SECOND;
    // After the end of the first partition, which begins when the tables became partitions.
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
        let now = tx.env().now();
        Ok(tx.advance_stream(StreamKey::SERVER, tenant, now).await?)
    });
    sent.await.unwrap();
    assert_eq!(sweep().await, 1);
}
