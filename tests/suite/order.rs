//! Which answer wins (decisions §1): a request that fails two checks gets the answer of the earlier one.

use http::Method;
use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate};

use crate::harness::{Call, World, settings};
use crate::seed::Key;

async fn wins(world: &World, status: u16, code: &str, call: Call) {
    let shown = format!("{} {}", call.method, call.target);
    let reply = world.send(call).await;
    assert_eq!((reply.status, reply.code().as_str()), (status, code), "{shown}: {}", reply.text());
}

fn big() -> Vec<u8> {
    vec![b' '; 1024 * 1024 + 1]
}

async fn new_key(world: &World, tenant_of: &str, write: bool, signed: bool) -> Key {
    let like = world.key(tenant_of).id;
    world
        .store
        .write("key", move |tx| {
            Box::pin(async move {
                let tenant = keys::get(tx, like).await?.tenant_id;
                let made = keys::create(tx, tenant, KeyCreate { name: None, write, expires_in: None, signed }).await?;
                Ok(Key { id: made.key.id, text: made.text.reveal().to_owned(), secret: made.key.signing_secret })
            })
        })
        .await
        .unwrap()
}

#[tokio::test]
async fn route_before_method_before_key() {
    let world = World::new();
    wins(&world, 404, "route_not_found", Call::new(Method::PUT, "/nothing").anonymous()).await;
    wins(&world, 404, "route_not_found", Call::absolute(Method::GET, "/api/v3/contacts").anonymous()).await;
    wins(&world, 405, "method_not_allowed", Call::new(Method::PUT, "/contacts").anonymous()).await;
    wins(&world, 405, "method_not_allowed", Call::new(Method::POST, "/contacts/not-a-uuid").anonymous()).await;
}

#[tokio::test]
async fn key_before_rate_limit() {
    let world = World::with(svc_server::Settings { rate_limit: 1, limit_rates: true, ..settings() }, |store| store);
    world.expect(200, Call::get("/ping")).await;
    wins(&world, 429, "rate_limited", Call::get("/ping")).await;
    let key = world.key("write").id;
    world.store.write("revoke", move |tx| Box::pin(keys::revoke(tx, key))).await.unwrap();
    wins(&world, 401, "key_revoked", Call::get("/ping")).await;
}

#[tokio::test]
async fn rate_limit_before_scope_and_access() {
    let world = World::with(svc_server::Settings { rate_limit: 1, limit_rates: true, ..settings() }, |store| store);
    let create = || Call::post("/contacts", json!({ "email": "a@example.com" }));
    wins(&world, 403, "insufficient_scope", create().key(world.key("read"))).await;
    wins(&world, 429, "rate_limited", create().key(world.key("read"))).await;
    wins(&world, 403, "access_not_approved", create().key(world.key("pending"))).await;
    wins(&world, 429, "rate_limited", create().key(world.key("pending"))).await;
}

#[tokio::test]
async fn scope_and_access_before_signature() {
    let world = World::new();
    let create = || Call::post("/contacts", json!({ "email": "a@example.com" }));
    let reader = new_key(&world, "write", false, true).await;
    wins(&world, 403, "insufficient_scope", create().key(&reader)).await;
    let suspended = new_key(&world, "suspended", true, true).await;
    wins(&world, 403, "access_not_approved", create().key(&suspended)).await;
    let neither = new_key(&world, "pending", false, true).await;
    wins(&world, 403, "access_not_approved", create().key(&neither)).await;
}

#[tokio::test]
async fn signature_before_size_and_type() {
    let world = World::new();
    let key = world.key("signed");
    let text = || Call::new(Method::POST, "/contacts").raw("x").header("content-type", "text/plain");
    wins(&world, 401, "signature_required", text().key(key)).await;
    wins(&world, 401, "signature_required", Call::new(Method::POST, "/contacts").raw(big()).key(key)).await;
    let wrong = text().key(key).header("x-svc-timestamp", "1773500966").header("x-svc-signature", "sha256=00");
    wins(&world, 401, "signature_invalid", wrong).await;
    wins(&world, 415, "unsupported_media_type", text().signed(key)).await;
}

