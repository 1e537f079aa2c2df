//! Tests of the document: against the table of operations, the contract, and itself.

mod clients;
mod compatible;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use svc_core::accounts::idempotency;
use svc_core::error::{Error, FieldCode};
use svc_core::values::{EventKind, EventKinds};

use super::components::samples;
use super::{document, text, webhooks};
use crate::api::extensions;
use crate::api::problem::{CODES, Problem, field_codes};
use crate::api::routes::{Operation, Version, operations};

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
    let all: Vec<Operation> = operations().into_iter().chain(extensions::operations()).collect();
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

/// Returns the types that a schema allows, in all its alternatives.
fn types<'a>(document: &'a Value, schema: &'a Value) -> BTreeSet<&'a str> {
    let schema = resolve(document, schema);
    match &schema["type"] {
        Value::Null => {
            schema["anyOf"].as_array().into_iter().flatten().flat_map(|form| types(document, form)).collect()
        }
        Value::String(one) => BTreeSet::from([one.as_str()]),
        several => names(several).into_iter().collect(),
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

#[test]
fn there_are_25_operations_with_unique_ids() {
    let document = v1();
    let ids: BTreeSet<&str> =
        each_operation(&document).map(|(.., operation)| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!((each_operation(&document).count(), ids.len()), (25, 25));
    for (_, path, operation) in each_operation(&document) {
        for text in ["summary", "description"] {
            assert!(operation[text].as_str().is_some_and(|text| !text.is_empty()), "{path} has no {text}");
        }
    }
    assert_eq!(document["security"], json!([{ "bearer": [] }]));
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
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

/// What a response has comes back as it was sent, such as the URL of a webhook, which parsers of these formats may refuse.
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

/// The statuses of `docs/contract.md`, "Statuses".
#[test]
fn every_operation_declares_its_responses() {
    let document = v1();
    for (method, path, operation) in each_operation(&document) {
        let mut want = BTreeSet::from([401, 403, 429, 500, 414, 431, 503]);
        want.insert(match method {
            "post" => 201,
            "delete" => 204,
            _ => 200,
        });
        if path != "/ping" {
            want.extend([400, 404, 409, 415]);
        }
        if method == "get" && path.ends_with("/{id}") {
            want.insert(304);
        }
        if method != "get" {
            want.extend([408, 413]);
        }
        if matches!(method, "patch" | "delete") {
            want.insert(412);
        }
        let responses = operation["responses"].as_object().unwrap();
        let got: BTreeSet<u16> = responses.keys().map(|status| status.parse().unwrap()).collect();
        assert_eq!(got, want, "{method} {path}");

        for (status, response) in responses {
            let response = resolve(&document, response);
            let headers = &response["headers"];
            for name in ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"] {
                assert!(headers[name].is_object(), "{method} {path} {status} has no {name}");
            }
            let particular = [
                ("Retry-After", matches!(status.as_str(), "429" | "503")),
                ("WWW-Authenticate", status == "401"),
                ("Location", status == "201"),
                ("Idempotent-Replayed", matches!(status.as_str(), "201" | "409")),
                ("ETag", status == "304" || status == "201" || (status == "200" && path.ends_with("/{id}"))),
            ];
            for (name, wanted) in particular {
                assert_eq!(headers[name].is_object(), wanted, "{method} {path} {status} {name}");
            }
            let body = &response["content"]["application/json"]["schema"];
            match status.as_str() {
                "204" | "304" => assert!(response.get("content").is_none()),
                "429" => assert_eq!(body["$ref"], "#/components/schemas/RateLimitError"),
                "200" | "201" => assert!(body.is_object()),
                _ => assert_eq!(body["$ref"], "#/components/schemas/Error"),
            }
        }
    }
}

#[test]
fn lists_have_the_common_parameters_and_their_own_filters() {
    let document = v1();
    let own = BTreeMap::from([
        ("/contacts", vec!["email", "include_deleted"]),
        ("/invoices", vec!["status", "number"]),
        ("/bookings", vec![]),
        ("/quotes", vec!["status"]),
        ("/jobs", vec!["status", "job_number"]),
        ("/webhooks", vec![]),
    ]);
    for (method, path, operation) in each_operation(&document) {
        let queries = operation["parameters"].as_array().unwrap().iter().map(|parameter| resolve(&document, parameter));
        let queries: Vec<&Value> = queries.filter(|parameter| parameter["in"] == "query").collect();
        let got: Vec<&str> = queries.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let Some(own) = own.get(path).filter(|_| method == "get") else {
            assert_eq!(got, [""; 0], "{method} {path}");
            continue;
        };
        assert_eq!(got, [["limit", "cursor", "updated_since"].as_slice(), own].concat(), "{path}");
        for query in queries {
            let schema = resolve(&document, &query["schema"]);
            assert!(schema["type"].is_string() && query["required"].is_null(), "{query}");
        }
        let limit = &parameter(&document, operation, "limit").unwrap()["schema"];
        assert_eq!(*limit, json!({ "type": "integer", "minimum": 1, "maximum": 200, "default": 50 }));
        for (name, format) in [("cursor", "uuid"), ("updated_since", "date-time")] {
            assert_eq!(parameter(&document, operation, name).unwrap()["schema"]["format"], format);
        }
        let page = resolve(&document, &operation["responses"]["200"]["content"]["application/json"]["schema"]);
        assert_eq!(names(&page["required"]), ["data", "next_cursor"]);
        assert_eq!(page["properties"]["next_cursor"]["type"], json!(["string", "null"]));
    }
}

#[test]
fn operations_declare_their_request_headers() {
    let document = v1();
    for (method, path, operation) in each_operation(&document) {
        let has = |name: &str| parameter(&document, operation, name).is_some();
        let write = method != "get";
        assert!(has("X-Request-Id"));
        assert_eq!((has("X-SVC-Timestamp"), has("X-SVC-Signature")), (write, write), "{method} {path}");
        assert_eq!(has("Idempotency-Key"), method == "post");
        assert_eq!(has("If-Match"), matches!(method, "patch" | "delete"));
        assert_eq!(has("If-None-Match"), method == "get" && path.ends_with("/{id}"));
        assert_eq!(has("id"), path.ends_with("/{id}"));
        assert_eq!(operation["requestBody"]["required"] == true, matches!(method, "post" | "patch"), "{method} {path}");
    }
}

/// Headers that the service takes in any form are plain texts, and the schema of the one that it checks accepts the same
/// values. Spaces around a value are not part of it.
#[test]
fn schemas_of_request_headers_say_what_is_accepted() {
    let document = v1();
    for name in ["RequestId", "IfMatch", "IfNoneMatch", "SignatureTimestamp", "Signature"] {
        assert_eq!(document["components"]["parameters"][name]["schema"], json!({ "type": "string" }), "{name}");
    }
    let key = &document["components"]["parameters"]["IdempotencyKey"]["schema"];
    for text in ["a", "two words", "!~", &"k".repeat(255), "", &"k".repeat(256), "k\u{e9}", "a\tb", "a\u{7f}"] {
        let is_accepted = idempotency::check_key(text).is_ok();
        assert_eq!(errors(&document, key, &json!(text)).is_empty(), is_accepted, "{text:?}");
    }
    assert!(!errors(&document, key, &json!(" ")).is_empty(), "a value of spaces arrives empty");
}

/// Generators of clients make a plain or unknown type of alternatives beside a `type`, a type for each place of an enum or
/// a body that has no name, and a value that is always sent of a default.
#[test]
fn schemas_become_exact_types_in_generated_clients() {
    let document = v1();
    walk(&document, &mut |value| {
        for form in value["anyOf"].as_array().into_iter().flatten() {
            assert!(value["type"].is_null(), "alternatives beside a type: {value}");
            assert!(!types(&document, form).is_empty(), "an alternative without a type: {value}");
        }
        let parameter = value["in"].is_string() && !value["schema"]["enum"].is_null();
        assert!(!parameter, "an enum without a name: {value}");
    });
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["default"].is_null(), "{name}.{field} has a default");
            assert!(property["enum"].is_null() || field == "code", "{name}.{field} is an enum without a name");
        }
    }
    for (_, path, operation) in each_operation(&document) {
        for response in operation["responses"].as_object().unwrap().values() {
            let body = &resolve(&document, response)["content"]["application/json"]["schema"];
            assert!(body.is_null() || body["$ref"].is_string(), "{path} has a response without a name");
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

/// The fields of `docs/contract.md`, "Resources"; a `?` marks a field that can be null.
#[test]
fn records_have_the_fields_of_the_contract() {
    let document = v1();
    let want = [
        (
            "Contact",
            "id email? first_name? last_name? phone? company_name? city? state? postcode? created_at updated_at",
        ),
        (
            "Invoice",
            "id invoice_number contact_id? status issue_date? due_date? total currency paid_at? created_at updated_at",
        ),
        ("Booking", "id contact_id? service_name? start_time end_time status notes? created_at updated_at"),
        ("Quote", "id quote_number contact_id? status issue_date? valid_until? total currency created_at updated_at"),
        (
            "Job",
            "id job_number title status job_type? priority? contact_id? customer_name? customer_email? customer_phone? \
             site_address? site_suburb? site_state? site_postcode? scheduled_start? scheduled_end? actual_start? \
             actual_end? estimated_total? actual_total? quote_id? invoice_id? created_at updated_at",
        ),
        (
            "WebhookSubscription",
            "id url events enabled description? created_at last_delivery_at? last_delivery_status? disabled_reason? \
             paused_at? consecutive_failures",
        ),
        ("Ping", "ok tenantId timestamp"),
        ("RateLimitError", "error code retry_after_ms"),
    ];
    for (name, fields) in want {
        let schema = schema(&document, name);
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let plain: Vec<&str> = fields.iter().map(|field| field.trim_end_matches('?')).collect();
        assert_eq!(names(&schema["required"]), plain, "{name}");
        let optional = usize::from(name == "Contact");
        assert_eq!(schema["properties"].as_object().unwrap().len(), fields.len() + optional, "{name}");
        for field in fields {
            let property = &schema["properties"][field.trim_end_matches('?')];
            let nullable = types(&document, property).contains("null");
            assert_eq!(nullable, field.ends_with('?'), "{name}.{field}");
            assert_eq!(errors(&document, property, &Value::Null).is_empty(), nullable, "{name}.{field}");
            for limit in ["maxLength", "minLength"] {
                assert!(field == "currency" || property[limit].is_null(), "{name}.{field} promises {limit}");
            }
        }
    }
    assert_eq!(schema(&document, "Contact")["properties"]["deleted_at"]["type"], "string");
    assert_eq!(schema(&document, "Invoice")["properties"]["status"]["enum"], Value::Null);
    let with_secret = schema(&document, "WebhookSubscriptionWithSecret");
    assert_eq!(names(&with_secret["required"]).last(), Some(&"secret"));
}

#[test]
fn inputs_are_strict_and_have_the_fields_of_the_contract() {
    let document = v1();
    let want = [
        ("ContactCreate", "email first_name? last_name? phone? company_name? city? state? postcode?", 1),
        ("ContactUpdate", "email? first_name? last_name? phone? company_name? city? state? postcode?", 0),
        ("BookingCreate", "contact_id service_name start_time end_time? notes?", 3),
        ("BookingUpdate", "status notes? start_time end_time", 0),
        ("QuoteCreate", "contact_id total currency? valid_until? line_items", 2),
        ("QuoteUpdate", "status total valid_until", 0),
        (
            "JobCreate",
            "title status contact_id? job_type? priority? site_address? site_suburb? site_state? site_postcode? \
             scheduled_start? scheduled_end? estimated_total?",
            1,
        ),
        (
            "JobUpdate",
            "title status job_type? priority? scheduled_start? scheduled_end? estimated_total? actual_total?",
            0,
        ),
        ("WebhookCreate", "url events description?", 2),
        ("WebhookUpdate", "url events enabled description?", 0),
    ];
    for (name, fields, required) in want {
        let schema = schema(&document, name);
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(schema["additionalProperties"], false, "{name}");
        assert_eq!(schema["minProperties"] == 1, name.ends_with("Update"), "{name}");
        assert_eq!(properties.len(), fields.len(), "{name}");
        assert_eq!(names(&schema["required"]), fields[..required], "{name}");
        for field in fields {
            let property = &properties[field.trim_end_matches('?')];
            assert!(property["description"].is_string(), "{name}.{field}");
            assert_eq!(errors(&document, property, &Value::Null).is_empty(), field.ends_with('?'), "{name}.{field}");
            assert_eq!(types(&document, property).contains("null"), field.ends_with('?'), "{name}.{field}");
        }
    }
}

/// The lengths and ranges of `docs/contract.md`, "Text fields" and "Money", and the defaults of "Resources".
#[test]
fn schemas_have_the_limits_formats_and_defaults_of_the_contract() {
    let document = v1();
    let property = |path: &str| {
        let (name, field) = path.split_once('.').unwrap();
        &schema(&document, name)["properties"][field]
    };
    for (path, key, want) in [
        ("ContactCreate.email", "maxLength", json!(254)),
        ("ContactCreate.email", "format", json!("email")),
        ("ContactCreate.first_name", "maxLength", json!(300)),
        ("ContactCreate.company_name", "maxLength", json!(500)),
        ("ContactCreate.phone", "maxLength", json!(50)),
        ("ContactCreate.city", "maxLength", json!(100)),
        ("ContactCreate.postcode", "maxLength", json!(20)),
        ("BookingCreate.contact_id", "format", json!("uuid")),
        ("BookingCreate.service_name", "minLength", json!(1)),
        ("BookingCreate.service_name", "maxLength", json!(255)),
        ("BookingCreate.start_time", "format", json!("date-time")),
        ("BookingCreate.notes", "maxLength", json!(4096)),
        ("QuoteCreate.total", "minimum", json!(0)),
        ("QuoteCreate.total", "maximum", json!(1_000_000_000_000_i64)),
        ("QuoteCreate.currency", "pattern", json!("^[A-Z]{3}$|^\\s*$")),
        ("QuoteCreate.line_items", "maxItems", json!(500)),
        ("JobCreate.title", "maxLength", json!(255)),
        ("JobCreate.site_address", "maxLength", json!(500)),
        ("JobUpdate.actual_total", "minimum", json!(0)),
        ("WebhookCreate.url", "format", json!("uri")),
        ("WebhookCreate.url", "maxLength", json!(2048)),
        ("WebhookCreate.description", "maxLength", json!(500)),
        ("Invoice.issue_date", "format", json!("date")),
        ("Invoice.currency", "maxLength", json!(3)),
        ("Invoice.total", "minimum", json!(0)),
        ("Booking.status", "enum", json!(["cancelled", "confirmed", "completed", "no_show"])),
    ] {
        assert_eq!(resolve(&document, property(path))[key], want, "{path} {key}");
    }
    for (path, values, valid) in [
        ("WebhookCreate.events", vec![json!(["*"]), json!(["job.created", "job.created"])], true),
        ("WebhookCreate.events", vec![json!([]), json!(["job.exploded"]), json!("*"), json!(null)], false),
        ("QuoteCreate.valid_until", vec![json!("2026-03-14T15:09:26+11:00"), json!(null)], true),
        ("QuoteCreate.valid_until", vec![json!("soon"), json!(1)], false),
        ("ContactCreate.city", vec![json!("")], true),
        ("ContactUpdate.email", vec![json!(null), json!("ada@example.com")], true),
        ("ContactUpdate.email", vec![json!("ada"), json!(1)], false),
        ("JobUpdate.scheduled_end", vec![json!(null), json!("2026-03-14T15:09:26+11:00")], true),
        ("JobUpdate.scheduled_end", vec![json!("soon"), json!("2026-03-14")], false),
        ("QuoteCreate.currency", vec![json!(""), json!("AUD"), json!(null)], true),
        ("QuoteCreate.currency", vec![json!("aud"), json!("AUDX")], false),
        ("JobCreate.title", vec![json!("")], false),
        ("JobCreate.contact_id", vec![json!(null), json!("0195a3c8-8a00-7000-8000-00000000c001")], true),
        ("JobCreate.contact_id", vec![json!("ada"), json!(1)], false),
        ("WebhookSubscription.disabled_reason", vec![json!("auto_paused"), json!(null)], true),
        ("WebhookSubscription.disabled_reason", vec![json!("")], false),
    ] {
        for value in values {
            assert_eq!(errors(&document, property(path), &value).is_empty(), valid, "{path} {value}");
        }
    }
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
