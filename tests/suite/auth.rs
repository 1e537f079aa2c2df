//! API keys (docs/contract.md, "API keys"): which requests authenticate, and when a key stops working.

use std::time::Duration;

use http::Method;
use serde_json::json;
use svc_core::accounts::keys::{self, KEY_PREFIX, KeyId};
use svc_core::accounts::tenants::{self, DeveloperAccess};

use crate::harness::{Call, SeededServer, change, id_name, operations, sample};
use svc_core::operation::AnyOperation;
use svc_server::kernel::versions::method_of;

async fn refused(server: &SeededServer, code: &str, call: Call) {
    let response = server.send(call).await;
    let status = if code == "access_not_approved" || code == "insufficient_scope" { 403 } else { 401 };
    assert_eq!((response.status, response.code().as_str()), (status, code), "{}", response.text);
}

#[tokio::test]
async fn malformed_credentials_are_refused() {
    let server = SeededServer::new();
    let key = &server.key("write").text;
    let with = |value: String| Call::get("/ping").header("authorization", &value);
    refused(&server, "missing_credentials", Call::get("/ping").anonymous()).await;
    for other in ["", "Bearer", key.as_str(), "Basic dXNlcjpwYXNz", "Token abc", "Bearersvc_live_x"] {
        refused(&server, "missing_credentials", with(other.to_owned())).await;
    }
    let mut typo = key.clone().into_bytes();
    typo[15] = if typo[15] == b'x' { b'y' } else { b'x' };
    for malformed in [
        String::from_utf8(typo).unwrap(),
        key[..key.len() - 1].to_owned(),
        format!("{key}0"),
        key.to_uppercase(),
        key.replace("svc_live_", "svc_test_"),
        key.replace("svc_live_", ""),
        format!("{KEY_PREFIX}{}", "0".repeat(38)),
        format!("{key},{key}"),
        format!("{key} {key}"),
        "svc_live_".to_owned(),
    ] {
        refused(&server, "invalid_key", with(format!("Bearer {malformed}"))).await;
    }
    let twice = Call::get("/ping").header("authorization", &format!("Bearer {key}"));
    refused(&server, "invalid_key", twice.and_header("authorization", &format!("Bearer {key}"))).await;
    let mut bytes = Call::get("/ping");
    bytes.headers.insert("authorization", http::HeaderValue::from_bytes(b"Bearer svc_live_\xff").unwrap());
    refused(&server, "invalid_key", bytes).await;
    // A key in the query is ignored.
    refused(&server, "missing_credentials", Call::get(&format!("/ping?key={key}&access_token={key}")).anonymous())
        .await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        server.expect(200, with(format!("{scheme} {key}"))).await;
    }
}

/// The key is well-formed, but belongs to another database.
#[tokio::test]
async fn an_unknown_key_is_refused() {
    let (server, elsewhere) = (SeededServer::new(), SeededServer::new());
    let tenant = elsewhere.seed.tenant;
    let made = elsewhere.store().write("key", tenant, async |tx, &tenant| {
        let input = keys::KeyCreate { name: None, write: true, expires_in: None, signed: false };
        keys::create(tx, tenant, input).await
    });
    let text = made.await.unwrap().text.reveal().to_owned();
    let call = Call::get("/ping").header("authorization", &format!("Bearer {text}"));
    elsewhere.expect(200, call.clone()).await;
    refused(&server, "invalid_key", call).await;
}

/// Returns one request for each operation.
fn all_calls(server: &SeededServer) -> Vec<(Method, Call)> {
    let call = |operation: &&dyn AnyOperation| {
        let id = if operation.tag == "ping" { String::new() } else { server.id(&id_name(operation.tag)) };
        let call = Call::new(method_of(operation), &operation.path_in_account().replace("{id}", &id));
        let call = match method_of(operation) {
            Method::POST => call.json(&sample(server, operation.tag, 9)),
            Method::PATCH => call.json(&change(operation.tag)),
            _ => call,
        };
        (method_of(operation), call)
    };
    operations().iter().map(call).collect()
}

#[tokio::test]
async fn every_operation_requires_a_valid_key() {
    let server = SeededServer::new();
    for (_, call) in all_calls(&server) {
        refused(&server, "missing_credentials", call.clone().anonymous()).await;
        refused(&server, "invalid_key", call.clone().header("authorization", "Bearer svc_live_abc")).await;
        refused(&server, "key_revoked", call.clone().key(server.key("revoked"))).await;
        refused(&server, "key_expired", call.clone().key(server.key("expired"))).await;
        refused(&server, "access_not_approved", call.clone().key(server.key("pending"))).await;
        refused(&server, "access_not_approved", call.key(server.key("suspended"))).await;
    }
    assert_eq!(server.new_events().await, [""; 0]);
}

#[tokio::test]
async fn a_read_key_can_read_and_cannot_write() {
    let server = SeededServer::new();
    for (method, call) in all_calls(&server) {
        let call = call.key(server.key("read"));
        if method == Method::GET {
            server.expect(200, call).await;
        } else {
            refused(&server, "insufficient_scope", call).await;
        }
    }
    assert_eq!(server.new_events().await, [""; 0]);
}

#[tokio::test]
async fn reads_and_writes_record_the_last_use_of_their_key() {
    let server = SeededServer::new();
    let create = Call::post("/contacts", json!({ "email": "last.use@example.com" }));
    for (name, status, call) in [("read", 200, Call::get("/ping")), ("write", 201, create)] {
        let key = server.key(name);
        server.expect(status, call.key(key)).await;
        server.api.jobs().flush_last_used().await.unwrap();
        let id = key.id;
        let stored = server.store().read("key", id, async |tx, &id| keys::get(tx, id).await).await.unwrap();
        assert_eq!(stored.last_used_at, Some(server.store().env().now()), "{name}");
    }
}

