//! Which answer wins (decisions §1): a request that fails two checks gets the answer of the earlier one.

use http::Method;
use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate};

use crate::harness::{Call, TestServer, settings};
use crate::seed::Key;

async fn wins(server: &TestServer, status: u16, code: &str, call: Call) {
    let shown = format!("{} {}", call.method, call.target);
    let response = server.send(call).await;
    assert_eq!((response.status, response.code().as_str()), (status, code), "{shown}: {}", response.text());
}

fn big() -> Vec<u8> {
    vec![b' '; 1024 * 1024 + 1]
}

async fn new_key(server: &TestServer, tenant_of: &str, write: bool, signed: bool) -> Key {
    let like = server.key(tenant_of).id;
    server
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
    let server = TestServer::new();
    wins(&server, 404, "route_not_found", Call::new(Method::PUT, "/nothing").anonymous()).await;
    wins(&server, 404, "route_not_found", Call::absolute(Method::GET, "/api/v3/contacts").anonymous()).await;
    wins(&server, 405, "method_not_allowed", Call::new(Method::PUT, "/contacts").anonymous()).await;
    wins(&server, 405, "method_not_allowed", Call::new(Method::POST, "/contacts/not-a-uuid").anonymous()).await;
}

#[tokio::test]
async fn key_before_rate_limit() {
    let server =
        TestServer::with(svc_server::Settings { rate_limit: 1, limit_rates: true, ..settings() }, |store| store);
    server.expect(200, Call::get("/ping")).await;
    wins(&server, 429, "rate_limited", Call::get("/ping")).await;
    let key = server.key("write").id;
    server.store.write("revoke", move |tx| Box::pin(keys::revoke(tx, key))).await.unwrap();
    wins(&server, 401, "key_revoked", Call::get("/ping")).await;
}

#[tokio::test]
async fn rate_limit_before_scope_and_access() {
    let server =
        TestServer::with(svc_server::Settings { rate_limit: 1, limit_rates: true, ..settings() }, |store| store);
    let create = || Call::post("/contacts", json!({ "email": "a@example.com" }));
    wins(&server, 403, "insufficient_scope", create().key(server.key("read"))).await;
    wins(&server, 429, "rate_limited", create().key(server.key("read"))).await;
    wins(&server, 403, "access_not_approved", create().key(server.key("pending"))).await;
    wins(&server, 429, "rate_limited", create().key(server.key("pending"))).await;
}

#[tokio::test]
async fn scope_and_access_before_signature() {
    let server = TestServer::new();
    let create = || Call::post("/contacts", json!({ "email": "a@example.com" }));
    let reader = new_key(&server, "write", false, true).await;
    wins(&server, 403, "insufficient_scope", create().key(&reader)).await;
    let suspended = new_key(&server, "suspended", true, true).await;
    wins(&server, 403, "access_not_approved", create().key(&suspended)).await;
    let neither = new_key(&server, "pending", false, true).await;
    wins(&server, 403, "access_not_approved", create().key(&neither)).await;
}

#[tokio::test]
async fn signature_before_size_and_type() {
    let server = TestServer::new();
    let key = server.key("signed");
    let text = || Call::new(Method::POST, "/contacts").raw("x").header("content-type", "text/plain");
    wins(&server, 401, "signature_required", text().key(key)).await;
    wins(&server, 401, "signature_required", Call::new(Method::POST, "/contacts").raw(big()).key(key)).await;
    let wrong = text().key(key).header("x-svc-timestamp", "1773500966").header("x-svc-signature", "sha256=00");
    wins(&server, 401, "signature_invalid", wrong).await;
    wins(&server, 415, "unsupported_media_type", text().signed(key)).await;
}

