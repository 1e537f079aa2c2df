//! Signing in, and how a session ends.

use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_server::Builder;

use super::browser::{ORIGIN_URL, Server, encode};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn opening_a_link_does_not_use_it_up() {
    let server = Server::start().await;
    let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Viewer)).await;
    let mut browser = server.browser();
    let url = link.url("http://localhost:8080");
    let path = url.strip_prefix("http://localhost:8080/dashboard").unwrap();
    for _ in 0..3 {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.text.contains(link.token.reveal()) && page.text.contains("Sign in"), "{}", page.text);
        assert!(page.headers.get(SET_COOKIE).is_none());
    }
    let signed_in = browser.sign_in(link.token.reveal()).await;
    assert_eq!((signed_in.status, &signed_in.headers[LOCATION]), (303, &"/dashboard/".parse().unwrap()));
    assert!(browser.get("/").await.text.contains("Harbour Plumbing"));
    assert_eq!(server.browser().sign_in(link.token.reveal()).await.status, StatusCode::GONE);
    assert_eq!(server.browser().sign_in("made-up").await.status, StatusCode::GONE);
}

#[tokio::test]
async fn a_link_can_lead_to_a_page_of_the_dashboard_alone() {
    let server = Server::start().await;
    let to = async |page: &str| {
        let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Viewer)).await;
        let fields = encode(&[("token", link.token.reveal()), ("page", page)]);
        let browser = server.browser();
        let shown = browser.get(&format!("/sign-in?{fields}")).await.text;
        let is_kept = shown.contains(&format!("name=\"page\" value=\"{page}\""));
        let signed_in = browser.send(Method::POST, "/sign-in", &fields, Some(ORIGIN_URL)).await;
        (signed_in.headers[LOCATION].to_str().unwrap().to_owned(), is_kept)
    };
    let page = "/invoices/0195a3c8-0000-7000-8000-000000000001";
    assert_eq!(to(page).await, (format!("/dashboard{page}"), true));
    for elsewhere in ["https://example.com/", "invoices", "/a?b", "/../api", "/<b>", "/\\example.com", ""] {
        assert_eq!(to(elsewhere).await, ("/dashboard/".to_owned(), false), "{elsewhere}");
    }
}

#[tokio::test]
async fn a_link_expires_after_ten_minutes() {
    let server = Server::start().await;
    let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Viewer)).await;
    server.clock.advance(MINUTE * 10);
    assert_eq!(server.browser().sign_in(link.token.reveal()).await.status, StatusCode::GONE);
}

