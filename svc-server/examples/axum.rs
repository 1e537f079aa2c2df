//! The API in an axum application, under the path `/business`.
//!
//! Run it with `cargo run -p svc-examples --bin axum`, and try the command that it prints.

#![expect(clippy::print_stdout, reason = "the example prints a command to try")]

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware;
use axum::routing::get;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use svc_core::prelude::*;
use svc_server::{Builder, Peer};
use tokio::net::TcpListener;

/// Starts the application with an account and a key. It keeps its data in memory; `svc_store::open` keeps it in a database.
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let svc = Svc::in_memory();
    let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?;
    let key = svc.account(tenant.id).keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await?;

    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let url = format!("http://{}/business/api/v1/contacts", listener.local_addr()?);
    println!("curl {url} -H 'Authorization: Bearer {}'", key.text.reveal());
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    serve(svc, listener, stop.boxed().shared()).await
}

pub(crate) async fn serve(
    svc: Svc,
    listener: TcpListener,
    stop: Shared<BoxFuture<'static, ()>>,
) -> Result<(), Box<dyn Error>> {
    let (api, background) = Builder::new(&svc).mount("/business").build();
    let background = tokio::spawn(background.run(stop.clone()));

    let app = Router::new()
        .route("/", get(|| async { "A page of the application.\n" }))
        .nest_service("/business", api)
        .layer(middleware::map_request(add_peer))
        .into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;
    Ok(background.await?)
}

/// Tells the API the address of the client, as it limits requests without a valid key by address. Behind a reverse proxy,
/// take the address from the header that the proxy sets.
async fn add_peer(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request) -> Request {
    request.extensions_mut().insert(Peer(peer.ip()));
    request
}
