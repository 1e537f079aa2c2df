//! The OpenAPI document as clients receive it. Unit tests in svc-server check its contents.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;

use crate::conform::validator;
use crate::harness::{Call, SeededServer};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../svc-server/openapi/v1.json");

async fn served() -> Value {
    let server = SeededServer::new();
    server.expect(200, Call::absolute(Method::GET, "/api/v1/openapi.json").anonymous()).await.json()
}

/// `UPDATE=1 cargo test -p svc-tests` rewrites the file.
#[tokio::test]
async fn the_committed_document_equals_the_served_one() {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(COMMITTED, svc_server::api::openapi::text("v1").unwrap()).unwrap();
    }
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(COMMITTED).unwrap()).unwrap();
    assert!(served().await == committed, "openapi/v1.json has drifted; run with UPDATE=1");
}

#[tokio::test]
async fn the_document_has_the_25_operations_of_the_contract() {
    let served = served().await;
    let mut got = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (path, item) in served["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            got.insert(format!("{} {path}", method.to_uppercase()));
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{path}");
        }
    }
    let mut want = BTreeSet::from(["GET /ping".to_owned()]);
    for (collection, many, one) in [
        ("contacts", "GET POST", "GET PATCH DELETE"),
        ("invoices", "GET", "GET"),
        ("bookings", "GET POST", "GET PATCH"),
        ("quotes", "GET POST", "GET PATCH"),
        ("jobs", "GET POST", "GET PATCH"),
        ("webhooks", "GET POST", "GET PATCH DELETE"),
    ] {
        want.extend(many.split(' ').map(|method| format!("{method} /{collection}")));
        want.extend(one.split(' ').map(|method| format!("{method} /{collection}/{{id}}")));
    }
    assert_eq!((got.len(), ids.len()), (25, 25));
    assert_eq!(got, want);
}

/// Validates every example with the validators that check the responses.
#[tokio::test]
async fn every_example_is_valid() {
    let served = served().await;
    let mut count = 0;
    for (name, schema) in served["components"]["schemas"].as_object().unwrap() {
        for example in schema["examples"].as_array().into_iter().flatten() {
            let failures: Vec<String> = validator(schema).iter_errors(example).map(|error| error.to_string()).collect();
            assert!(failures.is_empty(), "{name}: {failures:?}");
            count += 1;
        }
    }
    assert!(count >= 17, "{count}");
}
