//! The examples of mounted APIs: each answers requests and delivers webhooks. That on actix-web has its test in `examples/`.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

mod application;
#[path = "../examples/axum.rs"]
#[expect(dead_code, reason = "the test calls `serve` alone")]
mod axum;
#[path = "../examples/hyper.rs"]
#[expect(dead_code, reason = "the test calls `serve` alone")]
mod hyper;

use svc_core::env::Env;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
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
    use http_body_util::BodyExt as _;

    let svc = Svc::new(MemoryStore::new(Env::system()));
    let account = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
    let key = svc.account(account).keys().create(KeyCreate::default()).await.unwrap();
    let oauth = svc_server::OauthSettings::new("https://app.example.com".parse().unwrap());
    let builder = svc_server::Builder::new(&svc).oauth(oauth);
    let (api, _) = builder.mount("/business").mcp(["app.example.com"]).build();
    // The application takes its path off.
    let ask = async |path: &str, host: &str, key: Option<&str>| {
        let mut request = http::Request::post(path).header("host", host).header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned();
        api.call(request.body(body).unwrap(), [127, 0, 0, 1].into()).await
    };
    let refused = ask("/mcp", "app.example.com", None).await;
    assert_eq!(refused.status(), 401);
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
    let metadata = "https://app.example.com/.well-known/oauth-protected-resource/business/mcp";
    assert_eq!(challenge, format!("Bearer resource_metadata=\"{metadata}\""));
    let path = "/.well-known/oauth-protected-resource/business/mcp/readonly";
    let found = http::Request::get(path).header("host", "app.example.com").body(String::new()).unwrap();
    let found = api.call(found, [127, 0, 0, 1].into()).await.into_body().collect().await.unwrap().to_bytes();
    let found: serde_json::Value = serde_json::from_slice(&found).unwrap();
    assert_eq!(found["resource"], "https://app.example.com/business/mcp/readonly");
    assert_eq!(found["scopes_supported"], serde_json::json!(["read"]));
    let key = key.text.reveal();
    assert_eq!(ask("/mcp", "app.example.com", Some(key)).await.status(), 200);
    assert_eq!(ask("/mcp", "other.example.com", Some(key)).await.status(), 403);
}
