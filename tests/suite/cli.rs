//! The command line beside a running server, on both databases: what the one writes, the other tells at the next
//! request, and sends.

mod fixture;
mod steps;

use svc_tests::database::Database;

use self::fixture::Fixture;

#[tokio::test]
async fn an_operator_works_beside_a_server_on_sqlite() {
    work(Database::new(None).unwrap()).await;
}

#[tokio::test]
async fn an_operator_works_beside_a_server_on_postgres() {
    let Some(server) = svc_postgres_server::server() else { return };
    work(Database::new(Some(&server.database())).unwrap()).await;
}

/// Every noun of the command line.
async fn work(database: Database) {
    let mut fixture = Fixture::open(database).await;
    steps::tenants(&fixture).await;
    steps::keys(&fixture).await;
    let (contact, hook) = steps::contacts_and_a_webhook(&mut fixture).await;
    steps::invoices(&mut fixture, &contact).await;
    steps::quotes(&mut fixture, &contact).await;
    steps::events_and_deliveries(&mut fixture, &contact, &hook).await;
    steps::webhooks(&mut fixture, &hook).await;
    steps::imports_and_exports(&fixture).await;
    steps::the_log_of_changes(&fixture, &hook).await;
    steps::the_database(&fixture).await;
    fixture.close().await;
}
