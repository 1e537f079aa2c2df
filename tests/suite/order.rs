//! The order of checks (docs/contract.md, "Order of checks"): a request that fails two checks gets the error of the
//! earlier one.

use http::Method;
use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate};

use crate::harness::{Call, SeededServer, settings};
use svc_server::kernel::versions::method_of;
use svc_test_support::fixture::Key;

async fn expect_error(server: &SeededServer, status: u16, code: &str, call: Call) {
    let shown = format!("{} {}", call.method, call.target);
    let response = server.send(call).await;
    assert_eq!((response.status, response.code().as_str()), (status, code), "{shown}: {}", response.text);
}

fn oversized_body() -> Vec<u8> {
    vec![b' '; 1024 * 1024 + 1]
}

async fn new_key(server: &SeededServer, tenant_of: &str, write: bool, signed: bool) -> Key {
    let like = server.key(tenant_of).id;
    server
        .store()
        .write("key", (like, write, signed), async |tx, &(like, write, signed)| {
            let tenant = keys::get(tx, like).await?.tenant_id;
            let made = keys::create(tx, tenant, KeyCreate { name: None, write, expires_in: None, signed }).await?;
            Ok(Key { id: made.key.id, text: made.text.reveal().to_owned(), secret: made.key.signing_secret })
        })
        .await
        .unwrap()
}

#[tokio::test]
async fn routes_are_checked_before_methods_and_methods_before_keys() {
    let server = SeededServer::new();
    expect_error(&server, 404, "route_not_found", Call::new(Method::PUT, "/nothing").anonymous()).await;
    expect_error(&server, 404, "route_not_found", Call::absolute(Method::GET, "/api/v3/contacts").anonymous()).await;
    expect_error(&server, 405, "method_not_allowed", Call::new(Method::PUT, "/contacts").anonymous()).await;
    expect_error(&server, 405, "method_not_allowed", Call::new(Method::POST, "/contacts/not-a-uuid").anonymous()).await;
}

#[tokio::test]
async fn keys_are_checked_before_rate_limits() {
    let server = SeededServer::with(svc_server::Settings { rate_limit: 1, limit_rates: true, ..settings() });
    server.expect(200, Call::get("/ping")).await;
    expect_error(&server, 429, "rate_limited", Call::get("/ping")).await;
    let key = server.key("write").id;
    server.store().write("revoke", key, async |tx, &key| keys::revoke(tx, key).await).await.unwrap();
    expect_error(&server, 401, "key_revoked", Call::get("/ping")).await;
}

#[tokio::test]
async fn rate_limits_are_checked_before_scope_and_access() {
    let server = SeededServer::with(svc_server::Settings { rate_limit: 1, limit_rates: true, ..settings() });
    let create = || Call::post("/contacts", json!({ "email": "a@example.com" }));
    expect_error(&server, 403, "insufficient_scope", create().key(server.key("read"))).await;
    expect_error(&server, 429, "rate_limited", create().key(server.key("read"))).await;
    expect_error(&server, 403, "access_not_approved", create().key(server.key("pending"))).await;
    expect_error(&server, 429, "rate_limited", create().key(server.key("pending"))).await;
}

#[tokio::test]
async fn scope_and_access_are_checked_before_signatures() {
    let server = SeededServer::new();
    let create = || Call::post("/contacts", json!({ "email": "a@example.com" }));
    let reader = new_key(&server, "write", false, true).await;
    expect_error(&server, 403, "insufficient_scope", create().key(&reader)).await;
    let suspended = new_key(&server, "suspended", true, true).await;
    expect_error(&server, 403, "access_not_approved", create().key(&suspended)).await;
    let neither = new_key(&server, "pending", false, true).await;
    expect_error(&server, 403, "access_not_approved", create().key(&neither)).await;
}

#[tokio::test]
async fn signatures_are_checked_before_size_and_media_type() {
    let server = SeededServer::new();
    let key = server.key("signed");
    let text = || Call::new(Method::POST, "/contacts").raw("x").header("content-type", "text/plain");
    expect_error(&server, 401, "signature_required", text().key(key)).await;
    expect_error(
        &server,
        401,
        "signature_required",
        Call::new(Method::POST, "/contacts").raw(oversized_body()).key(key),
    )
    .await;
    let wrong = text().key(key).header("x-svc-timestamp", "1773500966").header("x-svc-signature", "sha256=00");
    expect_error(&server, 401, "signature_invalid", wrong).await;
    expect_error(&server, 415, "unsupported_media_type", text().signed(key)).await;
}

