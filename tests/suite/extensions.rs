//! The operations beyond the contract (`--extensions on`): events and deliveries are read, and sent again.

use http::Method;
use serde_json::{Value, json};
use svc_core::accounts::keys::Scope;
use svc_core::platform::operations::extensions;
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId};
use svc_server::kernel::versions::method_of;
use svc_server::{Settings, Surfaces};
use svc_test_support::fixture::attempt_log;

use crate::harness::{Call, SeededServer, limited, operations, sample, settings};

fn extended() -> SeededServer {
    SeededServer::serving(surfaces(), settings())
}

fn surfaces() -> Surfaces {
    Surfaces { extensions: true, ..Surfaces::default() }
}

fn ids(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|record| record["id"].as_str().unwrap()).collect()
}

fn kinds(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

/// Reads a list to its end, page by page.
async fn walk(server: &SeededServer, path: &str) -> Vec<Value> {
    let (mut records, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.expect(200, Call::get(&format!("{path}{cursor}"))).await.json();
        records.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return records,
        }
    }
}

/// Creates a contact, and returns the id of its delivery.
async fn deliver(server: &SeededServer, number: usize) -> String {
    server.expect(201, Call::post("/contacts", sample(server, "contacts", number))).await;
    let page = format!("/webhooks/{}/deliveries?limit=1", server.id("webhook_id"));
    server.expect(200, Call::get(&page)).await.json()["data"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn without_the_setting_there_are_no_such_operations() {
    let (plain, extended) = (SeededServer::new(), extended());
    let all = operations().len() + extensions().len();
    for version in ["v1", "v2"] {
        for (server, count) in [(&plain, 25), (&extended, all)] {
            let document = Call::absolute(Method::GET, &format!("/api/{version}/openapi.json")).anonymous();
            let document = server.expect(200, document).await.json();
            let paths = document["paths"].as_object().unwrap().values();
            assert_eq!(paths.map(|path| path.as_object().unwrap().len()).sum::<usize>(), count, "{version}");
        }
        for operation in extensions() {
            let path =
                format!("/api/{version}{}", operation.path_in_account().replace("{id}", &plain.id("webhook_id")));
            let response = plain.send(Call::absolute(method_of(operation), &path)).await;
            assert_eq!((response.status, response.code().as_str()), (404, "route_not_found"), "{}", operation.id);
        }
    }
}

#[tokio::test]
async fn events_are_listed_by_kind_record_and_time_in_either_order() {
    let server = extended();
    let newest = server.expect(200, Call::get("/events")).await.json();
    let seeded = ["contact.created", "booking.created", "quote.created", "job.created", "invoice.created"];
    let seeded = [&seeded[..], &["contact.created", "contact.deleted"]].concat();
    assert_eq!(kinds(&newest), seeded.iter().rev().copied().collect::<Vec<_>>());
    let oldest = server.expect(200, Call::get("/events?order=oldest_first")).await.json();
    assert_eq!(kinds(&oldest), seeded);
    assert_eq!(ids(&oldest), ids(&newest).into_iter().rev().collect::<Vec<_>>());

    for order in ["newest_first", "oldest_first"] {
        let walked = walk(&server, &format!("/events?limit=2&order={order}")).await;
        let whole = server.expect(200, Call::get(&format!("/events?order={order}"))).await.json();
        assert_eq!(json!(walked), whole["data"], "{order}");
        let of_kind = walk(&server, &format!("/events?limit=1&kind=contact.created&order={order}")).await;
        assert_eq!(of_kind.len(), 2, "{order}");
        assert!(of_kind.iter().all(|event| event["kind"] == "contact.created"));
    }
    let record = server.id("contact_id");
    server.expect(200, Call::patch(&format!("/contacts/{record}"), json!({ "city": "Perth" }))).await;
    let of_record = |order: &str| Call::get(&format!("/events?record_id={record}&order={order}"));
    let history = server.expect(200, of_record("oldest_first")).await.json();
    assert_eq!(kinds(&history), ["contact.created", "contact.updated"]);
    assert_eq!(history["data"][1]["data"]["city"], "Perth");
    assert_eq!(
        kinds(&server.expect(200, of_record("newest_first")).await.json()),
        ["contact.updated", "contact.created"]
    );

    let since = |event: &Value| event["created_at"].as_str().unwrap().to_owned();
    let later = format!("/events?order=oldest_first&since={}", since(&oldest["data"][5]));
    assert_eq!(
        kinds(&server.expect(200, Call::get(&later)).await.json()),
        ["contact.created", "contact.deleted", "contact.updated"],
        "at or after the time"
    );
    let before = format!("/events?until={}", since(&oldest["data"][1]));
    assert_eq!(kinds(&server.expect(200, Call::get(&before)).await.json()), ["contact.created"], "before the time");

    let one = server.expect(200, Call::get(&format!("/events/{}", ids(&oldest)[3]))).await;
    assert_eq!(one.data(), oldest["data"][3]);
    server.expect(304, Call::get(&format!("/events/{}", ids(&oldest)[3])).header("if-none-match", one.etag())).await;
}

#[tokio::test]
async fn bad_input_names_the_parameter() {
    let server = extended();
    let events = server.expect(200, Call::get("/events?limit=2")).await.json();
    let cursor = events["next_cursor"].as_str().unwrap();
    let webhook = server.id("webhook_id");
    let mut refused = String::new();
    for call in [
        Call::get("/events?order=random"),
        Call::get("/events?kind=Contact"),
        Call::get("/events?record_id=7"),
        Call::get("/events?since=yesterday"),
        Call::get("/events?status=failed"),
        Call::get(&format!("/events?cursor={cursor}&order=oldest_first")),
        Call::get(&format!("/events?cursor={cursor}&kind=job.created")),
        Call::get(&format!("/events?cursor={cursor}")).key(server.key("other")),
        Call::get(&format!("/webhooks/{webhook}/deliveries?status=late")),
        Call::get(&format!("/webhooks/{webhook}/deliveries?subscription_id={webhook}")),
        Call::get(&format!("/webhooks/{webhook}/deliveries?cursor={cursor}")),
        Call::post(&format!("/webhooks/{webhook}/replay"), json!({})),
        Call::post(
            &format!("/webhooks/{webhook}/replay"),
            json!({ "since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z" }),
        ),
        Call::post(
            &format!("/webhooks/{webhook}/replay"),
            json!({ "since": "2026-03-02T00:00:00Z", "statuses": ["late"] }),
        ),
        Call::post(&format!("/webhooks/{webhook}/test"), json!({ "kind": "contact.vanished!" })),
        Call::post(&format!("/webhooks/{webhook}/rotate-secret"), json!({ "overlap": "1h" })),
    ] {
        let shown = format!("{} {} {}", call.method, call.target, String::from_utf8_lossy(&call.body));
        let body = server.expect(400, call).await.json();
        refused.push_str(&format!("{shown}\n  {}\n", body));
    }
    let refused = refused.replace(cursor, "CURSOR").replace(&webhook, "WEBHOOK");
    insta::assert_snapshot!(refused);
}

/// Returns the numbers of the attempts at a delivery as its list has them, page by page.
async fn attempts(server: &SeededServer, delivery: &str) -> Vec<Vec<u64>> {
    let (path, mut cursor) = (format!("/deliveries/{delivery}/attempts"), String::new());
    let mut pages = Vec::new();
    loop {
        let page = server.expect(200, Call::get(&format!("{path}{cursor}"))).await.json();
        let numbers = page["data"].as_array().unwrap().iter().map(|log| log["attempt"].as_u64().unwrap());
        pages.extend(Some(numbers.collect::<Vec<_>>()).filter(|numbers| !numbers.is_empty()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("?cursor={next}"),
            None => return pages,
        }
    }
}

/// A delivery is replayed as often as somebody likes, and each attempt may have 16 KiB of its response.
#[tokio::test]
async fn a_response_has_the_newest_attempts_and_the_list_has_all() {
    let server = extended();
    let delivery = deliver(&server, 1).await;
    let id = (server.tenant, delivery.parse::<DeliveryId>().unwrap());
    let insert = server.store().write("test", id, async |tx, &(tenant, id)| {
        for attempt in 1..=45 {
            let log = AttemptLog {
                duration_ms: 1,
                response_body: Some("\u{1}".repeat(16 * 1024)),
                ..attempt_log(attempt, tx.env().now(), 500)
            };
            tx.insert_attempt(tenant, id, &log).await?;
        }
        Ok(())
    });
    insert.await.unwrap();
    let response = server.expect(200, Call::get(&format!("/deliveries/{delivery}"))).await;
    let log: Vec<u64> =
        response.data()["log"].as_array().unwrap().iter().map(|log| log["attempt"].as_u64().unwrap()).collect();
    assert_eq!(log, (26..=45).collect::<Vec<_>>(), "the newest ones, the first of them first");
    assert!(response.body.len() < 20 * 100 * 1024, "{}", response.body.len());
    let pages: [Vec<u64>; 3] = [(26..=45).rev().collect(), (6..=25).rev().collect(), (1..=5).rev().collect()];
    assert_eq!(attempts(&server, &delivery).await, pages);
    let other = server.expect(404, Call::get(&format!("/deliveries/{}/attempts", server.id("webhook_id")))).await;
    assert_eq!(other.code(), "not_found");
}

#[tokio::test]
async fn deliveries_are_read_and_sent_again() {
    let server = extended();
    let webhook = server.id("webhook_id");
    let (first, second) = (deliver(&server, 1).await, deliver(&server, 2).await);
    let path = format!("/webhooks/{webhook}/deliveries");
    let list = server.expect(200, Call::get(&path)).await.json();
    assert_eq!(&ids(&list)[..2], [second.as_str(), first.as_str()]);
    assert_eq!(json!(walk(&server, &format!("{path}?limit=1")).await), list["data"]);
    let failed = server.expect(200, Call::get(&format!("{path}?status=failed"))).await.json();
    assert_eq!(ids(&failed), [""; 0]);
    let of_kind = server.expect(200, Call::get(&format!("{path}?kind=job.created"))).await.json();
    assert_eq!(of_kind["data"].as_array().unwrap().len(), 0);

    let delivery = server.expect(200, Call::get(&format!("/deliveries/{first}"))).await.data();
    assert_eq!((delivery["delivery"]["id"].as_str(), &delivery["log"]), (Some(first.as_str()), &json!([])));
    assert_eq!(delivery["event"]["data"]["email"], "person1@example.com");

    assert!(attempts(&server, &first).await.is_empty());

    // Replays are those of the operator: repeated under one key, they happen once.
    let replay = || Call::new(Method::POST, &format!("/deliveries/{first}/replay")).header("idempotency-key", "again");
    let replayed = server.expect(200, replay()).await;
    assert_eq!(replayed.data()["status"], "pending");
    let repeated = server.expect(200, replay()).await;
    assert_eq!((repeated.header("idempotent-replayed"), &repeated.body), (Some("true"), &replayed.body));

    let bulk = json!({ "since": "2026-03-01T00:00:00Z", "statuses": ["pending"] });
    let bulk = server.expect(201, Call::post(&format!("/webhooks/{webhook}/replay"), bulk)).await;
    let location = bulk.header("location").unwrap().to_owned();
    assert_eq!(location, format!("/api/v1/replays/{}", bulk.id()));
    let progress = server.expect(200, Call::absolute(Method::GET, &location)).await;
    assert_eq!((progress.data(), progress.etag()), (bulk.data(), bulk.etag()));
    assert_eq!(progress.data()["finished_at"], Value::Null);

    let test =
        server.expect(201, Call::post(&format!("/webhooks/{webhook}/test"), json!({ "kind": "job.created" }))).await;
    assert_eq!((&test.data()["event"], &test.data()["subscription_id"]), (&json!("job.created"), &json!(webhook)));
    let event = server.expect(200, Call::get(&format!("/events/{}", test.data()["event_id"].as_str().unwrap()))).await;
    assert_eq!(event.data()["is_test"], true);

    let rotated =
        server.expect(200, Call::post(&format!("/webhooks/{webhook}/rotate-secret"), json!({ "overlap": 60 }))).await;
    assert!(rotated.data()["secret"].as_str().unwrap().starts_with("whsec_"));
    // A subscription that does not send refuses all three.
    server.expect(200, Call::patch(&format!("/webhooks/{webhook}"), json!({ "enabled": false }))).await;
    for (path, body) in [
        (format!("/deliveries/{first}/replay"), None),
        (format!("/webhooks/{webhook}/replay"), Some(json!({ "since": "2026-03-01T00:00:00Z" }))),
        (format!("/webhooks/{webhook}/test"), Some(json!({}))),
    ] {
        let call = Call::new(Method::POST, &path);
        let call = body.iter().fold(call, |call, body| call.json(body));
        assert_eq!(server.expect(409, call).await.code(), "not_allowed", "{path}");
    }
}

/// Every operation responds to the id of another account exactly as to an unknown id.
#[tokio::test]
async fn another_accounts_ids_are_unknown() {
    let server = extended();
    let delivery = deliver(&server, 1).await;
    let bulk = json!({ "since": "2026-03-01T00:00:00Z" });
    let replay = format!("/webhooks/{}/replay", server.id("webhook_id"));
    let replay = server.expect(201, Call::post(&replay, bulk.clone())).await.id();
    let events = server.expect(200, Call::get("/events?limit=1")).await.json();
    let of_collection = |collection: &str| match collection {
        "events" => ids(&events)[0].to_owned(),
        "deliveries" => delivery.clone(),
        "replays" => replay.clone(),
        "webhooks" => server.id("webhook_id"),
        other => panic!("no record of {other}"),
    };
    let mut count = 0;
    for operation in extensions().iter().filter(|operation| operation.has_id) {
        let call = |id: &str| {
            let call = Call::new(method_of(operation), &operation.path_in_account().replace("{id}", id));
            let call = if operation.takes_body() {
                call.json(if operation.id == "replayWebhook" { &bulk } else { &Value::Null })
            } else {
                call
            };
            let call = if operation.takes_body() && operation.id != "replayWebhook" { call.raw("{}") } else { call };
            call.key(server.key("other"))
        };
        let own = of_collection(operation.path_in_account().split('/').nth(1).unwrap());
        let unknown = server.expect(404, call(&server.id("unknown_id"))).await;
        assert_eq!(server.expect(404, call(&own)).await.comparable(), unknown.comparable(), "{}", operation.id);
        count += 1;
    }
    assert_eq!(count, extensions().len() - 1, "all but the list of events have an id");
    let theirs = server.expect(200, Call::get("/events").key(server.key("other"))).await.json();
    assert!(ids(&theirs).iter().all(|id| !ids(&events).contains(id)));
}

#[tokio::test]
async fn writes_need_the_scope_and_count_as_writes_of_webhooks() {
    let server = SeededServer::serving(surfaces(), Settings { rate_limit: 10_000, ..limited() });
    let delivery = deliver(&server, 1).await;
    for operation in extensions() {
        let id =
            if operation.path_in_account().starts_with("/deliveries") { &delivery } else { &server.id("webhook_id") };
        let call = || {
            Call::new(method_of(operation), &operation.path_in_account().replace("{id}", id)).key(server.key("read"))
        };
        if operation.scope() == Scope::Write {
            assert_eq!(server.expect(403, call()).await.code(), "insufficient_scope", "{}", operation.id);
        } else if !operation.path_in_account().contains("replays") && operation.path_in_account() != "/events/{id}" {
            server.expect(200, call()).await;
        }
    }
    let test = || Call::post(&format!("/webhooks/{}/test", server.id("webhook_id")), json!({}));
    for _ in 0..20 {
        server.expect(201, test()).await;
    }
    server.expect(429, test()).await;
    // The limit of a route is its own.
    server.expect(200, Call::post(&format!("/webhooks/{}/rotate-secret", server.id("webhook_id")), json!({}))).await;
}

/// A deleted subscription keeps its deliveries, which can be read.
#[tokio::test]
async fn the_deliveries_of_a_deleted_subscription_can_be_read() {
    let server = extended();
    let (delivery, webhook) = (deliver(&server, 1).await, server.id("webhook_id"));
    server.expect(204, Call::delete(&format!("/webhooks/{webhook}"))).await;
    server.expect(200, Call::get(&format!("/webhooks/{webhook}/deliveries"))).await;
    server.expect(200, Call::get(&format!("/deliveries/{delivery}"))).await;
    server.expect(409, Call::new(Method::POST, &format!("/deliveries/{delivery}/replay"))).await;
}
