//! The forms of endpoints: choosing events, changing, deleting and trying an endpoint.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use svc_core::accounts::dashboard_links::DashboardLinkCreate;
use svc_core::accounts::sessions::Role;
use svc_core::input::Input as _;
use svc_core::prelude::*;
use svc_core::webhooks::engine::{Attempt, AttemptResult};
use svc_server::Builder;
use svc_server::deliver::{Trial, WebhookClient};
use svc_test_support::fixture::attempt_log;
use tokio::sync::{Semaphore, mpsc};

use super::browser::{Server, encode};
use super::webhooks::{ESCAPED, HOSTILE};

impl Server {
    async fn endpoints(&self) -> Vec<WebhookSubscription> {
        self.svc.account(self.tenant).webhooks().list(NoFilter {}, ListParams::default()).await.unwrap().data
    }
}

/// Returns the fields of a form that changes an endpoint.
fn form(url: &str, selection: &str, events: &[&str]) -> String {
    let mut fields = vec![("url", url), ("description", HOSTILE), ("selection", selection)];
    fields.extend(events.iter().map(|kind| ("events", *kind)));
    encode(&fields)
}

#[tokio::test]
async fn all_events_and_single_kinds_exclude_each_other() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let page = developer.get("/webhooks/new").await.text;
    for text in [
        "name=\"selection\" value=\"all\" checked",
        "value=\"invoice.paid\"> invoice.paid",
        "An invoice was paid in full.",
        "An event <code>order.shipped</code> of the application.",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let url = "https://example.com/a";
    for (selection, ticked, stored) in [
        // Ticks from before all events were chosen say nothing.
        ("all", &["invoice.paid"][..], &["*"][..]),
        ("kinds", &["*", "invoice.paid", "job.created"], &["invoice.paid", "job.created"]),
    ] {
        server.clock.advance(Duration::from_secs(1));
        assert_eq!(developer.post("/webhooks/new", &form(url, selection, ticked)).await.status, StatusCode::OK);
        assert_eq!(server.endpoints().await[0].events.names(), stored);
    }
    for (selection, ticked) in [("kinds", &[][..]), ("kinds", &["*"]), ("", &["invoice.paid"]), ("x", &["*"])] {
        let refused = developer.post("/webhooks/new", &form(url, selection, ticked)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{selection} {ticked:?}");
    }
    assert_eq!(server.endpoints().await.len(), 2);
}

#[tokio::test]
async fn an_endpoint_is_changed_by_the_rules_of_the_api() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let path = format!("/webhooks/{}/edit", endpoint.id);
    let page = developer.get(&path).await.text;
    assert!(page.contains("value=\"https://example.com/hook\"") && page.contains("value=\"all\" checked"), "{page}");
    let saved = developer.post(&path, &form("https://example.com/new", "kinds", &["job.created"])).await;
    assert_eq!(saved.headers[LOCATION], format!("/dashboard/webhooks/{}?notice=saved", endpoint.id).as_str());
    let changed = server.endpoints().await.remove(0);
    assert_eq!((changed.url.as_str(), changed.events.names()), ("https://example.com/new", vec!["job.created"]));
    assert_eq!((changed.description.unwrap().as_str(), changed.secret), (HOSTILE, endpoint.secret));
    let page = developer.get(&path).await.text;
    assert!(page.contains("value=\"job.created\" checked") && page.contains(&format!("value=\"{ESCAPED}\"")), "{page}");
    assert!(page.contains("value=\"kinds\" checked"), "{page}");

    for (url, events, error) in [
        ("http://example.com", &["job.created"][..], "https"),
        ("https://10.0.0.1/", &["job.created"], "private-use address"),
        ("https://example.com/new", &["order.unknown"], "order.unknown"),
        (&format!("https://example.com/{HOSTILE}"), &[], "Choose at least one kind"),
    ] {
        let again = developer.post(&path, &form(url, "kinds", events)).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "{url}");
        assert!(again.text.contains(error) && again.text.contains(ESCAPED), "{url}: {}", again.text);
        assert!(!again.text.contains("<script>alert"), "{}", again.text);
        let typed = url.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        assert!(again.text.contains(&format!("value=\"{typed}\"")), "{typed} is kept: {}", again.text);
    }
    assert_eq!(server.endpoints().await[0].url.as_str(), "https://example.com/new");
}

