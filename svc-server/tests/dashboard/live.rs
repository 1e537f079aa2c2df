//! Live lists. Time is paused: it moves when nothing else is left to do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use svc_core::accounts::keys::{KeyCreate, KeyId};
use svc_core::accounts::platform_keys::PlatformKeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::requests::{self, ApiRequest};
use svc_server::{Builder, ResponseBody};
use tokio::time::Instant;

use super::browser::{Browser, PEER, Server, without_labels};
use super::webhooks::{ESCAPED, HOSTILE};

const MINUTE: Duration = Duration::from_secs(60);

/// A live list as a browser receives it.
struct Stream(ResponseBody);

impl Stream {
    /// Returns the rows of the next event: their HTML, and whether the filter selects them. `None` at the end.
    async fn next(&mut self) -> Option<Vec<(String, bool)>> {
        loop {
            let frame = self.0.frame().await?.unwrap().into_data().unwrap();
            let text = std::str::from_utf8(&frame).unwrap();
            if text == ":\n\n" {
                continue;
            }
            let lines: Vec<&str> = text.strip_suffix("\n\n").unwrap().lines().collect();
            let [line] = lines[..] else { panic!("{text}") };
            let rows: Vec<serde_json::Value> = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
            let row = |row: &serde_json::Value| (row["html"].as_str().unwrap().to_owned(), row["selected"] == true);
            return Some(rows.iter().map(row).collect());
        }
    }

    /// Reads until the end, and returns how long that took.
    async fn end(mut self) -> Duration {
        let started = Instant::now();
        while self.0.frame().await.is_some() {}
        started.elapsed()
    }
}

impl Browser<'_> {
    async fn stream(&self, path: &str) -> Stream {
        self.try_stream(path).await.unwrap()
    }

    async fn try_stream(&self, path: &str) -> Result<Stream, StatusCode> {
        let request = Request::get(format!("/dashboard{path}")).header(HOST, "localhost:8080");
        let request = request.header(COOKIE, self.cookie.as_deref().unwrap_or_default());
        let response = self.server.api.call(request.body(Full::<Bytes>::default()).unwrap(), PEER).await;
        if response.status() != StatusCode::OK {
            return Err(response.status());
        }
        assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
        assert!(!response.headers().contains_key(CONTENT_LENGTH));
        Ok(Stream(response.into_body()))
    }
}

impl Server {
    pub(crate) async fn set_status(&self, delivery: &Delivery, status: DeliveryStatus) {
        let delivery = Delivery { status, next_attempt_at: None, ..delivery.clone() };
        let write = self
            .svc
            .store()
            .write("test", delivery, async |tx, delivery| Ok(tx.update_delivery(delivery, None).await?));
        write.await.unwrap();
    }

