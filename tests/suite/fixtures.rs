//! Sends every request of `fixtures/requests` and checks the expected response. It also checks that the rules agree
//! with the OpenAPI schemas: a body that the schema rejects must be refused, and a body that is accepted must be
//! valid against the schema.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conform;
use crate::harness::{Call, Response, SeededServer, operations};
use svc_server::kernel::versions::method_of;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    description: String,
    #[serde(default)]
    path: Map<String, Value>,
    #[serde(default)]
    query: String,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Option<Value>,
    raw: Option<String>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    status: u16,
    code: Option<String>,
    field: Option<String>,
    errors: Option<Vec<Value>>,
    body: Option<Value>,
}

/// Bodies that are accepted although the schema rejects them, with the reason.
const EXCEPTIONS: [(&str, &str); 3] = [
    (
        "createContact/valid/strings-are-trimmed.json",
        "white space around an email is trimmed before its format is checked",
    ),
    ("createQuote/valid/valid-until-plain-date.json", PLAIN_DATE),
    ("updateQuote/valid/valid-until-plain-date.json", PLAIN_DATE),
];
const PLAIN_DATE: &str = "the contract has a date-time, and few generators of clients read a choice of two formats";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/requests")
}

fn files(operation: &str, kind: &str) -> Vec<PathBuf> {
    let folder = root().join(operation).join(kind);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Replaces the placeholders, including `{{long:N}}`.
fn fill(server: &SeededServer, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, tail) = after.split_once("}}").unwrap_or_else(|| panic!("a placeholder is not closed in {text}"));
        out.push_str(before);
        match name.strip_prefix("long:") {
            Some(length) => out.extend(std::iter::repeat_n('x', length.parse().unwrap())),
            None => out.push_str(&server.id(name)),
        }
        rest = tail;
    }
    out + rest
}

fn call(server: &SeededServer, operation: &str, case: &Case) -> Call {
    let operations = operations();
    let operation = operations.iter().find(|known| known.id == operation).unwrap();
    let mut path = operation.path_in_account().clone();
    for (name, value) in &case.path {
        path = path.replace(&format!("{{{name}}}"), &fill(server, value.as_str().unwrap()));
    }
    if !case.query.is_empty() {
        path = format!("{path}?{}", fill(server, &case.query));
    }
    let mut call = Call::new(method_of(operation), &path);
    match (&case.raw, &case.body) {
        (Some(raw), None) => call = call.raw(fill(server, raw)),
        (None, Some(body)) => call = call.raw(fill(server, &body.to_string())),
        (None, None) => {}
        (Some(_), Some(_)) => panic!("a case has either body or raw"),
    }
    for (name, value) in &case.headers {
        call = call.header(name, &fill(server, value.as_str().unwrap()));
    }
    call
}

/// Returns whether `want` is part of `have`: objects may have more members, arrays may not have more items.
fn contains(have: &Value, want: &Value) -> bool {
    match (have, want) {
        (Value::Object(have), Value::Object(want)) => {
            want.iter().all(|(name, want)| have.get(name).is_some_and(|have| contains(have, want)))
        }
        (Value::Array(have), Value::Array(want)) => {
            have.len() == want.len() && have.iter().zip(want).all(|(have, want)| contains(have, want))
        }
        _ => have == want || have.as_f64().is_some_and(|number| Some(number) == want.as_f64()),
    }
}

fn differences(server: &SeededServer, name: &str, case: &Case, sent: &Call, response: &Response) -> Vec<String> {
    let mut wrong = Vec::new();
    let expect = &case.expect;
    let json: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    if response.status != expect.status {
        wrong.push(format!("status {}, not {}", response.status, expect.status));
    }
    if expect.code.as_ref().is_some_and(|code| json["code"] != **code) {
        wrong.push(format!("code {}", json["code"]));
    }
    if expect.field.as_ref().is_some_and(|field| json["field"] != **field) {
        wrong.push(format!("field {}", json["field"]));
    }
    if let Some(errors) = &expect.errors
        && !contains(&json["errors"], &Value::from(errors.clone()))
    {
        wrong.push(format!("errors {}", json["errors"]));
    }
    if let Some(body) = &expect.body {
        let body: Value = serde_json::from_str(&fill(server, &body.to_string())).unwrap();
        if !contains(&json["data"], &body) && !contains(&json, &body) {
            wrong.push(format!("body, not {body}"));
        }
    }
    let operation = name.split('/').next().unwrap_or_default();
    if operations().iter().any(|known| known.id == operation && known.takes_body()) {
        wrong.extend(disagreement(operation, name, sent, response).map(str::to_owned));
    }
    if !wrong.is_empty() {
        wrong.push(response.text.to_owned());
    }
    wrong
}

/// Returns a description if the schema and the response disagree: a body that the schema rejects must give 4xx, and a
/// body that gives 2xx must be valid.
fn disagreement(operation: &str, name: &str, sent: &Call, response: &Response) -> Option<&'static str> {
    let accepted = (200..300).contains(&response.status);
    let valid = serde_json::from_slice(&sent.body).is_ok_and(|body| conform::accepts_body(operation, &body));
    match (accepted && !valid, EXCEPTIONS.iter().any(|(exception, _)| *exception == name)) {
        (true, false) => Some("the schema refuses what the service accepts"),
        (false, true) => Some("it is no exception any more"),
        _ => None,
    }
}

async fn run(operation: &str, kind: &str) -> (usize, Vec<String>) {
    let mut failures = Vec::new();
    let files = files(operation, kind);
    let mut server = SeededServer::new();
    for file in &files {
        let name = format!("{operation}/{kind}/{}", file.file_name().unwrap().to_string_lossy());
        let text = std::fs::read_to_string(file).unwrap();
        let case: Case = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let sent = call(&server, operation, &case);
        let response = server.send(sent.clone()).await;
        let mut wrong = differences(&server, &name, &case, &sent, &response);
        if (kind == "valid") != (response.status < 400) {
            wrong.push(format!("the file is in the wrong folder: {}", response.status));
        }
        // The next case needs the original content, so a change requires a new server.
        if response.status < 400 && sent.method != Method::GET {
            server = SeededServer::new();
        }
        if !wrong.is_empty() {
            failures.push(format!("{name} ({})\n    {}", case.description, wrong.join("\n    ")));
        }
    }
    (files.len(), failures)
}

async fn run_all(kind: &str) {
    let (mut count, mut failures) = (0, Vec::new());
    for operation in operations() {
        let (files, wrong) = run(operation.id, kind).await;
        count += files;
        failures.extend(wrong);
    }
    assert!(count > 150, "only {count} fixtures were found");
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test]
async fn valid_requests_succeed() {
    run_all("valid").await;
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    run_all("invalid").await;
}

#[test]
fn every_folder_is_named_after_an_operation() {
    let folders: BTreeSet<String> =
        std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let operations: BTreeSet<String> = operations().iter().map(|operation| operation.id.to_owned()).collect();
    assert_eq!(folders, operations);
}

/// Most of the invalid bodies must already fail validation against the schema.
#[test]
fn schemas_reject_most_invalid_bodies() {
    let (mut refused, mut all) = (0, 0);
    for operation in operations().iter().filter(|operation| operation.takes_body()) {
        for file in files(operation.id, "invalid") {
            let case: Case = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            let Some(body) = case.body.filter(|_| case.expect.code.as_deref() == Some("validation_failed")) else {
                continue;
            };
            if body.to_string().contains("{{") {
                continue;
            }
            all += 1;
            refused += usize::from(!conform::accepts_body(operation.id, &body));
        }
    }
    assert!(refused * 10 > all * 6, "{refused} of {all}");
}
