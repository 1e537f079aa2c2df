//! People whom the application has signed in, and its pages that show the dashboard in a frame.

use http::header::{CONTENT_SECURITY_POLICY, COOKIE};
use http::{Method, StatusCode};
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_server::dashboard::Identity;
use svc_server::{Builder, DashboardSettings, Surfaces};

use super::browser::{Browser, Server};

/// Serves people by the cookie `app`, whose value is their session in the application.
async fn application() -> Server {
    let server = Server::start().await;
    let (tenant, other) = (server.tenant, server.other);
    let builder = Builder::new(&server.svc).dashboard(true).dashboard_identity(move |request| {
        Box::pin(async move {
            match request.headers.get(COOKIE)?.to_str().ok()?.strip_prefix("app=")? {
                "ada-token" => Some(Identity::new(tenant, Role::Owner, "ada@example.com", "ada-token")),
                "bob-token" => Some(Identity::new(other, Role::Viewer, "bob@example.com", "bob-token")),
                "" => Some(Identity::new(tenant, Role::Owner, "eve@example.com", "")),
                _ => None,
            }
        })
    });
    let (api, _) = builder.build();
    server.serving(api)
}

fn browser<'s>(server: &'s Server, token: &str) -> Browser<'s> {
    let mut browser = server.browser();
    browser.cookie = Some(format!("app={token}"));
    browser
}

/// Returns the token in a form of the page of new keys.
async fn csrf(browser: &Browser<'_>) -> String {
    let page = browser.get("/keys/new").await.text;
    page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_application_says_who_asks() {
    let server = application().await;
    let (ada, bob) = (browser(&server, "ada-token"), browser(&server, "bob-token"));
    let page = ada.get("/").await;
    assert!(page.text.contains("Harbour Plumbing") && page.text.contains("ada@example.com"), "{}", page.text);
    assert!(!page.text.contains("/sign-out"), "the application ends its session");
    assert!(bob.get("/").await.text.contains("Hill Electric"));
    assert_eq!(bob.get("/keys/new").await.status, StatusCode::FORBIDDEN);
    assert_eq!(browser(&server, "unknown").get("/").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(browser(&server, "").get("/").await.status, StatusCode::UNAUTHORIZED, "a secret is needed");
    assert!(server.signed_in(Role::Viewer).await.get("/").await.text.contains("viewer@link"), "links work as well");

    let created = ada.send_form("/keys/new", "scopes=read&expires=30", &csrf(&ada).await).await;
    assert_eq!(created.status, StatusCode::OK);
    let log = server.svc.account(server.tenant).audit_log().since(Timestamp::from_micros(0), 10).await.unwrap();
    let entry = log.iter().find(|entry| entry.object_kind == "key").unwrap();
    assert_eq!(entry.actor, "dashboard:ada@example.com");
    assert_eq!(server.svc.dashboard().sessions(Some(server.tenant)).await.unwrap().len(), 1, "that of the link");
}

#[tokio::test]
async fn forms_of_an_application_are_protected() {
    let server = application().await;
    let ada = browser(&server, "ada-token");
    let token = csrf(&ada).await;
    for (token, origin) in [
        (token.as_str(), "https://attacker.example"),
        (token.as_str(), "null"),
        ("", "http://localhost:8080"),
        ("00", "http://localhost:8080"),
    ] {
        let form = format!("scopes=read&expires=30&csrf={token}");
        let refused = ada.send(Method::POST, "/keys/new", &form, Some(origin)).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{origin}");
    }
    assert_eq!(server.svc.account(server.tenant).keys().list().await.unwrap(), []);
}

#[tokio::test]
async fn the_operator_names_who_may_frame_the_pages() {
    let server = Server::start().await;
    for (ancestor, policy) in
        [(None, "frame-ancestors 'none'"), (Some("https://app.example.com"), "frame-ancestors https://app.example.com")]
    {
        let frame_ancestor = ancestor.map(|origin| origin.parse().unwrap());
        let dashboard = Some(DashboardSettings { frame_ancestor, ..DashboardSettings::default() });
        let surfaces = Surfaces { dashboard, ..Surfaces::default() };
        let (api, _) = Builder::new(&server.svc).surfaces(surfaces).build();
        let server = Server {
            server: svc_test_support::TestServer::new(server.fixture.clone(), api),
            transactions: server.transactions.clone(),
            tried: server.tried.clone(),
            ..server
        };
        let page = server.browser().get("/sign-in").await;
        assert!(page.headers[CONTENT_SECURITY_POLICY].to_str().unwrap().ends_with(policy), "{:?}", page.headers);
    }
}
