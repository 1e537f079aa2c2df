//! Mounts the API in an axum application under `/business`, next to a route of the application.
//!
//! Run `cargo run -p svc-server --example mount`, and then the commands that it prints.

#![expect(clippy::print_stdout, reason = "the example prints commands to try")]

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
    let key = create_key(&*store).await?;
    let app = application(store).into_make_service_with_connect_info::<SocketAddr>();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    println!("curl {url}/");
    println!("curl -H 'Authorization: Bearer {key}' {url}/business/api/v1/ping");
    axum::serve(listener, app).await?;
    Ok(())
}

fn application(store: Arc<dyn Store>) -> Router {
    // axum removes the prefix from the path before it calls the service. With `mount`, the API adds it back where clients
    // see it: in Location headers, in the text that request signatures cover, and in the OpenAPI document.
    let api = Api::new(store, Settings { mount: "/business".to_owned(), ..Settings::default() });
    Router::new()
        .route("/", get(|| async { "A page of the application.\n" }))
        .nest_service("/business", api)
        .layer(middleware::map_request(add_peer))
}

/// Adds the address of the client to a request, as the API limits requests without a valid key by address. Behind a
/// reverse proxy, take the address from the header that the proxy sets.
async fn add_peer(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request) -> Request {
    request.extensions_mut().insert(Peer(peer.ip()));
    request
}

/// Creates a tenant and an API key with the scopes `read` and `write`. A real application keeps its data in a database
/// and its keys secret.
async fn create_key(store: &dyn Store) -> Result<String, svc_core::error::Error> {
    let key = store.write("create key", |tx| {
        Box::pin(async move {
            let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?;
            let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
            let key = keys::create(tx, tenant.id, input).await?;
            Ok::<_, svc_core::error::Error>(key.text.reveal().to_owned())
        })
    });
    key.await
}
