//! The command line and a running server on one database, on SQLite and PostgreSQL. The server must see a change made
//! by `svc` at the next request, and must send the event of that change.

mod fixture;
mod steps;

use svc_test_support::database::Database;

use self::fixture::Installation;

#[tokio::test]
async fn every_command_works_beside_a_running_server_on_sqlite() {
    work(Database::new(None).unwrap()).await;
}

#[tokio::test]
async fn every_command_works_beside_a_running_server_on_postgres() {
    let Some(server) = svc_test_support::postgres::server() else { return };
    work(Database::new(Some(&server.database())).unwrap()).await;
}

/// Runs the commands of every noun.
async fn work(database: Database) {
    let mut fixture = Installation::open(database).await;
    steps::tenants(&fixture).await;
    steps::keys(&fixture).await;
    let (contact, hook) = steps::contacts_and_a_webhook(&mut fixture).await;
    steps::invoices(&mut fixture, &contact).await;
    steps::quotes(&mut fixture, &contact).await;
    steps::events_and_deliveries(&mut fixture, &contact, &hook).await;
    steps::webhooks(&mut fixture, &hook).await;
    steps::imports_and_exports(&fixture).await;
    steps::the_audit_log(&fixture, &hook).await;
    steps::the_database(&fixture).await;
    fixture.close().await;
}
