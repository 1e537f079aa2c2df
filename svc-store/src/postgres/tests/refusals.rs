//! Databases and poolers that are refused at the start.

use svc_test_support::postgres::Pooler;

use super::*;
use crate::postgres::failure::cannot_connect;

/// The settings of `docs/operations/postgresql.md`, "Connection poolers", in another mode.
fn settings(mode: &str) -> String {
    format!("pool_mode = {mode}\nignore_startup_parameters = options\nserver_login_retry = 1\nquery_wait_timeout = 5\n")
}

/// Starts PgBouncer, and returns it with the URL of a database through it when it takes connections.
async fn pooler(url: &str, settings: &str) -> Option<(Pooler, String)> {
    let pooler = Pooler::start(url, settings)?;
    let through = pooler.url(url);
    let connected = async {
        while PostgresConnection::open(&ConnectOptions::parse(&through).unwrap(), Role::Write).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(20 * SECOND, connected).await.unwrap();
    Some((pooler, through))
}

/// Opens a database as `svc db check` does.
async fn check(url: &str) -> Result<(), OpenError> {
    let vault = Vault::new(SecretKey::new([7; 32]), env());
    PostgresMaintenance::open(url, crate::maintenance_connection::Opening::Read, vault).await.map(drop)
}

#[tokio::test]
async fn a_pooler_that_keeps_no_sessions_is_refused() {
    let Some(server) = server() else { return };
    let round_robin = settings("transaction") + "server_round_robin = 1\nmin_pool_size = 4\n";
    let one = settings("transaction") + "default_pool_size = 1\n";
    for settings in [settings("transaction"), round_robin, one, settings("statement")] {
        let url = server.database();
        let Some((_pooler, through)) = pooler(&url, &settings).await else { return };
        for opened in [
            open_with(&through, Env::system(), options()).await.map(drop),
            crate::migrate(&through).await.map(drop),
            check(&through).await,
        ] {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains("does not keep sessions"), "{settings}: {error}");
            assert!(error.contains("Set pool_mode = session"), "{error}");
        }
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        let tables: i64 = direct_connection(&url).await.client.query_one(tables, &[]).await.unwrap().get(0);
        assert_eq!(tables, 0, "nothing was changed through it");
    }
}

/// Refuses while other processes use the connections of the pooler, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_pooler_that_keeps_no_sessions_is_refused() {
    let Some(server) = server() else { return };
    let Some((_pooler, through)) = pooler(&server.database(), &settings("transaction")).await else { return };
    let busy: Vec<_> = join_all((0..8).map(|_| direct_connection(&through))).await;
    let busy = busy.into_iter().map(|connection| {
        tokio::spawn(async move { while connection.client.simple_query("BEGIN; SELECT 1; COMMIT").await.is_ok() {} })
    });
    let busy: Vec<_> = busy.collect();
    for _ in 0..5 {
        let error = open_with(&through, Env::system(), options()).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("does not keep sessions"), "{error}");
    }
    busy.iter().for_each(tokio::task::JoinHandle::abort);
}

/// A pooler's effect by chance: the session no longer has the statement, or has another one under its name.
#[tokio::test]
async fn a_statement_of_another_session_tells_of_a_pooler_too() {
    let Some(server) = server() else { return };
    let connection = direct_connection(&server.database()).await;
    let statement = connection.client.prepare("SELECT 1").await.unwrap();
    let name = "SELECT name FROM pg_prepared_statements WHERE statement = 'SELECT 1'";
    let rows = connection.client.simple_query(name).await.unwrap();
    let name = rows.iter().find_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let other = format!("PREPARE {} (int) AS SELECT $1", name.unwrap());
    for replaced in ["DEALLOCATE ALL", &other] {
        connection.client.batch_execute(replaced).await.unwrap();
        let error = cannot_connect(&connection.client.query(&statement, &[]).await.unwrap_err()).to_string();
        assert!(error.contains("does not keep sessions"), "{replaced}: {error}");
    }
}

#[tokio::test]
async fn a_pooler_that_keeps_sessions_is_taken() {
    let Some(server) = server() else { return };
    let Some((_pooler, through)) = pooler(&server.database(), &settings("session")).await else { return };
    let stores = join_all((0..4).map(|_| store(&through))).await;
    let tenant = new_tenant(&*stores[0]).await;
    assert!(advance_clock_in(&*stores[3], tenant).await.is_ok());
}

#[tokio::test]
async fn a_database_that_has_no_place_for_every_text_is_refused() {
    let Some(server) = server() else { return };
    let url = server.database();
    let owner = direct_connection(&url).await;
    let (front, _) = url.split_once('?').unwrap();
    for encoding in ["LATIN1", "WIN1252", "EUC_JP", "SQL_ASCII"] {
        let name = format!("{}_{}", front.rsplit('/').next().unwrap(), encoding.to_lowercase());
        let create =
            format!("CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
        owner.client.batch_execute(&create).await.unwrap();
        let url = url.replace(front, &format!("{}/{name}", front.rsplit_once('/').unwrap().0));
        let expected = format!("the encoding of the database must be UTF8, but it is {encoding}");
        let opened = open_with(&url, env(), options()).await.map(drop).unwrap_err().to_string();
        assert!(opened.contains(&expected), "{opened}");
        let migrated = crate::migrate(&url).await.unwrap_err().to_string();
        assert!(migrated.contains(&expected), "{migrated}");
        let checked = check(&url).await.unwrap_err().to_string();
        assert!(checked.contains(&expected), "{checked}");
    }
}
