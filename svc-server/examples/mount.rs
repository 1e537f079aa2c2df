//! The API inside an axum application, under `/business`, beside a route of the application's own.
//!
//! `cargo run -p svc-server --example mount`, then call what it prints.

#![expect(clippy::print_stdout, reason = "an example says where it listens")]

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware;
use axum::routing::get;
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::store::Store;
use svc_core::store::memory::MemoryStore;
use svc_server::api::Peer;
use svc_server::{Api, Settings};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::system()));
    let key = first_key(&*store).await?;
    let app = application(store).into_make_service_with_connect_info::<SocketAddr>();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    println!("curl {url}/");
    println!("curl -H 'Authorization: Bearer {key}' {url}/business/api/v1/ping");
    axum::serve(listener, app).await?;
    Ok(())
}

fn application(store: Arc<dyn Store>) -> Router {
    // axum takes the prefix off before the service sees a request. `mount` puts it back where a client sees it:
    // in Location headers, in what request signatures cover, and in the OpenAPI document.
    let api = Api::new(store, Settings { mount: "/business".to_owned(), ..Settings::default() });
    Router::new()
        .route("/", get(|| async { "The application's own page.\n" }))
        .nest_service("/business", api)
        .layer(middleware::map_request(tell_peer))
}

/// Requests without a valid key are limited by address, so the API has to know it. Behind a reverse proxy, take the
/// address from the header that the proxy sets.
async fn tell_peer(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request) -> Request {
    request.extensions_mut().insert(Peer(peer.ip()));
    request
}

/// A tenant with a key that may write. A real application keeps its store in a database, and the key secret.
async fn first_key(store: &dyn Store) -> Result<String, svc_core::error::Error> {
    let make = store.write("first key", |tx| {
        Box::pin(async move {
            let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?;
            let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
            let key = keys::create(tx, tenant.id, input).await?;
            Ok::<_, svc_core::error::Error>(key.text.reveal().to_owned())
        })
    });
    make.await
}
