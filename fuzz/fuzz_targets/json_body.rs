//! Bodies of requests: nothing panics, a body that the strict parser accepts is valid JSON, and an operation reads it
//! the same after it is written again.

#![no_main]

use std::collections::HashSet;
use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde_json::value::RawValue;
use svc_core::imports::{ContactImport, InvoiceImport};
use svc_core::input::json::{Json, MAX_DEPTH, parse};
use svc_core::input::{FromJson, Input};
use svc_core::resources::bookings::{BookingCreate, BookingUpdate};
use svc_core::resources::contacts::{ContactCreate, ContactUpdate};
use svc_core::resources::jobs::{JobCreate, JobUpdate};
use svc_core::resources::quotes::{QuoteCreate, QuoteUpdate};
use svc_core::values::{Currency, Date, Email, EventSet, Timestamp, WebhookUrl};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookUpdate};
use uuid::Uuid;

fuzz_target!(|body: &[u8]| {
    let parsed = parse(body);
    let again = match &parsed {
        Ok(json) => {
            let other = serde_json::from_slice::<&RawValue>(body);
            assert!(other.is_ok(), "serde_json rejects the document: {other:?}");
            check(json, 1);
            write(json)
        }
        Err(_) => body.to_vec(),
    };
    assert_eq!(parse(&again), parsed);
    assert_same_input::<ContactCreate>(body, &again);
    assert_same_input::<ContactUpdate>(body, &again);
    assert_same_input::<BookingCreate>(body, &again);
    assert_same_input::<BookingUpdate>(body, &again);
    assert_same_input::<QuoteCreate>(body, &again);
    assert_same_input::<QuoteUpdate>(body, &again);
    assert_same_input::<JobCreate>(body, &again);
    assert_same_input::<JobUpdate>(body, &again);
    assert_same_input::<WebhookCreate>(body, &again);
    assert_same_input::<WebhookUpdate>(body, &again);
    assert_same_input::<ContactImport>(body, &again);
    assert_same_input::<InvoiceImport>(body, &again);
});

/// Checks that both texts are read as the same input.
fn assert_same_input<I: Input + PartialEq + Debug>(body: &[u8], again: &[u8]) {
    assert_eq!(I::from_body(body), I::from_body(again));
}

/// Checks what the parser guarantees about accepted documents, and reads each leaf as every type that a response contains.
fn check(json: &Json, depth: usize) {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => assert!(!text.contains('\0'), "a NUL"),
        Json::Array(items) => {
            assert!(depth <= MAX_DEPTH, "{depth} levels");
            items.iter().for_each(|item| check(item, depth + 1));
        }
        Json::Object(members) => {
            assert!(depth <= MAX_DEPTH, "{depth} levels");
            let names: HashSet<&String> = members.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), members.len(), "a duplicate key");
            members.iter().for_each(|(_, member)| check(member, depth + 1));
        }
    }
    round_trip::<Currency>(json);
    round_trip::<Date>(json);
    round_trip::<Email>(json);
    round_trip::<EventSet>(json);
    round_trip::<Timestamp>(json);
    round_trip::<Uuid>(json);
    round_trip::<WebhookUrl>(json);
}

/// Checks that a value that was read is read back from its serialized form.
fn round_trip<T: FromJson + Serialize + PartialEq + Debug>(json: &Json) {
    if let Ok(value) = T::from_json(json.clone()) {
        let text = serde_json::to_vec(&value).unwrap();
        assert_eq!(T::from_json(parse(&text).unwrap()), Ok(value));
    }
}

fn write(json: &Json) -> Vec<u8> {
    let join = |parts: Vec<Vec<u8>>| parts.join(&b','.to_owned());
    let quote = |text: &String| serde_json::to_vec(text).unwrap();
    match json {
        Json::Null => b"null".into(),
        Json::Bool(value) => value.to_string().into(),
        Json::Number(digits) => digits.clone().into(),
        Json::String(text) => quote(text),
        Json::Array(items) => [b"[", &*join(items.iter().map(write).collect()), b"]"].concat(),
        Json::Object(members) => {
            let member = |(name, value): &(String, Json)| [&*quote(name), b":", &write(value)].concat();
            [b"{", &*join(members.iter().map(member).collect()), b"}"].concat()
        }
    }
}
