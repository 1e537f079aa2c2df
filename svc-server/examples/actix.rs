//! The API in an actix-web application, under the path `/business`.
//!
//! Run it with `cargo run -p svc-examples --features actix --bin actix`, and try the command that it prints.

#![expect(clippy::print_stdout, reason = "the example prints a command to try")]

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use actix_web::body::MessageBody;
use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use http_body_util::{BodyExt as _, Full};
use svc_core::prelude::*;
use svc_server::{Api, Builder};

/// Starts the application with an account and a key. It keeps its data in memory; `svc_store::open` keeps it in a database.
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let svc = Svc::in_memory();
    let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?;
    let key = svc.account(tenant.id).keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await?;

    let listener = TcpListener::bind("127.0.0.1:8080")?;
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

    let app = move || {
        App::new()
            .app_data(web::Data::new(api.clone()))
            .app_data(web::PayloadConfig::new(svc_server::api::MAX_BODY + 1))
            .route("/", web::get().to(|| async { "A page of the application.\n" }))
            .route("/business/{path:.*}", web::to(call))
    };
    let server = HttpServer::new(app).workers(2).disable_signals().listen(listener)?.run();
    let handle = server.handle();
    tokio::spawn(stop.then(move |()| async move { handle.stop(true).await }));
    server.await?;
    Ok(background.await?)
}

/// Passes a request on. actix-web has types of its own for requests and responses, with the types of an older version of
/// the crate http in them.
async fn call(
    request: HttpRequest,
    body: Bytes,
    api: web::Data<Api>,
) -> Result<HttpResponse<impl MessageBody>, Box<dyn Error>> {
    let peer = request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip());
    let target = request.uri().to_string();
    let mut passed = http::Request::builder()
        .method(request.method().as_str())
        .uri(target.strip_prefix("/business").unwrap_or(&target));
    for (name, value) in request.headers() {
        passed = passed.header(name.as_str(), value.as_bytes());
    }
    let (head, body) = api.call(passed.body(Full::new(body))?, peer).await.into_parts();
    let mut response = HttpResponse::build(StatusCode::from_u16(head.status.as_u16())?);
    for (name, value) in &head.headers {
        response.append_header((name.as_str(), value.as_bytes()));
    }
    Ok(response.body(body.collect().await?.to_bytes()))
}