#[tokio::test]
async fn size_and_media_type_are_checked_before_path_and_query() {
    let server = SeededServer::new();
    let patch = |path: &str| Call::new(Method::PATCH, path);
    expect_error(&server, 413, "body_too_large", patch("/contacts/not-a-uuid").raw(oversized_body())).await;
    expect_error(&server, 413, "body_too_large", Call::new(Method::POST, "/contacts?x=1").raw(oversized_body())).await;
    let text = |call: Call| call.raw("{}").header("content-type", "text/plain");
    expect_error(&server, 415, "unsupported_media_type", text(patch("/contacts/not-a-uuid"))).await;
    expect_error(&server, 415, "unsupported_media_type", text(Call::new(Method::POST, "/contacts?x=1"))).await;
}

#[tokio::test]
async fn path_and_query_are_checked_before_the_body() {
    let server = SeededServer::new();
    let contact = server.id("contact_id");
    expect_error(&server, 400, "validation_failed", Call::patch("/contacts/not-a-uuid", json!({}))).await;
    expect_error(&server, 400, "unknown_parameter", Call::patch(&format!("/contacts/{contact}?x=1"), json!({}))).await;
    for operation in crate::harness::operations().iter().filter(|operation| operation.takes_body()) {
        let path = operation.path_in_account().replace("{id}", &server.id("unknown_id"));
        let call = Call::new(method_of(operation), &format!("{path}?x=1")).raw("{");
        expect_error(&server, 400, "unknown_parameter", call).await;
    }
}

#[tokio::test]
async fn the_body_is_checked_before_the_record_exists() {
    let server = SeededServer::new();
    let unknown = server.id("unknown_id");
    for collection in ["contacts", "bookings", "quotes", "jobs", "webhooks"] {
        let path = format!("/{collection}/{unknown}");
        expect_error(&server, 400, "validation_failed", Call::patch(&path, json!({ "nonsense": 1 }))).await;
        expect_error(&server, 400, "empty_patch", Call::patch(&path, json!({}))).await;
        expect_error(&server, 400, "invalid_json", Call::new(Method::PATCH, &path).raw("[")).await;
    }
    let webhook = format!("/webhooks/{unknown}");
    for url in ["https://10.0.0.1/", "https://a.private.example/"] {
        expect_error(&server, 400, "validation_failed", Call::patch(&webhook, json!({ "url": url }))).await;
    }
}

#[tokio::test]
async fn existence_is_checked_before_conflicts_and_conflicts_before_preconditions() {
    let server = SeededServer::new();
    let taken = json!({ "email": "existing@example.com" });
    let unknown = format!("/contacts/{}", server.id("unknown_id"));
    expect_error(&server, 404, "not_found", Call::patch(&unknown, taken.clone())).await;
    expect_error(&server, 404, "not_found", Call::patch(&unknown, taken.clone()).header("if-match", "\"x\"")).await;
    expect_error(&server, 404, "not_found", Call::delete(&unknown).header("if-match", "\"x\"")).await;
    let mine = server.expect(201, Call::post("/contacts", json!({ "email": "mine@example.com" }))).await.id();
    let mine = format!("/contacts/{mine}");
    expect_error(&server, 409, "email_taken", Call::patch(&mine, taken).header("if-match", "\"x\"")).await;
    let free = json!({ "email": "free@example.com" });
    expect_error(&server, 412, "precondition_failed", Call::patch(&mine, free).header("if-match", "\"x\"")).await;
    // A rule about the merged record is an error of the body (400), which comes before 412.
    let booking = format!("/bookings/{}", server.id("booking_id"));
    let early = json!({ "end_time": "2026-03-20T08:00:00Z" });
    expect_error(&server, 400, "validation_failed", Call::patch(&booking, early).header("if-match", "\"x\"")).await;
}

/// The errors of the Idempotency-Key come before a conflict found by the rules, and after the checks of the body.
#[tokio::test]
async fn idempotency_keys_are_checked_before_conflicts() {
    let server = SeededServer::new();
    let create = |email: &str| Call::post("/contacts", json!({ "email": email })).header("idempotency-key", "k");
    server.expect(201, create("first@example.com")).await;
    expect_error(&server, 400, "idempotency_key_reused", create("existing@example.com")).await;
    let bad = Call::post("/contacts", json!({ "email": 5 })).header("idempotency-key", "k");
    expect_error(&server, 400, "validation_failed", bad).await;
}
