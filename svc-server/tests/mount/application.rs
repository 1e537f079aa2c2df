//! What is checked of an application that mounts the API. The test of the example on actix-web, in `examples/`, includes
//! this file.

use std::net::SocketAddr;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use svc_core::Svc;
use svc_core::store::memory::MemoryStore;
use svc_test_support::Fixture;
use svc_test_support::fixture::local_env;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use wiremock::matchers::{body_partial_json, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// Ends an application.
pub(crate) type Stop = Shared<BoxFuture<'static, ()>>;

/// Runs an application, creates a contact over HTTP, and waits for its event.
pub(crate) async fn check(address: SocketAddr, serve: impl AsyncFnOnce(Svc, Stop)) {
    let fixture = Fixture::on(MemoryStore::new(local_env())).await;
    let key = fixture.key().await;

    let receiver = MockServer::start().await;
    let (arrived, arrival) = oneshot::channel();
    let arrived = std::sync::Mutex::new(Some(arrived));
    Mock::given(method("POST"))
        .and(body_partial_json(
            serde_json::json!({ "event": "contact.created", "data": { "email": "ada@example.com" } }),
        ))
        .respond_with(move |_: &wiremock::Request| {
            arrived.lock().unwrap().take().map(|arrived| arrived.send(()));
            ResponseTemplate::new(204)
        })
        .mount(&receiver)
        .await;
    fixture.webhook(&receiver.uri(), "*").await;

    let (stop, stopped) = oneshot::channel::<()>();
    let exchange = async {
        let response = post(address, &key.text).await;
        assert!(response.starts_with("HTTP/1.1 201"), "{response}");
        assert!(response.contains("/business/api/v1/contacts/"), "Location has the mount: {response}");
        arrival.await.unwrap();
        drop(stop);
    };
    tokio::join!(serve(fixture.svc.clone(), stopped.map(drop).boxed().shared()), exchange);
}

/// Creates a contact, and returns the whole response.
async fn post(address: SocketAddr, key: &str) -> String {
    let body = r#"{"email": "ada@example.com"}"#;
    let request = format!(
        "POST /business/api/v1/contacts HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}
