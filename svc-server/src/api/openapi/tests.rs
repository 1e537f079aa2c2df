//! Tests of the document: against the operations, the contract, and itself.

mod clients;
mod compatible;
mod of_operations;
mod platform;
mod schemas;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::error::{Error, FieldCode};
use svc_core::operation::AnyOperation;
use svc_core::platform::operations::{extensions, public as operations};
use svc_core::values::{EventKind, EventKinds};

use super::components::samples;
use super::{document, text, webhooks};
use crate::kernel::problem::{CODES, Problem, field_codes};
use crate::kernel::versions::Version;

const RECORDS: [&str; 6] = ["Contact", "Invoice", "Booking", "Quote", "Job", "WebhookSubscription"];
const INPUTS: [&str; 10] = [
    "BookingCreate",
    "BookingUpdate",
    "ContactCreate",
    "ContactUpdate",
    "JobCreate",
    "JobUpdate",
    "QuoteCreate",
    "QuoteUpdate",
    "WebhookCreate",
    "WebhookUpdate",
];

fn v1() -> Value {
    document(&operations(), "", Version::V1, &EventKinds::default())
}

fn platform_v1() -> Value {
    serde_json::from_str(&text("platform-v1").unwrap()).unwrap()
}

fn with_extensions() -> Value {
    let all: Vec<&'static dyn AnyOperation> = operations().into_iter().chain(extensions()).collect();
    document(&all, "", Version::V1, &EventKinds::default())
}

/// Returns the method, path and description of each operation.
fn each_operation(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> + Clone {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(|(method, operation)| (method.as_str(), path.as_str(), operation))
    })
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap_or_else(|| panic!("{reference} does not resolve")),
        None => value,
    }
}

/// Calls `visit` with a value and everything inside it.
fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(members) => members.values().for_each(|member| walk(member, visit)),
        _ => {}
    }
}

fn parameter<'a>(document: &'a Value, operation: &'a Value, name: &str) -> Option<&'a Value> {
    let parameters = operation["parameters"].as_array().unwrap();
    parameters.iter().map(|parameter| resolve(document, parameter)).find(|parameter| parameter["name"] == name)
}

fn schema<'a>(document: &'a Value, name: &str) -> &'a Value {
    let schema = &document["components"]["schemas"][name];
    assert!(schema.is_object(), "there is no schema {name}");
    schema
}

fn names(value: &Value) -> Vec<&str> {
    value.as_array().map_or_else(Vec::new, |items| items.iter().filter_map(Value::as_str).collect())
}

/// Validates a value against a schema of the document and returns the errors.
fn errors(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&root).unwrap();
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}

/// Fails once after a change and writes the document, so that its difference can be read.
#[test]
fn the_committed_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/v1.json");
    let document = text("v1").unwrap();
    let is_changed = std::fs::read_to_string(path).ok().as_ref() != Some(&document);
    if is_changed {
        std::fs::write(path, document).unwrap();
    }
    assert!(!is_changed, "openapi/v1.json is written; look at the difference");
}

#[test]
fn both_versions_have_the_same_operations() {
    let (one, two) = (v1(), document(&operations(), "/business", Version::V2, &EventKinds::default()));
    assert_eq!((&one["paths"], &one["components"]), (&two["paths"], &two["components"]));
    assert_eq!(two["servers"][0]["url"], "/business/api/v2");
    assert_eq!(text("v3"), None);
}

