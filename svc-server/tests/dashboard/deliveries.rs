//! The page of a delivery, and sending deliveries again: those that are ticked, and all that match a filter.

use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog};
use svc_test_support::fixture::attempt_log;

use super::browser::{Browser, Response, Server, encode, without_labels};

impl Server {
    /// Records an attempt at a delivery.
    async fn attempt(&self, delivery: &Delivery, attempt: u32, status: i32, error: &str, response: &str) {
        let log = AttemptLog {
            duration_ms: 10,
            error: Some(error.to_owned()).filter(|error| !error.is_empty()),
            cause: match (error, status) {
                ("", _) => None,
                (_, 0) => Some(AttemptCause::UnknownHost),
                _ => Some(AttemptCause::Status),
            },
            response_body: Some(response.to_owned()),
            ..attempt_log(attempt, self.svc.store().env().now(), status)
        };
        let write = self.svc.store().write("test", (self.tenant, delivery.id, log), async |tx, (tenant, id, log)| {
            Ok(tx.insert_attempt(*tenant, *id, log).await?)
        });
        write.await.unwrap();
    }

    async fn test_delivery(&self, endpoint: &WebhookSubscription) -> Delivery {
        self.clock.advance(Duration::from_secs(1));
        self.svc.account(self.tenant).webhooks().send_test(endpoint.id, None).await.unwrap()
    }

    async fn disable(&self, endpoint: &WebhookSubscription) {
        let change = WebhookUpdate { enabled: Patch::Set(false), ..WebhookUpdate::default() };
        self.svc.account(self.tenant).webhooks().update(endpoint.id, change).await.unwrap();
    }

    async fn enable(&self, endpoint: &WebhookSubscription) {
        let change = WebhookUpdate { enabled: Patch::Set(true), ..WebhookUpdate::default() };
        self.svc.account(self.tenant).webhooks().update(endpoint.id, change).await.unwrap();
    }
}

/// Returns the text of an element without its tags and escapes.
fn text_of<'p>(page: &'p str, begins: &str, ends: &str) -> String {
    let (_, rest) = page.split_once(begins).unwrap_or_else(|| panic!("{begins}: {page}"));
    let html: &'p str = rest.split_once('>').unwrap().1.split_once(ends).unwrap().0;
    let text: String = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[tokio::test]
async fn attempts_are_a_timeline_with_their_errors_in_words() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let delivery = server.test_delivery(&server.endpoint().await).await;
    let page = viewer.get(&format!("/deliveries/{}", delivery.id)).await.text;
    assert!(page.contains("It is sent as soon as the endpoint takes it."), "{page}");
    server.attempt(&delivery, 1, 0, "dns: example.com does not resolve", "").await;
    server.attempt(&delivery, 2, 308, "status: 308 Permanent Redirect", "").await;
    let page = viewer.get(&format!("/deliveries/{}", delivery.id)).await.text;
    for text in [
        "The name example.com does not resolve to an address.",
        "Logged as: dns: example.com does not resolve",
        "Your server responded 308, a redirect, which is not followed.",
        &format!("data-live=\"/dashboard/deliveries/{}/live\"", delivery.id),
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.find("Attempt 2").unwrap() < page.find("Attempt 1").unwrap(), "the newest comes first");
}

/// After a failure an endpoint gets nothing for a while, whatever is due.
#[tokio::test]
async fn a_delivery_says_how_long_its_endpoint_is_left_alone() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let endpoint = server.endpoint().await;
    let delivery = server.test_delivery(&endpoint).await;
    let now = server.svc.store().env().now();
    let backoff_until = now.checked_add(Duration::from_secs(120));
    let failed = (server.tenant, WebhookSubscription { backoff_until, ..endpoint.clone() });
    let write = server.svc.store().write("test", failed, async |tx, (tenant, endpoint)| {
        Ok(tx.update_delivery_outcome(*tenant, endpoint).await?)
    });
    write.await.unwrap();
    let page = viewer.get(&format!("/deliveries/{}", delivery.id)).await.text;
    assert!(page.contains("The endpoint failed, so nothing is sent to it until"), "{page}");
    let page = viewer.get(&format!("/webhooks/{}", endpoint.id)).await.text;
    assert!(page.contains("nothing is sent until"), "{page}");
    server.clock.advance(Duration::from_secs(121));
    let page = viewer.get(&format!("/deliveries/{}", delivery.id)).await.text;
    assert!(page.contains("It is sent as soon as the endpoint takes it."), "{page}");
}

