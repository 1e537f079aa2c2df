//! Tenant isolation: every operation responds to another tenant's id exactly as to an unknown id, byte for byte. The
//! OpenAPI document decides which inputs need a case here.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc_core::resources::invoices;
use svc_core::values::Timestamp;

use crate::harness::{Call, SeededServer, change, id_name, operations, sample};
use crate::seed;
use svc_server::kernel::versions::method_of;

const COLLECTIONS: [&str; 6] = ["contacts", "invoices", "bookings", "quotes", "jobs", "webhooks"];
/// Collections whose create body contains `contact_id`.
const REFERRING: [&str; 3] = ["bookings", "quotes", "jobs"];

/// Returns every input that takes an id or a cursor, as operation id and name, according to the served document.
async fn id_inputs(server: &SeededServer) -> BTreeSet<(String, String)> {
    let document = server.expect(200, Call::get("/openapi.json").anonymous()).await.json();
    let follow = |value: &Value| match value["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).unwrap().clone(),
        None => value.clone(),
    };
    let names_a_row = |name: &str| name == "id" || name == "cursor" || name.ends_with("_id") || name.ends_with("_ids");
    let mut id_inputs = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values().filter(|operation| operation.is_object()) {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let in_path = path.split(['{', '}']).skip(1).step_by(2).map(str::to_owned);
            id_inputs.extend(in_path.map(|name| (id.clone(), name)));
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let parameters = parameters.iter().map(|parameter| follow(parameter)["name"].as_str().unwrap().to_owned());
            let body = follow(&follow(&operation["requestBody"])["content"]["application/json"]["schema"]);
            let fields = body["properties"].as_object().cloned().unwrap_or_default();
            let names = parameters.chain(fields.keys().cloned()).filter(|name| names_a_row(name));
            id_inputs.extend(names.map(|name| (id.clone(), name)));
        }
    }
    id_inputs
}

/// Fails when an operation takes an id or a cursor for which no test here sends another tenant's. In that case add it
/// to the test that fits.
#[tokio::test]
async fn every_input_that_takes_an_id_has_a_case() {
    let server = SeededServer::new();
    let mut cases = BTreeSet::new();
    for operation in operations() {
        let names = [
            // another_tenants_id_is_treated_as_unknown
            ("id", operation.has_id),
            // another_tenants_contact_cannot_be_referenced
            ("contact_id", method_of(operation) == Method::POST && REFERRING.contains(&operation.tag)),
            // another_tenants_cursor_is_treated_as_invalid
            (
                "cursor",
                method_of(operation) == Method::GET
                    && COLLECTIONS.iter().any(|all| operation.path_in_account() == format!("/{all}")),
            ),
        ];
        let names = names.into_iter().filter(|(_, has_case)| *has_case);
        cases.extend(names.map(|(name, _)| (operation.id.to_owned(), name.to_owned())));
    }
    assert_eq!(id_inputs(&server).await, cases);
}

fn other_id(server: &SeededServer, collection: &str) -> String {
    server.seed.other_ids[id_name(collection).as_str()].to_string()
}

/// Returns every record that the other tenant sees in its lists.
async fn other_tenants_records(server: &SeededServer) -> Vec<Value> {
    let mut view = Vec::new();
    for collection in COLLECTIONS {
        let call = Call::get(&format!("/{collection}?limit=200")).key(server.key("other"));
        view.push(server.expect(200, call).await.json());
    }
    view
}

async fn other_tenants_event_count(server: &SeededServer) -> usize {
    let tenant = server.seed.other_tenant;
    let start = Timestamp::from_micros(0);
    let events = server
        .store()
        .read("events", (tenant, start), async |tx, &(tenant, start)| Ok(tx.events_after(tenant, start, 1000).await?));
    events.await.unwrap().len()
}

#[tokio::test]
async fn another_tenants_id_is_treated_as_unknown() {
    let server = SeededServer::new();
    let (view, events) = (other_tenants_records(&server).await, other_tenants_event_count(&server).await);
    let mut count = 0;
    for operation in operations().iter().filter(|operation| operation.has_id) {
        let call = |id: &str| {
            let call = Call::new(method_of(operation), &operation.path_in_account().replace("{id}", id));
            if operation.takes_body() { call.json(&change(operation.tag)) } else { call }
        };
        let (unknown, other) = (server.id("unknown_id"), other_id(&server, operation.tag));
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
            let unknown = server.expect(404, variant(call(&unknown))).await;
            let other = server.expect(404, variant(call(&other))).await;
            assert_eq!(other.comparable(), unknown.comparable(), "{}", operation.id);
            count += 1;
        }
    }
    assert_eq!(count, 13 * 5, "operations with an id");
    // The other tenant itself can read these records.
    for collection in COLLECTIONS {
        let call = Call::get(&format!("/{collection}/{}", other_id(&server, collection)));
        server.expect(200, call.key(server.key("other"))).await;
    }
    assert_eq!(other_tenants_records(&server).await, view);
    assert_eq!(other_tenants_event_count(&server).await, events);
}