#[tokio::test]
async fn a_session_ends_after_an_idle_hour_and_after_twelve() {
    let server = Server::start().await;
    let (used, idle) = (server.signed_in(Role::Viewer).await, server.signed_in(Role::Viewer).await);
    for _ in 0..23 {
        server.clock.advance(MINUTE * 30);
        assert_eq!(used.get("/").await.status, StatusCode::OK);
    }
    assert_eq!(idle.get("/").await.status, StatusCode::UNAUTHORIZED);
    server.clock.advance(MINUTE * 30);
    assert_eq!(used.get("/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn signing_out_ends_the_session_on_the_server() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Viewer).await;
    let left = browser.post("/sign-out", "").await;
    assert_eq!(left.status, StatusCode::SEE_OTHER);
    assert_eq!(left.headers.get_all(SET_COOKIE).iter().count(), 2, "both cookies are deleted");
    assert_eq!(browser.get("/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_revoked_session_is_refused_from_the_next_request_on() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Owner).await;
    let session = server.svc.dashboard().sessions(Some(server.tenant)).await.unwrap().remove(0);
    server.svc.dashboard().revoke(Some(server.tenant), session.id).await.unwrap();
    assert_eq!(browser.get("/").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_cookie_over_tls_is_bound_to_the_host() {
    let server = Server::start().await;
    for (origin, start, end) in [
        ("https://api.example.com", "__Host-svc_session=", "; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age=43200"),
        ("http://api.example.com", "svc_session=", "; HttpOnly; SameSite=Lax; Path=/; Max-Age=43200"),
    ] {
        let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Viewer)).await;
        let request = Request::post("/dashboard/sign-in").header(HOST, "api.example.com").header(ORIGIN, origin);
        let body = Full::from(encode(&[("token", link.token.reveal())]));
        let response = server.send(request.body(body).unwrap()).await;
        let cookie = response.headers[SET_COOKIE].to_str().unwrap();
        assert!(cookie.starts_with(start) && cookie.ends_with(end), "{cookie}");
        let value = cookie.split(['=', ';']).nth(1).unwrap();
        assert_eq!(value.len(), 43, "256 bits in base64");
        let page = Request::get("/dashboard").header(HOST, "api.example.com").header(COOKIE, cookie);
        assert_eq!(server.send(page.body(Full::default()).unwrap()).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_person_stays_signed_in_on_a_device() {
    let server = Server::start().await;
    let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Owner)).await;
    let request = Request::post("/dashboard/sign-in").header(HOST, "api.example.com");
    let request = request.header(ORIGIN, "https://api.example.com");
    let body = Full::from(encode(&[("token", link.token.reveal()), ("remember", "on")]));
    let response = server.send(request.body(body).unwrap()).await;
    let cookie = response.headers[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.ends_with("; Max-Age=2592000"), "{cookie}");
    server.clock.advance(29 * 24 * 60 * MINUTE);
    let page = Request::get("/dashboard").header(HOST, "api.example.com").header(COOKIE, cookie);
    assert_eq!(server.send(page.body(Full::default()).unwrap()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn attempts_to_sign_in_are_limited() {
    let server = Server::start().await;
    for attempt in 0..60 {
        assert_eq!(server.browser().sign_in("made-up").await.status, StatusCode::GONE, "{attempt}");
    }
    let refused = server.browser().sign_in("made-up").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers.contains_key("retry-after"));
    server.clock.advance(MINUTE);
    assert_eq!(server.browser().sign_in("made-up").await.status, StatusCode::GONE);
}

#[tokio::test]
async fn the_dashboard_is_off_unless_it_is_asked_for() {
    let svc = Svc::new(MemoryStore::new(svc_core::env::Env::system()));
    let (api, _) = Builder::new(&svc).build();
    let request = Request::get("/dashboard").header(HOST, "localhost").body(Full::<bytes::Bytes>::default()).unwrap();
    assert_eq!(api.call(request, [127, 0, 0, 1].into()).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_mounted_dashboard_links_below_its_mount() {
    let server = Server::start().await;
    let (api, _) = Builder::new(&server.svc).mount("/business").dashboard(true).build();
    let server = server.serving(api);
    let owner = server.signed_in(Role::Owner).await;
    let page = owner.get("/").await.text;
    for attribute in ["href=\"", "src=\"", "action=\""] {
        for link in page.split(attribute).skip(1) {
            let is_below = ["/business/dashboard", "/business/docs/", "#"].iter().any(|start| link.starts_with(start));
            assert!(is_below, "{}", &link[..40]);
        }
    }
}

#[tokio::test]
async fn files_are_cached_for_good_under_their_digest() {
    let server = Server::start().await;
    let page = server.browser().get("/sign-in").await.text;
    for (start, content_type) in
        [("rel=\"stylesheet\" href=\"", "text/css; charset=utf-8"), ("script src=\"", "text/javascript; charset=utf-8")]
    {
        let path = page.split(start).nth(1).unwrap().split('"').next().unwrap();
        let file = server.browser().get(path.strip_prefix("/dashboard").unwrap()).await;
        assert_eq!((file.status, &file.headers[CONTENT_TYPE]), (200, &content_type.parse().unwrap()));
        assert_eq!(file.headers[CACHE_CONTROL], "public, max-age=31536000, immutable");
    }
    assert_eq!(server.browser().get("/assets/0000000000000000/dashboard.css").await.status, StatusCode::NOT_FOUND);
    let head = server.browser().send(Method::HEAD, "/sign-in", "", None).await;
    assert_eq!((head.status, head.text.len()), (200, 0));
}
