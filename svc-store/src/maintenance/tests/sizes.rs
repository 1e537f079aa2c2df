//! Tests of the statistics of a database.

use svc_test_support::postgres::DISTRIBUTE;

use super::*;
use crate::maintenance::check::check_database;
use crate::maintenance::copy::copy_between;
use crate::maintenance::stats::stats_of;
use crate::migrations::{self, Migration};
use crate::stats;

fn latest(migrations: &[Migration]) -> Option<&'static str> {
    migrations.last().map(|migration| migration.name)
}

#[tokio::test]
async fn both_databases_have_the_same_statistics() {
    let folder = Folder::new();
    let from = folder.filled("svc.db").await;
    let file = stats(&from).await.unwrap();
    assert_eq!((file.kind, file.tables[0]), ("SQLite", ("tenants", 2)));
    assert!(
        file.bytes > 100_000
            && file.oldest_pending.is_some()
            && Some(file.schema.as_str()) == latest(migrations::SQLITE),
        "{file:?}"
    );
    let deliveries = file.tables.iter().find(|(name, _)| *name == "deliveries").map(|(_, rows)| *rows);
    assert_eq!(Some(file.deliveries.iter().map(|(_, count)| count).sum()), deliveries);
    let Some(server) = server() else { return };
    let (url, env) = (server.database(), Env::system());
    let source = open::existing(&from, &env, Opening::Migrate).await.unwrap();
    copy_between(source, on_server(&url, &from).await, false, &env, &mut |_| {}).await.unwrap();
    let there = stats_of(&mut on_server(&url, &from).await).await.unwrap();
    assert_eq!((&there.tables, &there.deliveries), (&file.tables, &file.deliveries));
    assert_eq!((there.kind, there.oldest_pending), ("PostgreSQL", file.oldest_pending));
    assert!(there.bytes > 100_000 && Some(there.schema.as_str()) == latest(migrations::POSTGRES));

    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET statement_timeout = 0; {DISTRIBUTE}")).await.unwrap();
    let mut database = on_server(&url, &from).await;
    let distributed = stats_of(&mut database).await.unwrap();
    assert_eq!((distributed.kind, &distributed.tables), ("PostgreSQL with Citus", &file.tables));
    assert!(distributed.bytes > there.bytes, "{distributed:?}");
    assert_eq!(check_database(&mut database, env.now()).await.unwrap().findings, []);
}
