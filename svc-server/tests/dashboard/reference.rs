//! The API reference with a key that the dashboard makes.

use http::StatusCode;
use http::header::CONTENT_SECURITY_POLICY;
use svc_core::accounts::sessions::Role;

use super::browser::Server;

#[tokio::test]
async fn the_reference_gets_a_key_that_reads_for_an_hour() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Developer).await;
    let offer = browser.get("/reference").await;
    assert!(offer.text.contains("The key reads the records of"), "{}", offer.text);
    let keys = || async { server.svc.account(server.tenant).keys().list().await.unwrap() };
    let before = keys().await.len();

    let opened = browser.post("/reference", "").await;
    assert_eq!(opened.status, StatusCode::OK);
    let policy = opened.headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("style-src 'unsafe-inline'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(opened.headers["cache-control"], "no-store");
    let key = opened.text.split_once("data-key=\"").unwrap().1.split('"').next().unwrap();
    assert!(key.starts_with("svc_live_"), "{key}");

    let made = keys().await.pop().unwrap();
    assert_eq!(keys().await.len(), before + 1);
    assert_eq!(made.name.as_deref(), Some("API reference"));
    assert_eq!(made.scopes.len(), 1);
    let lifetime = made.expires_at.unwrap().since(made.created_at);
    assert_eq!(lifetime.as_secs(), 60 * 60);
    // The text of the key is nowhere else.
    assert!(!browser.get("/keys").await.text.contains(key));
}
