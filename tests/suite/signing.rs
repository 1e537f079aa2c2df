//! Request signing (docs/contract.md, "Request signing"): a signing key must sign every write.

use std::collections::BTreeMap;

use http::Method;
use serde_json::json;

use crate::harness::{Call, Response, SeededServer, change, id_name, operations, sample};
use crate::python;
use svc_server::kernel::versions::method_of;
use svc_test_support::fixture::Key;

fn create(email: &str) -> Call {
    Call::post("/contacts", json!({ "email": email }))
}

async fn refused(server: &SeededServer, code: &str, call: Call) -> Response {
    let response = server.expect(401, call).await;
    assert_eq!(response.code(), code, "{}", response.text);
    response
}

async fn invalid(server: &SeededServer, call: Call) -> Response {
    refused(server, "signature_invalid", call).await
}

async fn reused(server: &SeededServer, call: Call) -> Response {
    refused(server, "signature_reused", call).await
}

fn now(server: &SeededServer) -> i64 {
    server.store().env().now().as_seconds()
}

fn signer(server: &SeededServer) -> &Key {
    server.key("signed")
}

#[tokio::test]
async fn every_write_requires_a_signature_and_no_read_does() {
    let server = SeededServer::new();
    let mut operations = operations();
    // Deletions come last, because other records refer to the contact.
    operations.sort_by_key(|operation| method_of(operation) == Method::DELETE);
    for operation in operations {
        let id = if operation.tag == "ping" { String::new() } else { server.id(&id_name(operation.tag)) };
        let call = Call::new(method_of(operation), &operation.path_in_account().replace("{id}", &id));
        let call = match method_of(operation) {
            Method::POST => call.json(&sample(&server, operation.tag, 3)),
            Method::PATCH => call.json(&change(operation.tag)),
            _ => call,
        };
        let status = operation.success.status();
        if method_of(operation) == Method::GET {
            server.expect(status, call.key(signer(&server))).await;
            continue;
        }
        let response = server.expect(401, call.clone().key(signer(&server))).await;
        assert_eq!(response.code(), "signature_required", "{}", operation.id);
        server.expect(status, call.signed(signer(&server))).await;
    }
}

#[tokio::test]
async fn each_signature_header_is_required_exactly_once() {
    let server = SeededServer::new();
    let signed = || create("a@example.com").sign_at(signer(&server), now(&server));
    for missing in ["x-svc-signature", "x-svc-timestamp"] {
        let response = server.expect(401, signed().without(missing)).await;
        assert_eq!(response.code(), "signature_required");
    }
    let value = signed().headers["x-svc-signature"].to_str().unwrap().to_owned();
    invalid(&server, signed().and_header("x-svc-signature", &value)).await;
    let value = now(&server).to_string();
    invalid(&server, signed().and_header("x-svc-timestamp", &value)).await;
    server.expect(201, signed()).await;
}

#[tokio::test]
async fn a_signature_covers_every_part_of_the_request() {
    let server = SeededServer::new();
    let key = signer(&server);
    let at = now(&server);
    let signed = || create("a@example.com").sign_at(key, at);
    // The body, to the last white space.
    invalid(&server, signed().raw("{\"email\":\"b@example.com\"}")).await;
    invalid(&server, signed().raw("{\"email\": \"a@example.com\"}")).await;
    invalid(&server, signed().raw("")).await;
    // The path, the API version and the query.
    for target in ["/api/v2/contacts", "/api/v1/jobs", "/api/v1/contacts?", "/api/v1/contacts?x=1"] {
        let mut call = signed();
        call.target = target.to_owned();
        invalid(&server, call).await;
    }
    // The method: a signature for DELETE is not valid for PATCH.
    let path = format!("/contacts/{}", server.id("contact_id"));
    let mut call = Call::new(Method::PATCH, &path).raw("{}").sign_at(key, at);
    call.method = Method::DELETE;
    invalid(&server, call).await;
    // The timestamp.
    invalid(&server, signed().header("x-svc-timestamp", &(at + 1).to_string())).await;
    // The spelling of the signature.
    let value = signed().headers["x-svc-signature"].to_str().unwrap().to_owned();
    for other in [
        value.to_uppercase(),
        value.replace("sha256=", "SHA256="),
        value.replace("sha256=", ""),
        value[..value.len() - 2].to_owned(),
        format!("{value}00"),
        String::new(),
    ] {
        invalid(&server, signed().header("x-svc-signature", &other)).await;
    }
    // The secret of another key.
    let other = Key { secret: Some(svc_core::values::Secret::new("svcsig_other")), ..key.clone() };
    invalid(&server, create("a@example.com").sign_at(&other, at)).await;
    assert_eq!(server.new_events().await, [""; 0]);
    server.expect(201, signed()).await;
}