/// A body that would conflict with, or fail against, the other tenant's row must not reveal that the row exists.
#[tokio::test]
async fn errors_of_bodies_do_not_reveal_another_tenants_record() {
    let server = SeededServer::new();
    for (collection, body) in [
        ("contacts", json!({ "email": "existing@example.com" })),
        ("bookings", json!({ "end_time": "2000-01-01T00:00:00Z" })),
        ("quotes", json!({ "total": 0.001 })),
        ("jobs", json!({ "scheduled_start": "2026-01-02T00:00:00Z", "scheduled_end": "2026-01-01T00:00:00Z" })),
        ("webhooks", json!({ "url": "https://hooks.example.com/svc" })),
    ] {
        let call = |id: &str| Call::patch(&format!("/{collection}/{id}"), body.clone());
        let unknown = server.send(call(&server.id("unknown_id"))).await;
        let other = server.send(call(&other_id(&server, collection))).await;
        assert_eq!(other.comparable(), unknown.comparable(), "{collection}");
    }
}

#[tokio::test]
async fn another_tenants_contact_cannot_be_referenced() {
    let server = SeededServer::new();
    let other = server.id("other_tenant_contact_id");
    for collection in REFERRING {
        let mut body = sample(&server, collection, 1);
        let mut refused = Vec::new();
        for id in [&server.id("unknown_id"), &other, &server.id("deleted_contact_id")] {
            body["contact_id"] = json!(id);
            let response = server.expect(400, Call::post(&format!("/{collection}"), body.clone())).await;
            assert_eq!(
                (response.code().as_str(), &response.json()["field"]),
                ("reference_not_found", &json!("contact_id"))
            );
            refused.push(response.comparable());
        }
        assert!(refused.windows(2).all(|pair| pair[0] == pair[1]), "{collection}");
    }
    assert_eq!(server.new_events().await, [""; 0]);
}

#[tokio::test]
async fn lists_contain_only_the_tenants_own_records() {
    let server = SeededServer::new();
    let others = other_tenants_records(&server).await;
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
            let list = server.expect(200, Call::get(&format!("/{collection}?{filter}"))).await.json();
            let data = list["data"].as_array().unwrap();
            assert!(!data.is_empty() && data.iter().all(|row| row["id"] != *id), "{collection}?{filter}: {list}");
        }
    }
}

/// Creates one more record of the other tenant, so that its list has a second page.
async fn add_another(server: &SeededServer, collection: &str) {
    let (tenant, contact) = (server.seed.other_tenant, server.seed.other_ids["contact_id"]);
    if collection == "invoices" {
        // Invoices cannot be created over HTTP.
        let made = server.store().write("invoices", (contact, tenant), async |tx, &(contact, tenant)| {
            let body = json!({ "contact_id": contact, "total": 1 });
            invoices::create(tx, tenant, seed::body(body)?).await.map(drop)
        });
        return made.await.unwrap();
    }
    let mut body = sample(server, collection, 1);
    if body.get("contact_id").is_some() {
        body["contact_id"] = json!(contact);
    }
    server.expect(201, Call::post(&format!("/{collection}"), body).key(server.key("other"))).await;
}

#[tokio::test]
async fn another_tenants_cursor_is_treated_as_invalid() {
    let server = SeededServer::new();
    for collection in COLLECTIONS {
        add_another(&server, collection).await;
        let page = Call::get(&format!("/{collection}?limit=1")).key(server.key("other"));
        let cursor = server.expect(200, page).await.json()["next_cursor"].as_str().unwrap().to_owned();
        let ask = |cursor: &str| Call::get(&format!("/{collection}?cursor={cursor}"));
        let others = server.expect(400, ask(&cursor)).await;
        let invalid = server.expect(400, ask(&server.id("unknown_id"))).await;
        assert_eq!((others.code().as_str(), others.comparable()), ("invalid_cursor", invalid.comparable()));
        server.expect(200, ask(&cursor).key(server.key("other"))).await;
    }
}

/// Emails, numbers and idempotency keys are unique within a tenant only.
#[tokio::test]
async fn unique_values_are_unique_per_tenant() {
    let server = SeededServer::new();
    let create = |role| {
        let call = Call::post("/contacts", json!({ "email": "both@example.com" })).header("idempotency-key", "k");
        server.expect(201, call.key(server.key(role)))
    };
    let (mine, theirs) = (create("write").await, create("other").await);
    assert_ne!(mine.id(), theirs.id());
    assert_eq!(theirs.header("idempotent-replayed"), None);
    let numbers = |contact: String, role| {
        server.expect(201, Call::post("/quotes", json!({ "contact_id": contact, "total": 1 })).key(server.key(role)))
    };
    for _ in 0..2 {
        numbers(server.id("contact_id"), "write").await;
    }
    let theirs = numbers(server.id("other_tenant_contact_id"), "other").await;
    assert_eq!(theirs.data()["quote_number"], "QUO-0002");
    let ping = server.expect(200, Call::new(Method::GET, "/ping").key(server.key("other"))).await.json();
    assert_eq!(ping["tenantId"], server.seed.other_tenant.to_string());
}
