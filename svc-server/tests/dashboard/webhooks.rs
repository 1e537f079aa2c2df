//! Webhooks, deliveries, events and requests: what the pages show, and what can be done there.

use std::time::Duration;

use http::header::LOCATION;
use http::{Request, StatusCode};
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog};
use svc_core::webhooks::signatures;
use svc_core::webhooks::statistics::{self, AttemptCounter};
use svc_test_support::fixture::attempt_log;

use super::browser::{Server, encode};

/// A text that must be shown as it is.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";
pub(crate) const ESCAPED: &str = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;\u{202e}";

impl Server {
    pub(crate) async fn endpoint(&self) -> WebhookSubscription {
        self.webhook("https://example.com/hook", "*").await
    }

    /// Sends a test event to an endpoint, and records an attempt at its delivery that failed.
    pub(crate) async fn failed_delivery(&self, endpoint: &WebhookSubscription) -> (Delivery, AttemptLog) {
        let delivery = self.svc.account(self.tenant).webhooks().send_test(endpoint.id, None).await.unwrap();
        let log = AttemptLog {
            duration_ms: 1_234,
            error: Some("status: 500 Internal Server Error".to_owned()),
            cause: Some(AttemptCause::Status),
            response_body: Some(HOSTILE.to_owned()),
            remote_addr: Some("203.0.113.7:443".to_owned()),
            ..attempt_log(1, self.svc.store().env().now(), 500)
        };
        let (tenant, id, logged) = (self.tenant, delivery.id, log.clone());
        let write = self.svc.store().write("test", (tenant, id, logged), async |tx, (tenant, id, logged)| {
            Ok(tx.insert_attempt(*tenant, *id, logged).await?)
        });
        write.await.unwrap();
        (delivery, log)
    }
}

/// Returns the addresses that a page links to, which begin with `path`.
fn links<'p>(page: &'p str, path: &str) -> Vec<&'p str> {
    let all = page.split("href=\"/dashboard").skip(1).filter_map(|rest| rest.split('"').next());
    all.filter(|link| link.starts_with(path)).collect()
}

#[tokio::test]
async fn the_secret_of_a_new_endpoint_is_shown_once() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let form = [("url", "https://example.com/a"), ("description", HOSTILE)];
    let form =
        encode(&[&form[..], &[("selection", "kinds"), ("events", "invoice.paid"), ("events", "job.created")]].concat());
    let created = developer.post("/webhooks/new", &form).await;
    assert_eq!(created.status, StatusCode::OK);
    let params = ListParams::default();
    let endpoint = server.svc.account(server.tenant).webhooks().list(NoFilter {}, params).await.unwrap().data.remove(0);
    assert_eq!(endpoint.events.names(), ["invoice.paid", "job.created"]);
    assert!(created.text.contains(endpoint.secret.reveal()));
    for path in ["/webhooks".to_owned(), format!("/webhooks/{}", endpoint.id)] {
        let page = developer.get(&path).await.text;
        assert!(page.contains(ESCAPED) && !page.contains(HOSTILE), "{path}: {page}");
        assert!(!page.contains("whsec_"), "{path}");
    }
    for (form, error) in [
        ("url=http%3A%2F%2Fexample.com&selection=all", "https"),
        ("url=example.com%2Fhook&selection=all", "must begin with https://, as in https://example.com/hook"),
        ("url=https%3A%2F%2Fexample.com", "Choose all events"),
        ("url=https%3A%2F%2Fexample.com&selection=kinds&events=x", "Choose at least one kind"),
        ("url=https%3A%2F%2Fexample.com&selection=kinds&events=*", "Choose at least one kind"),
        ("url=&selection=all&description=a%0Ab", "line"),
    ] {
        let refused = developer.post("/webhooks/new", form).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert!(refused.text.contains(error), "{form}: {}", refused.text);
    }
}

#[tokio::test]
async fn kinds_of_the_application_are_chosen_like_the_others() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    assert!(developer.get("/webhooks/new").await.text.contains("value=\"order.shipped\""));
    for list in ["/deliveries", "/events"] {
        assert!(developer.get(list).await.text.contains("<option value=\"order.shipped\""), "{list}");
    }
    let form = |kind: &str| encode(&[("url", "https://example.com/a"), ("selection", "kinds"), ("events", kind)]);
    assert_eq!(developer.post("/webhooks/new", &form("order.shipped")).await.status, StatusCode::OK);
    let refused = developer.post("/webhooks/new", &form("order.unknown")).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let (_, events) = refused.text.split_once("<legend>Events</legend>").unwrap();
    assert!(events.contains("order.unknown"), "the error is at the field: {}", refused.text);
}