#[tokio::test]
async fn a_key_expires_at_the_exact_microsecond() {
    let server = SeededServer::new();
    let tenant = server.tenant;
    let made = server.store().write("key", tenant, async |tx, &tenant| {
        let expires_in = Some(std::time::Duration::from_secs(60));
        keys::create(tx, tenant, keys::KeyCreate { name: None, write: true, expires_in, signed: false }).await
    });
    let made = made.await.unwrap();
    let call = || Call::get("/ping").header("authorization", &format!("Bearer {}", made.text.reveal()));
    let expiry = made.key.expires_at.unwrap();
    server.clock.set(expiry.minus(std::time::Duration::from_micros(1)));
    server.expect(200, call()).await;
    server.clock.set(expiry);
    refused(&server, "key_expired", call()).await;
}

/// The other process is a second store, as the command line beside a running server.
#[tokio::test]
async fn a_key_or_tenant_changed_by_another_process_takes_effect_at_the_next_request() {
    let server = SeededServer::new();
    let other = server.second_store();
    let (key, tenant) = (server.key("write").id, server.tenant);
    let create = |email: &str| Call::post("/contacts", json!({ "email": email }));
    server.expect(201, create("a@example.com")).await;

    for (access, status) in [(DeveloperAccess::Suspended, 403), (DeveloperAccess::Approved, 200)] {
        let change = move |t: &mut tenants::Tenant| t.developer_access = access;
        other
            .write("access", (tenant, change), async |tx, &(tenant, change)| {
                tenants::update(tx, tenant.0, change).await
            })
            .await
            .unwrap();
        server.expect(status, Call::get("/contacts")).await;
    }
    other.write("revoke", key, async |tx, &key| keys::revoke(tx, key).await).await.unwrap();
    refused(&server, "key_revoked", Call::get("/contacts")).await;
    refused(&server, "key_revoked", create("b@example.com")).await;
    server.expect(200, Call::get("/contacts").key(server.key("read"))).await;
    // A key that the other process creates works at once.
    let made = other.write("key", tenant, async |tx, &tenant| {
        let input = keys::KeyCreate { name: None, write: true, expires_in: None, signed: false };
        keys::create(tx, tenant, input).await
    });
    let text = made.await.unwrap().text.reveal().to_owned();
    server.expect(201, create("c@example.com").header("authorization", &format!("Bearer {text}"))).await;
}

#[tokio::test]
async fn both_keys_work_during_the_overlap_of_a_rotation() {
    let server = SeededServer::new();
    let old = server.key("write").id;
    let overlap = std::time::Duration::from_secs(3600);
    let new = server
        .store()
        .write("rotate", (old, overlap), async |tx, &(old, overlap)| keys::rotate(tx, old, overlap).await)
        .await
        .unwrap();
    let with_new = || Call::get("/ping").header("authorization", &format!("Bearer {}", new.text.reveal()));
    server.expect(200, Call::get("/ping")).await;
    server.expect(200, with_new()).await;
    server.clock.advance(overlap);
    refused(&server, "key_expired", Call::get("/ping")).await;
    server.expect(200, with_new()).await;
}

/// Stops the tenant's access in one way.
async fn stop_access(server: &SeededServer, way: &str, key: KeyId) {
    let (tenant, way) = (server.tenant.0, way.to_owned());
    let stop = server.store().write("test", (way, key, tenant), async |tx, (way, key, tenant)| match way.as_str() {
        "revoked" => keys::revoke(tx, *key).await.map(drop),
        "expired" => keys::rotate(tx, *key, Duration::ZERO).await.map(drop),
        _ => {
            tenants::update(tx, *tenant, |tenant| tenant.developer_access = DeveloperAccess::Suspended).await.map(drop)
        }
    });
    stop.await.unwrap();
}

/// The key works when the headers arrive, and no longer when the body does.
#[tokio::test]
async fn a_key_that_stops_working_while_the_body_arrives_changes_nothing() {
    for (way, code) in [("revoked", "key_revoked"), ("expired", "key_expired"), ("suspended", "access_not_approved")] {
        let create = Call::post("/contacts", json!({ "email": "a@example.com" }));
        for (path, call) in [
            ("", create.clone()),
            ("", create.header("idempotency-key", "k")),
            ("contact_id", Call::patch("", change("contacts"))),
            ("contact_id", Call::patch("", change("contacts")).header("if-match", "*")),
            ("contact_id", Call::delete("")),
        ] {
            let server = SeededServer::new();
            let mut call = call;
            if !path.is_empty() {
                call.target = format!("/api/v1/contacts/{}", server.id(path));
            }
            // The body of a DELETE is read if the key signs.
            let key = server.key("signed").clone();
            let response = server.send_slowly(call.signed(&key), stop_access(&server, way, key.id)).await;
            let status = if code == "access_not_approved" { 403 } else { 401 };
            assert_eq!((response.status, response.code().as_str()), (status, code), "{}", response.text);
            assert_eq!(server.new_events().await, [""; 0], "{way}");
        }
    }
}

#[tokio::test]
async fn a_stored_response_is_not_returned_to_a_key_that_stopped_working() {
    let server = SeededServer::new();
    let call = Call::post("/contacts", json!({ "email": "a@example.com" })).header("idempotency-key", "k");
    server.expect(201, call.clone()).await;
    let response = server.send_slowly(call, stop_access(&server, "revoked", server.key("write").id)).await;
    assert_eq!((response.status, response.code().as_str()), (401, "key_revoked"));
}
