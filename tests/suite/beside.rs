//! The command line beside a running server, on both databases: what the one writes, the other tells at the next
//! request, and sends.

mod desk;
mod steps;

use svc_tests::database::Database;

use self::desk::Desk;

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
    let mut desk = Desk::open(database).await;
    steps::tenants(&desk).await;
    steps::keys(&desk).await;
    let (contact, hook) = steps::contacts_and_a_webhook(&mut desk).await;
    steps::invoices(&mut desk, &contact).await;
    steps::quotes(&mut desk, &contact).await;
    steps::events_and_deliveries(&mut desk, &contact, &hook).await;
    steps::webhooks(&mut desk, &hook).await;
    steps::imports_and_exports(&desk).await;
    steps::the_log_of_changes(&desk, &hook).await;
    steps::the_database(&desk).await;
    desk.close().await;
}
