//! What docs/embedding.md promises, on both databases.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::post;
use chrono::{DateTime, NaiveDate, Utc};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{PgPool, SqlitePool};
use svc_core::env::{Env, ManualClock, SystemEntropy};
use svc_core::error::StoreError;
use svc_core::prelude::*;
use svc_core::values::HostPolicy;
use svc_embedding_tests::{Database, Order, OrderError, Shop};
use svc_store::sqlx::PooledStore;
use svc_store::{Options, PostgresStore, SecretKey, SqliteStore};
use svc_webhook_verify::Verifier;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tower_service::Service as _;

/// What a test waits at most for something that is to happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

fn env() -> Env {
    let mut env = Env::system();
    // The receiver of the tests is on this machine.
    env.webhook_hosts = HostPolicy::AllowPrivate;
    env
}

async fn sqlite(env: Env) -> (Database, Svc, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let store = Arc::new(SqliteStore::open(&path, env).unwrap());
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let svc = Svc::new(Arc::clone(&store));
    (Database::Sqlite(pool, store), svc, folder)
}

async fn postgres_store(url: &str, env: Env) -> PostgresStore {
    let options = Options {
        read_connections: 2,
        write_connections: 2,
        secret_key: Some(SecretKey::new([7; 32])),
        ..Options::default()
    };
    PostgresStore::open(url, env, options).await.unwrap()
}

async fn postgres(url: &str, env: Env) -> (Database, Svc) {
    let store = Arc::new(postgres_store(url, env).await);
    let svc = Svc::new(Arc::clone(&store));
    (Database::Postgres(PgPool::connect(url).await.unwrap(), store), svc)
}

async fn receive(
    State(sender): State<mpsc::UnboundedSender<(HeaderMap, Bytes)>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    sender.send((headers, body)).map_or(StatusCode::GONE, |()| StatusCode::NO_CONTENT)
}

/// A webhook receiver: its URL, and what arrives.
async fn receiver() -> (String, mpsc::UnboundedReceiver<(HeaderMap, Bytes)>) {
    let (sender, arrived) = mpsc::unbounded_channel();
    let app = Router::new().route("/", post(receive)).with_state(sender);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, arrived)
}

/// Sends a request to the application, and returns the status and the body of the response.
async fn call(app: &Router, request: Request<Body>) -> (StatusCode, Bytes) {
    let response = app.clone().call(request).await.unwrap();
    (response.status(), response.into_body().collect().await.unwrap().to_bytes())
}

async fn order(app: &Router, order: Value) -> (StatusCode, Bytes) {
    let request = Request::post("/orders").header("Content-Type", "application/json");
    call(app, request.body(Body::from(order.to_string())).unwrap()).await
}

