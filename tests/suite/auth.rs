//! Keys: who gets in, and from when on no more (decisions §1 and §9).

use http::Method;
use serde_json::json;
use svc_core::accounts::keys::{self, KEY_PREFIX};
use svc_core::accounts::tenants::{self, DeveloperAccess};

use crate::harness::{Call, World, change, id_name, operations, sample};

async fn refused(world: &World, code: &str, call: Call) {
    let reply = world.send(call).await;
    let status = if code == "access_not_approved" || code == "insufficient_scope" { 403 } else { 401 };
    assert_eq!((reply.status, reply.code().as_str()), (status, code), "{}", reply.text());
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    let world = World::new();
    let key = &world.key("write").text;
    let with = |value: String| Call::get("/ping").header("authorization", &value);
    refused(&world, "missing_credentials", Call::get("/ping").anonymous()).await;
    for other in ["", "Bearer", key.as_str(), "Basic dXNlcjpwYXNz", "Token abc", "Bearersvc_live_x"] {
        refused(&world, "missing_credentials", with(other.to_owned())).await;
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
        refused(&world, "invalid_key", with(format!("Bearer {malformed}"))).await;
    }
    let twice = Call::get("/ping").header("authorization", &format!("Bearer {key}"));
    refused(&world, "invalid_key", twice.and_header("authorization", &format!("Bearer {key}"))).await;
    let mut bytes = Call::get("/ping");
    bytes.headers.insert("authorization", http::HeaderValue::from_bytes(b"Bearer svc_live_\xff").unwrap());
    refused(&world, "invalid_key", bytes).await;
    // A key in the query opens nothing.
    refused(&world, "missing_credentials", Call::get(&format!("/ping?key={key}&access_token={key}")).anonymous()).await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        world.expect(200, with(format!("{scheme} {key}"))).await;
    }
}

/// A well-formed key that nobody was given: made in another database.
#[tokio::test]
async fn an_unknown_key_is_refused() {
    let (world, elsewhere) = (World::new(), World::new());
    let tenant = elsewhere.seed.tenant;
    let made = elsewhere.store.write("key", move |tx| {
        let input = keys::KeyCreate { name: None, write: true, expires_in: None, signed: false };
        Box::pin(keys::create(tx, tenant, input))
    });
    let text = made.await.unwrap().text.reveal().to_owned();
    let call = Call::get("/ping").header("authorization", &format!("Bearer {text}"));
    elsewhere.expect(200, call.clone()).await;
    refused(&world, "invalid_key", call).await;
}

/// Every operation, as one request each.
fn all_calls(world: &World) -> Vec<(Method, Call)> {
    let call = |operation: &svc_server::api::routes::Operation| {
        let id = if operation.collection == "ping" { String::new() } else { world.id(&id_name(operation.collection)) };
        let call = Call::new(operation.method.clone(), &operation.path.replace("{id}", &id));
        let call = match operation.method {
            Method::POST => call.json(&sample(world, operation.collection, 9)),
            Method::PATCH => call.json(&change(operation.collection)),
            _ => call,
        };
        (operation.method.clone(), call)
    };
    operations().iter().map(call).collect()
}

#[tokio::test]
async fn every_operation_needs_a_good_key() {
    let world = World::new();
    for (_, call) in all_calls(&world) {
        refused(&world, "missing_credentials", call.clone().anonymous()).await;
        refused(&world, "invalid_key", call.clone().header("authorization", "Bearer svc_live_abc")).await;
        refused(&world, "key_revoked", call.clone().key(world.key("revoked"))).await;
        refused(&world, "key_expired", call.clone().key(world.key("expired"))).await;
        refused(&world, "access_not_approved", call.clone().key(world.key("pending"))).await;
        refused(&world, "access_not_approved", call.key(world.key("suspended"))).await;
    }
    assert_eq!(world.new_events().await, [""; 0]);
}

#[tokio::test]
async fn a_read_key_reads_and_writes_nothing() {
    let world = World::new();
    for (method, call) in all_calls(&world) {
        let call = call.key(world.key("read"));
        if method == Method::GET {
            world.expect(200, call).await;
        } else {
            refused(&world, "insufficient_scope", call).await;
        }
    }
    assert_eq!(world.new_events().await, [""; 0]);
}

#[tokio::test]
async fn a_key_expires_to_the_microsecond() {
    let world = World::new();
    let tenant = world.seed.tenant;
    let made = world.store.write("key", move |tx| {
        let expires_in = Some(std::time::Duration::from_secs(60));
        Box::pin(keys::create(tx, tenant, keys::KeyCreate { name: None, write: true, expires_in, signed: false }))
    });
    let made = made.await.unwrap();
    let call = || Call::get("/ping").header("authorization", &format!("Bearer {}", made.text.reveal()));
    let expiry = made.key.expires_at.unwrap();
    world.clock.set(expiry.minus(std::time::Duration::from_micros(1)));
    world.expect(200, call()).await;
    world.clock.set(expiry);
    refused(&world, "key_expired", call()).await;
}

/// As the command line does it, beside a running server.
#[tokio::test]
async fn what_another_process_changes_holds_from_the_next_request_on() {
    let world = World::new();
    let beside = world.second_store();
    let (key, tenant) = (world.key("write").id, world.seed.tenant);
    let create = |email: &str| Call::post("/contacts", json!({ "email": email }));
    world.expect(201, create("a@example.com")).await;

    for (access, status) in [(DeveloperAccess::Suspended, 403), (DeveloperAccess::Approved, 200)] {
        let change = move |t: &mut tenants::Tenant| t.developer_access = access;
        beside.write("access", move |tx| Box::pin(tenants::update(tx, tenant.0, change))).await.unwrap();
        world.expect(status, Call::get("/contacts")).await;
    }
    beside.write("revoke", move |tx| Box::pin(keys::revoke(tx, key))).await.unwrap();
    refused(&world, "key_revoked", Call::get("/contacts")).await;
    refused(&world, "key_revoked", create("b@example.com")).await;
    world.expect(200, Call::get("/contacts").key(world.key("read"))).await;
    // A key made beside is good at once.
    let made = beside.write("key", move |tx| {
        let input = keys::KeyCreate { name: None, write: true, expires_in: None, signed: false };
        Box::pin(keys::create(tx, tenant, input))
    });
    let text = made.await.unwrap().text.reveal().to_owned();
    world.expect(201, create("c@example.com").header("authorization", &format!("Bearer {text}"))).await;
}

#[tokio::test]
async fn rotation_overlaps() {
    let world = World::new();
    let old = world.key("write").id;
    let overlap = std::time::Duration::from_secs(3600);
    let new = world.store.write("rotate", move |tx| Box::pin(keys::rotate(tx, old, overlap))).await.unwrap();
    let with_new = || Call::get("/ping").header("authorization", &format!("Bearer {}", new.text.reveal()));
    world.expect(200, Call::get("/ping")).await;
    world.expect(200, with_new()).await;
    world.clock.advance(overlap);
    refused(&world, "key_expired", Call::get("/ping")).await;
    world.expect(200, with_new()).await;
}
