//! The query plans of PostgreSQL.

use svc_core::values::Id;

use super::*;
use crate::accounts::{owners, tenants};
use crate::column::Param;
use crate::resources::contacts;
use crate::statements::every_list;
use crate::webhooks::deliveries::List;
use crate::webhooks::{attempts, deliveries, retention, streams};

/// Rows of 3 tenants. The lists select rows of the first. Foreign keys are not checked, for speed.
const ROWS: &str = "
SET session_replication_role = replica;
CREATE FUNCTION tenant(n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS
    $$ SELECT lpad(to_hex(n % 3), 32, '0')::uuid $$;
CREATE FUNCTION id(n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS
    $$ SELECT ('0195a3c80000' || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid $$;
CREATE FUNCTION at(n bigint) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS
    $$ SELECT '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second' $$;
CREATE FUNCTION word(words text[], n bigint) RETURNS text IMMUTABLE LANGUAGE sql AS
    $$ SELECT words[1 + (n / 3) % cardinality(words)] $$;
INSERT INTO contacts (tenant_id, live, id, email, created_at, updated_at, deleted_at)
    SELECT tenant(n), n % 10 > 0, id(n), 'c' || n || '@example.com', at(n), at(n), CASE WHEN n % 10 = 0 THEN at(n) END
    FROM generate_series(1, 60000) n;
INSERT INTO invoices (tenant_id, id, invoice_number, status, due_date, total, currency, created_at, updated_at,
    amount_paid)
    SELECT tenant(n), id(n), 'INV-' || n, word('{draft,sent,viewed,partial,paid,overdue,cancelled}', n),
    CASE WHEN n % 5 > 0 THEN date '2026-01-01' + (n % 365)::int END, 1, 'AUD', at(n), at(n), 0 FROM generate_series(1, 60000) n;
INSERT INTO quotes (tenant_id, id, quote_number, status, total, currency, created_at, updated_at)
    SELECT tenant(n), id(n), 'QUO-' || n, word('{draft,sent,viewed,accepted,declined,expired,converted}', n), 1, 'AUD',
    at(n), at(n) FROM generate_series(1, 60000) n;
INSERT INTO jobs (tenant_id, id, job_number, title, status, created_at, updated_at)
    SELECT tenant(n), id(n), 'JOB-' || n, 'x', word('{quoted,scheduled,in_progress,on_hold,completed,invoiced}', n),
    at(n), at(n) FROM generate_series(1, 60000) n;
INSERT INTO bookings (tenant_id, id, start_time, end_time, status, created_at, updated_at)
    SELECT tenant(n), id(n), at(n), at(n + 1), word('{cancelled,confirmed,completed,no_show}', n), at(n), at(n)
    FROM generate_series(1, 60000) n;
INSERT INTO subscriptions (tenant_id, live, id, url, events, enabled, created_at, consecutive_failures, secret,
    updated_at, deleted_at)
    SELECT tenant(n), n % 10 > 0, id(n), 'https://example.com/', '*', true, at(n), 0, '', at(n),
    CASE WHEN n % 10 = 0 THEN at(n) END FROM generate_series(1, 60000) n;
ANALYZE;
";

/// Rows of more than one page in each table, written together.
const ROWS_OF_FREQUENT_UPDATES: &str = "
SET session_replication_role = replica;
INSERT INTO tenants (id, name, developer_access, time_zone, currency, unique_contact_email, created_at, clock)
    SELECT lpad(to_hex(n), 32, '0')::uuid, repeat('x', 30), 'approved', 'UTC', 'AUD', true, now(), 1
    FROM generate_series(1, 200) n;
INSERT INTO numbers (tenant_id, kind, last) SELECT id, 'invoice', 1 FROM tenants;
INSERT INTO api_keys (key_hash, id, tenant_id, can_write, prefix, created_at, last_used_at)
    SELECT decode(lpad(to_hex(n), 64, '0'), 'hex'), lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, true,
    'svc', now(), now() FROM generate_series(1, 200) n;
INSERT INTO subscriptions (tenant_id, live, id, url, events, enabled, created_at, consecutive_failures, secret,
    updated_at, last_delivery_at)
    SELECT id, true, id, 'https://example.com/', '*', true, now(), 0, '', now(), now() FROM tenants;
INSERT INTO request_windows (subject, bucket, started, used) SELECT id, 'all', now(), 1 FROM tenants;
";

fn literal(param: &Param<'_>) -> String {
    match param {
        Param::Int(value) => value.to_string(),
        Param::Text(text) => format!("'{text}'"),
        Param::Uuid(id) => format!("'{id}'"),
        Param::Time(at) => format!("'{at}'"),
        Param::Date(date) => format!("'{date}'"),
        other => panic!("{other:?}"),
    }
}

/// A page costs O(limit) when the plan reads one index in the requested order, without a scan or a sort.
#[tokio::test]
async fn every_list_reads_an_index_in_order() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    connection.client.batch_execute("SET statement_timeout = 0").await.unwrap();
    connection.client.batch_execute(ROWS).await.unwrap();
    let mut wrong = Vec::new();
    for (at, (name, sql, params)) in every_list(Dialect::Postgres).into_iter().enumerate() {
        let values: Vec<String> = params.iter().map(literal).collect();
        connection.client.batch_execute(&format!("PREPARE list_{at} AS {sql}")).await.unwrap();
        let plan = explained(&connection, &format!("EXECUTE list_{at} ({})", values.join(", "))).await;
        // At most one row has a number, so it needs no order.
        let one_row = plan.contains("_number_key");
        let reads_index = !sorts_all(&sql, &plan) && !["Seq Scan", "Bitmap"].iter().any(|step| plan.contains(step));
        // Every condition except the position is part of the index search, so that no row is read unnecessarily.
        if !(one_row || reads_index && !plan.contains("Filter:")) {
            wrong.push(format!("{name}: {sql}\n{plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A search for a rare text reads the index of trigrams, which the settings of connections alone would not let it.
#[tokio::test]
async fn a_search_reads_the_index_of_trigrams() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store = store(&url).await;
    let connection = direct_connection(&url).await;
    let texts = "SET session_replication_role = replica; SET statement_timeout = 0;
        INSERT INTO search_texts (place, tenant_id, kind, id, text)
            SELECT n, lpad(to_hex(n % 3), 32, '0')::uuid, 'contact', gen_random_uuid(), 'text ' || md5(n::text)
            FROM generate_series(1, 60000) n;
        ANALYZE search_texts";
    connection.client.batch_execute(texts).await.unwrap();
    let rare = "5d41402abc";
    for _ in 0..2 {
        let search = store.read("test", TenantId(uuid::Uuid::nil()), async |tx, &tenant| {
            Ok(tx.records_with_text(tenant, None, rare, 40).await?)
        });
        assert_eq!(search.await.unwrap(), []);
    }
    // The backend reports what it has read when it ends.
    store.close().await;
    let scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'search_texts_by_text'";
    let read = timeout(30 * SECOND, async {
        while connection.client.query_one(scans, &[]).await.unwrap().get::<_, i64>(0) < 2 {}
    });
    read.await.expect("both searches read the index");
}

/// A query about all tenants searches an index for each record or tenant, and scans no table.
#[tokio::test]
async fn questions_to_all_tenants_read_indexes() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    let id = "'00000000-0000-7000-8000-000000000001'";
    let by_history = (retention::TENANTS, format!("{id}, {id}, 1000"), ["events_pkey", "replays_pkey", "tenants_pkey"]);
    let now = "'2026-01-01T00:00:00Z'";
    let by_check = (tenants::TO_CHECK_OVERDUE, format!("{now}, 256, {now}"), ["tenants_by_overdue_check"; 3]);
    let without_account =
        (streams::DELETE_WITHOUT_ACCOUNT, format!("{id}, {id}, 500"), ["stream_positions_pkey", "tenants_pkey", ""]);
    let by_id = owners::statements().into_iter().map(|sql| (sql, id.to_owned(), ["_by_id"; 3]));
    for (at, (sql, values, indexes)) in by_id.chain([by_history, by_check, without_account]).enumerate() {
        connection.client.batch_execute(&format!("PREPARE question_{at} AS {sql}")).await.unwrap();
        let plan = explained(&connection, &format!("EXECUTE question_{at} ({values})")).await;
        assert!(!plan.contains("Seq Scan") && !plan.contains("hashed"), "{sql}\n{plan}");
        assert!(indexes.iter().all(|index| plan.contains(index)), "{sql}\n{plan}");
    }
}

/// A new contact does not read the other contacts of its tenant.
#[tokio::test]
async fn a_contact_is_found_by_its_email_alone_by_indexes() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    for sql in contacts::statements() {
        connection.client.batch_execute(&format!("PREPARE with_email AS {sql}")).await.unwrap();
        let values = "'00000000-0000-7000-8000-000000000001', 'ada@example.com'";
        let plan = explained(&connection, &format!("EXECUTE with_email ({values})")).await;
        assert!(!plan.contains("Seq Scan") && !plan.contains("Sort  (cost"), "{plan}");
        for index in ["contacts_unchanged_by_email", "contacts_changed_by_email"] {
            assert!(plan.contains(index), "{plan}");
        }
        assert_eq!(plan.matches("(lower(email) = ").count(), 2, "{plan}");
    }
}

/// Queries about one endpoint do not read the deliveries of other endpoints.
#[tokio::test]
async fn deliveries_of_an_endpoint_are_found_by_its_index() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    let mut checked = 0;
    let lists = deliveries::lists(Dialect::Postgres, Some(Id::nil()));
    let statements = deliveries::statements().into_iter().chain(attempts::statements());
    for sql in statements.chain(lists.iter().map(|list| list.sql.as_str())) {
        if !sql.contains("subscription_id = $") || !sql.contains(" deliveries") {
            continue;
        }
        checked += 1;
        connection.client.batch_execute(&format!("PREPARE query_{checked} AS {sql}")).await.unwrap();
        let values = values(&connection, &format!("query_{checked}")).await;
        let plan = explained(&connection, &format!("EXECUTE query_{checked} ({values})")).await;
        assert!(plan.contains("deliveries_") && plan.contains("(subscription_id = $"), "{sql}: {plan}");
        assert!(!plan.contains("Seq Scan") && !sorts_all(sql, &plan), "{sql}: {plan}");
    }
    assert!(checked >= 8, "{checked}");
}

/// A list of deliveries by an index costs O(limit): of an endpoint or a tenant, also of those that failed or are held.
#[tokio::test]
async fn lists_of_deliveries_read_an_index_in_order() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    let [of_tenant, of_endpoint] = [None, Some(Id::nil())].map(|id| deliveries::lists(Dialect::Postgres, id));
    for (at, List { sql, indexes }) in of_tenant.into_iter().chain(of_endpoint).enumerate() {
        let indexes = if indexes.is_empty() { &["deliveries_pkey"] } else { indexes };
        connection.client.batch_execute(&format!("PREPARE list_{at} AS {sql}")).await.unwrap();
        let values = values(&connection, &format!("list_{at}")).await;
        let plan = explained(&connection, &format!("EXECUTE list_{at} ({values})")).await;
        let reads_indexes = indexes.iter().all(|index| plan.contains(&format!(" using {index} ")));
        assert!(reads_indexes && !sorts_all(&sql, &plan), "{sql}: {plan}");
    }
}

/// Counting a backlog reads only the deliveries that it counts.
#[tokio::test]
async fn backlogs_are_counted_by_partial_indexes() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    for (at, (sql, index)) in deliveries::BACKLOGS.iter().enumerate() {
        connection.client.batch_execute(&format!("PREPARE backlog_{at} AS {sql}")).await.unwrap();
        let plan = explained(&connection, &format!("EXECUTE backlog_{at} (10000)")).await;
        assert!(plan.contains(index) && !plan.contains("Sort  (cost") && !plan.contains("Bitmap"), "{sql}: {plan}");
    }
}

/// A retention step costs as much as the rows it reads, and so does checking the references to the rows it deletes.
#[tokio::test]
async fn a_retention_step_scans_no_table() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    for (at, sql) in crate::webhooks::retention::STATEMENTS.iter().enumerate() {
        connection.client.batch_execute(&format!("PREPARE step_{at} AS {sql}")).await.unwrap();
        let values = values(&connection, &format!("step_{at}")).await;
        let plan = explained(&connection, &format!("EXECUTE step_{at} ({values})")).await;
        assert!(!plan.contains("Seq Scan") && !plan.contains("Bitmap"), "{sql}: {plan}");
        let finds = plan.matches("deliveries d").count() <= plan.matches("Index").count();
        assert!(finds && plan.contains("Index Cond"), "{sql}: {plan}");
        if sql.contains("deliveries d") {
            assert!(plan.contains("deliveries_pkey"), "{sql}: {plan}");
        }
    }
}