#[tokio::test]
async fn size_and_type_before_path_and_query() {
    let world = World::new();
    let patch = |path: &str| Call::new(Method::PATCH, path);
    wins(&world, 413, "body_too_large", patch("/contacts/not-a-uuid").raw(big())).await;
    wins(&world, 413, "body_too_large", Call::new(Method::POST, "/contacts?x=1").raw(big())).await;
    let text = |call: Call| call.raw("{}").header("content-type", "text/plain");
    wins(&world, 415, "unsupported_media_type", text(patch("/contacts/not-a-uuid"))).await;
    wins(&world, 415, "unsupported_media_type", text(Call::new(Method::POST, "/contacts?x=1"))).await;
}

#[tokio::test]
async fn path_and_query_before_body() {
    let world = World::new();
    let contact = world.id("contact_id");
    wins(&world, 400, "validation_failed", Call::patch("/contacts/not-a-uuid", json!({}))).await;
    wins(&world, 400, "unknown_parameter", Call::patch(&format!("/contacts/{contact}?x=1"), json!({}))).await;
    for operation in crate::harness::operations().iter().filter(|operation| operation.takes_body()) {
        let path = operation.path.replace("{id}", &world.id("unknown_id"));
        let call = Call::new(operation.method.clone(), &format!("{path}?x=1")).raw("{");
        wins(&world, 400, "unknown_parameter", call).await;
    }
}

#[tokio::test]
async fn body_before_missing() {
    let world = World::new();
    let unknown = world.id("unknown_id");
    for collection in ["contacts", "bookings", "quotes", "jobs", "webhooks"] {
        let path = format!("/{collection}/{unknown}");
        wins(&world, 400, "validation_failed", Call::patch(&path, json!({ "nonsense": 1 }))).await;
        wins(&world, 400, "empty_patch", Call::patch(&path, json!({}))).await;
        wins(&world, 400, "invalid_json", Call::new(Method::PATCH, &path).raw("[")).await;
    }
    let webhook = format!("/webhooks/{unknown}");
    for url in ["https://10.0.0.1/", "https://a.private.example/"] {
        wins(&world, 400, "validation_failed", Call::patch(&webhook, json!({ "url": url }))).await;
    }
}

#[tokio::test]
async fn missing_before_conflict_before_precondition() {
    let world = World::new();
    let taken = json!({ "email": "existing@example.com" });
    let unknown = format!("/contacts/{}", world.id("unknown_id"));
    wins(&world, 404, "not_found", Call::patch(&unknown, taken.clone())).await;
    wins(&world, 404, "not_found", Call::patch(&unknown, taken.clone()).header("if-match", "\"x\"")).await;
    wins(&world, 404, "not_found", Call::delete(&unknown).header("if-match", "\"x\"")).await;
    let mine = world.expect(201, Call::post("/contacts", json!({ "email": "mine@example.com" }))).await.id();
    let mine = format!("/contacts/{mine}");
    wins(&world, 409, "email_taken", Call::patch(&mine, taken).header("if-match", "\"x\"")).await;
    let free = json!({ "email": "free@example.com" });
    wins(&world, 412, "precondition_failed", Call::patch(&mine, free).header("if-match", "\"x\"")).await;
    // A rule of the merged row is a body 400, which comes before 412.
    let booking = format!("/bookings/{}", world.id("booking_id"));
    let early = json!({ "end_time": "2026-03-20T08:00:00Z" });
    wins(&world, 400, "validation_failed", Call::patch(&booking, early).header("if-match", "\"x\"")).await;
}

/// Both are 400 and 409 of the Idempotency-Key; they come before those of the rules.
#[tokio::test]
async fn a_reused_key_before_a_conflict() {
    let world = World::new();
    let create = |email: &str| Call::post("/contacts", json!({ "email": email })).header("idempotency-key", "k");
    world.expect(201, create("first@example.com")).await;
    wins(&world, 400, "idempotency_key_reused", create("existing@example.com")).await;
    let bad = Call::post("/contacts", json!({ "email": 5 })).header("idempotency-key", "k");
    wins(&world, 400, "validation_failed", bad).await;
}
