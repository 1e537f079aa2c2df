//! Tenants see nothing of each other: another tenant's id is answered like one that does not exist, to the
//! byte, by every operation of the route table. The last word on what has to be tested has the OpenAPI document.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc_core::resources::invoices;
use svc_core::values::Timestamp;

use crate::harness::{Call, World, change, id_name, operations, sample};
use crate::seed;

const COLLECTIONS: [&str; 6] = ["contacts", "invoices", "bookings", "quotes", "jobs", "webhooks"];
/// Collections whose records name a contact when they are created.
const REFERRING: [&str; 3] = ["bookings", "quotes", "jobs"];

/// Every place where a client tells the service an id or a cursor, by the served document: operation and name.
async fn told(world: &World) -> BTreeSet<(String, String)> {
    let document = world.expect(200, Call::get("/openapi.json").anonymous()).await.json();
    let follow = |value: &Value| match value["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).unwrap().clone(),
        None => value.clone(),
    };
    let names_a_row = |name: &str| name == "id" || name == "cursor" || name.ends_with("_id") || name.ends_with("_ids");
    let mut told = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values().filter(|operation| operation.is_object()) {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let in_path = path.split(['{', '}']).skip(1).step_by(2).map(str::to_owned);
            told.extend(in_path.map(|name| (id.clone(), name)));
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let parameters = parameters.iter().map(|parameter| follow(parameter)["name"].as_str().unwrap().to_owned());
            let body = follow(&follow(&operation["requestBody"])["content"]["application/json"]["schema"]);
            let fields = body["properties"].as_object().cloned().unwrap_or_default();
            let names = parameters.chain(fields.keys().cloned()).filter(|name| names_a_row(name));
            told.extend(names.map(|name| (id.clone(), name)));
        }
    }
    told
}

/// An operation that takes an id or a cursor in a way that no test here sends another tenant's fails this one. Add a
/// case to the test that fits before the place.
#[tokio::test]
async fn every_operation_that_is_told_an_id_has_a_case() {
    let world = World::new();
    let mut cases = BTreeSet::new();
    for operation in operations() {
        let names = [
            // another_tenants_id_is_like_an_unknown_one
            ("id", operation.has_id()),
            // a_contact_of_another_tenant_is_no_reference
            ("contact_id", operation.method == Method::POST && REFERRING.contains(&operation.collection)),
            // a_cursor_of_another_tenant_is_like_a_made_up_one
            (
                "cursor",
                operation.method == Method::GET && COLLECTIONS.iter().any(|all| operation.path == format!("/{all}")),
            ),
        ];
        let names = names.into_iter().filter(|(_, has_case)| *has_case);
        cases.extend(names.map(|(name, _)| (operation.id.to_owned(), name.to_owned())));
    }
    assert_eq!(told(&world).await, cases);
}

fn other_id(world: &World, collection: &str) -> String {
    world.seed.other_ids[id_name(collection).as_str()].to_string()
}

/// Everything that the other tenant can see.
async fn others_view(world: &World) -> Vec<Value> {
    let mut view = Vec::new();
    for collection in COLLECTIONS {
        let call = Call::get(&format!("/{collection}?limit=200")).key(world.key("other"));
        view.push(world.expect(200, call).await.json());
    }
    view
}

async fn others_events(world: &World) -> usize {
    let tenant = world.seed.other_tenant;
    let start = Timestamp::from_micros(0);
    let events =
        world.store.read("events", move |tx| Box::pin(async move { Ok(tx.events_after(tenant, start, 1000).await?) }));
    events.await.unwrap().len()
}

#[tokio::test]
async fn another_tenants_id_is_like_an_unknown_one() {
    let world = World::new();
    let (view, events) = (others_view(&world).await, others_events(&world).await);
    let mut count = 0;
    for operation in operations().iter().filter(|operation| operation.has_id()) {
        let call = |id: &str| {
            let call = Call::new(operation.method.clone(), &operation.path.replace("{id}", id));
            if operation.takes_body() { call.json(&change(operation.collection)) } else { call }
        };
        let (unknown, other) = (world.id("unknown_id"), other_id(&world, operation.collection));
        let variants: [fn(Call) -> Call; 5] = [
            |call| call,
            |call| call.header("if-match", "*"),
            |call| call.header("if-match", "\"0\""),
            |call| call.header("if-none-match", "*"),
            |mut call| {
                call.target = call.target.replace("/v1/", "/v2/");
                call
            },
        ];
        for variant in variants {
            let unknown = world.expect(404, variant(call(&unknown))).await;
            let other = world.expect(404, variant(call(&other))).await;
            assert_eq!(other.comparable(), unknown.comparable(), "{}", operation.id);
            count += 1;
        }
    }
    assert_eq!(count, 13 * 5, "operations with an id");
    // What is there for its own tenant is really there.
    for collection in COLLECTIONS {
        let call = Call::get(&format!("/{collection}/{}", other_id(&world, collection)));
        world.expect(200, call.key(world.key("other"))).await;
    }
    assert_eq!(others_view(&world).await, view);
    assert_eq!(others_events(&world).await, events);
}

