//! The API reference with a key that the dashboard makes.

use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_SECURITY_POLICY;
use svc_core::accounts::dashboard_links::DashboardLinkCreate;
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

/// The keys of the reference are a share of those that an account may have, which owners alone make.
#[tokio::test]
async fn twenty_keys_of_the_reference_work_at_a_time() {
    const SHARE: usize = 20;
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    for _ in 0..SHARE {
        assert_eq!(developer.post("/reference", "").await.status, StatusCode::OK);
    }
    let keys = async || server.svc.account(server.tenant).keys().list().await.unwrap();
    let another = server.signed_in(Role::Developer).await;
    for browser in [&developer, &another] {
        let refused = browser.post("/reference", "").await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert!(refused.text.contains("20 keys of the API reference work at this moment"), "{}", refused.text);
        assert!(!refused.text.contains("svc_live_"), "{}", refused.text);
    }
    assert_eq!(keys().await.len(), SHARE, "a refused key is not stored");
    let other = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Developer)).await;
    assert_eq!(other.post("/reference", "").await.status, StatusCode::OK, "each account has its own share");

    server.svc.account(server.tenant).keys().revoke(keys().await[0].id).await.unwrap();
    assert_eq!(developer.post("/reference", "").await.status, StatusCode::OK, "one was revoked");
    assert_eq!(developer.post("/reference", "").await.status, StatusCode::CONFLICT);
    server.clock.advance(Duration::from_secs(60 * 60 + 1));
    let later = server.signed_in(Role::Developer).await;
    assert_eq!(later.post("/reference", "").await.status, StatusCode::OK, "all have ended");
}