/// Generators make the names of files, types and functions of these, on file systems and in languages where case does not
/// count.
#[test]
fn no_two_names_of_a_sort_are_alike() {
    for document in [v1(), platform_v1()] {
        let operations = each_operation(&document).map(|(.., operation)| operation);
        let ids: Vec<&str> = operations.clone().map(|operation| operation["operationId"].as_str().unwrap()).collect();
        let tags: Vec<&str> =
            document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
        let kinds: Vec<&str> = document["webhooks"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut sorts = vec![("operations", ids), ("tags", tags.clone()), ("webhooks", kinds)];
        for (sort, components) in document["components"].as_object().unwrap() {
            sorts.push((sort, components.as_object().unwrap().keys().map(String::as_str).collect()));
        }
        for (sort, names) in sorts {
            let plain: BTreeSet<String> =
                names.iter().map(|name| name.replace(['-', '_', '.', ' '], "").to_lowercase()).collect();
            assert_eq!(plain.len(), names.len(), "{sort}: {names:?}");
        }
        // An operation and an event never share a tag, and each tag is described.
        let of_operations: BTreeSet<&str> =
            operations.map(|operation| operation["tags"][0].as_str().unwrap()).collect();
        assert!(!of_operations.contains(webhooks::TAG));
        assert!(of_operations.iter().chain([&webhooks::TAG]).all(|tag| tags.contains(tag)), "{of_operations:?}");
    }
}

/// Texts come back as they were sent, such as the URL of a webhook, which parsers of these formats may refuse.
#[test]
fn responses_have_only_formats_that_are_exact() {
    for document in [v1(), platform_v1()] {
        let mut formats = BTreeSet::new();
        for (_, _, operation) in each_operation(&document) {
            for response in operation["responses"].as_object().unwrap().values() {
                formats_in(&document, response, &mut formats, &mut BTreeSet::new());
            }
        }
        for item in document["webhooks"].as_object().unwrap().values() {
            formats_in(&document, &item["post"]["requestBody"], &mut formats, &mut BTreeSet::new());
        }
        let exact = ["date", "date-time", "int32", "uint16", "uint32", "uint64", "uint8", "uri-reference", "uuid"]
            .map(str::to_owned);
        assert!(formats.iter().all(|format| exact.contains(format)), "{formats:?}");
    }
}

fn formats_in(document: &Value, value: &Value, formats: &mut BTreeSet<String>, seen: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = value["$ref"].as_str()
                && seen.insert(reference.to_owned())
            {
                formats_in(document, resolve(document, value), formats, seen);
            }
            formats.extend(value["format"].as_str().map(str::to_owned));
            members.values().for_each(|member| formats_in(document, member, formats, seen));
        }
        Value::Array(items) => items.iter().for_each(|item| formats_in(document, item, formats, seen)),
        _ => {}
    }
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    let document = v1();
    let mut used = BTreeSet::new();
    walk(&document, &mut |value| {
        if let Some(reference) = value["$ref"].as_str() {
            resolve(&document, value);
            used.insert(reference);
        }
    });
    for kind in ["parameters", "headers", "responses", "schemas"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            assert!(used.contains(format!("#/components/{kind}/{name}").as_str()), "{name} is not used");
            assert!(kind != "schemas" || !name.ends_with(|c: char| c.is_ascii_digit()), "{name} is a duplicate");
        }
    }
}

#[test]
fn every_example_is_valid_and_every_json_body_has_one() {
    for document in [v1(), platform_v1(), with_extensions()] {
        check_examples(&document);
    }
}

fn check_examples(document: &Value) {
    walk(document, &mut |value| {
        let schema = &value["schema"];
        let of_media = value["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
        let given: Vec<&Value> = value.get("example").into_iter().chain(of_media).collect();
        for example in given.iter().filter(|_| schema.is_object()) {
            assert_eq!(errors(document, schema, example), [""; 0], "{example}");
        }
        if let Some(media) = value.get("application/json") {
            assert!(media.get("example").is_some() || media.get("examples").is_some(), "no example: {media}");
        }
    });
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for example in schema["examples"].as_array().into_iter().flatten() {
            assert_eq!(errors(document, schema, example), [""; 0], "{name}");
        }
    }
}

/// Deliveries are compared with them in `tests/deliver/document.rs`.
#[test]
fn every_event_kind_is_a_webhook() {
    let document = v1();
    let kinds: BTreeSet<&str> = EventKind::BUILT_IN.iter().map(|kind| kind.as_str()).collect();
    let webhooks = document["webhooks"].as_object().unwrap();
    assert_eq!(webhooks.keys().map(String::as_str).collect::<BTreeSet<_>>(), kinds);
    assert_eq!(webhooks.len(), 29);
    for (kind, item) in webhooks {
        let post = &item["post"];
        assert_eq!(post["summary"], **kind);
        assert!(post["description"].as_str().is_some_and(|text| text.contains(".\n\n`data` is ")), "{kind}");
        assert_eq!(post["security"], json!([]), "an API key is no part of a delivery");
        let body = &post["requestBody"]["content"]["application/json"];
        assert_eq!(body["example"]["event"], **kind);
        let accepts = |data: Value| {
            let mut delivery = body["example"].clone();
            delivery["data"] = data;
            errors(&document, &body["schema"], &delivery).is_empty()
        };
        assert!(!accepts(json!({})) && !accepts(json!({ "id": "" })) && !accepts(json!(null)), "{kind}");
        let mut other = body["example"].clone();
        other["event"] = "ping".into();
        assert!(!errors(&document, &body["schema"], &other).is_empty(), "{kind}");
    }
    let example = |kind: &str| document["webhooks"][kind]["post"]["requestBody"]["content"]["application/json"].clone();
    let (created, deleted) = (example("contact.created"), example("contact.deleted"));
    let mut incomplete = deleted["example"].clone();
    incomplete["data"] = created["example"]["data"].clone();
    assert!(!errors(&document, &deleted["schema"], &incomplete).is_empty(), "deleted_at is missing");
}