/// Bodies that would conflict or fail against the other tenant's row must not tell that it exists.
#[tokio::test]
async fn bodies_tell_nothing_either() {
    let world = World::new();
    for (collection, body) in [
        ("contacts", json!({ "email": "existing@example.com" })),
        ("bookings", json!({ "end_time": "2000-01-01T00:00:00Z" })),
        ("quotes", json!({ "total": 0.001 })),
        ("jobs", json!({ "scheduled_start": "2026-01-02T00:00:00Z", "scheduled_end": "2026-01-01T00:00:00Z" })),
        ("webhooks", json!({ "url": "https://hooks.example.com/svc" })),
    ] {
        let call = |id: &str| Call::patch(&format!("/{collection}/{id}"), body.clone());
        let unknown = world.send(call(&world.id("unknown_id"))).await;
        let other = world.send(call(&other_id(&world, collection))).await;
        assert_eq!(other.comparable(), unknown.comparable(), "{collection}");
    }
}

#[tokio::test]
async fn a_contact_of_another_tenant_is_no_reference() {
    let world = World::new();
    let other = world.id("other_tenant_contact_id");
    for collection in REFERRING {
        let mut body = sample(&world, collection, 1);
        let mut refused = Vec::new();
        for id in [&world.id("unknown_id"), &other, &world.id("deleted_contact_id")] {
            body["contact_id"] = json!(id);
            let reply = world.expect(400, Call::post(&format!("/{collection}"), body.clone())).await;
            assert_eq!((reply.code().as_str(), &reply.json()["field"]), ("reference_not_found", &json!("contact_id")));
            refused.push(reply.comparable());
        }
        assert!(refused.windows(2).all(|pair| pair[0] == pair[1]), "{collection}");
    }
    assert_eq!(world.new_events().await, [""; 0]);
}

#[tokio::test]
async fn lists_hold_only_what_is_ones_own() {
    let world = World::new();
    let others = others_view(&world).await;
    let since = "updated_since=2000-01-01T00:00:00Z";
    for (collection, theirs) in COLLECTIONS.iter().zip(&others) {
        let id = &theirs["data"][0]["id"];
        let filters: &[&str] = match *collection {
            "contacts" => &["email=existing@example.com", "include_deleted=true"],
            "invoices" => &["number=INV-0001", "status=draft"],
            "quotes" => &["status=draft"],
            "jobs" => &["job_number=JOB-0001", "status=quoted"],
            _ => &[],
        };
        for filter in ["limit=200", since].iter().chain(filters) {
            let list = world.expect(200, Call::get(&format!("/{collection}?{filter}"))).await.json();
            let data = list["data"].as_array().unwrap();
            assert!(!data.is_empty() && data.iter().all(|row| row["id"] != *id), "{collection}?{filter}: {list}");
        }
    }
}

/// One more record of the other tenant, so that its list has a second page.
async fn add_another(world: &World, collection: &str) {
    let (tenant, contact) = (world.seed.other_tenant, world.seed.other_ids["contact_id"]);
    if collection == "invoices" {
        // None is created over HTTP.
        let made = world.store.write("invoices", move |tx| {
            let body = json!({ "contact_id": contact, "total": 1 });
            Box::pin(async move { invoices::create(tx, tenant, seed::body(body)?).await.map(drop) })
        });
        return made.await.unwrap();
    }
    let mut body = sample(world, collection, 1);
    if body.get("contact_id").is_some() {
        body["contact_id"] = json!(contact);
    }
    world.expect(201, Call::post(&format!("/{collection}"), body).key(world.key("other"))).await;
}

#[tokio::test]
async fn a_cursor_of_another_tenant_is_like_a_made_up_one() {
    let world = World::new();
    for collection in COLLECTIONS {
        add_another(&world, collection).await;
        let page = Call::get(&format!("/{collection}?limit=1")).key(world.key("other"));
        let cursor = world.expect(200, page).await.json()["next_cursor"].as_str().unwrap().to_owned();
        let ask = |cursor: &str| Call::get(&format!("/{collection}?cursor={cursor}"));
        let foreign = world.expect(400, ask(&cursor)).await;
        let made_up = world.expect(400, ask(&world.id("unknown_id"))).await;
        assert_eq!((foreign.code().as_str(), foreign.comparable()), ("invalid_cursor", made_up.comparable()));
        world.expect(200, ask(&cursor).key(world.key("other"))).await;
    }
}

/// What is unique is unique within a tenant: emails, numbers and idempotency keys.
#[tokio::test]
async fn nothing_is_shared() {
    let world = World::new();
    let create = |role| {
        let call = Call::post("/contacts", json!({ "email": "both@example.com" })).header("idempotency-key", "k");
        world.expect(201, call.key(world.key(role)))
    };
    let (mine, theirs) = (create("write").await, create("other").await);
    assert_ne!(mine.id(), theirs.id());
    assert_eq!(theirs.header("idempotent-replayed"), None);
    let numbers = |contact: String, role| {
        world.expect(201, Call::post("/quotes", json!({ "contact_id": contact, "total": 1 })).key(world.key(role)))
    };
    for _ in 0..2 {
        numbers(world.id("contact_id"), "write").await;
    }
    let theirs = numbers(world.id("other_tenant_contact_id"), "other").await;
    assert_eq!(theirs.data()["quote_number"], "QUO-0002");
    let ping = world.expect(200, Call::new(Method::GET, "/ping").key(world.key("other"))).await.json();
    assert_eq!(ping["tenantId"], world.seed.other_tenant.to_string());
}
