//! ETag, If-None-Match and If-Match (docs/contract.md, "Conditional requests").

use http::Method;
use serde_json::{Value, json};
use svc_core::resources::bookings::Booking;
use svc_core::resources::crud;

use crate::harness::{Call, SeededServer, change, guarded, id_name, operations};
use crate::seed;
use svc_server::kernel::versions::method_of;

const COLLECTIONS: [&str; 6] = ["contacts", "invoices", "bookings", "quotes", "jobs", "webhooks"];

fn one(server: &SeededServer, collection: &str) -> String {
    format!("/{collection}/{}", server.id(&id_name(collection)))
}

#[tokio::test]
async fn an_unchanged_record_gives_304() {
    let server = SeededServer::new();
    for collection in COLLECTIONS {
        let path = one(&server, collection);
        let full = server.expect(200, Call::get(&path)).await;
        let tag = full.etag();
        assert_eq!(full.header("cache-control"), Some("private, no-cache, no-transform"), "proxies must not weaken it");
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 10, "not a strong tag: {tag}");
        let same = [
            tag.to_owned(),
            format!("W/{tag}"),
            "*".to_owned(),
            format!("\"a\", {tag}"),
            format!("\"a\",W/{tag},\"b\""),
            format!("  {tag}  "),
        ];
        for header in same {
            for method in [Method::GET, Method::HEAD] {
                let call = Call::new(method, &path).header("if-none-match", &header);
                let response = server.expect(304, call).await;
                assert_eq!((response.etag(), response.body.len()), (tag, 0), "{header}");
                assert_eq!((response.header("content-type"), response.header("content-length")), (None, None));
            }
        }
        let lines = Call::get(&path).header("if-none-match", "\"a\"").and_header("if-none-match", tag);
        server.expect(304, lines).await;
        for header in ["\"a\"", "W/\"a\"", "", tag.trim_matches('"'), &tag.to_uppercase().replace('E', "x"), "a, b"] {
            let response = server.expect(200, Call::get(&path).header("if-none-match", header)).await;
            assert_eq!(response.body, full.body, "{header}");
        }
    }
}

#[tokio::test]
async fn each_representation_has_its_own_tag() {
    let server = SeededServer::new();
    let mut seen = std::collections::HashSet::new();
    for collection in COLLECTIONS {
        let path = one(&server, collection);
        let first = server.expect(200, Call::get(&path)).await;
        let other = server.expect(200, Call::absolute(Method::GET, &format!("/api/v2{path}"))).await;
        assert_eq!(first.etag(), other.etag());
        assert!(seen.insert(first.etag().to_owned()), "two records have the same tag");
        if collection == "invoices" {
            continue;
        }
        let changed = server.expect(200, Call::patch(&path, change(collection))).await;
        assert!(seen.insert(changed.etag().to_owned()), "{collection} changed");
        let read = server.expect(200, Call::get(&path).header("if-none-match", first.etag())).await;
        assert_eq!((read.etag(), &read.body), (changed.etag(), &changed.body));
    }
}

/// Lists, ping and creates ignore the condition headers.
#[tokio::test]
async fn conditions_are_ignored_where_they_do_not_apply() {
    let server = SeededServer::new();
    for path in ["/contacts", "/ping"] {
        let call = Call::get(path).header("if-none-match", "*").header("if-match", "\"x\"");
        assert_eq!(server.expect(200, call).await.header("etag"), None);
    }
    let create = Call::post("/contacts", json!({ "email": "a@example.com" }));
    server.expect(201, create.header("if-match", "\"x\"").header("if-none-match", "*")).await;
    let path = one(&server, "contacts");
    server.expect(200, Call::get(&path).header("if-match", "\"x\"")).await;
    server.expect(200, Call::patch(&path, json!({ "city": "Perth" })).header("if-none-match", "*")).await;
}

#[tokio::test]
async fn if_match_allows_a_change_of_the_current_version_only() {
    let server = SeededServer::new();
    for collection in COLLECTIONS.into_iter().filter(|collection| *collection != "invoices") {
        let path = one(&server, collection);
        let mut tag = server.expect(200, Call::get(&path)).await.etag().to_owned();
        let spell: [fn(&str) -> String; 4] =
            [|tag| tag.to_owned(), |tag| format!("\"a\", {tag}"), |_| "*".to_owned(), |tag| format!("{tag},\"b\"")];
        for (number, spell) in spell.iter().enumerate() {
            let mut body = change(collection);
            let (name, value) = body.as_object().unwrap().iter().next().unwrap();
            let value = if value.is_number() { json!(number + 7) } else { json!(format!("version {number}")) };
            let name = name.clone();
            body[&name] = value;
            let response = server.expect(200, Call::patch(&path, body).header("if-match", &spell(&tag))).await;
            assert_ne!(response.etag(), tag);
            response.etag().clone_into(&mut tag);
        }
    }
}