#[tokio::test]
async fn a_timestamp_may_be_300_seconds_off_in_either_direction() {
    let server = SeededServer::new();
    let at = now(&server);
    for (number, offset) in [-300, -299, 0, 299, 300].into_iter().enumerate() {
        server.expect(201, create(&format!("{number}@example.com")).sign_at(signer(&server), at + offset)).await;
    }
    for offset in [-301, 301, -100_000, 100_000, -at] {
        invalid(&server, create("late@example.com").sign_at(signer(&server), at + offset)).await;
    }
    for invalid_timestamp in
        ["", "now", "1e9", "-1", "0x10", "1773500966.", "1773500966.5000000", "99999999999999999999"]
    {
        let call = create("invalid_timestamp@example.com").sign_at(signer(&server), at);
        invalid(&server, call.header("x-svc-timestamp", invalid_timestamp)).await;
    }
}

#[tokio::test]
async fn a_refusal_says_what_is_wrong_with_the_signature() {
    let server = SeededServer::new();
    let at = now(&server);
    let signed = || create("a@example.com").sign_at(signer(&server), at);
    let of = |name| signed().headers[name].to_str().unwrap().to_owned();
    let (signature, timestamp) = (of("x-svc-signature"), of("x-svc-timestamp"));
    for (call, code, error) in [
        (
            signed().without("x-svc-timestamp"),
            "signature_required",
            "This key signs its writes; send X-SVC-Timestamp and X-SVC-Signature.",
        ),
        (
            signed().and_header("x-svc-timestamp", &timestamp),
            "signature_invalid",
            "Send X-SVC-Timestamp and X-SVC-Signature once each, in ASCII.",
        ),
        (
            signed().header("x-svc-timestamp", "2026-03-14T15:09:26Z"),
            "signature_invalid",
            "X-SVC-Timestamp must be the time in Unix seconds, with up to six decimals.",
        ),
        (
            signed().header("x-svc-signature", signature.trim_start_matches("sha256=")),
            "signature_invalid",
            "X-SVC-Signature must be sha256= and 64 lower-case hex digits.",
        ),
        (
            signed().raw("{}"),
            "signature_invalid",
            "X-SVC-Signature does not match this request; sign the timestamp, the method, the path with its query, and the body, \
             byte for byte as they are sent.",
        ),
        (
            create("a@example.com").sign_at(signer(&server), at - 301),
            "signature_invalid",
            "X-SVC-Timestamp is more than 300 seconds off; set the clock and sign again.",
        ),
    ] {
        assert_eq!(refused(&server, code, call).await.json()["error"], error);
    }
}

#[tokio::test]
async fn a_signature_is_accepted_once() {
    let server = SeededServer::new();
    let at = now(&server);
    let first = create("a@example.com").sign_at(signer(&server), at);
    server.expect(201, first.clone()).await;
    let again = reused(&server, first.clone()).await;
    assert!(again.text.contains("used before"), "{}", again.text);
    // A signature is used up even if its request failed.
    for (status, body) in [(400, json!({ "email": 5 })), (409, json!({ "email": "existing@example.com" }))] {
        let call = Call::post("/contacts", body).sign_at(signer(&server), at);
        server.expect(status, call.clone()).await;
        reused(&server, call).await;
    }
    let text = create("b@example.com").header("content-type", "text/plain").sign_at(signer(&server), at);
    server.expect(415, text.clone()).await;
    reused(&server, text.clone().header("content-type", "application/json")).await;
    // It stays used up as long as its timestamp is valid.
    server.clock.advance(std::time::Duration::from_secs(300));
    server.api.jobs().run_housekeeping().await.unwrap();
    reused(&server, first).await;
}

/// Signatures are remembered as long as a timestamp in the future can be valid.
#[tokio::test]
async fn a_signature_with_a_future_timestamp_is_accepted_once() {
    let server = SeededServer::new();
    let at = now(&server) + 300;
    let call = create("a@example.com").sign_at(signer(&server), at);
    server.expect(201, call.clone()).await;
    for _ in 0..6 {
        server.clock.advance(std::time::Duration::from_secs(100));
        server.api.jobs().run_housekeeping().await.unwrap();
        reused(&server, call.clone()).await;
    }
    server.clock.advance(std::time::Duration::from_secs(2));
    server.api.jobs().run_housekeeping().await.unwrap();
    let stale = invalid(&server, call).await;
    assert!(stale.text.contains("300 seconds"), "{}", stale.text);
}

