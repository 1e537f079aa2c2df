//! The tables as `ops/citus.sql` distributes them, on a stand-in that makes partitions in place of shards on servers: every
//! statement that concerns one tenant reads the rows of one. `examples/conformance.rs` is for Citus itself.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join3;
use svc_core::oauth::{self, RevokeReason, published};
use svc_core::store::{ApiKeyRepository as _, GrantRepository as _};
use svc_test_support::postgres::{DISTRIBUTE, DISTRIBUTE_AGAIN};

use super::apps::AppDatabase;
use super::plans::{explained, values};
use super::*;
use crate::postgres::transaction::PostgresTransaction;
use crate::sql::SqlTx;
use crate::test_databases::distributed_database;

/// The statements that concern no single tenant, each by a part of its text, with the reason.
const ALL_PARTITIONS: &[(&str, &str)] = &[
    (
        "FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.key_hash = $1",
        "a request has only its key, which names the tenant; on Citus two statements take its place",
    ),
    (
        "FROM oauth_tokens k JOIN oauth_apps a ON a.id = k.app_id JOIN tenants t ON t.id = k.tenant_id",
        "a request has only its token, which names the tenant; on Citus two statements take its place",
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
    (
        "ON p.tenant_id = t.id AND p.stream_id = $2 WHERE t.clock > COALESCE(p.sent_until, $1) AND t.id > $3 ORDER BY",
        "the sender of the stream of the server looks for accounts that were written to",
    ),
    ("FROM streams s JOIN tenants t", "servers look for subscriptions whose streams have something to send"),
    ("DELETE FROM stream_positions WHERE stream_id = $1", "the stream of the server is deleted with all its positions"),
    (
        "DELETE FROM stream_positions WHERE (tenant_id, stream_id) IN",
        "upkeep deletes the positions whose accounts are gone",
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
    ("DELETE FROM uploads WHERE (tenant_id, id) IN", "upkeep deletes the uploads that expired first, whoever has them"),
    ("(SELECT count(*) FROM idempotency WHERE created_at < $1)", "an operator asks what would be deleted"),
    ("DELETE FROM request_log_kept", "upkeep deletes the requests of before there were partitions, whosever they are"),
];

/// Returns the URL of a database with distributed tables, and a connection to it.
/// Returns `None` if PostgreSQL is not installed.
async fn distributed() -> Option<(String, PostgresConnection)> {
    if !is_installed() {
        return None;
    }
    let url = distributed_database();
    let connection = direct_connection(&url).await;
    Some((url, connection))
}

#[tokio::test]
async fn a_statement_of_one_tenant_touches_one_partition() {
    let Some((_, connection)) = distributed().await else { return };
    connection.client.batch_execute("SET plan_cache_mode = force_custom_plan").await.unwrap();
    let mut unused = ALL_PARTITIONS.iter().map(|(sql, _)| *sql).collect::<BTreeSet<_>>();
    let mut wrong = Vec::new();
    for (at, sql) in every_statement(Dialect::Postgres).into_iter().enumerate() {
        connection.client.batch_execute(&format!("PREPARE statement_{at} AS {sql}")).await.unwrap();
        let values = values(&connection, &format!("statement_{at}")).await;
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

/// Nothing is lost, and what guards the rows of a table guards those of its shards.
#[tokio::test]
async fn a_filled_database_can_be_distributed() {
    let Some(server) = server() else { return };
    let url = server.database();
    let store_before = store(&url).await;
    let (first, second) = (new_tenant(&*store_before).await, new_tenant(&*store_before).await);
    for tenant in [first, second, first] {
        store_before.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await.unwrap();
    }
    drop(store_before);
    let connection = direct_connection(&url).await;
    connection.client.batch_execute(&format!("SET statement_timeout = 0; {DISTRIBUTE}")).await.unwrap();

    let store = store(&url).await;
    let number = |tenant| {
        let job = store.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await);
        async { job.await.unwrap().job_number }
    };
    assert_eq!((number(first).await, number(second).await), ("JOB-0003".to_owned(), "JOB-0002".to_owned()));
    for (sql, refusal) in [
        ("UPDATE jobs SET status = 'lost'", "jobs_status_check"),
        ("UPDATE jobs SET job_number = 'JOB-0001'", "job_number_key"),
        ("DELETE FROM tenants", "still referenced"),
    ] {
        let error = connection.client.batch_execute(sql).await.unwrap_err();
        let message = format!("{:?}", error.as_db_error().unwrap());
        assert!(message.contains(refusal), "{sql}: {message}");
    }
}

/// `ops/citus.sql` decides for each table where its rows live.
#[tokio::test]
async fn every_table_has_its_place() {
    let Some((_, connection)) = distributed().await else { return };
    let tables = "SELECT c.relname::text, d.logicalrelid IS NOT NULL FROM pg_class c \
         LEFT JOIN pg_dist_partition d ON d.logicalrelid = c.oid \
         WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace ORDER BY 1";
    let tables = connection.client.query(tables, &[]).await.unwrap();
    let without = tables.iter().filter(|row| !row.get::<_, bool>(1)).map(|row| row.get::<_, String>(0));
    assert_eq!(
        without.collect::<Vec<_>>(),
        ["pg_dist_partition", "request_windows", "schema_migrations", "settings"],
        "tables that Citus does not know, with that of the stand-in; new ones need a place in ops/citus.sql",
    );
    // Again, as after an upgrade, it changes nothing.
    connection.client.batch_execute(DISTRIBUTE_AGAIN).await.unwrap();
}

/// A join would ask every server for the tenant of the key, and make the commit of each write one of all servers.
#[tokio::test]
async fn a_key_is_looked_up_without_its_tenant_on_citus() {
    let Some(server) = server() else { return };
    let Some((citus, _connection)) = distributed().await else { return };
    for (url, joins) in [(citus, false), (server.database(), true)] {
        let store = PostgresStore::open(&url, env(), options()).await.unwrap();
        let connection = direct_connection(&url).await;
        let context = &store.shared.context;
        let mut transaction = PostgresTransaction::new(&connection, &context.vault, Access::Read);
        let mut tx = SqlTx::new(&mut transaction, Dialect::Postgres, context, &context.delivery_wakeup);
        assert!(tx.credential(&[0; 32]).await.unwrap().is_none());
        assert!(tx.token_credential(&[0; 32]).await.unwrap().is_none());
        for table in ["FROM api_keys", "FROM oauth_tokens"] {
            let of_table = every_statement(Dialect::Postgres).into_iter().filter(|sql| sql.contains(table));
            let asked: Vec<String> = of_table.filter(|sql| connection.prepared(sql).is_some()).collect();
            assert_eq!((asked.len(), asked[0].contains("JOIN tenants")), (1, joins), "{asked:?}");
        }
    }
}

#[tokio::test]
async fn plans_are_not_steered_on_citus_unless_the_operator_says_so() {
    let Some(server) = server() else { return };
    let Some((url, _connection)) = distributed().await else { return };
    let plain = server.database();
    let mode = async |url: &str, planner_settings| {
        let store = PostgresStore::open(url, env(), Options { planner_settings, ..options() }).await.unwrap();
        let connection = PostgresConnection::open(&store.shared.connect_options, Role::Read).await.unwrap();
        connection.client.query_one("SHOW plan_cache_mode", &[]).await.unwrap().get::<_, String>(0)
    };
    for (url, planner_settings, wanted) in [
        (&url, None, "auto"),
        (&url, Some(true), "force_generic_plan"),
        (&plain, None, "force_generic_plan"),
        (&plain, Some(false), "auto"),
    ] {
        assert_eq!(mode(url, planner_settings).await, wanted, "{planner_settings:?}");
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

/// The sender asks for the due endpoints of the accounts of each server. Another one, whose tables do not answer, is not asked.
#[tokio::test]
async fn the_accounts_of_each_server_are_known_and_asked_for_alone() {
    let Some(server) = server() else { return };
    let Some((url, away)) = distributed().await else { return };
    let url = format!("{url}&options=-c%20lock_timeout%3D300ms");
    let store = store(&url).await;
    let mut all = BTreeSet::new();
    // So many that both servers have some: the ids are random.
    for _ in 0..32 {
        let tenant = new_tenant(&*store).await;
        let made = store.write("test", tenant, async |tx, &tenant| {
            let key = KeyCreate { name: None, write: true, expires_in: None, signed: false };
            keys_of::create(tx, tenant, key).await?;
            let input = Input::from_body(br#"{"url": "https://example.com/", "events": ["*"]}"#);
            crud::create::<WebhookSubscription>(tx, tenant, input?).await?;
            new_job(tx, tenant).await
        });
        made.await.unwrap();
        all.insert(tenant);
    }
    let servers = store.servers().unwrap().accounts().await.unwrap();
    assert_eq!(servers.iter().map(|(server, _)| *server).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(servers.iter().flat_map(|(_, accounts)| accounts.clone()).collect::<BTreeSet<_>>(), all);
    // The odd ones are on the second server.
    let locks = [1, 3]
        .into_iter()
        .flat_map(|n| ["endpoint_schedule", "replays", "tenants"].map(|table| format!("{table}_p{n:02}")));
    let lock = format!("BEGIN; LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", locks.collect::<Vec<_>>().join(", "));
    away.client.batch_execute(&lock).await.unwrap();
    assert!(store.read("test", (), async |tx, ()| svc_core::webhooks::engine::poll(tx).await).await.is_err());
    let poll = async |accounts: &[TenantId]| {
        let due = store.read("test", accounts.to_vec(), async |tx, accounts| {
            svc_core::webhooks::engine::poll_of(tx, accounts).await
        });
        due.await.map(|due| due.endpoints.iter().map(|endpoint| endpoint.tenant_id).collect::<BTreeSet<_>>())
    };
    assert_eq!(store.servers().unwrap().accounts().await.unwrap(), servers, "known while one is away");
    assert_eq!(poll(&servers[0].1).await.unwrap(), servers[0].1.iter().copied().collect());
    assert!(poll(&servers[1].1).await.is_err());
    away.client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(poll(&servers[1].1).await.unwrap(), servers[1].1.iter().copied().collect());
    let plain = server.database();
    assert!(self::store(&plain).await.servers().is_none());
}

/// The parts of a partition are distributed before the table is locked.
#[tokio::test]
async fn partitions_are_made_and_dropped_on_citus() {
    let Some((url, connection)) = distributed().await else { return };
    let clock = ManualClock::at(Env::system().now());
    let store = open_with(&url, Env::new(clock.clone(), SeededEntropy::new(1)), options()).await.unwrap();
    let tenant = new_tenant(&*store).await;
    let day = 24 * 60 * 60 * SECOND;
    let mut dropped = 0;
    for _ in 0..20 {
        store.write("test", tenant, async |tx, &tenant| new_job(tx, tenant).await).await.unwrap();
        let (before, mut positions) = (store.env().now().minus(day), svc_core::webhooks::retention::Positions::new());
        let swept = svc_core::webhooks::retention::sweep(&*store, &mut positions, before, false, || async {}).await;
        dropped += swept.unwrap().partitions;
        clock.advance(day);
    }
    assert!(dropped > 3, "{dropped}");
    let plain = "SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
         WHERE i.inhparent = 'events'::regclass AND c.relkind <> 'p'";
    let plain: i64 = connection.client.query_one(plain, &[]).await.unwrap().get(0);
    assert_eq!(plain, 0, "each partition is distributed");
}

/// No foreign key keeps an app whose grants are on other servers.
#[tokio::test]
async fn an_app_that_an_account_is_connecting_is_deleted_with_its_access_on_citus() {
    let Some((url, _connection)) = distributed().await else { return };
    apps::deletes_an_app_that_an_account_is_connecting(AppDatabase::on(url).await).await;
}

/// Upkeep finds the app without a grant, and waits for the account that is connecting it.
#[tokio::test]
async fn an_unused_app_that_an_account_is_connecting_stays_on_citus() {
    let Some((url, connection)) = distributed().await else { return };
    let fixture = AppDatabase::on(url).await;
    let (first, owner) = (fixture.owner().await, fixture.owner().await);
    fixture.allow(&first, fixture.request_of(apps::published("Planner")).await).await.unwrap();
    let unused = "UPDATE oauth_apps SET created_at = created_at - interval '2 days'; DELETE FROM oauth_grants";
    connection.client.batch_execute(unused).await.unwrap();

    let request = fixture.request_of(apps::published("Planner")).await;
    let app = request.app.id;
    let lock = apps::lock_codes(&fixture.url).await;
    let upkeep = async {
        apps::wait_for_locks(&fixture.url, 1).await;
        published::delete_unused(&**fixture.svc.store()).await
    };
    let release = async {
        apps::wait_for_locks(&fixture.url, 2).await;
        lock.client.batch_execute("COMMIT").await.unwrap();
        Ok(())
    };
    try_join3(fixture.allow(&owner, request), upkeep, release).await.unwrap();
    assert_eq!(fixture.svc.apps().get(app).await.map(|app| app.name.to_string()), Ok("Planner".to_owned()));
    let grants = fixture.grants_to(app).await;
    assert_eq!(grants.iter().map(|grant| grant.tenant_id).collect::<Vec<_>>(), [owner.tenant]);
}

/// One that was left by an earlier version, or by hand.
#[tokio::test]
async fn a_grant_whose_app_is_gone_is_revoked() {
    let Some((url, connection)) = distributed().await else { return };
    let fixture = AppDatabase::on(url).await;
    let owner = fixture.owner().await;
    fixture.allow(&owner, fixture.request().await).await.unwrap();
    connection.client.batch_execute("DELETE FROM oauth_apps").await.unwrap();
    let grant = fixture.grants_to(fixture.app.id).await.remove(0);
    let revoke = fixture.svc.store().write("test", (owner.tenant, grant.id), async |tx, &(tenant, id)| {
        oauth::revoke(tx, tenant, id, RevokeReason::Revoked).await
    });
    assert_eq!(revoke.await, Ok(grant.clone()));
    assert_eq!(fixture.grants_to(fixture.app.id).await, Vec::new());
    let codes = connection.client.query_one("SELECT count(*) FROM oauth_codes", &[]).await.unwrap();
    assert_eq!(codes.get::<_, i64>(0), 0);
    let audited = format!("SELECT count(*) FROM audit_log WHERE action = 'revoke' AND object_id = '{}'", grant.id);
    let audited = connection.client.query_one(&audited, &[]).await.unwrap();
    assert_eq!(audited.get::<_, i64>(0), 1);
}