#[tokio::test]
async fn an_endpoint_is_deleted_after_its_page_has_said_what_is_lost() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    server.svc.account(server.tenant).webhooks().send_test(endpoint.id, None).await.unwrap();
    let path = format!("/webhooks/{}", endpoint.id);
    let page = developer.get(&path).await.text;
    for text in [
        "https://example.com/hook is deleted with its secret, for good. Deliveries that wait or are held (1) are never sent",
        "https://example.com/hook gets a new secret.",
        "Nothing is sent to https://example.com/hook from now on.",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let deleted = developer.post(&format!("{path}/delete"), "").await;
    assert_eq!(deleted.headers[LOCATION], "/dashboard/webhooks?notice=endpoint-deleted");
    assert!(server.endpoints().await.is_empty());
    assert_eq!(developer.post(&format!("{path}/delete"), "").await.status, StatusCode::NOT_FOUND);
    let list = developer.get("/webhooks?notice=endpoint-deleted").await.text;
    assert!(list.contains("The endpoint was deleted.") && list.contains("No endpoints yet"), "{list}");
}

#[tokio::test]
async fn an_endpoint_is_tried_before_it_is_saved() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    assert!(developer.get("/webhooks/new").await.text.contains("formaction=\"/dashboard/webhooks/new/try\""));
    server.reads("");
    let typed = form("https://example.com/a?b='c'", "kinds", &["job.created"]);
    let tried = developer.post("/webhooks/new/try", &typed).await;
    assert_eq!(tried.status, StatusCode::OK);
    for text in [
        "Your server responded 308, a redirect, which is not followed.",
        "1,234 ms",
        "location: /&lt;i&gt;",
        "<span class=\"json-text\">&quot;&lt;b&gt;&quot;</span>",
        "signed with a secret made for this try alone",
        "value=\"https://example.com/a?b='c'\"",
        "value=\"job.created\" checked",
        "value=\"kinds\" checked",
    ] {
        assert!(tried.text.contains(text), "{text}: {}", tried.text);
    }
    let sent = server.tried.lock().unwrap().remove(0);
    assert_eq!(
        (sent.event.kind, sent.event.is_test(), sent.url.as_str()),
        (EventKind::JobCreated, true, "https://example.com/a?b='c'")
    );
    assert!(!tried.text.contains(sent.secrets[0].reveal()) && !tried.text.contains("whsec_"), "{}", tried.text);
    assert!(server.endpoints().await.is_empty());
    let stored = server.svc.account(server.tenant).deliveries().list(DeliveryFilter::default()).await.unwrap();
    assert!(stored.is_empty(), "nothing is stored");

    for (url, error) in
        [("https://127.0.0.1/", "loopback"), ("http://example.com/", "https"), ("", "must not be empty")]
    {
        let refused = developer.post("/webhooks/new/try", &form(url, "all", &[])).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{url}");
        assert!(refused.text.contains(error) && refused.text.contains(ESCAPED), "{url}: {}", refused.text);
    }
    assert!(server.tried.lock().unwrap().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn an_endpoint_is_tried_in_any_state_with_its_own_secret() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let path = format!("/webhooks/{}", endpoint.id);
    assert_eq!(developer.post(&format!("{path}/disable"), "").await.status, StatusCode::SEE_OTHER);
    assert!(developer.get(&path).await.text.contains("Try it"));
    let tried = developer.post(&format!("{path}/try"), "").await;
    assert!(tried.text.contains("Response") && tried.text.contains("Change an endpoint"), "{}", tried.text);
    // The form of the page tries what is typed.
    developer.post(&format!("{path}/try"), &form("https://example.com/other", "all", &[])).await;
    let sent: Vec<_> = std::mem::take(&mut *server.tried.lock().unwrap());
    let urls: Vec<&str> = sent.iter().map(|sent| sent.url.as_str()).collect();
    assert_eq!(urls, ["https://example.com/hook", "https://example.com/other"]);
    assert!(sent.iter().all(|sent| sent.secrets == [endpoint.secret.clone()]));
    let after = server.endpoints().await.remove(0);
    assert_eq!((after.enabled, after.last_delivery_at, after.url), (false, None, endpoint.url));
}

