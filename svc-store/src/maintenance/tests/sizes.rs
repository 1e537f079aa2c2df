//! Tests of the statistics of a database.

use super::*;
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
}
