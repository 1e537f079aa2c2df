//! Event kinds that the application registers.

use serde_json::{Value, json};
use svc_core::error::{Error, FieldCode, Issue};
use svc_core::input::Input as _;
use svc_core::values::{EventKind, EventKinds, EventSet, KindName};
use svc_core::webhooks::events;
use svc_core::webhooks::subscriptions::{self, WebhookCreate, WebhookSubscription};

use super::{Rules, START, account, refusal};

fn shipped() -> EventKind {
    EventKind::Custom(KindName::from_text("order.shipped").unwrap())
}

/// Returns kinds with `order.shipped`, whose data has a number of parcels.
fn kinds() -> EventKinds {
    let check = |data: &Value| match data["parcels"].as_u64() {
        Some(_) => Vec::new(),
        None => vec![Issue::new(FieldCode::InvalidType, "must be a whole number").at("parcels")],
    };
    let mut kinds = EventKinds::default();
    kinds.register_with_check("order.shipped", json!({ "examples": [{ "parcels": 2 }] }), check).unwrap();
    kinds
}

fn fixture() -> Rules {
    Rules::with(account(), START, |env| env.event_kinds = kinds())
}

fn emit(fixture: &Rules, kind: EventKind, data: Value) -> Result<usize, Error> {
    let tenant = fixture.tenant;
    fixture.write((tenant, kind, data), async |tx, (tenant, kind, data)| {
        Ok(events::record_external(tx, *tenant, *kind, data).await?.1.len())
    })
}

#[test]
fn the_data_of_an_event_is_checked() {
    let fixture = fixture();
    let all = json!({ "url": "https://example.com", "events": ["*"] });
    fixture.create::<WebhookSubscription>(all).unwrap();
    assert_eq!(emit(&fixture, shipped(), json!({ "parcels": 3 })), Ok(1), "an id is not needed");
    for (data, want) in [
        (json!({ "parcels": "3" }), "data.parcels invalid_type"),
        (json!([3]), "data invalid_type"),
        (json!({ "parcels": 3, "note": "\0" }), "note invalid_format"),
    ] {
        assert_eq!(refusal(emit(&fixture, shipped(), data)), want);
    }
    let lost = EventKind::from_text("order.lost").unwrap();
    assert_eq!(refusal(emit(&fixture, lost, json!({ "parcels": 3 }))), "kind invalid_enum");
    assert_eq!(fixture.new_kinds(), "order.shipped");
}

#[test]
fn the_data_of_an_event_has_at_most_1_mib() {
    let fixture = fixture();
    // A parcel has 21 bytes beside its note.
    let data = |size: usize| json!({ "note": "x".repeat(size - 23), "parcels": 3 });
    assert_eq!(data(1_000).to_string().len(), 1_000);
    for kind in [shipped(), EventKind::StayCreated] {
        assert_eq!(refusal(emit(&fixture, kind, data(events::MAX_DATA + 1))), "data too_long", "{kind}");
    }
    assert_eq!(emit(&fixture, shipped(), data(events::MAX_DATA)), Ok(0));
    let Err(error) = emit(&fixture, shipped(), data(2_000_000)) else { panic!("it was taken") };
    assert_eq!(
        error.to_string(),
        "data must have at most 1048576 bytes as JSON, and has 2000000; send what is large by its URL."
    );
}

#[test]
fn a_subscription_takes_registered_kinds() {
    let fixture = fixture();
    let body = json!({ "url": "https://example.com", "events": ["order.shipped"] });
    let subscription: WebhookSubscription = fixture.create(body.clone()).unwrap();
    assert_eq!(subscription.events, EventSet::Kinds(vec![shipped()]));
    let lost = json!({ "url": "https://127.0.0.1", "events": ["order.lost"] });
    let both = "url invalid_format, events invalid_enum";
    assert_eq!(refusal(fixture.create::<WebhookSubscription>(lost.clone())), both);
    assert_eq!(refusal(fixture.update::<WebhookSubscription>(subscription.id, lost)), both);
    assert_eq!(refusal(Rules::new().create::<WebhookSubscription>(body)), "events invalid_enum");
}

#[test]
fn a_body_can_be_read_with_the_kinds_of_the_service() {
    let read = |body: &[u8]| refusal(WebhookCreate::from_body_with_kinds(body, &kinds()));
    assert_eq!(read(br#"{"url":7,"events":["order.lost"]}"#), "url invalid_type, events invalid_enum");
    assert_eq!(read(br#"{"url":7,"events":["order.shipped"]}"#), "url invalid_type");
}

#[test]
fn a_test_has_the_example_of_its_kind() {
    let fixture = fixture();
    let tenant = fixture.tenant;
    let subscription: WebhookSubscription =
        fixture.create(json!({ "url": "https://example.com", "events": ["order.shipped"] })).unwrap();
    let send = || {
        fixture.write((tenant, subscription.id), async |tx, &(tenant, id)| {
            subscriptions::send_test(tx, tenant, id, None).await
        })
    };
    send().unwrap();
    let event = fixture.new_events().pop().unwrap();
    assert_eq!((event.kind, event.data.get()), (shipped(), r#"{"parcels":2}"#));

    // A kind that is no longer registered has no example.
    let lost = EventKind::from_text("order.lost").unwrap();
    let with = |events| WebhookSubscription { events: EventSet::Kinds(events), ..subscription.clone() };
    fixture.replace(with(vec![lost, shipped()]));
    assert_eq!(send().map(|delivery| delivery.kind), Ok(shipped()));
    fixture.replace(with(vec![lost]));
    assert!(matches!(send(), Err(Error::NotAllowed(reason)) if reason.contains("order.lost")));
}