/// What an endpoint asks for is set, kept when another field is refused, shown, and cleared; secrets are not in any page.
#[tokio::test]
async fn an_endpoint_asks_for_more() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let fields = |options: &[(&str, &str)]| {
        let own = [("url", "https://example.com/more"), ("selection", "all"), ("options", "on")];
        encode(&[&own[..], options].concat())
    };
    let asked = [
        ("filter", "data.city == \"Perth\""),
        ("payload", "thin"),
        ("ordering", "record"),
        ("signature", "ed25519"),
        ("max_per_second", "20"),
        ("max_in_flight", "3"),
        ("timeout", "9"),
        ("retry_schedule", "60, 600"),
    ];
    assert_eq!(developer.post("/webhooks/new", &fields(&asked)).await.status, StatusCode::OK);
    let endpoint = server.endpoints().await.remove(0);
    assert_eq!(endpoint.filter.as_ref().unwrap().as_str(), "data.city == \"Perth\"");
    assert_eq!(endpoint.retry_schedule.as_ref().unwrap().seconds(), [60, 600]);
    let input = WebhookUpdate::from_body(
        br#"{"headers": {"X-Key": "s3cret"}, "authentication": {"type": "basic", "username": "svc", "password": "s3cret"},
        "client_certificate": {"certificate": "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----",
        "private_key": "-----BEGIN PRIVATE KEY-----\ns3cret==\n-----END PRIVATE KEY-----"},
        "certificate_authority": "-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----"}"#,
    );
    server.svc.account(server.tenant).webhooks().update(endpoint.id, input.unwrap()).await.unwrap();
    let path = format!("/webhooks/{}", endpoint.id);
    let page = developer.get(&path).await.text;
    let certificates = ["SHA-256 e4f60d0aa6d7f3d3b6a6494b1c861b99", "SHA-256 b0efbbc43054beee753cd10fab49ea0f"];
    let shown = ["data.city == &quot;Perth&quot;", "x-key", "basic, as svc", "60 s, 600 s", "thin", "record"];
    for text in shown.into_iter().chain(certificates) {
        assert!(page.contains(text), "{text}: {page}");
    }
    let key = endpoint.signing_keys.unwrap().iter().next().unwrap().public_key.clone();
    assert!(page.contains(&key) && !page.contains("whsk_"), "{key}: {page}");
    let edit = developer.get(&format!("{path}/edit")).await.text;
    for text in
        ["value=\"60, 600\"", "value=\"20\"", "<option value=\"thin\" selected>", "<details class=\"more\" open>"]
    {
        assert!(edit.contains(text), "{text}: {edit}");
    }
    assert!(!page.contains("s3cret") && !edit.contains("s3cret"));

    for (name, value, error) in [
        ("filter", "data.city = 1", "is no filter: at character 11"),
        ("payload", "fat", "Choose one of the values."),
        ("ordering", "", "Choose one of the values."),
        ("signature", "rsa", "Choose one of the values."),
        ("max_per_second", "fast", "must be a whole number from 1 to 1000"),
        ("max_in_flight", "65", "must be from 1 to 64"),
        ("timeout", "0", "must be from 1 to 30"),
        ("retry_schedule", "60, soon", "soon is none"),
        ("retry_schedule", "1", "must be from 60 to 14400 seconds"),
    ] {
        let mut wrong = asked.to_vec();
        wrong.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, old)| *old = value);
        let again = developer.post(&format!("{path}/edit"), &fields(&wrong)).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        assert!(
            again.text.contains(error) && again.text.contains(&format!("id=\"field-{name}\"")),
            "{error}: {}",
            again.text
        );
    }
    let cleared = asked.map(|(name, _)| match name {
        "payload" => (name, "contract"),
        "ordering" => (name, "none"),
        "signature" => (name, "hmac"),
        "retry_schedule" => (name, "none"),
        _ => (name, ""),
    });
    assert_eq!(developer.post(&format!("{path}/edit"), &fields(&cleared)).await.status, StatusCode::SEE_OTHER);
    let changed = server.endpoints().await.remove(0);
    assert_eq!((changed.filter, changed.payload, changed.ordering, changed.timeout), (None, None, None, None));
    assert_eq!((changed.signature, changed.signing_keys), (None, None));
    assert_eq!(changed.retry_schedule.unwrap().seconds(), [0; 0], "no retries");
    assert!(changed.headers.is_some() && changed.authentication.is_some(), "what the form does not have stays");
    assert!(changed.client_certificate.is_some() && changed.certificate_authority.is_some());
}

