//! Bodies of requests (docs/contract.md, "Request bodies" and "Errors"): every failing field is reported at once,
//! each with its code.

use svc_core::error::Error;
use svc_core::input::{Input, ToBody};
use svc_core::pages::{Limit, ListParams};
use svc_core::resources::bookings::{BookingCreate, BookingUpdate};
use svc_core::resources::contacts::{ContactCreate, ContactFilter, ContactUpdate};
use svc_core::resources::invoices::InvoiceCreate;
use svc_core::resources::jobs::{JobCreate, JobUpdate};
use svc_core::resources::quotes::{QuoteCreate, QuoteUpdate};
use svc_core::values::Patch;
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookUpdate};

use super::refusal;

const ID: &str = "0195a3c8-0000-7000-8000-000000000001";

fn refused<I: Input + std::fmt::Debug>(body: &str) -> String {
    refusal(I::from_body(body.as_bytes()))
}

fn check<I: Input + std::fmt::Debug>(table: &[(&str, &str)]) {
    for (body, want) in table {
        assert_eq!(refused::<I>(body), *want, "{body}");
    }
}

#[test]
fn a_body_must_be_a_json_object() {
    for body in ["", " ", "null", "[]", "\"x\"", "1", "{", "{\"email\": }", "{} {}", "\u{feff}{}"] {
        assert_eq!(refused::<ContactCreate>(body), "invalid_json", "{body:?}");
        assert_eq!(refused::<ContactUpdate>(body), "invalid_json", "{body:?}");
    }
    assert_eq!(refusal(ContactCreate::from_body(b"{\"email\": \"\xff\"}")), "invalid_json");
}

#[test]
fn a_patch_needs_at_least_one_field() {
    assert_eq!(refused::<ContactUpdate>("{}"), "empty_patch");
    assert_eq!(refused::<BookingUpdate>("{}"), "empty_patch");
    assert_eq!(refused::<QuoteUpdate>(" { } "), "empty_patch");
    assert_eq!(refused::<JobUpdate>("{}"), "empty_patch");
    assert_eq!(refused::<WebhookUpdate>("{}"), "empty_patch");
}