/// A request that fails its condition changes no row, writes no event and does not advance the tenant's clock.
#[tokio::test]
async fn a_failed_condition_changes_nothing() {
    let server = SeededServer::new();
    let changing = operations();
    let changing = changing.iter().filter(|operation| operation.takes_if_match());
    let mut count = 0;
    for operation in changing {
        let path = one(&server, operation.tag);
        let before = server.expect(200, Call::get(&path)).await;
        let tag = before.etag().to_owned();
        let call = || {
            let call = Call::new(method_of(operation), &path);
            if operation.takes_body() { call.json(&change(operation.tag)) } else { call }
        };
        let weak = format!("W/{tag}");
        let wrong = ["\"0\"", "\"a\", \"b\"", &weak, tag.trim_matches('"'), "", ",", "**", "\"*\""];
        for header in wrong {
            let response = server.expect(412, call().header("if-match", header)).await;
            assert_eq!(response.code(), "precondition_failed", "{} {header}", operation.id);
            assert_eq!(response.header("etag"), None);
            let says_weak = response.text.contains("is weak");
            assert_eq!(says_weak, header == weak, "{}", response.text);
        }
        let mut invalid = call();
        invalid.headers.insert("if-match", http::HeaderValue::from_bytes(b"\"\xff\"").unwrap());
        server.expect(412, invalid).await;
        let after = server.expect(200, Call::get(&path)).await;
        assert_eq!(after.comparable(), before.comparable(), "{}", operation.id);
        count += 1;
    }
    assert_eq!(count, 7);
    assert_eq!(server.new_events().await, [""; 0]);
    // No number and no clock value was used up either.
    let created = server.expect(201, Call::post("/jobs", json!({ "title": "Next" }))).await.data();
    let fresh = SeededServer::new();
    let same = fresh.expect(201, Call::post("/jobs", json!({ "title": "Next" }))).await.data();
    assert_eq!((&created["job_number"], &created["created_at"]), (&same["job_number"], &same["created_at"]));
}

/// If-Match is checked even when the change has no effect.
#[tokio::test]
async fn if_match_is_checked_for_a_change_without_effect() {
    let server = SeededServer::new();
    let path = one(&server, "quotes");
    let tag = server.expect(200, Call::get(&path)).await.etag().to_owned();
    let same = || Call::patch(&path, json!({ "total": 100 }));
    server.expect(412, same().header("if-match", "\"x\"")).await;
    assert_eq!(server.expect(200, same().header("if-match", &tag)).await.etag(), tag);
}

#[tokio::test]
async fn if_match_is_checked_for_a_delete() {
    let server = SeededServer::new();
    for collection in ["contacts", "webhooks"] {
        let path = one(&server, collection);
        let tag = server.expect(200, Call::get(&path)).await.etag().to_owned();
        server.expect(412, Call::delete(&path).header("if-match", "\"x\"")).await;
        server.expect(204, Call::delete(&path).header("if-match", &tag)).await;
        server.expect(404, Call::delete(&path).header("if-match", &tag)).await;
        server.expect(404, Call::delete(&path).header("if-match", "*")).await;
        server.expect(404, Call::get(&path).header("if-none-match", "*")).await;
    }
}

/// Of two clients with the same version one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_match_prevents_lost_updates() {
    let server = std::sync::Arc::new(SeededServer::new());
    let path = one(&server, "bookings");
    let tag = server.expect(200, Call::get(&path)).await.etag().to_owned();
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let (server, path, tag) = (std::sync::Arc::clone(&server), path.clone(), tag.clone());
            tokio::spawn(async move {
                let body = json!({ "notes": format!("writer {number}") });
                server.send(Call::patch(&path, body).header("if-match", &tag)).await
            })
        })
        .collect();
    let mut responses = Vec::new();
    for task in tasks {
        responses.push(task.await.unwrap());
    }
    let won: Vec<Value> =
        responses.iter().filter(|response| response.status == 200).map(|response| response.data()).collect();
    assert_eq!((won.len(), responses.iter().filter(|response| response.status == 412).count()), (1, 7));
    assert_eq!(server.expect(200, Call::get(&path)).await.data(), won[0]);
    assert_eq!(server.new_events().await, ["booking.updated"]);
}

/// Of many concurrent changes of one version one succeeds, and the others get 412.
#[tokio::test]
async fn concurrent_changes_of_one_version_succeed_once() {
    let server = SeededServer::new();
    let path = one(&server, "contacts");
    let tag = server.expect(200, Call::get(&path)).await.etag().to_owned();
    let patch =
        |n: usize| server.send(Call::patch(&path, json!({ "city": format!("Town {n}") })).header("if-match", &tag));
    let mut statuses: Vec<u16> =
        futures_util::future::join_all((0..16).map(patch)).await.into_iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (200, [412; 15].as_slice()));
}

/// Another node has changed the record and not committed yet. The request waits, and its condition is checked against
/// the committed row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_is_checked_after_a_concurrent_commit() {
    let server = std::sync::Arc::new(SeededServer::new());
    let (path, tenant) = (one(&server, "bookings"), server.tenant);
    let tag = server.expect(200, Call::get(&path)).await.etag().to_owned();
    let (other, id) = (server.second_store(), server.seed.ids["booking_id"].into());
    let (entered_sender, mut entered) = tokio::sync::mpsc::unbounded_channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let change = tokio::spawn(async move {
        let change = other.write(
            "change",
            (tenant, id, entered_sender, wait),
            async |tx, (tenant, id, entered_sender, wait)| {
                let input = seed::body(json!({ "notes": "other" }));

                crud::update::<Booking>(tx, *tenant, *id, input?).await?;
                let _ = entered_sender.send(());
                let _ = tokio::task::block_in_place(|| wait.lock().unwrap().recv());
                Ok(())
            },
        );
        change.await
    });
    guarded(entered.recv()).await.unwrap();
    let patch = Call::patch(&path, json!({ "notes": "here" })).header("if-match", &tag);
    let mut sent = Box::pin(server.send(patch));
    let early = tokio::time::timeout(std::time::Duration::from_millis(200), &mut sent).await;
    assert!(early.is_err(), "the request did not wait for the other transaction");
    go.send(()).unwrap();
    change.await.unwrap().unwrap();
    assert_eq!(sent.await.code(), "precondition_failed");
    assert_eq!(server.expect(200, Call::get(&path)).await.data()["notes"], "other");
}