#[tokio::test]
async fn a_secret_is_rotated_and_an_endpoint_paused_and_enabled() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let webhooks = || server.svc.account(server.tenant);
    let path = |action: &str| format!("/webhooks/{}/{action}", endpoint.id);
    let rotated = developer.post(&path("rotate"), "overlap=24").await;
    let stored = webhooks().webhooks().get(endpoint.id).await.unwrap();
    assert!(rotated.text.contains(stored.secret.reveal()) && !rotated.text.contains(endpoint.secret.reveal()));
    assert_eq!(developer.post(&path("rotate"), "overlap=x").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(developer.post(&path("finish-rotation"), "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(webhooks().webhooks().get(endpoint.id).await.unwrap().previous_secret, None);
    for (action, enabled) in [("disable", false), ("enable", true)] {
        assert_eq!(developer.post(&path(action), "").await.status, StatusCode::SEE_OTHER);
        assert_eq!(webhooks().webhooks().get(endpoint.id).await.unwrap().enabled, enabled);
    }
    let recovery = developer.post(&path("recover"), "within=24h&missed=on").await;
    let location = recovery.headers[LOCATION].to_str().unwrap().strip_prefix("/dashboard").unwrap();
    assert!(developer.get(location).await.text.contains("<progress"));
}

#[tokio::test]
async fn the_page_of_an_endpoint_has_its_figures() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let endpoint = server.endpoint().await;
    let (_, log) = server.failed_delivery(&endpoint).await;
    let mut counter = AttemptCounter::default();
    counter.add(server.tenant, endpoint.id, &log);
    (0..3).for_each(|_| {
        counter.add(server.tenant, endpoint.id, &AttemptLog { status: 200, error: None, duration_ms: 8, ..log.clone() })
    });
    statistics::record(&**server.svc.store(), &counter.take()).await.unwrap();
    let page = viewer.get(&format!("/webhooks/{}", endpoint.id)).await.text;
    for text in ["75.0 %", "8 ms", "95 % within 1,280 ms", "15:00: 3 succeeded, 1 refused"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("Send test event") && !page.contains("Rotate secret"), "a viewer changes nothing");
    assert!(viewer.get("/webhooks").await.text.contains("75.0 %"));
}

#[tokio::test]
async fn a_delivery_is_shown_as_it_was_sent_and_sent_again() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let (delivery, log) = server.failed_delivery(&endpoint).await;
    let path = format!("/deliveries/{}", delivery.id);
    let page = developer.get(&path).await.text;
    assert!(page.contains(ESCAPED) && !page.contains(HOSTILE), "{page}");
    let event = server.svc.account(server.tenant).events().get(delivery.event_id).await.unwrap();
    let body = format!(
        r#"{{"event":"{}","data":{},"delivered_at":"{}","tenant_id":"{}"}}"#,
        event.kind, event.data, log.started_at, server.tenant
    );
    let (id, at) = (delivery.id.to_string(), log.started_at.as_seconds().to_string());
    let signature = signatures::standard_webhook_signature(&endpoint.secret, &id, &at, body.as_bytes());
    for text in [&signature, "203.0.113.7:443", "1,234 ms", "500", &format!("{id}.{at}.")] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("whsec_M") && !page.contains(endpoint.secret.reveal()));

    let sent = developer.post(&format!("{path}/replay"), "").await;
    assert_eq!(sent.headers[LOCATION], format!("/dashboard{path}?notice=replayed").as_str());
    let selected = developer.post("/deliveries/replay", &format!("id={id}")).await;
    assert_eq!(selected.status, StatusCode::SEE_OTHER);
    for form in ["", "id=x", &"id=0195a3c8-0000-7000-8000-000000000001&".repeat(51)] {
        assert_eq!(developer.post("/deliveries/replay", form).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test]
async fn lists_are_filtered_by_their_query_and_paged() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    assert!(viewer.get("/deliveries").await.text.contains("No deliveries yet"));
    let (one, two) = (server.endpoint().await, server.endpoint().await);
    for _ in 0..60 {
        server.clock.advance(Duration::from_secs(1));
        server.svc.account(server.tenant).webhooks().send_test(one.id, None).await.unwrap();
    }
    let (last, _) = server.failed_delivery(&two).await;
    let count =
        async |query: &str| links(&viewer.get(&format!("/deliveries{query}")).await.text, "/deliveries/0").len();
    assert_eq!(count("").await, 50);
    assert_eq!(count(&format!("?endpoint={}", two.id)).await, 1);
    assert_eq!(count("?status=held").await, 0);
    assert_eq!(count("?status=pending&within=1h").await, 50);
    assert_eq!(count(&format!("?event={}", last.event_id)).await, 1);
    let page = viewer.get("/deliveries").await.text;
    let older = links(&page, "/deliveries?")[0].replace("&amp;", "&");
    assert_eq!(count(older.strip_prefix("/deliveries").unwrap()).await, 11);
    for bad in ["?status=x", "?endpoint=x", "?kind=X", "?within=1y", "?before=x"] {
        assert_eq!(viewer.get(&format!("/deliveries{bad}")).await.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
}

/// The chain from a request to its events to their deliveries, and back.
#[tokio::test]
async fn a_request_leads_to_its_events_and_deliveries_and_back() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    server.endpoint().await;
    let account = server.svc.account(server.tenant);
    let key = account.keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await.unwrap();
    let request = Request::post("/api/v1/contacts")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", key.text.reveal()));
    let created = server.send(request.body(r#"{"email": "ada@example.com"}"#.into()).unwrap()).await;
    assert_eq!(created.status, StatusCode::CREATED);
    server.api.jobs().flush_request_log().await;

    let mut path =
        links(&viewer.get("/requests?method=POST&path=contacts&status=2xx").await.text, "/requests/")[0].to_owned();
    let first = path.clone();
    for next in ["/events/", "/deliveries/", "/requests/"] {
        let page = viewer.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        path = links(&page.text, next).first().unwrap_or_else(|| panic!("{path} has no link to {next}")).to_string();
    }
    assert_eq!(path, first);
    let contact = created.text.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
    for list in ["/events", "/deliveries"] {
        let found = viewer.get(&format!("{list}?record={contact}")).await.text;
        assert_eq!(links(&found, &format!("{list}/0")).len(), 1, "{list}");
    }
    for none in
        ["/requests?status=5xx", "/requests?key=0195a3c8-0000-7000-8000-000000000001", "/events?kind=job.created"]
    {
        assert!(viewer.get(none).await.text.contains("Nothing found"), "{none}");
    }
}

#[tokio::test]
async fn a_delivery_to_a_disabled_endpoint_offers_to_enable_it_and_send() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let (delivery, _) = server.failed_delivery(&endpoint).await;
    server.set_status(&delivery, DeliveryStatus::Held).await;
    let path = format!("/deliveries/{}", delivery.id);
    assert!(!developer.get(&path).await.text.contains("Enable it and send"));
    let webhooks = || server.svc.account(server.tenant).webhooks();
    let change = WebhookUpdate { enabled: Patch::Set(false), ..WebhookUpdate::default() };
    webhooks().update(endpoint.id, change).await.unwrap();

    let page = developer.get(&path).await.text;
    for shown in ["Enable it and send", "The endpoint of this delivery is disabled, so nothing is sent to it"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    // A form that was open before it was disabled.
    let refused = developer.post(&format!("{path}/replay"), "").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let form = refused.text.split(&format!("action=\"/dashboard{path}/replay\"")).nth(1).unwrap();
    let form = form.split("</form>").next().unwrap();
    for shown in ["role=\"alert\"", "enable it first", "Enable it and send"] {
        assert!(form.contains(shown), "{shown}: {form}");
    }
    let selected = developer.post("/deliveries/replay", &format!("id={}", delivery.id)).await;
    assert_eq!(selected.status, StatusCode::CONFLICT);
    let form = selected.text.split("id=\"selection\"").nth(1).unwrap().split("</form>").next().unwrap();
    assert!(form.contains("Nothing was sent, since https://example.com/hook takes nothing."), "{form}");

    let sent = developer.post(&format!("{path}/replay"), "enable=on").await;
    assert_eq!(webhooks().get(endpoint.id).await.map(|endpoint| endpoint.enabled), Ok(true));
    assert_eq!(sent.headers[LOCATION], format!("/dashboard{path}?notice=replayed").as_str());
    let page = developer.get(&path).await.text;
    assert!(page.contains("Send again") && !page.contains("Enable it and send"), "{page}");
}

#[tokio::test]
async fn a_refused_form_is_shown_again_with_the_reason_beside_it() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let endpoint = server.endpoint().await;
    let account = server.svc.account(server.tenant);
    let key = account.keys().create(KeyCreate::default()).await.unwrap().key;
    let change = WebhookUpdate { enabled: Patch::Set(false), ..WebhookUpdate::default() };
    account.webhooks().update(endpoint.id, change).await.unwrap();
    for (path, form, status, page, reason) in [
        (format!("/webhooks/{}/recover", endpoint.id), "within=24h", 409, "Recent deliveries", "enable it first"),
        (format!("/webhooks/{}/rotate", endpoint.id), "overlap=x", 422, "Recent deliveries", "Choose how long"),
        (format!("/keys/{}/rotate", key.id), "overlap=x", 422, "Create key", "Choose how long the old key stays valid"),
        ("/deliveries/replay".to_owned(), "", 422, "Each event goes to each endpoint", "Select at least one delivery"),
    ] {
        let again = owner.post(&path, form).await;
        assert_eq!(again.status, status, "{path}");
        assert!(again.text.contains(page) && again.text.contains("<nav"), "{path}: {}", again.text);
        assert_eq!(again.text.matches("role=\"alert\"").count(), 1, "{path}");
        let shown = again.text.split("role=\"alert\">").nth(1).unwrap().split('<').next().unwrap();
        assert!(shown.contains(reason), "{path}: {shown}");
    }
}

#[tokio::test]
async fn requests_offer_the_times_that_are_kept() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let spans = |page: &str| {
        let choice = page.split("name=\"within\"").nth(1).unwrap().split("</select>").next().unwrap().to_owned();
        choice.split("</option>").filter_map(|option| option.rsplit('>').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    let requests = spans(&viewer.get("/requests").await.text);
    assert_eq!(requests, ["Last 24 hours", "Last hour", "Last 6 hours", ""]);
    assert!(spans(&viewer.get("/deliveries").await.text).contains(&"Last 30 days".to_owned()));
}
