//! Event kinds of the application: those that are registered, and those that no longer are.

use serde_json::{Value, json, value::to_raw_value};
use svc_core::error::{Error, FieldCode, Issue};
use svc_core::store::DeliveryFilter;
use svc_core::values::{EventKind, EventKinds, EventSet, KindName, Timestamp};
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::events::{self, Event};
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::subscriptions::{self, WebhookSubscription};

use crate::Harness;

const REGISTERED: &str = "order.shipped";
const FORMER: &str = "order.lost_1";

/// Returns kinds with a custom one, whose data needs an `id`.
pub(super) fn kinds() -> EventKinds {
    let check = |data: &Value| match data.get("id") {
        Some(_) => Vec::new(),
        None => vec![Issue::new(FieldCode::Required, "is required").at("id")],
    };
    let mut kinds = EventKinds::default();
    kinds.register_with_check(REGISTERED, json!({ "examples": [{ "id": "A-17" }] }), check).unwrap();
    kinds
}

fn kind(name: &str) -> EventKind {
    EventKind::Custom(KindName::from_text(name).unwrap())
}

fn to(events: &[&str]) -> Value {
    json!({ "url": "https://example.com", "events": events })
}

pub(super) async fn an_event_of_a_custom_kind_is_delivered(h: Harness) {
    let tenant = h.tenant().await;
    let named: WebhookSubscription = h.create(tenant, to(&["job.created", REGISTERED])).await.unwrap();
    let all: WebhookSubscription = h.create(tenant, to(&["*"])).await.unwrap();
    h.create::<WebhookSubscription>(tenant, to(&["job.created"])).await.unwrap();

    let emit = |data: Value| {
        h.write((tenant, data), async |tx, (tenant, data)| {
            events::record_external(tx, *tenant, kind(REGISTERED), data).await
        })
    };
    let (event, mut deliveries) = emit(json!({ "id": "A-18" })).await.unwrap();
    assert!(matches!(emit(json!({ "number": 18 })).await, Err(Error::Validation(_))));
    deliveries.sort_by_key(|delivery| delivery.subscription_id);
    let receivers: Vec<_> = deliveries.iter().map(|delivery| delivery.subscription_id).collect();
    assert_eq!(receivers, [named.id, all.id]);

    let stored = h.events(tenant).await.pop().unwrap();
    assert_eq!((stored.id, stored.kind, stored.data.get()), (event.id, kind(REGISTERED), r#"{"id":"A-18"}"#));
    let listed = h.read(tenant, async |tx, &tenant| {
        let filter = DeliveryFilter { kind: Some(kind(REGISTERED)), ..DeliveryFilter::default() };
        Ok(tx.list_deliveries(tenant, &filter).await?)
    });
    assert_eq!(listed.await.unwrap().len(), 2);

    let test = h.write((tenant, all.id), async |tx, &(tenant, id)| {
        subscriptions::send_test(tx, tenant, id, Some(kind(REGISTERED))).await
    });
    assert_eq!(test.await.unwrap().kind, kind(REGISTERED));
    assert_eq!(h.events(tenant).await.pop().unwrap().data.get(), r#"{"id":"A-17"}"#, "the example of the schema");
}

pub(super) async fn a_kind_that_is_no_longer_registered_is_kept(h: Harness) {
    let tenant = h.tenant().await;
    assert!(h.create::<WebhookSubscription>(tenant, to(&[FORMER])).await.is_err());
    let subscription = h
        .insert(tenant, |new| WebhookSubscription {
            events: EventSet::Kinds(vec![kind(FORMER)]),
            enabled: true,
            grant_id: None,
            ..crate::Sample::bare(new)
        })
        .await;
    let change = json!({ "description": "Orders", "events": [FORMER, REGISTERED] });
    let changed: WebhookSubscription = h.update(tenant, subscription.id, change).await.unwrap();
    assert_eq!(changed.events.names(), [FORMER, REGISTERED]);
    assert!(h.update::<WebhookSubscription>(tenant, subscription.id, to(&["order.never"])).await.is_err());

    // Its events are stored, matched and replayed as those of any kind.
    let at = h.advance_clock(tenant).await;
    let data = to_raw_value(&json!({ "id": 7 })).unwrap();
    let event =
        Event { id: h.store.env().id(at), tenant_id: tenant, kind: kind(FORMER), data, created_at: at, only_for: None };
    let replay = h.write((event, subscription.id, tenant), async |tx, (event, id, tenant)| {
        tx.insert_event(event).await?;
        let since = Timestamp::from_micros(0);
        let input = ReplayCreate { subscription: *id, since, until: None, statuses: Vec::new(), missed: true };
        let replay = replays::create(tx, *tenant, input).await?;
        while replays::step(tx, *tenant).await? {}
        Ok(replay)
    });
    replay.await.unwrap();
    let deliveries = h.read(tenant, async |tx, &tenant| {
        let matching = tx.matching_subscriptions(tenant, kind(FORMER)).await?;
        Ok((matching.len(), tx.list_deliveries(tenant, &DeliveryFilter::default()).await?))
    });
    let (matching, deliveries) = deliveries.await.unwrap();
    assert_eq!(matching, 1);
    let found: Vec<_> = deliveries.iter().map(|delivery| (delivery.kind, delivery.status)).collect();
    assert_eq!(found, [(kind(FORMER), DeliveryStatus::Pending)]);
}
