//! Tests of the schemas: fields, limits and formats, and what generators of clients make of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{each_operation, errors, names, resolve, schema, v1, walk};

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

/// The fields of the records; a `?` marks a field that can be null.
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
        ("WebhookCreate.events", vec![json!(["*", "job.created"]), json!(["job.created", "*"])], false),
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
