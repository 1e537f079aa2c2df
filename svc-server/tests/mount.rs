//! The examples of mounted APIs: each answers requests and delivers webhooks. That on actix-web has its test in `examples/`.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

mod application;
#[path = "../examples/axum.rs"]
#[expect(dead_code, reason = "the test calls `serve` alone")]
mod axum;
#[path = "../examples/hyper.rs"]
#[expect(dead_code, reason = "the test calls `serve` alone")]
mod hyper;

use svc_core::prelude::*;
use svc_test_support::{Call, Fixture, TestServer};
use tokio::net::TcpListener;

use self::application::check;

#[tokio::test]
async fn axum_answers_and_delivers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    check(listener.local_addr().unwrap(), async |svc, stop| axum::serve(svc, listener, stop).await.unwrap()).await;
}

#[tokio::test]
async fn hyper_answers_and_delivers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    check(listener.local_addr().unwrap(), async |svc, stop| hyper::serve(svc, listener, stop).await.unwrap()).await;
}

#[tokio::test]
async fn the_tools_of_an_application_are_below_its_path() {
    let fixture = Fixture::new();
    let key = fixture.account().keys().create(KeyCreate::default()).await.unwrap().into();
    let oauth = svc_server::OauthSettings::new("https://app.example.com".parse().unwrap());
    let builder = svc_server::Builder::new(&fixture.svc).oauth(oauth);
    let (api, _) = builder.mount("/business").mcp(["app.example.com"]).build();
    let server = TestServer::new(fixture, api);
    // The application takes its path off.
    let ping = |host: &str| {
        let ping = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let call = Call::absolute(http::Method::POST, "/mcp").json(&ping).header("host", host);
        call.header("accept", "application/json, text/event-stream")
    };
    let refused = server.expect(401, ping("app.example.com")).await;
    let metadata = "https://app.example.com/.well-known/oauth-protected-resource/business/mcp";
    assert_eq!(refused.header("www-authenticate"), Some(format!("Bearer resource_metadata=\"{metadata}\"").as_str()));
    let path = "/.well-known/oauth-protected-resource/business/mcp/readonly";
    let found = server.send(Call::absolute(http::Method::GET, path).header("host", "app.example.com")).await.json();
    assert_eq!(found["resource"], "https://app.example.com/business/mcp/readonly");
    assert_eq!(found["scopes_supported"], serde_json::json!(["read"]));
    server.expect(200, ping("app.example.com").key(&key)).await;
    server.expect(403, ping("other.example.com").key(&key)).await;
}
