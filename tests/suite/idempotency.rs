//! Idempotency-Key on POST (docs/contract.md, "Idempotency").

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};
use svc_server::Settings;
use svc_server::outbound::resolver::Resolver;

use crate::faults::Gate;
use crate::harness::{Call, Response, SeededServer, sample, settings};

fn job(title: &str, key: &str) -> Call {
    Call::post("/jobs", json!({ "title": title })).header("idempotency-key", key)
}

fn replayed(response: &Response) -> bool {
    response.header("idempotent-replayed") == Some("true")
}

#[tokio::test]
async fn a_repeat_gets_the_first_response() {
    let server = SeededServer::new();
    for collection in ["contacts", "bookings", "quotes", "jobs", "webhooks"] {
        let body = sample(&server, collection, 1);
        let call = || Call::post(&format!("/{collection}"), body.clone()).header("idempotency-key", collection);
        let first = server.expect(201, call()).await;
        assert!(!replayed(&first));
        let events = server.new_events().await.len();
        for _ in 0..2 {
            let again = server.expect(201, call()).await;
            assert!(replayed(&again), "{collection}");
            assert_eq!((&again.body, again.etag()), (&first.body, first.etag()), "{collection}");
            assert_eq!(again.header("location"), first.header("location"));
        }
        assert_eq!(server.new_events().await.len(), events, "{collection}");
        let list = server.expect(200, Call::get(&format!("/{collection}"))).await.json();
        let seen = list["data"].as_array().unwrap().iter().filter(|row| row["id"] == first.id()).count();
        assert_eq!((seen, list["data"].as_array().unwrap().len()), (1, 2), "{collection}");
    }
}

/// The stored response is returned even if the record was changed or deleted since.
#[tokio::test]
async fn the_stored_response_does_not_change() {
    let server = SeededServer::new();
    let call = || Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "k");
    let first = server.expect(201, call()).await;
    let path = format!("/contacts/{}", first.id());
    server.expect(200, Call::patch(&path, json!({ "city": "Perth" }))).await;
    assert_eq!(server.expect(201, call()).await.body, first.body);
    server.expect(204, Call::delete(&path)).await;
    assert_eq!(server.expect(201, call()).await.body, first.body);
    server.expect(404, Call::get(&path)).await;
}

#[tokio::test]
async fn another_request_with_the_same_key_is_refused() {
    let server = SeededServer::new();
    server.expect(201, job("Fix roof", "k")).await;
    for other in [
        job("Fix floor", "k"),
        Call::new(Method::POST, "/jobs").raw("{\"title\": \"Fix roof\"}").header("idempotency-key", "k"),
        Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "k"),
    ] {
        let response = server.expect(400, other).await;
        assert_eq!(response.code(), "idempotency_key_reused");
    }
    assert!(replayed(&server.expect(201, job("Fix roof", "k")).await), "the first response is still stored");
    assert!(!replayed(&server.expect(201, job("Fix roof", "K")).await), "keys are case-sensitive");
}

#[tokio::test]
async fn a_conflict_is_stored() {
    let server = SeededServer::new();
    let call = || Call::post("/contacts", json!({ "email": "existing@example.com" })).header("idempotency-key", "k");
    let first = server.expect(409, call()).await;
    assert!(!replayed(&first));
    // The conflict is replayed even after its cause is gone.
    server.expect(204, Call::delete(&format!("/contacts/{}", server.id("contact_id")))).await;
    let again = server.expect(409, call()).await;
    assert_eq!((again.body.clone(), replayed(&again)), (first.body, true));
    server.expect(201, call().header("idempotency-key", "another")).await;
}

#[tokio::test]
async fn other_errors_are_not_stored() {
    let server = SeededServer::new();
    let contact = server.id("contact_id");
    let failures: [(u16, Call); 6] = [
        (400, Call::new(Method::POST, "/jobs").raw("{")),
        (400, Call::post("/jobs", json!({ "title": 5 }))),
        (400, Call::post("/jobs?x=1", json!({ "title": "x" }))),
        (400, Call::post("/jobs", json!({ "title": "x", "contact_id": server.id("unknown_id") }))),
        (415, Call::post("/jobs", json!({ "title": "x" })).header("content-type", "text/plain")),
        (403, Call::post("/jobs", json!({ "title": "x" })).key(server.key("read"))),
    ];
    for (status, call) in failures {
        server.expect(status, call.header("idempotency-key", "k")).await;
    }
    let good = Call::post("/jobs", json!({ "title": "x", "contact_id": contact })).header("idempotency-key", "k");
    assert!(!replayed(&server.expect(201, good).await));
}

