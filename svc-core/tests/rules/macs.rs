//! HMACs against `fixtures/hmac/vectors.json`: the function, the signature of a delivery, and that of a request.

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
fn tags_are_right_or_wrong() {
    for case in cases("macs") {
        let (key, message) = (bytes(&case, "key"), bytes(&case, "message"));
        let is_right = svc_core::crypto::hmac_sha256(&key, &[&message])[..] == bytes(&case, "tag");
        assert_eq!(is_right, case["valid"], "{}", case["comment"]);
        // However the message is cut into parts.
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
fn deliveries_are_signed_with_what_is_accepted() {
    for case in cases("deliveries") {
        let signature = signatures::webhook_signature(&Secret::new(text(&case, "secret")), &bytes(&case, "body"));
        // Secrets that a receiver takes for a mistake are never made.
        let is_usable = case["error"].as_str().is_none_or(|error| !error.contains("secret"));
        if is_usable {
            assert_eq!(signature == text(&case, "header"), case["error"].is_null(), "{}", case["comment"]);
        }
    }
}

#[test]
fn requests_are_accepted_or_refused() {
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
        if let Ok(mac) = result {
            assert_eq!(request.sign(&secret), format!("sha256={}", hex::encode(&mac)));
            accepted += 1;
        }
    }
    assert!(accepted > 20, "only {accepted} were accepted");
}
