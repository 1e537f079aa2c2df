//! The tables partitioned by tenant, as `ops/postgres-partitions.sql` makes them. A database that spreads tenants over
//! servers needs what these tests show: every statement that concerns one tenant reads the rows of one partition.

use std::collections::{BTreeMap, BTreeSet};

use svc_postgres_server::{PARTITION, Server};

use super::plans::explained;
use super::*;

/// The statements that concern no single tenant, each by a part of its text, with the reason.
const ALL_PARTITIONS: &[(&str, &str)] = &[
    (
        "FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.key_hash = $1",
        "a request has only its key, which names the tenant",
    ),
    (
        "FROM oauth_tokens k JOIN oauth_apps a ON a.id = k.app_id JOIN tenants t ON t.id = k.tenant_id",
        "a request has only its token, which names the tenant",
    ),
    ("FROM oauth_grants WHERE app_id = $1", "whoever deletes an app ends its access to all tenants"),
    ("FROM members WHERE email = $1", "a person signs in with an email address, which may have several accounts"),
    ("FROM tenants WHERE id > $1 ORDER BY id LIMIT $2", "an operator lists all tenants"),
    ("FROM tenants WHERE id > $1 AND sandbox_of IS NULL ORDER BY id", "an operator lists all accounts but sandboxes"),
    ("FROM tenants t WHERE t.id > $2 ORDER BY t.id LIMIT $3", "retention looks for tenants with old events"),
    ("FROM tenants WHERE id > $1 AND clock > $2", "an operator repairs the clocks of all tenants"),
    ("FROM tenants WHERE overdue_check_at <= $1", "the server looks for tenants for which a day has begun"),
    (
        "FROM tenants LEFT JOIN search_progress",
        "servers look for tenants whose changes are not in the index of searches",
    ),
    ("FROM invoices WHERE id = $1", "an operator names an invoice by its id alone"),
    ("FROM quotes WHERE id = $1", "an operator names a quote by its id alone"),
    ("FROM subscriptions WHERE id = $1", "an operator names a subscription by its id alone"),
    (
        "FROM subscriptions WHERE live = TRUE AND expires_at <= $1",
        "upkeep deletes the subscriptions that nobody keeps, whoever has them",
    ),
    ("FROM deliveries WHERE id = $1", "an operator names a delivery by its id alone"),
    (
        "SELECT tenant_id, subscription_id FROM endpoint_schedule WHERE due_at <= $1",
        "the sender looks for due endpoints of all tenants",
    ),
    (
        "SELECT due_at FROM endpoint_schedule ORDER BY due_at LIMIT 1",
        "the sender sleeps until the next endpoint is due",
    ),
    ("SELECT tenant_id FROM replays WHERE finished_at IS NULL", "the sender looks for bulk replays of all tenants"),
    ("FROM replays WHERE finished_at IS NULL ORDER BY stepped_at, id", "operators see the bulk replays of all tenants"),
    (
        "FROM endpoint_schedule WHERE (tenant_id, subscription_id) > ($1, $2)",
        "after the clock was set back the sender bounds the waits of all endpoints",
    ),
    ("FROM deliveries WHERE status = 'failed' AND tenant_id NOT IN", "metrics count the backlog of all tenants"),
    ("FROM deliveries WHERE status = 'held' AND tenant_id NOT IN", "metrics count the backlog of all tenants"),
    ("FROM deliveries WHERE status = 'pending' LIMIT $1", "metrics count the backlog of all tenants"),
    (
        "DELETE FROM idempotency WHERE (tenant_id, key) IN",
        "upkeep deletes the oldest responses first, whoever has them",
    ),
    (
        "DELETE FROM attempt_counts WHERE (hour, tenant_id, subscription_id, outcome, duration_ms) IN",
        "upkeep deletes the oldest counts first, whoever has them",
    ),
    ("(SELECT count(*) FROM idempotency WHERE created_at < $1)", "an operator asks what would be deleted"),
];

/// Returns the URL of a database with partitioned tables, and a connection to it.
async fn partitioned(server: &Server) -> (String, PostgresConnection) {
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    connection.client.batch_execute("SET statement_timeout = 0").await.unwrap();
    connection.client.batch_execute(PARTITION).await.unwrap();
    (url, connection)
}

