//! What the dashboard refuses before it works on it: forms of strangers, forms that are too large, and too many requests.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{COOKIE, HOST, ORIGIN, RETRY_AFTER};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use svc_core::accounts::sessions::{MAX_SESSIONS, Role, Session};
use svc_core::prelude::*;

use svc_server::{Api, DashboardSettings, Settings, Surfaces};

use super::browser::{Browser, PEER, Server, encode};

/// Returns the pages with this memory of responses, over the store of a server.
fn with_memory(server: &Server, response_memory: usize) -> Api {
    let surfaces = Surfaces { dashboard: Some(DashboardSettings::default()), ..Surfaces::default() };
    let settings = Settings { response_memory, ..Settings::default() };
    Api::with_surfaces(std::sync::Arc::clone(server.svc.store()), settings, surfaces)
}

/// A body that nobody may read.
struct Untouched;

impl Body for Untouched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("the body was read")
    }
}

#[tokio::test]
async fn a_form_is_read_only_from_people_who_may_send_it() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Owner).await;
    let cookie = browser.cookie.clone().unwrap();
    let send = async |path: &str, origin: &str, cookie: &str| {
        let request = Request::post(format!("/dashboard{path}")).header(HOST, "localhost:8080");
        let request = request.header(ORIGIN, origin).header(COOKIE, cookie).body(Untouched).unwrap();
        server.api.call(request, PEER).await.status()
    };
    let own = "http://localhost:8080";
    assert_eq!(send("/keys/new", own, "").await, StatusCode::UNAUTHORIZED);
    assert_eq!(send("/keys/new", own, "svc_session=made-up").await, StatusCode::UNAUTHORIZED);
    assert_eq!(send("/keys/new", "http://other.example", &cookie).await, StatusCode::FORBIDDEN);
    assert_eq!(send("/nothing", own, &cookie).await, StatusCode::NOT_FOUND);
    assert_eq!(send("/events", own, &cookie).await, StatusCode::METHOD_NOT_ALLOWED);
    // A page has no form to read.
    let request = Request::get("/dashboard/keys").header(HOST, "localhost:8080").header(COOKIE, cookie);
    assert_eq!(server.api.call(request.body(Untouched).unwrap(), PEER).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_form_has_at_most_64_kib_and_500_fields() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Owner).await;
    let large = browser.post("/keys/new", &format!("name={}", "x".repeat(64 * 1024))).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(large.text.contains("A form must not be larger than 64 KiB."), "{}", large.text);
    let many = browser.post("/keys/new", &"a&".repeat(500)).await;
    assert_eq!(many.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(many.text.contains("A form has at most 500 fields."), "{}", many.text);
    // One that is read on a thread of its own. Its name is too long, which the form says.
    let long = browser.post("/keys/new", &format!("scopes=write&name={}", "x".repeat(40 * 1024))).await;
    assert_eq!(long.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(long.text.contains("name=\"name\""), "{}", long.text);
}

#[tokio::test]
async fn a_malformed_token_is_not_repeated_on_the_page() {
    let server = Server::start().await;
    let token = format!("<script>{}", "x".repeat(8_000));
    for token in ["x", &token, &"x".repeat(44)] {
        let page = server.browser().get(&format!("/sign-in?{}", encode(&[("token", token)]))).await;
        assert_eq!(page.status, StatusCode::GONE);
        assert!(page.text.len() < 4_000 && !page.text.contains("script>x"), "{}", page.text);
    }
}

#[tokio::test]
async fn pages_are_counted_by_session_and_without_one_by_address() {
    let server = Server::start().await;
    let (one, other) = (server.signed_in(Role::Viewer).await, server.signed_in(Role::Viewer).await);
    for _ in 0..300 {
        assert_eq!(one.get("/keys").await.status, StatusCode::OK);
    }
    let refused = one.get("/keys").await;
    assert_eq!((refused.status, refused.headers.contains_key(RETRY_AFTER)), (429, true));
    assert_eq!(other.get("/keys").await.status, StatusCode::OK, "another session");

    let stranger = server.browser();
    for path in ["/sign-in", "/keys", "/nothing"].into_iter().cycle().take(300) {
        assert_ne!(stranger.get(path).await.status, StatusCode::TOO_MANY_REQUESTS);
    }
    for path in ["/sign-in", "/keys", "/nothing"] {
        assert_eq!(stranger.get(path).await.status, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(other.get("/keys").await.status, StatusCode::OK, "someone who is signed in at the same address");
    server.clock.advance(Duration::from_secs(60));
    assert_eq!(one.get("/keys").await.status, StatusCode::OK);
}

#[tokio::test]
async fn pages_are_for_their_own_origin_alone() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Viewer).await;
    let page = browser.send(Method::GET, "/keys", "", Some("https://app.example")).await;
    assert!(page.headers.keys().all(|name| !name.as_str().starts_with("access-control")), "{:?}", page.headers);
    let request =
        Request::options("/dashboard/keys").header(HOST, "localhost:8080").header(ORIGIN, "https://app.example");
    let request = request.header("access-control-request-method", "POST");
    let preflight = server.send(request.body(Bytes::new().into()).unwrap()).await;
    assert_eq!(preflight.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(preflight.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
}

/// A page stays in the memory of responses until the client has taken it.
#[tokio::test(start_paused = true)]
async fn pages_that_are_not_taken_use_up_the_memory_of_responses() {
    let server = Server::start().await;
    let api = with_memory(&server, 4 * 1024);
    let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Viewer)).await;
    let path = format!("/dashboard/sign-in?token={}", link.token.reveal());
    let get = async || {
        let request = Request::get(&path).header(HOST, "localhost:8080").body(http_body_util::Empty::<Bytes>::new());
        api.call(request.unwrap(), PEER).await
    };
    let taken = get().await;
    assert_eq!(taken.status(), StatusCode::OK);
    let waiting = get().await;
    assert_eq!(waiting.status(), StatusCode::SERVICE_UNAVAILABLE, "the first page was not taken");
    drop(taken);
    assert_eq!(get().await.status(), StatusCode::OK);
}

/// A page that is longer than most takes as much of the memory as it needs: while its client does not take it, there is none
/// for another page.
#[tokio::test(start_paused = true)]
async fn a_long_page_takes_the_memory_that_it_needs() {
    let server = Server::start().await;
    for number in 0..100 {
        // An ampersand is five times as long in HTML.
        let url = format!("https://example.com/{number}?{}", "&".repeat(1_900)).parse().unwrap();
        let input = WebhookCreate::new(url, EventSet::All);
        server.svc.account(server.tenant).webhooks().create(input).await.unwrap();
    }
    let api = with_memory(&server, 4 * 1_280 * 1024);
    let viewer = server.signed_in(Role::Viewer).await;
    let get = async |path: &str| {
        let request = Request::get(path).header(HOST, "localhost:8080").header(COOKIE, viewer.cookie.clone().unwrap());
        api.call(request.body(http_body_util::Empty::<Bytes>::new()).unwrap(), PEER).await
    };
    let (long, short) = ("/dashboard/webhooks", "/dashboard/keys");
    let page = get(short).await;
    assert_eq!(get(short).await.status(), StatusCode::OK, "two short pages have room");
    drop(page);
    let taken = get(long).await;
    assert_eq!(taken.status(), StatusCode::OK);
    let length = taken.body().size_hint().exact().unwrap();
    assert!(length > 900 * 1024, "the page has {length} bytes");
    let waiting = get(short).await;
    assert_eq!(waiting.status(), StatusCode::SERVICE_UNAVAILABLE, "the long page was not taken");
    drop(taken);
    // Two long ones do not fit in the share of an account, so one is made.
    let (first, second) = tokio::join!(get(long), get(long));
    let mut statuses = [first.status(), second.status()];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE]);
    drop((first, second));
    assert_eq!(get(long).await.status(), StatusCode::OK);
}