#[test]
fn every_problem_has_a_code_of_the_enumeration() {
    let document = v1();
    assert_eq!(names(&schema(&document, "Error")["properties"]["code"]["enum"]), CODES);
    let others = [
        Problem::RouteNotFound(String::new()),
        Problem::SlashAtEnd,
        Problem::MethodNotAllowed("GET".to_owned()),
        Problem::HostCount,
        Problem::HostFormat,
        Problem::TransferEncoding,
        Problem::Core(Error::NotAllowed(String::new())),
    ];
    let all: Vec<Problem> = samples().into_iter().chain(others).collect();
    let codes: BTreeSet<&str> = all.iter().map(Problem::code).collect();
    assert_eq!(codes, BTreeSet::from(CODES));
    for problem in &all {
        let name = if matches!(problem, Problem::RateLimited { .. }) { "RateLimitError" } else { "Error" };
        let body = serde_json::from_slice(&problem.body()).unwrap();
        assert_eq!(errors(&document, schema(&document, name), &body), [""; 0], "{body}");
    }
    let field_codes = names(&schema(&document, "FieldError")["properties"]["code"]["enum"]);
    assert!(FieldCode::ALL.iter().all(|code| field_codes.contains(&code.as_str())));
}

#[test]
fn schemas_and_parameters_have_descriptions() {
    let document = v1();
    for name in RECORDS.iter().chain(&INPUTS) {
        let schema = schema(&document, name);
        assert!(schema["description"].is_string() && schema["examples"].is_array(), "{name}");
        for (field, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{name}.{field}");
        }
    }
    for (.., operation) in each_operation(&document) {
        for parameter in operation["parameters"].as_array().unwrap() {
            assert!(resolve(&document, parameter)["description"].is_string(), "{parameter}");
        }
    }
}

/// A description of one or two words repeats the name of the thing that it describes.
#[test]
fn no_description_is_shorter_than_three_words() {
    let document = v1();
    let mut short = Vec::new();
    find_short_texts(&document, "", &mut short);
    assert!(short.is_empty(), "{} descriptions are too short:\n{}", short.len(), short.join("\n"));
}

fn find_short_texts(value: &Value, path: &str, short: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                // A field may be named `description`; its schema is an object. Examples are data.
                if matches!(name.as_str(), "example" | "examples") {
                    continue;
                }
                match member.as_str() {
                    Some(text) if name == "description" && text.split_whitespace().count() < 3 => {
                        short.push(format!("{path}: {text:?}"));
                    }
                    _ => find_short_texts(member, &format!("{path}/{name}"), short),
                }
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                find_short_texts(item, &format!("{path}/{number}"), short);
            }
        }
        _ => {}
    }
}

#[test]
fn every_code_is_explained() {
    let document = v1();
    for (name, codes) in [("Error", CODES.to_vec()), ("FieldError", field_codes())] {
        let description = schema(&document, name)["properties"]["code"]["description"].as_str().unwrap();
        for code in codes {
            assert!(description.contains(&format!("`{code}`")), "{name}.code does not explain {code}");
        }
    }
}

#[test]
fn kinds_of_the_application_are_webhooks() {
    // Read and not included, as the package of this crate does not have it.
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/event-kinds/events.json")).unwrap();
    let kinds = EventKinds::from_json(&file).unwrap();
    let document = document(&operations(), "", Version::V1, &kinds);
    let kind = schema(&document, "SelectedEvent");
    assert_eq!(
        kind["enum"].as_array().unwrap()[29..],
        ["cohort.sessions_generated", "order.returned", "order.shipped"]
    );
    assert_eq!(
        kind["x-enum-varnames"].as_array().unwrap()[29..],
        ["COHORT_SESSIONS_GENERATED", "ORDER_RETURNED", "ORDER_SHIPPED"]
    );
    assert!(kind["description"].as_str().unwrap().ends_with("\n- `order.shipped`: An order left the warehouse."));

    let post = &document["webhooks"]["order.shipped"]["post"];
    assert!(post["description"].as_str().unwrap().starts_with("An order left the warehouse.\n\n"));
    let body = &post["requestBody"]["content"]["application/json"];
    assert_eq!(body["schema"]["properties"]["data"], json!({ "$ref": "#/components/schemas/order.shipped" }));
    let mut delivery = body["example"].clone();
    assert_eq!(delivery["data"], json!({ "id": "A-17", "to": { "city": "Perth" }, "parcels": 2 }));
    assert_eq!(errors(&document, &body["schema"], &delivery), [""; 0]);
    // The reference to the address leads into the document.
    delivery["data"]["to"] = json!({});
    assert_eq!(errors(&document, &body["schema"], &delivery).len(), 1);

    let mut without = document.clone();
    for kind in ["order.shipped", "order.returned"] {
        without["webhooks"].as_object_mut().unwrap().remove(kind);
        without["components"]["schemas"].as_object_mut().unwrap().remove(kind);
    }
    without["components"]["schemas"]["SelectedEvent"] = schema(&v1(), "SelectedEvent").clone();
    assert_eq!(without, v1(), "nothing else differs");
}