#[tokio::test]
async fn a_statement_of_one_tenant_touches_one_partition() {
    let Some(server) = server() else { return };
    let (_, connection) = partitioned(server).await;
    connection.client.batch_execute("SET plan_cache_mode = force_custom_plan").await.unwrap();
    let mut unused = ALL_PARTITIONS.iter().map(|(sql, _)| *sql).collect::<BTreeSet<_>>();
    let mut wrong = Vec::new();
    for (at, sql) in every_statement(Dialect::Postgres).into_iter().enumerate() {
        connection.client.batch_execute(&format!("PREPARE statement_{at} AS {sql}")).await.unwrap();
        let types = format!(
            "SELECT t.type::text FROM pg_prepared_statements, unnest(parameter_types) WITH ORDINALITY AS t (type, place) \
             WHERE name = 'statement_{at}' ORDER BY t.place"
        );
        let types = connection.client.query(&types, &[]).await.unwrap();
        let values = types.iter().map(|row| literal_of(row.get(0))).collect::<Vec<_>>().join(", ");
        let values = if values.is_empty() { values } else { format!("({values})") };
        let plan = explained(&connection, &format!("EXECUTE statement_{at} {values}")).await;
        if max_partitions(&plan) <= 1 {
            continue;
        }
        match ALL_PARTITIONS.iter().find(|(part, _)| sql.contains(part)) {
            Some((part, _)) => {
                unused.remove(part);
            }
            None => wrong.push(format!("{sql}\n{plan}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(unused.is_empty(), "{unused:?} are gone, or concern one tenant");
}

/// Returns the most partitions of one table in a plan.
fn max_partitions(plan: &str) -> usize {
    let mut partitions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for word in plan.split(|char: char| !char.is_ascii_alphanumeric() && char != '_') {
        if let Some((table, number)) = word.rsplit_once("_p")
            && number.len() == 2
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            partitions.entry(table).or_default().insert(number);
        }
    }
    partitions.values().map(BTreeSet::len).max().unwrap_or_default()
}

fn literal_of(parameter: &str) -> String {
    match parameter {
        "uuid" => "'0195a3c8-0000-7000-8000-000000000001'".to_owned(),
        "text" => "'x'".to_owned(),
        "bigint" | "integer" => "1".to_owned(),
        "boolean" => "true".to_owned(),
        "bytea" => r"'\x00'".to_owned(),
        "json" => "'{}'".to_owned(),
        "date" => "'2026-01-01'".to_owned(),
        "timestamp with time zone" => "'2026-01-01T00:00:00Z'".to_owned(),
        other => match other.strip_suffix("[]") {
            Some(item) => format!("ARRAY[{}]::{other}", literal_of(item)),
            None => panic!("a parameter of type {other}"),
        },
    }
}

/// Nothing is lost, and what guards the rows of a table guards those of its partitions.
#[tokio::test]
async fn a_filled_database_can_be_partitioned() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store_before = store(&url).await;
    let (first, second) = (new_tenant(&*store_before).await, new_tenant(&*store_before).await);
    for tenant in [first, second, first] {
        store_before.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await.unwrap();
    }
    drop(store_before);
    let connection = direct_connection(&url).await;
    connection.client.batch_execute(&format!("SET statement_timeout = 0; {PARTITION}")).await.unwrap();

    let store = store(&url).await;
    let number = |tenant| {
        let job = store.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await);
        async { job.await.unwrap().job_number }
    };
    assert_eq!((number(first).await, number(second).await), ("JOB-0003".to_owned(), "JOB-0002".to_owned()));
    for (sql, refusal) in [
        ("DELETE FROM audit_log", "append-only"),
        ("TRUNCATE audit_log_p00", "append-only"),
        ("UPDATE jobs SET status = 'lost'", "jobs_status_check"),
        ("UPDATE jobs SET job_number = 'JOB-0001'", "job_number_key"),
        ("DELETE FROM tenants", "still referenced"),
    ] {
        let error = connection.client.batch_execute(sql).await.unwrap_err();
        let message = format!("{:?}", error.as_db_error().unwrap());
        assert!(message.contains(refusal), "{sql}: {message}");
    }
}

/// A role that may only read and write rows starts a node, also while somebody has locked the table of migrations.
#[tokio::test]
async fn a_current_schema_is_neither_changed_nor_locked() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let other = direct_connection(&url).await;
    other.client.batch_execute("BEGIN; LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE").await.unwrap();
    assert_eq!(timeout(10 * SECOND, crate::migrate(&url)).await.unwrap().unwrap(), Vec::<String>::new());
}
