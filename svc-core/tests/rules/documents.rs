//! The strict JSON parser against every document of `fixtures/json/documents.txt`.

use svc_core::error::Error;
use svc_core::input::json::{Json, parse};

const TABLE: &str = include_str!("../../../fixtures/json/documents.txt");

/// The expected result of a document.
#[derive(Debug, PartialEq)]
enum Outcome {
    Accepted(String),
    Refused(String),
}

fn cases() -> Vec<(usize, Vec<u8>, Outcome)> {
    let lines = TABLE.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(at, line)| {
            let columns: Vec<&str> = line.split('\t').collect();
            assert!(matches!(columns[0], "accept" | "refuse"), "line {}", at + 1);
            let outcome = match columns[0] {
                "accept" => Outcome::Accepted(String::from_utf8(bytes(columns[2])).unwrap()),
                _ => Outcome::Refused(columns[2].to_owned()),
            };
            (at + 1, bytes(columns[1]), outcome)
        })
        .collect()
}

/// Decodes `\xNN`.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}

/// Formats a value in its shortest form.
fn show(json: &Json) -> String {
    match json {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(digits) => digits.clone(),
        Json::String(text) => quote(text),
        Json::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(",")),
        Json::Object(members) => {
            let member = |(name, value): &(String, Json)| format!("{}:{}", quote(name), show(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
    }
}

fn quote(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        '\0'..='\x1f' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn outcome(document: &[u8]) -> Outcome {
    match parse(document) {
        Ok(json) => Outcome::Accepted(show(&json)),
        Err(Error::Validation(violations)) => {
            let all = violations.as_slice().iter().map(|fault| format!("{}:{}", fault.field, fault.code));
            Outcome::Refused(all.collect::<Vec<_>>().join(","))
        }
        Err(other) => Outcome::Refused(other.code().to_owned()),
    }
}

#[test]
fn every_document_has_the_expected_result() {
    let mut wrong = Vec::new();
    let cases = cases();
    for (line, document, want) in &cases {
        let got = outcome(document);
        if got != *want {
            wrong.push(format!("line {line}: {}: {got:?}, not {want:?}", String::from_utf8_lossy(document)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 600, "only {} documents", cases.len());
}

/// White space around a document changes nothing, and an accepted document is accepted as part of another one.
#[test]
fn accepted_documents_are_accepted_within_others() {
    for (line, document, want) in cases() {
        let Outcome::Accepted(value) = want else { continue };
        let spaced = [b" \n", &*document, b"\t\r"].concat();
        assert_eq!(outcome(&spaced), Outcome::Accepted(value.clone()), "line {line}");
        if value.matches(['[', '{']).count() < 32 {
            let inside = [b"[null,", &*document, b"]"].concat();
            assert_eq!(outcome(&inside), Outcome::Accepted(format!("[null,{value}]")), "line {line}");
        }
    }
}
