//! The figures of an account, and those of the service.

use http::Request;
use http::header::{AUTHORIZATION, HOST};
use http_body_util::Full;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::webhooks::statistics::{self, AttemptCounter};

use super::browser::Server;
use super::webhooks::HOSTILE;

#[tokio::test]
async fn the_overview_counts_attempts_and_leads_to_their_deliveries() {
    let server = Server::start().await;
    let (viewer, endpoint) = (server.signed_in(Role::Viewer).await, server.endpoint().await);
    assert!(viewer.get("/").await.text.contains("First steps"));
    let (delivery, failed) = server.failed_delivery(&endpoint).await;
    let mut counter = AttemptCounter::default();
    for _ in 0..1_500 {
        counter.add(server.tenant, endpoint.id, &failed);
    }
    statistics::record(&**server.svc.store(), &counter.take()).await.unwrap();
    server.set_status(&delivery, DeliveryStatus::Failed).await;
    let page = viewer.get("/").await.text;
    assert!(page.contains("1,500") && page.contains("Attempts of the last 24 hours"), "{page}");
    for link in ["/deliveries?within=24h", "/webhooks", "/deliveries?status=failed", "/deliveries?status=held"] {
        assert!(page.contains(&format!("href=\"/dashboard{link}\"")), "{link}: {page}");
    }
    let failed = page.split("status=failed").nth(1).unwrap().split("</a>").next().unwrap();
    assert!(failed.contains("<strong>1</strong>"), "{failed}");
}

#[tokio::test]
async fn the_overview_shows_the_requests_of_each_key_against_its_limit() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let keys = server.svc.account(server.tenant).keys();
    let key = keys.create(KeyCreate { name: Some(HOSTILE.to_owned()), ..KeyCreate::default() }).await.unwrap();
    let limit = |tenant: &mut Tenant| tenant.limits.rate_limit = std::num::NonZeroU32::new(750);
    server.svc.account(server.tenant).change_settings(limit).await.unwrap();
    for _ in 0..3 {
        let request = Request::get("/api/v1/ping").header(HOST, "localhost:8080");
        let request = request.header(AUTHORIZATION, format!("Bearer {}", key.text.reveal()));
        assert_eq!(server.send(request.body(Full::default()).unwrap()).await.status, 200);
    }
    let page = viewer.get("/").await.text;
    assert!(page.contains("3 of 750") && page.contains(&format!("/requests?key={}", key.key.id)), "{page}");
    assert!(!page.contains(HOSTILE), "{page}");
    server.clock.advance(std::time::Duration::from_secs(60));
    assert!(viewer.get("/").await.text.contains("0 of 750"), "a new minute");
    keys.revoke(key.key.id).await.unwrap();
    assert!(!viewer.get("/").await.text.contains("of 750"));
}

#[tokio::test]
async fn operators_see_the_replays_under_way() {
    let server = Server::start().await;
    let operator = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let endpoint = server.endpoint().await;
    let (delivery, _) = server.failed_delivery(&endpoint).await;
    server.set_status(&delivery, DeliveryStatus::Failed).await;
    let replay = ReplayCreate::new(endpoint.id, endpoint.created_at);
    server.svc.account(server.tenant).replays().create(replay).await.unwrap();
    let page = operator.get("/system").await.text;
    assert!(page.contains("Replays under way") && page.contains("0 of 1 (0%)"), "{page}");
    assert!(page.contains(&format!("/dashboard/accounts/{}", server.tenant)), "{page}");
}
