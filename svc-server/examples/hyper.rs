//! The API in a program of one's own on hyper, under the path `/business`.
//!
//! Run it with `cargo run -p svc-examples --bin hyper`, and try the command that it prints.

#![expect(clippy::print_stdout, reason = "the example prints a command to try")]

use std::convert::Infallible;
use std::error::Error;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use svc_core::prelude::*;
use svc_server::Builder;
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

    let accept = async {
        loop {
            let Ok((stream, peer)) = listener.accept().await else { continue };
            let api = api.clone();
            let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                let api = api.clone();
                async move {
                    if let Some(path) = path_within(request.uri(), "/business") {
                        *request.uri_mut() = path;
                    }
                    Ok::<_, Infallible>(api.call(request, peer.ip()).await)
                }
            });
            let connection =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection.map(drop));
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    Ok(background.await?)
}

/// Returns a URI without the path that the API is mounted at.
fn path_within(uri: &hyper::Uri, mount: &str) -> Option<hyper::Uri> {
    uri.path_and_query()?.as_str().strip_prefix(mount)?.parse().ok()
}