/// A file takes the memory of a piece at a time: what nobody takes does not grow, and an account leaves the others their share.
#[tokio::test(start_paused = true)]
async fn files_that_are_not_taken_leave_room_for_the_pages_of_others() {
    let server = Server::start().await;
    for number in 0..300 {
        let mut contact = ContactCreate::new(format!("c{number}@example.com").parse().unwrap());
        contact.details.company_name = Patch::Set(Some(Text::parse(&"x".repeat(200)).unwrap()));
        server.svc.account(server.tenant).contacts().create(contact).await.unwrap();
    }
    let api = with_memory(&server, 4 * 1024 * 1024);
    let own = server.signed_in(Role::Viewer).await;
    let other = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Viewer)).await;
    let get = async |browser: &Browser<'_>, path: &str| {
        let request = Request::get(path).header(HOST, "localhost:8080").header(COOKIE, browser.cookie.clone().unwrap());
        api.call(request.body(http_body_util::Empty::<Bytes>::new()).unwrap(), PEER).await
    };
    // Each piece of a file needs most of the share of 1 MiB while it is made, and keeps its length until it is taken.
    let mut files = Vec::new();
    for _ in 0..20 {
        files.push(tokio::time::timeout(Duration::from_secs(1), get(&own, "/dashboard/contacts?format=csv")).await);
    }
    let made = files.iter().filter(|file| file.is_ok()).count();
    assert!((1..15).contains(&made), "{made} files; the others wait until those were taken");
    assert_eq!(get(&other, "/dashboard/keys").await.status(), StatusCode::OK, "another account goes on");
    files.truncate(1);
    let mut body = files.remove(0).unwrap().into_body();
    let mut text = Vec::new();
    let mut pieces = 0;
    while let Some(piece) = body.frame().await {
        let piece = piece.unwrap().into_data().unwrap();
        assert!(piece.len() < 50 * 400, "a piece has 50 rows, and {} bytes", piece.len());
        text.extend_from_slice(&piece);
        pieces += 1;
    }
    assert_eq!((pieces, String::from_utf8(text).unwrap().lines().count()), (6, 301));
}