    async fn log_request(&self, key_id: KeyId) {
        let env = self.svc.store().env();
        let request = ApiRequest {
            id: env.id(env.now()),
            tenant_id: self.tenant,
            request_id: "an-id".to_owned(),
            key_id,
            method: "GET".to_owned(),
            path: "/api/v1/contacts".to_owned(),
            query: None,
            status: 200,
            code: None,
            failing_fields: None,
            started_at: env.now(),
            duration_us: 1_234,
            events: 0,
            first_event_id: None,
            last_event_id: None,
        };
        requests::record(&**self.svc.store(), &[request]).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_appears_and_changes() {
    let server = Server::start().await;
    let endpoint = server.endpoint().await;
    let (viewer, developer) = (server.signed_in(Role::Viewer).await, server.signed_in(Role::Developer).await);
    let mut streams = [viewer.stream("/deliveries/live").await, developer.stream("/deliveries/live").await];
    let webhooks = server.svc.account(server.tenant).webhooks();
    let first = webhooks.send_test(endpoint.id, None).await.unwrap();
    let mut shown = Vec::new();
    for stream in &mut streams {
        let rows = stream.next().await.unwrap();
        assert_eq!(rows.len(), 1);
        assert!(rows[0].0.contains("waiting") && rows[0].1, "{rows:?}");
        shown.push(rows[0].0.clone());
    }
    // They are the rows of the page.
    for (browser, row) in [(&viewer, &shown[0]), (&developer, &shown[1])] {
        let page = without_labels(&browser.get("/deliveries").await.text);
        assert!(page.contains(row), "{row} {page}");
        assert!(page.contains(r#"data-live="/dashboard/deliveries/live?""#), "{page}");
    }
    server.clock.advance(Duration::from_secs(5));
    server.set_status(&first, DeliveryStatus::Succeeded).await;
    let second = webhooks.send_test(endpoint.id, None).await.unwrap();
    for stream in &mut streams {
        let rows = stream.next().await.unwrap();
        assert!(rows[0].0.contains(&second.id.to_string()) && rows[0].0.contains("waiting"), "{rows:?}");
        assert!(rows[1].0.contains(&first.id.to_string()) && rows[1].0.contains("delivered"), "{rows:?}");
    }
    // Times are kept up to date.
    server.clock.advance(MINUTE * 3);
    let rows = streams[0].next().await.unwrap();
    assert!(rows.len() == 2 && rows[0].0.contains("3 min ago"), "{rows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_filter_selects_what_is_added() {
    let server = Server::start().await;
    let (endpoint, viewer) = (server.endpoint().await, server.signed_in(Role::Viewer).await);
    let mut stream = viewer.stream("/deliveries/live?status=failed").await;
    let delivery = server.svc.account(server.tenant).webhooks().send_test(endpoint.id, None).await.unwrap();
    assert!(!stream.next().await.unwrap()[0].1);
    server.set_status(&delivery, DeliveryStatus::Failed).await;
    assert!(stream.next().await.unwrap()[0].1);
    assert_eq!(viewer.try_stream("/deliveries/live?status=none").await.err(), Some(StatusCode::UNPROCESSABLE_ENTITY));
    // Lists that look back are not live.
    for path in ["/deliveries?before=1", "/deliveries?record=1"] {
        assert!(!viewer.get(path).await.text.contains("data-live"), "{path}");
    }
    let path = "/requests/live?path=%2Fcontacts&status=2xx";
    assert!(viewer.get("/requests?status=2xx&path=/contacts").await.text.contains(&path.replace('&', "&amp;")));
    let mut stream = viewer.stream(path).await;
    let key = server.svc.account(server.tenant).keys().create(KeyCreate::default()).await.unwrap().key.id;
    server.log_request(key).await;
    assert!(stream.next().await.unwrap()[0].1);
}

#[tokio::test(start_paused = true)]
async fn hostile_texts_are_text() {
    let server = Server::start().await;
    let key = KeyCreate { name: Some(HOSTILE.to_owned()), ..KeyCreate::default() };
    let key = server.svc.account(server.tenant).keys().create(key).await.unwrap().key.id;
    let viewer = server.signed_in(Role::Viewer).await;
    let mut stream = viewer.stream("/requests/live").await;
    server.log_request(key).await;
    let rows = stream.next().await.unwrap();
    assert!(rows[0].0.contains(ESCAPED) && !rows[0].0.contains(HOSTILE), "{rows:?}");
    assert!(without_labels(&viewer.get("/requests").await.text).contains(&rows[0].0));
}

#[tokio::test(start_paused = true)]
async fn an_account_sees_nothing_of_another() {
    let server = Server::start().await;
    let endpoint = server.endpoint().await;
    let other = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Owner)).await;
    let own = server.signed_in(Role::Owner).await;
    let (mut own, mut other) = (own.stream("/deliveries/live").await, other.stream("/deliveries/live").await);
    server.svc.account(server.tenant).webhooks().send_test(endpoint.id, None).await.unwrap();
    assert_eq!(own.next().await.unwrap().len(), 1);
    assert!(tokio::time::timeout(MINUTE, other.next()).await.is_err(), "nothing comes");
    assert_eq!(server.browser().try_stream("/deliveries/live").await.err(), Some(StatusCode::UNAUTHORIZED));
}

#[tokio::test(start_paused = true)]
async fn viewers_share_one_read_a_second_and_nobody_needs_none() {
    let server = Server::start().await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        let viewer = server.signed_in(Role::Viewer).await;
        for _ in 0..10 {
            streams.push(viewer.stream("/deliveries/live").await);
        }
    }
    server.reads("svc.deliveries.list");
    let all = futures_util::future::join_all(streams.into_iter().map(Stream::end));
    assert!(tokio::time::timeout(MINUTE, all).await.is_err(), "they last");
    let reads = server.reads("svc.deliveries.list");
    assert!((50..=62).contains(&reads), "{reads}");
    tokio::time::advance(MINUTE).await;
    assert_eq!(server.reads("svc.deliveries.list"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_session() {
    let server = Server::start().await;
    // Revoked.
    let viewer = server.signed_in(Role::Viewer).await;
    let stream = viewer.stream("/deliveries/live").await;
    let session = server.svc.dashboard().sessions(Some(server.tenant)).await.unwrap().remove(0);
    server.svc.dashboard().revoke(Some(server.tenant), session.id).await.unwrap();
    assert!(stream.end().await <= MINUTE);
    assert_eq!(viewer.try_stream("/deliveries/live").await.err(), Some(StatusCode::UNAUTHORIZED));
    // An operator who looks at another account, or at none.
    let operator = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let session = server.svc.dashboard().sessions(None).await.unwrap().remove(0).id;
    for next in [Some(server.other), None] {
        server.svc.dashboard().view(session, Some(server.tenant)).await.unwrap();
        let stream = operator.stream("/requests/live").await;
        server.svc.dashboard().view(session, next).await.unwrap();
        assert!(stream.end().await <= MINUTE, "{next:?}");
    }
    // A member who is one no more, or has another role.
    let members = server.svc.account(server.tenant).members();
    for (email, role) in [("ada@example.com", Some(Role::Viewer)), ("grace@example.com", None)] {
        let member = server.signed_in_member(email, &[(server.tenant, Role::Developer)]).await;
        let stream = member.stream("/deliveries/live").await;
        let id = members.list().await.unwrap().iter().find(|member| member.email.as_str() == email).unwrap().id;
        match role {
            Some(role) => drop(members.set_role(id, role).await.unwrap()),
            None => members.remove(id).await.unwrap(),
        };
        assert!(stream.end().await <= MINUTE, "{role:?}");
    }
    // Idle: a stream is no use of the session.
    let viewer = server.signed_in(Role::Viewer).await;
    server.clock.advance(MINUTE * 50);
    let stream = viewer.stream("/deliveries/live").await;
    server.clock.advance(MINUTE * 10);
    assert!(stream.end().await <= MINUTE);
    assert_eq!(viewer.get("/").await.status, StatusCode::UNAUTHORIZED);
}

/// A stream that has ended before time moved.
async fn ended_at_once(stream: Stream) -> bool {
    tokio::time::timeout(Duration::from_millis(1), stream.end()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_once_when_this_process_ends_its_session() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let members = || async { server.svc.account(server.tenant).members().list().await.unwrap() };
    // The first two rows of a stream come after its first tick.
    let open = async |browser: &Browser<'_>| {
        let mut stream = browser.stream("/deliveries/live").await;
        assert!(tokio::time::timeout(Duration::from_secs(2), stream.next()).await.is_err(), "it lasts");
        stream
    };
    // A member is removed, or gets another role, in the dashboard.
    for action in ["remove", "role"] {
        let member = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Developer)]).await;
        let (stream, kept) = (open(&member).await, open(&owner).await);
        let path = format!("/settings/members/{}/{action}", members().await[0].id);
        assert_eq!(owner.post(&path, "role=viewer").await.status, StatusCode::SEE_OTHER);
        assert!(ended_at_once(stream).await, "{action}");
        assert!(!ended_at_once(kept).await, "{action}");
    }
    // A session is revoked. It is the newest one.
    server.clock.advance(Duration::from_secs(1));
    let viewer = server.signed_in(Role::Viewer).await;
    let stream = open(&viewer).await;
    let session = server.svc.dashboard().sessions(Some(server.tenant)).await.unwrap().remove(0);
    let path = format!("/settings/sessions/{}/revoke", session.id);
    assert_eq!(owner.post(&path, "").await.status, StatusCode::SEE_OTHER);
    assert!(ended_at_once(stream).await);
    // A person signs out.
    let viewer = server.signed_in(Role::Viewer).await;
    let stream = open(&viewer).await;
    assert_eq!(viewer.post("/sign-out", "").await.status, StatusCode::SEE_OTHER);
    assert!(ended_at_once(stream).await);
    // A program removes a member over the platform API.
    let key = PlatformKeyCreate { name: None, scopes: vec!["members:write".parse().unwrap()], expires_in: None };
    let key = server.svc.platform_keys().create(key).await.unwrap().text;
    let member = server.signed_in_member("grace@example.com", &[(server.tenant, Role::Viewer)]).await;
    let stream = open(&member).await;
    let id = members().await.into_iter().find(|member| member.email.as_str() == "grace@example.com").unwrap().id;
    let request =
        Request::delete(format!("/platform/v1/accounts/{}/members/{id}", server.tenant)).header(HOST, "localhost:8081");
    let request = request.header(AUTHORIZATION, format!("Bearer {}", key.reveal())).body(Full::<Bytes>::default());
    let response = server.api.for_platform().call(request.unwrap(), PEER).await;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(status, StatusCode::NO_CONTENT, "{body:?}");
    assert!(ended_at_once(stream).await);
}

#[tokio::test(start_paused = true)]
async fn a_session_and_an_account_have_a_share_of_the_streams() {
    let server = Server::start().await;
    let mut streams = Vec::new();
    let mut first = None;
    for _ in 0..5 {
        let viewer = server.signed_in(Role::Viewer).await;
        for number in 0..10 {
            let list = ["/deliveries/live", "/requests/live"][number % 2];
            streams.push(viewer.stream(list).await);
        }
        let refused = viewer.get("/requests/live").await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.text.contains("reload"), "{}", refused.text);
        first.get_or_insert(viewer);
    }
    // The account has all of its own, but another account has its share.
    let late = server.signed_in(Role::Viewer).await;
    assert_eq!(late.try_stream("/requests/live").await.err(), Some(StatusCode::SERVICE_UNAVAILABLE));
    let other = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Viewer)).await;
    streams.push(other.stream("/deliveries/live").await);
    // One that has ended makes room, for its session and for the account.
    drop(streams.remove(0));
    let first = first.unwrap();
    let again = first.stream("/requests/live").await;
    assert!(first.try_stream("/requests/live").await.is_err());
    drop(again);
    assert!(late.try_stream("/requests/live").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_process_has_a_number_of_streams() {
    let server = Server::start().await;
    let mut streams = Vec::new();
    for number in 0..50 {
        let account = server.svc.accounts().create(TenantCreate::named(&number.to_string())).await.unwrap().id;
        let viewer = server.signed_in_by(DashboardLinkCreate::to(account, Role::Viewer)).await;
        for _ in 0..10 {
            streams.push(viewer.stream("/deliveries/live").await);
        }
    }
    let viewer = server.signed_in(Role::Viewer).await;
    assert_eq!(viewer.try_stream("/requests/live").await.err(), Some(StatusCode::SERVICE_UNAVAILABLE));
    streams.pop();
    assert!(viewer.try_stream("/requests/live").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn streams_end_when_the_process_stops() {
    let server = Server::start().await;
    let (api, background) = Builder::new(&server.svc).dashboard(true).build();
    let server = server.serving(api);
    let viewer = server.signed_in(Role::Viewer).await;
    let stream = viewer.stream("/deliveries/live").await;
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = Arc::clone(&stop);
    let background = tokio::spawn(background.run(async move { stopped.notified().await }));
    stop.notify_one();
    assert!(stream.end().await <= Duration::from_secs(2));
    assert_eq!(
        viewer.stream("/deliveries/live").await.end().await,
        Duration::ZERO,
        "those that begin later end at once"
    );
    background.await.unwrap();
}
