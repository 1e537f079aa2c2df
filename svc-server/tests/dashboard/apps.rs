//! Connected apps: what they may do, what they did, and how their access ends.

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::actor::Actor;
use svc_core::accounts::grants::GrantUse;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::requests::{self, ApiRequest};
use svc_server::Builder;

use super::browser::{Server, authorize, encode, without_labels};

#[tokio::test]
async fn an_owner_sees_a_connected_app_and_ends_its_access() {
    let server = Server::start().await;
    let app = server.app(None, "Route <b>Planner").await;
    let grant = server.connect(server.tenant, &app).await;
    let used_at = server.svc.store().env().now();
    let uses = vec![GrantUse { tenant_id: server.tenant, grant_id: grant, used_at, requests: 1_234 }];
    let used = server.svc.store().write("test", uses, async |tx, uses| Ok(tx.record_grant_uses(uses).await?));
    used.await.unwrap();
    let app_acts = server.svc.acting_as(Actor::App { app: app.id, grant });
    let hook = WebhookCreate::new("https://planner.example/hook".parse().unwrap(), EventSet::All);
    let endpoint = app_acts.account(server.tenant).webhooks().create(hook).await.unwrap();
    server.clock.advance(std::time::Duration::from_secs(2 * 60 * 60));

    let owner = server.signed_in(Role::Owner).await;
    let page = without_labels(&owner.get("/apps").await.text);
    for part in [
        "<bdi>Route &lt;b&gt;Planner</bdi>",
        "<td>see and change all records</td>",
        ">2 h ago</time></td><td>1,234</td>",
        "https://planner.example/hook</a>",
        "Route &lt;b&gt;Planner, last used 2 h ago, is refused at once. Its webhook is deleted.",
        ">Disconnect Route &lt;b&gt;Planner</button>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let viewer = server.signed_in(Role::Viewer).await.get("/apps").await.text;
    assert!(viewer.contains("Planner") && !viewer.contains("Disconnect"), "{viewer}");
    let link = format!("of the app <a href=\"/dashboard/apps#grant-{grant}\"><bdi>Route &lt;b&gt;Planner</bdi></a>");
    assert!(owner.get("/webhooks").await.text.contains(&link));
    let webhook = owner.get(&format!("/webhooks/{}", endpoint.id)).await.text;
    assert!(webhook.contains(link.strip_prefix("of ").unwrap()), "{webhook}");
    let stranger = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Owner)).await;
    assert!(!stranger.get("/apps").await.text.contains("Planner"));

    let ended = owner.post(&format!("/apps/{grant}/disconnect"), "").await;
    assert_eq!(ended.headers[LOCATION], "/dashboard/apps?notice=app-disconnected");
    let page = owner.get("/apps?notice=app-disconnected").await.text;
    assert!(page.contains("The app was disconnected.") && page.contains("No connected apps"), "{page}");
    assert!(server.svc.account(server.tenant).webhooks().get(endpoint.id).await.is_err());
    assert_eq!(owner.post(&format!("/apps/{grant}/disconnect"), "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_audit_log_and_the_request_log_name_the_app() {
    let server = Server::start().await;
    let app = server.app(None, "Route <b>Planner").await;
    let grant = server.connect(server.tenant, &app).await;
    server.acting_as(Actor::App { app: app.id, grant }).contact("ada@example.com").await;
    let store = server.svc.store();
    let request = ApiRequest {
        id: store.env().id(store.env().now()),
        tenant_id: server.tenant,
        request_id: "an-id".to_owned(),
        key_id: grant.uuid().into(),
        method: "GET".to_owned(),
        path: "/api/v1/contacts".to_owned(),
        query: None,
        status: 200,
        code: None,
        failing_fields: None,
        started_at: store.env().now(),
        duration_us: 1_234,
        events: 0,
        first_event_id: None,
        last_event_id: None,
    };
    requests::record(&**store, std::slice::from_ref(&request)).await.unwrap();
    let viewer = server.signed_in(Role::Viewer).await;
    let linked = format!("<a href=\"/dashboard/apps#grant-{grant}\"><bdi>Route &lt;b&gt;Planner</bdi></a>");
    let audit = viewer.get(&format!("/audit?{}", encode(&[("actor", &format!("app:{}", app.id))]))).await.text;
    assert!(audit.contains(&linked) && audit.contains("selected>Route &lt;b&gt;Planner (app)</option>"), "{audit}");
    assert!(audit.contains("ada@example.com") && !audit.contains("created grant"), "{audit}");
    let granted = viewer.get("/audit?kind=grant").await.text;
    assert!(granted.contains(&format!("<a href=\"/dashboard/apps#grant-{grant}\">Route &lt;b&gt;Planner</a>")));
    let requests = viewer.get(&format!("/requests?key={grant}")).await.text;
    let named = "<bdi>Route &lt;b&gt;Planner</bdi><div class=\"soft\">app</div>";
    assert!(requests.contains(named) && requests.contains("selected>Route &lt;b&gt;Planner (app)</option>"));
    assert!(viewer.get(&format!("/requests/{}", request.id)).await.text.contains(named));

    // What it did keeps its name, and nobody learns a name by an id.
    server.svc.account(server.tenant).grants().revoke(grant).await.unwrap();
    let audit = viewer.get("/audit?kind=contact").await.text;
    assert!(audit.contains("<bdi>Route &lt;b&gt;Planner</bdi><div class=\"soft\">app</div>"), "{audit}");
    assert!(viewer.get(&format!("/requests/{}", request.id)).await.text.contains("no longer connected"));
    let stranger = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Owner)).await;
    let audit = stranger.get(&format!("/audit?actor=app:{}", app.id)).await;
    assert_eq!(audit.status, StatusCode::OK);
    assert!(!audit.text.contains("Planner"), "{}", audit.text);
}

#[tokio::test]
async fn without_apps_there_are_no_pages_about_them() {
    let server = Server::start().await;
    let app = server.app(Some(server.tenant), "Route Planner").await;
    let (api, _) = Builder::new(&server.svc).dashboard(true).build();
    let server = server.serving(api);
    let owner = server.signed_in(Role::Owner).await;
    let own = format!("/developer-apps/{}", app.id);
    for path in ["/apps", "/developer-apps", "/developer-apps/new", own.as_str()] {
        assert_eq!(owner.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let deleted = owner.post(&format!("{own}/delete"), "").await;
    assert_eq!(deleted.status, StatusCode::NOT_FOUND);
    let page = owner.send_to(http::Method::GET, &authorize(&app, &[]), "", None).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    for path in ["/", "/audit", "/requests"] {
        let page = owner.get(path).await.text;
        assert!(!page.contains("apps") && !page.contains("grant"), "{path}: {page}");
    }
}