#[tokio::test]
async fn the_command_of_curl_sends_what_was_sent_and_has_no_secret() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let endpoint = server.endpoint().await;
    let delivery = server.test_delivery(&endpoint).await;
    server.attempt(&delivery, 1, 200, "", r#"{"ok":true,"of":[1.50]}"#).await;
    let page = viewer.get(&format!("/deliveries/{}", delivery.id)).await.text;
    let command = text_of(&page, "id=\"curl\"", "</pre>");
    // A shell takes the command apart, and gives the arguments of curl.
    let script = format!("curl() {{ printf '%s\\n' \"$@\"; }}\n{command}");
    let printed = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let arguments = String::from_utf8(printed.stdout).unwrap();
    let lines: Vec<&str> = arguments.lines().collect();
    assert_eq!(lines[..5], ["-X", "POST", "https://example.com/hook", "-H", "content-type: application/json"]);
    let header = |name: &str| {
        let start = format!("{name}: ");
        lines.iter().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("{name}: {command}"))
    };
    let (at, body) = (header("webhook-timestamp"), *lines.last().unwrap());
    let (id, secret) = (delivery.id.to_string(), &endpoint.secret);
    let signature = svc_core::webhooks::signatures::standard_webhook_signature(secret, &id, at, body.as_bytes());
    assert_eq!(header("webhook-signature"), signature);
    assert!(!page.contains(endpoint.secret.reveal()), "{page}");
    let response = text_of(&page, "id=\"response-body\"", "</pre>");
    assert_eq!(response, "{\n  \"ok\": true,\n  \"of\": [\n    1.50\n  ]\n}");
}

#[tokio::test]
async fn two_attempts_are_compared() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let delivery = server.test_delivery(&server.endpoint().await).await;
    for (attempt, status, error) in [(1, 500, "status: 500 Internal Server Error"), (2, 200, "")] {
        server.attempt(&delivery, attempt, status, error, &format!("<b>{attempt}")).await;
    }
    let path = format!("/deliveries/{}", delivery.id);
    for query in ["?compare=1,2", "?compare=1&compare=2"] {
        let page = without_labels(&viewer.get(&format!("{path}{query}")).await.text);
        for text in ["<th scope=\"col\">Attempt 1</th>", "<td>500</td><td>200</td>", "&lt;b&gt;1", "&lt;b&gt;2"] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(page.contains("<td>1</td><td>2</td>"), "the header of the attempt: {page}");
        assert!(page.contains("Result <span class=\"badge neutral\">differs"), "{page}");
        assert!(!page.contains("Duration <span"), "both took 10 ms: {page}");
    }
    for query in ["?compare=1", "?compare=1,1", "?compare=1,3", "?compare=1,2,2"] {
        let page = viewer.get(&format!("{path}{query}")).await;
        assert!(page.text.contains("Tick two attempts of this delivery."), "{query}: {}", page.text);
    }
    assert_eq!(viewer.get(&format!("{path}?compare=x")).await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_selection_that_was_refused_stays_with_its_filter() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let endpoint = server.endpoint().await;
    let (one, two) = (server.test_delivery(&endpoint).await, server.test_delivery(&endpoint).await);
    server.disable(&endpoint).await;
    let path = format!("/deliveries/replay?endpoint={}&status=held", endpoint.id);
    let refused = developer.post(&path, &format!("id={}", two.id)).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(
        refused.text.contains("Nothing was sent, since https://example.com/hook takes nothing."),
        "{}",
        refused.text
    );
    let is_ticked = |page: &str, id: DeliveryId| page.contains(&format!("value=\"{id}\" form=\"selection\" checked"));
    assert!(is_ticked(&refused.text, two.id) && !is_ticked(&refused.text, one.id), "{}", refused.text);
    assert!(refused.text.contains("<option value=\"held\" selected>"), "{}", refused.text);
    let all = developer.get("/deliveries?select=all").await.text;
    assert!(is_ticked(&all, one.id) && is_ticked(&all, two.id), "{all}");
    server.enable(&endpoint).await;
    let sent = developer.post(&path, &format!("id={}", two.id)).await;
    let list = format!("/dashboard/deliveries?endpoint={}&status=held&notice=replayed", endpoint.id);
    assert_eq!(sent.headers[LOCATION], list.as_str());
}