/// Returns the value of a hidden field of a page.
pub(crate) fn hidden<'p>(page: &'p str, name: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split('"').next().unwrap()
}

/// A double click sends a form twice, and the person sees the second response.
#[tokio::test]
async fn a_form_that_is_sent_twice_makes_one_thing_and_shows_its_secret_each_time() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let page = owner.get("/webhooks/new").await.text;
    let fields = [("key", hidden(&page, "key")), ("url", "https://example.com/twice"), ("selection", "all")];
    let responses =
        [owner.post("/webhooks/new", &encode(&fields)).await, owner.post("/webhooks/new", &encode(&fields)).await];
    let endpoints = server.endpoints().await;
    assert_eq!(endpoints.len(), 1);
    for response in responses {
        assert_eq!(response.status, StatusCode::OK);
        assert!(response.text.contains(endpoints[0].secret.reveal()), "{}", response.text);
    }
    let other = [fields[0], ("url", "https://example.com/other"), fields[2]];
    assert_eq!(owner.post("/webhooks/new", &encode(&other)).await.status, StatusCode::CONFLICT);

    let path = format!("/webhooks/{}", endpoints[0].id);
    let page = owner.get(&path).await.text;
    let fields = encode(&[("key", hidden(&page, "key")), ("overlap", "1")]);
    let rotate = format!("{path}/rotate");
    let responses = [owner.post(&rotate, &fields).await, owner.post(&rotate, &fields).await];
    let rotated = server.endpoints().await.remove(0).secret;
    assert_ne!(rotated, endpoints[0].secret);
    assert!(responses.iter().all(|response| response.text.contains(rotated.reveal())), "one rotation, and its secret");

    let before = account.keys().list().await.unwrap().len();
    let page = owner.get("/keys/new").await.text;
    let fields = encode(&[("key", hidden(&page, "key")), ("name", "twice"), ("scopes", "read"), ("expires", "")]);
    let responses = [owner.post("/keys/new", &fields).await, owner.post("/keys/new", &fields).await];
    assert_eq!(account.keys().list().await.unwrap().len(), before + 1);
    let shown = |page: &str| page.split("svc_live_").nth(1).unwrap()[..20].to_owned();
    let [first, second] = responses.map(|response| shown(&response.text));
    assert_eq!(first, second);

    let key =
        account.keys().list().await.unwrap().into_iter().find(|key| key.name.as_deref() == Some("twice")).unwrap();
    let page = owner.get("/keys").await.text;
    let fields = encode(&[("key", hidden(&page, "key")), ("overlap", "1")]);
    let rotate = format!("/keys/{}/rotate", key.id);
    let responses = [owner.post(&rotate, &fields).await, owner.post(&rotate, &fields).await];
    assert_eq!(responses.each_ref().map(|response| response.status), [StatusCode::OK; 2]);
    assert_eq!(account.keys().list().await.unwrap().len(), before + 2, "one rotation");
    let [rotated, again] = responses.map(|response| shown(&response.text));
    assert_eq!(rotated, again);
    assert_ne!(rotated, first);
}

