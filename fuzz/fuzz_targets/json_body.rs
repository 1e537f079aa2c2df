//! Bodies: nothing panics, what the strict parser takes is JSON without doubt, and what an operation takes it takes
//! again after it was written anew.

#![no_main]

use std::collections::HashSet;
use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde_json::value::RawValue;
use svc_core::resources::bookings::{BookingCreate, BookingUpdate};
use svc_core::resources::contacts::{ContactCreate, ContactUpdate};
use svc_core::imports::{ContactImport, InvoiceImport};
use svc_core::input::{FromJson, Input};
use svc_core::resources::jobs::{JobCreate, JobUpdate};
use svc_core::input::json::{Json, MAX_DEPTH, parse};
use svc_core::resources::quotes::{QuoteCreate, QuoteUpdate};
use svc_core::values::{Currency, Date, Email, EventSet, Timestamp, WebhookUrl};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookUpdate};
use uuid::Uuid;

fuzz_target!(|body: &[u8]| {
    let parsed = parse(body);
    let again = match &parsed {
        Ok(json) => {
            let other = serde_json::from_slice::<&RawValue>(body);
            assert!(other.is_ok(), "serde_json refuses it: {other:?}");
            judge(json, 1);
            write(json)
        }
        Err(_) => body.to_vec(),
    };
    assert_eq!(parse(&again), parsed);
    same::<ContactCreate>(body, &again);
    same::<ContactUpdate>(body, &again);
    same::<BookingCreate>(body, &again);
    same::<BookingUpdate>(body, &again);
    same::<QuoteCreate>(body, &again);
    same::<QuoteUpdate>(body, &again);
    same::<JobCreate>(body, &again);
    same::<JobUpdate>(body, &again);
    same::<WebhookCreate>(body, &again);
    same::<WebhookUpdate>(body, &again);
    same::<ContactImport>(body, &again);
    same::<InvoiceImport>(body, &again);
});

/// Both texts are read as the same.
fn same<I: Input + PartialEq + Debug>(body: &[u8], again: &[u8]) {
    assert_eq!(I::from_body(body), I::from_body(again));
}

/// What the parser promises of what it took, and each leaf as every type that an answer can show.
fn judge(json: &Json, depth: usize) {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => assert!(!text.contains('\0'), "a NUL"),
        Json::Array(items) => {
            assert!(depth <= MAX_DEPTH, "{depth} levels");
            items.iter().for_each(|item| judge(item, depth + 1));
        }
        Json::Object(members) => {
            assert!(depth <= MAX_DEPTH, "{depth} levels");
            let names: HashSet<&String> = members.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), members.len(), "a duplicate key");
            members.iter().for_each(|(_, member)| judge(member, depth + 1));
        }
    }
    shown::<Currency>(json);
    shown::<Date>(json);
    shown::<Email>(json);
    shown::<EventSet>(json);
    shown::<Timestamp>(json);
    shown::<Uuid>(json);
    shown::<WebhookUrl>(json);
}

/// What is read can be sent back as it is shown.
fn shown<T: FromJson + Serialize + PartialEq + Debug>(json: &Json) {
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
