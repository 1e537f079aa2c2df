//! Every error code of docs/contract.md, "Errors", with its status and exact body, as a snapshot.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use http::Method;
use serde_json::json;
use svc_core::error::StoreError;
use svc_core::store::Access;

use crate::conform::{CODES, MORE_CODES};
use crate::faults::Gate;
use crate::harness::{Call, Response, SeededServer, settings};

/// Returns requests that each cause an error without any preparation.
fn simple(server: &SeededServer) -> Vec<Call> {
    let contact = format!("/contacts/{}", server.id("contact_id"));
    let quote = json!({ "contact_id": server.id("unknown_id"), "total": 1 });
    let email = json!({ "email": "new@example.com" });
    let create = || Call::post("/contacts", email.clone());
    let with_key = |role| Call::get("/ping").key(server.key(role));
    let signed = create().key(server.key("signed"));
    let used_up = create().without("content-type").sign_at(server.key("signed"), 1_773_500_966);
    vec![
        Call::new(Method::POST, "/contacts").raw("{\"email\":"),
        Call::new(Method::POST, "/contacts").raw("[]"),
        Call::post("/contacts", json!({ "first_name": 5, "id": "x", "nickname": "y" })),
        Call::get("/contacts/not-a-uuid"),
        Call::get("/contacts?page=2"),
        Call::get("/contacts?limit=0&email=x"),
        Call::get(&format!("/contacts?cursor={}", server.id("unknown_id"))),
        Call::patch(&contact, json!({})),
        Call::post("/quotes", quote),
        Call::get("/ping").anonymous(),
        Call::get("/ping").header("authorization", "Bearer svc_live_abc"),
        with_key("revoked"),
        with_key("expired"),
        create().key(server.key("signed")),
        signed.header("x-svc-timestamp", "1773500966").header("x-svc-signature", "sha256=00"),
        used_up.clone(),
        used_up,
        create().key(server.key("read")),
        with_key("pending"),
        with_key("suspended"),
        Call::get(&format!("/contacts/{}", server.id("unknown_id"))),
        Call::get("/nothing"),
        Call::delete("/contacts"),
        Call::post("/contacts", json!({ "email": "Existing@Example.com" })),
        Call::patch(&contact, json!({ "city": "Perth" })).header("if-match", "\"other\""),
        Call::new(Method::POST, "/contacts").raw(vec![b' '; 1024 * 1024 + 1]),
        create().header("content-type", "text/plain"),
        create().header("content-encoding", "gzip"),
        Call::get(&format!("/contacts?email={}", "x".repeat(8200))),
        create().header("x-long", &"x".repeat(16 * 1024)),
        Call::get("/contacts").without("host"),
        Call::get("/contacts").header("host", "api.example.com/v1"),
        Call::get("/contacts").header("transfer-encoding", "gzip, chunked"),
    ]
}

fn write_down(out: &mut String, call: &Call, response: &Response) {
    let target: String = call.target.chars().take(80).collect();
    let _ = writeln!(out, "{} {target}\n{}", call.method, response.status);
    for name in ["allow", "retry-after", "www-authenticate"] {
        if let Some(value) = response.header(name) {
            let _ = writeln!(out, "{name}: {value}");
        }
    }
    let _ = writeln!(out, "{}\n", response.text);
}

#[tokio::test]
async fn every_code_is_produced_with_its_exact_body() {
    let (mut out, mut seen) = (String::new(), BTreeSet::new());
    let mut note = |call: &Call, response: &Response| {
        seen.insert(response.code());
        write_down(&mut out, call, response);
    };
    let server = SeededServer::new();
    for call in simple(&server) {
        let response = server.send(call.clone()).await;
        note(&call, &response);
    }

    // The second request with the same key has another body.
    let keyed = |email: &str| Call::post("/contacts", json!({ "email": email })).header("idempotency-key", "k");
    server.expect(201, keyed("first@example.com")).await;
    let other = keyed("second@example.com");
    note(&other, &server.expect(400, other.clone()).await);

    let webhook = Call::post("/webhooks", json!({ "url": "https://hooks.example.com/more", "events": ["*"] }));
    for _ in 1..svc_core::env::DEFAULT_MAX_WEBHOOKS {
        server.expect(201, webhook.clone()).await;
    }
    note(&webhook, &server.expect(409, webhook.clone()).await);

    let (server, gate) = Gate::server_with(svc_server::Settings { rate_limit: 2, limit_rates: true, ..settings() });
    gate.hold("createContact");
    let first = keyed("first@example.com");
    let (running, repeat) = tokio::join!(server.send(first.clone()), async {
        gate.arrival().await;
        let repeat = server.expect(409, first.clone()).await;
        gate.release();
        repeat
    });
    assert_eq!(running.status, 201);
    note(&first, &repeat);
    note(&first, &server.expect(429, first.clone()).await);

    let (server, gate) = Gate::server();
    let ping = Call::get("/ping");
    gate.fail(Access::Read, StoreError::Unavailable("locked".to_owned()));
    note(&ping, &server.expect(503, ping.clone()).await);
    gate.fail(Access::Read, StoreError::Internal("unexpected".to_owned()));
    note(&ping, &server.expect(500, ping.clone()).await);

    // `body_incomplete` needs a slow client: see the module `wire`.
    let all: BTreeSet<String> =
        CODES.iter().chain(&MORE_CODES).filter(|code| **code != "body_incomplete").map(ToString::to_string).collect();
    assert_eq!(seen, all);
    insta::assert_snapshot!("codes", out);
}