/// Orders over HTTP, receives the webhook, reads the invoice through the API, and closes everything.
async fn shop_takes_orders(database: Database, svc: Svc) {
    let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
    let account = svc.account(tenant);
    let key = account.keys().create(KeyCreate::default()).await.unwrap().text;
    let (url, mut arrived) = receiver().await;
    let kinds = EventSet::Kinds(vec![EventKind::InvoiceSent]);
    let webhook = WebhookCreate::new(WebhookUrl::parse(&url).unwrap(), kinds);
    let webhook = account.webhooks().create(webhook).await.unwrap();
    let shop = Shop::open(svc.clone(), database, tenant).await.unwrap();
    let (app, background) = shop.router();
    let (stop, stopped) = oneshot::channel::<()>();
    let background = tokio::spawn(background.run(async { drop(stopped.await) }));

    // An order is taken, and its invoice is sent to the receiver with a valid signature.
    let (status, body) = order(&app, json!({ "number": 1, "price": "149.50", "due": "2026-04-01" })).await;
    assert_eq!(status, StatusCode::CREATED, "{body:?}");
    let invoice: Invoice = serde_json::from_slice(&body).unwrap();
    assert_eq!(invoice.status, InvoiceStatus::Sent);
    assert_eq!(invoice.due_date.map(NaiveDate::from), NaiveDate::from_ymd_opt(2026, 4, 1));
    let (headers, body) = timeout(PATIENCE, arrived.recv()).await.unwrap().unwrap();
    Verifier::new(webhook.secret.reveal()).unwrap().verify_headers(&headers, &body).unwrap();
    let delivered: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(delivered["event"], "invoice.sent");
    assert_eq!(serde_json::from_value::<Invoice>(delivered["data"].clone()).unwrap(), invoice);

    // The mounted API has the invoice.
    let request = Request::get(format!("/business/api/v1/invoices/{}", invoice.id));
    let request = request.header("Host", "localhost").header("Authorization", format!("Bearer {}", key.reveal()));
    let (status, body) = call(&app, request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{body:?}");

    // An order that the table refuses leaves no invoice, no event and no gap in the numbers.
    let (status, body) = order(&app, json!({ "number": 1, "price": "20", "due": "2026-04-01" })).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body:?}");
    // Nor does one that svc refuses.
    let (status, body) = order(&app, json!({ "number": 2, "price": "1.234", "due": "2026-04-01" })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:?}");
    assert_eq!(shop.orders().await.unwrap(), 1);
    let events = account.events().since(Timestamp::from_micros(0), 100).await.unwrap();
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::InvoiceCreated, EventKind::InvoiceSent, EventKind::InvoiceUpdated]);
    let due = NaiveDate::from_ymd_opt(2026, 5, 1).unwrap();
    let next = shop.take(&Order { number: 2, price: "20".to_owned(), due }).await.unwrap();
    assert_eq!(next.invoice_number, "INV-0002");

    // The work in the background ends when it is asked to, and then the store is closed.
    drop(stop);
    timeout(PATIENCE, background).await.unwrap().unwrap();
    timeout(PATIENCE, svc.close()).await.unwrap();
    assert_eq!(account.settings().await, Err(StoreError::Closed.into()));
    let refused = shop.take(&Order { number: 3, price: "20".to_owned(), due }).await;
    assert!(matches!(refused, Err(OrderError::Svc(Error::Store(StoreError::Closed)))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_takes_orders_on_sqlite() {
    let (database, svc, _folder) = sqlite(env()).await;
    shop_takes_orders(database, svc).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_takes_orders_on_postgres() {
    let Some(server) = svc_test_support::postgres::quick_server() else { return };
    let (database, svc) = postgres(&server.database(), env()).await;
    shop_takes_orders(database, svc).await;
}

/// The facade, the API and the sender run on the pool of the shop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_shares_its_pool() {
    let Some(server) = svc_test_support::postgres::quick_server() else { return };
    let url = server.database();
    let (store, pool) = (Arc::new(postgres_store(&url, env()).await), PgPool::connect(&url).await.unwrap());
    let svc = Svc::new(PooledStore::new(Arc::clone(&store), pool.clone()));
    shop_takes_orders(Database::Postgres(pool, store), svc).await;
}

/// With a clock of the application, times are those that it sets.
async fn a_clock_is_obeyed(open: impl AsyncFnOnce(Env) -> Svc) {
    let start = DateTime::parse_from_rfc3339("2026-03-14T15:09:26Z").unwrap().with_timezone(&Utc);
    let clock = ManualClock::at(Timestamp::try_from(start).unwrap());
    let svc = open(Env::new(clock.clone(), SystemEntropy)).await;
    let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
    clock.advance(Duration::from_secs(60));
    let contact = ContactCreate::new("ada@example.com".parse().unwrap());
    let contact = svc.account(tenant).contacts().create(contact).await.unwrap();
    assert_eq!(DateTime::<Utc>::from(contact.created_at), start + chrono::TimeDelta::seconds(60));
}

#[tokio::test]
async fn a_clock_of_the_application_is_obeyed_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    a_clock_is_obeyed(async |env| Svc::new(SqliteStore::open(&folder.path().join("shop.db"), env).unwrap())).await;
}

#[tokio::test]
async fn a_clock_of_the_application_is_obeyed_on_postgres() {
    let Some(server) = svc_test_support::postgres::quick_server() else { return };
    a_clock_is_obeyed(async |env| Svc::new(postgres_store(&server.database(), env).await)).await;
}

#[tokio::test]
async fn an_application_is_tested_in_memory() {
    let svc = Svc::in_memory();
    let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
    svc.account(tenant).invoices().create(InvoiceCreate::new("25".parse().unwrap())).await.unwrap();
    let events = svc.account(tenant).events().since(Timestamp::from_micros(0), 100).await.unwrap();
    assert_eq!(events[0].kind, EventKind::InvoiceCreated);
}

/// Two shops on one database never see each other's records, and an account of another database is named as such.
#[tokio::test]
async fn an_account_of_another_database_is_not_found() {
    let (here, svc, _folder) = sqlite(env()).await;
    let (_, elsewhere, _other) = sqlite(env()).await;
    let theirs = elsewhere.accounts().create(TenantCreate::named("Hill Electric")).await.unwrap().id;
    let shop = Shop::open(svc, here, theirs).await.unwrap();
    let due = NaiveDate::from_ymd_opt(2026, 5, 1).unwrap();
    let refused = shop.take(&Order { number: 1, price: "20".to_owned(), due }).await;
    assert!(matches!(refused, Err(OrderError::Svc(Error::UnknownTenant(tenant))) if tenant == theirs), "{refused:?}");
    assert_eq!(shop.orders().await.unwrap(), 0);
}