/// While the clock runs ahead, used signatures expire and are deleted. When it is set back, they are valid again by their
/// timestamps.
#[tokio::test]
async fn a_signature_is_not_accepted_again_after_the_clock_was_set_back() {
    let server = SeededServer::new();
    let start = server.store().env().now();
    let later = |seconds| start.checked_add(std::time::Duration::from_secs(seconds)).unwrap();
    let at = start.as_seconds();
    let used = create("a@example.com").sign_at(signer(&server), at);
    server.expect(201, used.clone()).await;
    server.clock.set(later(700));
    server.api.jobs().run_housekeeping().await.unwrap();
    server.clock.set(later(10));
    // Also by another node, and by one that is started afterwards.
    let other_node = svc_server::Api::new(server.second_store(), crate::harness::settings());
    for api in [&server.api, &other_node] {
        let response = server.send_to(api, used.clone()).await;
        assert_eq!((response.status, response.code().as_str()), (401, "signature_reused"));
    }
    // One that was not used, but is as old, could be such a one.
    reused(&server, create("b@example.com").sign_at(signer(&server), at - 1)).await;
    server.expect(201, create("b@example.com").sign_at(signer(&server), at + 1)).await;
    assert_eq!(server.new_events().await, ["contact.created"; 2]);
}

/// Of two requests that are the same within a second, each has its own signature if it has its own decimals.
#[tokio::test]
async fn decimals_make_signatures_within_a_second_differ() {
    let server = SeededServer::new();
    let job = |decimals: &str| {
        let job = json!({ "title": "Replace the boiler" });
        Call::post("/jobs", job).sign_as_of(signer(&server), &format!("{}{decimals}", now(&server)))
    };
    for decimals in ["", ".5", ".500001", ".000000"] {
        server.expect(201, job(decimals)).await;
        reused(&server, job(decimals)).await;
    }
}

/// A request can be sent again as it was, signature included, if its first response is stored under its Idempotency-Key.
#[tokio::test]
async fn a_repeated_signature_gets_the_stored_response_of_its_request() {
    let server = SeededServer::new();
    let at = now(&server);
    let keyed = |email: &str, key: &str, at| create(email).header("idempotency-key", key).sign_at(signer(&server), at);
    let first = server.expect(201, keyed("a@example.com", "k", at)).await;
    assert_eq!(first.header("idempotent-replayed"), None);
    for at in [at, at + 1] {
        let repeat = server.expect(201, keyed("a@example.com", "k", at)).await;
        assert_eq!((repeat.header("idempotent-replayed"), &repeat.text), (Some("true"), &first.text));
    }
    assert_eq!(server.new_events().await, ["contact.created"]);
    // The same request without its key, under another key, and under one that is not allowed.
    reused(&server, keyed("a@example.com", "k", at).without("idempotency-key")).await;
    reused(&server, keyed("a@example.com", "other", at)).await;
    reused(&server, keyed("a@example.com", "", at)).await;
    // Another request that was signed, under the same key.
    server.expect(201, create("b@example.com").sign_at(signer(&server), at)).await;
    reused(&server, keyed("b@example.com", "k", at)).await;
    // A conflict is stored; that a request was invalid is not.
    for _ in 0..2 {
        assert_eq!(server.expect(409, keyed("existing@example.com", "taken", at)).await.code(), "email_taken");
    }
    server.expect(400, keyed("nobody", "invalid", at)).await;
    reused(&server, keyed("nobody", "invalid", at)).await;
}

#[tokio::test]
async fn a_delete_is_signed_over_an_empty_body() {
    let server = SeededServer::new();
    let path = format!("/webhooks/{}", server.id("webhook_id"));
    let at = now(&server);
    let with_body = Call::delete(&path).sign_at(signer(&server), at).raw("{}");
    invalid(&server, with_body).await;
    server.expect(204, Call::delete(&path).sign_at(signer(&server), at)).await;
    server.expect(404, Call::delete(&path).sign_at(signer(&server), at + 1)).await;
}

/// Keys that do not sign may send the headers, which are ignored.
#[tokio::test]
async fn signature_headers_of_other_keys_are_ignored() {
    let server = SeededServer::new();
    server.expect(201, create("a@example.com").header("x-svc-signature", "sha256=00")).await;
}

/// Runs the snippet of docs/contract.md, with the time of the test's clock.
#[tokio::test]
async fn the_snippet_of_the_documentation_makes_valid_signatures() {
    const DRIVER: &str = "
import json, sys
secret, path, now = sys.argv[1:]
time.time = lambda: float(now)
body = sys.stdin.buffer.read()
json.dump(sign(secret, 'POST', path, body), sys.stdout)
";
    let snippet = python::block(include_str!("../../docs/contract.md"));
    assert!(snippet.contains("def sign("));

    let server = SeededServer::new();
    let (call, key) = (create("zoe@example.com"), signer(&server));
    let secret = key.secret.as_ref().unwrap().reveal();
    let now = format!("{}.75", now(&server));
    let arguments = [secret, &call.target, &now];
    let Some(output) = python::run(&format!("{snippet}{DRIVER}"), &arguments, &[], &call.body) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let headers: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(headers.len(), 2);
    let signed = headers.iter().fold(call.key(key), |call, (name, value)| call.header(name, value));
    let tampered = signed.clone().raw(create("eve@example.com").body);
    server.expect(201, signed).await;
    invalid(&server, tampered).await;
}