/// A change by a delivery or a request needs no new entry in any index, if its page has room.
#[tokio::test]
async fn frequent_updates_stay_on_their_page() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    connection.client.batch_execute(ROWS_OF_FREQUENT_UPDATES).await.unwrap();
    for (table, update) in [
        ("tenants", "UPDATE tenants SET clock = clock + 1"),
        ("numbers", "UPDATE numbers SET last = last + 1"),
        ("api_keys", "UPDATE api_keys SET last_used_at = now()"),
        ("subscriptions", "UPDATE subscriptions SET consecutive_failures = 1, last_delivery_at = now()"),
        ("request_windows", "UPDATE request_windows SET used = used + 1"),
    ] {
        let counts = format!("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = '{table}'");
        connection.client.batch_execute(&format!("BEGIN; {update}")).await.unwrap();
        let counted = connection.client.query_one(&counts, &[]).await.unwrap();
        connection.client.batch_execute("ROLLBACK").await.unwrap();
        let (updated, on_page): (i64, i64) = (counted.get(0), counted.get(1));
        assert_eq!((updated, on_page), (200, 200), "{table}");
    }
}

/// Tables like queues are vacuumed before most of what is read first in them is dead.
#[tokio::test]
async fn queues_are_vacuumed_early() {
    let Some(server) = server() else { return };
    let url = server.database();
    crate::migrate(&url).await.unwrap();
    let connection = direct_connection(&url).await;
    for table in [
        "api_keys",
        "deliveries_kept",
        "deliveries_ahead",
        "delivery_attempts_kept",
        "delivery_attempts_ahead",
        "endpoint_schedule",
        "events_kept",
        "events_ahead",
        "idempotency",
        "numbers",
        "replays",
        "request_windows",
        "subscriptions",
        "tenants",
        "used_signatures",
    ] {
        let sql = "SELECT option_value::float8 FROM pg_class, pg_options_to_table(reloptions) \
             WHERE oid = $1::text::regclass AND option_name = 'autovacuum_vacuum_scale_factor'";
        let factor: f64 = connection.client.query_one(sql, &[&table]).await.unwrap().get(0);
        assert!(factor <= 0.02, "{table}: {factor}");
    }
}