/// Sends the form of a page with its hidden fields.
async fn send_form_of(browser: &Browser<'_>, path: &str, page: &str) -> Response {
    let (_, form) = page.split_once(&format!("action=\"/dashboard{path}\"")).unwrap_or_else(|| panic!("{page}"));
    let form = form.split_once("</form>").unwrap().0;
    let fields: Vec<(&str, &str)> = form
        .split("type=\"hidden\" name=\"")
        .skip(1)
        .filter_map(|field| field.split_once("\" value=\""))
        .map(|(name, rest)| (name, rest.split('"').next().unwrap()))
        .filter(|(name, _)| *name != "csrf")
        .collect();
    browser.post(path, &encode(&fields)).await
}

#[tokio::test]
async fn all_that_matches_a_filter_is_counted_and_then_replayed_once() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let (endpoint, other) = (server.endpoint().await, server.endpoint().await);
    for _ in 0..3 {
        server.test_delivery(&endpoint).await;
    }
    server.test_delivery(&other).await;
    server.disable(&endpoint).await;
    let matching = "/deliveries/replay-matching";
    let path = format!("{matching}?endpoint={}&status=held&within=24h", endpoint.id);
    let refused = developer.get(&path).await.text;
    assert!(refused.contains("https://example.com/hook takes nothing, since it is paused or disabled."), "{refused}");
    server.enable(&endpoint).await;
    let page = developer.get(&path).await.text;
    assert!(page.contains("Send 3 deliveries again"), "{page}");
    // What happens after the page was shown is not part of it.
    server.test_delivery(&endpoint).await;
    let (started, again) =
        tokio::join!(send_form_of(&developer, matching, &page), send_form_of(&developer, matching, &page));
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{}", started.text);
    assert_eq!(started.headers[LOCATION], again.headers[LOCATION], "a form that is sent twice starts one replay");
    let replays = server.svc.account(server.tenant).replays().list(10).await.unwrap();
    assert_eq!((replays.len(), replays[0].total, replays[0].subscription_id), (1, 3, endpoint.id));
    let progress = started.headers[LOCATION].to_str().unwrap().strip_prefix("/dashboard").unwrap().to_owned();
    let progress = developer.get(&progress).await.text;
    assert!(progress.contains("data-refresh") && progress.contains("0 of 3"), "{progress}");
}

#[tokio::test]
async fn a_filter_that_no_replay_can_follow_says_why() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let (endpoint, _) = (server.endpoint().await, server.endpoint().await);
    let of = |query: &str| format!("/deliveries/replay-matching?endpoint={}&{query}", endpoint.id);
    for (path, reason) in [
        ("/deliveries/replay-matching".to_owned(), "A replay is of one endpoint."),
        (of("kind=invoice.paid"), "so it cannot be of one kind of event"),
        (of("record=x"), "so it cannot be of one kind of event"),
        (of("status=pending"), "Waiting deliveries are sent by themselves."),
        ("/deliveries/replay-matching?endpoint=0195a3c8-0000-7000-8000-000000000001".to_owned(), "was deleted"),
    ] {
        let page = developer.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(
            page.text.contains(reason) && !page.text.contains("deliveries again</button>"),
            "{path}: {}",
            page.text
        );
    }
    let bad = developer.post("/deliveries/replay-matching", &format!("endpoint={}&since=x", endpoint.id)).await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
}
