use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;
use crate::{SIGNATURE_PREFIX, verify};

const SECRET: &str = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
const OLD: &str = "whsec_FXE7hanIybXwTvLAFfk4bZJjPTSZFkGlkzTgRNJBC+4=";

fn sign(secret: &str, body: &[u8]) -> String {
    let mac = whole_key(secret).unwrap().chain_update(body).finalize();
    let hex = mac.into_bytes().into_iter().map(|byte| format!("{byte:02x}"));
    SIGNATURE_PREFIX.to_owned() + &hex.collect::<String>()
}

fn unix(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn rfc_4231_case_2_verifies() {
    let signature = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    let body = b"what do ya want for nothing?";
    assert_eq!(verify("Jefe", signature, body), Ok(()));
}

#[test]
fn signatures_of_each_secret_are_accepted() {
    let verifier = Verifier::new(SECRET).unwrap().with_secret(OLD).unwrap().without_max_age();
    for secret in [SECRET, OLD] {
        assert_eq!(verifier.verify(&sign(secret, b"x"), b"x"), Ok(()));
    }
    let other = sign("whsec_other", b"x");
    assert_eq!(verifier.verify(&other, b"x"), Err(VerifyError::Mismatch));
    let empty = verifier.with_secret("").map(drop);
    assert_eq!(empty, Err(VerifyError::EmptySecret));
}

#[test]
fn the_age_is_checked_by_the_system_clock() {
    let verifier = Verifier::new(SECRET).unwrap();
    let body = br#"{"delivered_at":"2001-01-01T00:00:00Z"}"#;
    let refused = verifier.verify(&sign(SECRET, body), body);
    assert!(matches!(refused, Err(VerifyError::Stale { .. })), "{refused:?}");
    assert_eq!(verifier.without_max_age().verify(&sign(SECRET, body), body), Ok(()));
}

#[cfg(feature = "http")]
#[test]
fn standard_headers_come_before_the_other_one() {
    let (at, body) = (unix(1_649_367_555), br#"{"email":"test@example.com","username":"test_user"}"#);
    let secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let verifier = Verifier::new(secret).unwrap();
    let mut headers = http::HeaderMap::new();
    let missing = verifier.verify_headers_at(&headers, body, at);
    assert_eq!(missing, Err(VerifyError::EmptyHeader));

    headers.insert("x-svc-signature", sign(secret, body).parse().unwrap());
    let without_time = verifier.verify_headers_at(&headers, body, at);
    assert_eq!(without_time, Err(VerifyError::MissingDeliveredAt));

    headers.insert("webhook-signature", "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=".parse().unwrap());
    let without_id = verifier.verify_headers_at(&headers, body, at);
    assert_eq!(without_id, Err(VerifyError::InvalidId));

    headers.insert("webhook-id", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk".parse().unwrap());
    headers.insert("webhook-timestamp", "1649367553".parse().unwrap());
    assert_eq!(verifier.verify_headers_at(&headers, body, at), Ok(()));

    // During a rotation, X-SVC-Signature is made with the other secret.
    headers.insert("x-svc-signature", sign(OLD, body).parse().unwrap());
    assert_eq!(verifier.verify_headers_at(&headers, body, at), Ok(()));
    headers.insert("webhook-signature", http::HeaderValue::from_bytes(b"v1,\xff").unwrap());
    assert_eq!(verifier.verify_headers_at(&headers, body, at), Err(VerifyError::EmptyHeader));
}

#[test]
fn the_future_tolerance_can_be_set() {
    let body = br#"{"delivered_at":"1970-01-01T00:01:40.5Z"}"#;
    let verifier = Verifier::new(SECRET).unwrap().max_age(Duration::ZERO).future_tolerance(Duration::from_millis(500));
    let signature = sign(SECRET, body);
    assert_eq!(verifier.verify_at(&signature, body, unix(100)), Ok(()));
    let ahead = Duration::from_millis(1500);
    let refused = verifier.verify_at(&signature, body, unix(99));
    assert_eq!(refused, Err(VerifyError::FromFuture { ahead }));
}

#[test]
fn a_secret_that_is_not_base64_fails_only_for_standard_headers() {
    for secret in ["whsec_", "whsec_?", "whsec_abc"] {
        let verifier = Verifier::new(secret).unwrap().without_max_age();
        assert_eq!(verifier.verify(&sign(secret, b""), b""), Ok(()));
        let headers =
            StandardHeaders { id: "a", timestamp: "1", signature: "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" };
        let refused = verifier.verify_standard(headers, b"");
        assert_eq!(refused, Err(VerifyError::SecretNotBase64), "{secret}");
    }
}

#[test]
fn only_lower_case_hex_is_accepted() {
    let header = sign(SECRET, b"");
    let (prefix, digits) = header.split_at(SIGNATURE_PREFIX.len());
    let with = |digits: String| verify(SECRET, &(prefix.to_owned() + &digits), b"");
    assert_eq!(with(digits.to_owned()), Ok(()));
    assert_eq!(with(digits.to_ascii_uppercase()), Err(VerifyError::UpperCaseHex));
    assert_eq!(with(digits.replacen('a', "A", 1)), Err(VerifyError::UpperCaseHex));
    assert_eq!(with(format!("{}g", &digits[..63])), Err(VerifyError::NotHex));
    assert_eq!(with(format!("{}Ag", &digits[..62])), Err(VerifyError::NotHex));
    assert_eq!(with(format!(" {}", &digits[..63])), Err(VerifyError::NotHex));
    assert_eq!(with(format!("{}é", &digits[..62])), Err(VerifyError::NotHex));
    assert_eq!(with(digits[..63].to_owned()), Err(VerifyError::WrongLength { found: 63 }));
    assert_eq!(with(format!("{digits}0")), Err(VerifyError::WrongLength { found: 65 }));
}

#[test]
fn only_canonical_padded_base64_is_accepted() {
    let verifier = Verifier::new(SECRET).unwrap();
    let with = |signature: &str| {
        let signature = format!("v1,{signature}");
        let headers = StandardHeaders { id: "a", timestamp: "1", signature: &signature };
        verifier.verify_standard(headers, b"")
    };
    let zeros = "A".repeat(42);
    assert_eq!(with(&format!("{zeros}A=")), Err(VerifyError::Mismatch), "32 bytes in canonical form");
    for (text, fault) in [
        (format!("{zeros}A"), "no padding"),
        (format!("{zeros}A=="), "too much padding"),
        (format!("{zeros}B="), "bits after the last byte"),
        (format!("-{}A=", &zeros[1..]), "the URL-safe alphabet"),
        (format!("{zeros}A\n="), "white space"),
        (format!("=A{}A", &zeros[1..]), "padding at the start"),
        (format!("{zeros}=="), "31 bytes"),
        (format!("{zeros}AA"), "33 bytes"),
        (String::new(), "nothing"),
    ] {
        assert_eq!(with(&text), Err(VerifyError::NotBase64), "{fault}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let shown = format!("{:?}", Verifier::new(SECRET).unwrap());
    let expected = "Verifier { secrets: 1, max_age: Some(300s), future_tolerance: 60s, .. }";
    // Public keys are counted too, where they can be added.
    assert_eq!(shown.replace("public_keys: 0, ", ""), expected);
}

#[test]
fn timestamps_are_parsed_strictly() {
    for (text, seconds, nanos) in [
        ("1970-01-01T00:00:00Z", 0, 0),
        ("1970-03-01T00:00:00.5Z", 5_097_600, 500_000_000),
        ("2000-02-29T23:59:59.000001Z", 951_868_799, 1_000),
        ("2026-03-14T09:26:53.123456789Z", 1_773_480_413, 123_456_789),
        ("2100-03-01T00:00:00Z", 4_107_542_400, 0),
        ("9999-12-31T23:59:59Z", 253_402_300_799, 0),
    ] {
        let expected = UNIX_EPOCH + Duration::new(seconds, nanos);
        assert_eq!(parse_timestamp(text), Some(expected), "{text}");
    }
    for text in [
        "",
        "Z",
        "2026-03-14",
        "2026-03-14T09:26:53",
        "2026-03-14T09:26:53+00:00",
        "2026-03-14 09:26:53Z",
        "2026-03-14t09:26:53z",
        "2026-03-14T09:26Z",
        "2026-03-14T09:26:53:00Z",
        "2026-03-14T09:26:53.Z",
        "2026-03-14T09:26:53.1234567890Z",
        "2026-03-14T09:26:53.-1Z",
        "2026-03-14T+9:26:53Z",
        "02026-03-14T09:26:53Z",
        "2026-3-14T09:26:53Z",
        "1969-12-31T23:59:59Z",
        "2026-00-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z",
        "２026-01-01T00:00:00Z",
    ] {
        assert_eq!(parse_timestamp(text), None, "{text}");
    }
}

#[test]
fn delivered_at_is_found_in_the_outermost_object() {
    for (body, expected) in [
        (r#"{"delivered_at":"t"}"#, Some("t")),
        (" {\n \"delivered_at\" :\t\"t\" } ", Some("t")),
        (r#"{"data":{"delivered_at":"no"},"delivered_at":"t"}"#, Some("t")),
        (r#"{"data":[{"delivered_at":"no"}],"delivered_at":"t"}"#, Some("t")),
        (r#"{"a":"\"delivered_at\":\"no\"","delivered_at":"t"}"#, Some("t")),
        (r#"{"a":"\\","delivered_at":"t"}"#, Some("t")),
        (r#"{"event":"delivered_at","delivered_at":"t"}"#, Some("t")),
        (r#"{"a":"{[","delivered_at":"t"}"#, Some("t")),
        (r#"{"delivered_at":null}"#, None),
        (r#"{"data":{"delivered_at":"no"}}"#, None),
        (r#"{"delivered_at""#, None),
        (r#"{"delivered_at":"t"#, None),
        (r#""delivered_at":"t""#, None),
        ("}", None),
        ("", None),
    ] {
        assert_eq!(find_delivered_at(body.as_bytes()), expected, "{body}");
    }
}

#[test]
fn a_public_key_is_no_secret() {
    let key = "whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";
    for key in [key, &format!("{key}\n"), "whpk_"] {
        assert_eq!(verify(key, "sha256=00", b""), Err(VerifyError::PublicKeyAsSecret));
        assert_eq!(Verifier::new(key).err(), Some(VerifyError::PublicKeyAsSecret));
        let added = Verifier::new(SECRET).unwrap().with_secret(key);
        assert_eq!(added.err(), Some(VerifyError::PublicKeyAsSecret));
    }
}

#[test]
fn messages_say_what_to_do() {
    let error = verify(SECRET, "sha256=00", b"").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the signature has 2 bytes after `sha256=`, not 64; pass X-SVC-Signature unchanged and once"
    );
}

#[cfg(feature = "serde")]
#[test]
fn events_are_deserialized_or_refused() {
    let verifier = Verifier::new(SECRET).unwrap().without_max_age();
    let body = br#"{"event":"contact.deleted","data":{"id":"c"},"delivered_at":"t","tenant_id":"u","new":1}"#;
    let event: Event = verifier.verify_event(&sign(SECRET, body), body).unwrap();
    assert_eq!(event.event, "contact.deleted");
    assert_eq!(event.data, serde_json::json!({ "id": "c" }));
    assert_eq!((event.delivered_at, event.tenant_id), ("t".into(), "u".into()));

    for body in [&b""[..], b"[]", b"{}", b"\xff"] {
        let refused = verifier.verify_event::<()>(&sign(SECRET, body), body);
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "malformed_body", "{error}");
    }
    let unsigned = verifier.verify_event::<()>("", b"{}");
    assert_eq!(unsigned, Err(VerifyError::EmptyHeader));
}

/// Generates strings with the characters that the parsers handle specially, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "(sha256=)?[0-9a-fA-Fg]{0,70}",
        "(v1,[A-Za-z0-9+/]{42,43}=* ?){0,3}",
        "whsec_[A-Za-z0-9+/]{0,9}=*",
        "[0-9]{0,25}",
    ]
}

/// Generates JSON with `delivered_at`, quotes and backslashes in all places.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let key = || prop_oneof![Just("delivered_at".to_owned()), r#"[a-c"\\{}:]{0,3}"#];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        Just(serde_json::Value::from(1)),
        key().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn no_input_panics(
        secret in text(), a in text(), b in text(), c in text(),
        body: Vec<u8>, seconds in 0..1_u64 << 33,
    ) {
        let _ = verify(&secret, &a, &body);
        let _ = find_delivered_at(&body);
        let _ = find_delivered_at(a.as_bytes());
        if let Ok(verifier) = Verifier::new(&secret) {
            let verifier = verifier.max_age(Duration::from_secs(1));
            let now = unix(seconds);
            let _ = verifier.verify_at(&a, &body, now);
            // A valid signature, so that the body is scanned.
            let _ = verifier.verify_at(&sign(&secret, &body), &body, now);
            let headers = StandardHeaders { id: &a, timestamp: &b, signature: &c };
            let _ = verifier.verify_standard_at(headers, &body, now);
        }
    }

    #[test]
    fn timestamps_never_panic(text in r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,25})?Z") {
        let _ = parse_timestamp(&text);
    }

    #[test]
    fn the_scanner_agrees_with_serde_json(value in json()) {
        let expected = value.as_object().and_then(|o| o.get("delivered_at")).and_then(|v| v.as_str());
        // The scanner does not unescape the value.
        prop_assume!(expected.is_none_or(|text| !text.contains(['"', '\\'])));
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(find_delivered_at(text.as_bytes()), expected);
        }
    }

    #[test]
    fn any_flipped_bit_is_refused(
        mut body in prop::collection::vec(any::<u8>(), 1..200),
        at: prop::sample::Index,
        bit in 0..8_u8,
    ) {
        let signature = sign(SECRET, &body);
        prop_assert_eq!(verify(SECRET, &signature, &body), Ok(()));
        let at = at.index(body.len());
        body[at] ^= 1_u8 << bit;
        prop_assert_eq!(verify(SECRET, &signature, &body), Err(VerifyError::Mismatch));
    }
}
