//! Runs the vectors of `fixtures/hmac/vectors.json`: valid signatures, and signatures that almost match.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use std::time::UNIX_EPOCH;

use serde_json::Value;
use svc_webhook_verify::{Verifier, VerifyError, verify};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/hmac/vectors.json");

fn cases(group: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(VECTORS).unwrap()).unwrap();
    vectors[group].as_array().unwrap().clone()
}

fn bytes(case: &Value, name: &str) -> Vec<u8> {
    let hex = case[name].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Returns the error code for a header. Asserts that the function agrees with a verifier that has this secret alone,
/// before or after another one.
fn code(secret: &str, header: &str, body: &[u8]) -> Option<&'static str> {
    let code = verify(secret, header, body).err().map(|error| error.code());
    let with = |verifier: Result<Verifier, VerifyError>| {
        let result = verifier.and_then(|verifier| verifier.without_max_age().verify_at(header, body, UNIX_EPOCH));
        result.err().map(|error| error.code())
    };
    assert_eq!(with(Verifier::new(secret)), code, "{header}");
    assert_eq!(with(Verifier::new(secret).and_then(|it| it.with_secret("whsec_second"))), code, "{header}");
    assert_eq!(with(Verifier::new("whsec_first").and_then(|it| it.with_secret(secret))), code, "{header}");
    code
}

#[test]
fn only_complete_and_correct_tags_are_accepted() {
    let mut checked = 0;
    for case in cases("macs") {
        // Secrets are non-empty text without white space.
        let Ok(secret) = String::from_utf8(bytes(&case, "key")) else { continue };
        if secret.is_empty() || secret.contains(char::is_whitespace) {
            continue;
        }
        let header = format!("sha256={}", case["tag"].as_str().unwrap());
        let expected = match (case["valid"] == true, header.len()) {
            (true, _) => None,
            (false, 71) => Some("mismatch"),
            (false, _) => Some("wrong_length"),
        };
        assert_eq!(code(&secret, &header, &bytes(&case, "message")), expected, "{}", case["comment"]);
        checked += 1;
    }
    assert!(checked > 300, "only {checked} were checked");
}

#[test]
fn every_header_has_the_expected_result() {
    for case in cases("deliveries") {
        let (secret, header) = (case["secret"].as_str().unwrap(), case["header"].as_str().unwrap());
        assert_eq!(code(secret, header, &bytes(&case, "body")), case["error"].as_str(), "{}", case["comment"]);
    }
}