/// Nobody may take the beginning of a file for all of it.
#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_read_to_its_end_fails() {
    let server = Server::start().await;
    for number in 0..60 {
        server.contact(&format!("c{number}@example.com")).await;
    }
    let api = with_memory(&server, 128 * 1024);
    let viewer = server.signed_in(Role::Viewer).await;
    let request = Request::get("/dashboard/contacts?format=csv").header(HOST, "localhost:8080");
    let request = request.header(COOKIE, viewer.cookie.clone().unwrap());
    let response = api.call(request.body(http_body_util::Empty::<Bytes>::new()).unwrap(), PEER).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    // The first piece is kept, so there is no memory for the second one.
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let second = body.frame().await.unwrap();
    assert!(second.is_err());
    drop(first);
}

/// Its last piece needs no memory to know that nothing follows, which there may not be.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_complete_ends_whatever_the_memory() {
    let server = Server::start().await;
    let contact = server.contact("ada@example.com").await;
    let api = with_memory(&server, 4 * 1024);
    let developer = server.signed_in(Role::Developer).await;
    for path in ["/dashboard/contacts?format=csv".to_owned(), format!("/dashboard/contacts/{}/data", contact.id)] {
        let request = Request::get(&path).header(HOST, "localhost:8080");
        let request = request.header(COOKIE, developer.cookie.clone().unwrap());
        let response = api.call(request.body(http_body_util::Empty::<Bytes>::new()).unwrap(), PEER).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let mut body = response.into_body();
        // It has more than an eighth of the share of an account.
        let only = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(only.len() > 128, "{path}: {} bytes", only.len());
        assert!(body.frame().await.is_none(), "{path}");
    }
}

/// An API whose memory is enough for one response, and reads of a contact by one key.
struct NarrowApi {
    api: svc_server::Api,
    contact: ContactId,
    key: String,
    _server: Server,
}

impl NarrowApi {
    async fn new(rate_limit: u32) -> Self {
        let server = Server::start().await;
        let account = server.svc.account(server.tenant);
        let contact = server.contact("ada@example.com").await;
        let key = account.keys().create(KeyCreate::default()).await.unwrap().text.reveal().to_owned();
        let settings =
            svc_server::Settings { response_memory: 4 * 1024, rate_limit, ..svc_server::Settings::default() };
        let api = svc_server::Api::new(std::sync::Arc::clone(server.svc.store()), settings);
        Self { api, contact: contact.id, key, _server: server }
    }