#[tokio::test]
async fn an_endpoint_that_somebody_changed_meanwhile_is_not_overwritten() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let path = format!("/webhooks/{}/edit", endpoint.id);
    let page = developer.get(&path).await.text;
    let fields = |page: &str, description: &str| {
        let (key, version) = (hidden(page, "key"), hidden(page, "version"));
        let own = [("key", key), ("version", version), ("url", "https://example.com/hook"), ("selection", "all")];
        encode(
            &[
                &own[..],
                &[("options", "on"), ("payload", "contract"), ("ordering", "none"), ("signature", "hmac")],
                &[("description", description)],
            ]
            .concat(),
        )
    };
    server.clock.advance(Duration::from_secs(1));
    let change = WebhookUpdate::from_body(br#"{"signature": "ed25519"}"#).unwrap();
    server.svc.account(server.tenant).webhooks().update(endpoint.id, change).await.unwrap();
    let refused = developer.post(&path, &fields(&page, "stale")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(
        refused.text.contains("Somebody changed this endpoint") && refused.text.contains("stale"),
        "{}",
        refused.text
    );
    let kept = server.endpoints().await.remove(0);
    assert!(kept.signature.is_some() && kept.signing_keys.is_some() && kept.description.is_none());

    let page = developer.get(&path).await.text;
    let saved = fields(&page, "fresh");
    for _ in 0..2 {
        assert_eq!(
            developer.post(&path, &saved).await.status,
            StatusCode::SEE_OTHER,
            "also the second of a double click"
        );
    }
    assert_eq!(server.endpoints().await[0].description.as_ref().unwrap().as_str(), "fresh");
}

#[tokio::test]
async fn a_trial_at_another_host_has_no_secret_of_the_endpoint() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let change = br#"{"headers": {"X-Api-Key": "s3cret"}, "authentication": {"type": "bearer", "token": "t0ken"}, "signature": "ed25519"}"#;
    let change = WebhookUpdate::from_body(change).unwrap();
    let endpoint = server.svc.account(server.tenant).webhooks().update(endpoint.id, change).await.unwrap();
    let path = format!("/webhooks/{}/try", endpoint.id);
    for (url, is_saved_host) in [
        ("https://example.com/hook", true),
        ("https://example.com:443/other", true),
        ("https://example.com:8443/hook", false),
        ("https://attacker.example/hook", false),
    ] {
        let page = developer.post(&path, &form(url, "all", &[])).await.text;
        assert_eq!(page.contains("It went to another host than the saved URL"), !is_saved_host, "{url}: {page}");
        let sent = server.tried.lock().unwrap().remove(0);
        assert_eq!(sent.url.as_str(), url);
        assert_eq!(sent.secrets == endpoint.signing_secrets(Timestamp::MAX), is_saved_host, "{url}");
        let has_any = !sent.options.headers.is_empty() || !sent.options.private_keys.is_empty();
        assert_eq!(has_any, is_saved_host, "{url}");
    }
}

/// An endpoint that says when a test request has arrived, and responds when it is let.
struct Slow {
    arrivals: mpsc::UnboundedSender<()>,
    responses: Arc<Semaphore>,
}

impl WebhookClient for Slow {
    fn attempt(&self, _: Attempt) -> BoxFuture<'static, AttemptResult> {
        Box::pin(std::future::pending())
    }

    fn try_endpoint(&self, attempt: Attempt) -> BoxFuture<'static, Trial> {
        self.arrivals.send(()).unwrap();
        let responses = Arc::clone(&self.responses);
        Box::pin(async move {
            responses.acquire().await.unwrap().forget();
            let log = attempt_log(1, attempt.event.created_at, 204);
            Trial { log, headers: HeaderMap::new() }
        })
    }
}

/// The trials of one account leave those of others their place.
#[tokio::test]
async fn an_account_has_four_trials_at_a_time() {
    const SHARE: usize = 4;
    let server = Server::start().await;
    let (arrivals, mut arrived) = mpsc::unbounded_channel();
    let responses = Arc::new(Semaphore::new(0));
    let slow = Slow { arrivals, responses: Arc::clone(&responses) };
    let (api, _) = Builder::new(&server.svc).dashboard(true).webhook_client(Arc::new(slow)).build();
    let server = server.serving(api);
    let developer = server.signed_in(Role::Developer).await;
    let other = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Developer)).await;
    let typed = form("https://example.com/hook", "all", &[]);
    let under_way = join_all((0..SHARE).map(|_| developer.post("/webhooks/new/try", &typed)));
    let beside = async {
        for _ in 0..SHARE {
            arrived.recv().await.unwrap();
        }
        let refused = developer.post("/webhooks/new/try", &typed).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert!(refused.text.contains("Several endpoints of this account are being tried"), "{}", refused.text);
        let of_other = other.post("/webhooks/new/try", &typed);
        let respond = async {
            arrived.recv().await.unwrap();
            responses.add_permits(SHARE + 1);
        };
        assert_eq!(tokio::join!(of_other, respond).0.status, StatusCode::OK);
    };
    let (under_way, ()) = tokio::join!(under_way, beside);
    assert!(under_way.iter().all(|page| page.status == StatusCode::OK));
    responses.add_permits(1);
    assert_eq!(developer.post("/webhooks/new/try", &typed).await.status, StatusCode::OK, "the others have ended");
}
