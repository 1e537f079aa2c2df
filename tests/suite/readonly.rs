//! Mass assignment: a body cannot set the fields that the service sets.

use http::Method;
use serde_json::{Value, json};
use svc_core::input::FieldNames;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::webhooks::options;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::conform::DOCUMENT;
use crate::harness::{Call, SeededServer, change, id_name, sample};

/// Collection, the fields of its record, and the schemas of its bodies.
const RECORDS: [(&str, &[&str], &str, &str); 5] = [
    ("contacts", Contact::FIELD_NAMES, "ContactCreate", "ContactUpdate"),
    ("bookings", Booking::FIELD_NAMES, "BookingCreate", "BookingUpdate"),
    ("quotes", Quote::FIELD_NAMES, "QuoteCreate", "QuoteUpdate"),
    ("jobs", Job::FIELD_NAMES, "JobCreate", "JobUpdate"),
    ("webhooks", WebhookSubscription::FIELD_NAMES, "WebhookCreate", "WebhookUpdate"),
];

/// Column names and fields of other records, which no body may contain.
const FOREIGN: [&str; 7] = ["tenant_id", "tenant", "live", "_id", "ID", "__proto__", "is_admin"];

fn settable(schema: &str) -> &'static serde_json::Map<String, Value> {
    DOCUMENT["components"]["schemas"][schema]["properties"].as_object().unwrap()
}

#[tokio::test]
async fn fields_set_by_the_service_cannot_be_set_by_a_body() {
    let server = SeededServer::new();
    let mut count = 0;
    for (collection, fields, create, update) in RECORDS {
        let one = format!("/{collection}/{}", server.id(&id_name(collection)));
        let before = server.expect(200, Call::get(&one)).await.data();
        for (schema, method, path, body) in [
            (create, Method::POST, format!("/{collection}"), sample(&server, collection, 1)),
            (update, Method::PATCH, one.clone(), change(collection)),
        ] {
            for name in fields.iter().filter(|name| !settable(schema).contains_key(**name)) {
                // The field's present value and null are refused too.
                for value in [before.get(*name).cloned().unwrap_or(json!("x")), json!(1), Value::Null] {
                    let mut body = body.clone();
                    body[*name] = value;
                    let response = server.expect(400, Call::new(method.clone(), &path).json(&body)).await;
                    let error = &response.json()["errors"][0];
                    assert_eq!((&error["field"], &error["code"]), (&json!(name), &json!("read_only_field")));
                    count += 1;
                }
            }
            for name in FOREIGN {
                let mut body = body.clone();
                body[name] = json!("x");
                let response = server.expect(400, Call::new(method.clone(), &path).json(&body)).await;
                assert_eq!(response.json()["errors"][0]["code"], "unknown_field", "{name}");
            }
        }
        assert_eq!(server.expect(200, Call::get(&one)).await.data(), before);
    }
    assert!(count > 150, "{count}");
    assert_eq!(server.new_events().await, [""; 0]);
}

/// The writable fields of the records, besides the options of webhook subscriptions.
#[test]
fn writable_fields_are_those_of_the_contract() {
    let text = "email first_name last_name phone company_name city state postcode";
    let job = "title status contact_id job_type priority site_address site_suburb site_state site_postcode \
               scheduled_start scheduled_end estimated_total";
    for (schema, fields) in [
        ("ContactCreate", text),
        ("ContactUpdate", text),
        ("BookingCreate", "contact_id service_name start_time end_time notes"),
        ("BookingUpdate", "status notes start_time end_time"),
        ("QuoteCreate", "contact_id total currency valid_until line_items"),
        ("QuoteUpdate", "status total valid_until"),
        ("JobCreate", job),
        ("JobUpdate", "title status job_type priority scheduled_start scheduled_end estimated_total actual_total"),
        ("WebhookCreate", "url events description"),
        ("WebhookUpdate", "url events enabled description"),
    ] {
        let names = settable(schema).keys().map(String::as_str);
        let names: Vec<&str> =
            names.filter(|name| !options::FIELDS.contains(name) && *name != options::SECRET).collect();
        assert_eq!(names, fields.split_whitespace().collect::<Vec<_>>(), "{schema}");
    }
}