#[tokio::test]
async fn responses_are_stored_for_the_configured_time() {
    let server = SeededServer::with(Settings { idempotency_ttl: Duration::from_secs(3600), ..settings() });
    let first = server.expect(201, job("Fix roof", "k")).await;
    server.clock.advance(Duration::from_secs(3599));
    server.api.jobs().run_housekeeping().await.unwrap();
    assert_eq!(server.expect(201, job("Fix roof", "k")).await.id(), first.id());
    server.clock.advance(Duration::from_secs(2));
    // A response expires even if it was not deleted yet; from then on the new response is replayed.
    let second = server.expect(201, job("Fix floor", "k")).await;
    assert!(!replayed(&second) && second.id() != first.id());
    assert_eq!(server.expect(201, job("Fix floor", "k")).await.id(), second.id());
    server.clock.advance(Duration::from_secs(3601));
    server.api.jobs().run_housekeeping().await.unwrap();
    assert!(!replayed(&server.expect(201, job("Fix roof", "k")).await));
}

#[tokio::test]
async fn responses_are_stored_for_a_day_by_default() {
    let server = SeededServer::new();
    server.expect(201, job("Fix roof", "k")).await;
    server.clock.advance(Duration::from_secs(24 * 60 * 60 - 1));
    assert!(replayed(&server.expect(201, job("Fix roof", "k")).await));
    server.clock.advance(Duration::from_secs(2));
    assert!(!replayed(&server.expect(201, job("Fix roof", "k")).await));
}

#[tokio::test]
async fn both_api_versions_share_idempotency_keys() {
    let server = SeededServer::new();
    let first = server.expect(201, job("Fix roof", "k")).await;
    let mut call = job("Fix roof", "k");
    call.target = "/api/v2/jobs".to_owned();
    let again = server.expect(201, call).await;
    assert_eq!((again.body.clone(), replayed(&again)), (first.body, true));
}

#[tokio::test]
async fn idempotency_keys_are_shared_within_a_tenant_only() {
    let server = SeededServer::new();
    let first = server.expect(201, job("Fix roof", "k")).await;
    let signed = server.expect(201, job("Fix roof", "k").signed(server.key("signed"))).await;
    assert_eq!((signed.id(), replayed(&signed)), (first.id(), true));
    let other = server.expect(201, job("Fix roof", "k").key(server.key("other"))).await;
    assert!(!replayed(&other) && other.id() != first.id());
}

#[tokio::test]
async fn malformed_idempotency_keys_are_refused() {
    let server = SeededServer::new();
    let longest = "k".repeat(255);
    for good in ["k", "a key with spaces", "~!@#$%^&*()", longest.as_str()] {
        server.expect(201, job("x", good)).await;
        assert!(replayed(&server.expect(201, job("x", good)).await), "{good}");
    }
    let too_long = "k".repeat(256);
    let mut not_text = job("x", "k");
    not_text.headers.insert("idempotency-key", http::HeaderValue::from_bytes(b"caf\xc3\xa9").unwrap());
    for bad in [job("x", ""), job("x", &too_long), job("x", "1").and_header("idempotency-key", "2"), not_text] {
        let response = server.expect(400, bad).await;
        assert_eq!(
            (response.code().as_str(), &response.json()["field"]),
            ("validation_failed", &json!("Idempotency-Key"))
        );
    }
}

/// A resolver that returns a public address once and a private one afterwards.
struct ChangingResolver(std::sync::atomic::AtomicBool);

impl Resolver for ChangingResolver {
    fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        let is_repeated = self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
        let address = if is_repeated { IpAddr::from([10, 0, 0, 7]) } else { IpAddr::from([93, 184, 215, 14]) };
        Box::pin(async move { vec![address] })
    }
}

/// A repeat gets the first response even though the same request would fail now.
#[tokio::test]
async fn a_repeat_does_not_depend_on_the_resolver() {
    let resolver = Arc::new(ChangingResolver(false.into()));
    let server = SeededServer::with(Settings { resolver, ..settings() });
    let create = |key| Call::post("/webhooks", sample(&server, "webhooks", 1)).header("idempotency-key", key);
    let first = server.expect(201, create("k")).await;
    let again = server.expect(201, create("k")).await;
    assert_eq!((again.body.clone(), replayed(&again)), (first.body, true));
    assert_eq!(server.expect(400, create("l")).await.json()["field"], "url");
}

/// On other methods the header is ignored.
#[tokio::test]
async fn only_responses_to_post_are_stored() {
    let server = SeededServer::new();
    let path = format!("/jobs/{}", server.id("job_id"));
    for title in ["One", "Two"] {
        let call = Call::patch(&path, json!({ "title": title })).header("idempotency-key", "k");
        let response = server.expect(200, call).await;
        assert_eq!((response.data()["title"].clone(), replayed(&response)), (Value::from(title), false));
    }
}