#[tokio::test]
async fn size_and_type_before_path_and_query() {
    let server = TestServer::new();
    let patch = |path: &str| Call::new(Method::PATCH, path);
    wins(&server, 413, "body_too_large", patch("/contacts/not-a-uuid").raw(big())).await;
    wins(&server, 413, "body_too_large", Call::new(Method::POST, "/contacts?x=1").raw(big())).await;
    let text = |call: Call| call.raw("{}").header("content-type", "text/plain");
    wins(&server, 415, "unsupported_media_type", text(patch("/contacts/not-a-uuid"))).await;
    wins(&server, 415, "unsupported_media_type", text(Call::new(Method::POST, "/contacts?x=1"))).await;
}

#[tokio::test]
async fn path_and_query_before_body() {
    let server = TestServer::new();
    let contact = server.id("contact_id");
    wins(&server, 400, "validation_failed", Call::patch("/contacts/not-a-uuid", json!({}))).await;
    wins(&server, 400, "unknown_parameter", Call::patch(&format!("/contacts/{contact}?x=1"), json!({}))).await;
    for operation in crate::harness::operations().iter().filter(|operation| operation.takes_body()) {
        let path = operation.path.replace("{id}", &server.id("unknown_id"));
        let call = Call::new(operation.method.clone(), &format!("{path}?x=1")).raw("{");
        wins(&server, 400, "unknown_parameter", call).await;
    }
}

#[tokio::test]
async fn body_before_missing() {
    let server = TestServer::new();
    let unknown = server.id("unknown_id");
    for collection in ["contacts", "bookings", "quotes", "jobs", "webhooks"] {
        let path = format!("/{collection}/{unknown}");
        wins(&server, 400, "validation_failed", Call::patch(&path, json!({ "nonsense": 1 }))).await;
        wins(&server, 400, "empty_patch", Call::patch(&path, json!({}))).await;
        wins(&server, 400, "invalid_json", Call::new(Method::PATCH, &path).raw("[")).await;
    }
    let webhook = format!("/webhooks/{unknown}");
    for url in ["https://10.0.0.1/", "https://a.private.example/"] {
        wins(&server, 400, "validation_failed", Call::patch(&webhook, json!({ "url": url }))).await;
    }
}

#[tokio::test]
async fn missing_before_conflict_before_precondition() {
    let server = TestServer::new();
    let taken = json!({ "email": "existing@example.com" });
    let unknown = format!("/contacts/{}", server.id("unknown_id"));
    wins(&server, 404, "not_found", Call::patch(&unknown, taken.clone())).await;
    wins(&server, 404, "not_found", Call::patch(&unknown, taken.clone()).header("if-match", "\"x\"")).await;
    wins(&server, 404, "not_found", Call::delete(&unknown).header("if-match", "\"x\"")).await;
    let mine = server.expect(201, Call::post("/contacts", json!({ "email": "mine@example.com" }))).await.id();
    let mine = format!("/contacts/{mine}");
    wins(&server, 409, "email_taken", Call::patch(&mine, taken).header("if-match", "\"x\"")).await;
    let free = json!({ "email": "free@example.com" });
    wins(&server, 412, "precondition_failed", Call::patch(&mine, free).header("if-match", "\"x\"")).await;
    // A rule of the merged row is a body 400, which comes before 412.
    let booking = format!("/bookings/{}", server.id("booking_id"));
    let early = json!({ "end_time": "2026-03-20T08:00:00Z" });
    wins(&server, 400, "validation_failed", Call::patch(&booking, early).header("if-match", "\"x\"")).await;
}

/// Both are 400 and 409 of the Idempotency-Key; they come before those of the rules.
#[tokio::test]
async fn a_reused_key_before_a_conflict() {
    let server = TestServer::new();
    let create = |email: &str| Call::post("/contacts", json!({ "email": email })).header("idempotency-key", "k");
    server.expect(201, create("first@example.com")).await;
    wins(&server, 400, "idempotency_key_reused", create("existing@example.com")).await;
    let bad = Call::post("/contacts", json!({ "email": 5 })).header("idempotency-key", "k");
    wins(&server, 400, "validation_failed", bad).await;
}