/// Returns whether a plan sorts more than a page. A union of lists may sort a page of each.
fn sorts_all(sql: &str, plan: &str) -> bool {
    plan.contains("Sort  (cost")
        && !(sql.contains("UNION ALL") && plan.matches("Limit").count() == sql.matches("LIMIT").count())
}

/// Returns a plan, in which indexes of partitions have the names of those of their table.
pub(super) async fn explained(connection: &PostgresConnection, sql: &str) -> String {
    let rows = connection.client.simple_query(&format!("EXPLAIN {sql}")).await.unwrap();
    let lines = rows.iter().filter_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let mut plan = lines.collect::<Vec<_>>().join("\n");
    let names = "SELECT i.inhrelid::regclass::text, i.inhparent::regclass::text FROM pg_inherits i \
         JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relkind = 'i' ORDER BY length(c.relname) DESC";
    for row in connection.client.query(names, &[]).await.unwrap() {
        plan = plan.replace(row.get::<_, &str>(0), row.get(1));
    }
    plan
}

/// Returns values for the parameters of a prepared statement.
pub(super) async fn values(connection: &PostgresConnection, prepared: &str) -> String {
    let types = "SELECT t.type::text FROM pg_prepared_statements, unnest(parameter_types) WITH ORDINALITY AS t (type, place) \
         WHERE name = $1 ORDER BY t.place";
    let types = connection.client.query(types, &[&prepared]).await.unwrap();
    types.iter().map(|row| literal_of(row.get(0))).collect::<Vec<_>>().join(", ")
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