#[tokio::test]
async fn a_repeat_during_the_first_request_gets_409() {
    let (server, gate) = Gate::server();
    gate.hold("createJob");
    let (first, ()) = tokio::join!(server.send(job("Fix roof", "k")), async {
        gate.arrival().await;
        for call in [job("Fix roof", "k"), job("Fix floor", "k")] {
            let response = server.expect(409, call).await;
            assert_eq!((response.code().as_str(), replayed(&response)), ("idempotency_in_progress", false));
        }
        // Another tenant and another idempotency key are not affected.
        let other = Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "l");
        server.expect(201, other).await;
        gate.open();
        gate.release();
    });
    assert_eq!(first.status, 201);
    assert_eq!(server.expect(201, job("Fix roof", "k")).await.body, first.body);
    let jobs = server.expect(200, Call::get("/jobs")).await.json();
    assert_eq!(jobs["data"].as_array().unwrap().len(), 2);
}

/// Between the refusal and its storage, another node makes the record under the same key.
#[tokio::test]
async fn a_conflict_does_not_replace_the_response_of_another_node() {
    let (server, gate) = Gate::server();
    let other_node = svc_server::Api::new(server.second_store(), settings());
    let call = || Call::post("/contacts", json!({ "email": "existing@example.com" })).header("idempotency-key", "k");
    gate.hold("idempotency.record");
    let (refused, made) = tokio::join!(server.send(call()), async {
        gate.arrival().await;
        server.expect(204, Call::delete(&format!("/contacts/{}", server.id("contact_id")))).await;
        let made = server.send_to(&other_node, call()).await;
        gate.open();
        gate.release();
        made
    });
    assert_eq!((refused.status, refused.code().as_str(), made.status), (409, "email_taken", 201));
    for api in [&server.api, &other_node] {
        let again = server.send_to(api, call()).await;
        assert_eq!((again.status, &again.body, replayed(&again)), (201, &made.body, true));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_repeats_create_one_record() {
    let server = Arc::new(SeededServer::new());
    // A second service on the same database, like another node, does not know the keys in flight in this one.
    let second = svc_server::Api::new(server.second_store(), settings());
    for round in 0..4 {
        let key = format!("round-{round}");
        let tasks: Vec<_> = (0..32)
            .map(|number| {
                let (server, call) = (Arc::clone(&server), job("Fix roof", &key));
                let api = if number % 4 == 3 { second.clone() } else { server.api.clone() };
                tokio::spawn(async move { server.send_to(&api, call).await })
            })
            .collect();
        let mut responses = Vec::new();
        for task in tasks {
            responses.push(task.await.unwrap());
        }
        let made: Vec<&Response> = responses.iter().filter(|response| response.status == 201).collect();
        assert!(made.iter().all(|response| response.body == made[0].body));
        assert_eq!(made.iter().filter(|response| !replayed(response)).count(), 1);
        for response in responses.iter().filter(|response| response.status != 201) {
            assert_eq!(
                (response.status, response.code().as_str()),
                (409, "idempotency_in_progress"),
                "{}",
                response.text
            );
        }
    }
    let jobs = server.expect(200, Call::get("/jobs")).await.json();
    let numbers: Vec<&str> =
        jobs["data"].as_array().unwrap().iter().map(|job| job["job_number"].as_str().unwrap()).collect();
    assert_eq!(numbers, ["JOB-0005", "JOB-0004", "JOB-0003", "JOB-0002", "JOB-0001"]);
    assert_eq!(server.new_events().await, ["job.created"; 4]);
}

/// Concurrent creates without a key: each creates a row and one event, and the numbers have no gaps.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_leave_no_gaps_in_the_numbers() {
    let server = Arc::new(SeededServer::new());
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let contact = if number % 3 == 0 { "unknown_id" } else { "contact_id" };
                let body = json!({ "contact_id": server.id(contact), "total": number });
                server.send(Call::post("/quotes", body)).await.status
            })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap() == 201);
    }
    assert_eq!(made, 26);
    let quotes = server.expect(200, Call::get("/quotes?limit=200")).await.json();
    let quotes = quotes["data"].as_array().unwrap();
    let numbers: Vec<&str> = quotes.iter().map(|quote| quote["quote_number"].as_str().unwrap()).collect();
    let want: Vec<String> = (1..=27).rev().map(|number| format!("QUO-{number:04}")).collect();
    assert_eq!(numbers, want);
}
