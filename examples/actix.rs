//! The example on actix-web answers requests and delivers webhooks, as those in `svc-server/tests/mount.rs` do.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

#[path = "../svc-server/examples/actix.rs"]
#[expect(dead_code, reason = "the test calls `serve` alone")]
mod actix;
#[path = "../svc-server/tests/mount/application.rs"]
mod application;

#[tokio::test]
async fn actix_answers_and_delivers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    application::check(address, async |svc, stop| actix::serve(svc, listener, stop).await.unwrap()).await;
}