    async fn get(&self) -> http::Response<svc_server::ResponseBody> {
        let request = Request::get(format!("/api/v1/contacts/{}", self.contact)).header(HOST, "localhost:8080");
        let request = request.header("authorization", format!("Bearer {}", self.key));
        self.api.call(request.body(http_body_util::Empty::<Bytes>::new()).unwrap(), PEER).await
    }
}

/// A read counts whether there is memory for it or not.
#[tokio::test(start_paused = true)]
async fn reads_that_wait_in_vain_count() {
    let narrow = NarrowApi::new(3).await;
    let taken = narrow.get().await;
    assert_eq!(taken.status(), StatusCode::OK);
    for status in [503, 503, 429, 429] {
        assert_eq!(narrow.get().await.status(), status, "the first response was not taken");
    }
    drop(taken);
}

/// One that is counted, as the last that is allowed, is run once there is memory.
#[tokio::test(start_paused = true)]
async fn a_read_that_has_waited_is_not_refused_by_its_own_count() {
    let narrow = NarrowApi::new(2).await;
    let taken = narrow.get().await;
    let mut waits = Box::pin(narrow.get());
    // The clock of the test moves when everything waits: the read waits for memory then.
    tokio::select! {
        biased;
        _ = &mut waits => panic!("there is no memory"),
        () = tokio::time::sleep(Duration::from_secs(1)) => drop(taken),
    }
    assert_eq!(waits.await.status(), StatusCode::OK);
    assert_eq!(narrow.get().await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn keys_are_listed_in_pages() {
    let server = Server::start().await;
    let browser = server.signed_in(Role::Owner).await;
    let keys = server.svc.account(server.tenant).keys();
    for number in 0..101 {
        keys.create(KeyCreate { name: Some(format!("key {number:03}")), ..KeyCreate::default() }).await.unwrap();
    }
    let newest = browser.get("/keys").await.text;
    assert!(newest.contains("key 100") && newest.contains("key 001") && !newest.contains("key 000"));
    let older = newest.split("/dashboard/keys?before=").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let older = browser.get(&format!("/keys?before={older}")).await.text;
    assert!(older.contains("key 000") && !older.contains("key 001") && !older.contains("?before="));
}

/// Whoever signs in again and again ends sessions of their own alone.
#[tokio::test]
async fn a_person_has_a_bounded_number_of_sessions() {
    let server = Server::start().await;
    let sign_in = async |input: DashboardLinkCreate| {
        server.clock.advance(Duration::from_millis(1));
        server.signed_in_by(input).await
    };
    let other = sign_in(DashboardLinkCreate::to(server.tenant, Role::Viewer).identity("other")).await;
    let operator = sign_in(DashboardLinkCreate::for_operator()).await;
    let first = sign_in(DashboardLinkCreate::to(server.tenant, Role::Viewer).identity("ada")).await;
    for _ in 1..MAX_SESSIONS {
        sign_in(DashboardLinkCreate::to(server.tenant, Role::Viewer).identity("ada")).await;
    }
    assert_eq!(first.get("/keys").await.status, StatusCode::OK);
    sign_in(DashboardLinkCreate::to(server.tenant, Role::Viewer).identity("ada")).await;
    assert_eq!(first.get("/keys").await.status, StatusCode::UNAUTHORIZED);

    // A member of several accounts signs in without one, as operators do, and then chooses one.
    let both = [(server.tenant, Role::Viewer), (server.other, Role::Viewer)];
    let member = server.signed_in_member("grace@example.com", &both).await;
    for _ in 0..=MAX_SESSIONS {
        server.clock.advance(Duration::from_millis(1));
        let new = server.svc.dashboard().sign_in_member("grace@example.com".parse().unwrap()).await.unwrap();
        server.svc.dashboard().choose_account(new.session.id, server.tenant).await.unwrap();
    }
    let sessions = server.svc.dashboard().sessions(Some(server.tenant)).await.unwrap();
    let own = |session: &&Session| session.identity == "grace@example.com";
    assert_eq!(sessions.iter().filter(own).count(), MAX_SESSIONS);
    assert_eq!(member.get("/switch").await.status, StatusCode::OK, "that session shows no account");
    assert_eq!(other.get("/keys").await.status, StatusCode::OK);
    assert_eq!(operator.get("/system").await.status, StatusCode::OK);
}
