//! Events of the back office, whose records are kept elsewhere (docs/contract.md, "Events").

use serde_json::{Value, json};
use svc_core::error::Error;
use svc_core::values::EventKind;
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::Delivery;
use svc_core::webhooks::events::{self, Event, EventId};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use super::{Rules, refusal};

fn record(fixture: &Rules, tenant: TenantId, kind: EventKind, data: &Value) -> Result<(EventId, Vec<Delivery>), Error> {
    let data = data.clone();
    fixture.write((tenant, kind, data), async |tx, (tenant, kind, data)| {
        let (Event { id, .. }, deliveries) = events::record_external(tx, *tenant, *kind, data).await?;
        Ok((id, deliveries))
    })
}

#[test]
fn the_event_is_delivered_to_matching_subscriptions() {
    let fixture = Rules::new();
    let body = json!({ "url": "https://example.com", "events": ["stay.created", "cohort.sessions_generated"] });
    let hook: WebhookSubscription = fixture.create(body).unwrap();
    for (kind, data, expected) in [
        (EventKind::StayCreated, json!({ "id": "stay-1", "nights": 2 }), 1),
        (EventKind::StayNoShow, json!({ "id": 7 }), 0),
        (EventKind::CohortSessionsGenerated, json!({ "sessions": [], "id": 1.5 }), 1),
    ] {
        let (id, deliveries) = record(&fixture, fixture.tenant, kind, &data).unwrap();
        let event = fixture.new_events().pop().unwrap();
        assert_eq!((event.id, event.kind, event.data.get()), (id, kind, data.to_string().as_str()));
        assert_eq!(deliveries.len(), expected, "{kind}");
        assert!(deliveries.iter().all(|delivery| (delivery.event_id, delivery.subscription_id) == (id, hook.id)));
    }
}

#[test]
fn the_object_of_an_event_must_have_an_id() {
    let fixture = Rules::new();
    for (data, want) in [
        (json!([]), "data invalid_type"),
        (json!("stay-1"), "data invalid_type"),
        (json!({}), "data required"),
        (json!({ "ID": 1 }), "data required"),
        (json!({ "id": null }), "data invalid_type"),
        (json!({ "id": " " }), "data invalid_type"),
        (json!({ "id": {} }), "data invalid_type"),
        (json!({ "id": 1, "note": "\0" }), "note invalid_format"),
    ] {
        assert_eq!(refusal(record(&fixture, fixture.tenant, EventKind::StayCreated, &data)), want, "{data}");
    }
    assert_eq!(fixture.new_kinds(), "");
}

#[test]
fn only_events_of_stays_and_cohorts_are_accepted() {
    let fixture = Rules::new();
    let external: Vec<&str> =
        EventKind::BUILT_IN.iter().filter(|kind| kind.is_external()).map(|kind| kind.as_str()).collect();
    let want = "stay.created stay.confirmed stay.checked_in stay.checked_out stay.cancelled stay.no_show \
                cohort.sessions_generated";
    assert_eq!(external.join(" "), want);
    for kind in EventKind::BUILT_IN {
        let done = record(&fixture, fixture.tenant, *kind, &json!({ "id": 1 }));
        if kind.is_external() {
            assert!(done.is_ok(), "{kind}");
        } else {
            assert_eq!(refusal(done), "kind invalid_enum", "{kind}");
        }
    }
    assert_eq!(fixture.new_kinds(), want);
    let unknown = TenantId(Uuid::nil());
    assert_eq!(record(&fixture, unknown, EventKind::StayCreated, &json!({ "id": 1 })), Err(Error::NotFound));
}