#[test]
fn bodies_of_contacts_are_validated() {
    check::<ContactCreate>(&[
        ("{}", "email required"),
        (r#"{"email": null}"#, "email not_nullable"),
        (r#"{"email": ""}"#, "email too_short"),
        (r#"{"email": 1}"#, "email invalid_type"),
        (r#"{"email": "ada"}"#, "email invalid_format"),
        (r#"{"email": "a@b.co", "email": "a@b.co"}"#, "email duplicate_key"),
        (r#"{"email": "a@b.co", "Email": "a@b.co"}"#, "Email unknown_field"),
        (r#"{"email": "a@b.co", "first_name": "a\u0000b"}"#, "first_name invalid_format"),
        (
            r#"{"nope": 1, "id": "x", "city": [], "postcode": "123456789012345678901", "phone": "a\tb", "deleted_at": null}"#,
            "email required, phone invalid_format, city invalid_type, postcode too_long, \
             nope unknown_field, id read_only_field, deleted_at read_only_field",
        ),
    ]);
    check::<ContactUpdate>(&[
        (r#"{"email": "x", "last_name": true}"#, "email invalid_format, last_name invalid_type"),
        (r#"{"created_at": "2026-03-14T15:00:00Z"}"#, "created_at read_only_field"),
        (r#"{"updated_at": null, "nope": {}}"#, "updated_at read_only_field, nope unknown_field"),
    ]);
}

#[test]
fn bodies_of_bookings_are_validated() {
    check::<BookingCreate>(&[
        ("{}", "contact_id required, service_name required, start_time required"),
        (
            r#"{"contact_id": "x", "service_name": " ", "start_time": "2026-03-14", "end_time": 5, "notes": 1}"#,
            "contact_id invalid_format, service_name too_short, start_time invalid_format, end_time invalid_type, \
             notes invalid_type",
        ),
        (
            r#"{"contact_id": null, "service_name": null, "start_time": null, "status": "confirmed"}"#,
            "contact_id not_nullable, service_name not_nullable, start_time not_nullable, status read_only_field",
        ),
    ]);
    check::<BookingUpdate>(&[
        (
            r#"{"status": null, "start_time": null, "end_time": null}"#,
            "status not_nullable, start_time not_nullable, end_time not_nullable",
        ),
        (r#"{"status": "Confirmed", "start_time": "now"}"#, "status invalid_enum, start_time invalid_format"),
        (r#"{"contact_id": null, "service_name": "x"}"#, "contact_id read_only_field, service_name read_only_field"),
    ]);
}

#[test]
fn bodies_of_quotes_are_validated() {
    check::<QuoteCreate>(&[
        ("{}", "contact_id required, total required"),
        (
            r#"{"contact_id": 7, "total": "100", "currency": "aud", "valid_until": "soon", "line_items": {}}"#,
            "contact_id invalid_type, total invalid_type, currency invalid_format, valid_until invalid_format, \
             line_items invalid_type",
        ),
        (
            r#"{"contact_id": "x", "total": -0.01, "currency": "XXX", "line_items": [{}, 1], "quote_number": "QUO-1"}"#,
            "contact_id invalid_format, total out_of_range, currency invalid_enum, line_items.1 invalid_type, \
             quote_number read_only_field",
        ),
        (
            r#"{"contact_id": "x", "total": 1000000000000.01, "line_items": null}"#,
            "contact_id invalid_format, total out_of_range, line_items not_nullable",
        ),
    ]);
    check::<QuoteUpdate>(&[
        (
            r#"{"status": null, "total": null, "valid_until": null}"#,
            "status not_nullable, total not_nullable, valid_until not_nullable",
        ),
        (
            r#"{"status": "open", "total": true, "currency": "AUD", "line_items": []}"#,
            "status invalid_enum, total invalid_type, currency read_only_field, line_items unknown_field",
        ),
    ]);
    let items = |count: usize| {
        format!(r#"{{"contact_id": "{ID}", "total": 1, "line_items": [{}]}}"#, vec!["{}"; count].join(","))
    };
    assert!(QuoteCreate::from_body(items(500).as_bytes()).is_ok());
    assert_eq!(refused::<QuoteCreate>(&items(501)), "line_items too_long");
}

#[test]
fn bodies_of_jobs_are_validated() {
    check::<JobCreate>(&[
        ("{}", "title required"),
        (
            r#"{"title": "", "status": null, "contact_id": 1, "scheduled_start": "x", "estimated_total": "1", "actual_total": 1}"#,
            "title too_short, status not_nullable, contact_id invalid_type, scheduled_start invalid_format, \
             estimated_total invalid_type, actual_total read_only_field",
        ),
        (
            r#"{"title": null, "status": "done", "site_address": 1, "estimated_total": -1, "customer_name": "x"}"#,
            "title not_nullable, status invalid_enum, site_address invalid_type, estimated_total out_of_range, \
             customer_name read_only_field",
        ),
    ]);
    check::<JobUpdate>(&[
        (r#"{"title": null, "status": null}"#, "title not_nullable, status not_nullable"),
        (
            r#"{"site_address": "x", "contact_id": null, "actual_total": 1e13}"#,
            "actual_total out_of_range, site_address read_only_field, contact_id read_only_field",
        ),
    ]);
}

#[test]
fn bodies_of_webhooks_are_validated() {
    check::<WebhookCreate>(&[
        ("{}", "url required, events required"),
        (r#"{"url": "x", "events": []}"#, "url invalid_format, events too_short"),
        (r#"{"url": "ftp://example.com", "events": ["x"]}"#, "url invalid_format, events invalid_enum"),
        (r#"{"url": "https://a:b@example.com", "events": ["*", "*"]}"#, "url invalid_format, events invalid_enum"),
        (
            r#"{"url": null, "events": "*", "enabled": true}"#,
            "url not_nullable, events invalid_type, enabled read_only_field",
        ),
        (r#"{"url": 1, "events": [1], "color": 1}"#, "url invalid_type, events invalid_type, color unknown_field"),
    ]);
    check::<WebhookUpdate>(&[
        (
            r#"{"url": null, "events": null, "enabled": null}"#,
            "url not_nullable, events not_nullable, enabled not_nullable",
        ),
        (
            r#"{"enabled": "true", "consecutive_failures": 0}"#,
            "enabled invalid_type, consecutive_failures read_only_field",
        ),
    ]);
}

#[test]
fn bodies_of_invoices_are_validated() {
    check::<InvoiceCreate>(&[
        ("{}", "total required"),
        (
            r#"{"contact_id": "x", "total": null, "issue_date": "2026-02-29", "due_date": 1, "paid_at": null}"#,
            "contact_id invalid_format, total not_nullable, issue_date invalid_format, due_date invalid_type, \
             paid_at read_only_field",
        ),
    ]);
}

/// Lengths are counted in characters, not in bytes.
#[test]
fn lengths_are_counted_in_characters() {
    fn at_most<I: Input + std::fmt::Debug>(rest: &str, field: &str, most: usize) {
        let body = |length: usize| format!(r#"{{{rest}"{field}": "{}"}}"#, "漢".repeat(length));
        assert!(I::from_body(body(most).as_bytes()).is_ok(), "{field} with {most}");
        assert_eq!(refused::<I>(&body(most + 1)), format!("{field} too_long"));
    }
    let email = r#""email": "a@b.co", "#;
    for (field, most) in [
        ("first_name", 300),
        ("last_name", 300),
        ("phone", 50),
        ("company_name", 500),
        ("city", 100),
        ("state", 100),
        ("postcode", 20),
    ] {
        at_most::<ContactCreate>(email, field, most);
        at_most::<ContactUpdate>("", field, most);
    }
    let title = r#""title": "x", "#;
    for (field, most) in [("job_type", 100), ("priority", 100)] {
        at_most::<JobCreate>(title, field, most);
        at_most::<JobUpdate>("", field, most);
    }
    for (field, most) in [("site_address", 500), ("site_suburb", 100), ("site_state", 100), ("site_postcode", 20)] {
        at_most::<JobCreate>(title, field, most);
    }
    at_most::<JobUpdate>("", "title", 255);
    at_most::<JobCreate>("", "title", 255);
    let booking = format!(r#""contact_id": "{ID}", "start_time": "2026-03-14T15:00:00Z", "#);
    at_most::<BookingCreate>(&booking, "service_name", 255);
    at_most::<BookingCreate>(&format!(r#"{booking}"service_name": "x", "#), "notes", 4096);
    at_most::<BookingUpdate>("", "notes", 4096);
    at_most::<WebhookCreate>(r#""url": "https://example.com", "events": ["*"], "#, "description", 500);
    at_most::<WebhookUpdate>("", "description", 500);
}

#[test]
fn null_and_blank_are_absent_on_create_and_clear_on_patch() {
    let contact = ContactCreate::from_body(br#"{"email": " a@b.co ", "city": null, "state": "  ", "phone": " 1 "}"#);
    let contact = contact.unwrap();
    assert_eq!(contact.email.as_str(), "a@b.co");
    let details = contact.details;
    assert_eq!((details.city, details.state), (Patch::Set(None), Patch::Set(None)));
    assert_eq!(details.phone.sent().flatten().unwrap().as_str(), "1");
    let patch = ContactUpdate::from_body(br#"{"city": null, "state": "", "email": null}"#).unwrap();
    assert_eq!(patch.email, Patch::Set(None));
    assert_eq!((patch.details.city, patch.details.state), (Patch::Set(None), Patch::Set(None)));
    assert_eq!(patch.details.phone, Patch::Keep);
}

/// The error text names the first failing field and says how many more there are.
#[test]
fn the_error_text_names_the_first_failing_field() {
    for (body, want) in [
        ("{}", "email is required."),
        (r#"{"email": "a@b.co", "id": 1}"#, "id is set by the service; leave it out."),
        (r#"{"phone": 1, "nope": 1}"#, "email is required; 2 more in errors."),
    ] {
        assert_eq!(ContactCreate::from_body(body.as_bytes()).unwrap_err().to_string(), want);
    }
    assert_eq!(Error::EmptyPatch.to_string(), "Send at least one field to change.");
}

/// What a client writes is what the service reads.
#[test]
fn an_input_that_is_written_and_read_is_the_same() {
    fn check<I: Input + ToBody + PartialEq + std::fmt::Debug>(body: &str, written: &str) {
        let input = I::from_body(body.as_bytes()).unwrap();
        let sent = input.to_body();
        assert_eq!(std::str::from_utf8(&sent).unwrap(), written);
        assert_eq!(I::from_body(&sent).unwrap(), input);
    }
    let id = format!(r#""contact_id":"{ID}""#);
    check::<ContactCreate>(
        r#"{"first_name": null, "email": "a@b.co", "city": "Perth"}"#,
        r#"{"email":"a@b.co","first_name":null,"city":"Perth"}"#,
    );
    check::<ContactUpdate>(r#"{"email": null}"#, r#"{"email":null}"#);
    let booking = format!(r#"{{{id},"service_name":"Leak","start_time":"2026-03-21T09:00:00.000000Z"}}"#);
    check::<BookingCreate>(&booking, &booking);
    check::<BookingUpdate>(r#"{"status":"no_show"}"#, r#"{"status":"no_show"}"#);
    let quote = format!(r#"{{{id},"total":0.30000000000000004,"valid_until":"2026-04-13","line_items":[]}}"#);
    check::<QuoteCreate>(&quote, &quote);
    check::<QuoteUpdate>(r#"{"valid_until":"2026-04-13T23:30:00-10:00"}"#, r#"{"valid_until":"2026-04-13"}"#);
    check::<JobCreate>(r#"{"title":"Tap","status":"on_hold"}"#, r#"{"title":"Tap","status":"on_hold"}"#);
    check::<JobUpdate>(r#"{"priority":null,"actual_total":480.50}"#, r#"{"priority":null,"actual_total":480.5}"#);
    check::<InvoiceCreate>(r#"{"total":12e2,"currency":"JPY"}"#, r#"{"total":1200,"currency":"JPY"}"#);
    let hook = r#"{"url":"https://hooks.example.com/","events":["invoice.paid"]}"#;
    check::<WebhookCreate>(hook, hook);
    check::<WebhookUpdate>(r#"{"enabled":false,"events":["*"]}"#, r#"{"events":["*"],"enabled":false}"#);
}

#[test]
fn filters_are_written_as_a_query() {
    let filter = ContactFilter { email: Some("a+b@b.co".parse().unwrap()), include_deleted: Some(true) };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(filter.to_query(), [pair("email", "a+b@b.co"), pair("include_deleted", "true")]);
    assert_eq!(ContactFilter::default().to_query(), []);
    let limit = ListParams { limit: Limit::new(7), ..ListParams::default() };
    assert_eq!(limit.to_query(), [pair("limit", "7")]);
}
