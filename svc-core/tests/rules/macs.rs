//! HMAC-SHA256 against `fixtures/hmac/vectors.json`: the function itself, the signature of a delivery, and that of a
//! request.

use serde_json::Value;
use svc_core::accounts::signing::SignedRequest;
use svc_core::values::{Secret, Timestamp};
use svc_core::webhooks::signatures;

const VECTORS: &str = include_str!("../../../fixtures/hmac/vectors.json");

fn cases(group: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    vectors[group].as_array().unwrap().clone()
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap()
}

fn bytes(case: &Value, name: &str) -> Vec<u8> {
    let hex = text(case, name);
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn hmacs_match_the_vectors() {
    for case in cases("macs") {
        let (key, message) = (bytes(&case, "key"), bytes(&case, "message"));
        let is_right = svc_core::crypto::hmac_sha256(&key, &[&message])[..] == bytes(&case, "tag");
        assert_eq!(is_right, case["valid"], "{}", case["comment"]);
        // The result does not depend on how the message is split.
        for at in [0, message.len() / 2, message.len()] {
            let (start, end) = message.split_at(at);
            assert_eq!(
                svc_core::crypto::hmac_sha256(&key, &[start, b"", end]),
                svc_core::crypto::hmac_sha256(&key, &[&message]),
                "{}",
                case["comment"]
            );
        }
    }
}

#[test]
fn signatures_of_deliveries_match_the_vectors() {
    for case in cases("deliveries") {
        let signature = signatures::webhook_signature(&Secret::new(text(&case, "secret")), &bytes(&case, "body"));
        // Receivers reject such secrets as mistakes, so the service never generates them.
        let is_usable = case["error"].as_str().is_none_or(|error| !error.contains("secret"));
        if is_usable {
            assert_eq!(signature == text(&case, "header"), case["error"].is_null(), "{}", case["comment"]);
        }
    }
}

#[test]
fn signatures_of_requests_match_the_vectors() {
    let mut accepted = 0;
    for case in cases("requests") {
        let body = bytes(&case, "body");
        let request = SignedRequest {
            timestamp: text(&case, "timestamp"),
            method: text(&case, "method"),
            path_and_query: text(&case, "target"),
            body: &body,
        };
        let secret = Secret::new(text(&case, "secret"));
        let now = Timestamp::from_micros(case["now"].as_i64().unwrap() * 1_000_000);
        let result = request.verify(&secret, text(&case, "signature"), now);
        assert_eq!(result.is_ok(), case["valid"], "{}: {result:?}", case["comment"]);
        if let Ok(verified) = result {
            assert_eq!(request.sign(&secret), format!("sha256={}", hex::encode(verified.mac)));
            let seconds = request.timestamp.split('.').next().unwrap().trim_start_matches('0');
            assert_eq!(verified.signed_at.as_seconds().to_string(), seconds);
            accepted += 1;
        }
    }
    assert!(accepted > 20, "only {accepted} signatures were accepted");
}
