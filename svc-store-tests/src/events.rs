//! Events and deliveries, which are written in the transaction of the change that caused them.

use std::time::Duration;

use serde_json::{json, value::to_raw_value};
use svc_core::error::{Error, StoreError};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::resources::invoices::{self, InvoiceCreate};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::store::{DeliveryFilter, EventFilter, MAX_EVENT_BYTES, is_cut};
use svc_core::values::EventKind;
use svc_core::values::{Decimal, EventSet, Id, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus, MatchedSubscription};
use svc_core::webhooks::events::{self, Event, EventId};
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::subscriptions::{self, DisabledReason, SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use crate::Harness;
use crate::deliveries::call;
use crate::samples::Sample;

impl Harness {
    async fn deliveries(&self, tenant: TenantId, event: EventId) -> Vec<Delivery> {
        let read = self.read((tenant, event), async |tx, &(tenant, event)| {
            Ok(tx.list_deliveries(tenant, &DeliveryFilter::of_event(event)).await?)
        });
        let mut deliveries = read.await.unwrap();
        deliveries.sort_by_key(|delivery| delivery.subscription_id);
        deliveries
    }

    async fn matches(&self, tenant: TenantId, kind: EventKind) -> Vec<MatchedSubscription> {
        let read =
            self.read((tenant, kind), async |tx, &(tenant, kind)| Ok(tx.matching_subscriptions(tenant, kind).await?));
        read.await.unwrap()
    }

    pub(super) async fn subscription(&self, tenant: TenantId, change: fn(&mut WebhookSubscription)) -> SubscriptionId {
        let make = move |new| {
            let mut row = WebhookSubscription { enabled: true, grant_id: None, ..WebhookSubscription::bare(new) };
            change(&mut row);
            row
        };
        self.insert(tenant, make).await.id
    }
}

fn json_of<T: serde::Serialize>(record: &T) -> String {
    serde_json::to_string(record).unwrap()
}

pub(super) async fn an_event_holds_the_record_at_its_time(h: Harness) {
    let tenant = h.tenant().await;
    let mut want: Vec<(EventKind, String)> = Vec::new();
    let body = json!({ "email": "Ada@example.com", "first_name": "Zoë 🔧 \"x\" \\ </script>" });
    let contact: Contact = h.create(tenant, body).await.unwrap();
    want.push((EventKind::ContactCreated, json_of(&contact)));
    let body = json!({ "contact_id": contact.id, "total": 99.95, "currency": "KWD" });
    let quote: Quote = h.create(tenant, body).await.unwrap();
    want.push((EventKind::QuoteCreated, json_of(&quote)));
    let accepted: Quote = h.update(tenant, quote.id, json!({ "status": "accepted", "total": 0.001 })).await.unwrap();
    want.push((EventKind::QuoteAccepted, json_of(&accepted)));
    want.push((EventKind::QuoteUpdated, json_of(&accepted)));
    let job: Job = h.create(tenant, json!({ "title": "Pump", "contact_id": contact.id })).await.unwrap();
    want.push((EventKind::JobCreated, json_of(&job)));
    let body = json!({ "contact_id": contact.id, "service_name": "x", "start_time": "2026-03-14T15:00:00.5+11:00" });
    let booking: Booking = h.create(tenant, body).await.unwrap();
    want.push((EventKind::BookingCreated, json_of(&booking)));
    h.delete::<Contact>(tenant, contact.id).await.unwrap();
    let deleted: Contact = h.row(tenant, contact.id).await.unwrap();
    want.push((EventKind::ContactDeleted, json_of(&deleted)));

    let events = h.events(tenant).await;
    let got: Vec<_> = events.iter().map(|event| (event.kind, event.data.get().to_owned())).collect();
    assert_eq!(got, want, "byte for byte, and untouched by later changes");
    assert!(want[0].1.contains("\"email\":\"Ada@example.com\"") && !want[0].1.contains("deleted_at"));
    assert!(want[6].1.contains("deleted_at"));
    assert_eq!(events[0].created_at, contact.created_at);
    assert_eq!(events[2].created_at, accepted.updated_at);
}

pub(super) async fn the_data_of_an_event_is_replaced_and_nothing_else(h: Harness) {
    let tenant = h.tenant().await;
    let contacts = [0, 1].map(|number| json!({ "email": format!("ada{number}@example.com") }));
    for body in contacts {
        h.create::<Contact>(tenant, body).await.unwrap();
    }
    let before = h.events(tenant).await;
    let record = before[0].record_id().unwrap();
    let data = to_raw_value(&json!({ "id": record })).unwrap();
    let replaced = Event { data, ..before[0].clone() };
    let event = replaced.clone();
    h.write(event, async |tx, event| Ok(tx.replace_event_data(event).await?)).await.unwrap();
    let shown = |events: &[Event]| -> Vec<String> { events.iter().map(|event| format!("{event:?}")).collect() };
    assert_eq!(shown(&h.events(tenant).await), shown(&[replaced, before[1].clone()]));
}

pub(super) async fn events_are_returned_in_order_and_in_pages(h: Harness) {
    let tenant = h.tenant().await;
    for at in 0..4 {
        h.contact(tenant, &format!("c{at}@example.com")).await;
        h.create::<Job>(tenant, json!({ "title": "x", "status": "completed" })).await.unwrap();
    }
    let all = h.events(tenant).await;
    let kinds: Vec<EventKind> = all.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::ContactCreated, EventKind::JobCreated, EventKind::JobCompleted].repeat(4));
    let ids: Vec<_> = all.iter().map(|event| event.id).collect();
    assert!(all.is_sorted_by(|a, b| a.created_at < b.created_at) && all.iter().all(|event| event.tenant_id == tenant));
    let read = async |after: Timestamp, limit: u32| {
        let read = h.read((tenant, after, limit), async |tx, &(tenant, after, limit)| {
            Ok(tx.events_after(tenant, after, limit).await?)
        });
        read.await.unwrap().iter().map(|event| event.id).collect::<Vec<_>>()
    };
    for (position, event) in all.iter().enumerate() {
        assert_eq!(read(event.created_at, 100).await, ids[position + 1..], "strictly after");
    }
    let mut read_ids: Vec<EventId> = Vec::new();
    let mut after = Timestamp::from_micros(0);
    loop {
        let page = read(after, 5).await;
        read_ids.extend(&page);
        let Some(last) = page.last() else { break };
        assert!(read_ids.len() <= ids.len(), "the pages never end");
        after = all.iter().find(|event| event.id == *last).unwrap().created_at;
        assert!(page.len() <= 5);
    }
    assert_eq!(read_ids, ids);
    assert_eq!(read(all[0].created_at, 1).await, ids[1..2]);
}

pub(super) async fn events_of_another_tenant_are_not_returned(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    h.subscription(tenant, |_| {}).await;
    h.contact(tenant, "ada@example.com").await;
    h.contact(other, "ada@example.com").await;
    let (mine, theirs) = (h.events(tenant).await, h.events(other).await);
    assert_eq!((mine.len(), theirs.len()), (1, 1));
    assert_eq!((mine[0].tenant_id, theirs[0].tenant_id), (tenant, other));
    assert_eq!(h.deliveries(tenant, mine[0].id).await.len(), 1);
    assert_eq!(h.deliveries(other, theirs[0].id).await, [], "another tenant's subscription");
    assert_eq!(h.deliveries(other, mine[0].id).await, [], "another tenant's event");
}

/// More than one statement asks for.
pub(super) async fn events_are_returned_by_their_ids(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    for at in 0..60 {
        h.contact(tenant, &format!("c{at}@example.com")).await;
    }
    let ids: Vec<EventId> = h.events(tenant).await.iter().map(|event| event.id).collect();
    let find = async |tenant, ids: Vec<EventId>| {
        let found = h.read((tenant, ids), async |tx, (tenant, ids)| Ok(tx.events(*tenant, ids).await?)).await.unwrap();
        let mut found: Vec<EventId> = found.iter().map(|event| event.id).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(find(tenant, ids.clone()).await, ids);
    assert_eq!(find(tenant, vec![Id::nil(), ids[3]]).await, [ids[3]]);
    assert_eq!(find(tenant, Vec::new()).await, []);
    assert_eq!(find(other, ids).await, [], "of another tenant");
}

fn pause(row: &mut WebhookSubscription) {
    row.enabled = false;
    row.disabled_reason = Some(DisabledReason::AutoPaused);
    row.paused_at = Some(row.created_at);
    row.consecutive_failures = 10;
}

pub(super) async fn live_subscriptions_are_counted(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let count = async |tenant| h.read(tenant, async |tx, &tenant| Ok(tx.count_live_subscriptions(tenant).await?)).await;
    assert_eq!(count(tenant).await, Ok(0));
    h.subscription(tenant, |_| {}).await;
    h.subscription(tenant, |row| row.enabled = false).await;
    h.subscription(tenant, pause).await;
    h.subscription(tenant, |row| row.deleted_at = Some(row.created_at)).await;
    h.subscription(other, |_| {}).await;
    assert_eq!(count(tenant).await, Ok(3), "every one that is not deleted");
    assert_eq!(count(other).await, Ok(1));
}

pub(super) async fn a_subscription_that_is_not_kept_is_deleted(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let own = h.subscription(tenant, |_| {}).await;
    let stays = h.subscription(tenant, |_| {}).await;
    let deleted = h.subscription(tenant, |row| row.deleted_at = Some(row.created_at)).await;
    let foreign = h.subscription(other, |_| {}).await;
    let minute = Duration::from_secs(60);
    let keep = async |tenant, id| {
        h.write((tenant, id, minute), async |tx, &(tenant, id, minute)| {
            subscriptions::keep_for(tx, tenant, id, minute).await
        })
        .await
    };
    for (tenant, id) in [(tenant, deleted), (tenant, foreign), (other, own), (TenantId(uuid::Uuid::max()), own)] {
        assert_eq!(keep(tenant, id).await, Err(Error::NotFound));
    }
    keep(tenant, own).await.unwrap();
    keep(other, foreign).await.unwrap();
    h.clock.advance(minute - Duration::from_micros(1));
    assert_eq!(subscriptions::delete_expired(&*h.store).await, Ok(0));
    // This one is kept for longer, so the other one alone expires.
    keep(tenant, own).await.unwrap();
    h.clock.advance(Duration::from_micros(1));
    assert_eq!(subscriptions::delete_expired(&*h.store).await, Ok(1));
    h.clock.advance(minute);
    assert_eq!(subscriptions::delete_expired(&*h.store).await, Ok(1));
    assert_eq!(subscriptions::delete_expired(&*h.store).await, Ok(0));
    for (tenant, id, live) in [(tenant, own, false), (tenant, stays, true), (other, foreign, false)] {
        let found = h
            .read((tenant, id), async |tx, &(tenant, id)| crud::get::<WebhookSubscription>(tx, tenant, id).await)
            .await;
        assert_eq!(found.is_ok(), live);
    }
    assert_eq!(keep(tenant, own).await, Err(Error::NotFound));
}

pub(super) async fn each_matching_subscription_gets_one_delivery(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let everything = h.subscription(tenant, |_| {}).await;
    let named = h
        .subscription(tenant, |row| {
            row.events = EventSet::Kinds(vec![EventKind::JobCreated, EventKind::ContactCreated]);
        })
        .await;
    let paused = h.subscription(tenant, pause).await;
    h.subscription(tenant, |row| row.events = EventSet::Kinds(vec![EventKind::ContactUpdated])).await;
    h.subscription(tenant, |row| row.enabled = false).await;
    h.subscription(tenant, |row| row.deleted_at = Some(row.created_at)).await;
    h.subscription(other, |_| {}).await;
    h.contact(tenant, "ada@example.com").await;

    let event = h.events(tenant).await.remove(0);
    let deliveries = h.deliveries(tenant, event.id).await;
    let got: Vec<_> = deliveries.iter().map(|d| (d.subscription_id, d.status, d.next_attempt_at)).collect();
    // The sender uses the clock of the node, which is behind the clock of the tenant here.
    let due = Some(h.store.env().now());
    assert_eq!(
        got,
        [
            (everything, DeliveryStatus::Pending, due),
            (named, DeliveryStatus::Pending, due),
            (paused, DeliveryStatus::Held, None)
        ]
    );
    let same = |d: &Delivery| (d.tenant_id, d.event_id, d.created_at) == (tenant, event.id, event.created_at);
    assert!(deliveries.iter().all(same));

    // A subscription gets one delivery per event, also when one change causes two events, and none for earlier events.
    let before = h.events(tenant).await.len();
    let late = h.subscription(tenant, |_| {}).await;
    h.create::<Job>(tenant, json!({ "title": "x", "status": "scheduled" })).await.unwrap();
    let events = h.events(tenant).await.split_off(before);
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::JobCreated, EventKind::JobScheduled]);
    let to = async |event: &Event| {
        h.deliveries(tenant, event.id).await.iter().map(|d| d.subscription_id).collect::<Vec<_>>()
    };
    assert_eq!(to(&events[0]).await, [everything, named, paused, late]);
    assert_eq!(to(&events[1]).await, [everything, paused, late]);
    assert_eq!(to(&event).await, [everything, named, paused]);
}

pub(super) async fn many_deliveries_are_written_at_once(h: Harness) {
    let (tenant, start) = (h.tenant().await, h.store.env().now());
    let mut subscriptions = Vec::new();
    for number in 0..150 {
        subscriptions.push(h.subscription(tenant, if number % 50 == 7 { pause } else { |_| {} }).await);
    }
    let (early, late) = (subscriptions[3], subscriptions[4]);
    let hour_before = start.minus(Duration::from_secs(3600));
    call!(h.schedule_endpoint(tenant, early, Some(hour_before)));
    call!(h.schedule_endpoint(tenant, late, start.checked_add(Duration::from_secs(3600))));
    let event = h.event_of(tenant, EventKind::JobCreated).await;
    let delivery = |(number, subscription): (usize, &SubscriptionId)| {
        event.delivery_to(h.store.env().id(event.created_at), *subscription, number % 50 == 7)
    };
    let mut deliveries: Vec<Delivery> = subscriptions.iter().enumerate().map(delivery).collect();
    // A second delivery to an endpoint, which is due before the first one.
    let sooner = start.minus(Duration::from_secs(60));
    deliveries.push(Delivery { next_attempt_at: Some(sooner), ..delivery((0, &subscriptions[0])) });
    let written = deliveries.clone();
    let write = h.write(written, async |tx, written| Ok(tx.insert_deliveries(written).await?));
    write.await.unwrap();

    let mut stored = h.deliveries(tenant, event.id).await;
    stored.sort_by_key(|delivery| delivery.id);
    deliveries.sort_by_key(|delivery| delivery.id);
    assert_eq!(stored, deliveries);
    let endpoints = async |now: Timestamp| {
        let mut due = call!(h.due_endpoints(now, &[], 1000));
        due.sort();
        due.into_iter().map(|endpoint| endpoint.subscription_id).collect::<Vec<_>>()
    };
    let pending = subscriptions.iter().enumerate().filter(|(number, _)| number % 50 != 7).map(|(_, id)| *id);
    assert_eq!(endpoints(event.created_at).await, pending.collect::<Vec<_>>(), "also the one that was due later");
    assert_eq!(endpoints(sooner).await, [subscriptions[0], early]);
    assert_eq!(endpoints(hour_before).await, [early], "it is not delayed");

    // All of them, or none.
    let next = h.event_of(tenant, EventKind::JobCreated).await;
    let mut refused: Vec<Delivery> =
        subscriptions.iter().map(|to| next.delivery_to(h.store.env().id(next.created_at), *to, false)).collect();
    refused.push(refused[0].clone());
    let write = h.write(refused, async |tx, refused| Ok(tx.insert_deliveries(refused).await?));
    assert!(matches!(write.await, Err(Error::Store(StoreError::Conflict { .. }))));
    assert_eq!(h.deliveries(tenant, next.id).await, []);
}

pub(super) async fn matching_subscriptions_are_enabled_or_paused(h: Harness) {
    let tenant = h.tenant().await;
    let named = h.subscription(tenant, |row| row.events = EventSet::Kinds(vec![EventKind::InvoicePaid])).await;
    let paused = h.subscription(tenant, pause).await;
    h.subscription(tenant, |row| row.enabled = false).await;
    let matched =
        |subscription_id, paused| MatchedSubscription { subscription_id, paused, filter: None, is_ordered: false };
    let (sent, held) = (|subscription| matched(subscription, false), |subscription| matched(subscription, true));
    assert_eq!(h.matches(tenant, EventKind::InvoicePaid).await, [sent(named), held(paused)]);
    for kind in EventKind::BUILT_IN.iter().filter(|kind| **kind != EventKind::InvoicePaid) {
        assert_eq!(h.matches(tenant, *kind).await, [held(paused)], "{kind}");
    }
    // Changed settings of a subscription take effect.
    let body = json!({ "events": ["stay.created", "payment.succeeded"] });
    h.update::<WebhookSubscription>(tenant, named, body).await.unwrap();
    h.update::<WebhookSubscription>(tenant, paused, json!({ "enabled": true })).await.unwrap();
    assert_eq!(h.matches(tenant, EventKind::InvoicePaid).await, [sent(paused)]);
    assert_eq!(h.matches(tenant, EventKind::StayCreated).await, [sent(named), sent(paused)]);
    assert_eq!(h.matches(tenant, EventKind::PaymentSucceeded).await, [sent(named), sent(paused)]);
    h.update::<WebhookSubscription>(tenant, named, json!({ "enabled": false })).await.unwrap();
    h.delete::<WebhookSubscription>(tenant, paused).await.unwrap();
    assert_eq!(h.matches(tenant, EventKind::StayCreated).await, []);
    h.update::<WebhookSubscription>(tenant, named, json!({ "enabled": true, "events": ["*"] })).await.unwrap();
    assert_eq!(h.matches(tenant, EventKind::StayCreated).await, [sent(named)]);
    let options = json!({ "filter": "data.city == \"Perth\"", "ordering": "record" });
    h.update::<WebhookSubscription>(tenant, named, options).await.unwrap();
    let filter = "data.city == \"Perth\"".parse().ok();
    let chosen = MatchedSubscription { filter, is_ordered: true, ..sent(named) };
    assert_eq!(h.matches(tenant, EventKind::StayCreated).await, [chosen]);
}

pub(super) async fn events_are_listed_in_either_order(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let contact = h.contact(tenant, "ada@example.com").await.id;
    h.contact(other, "ada@example.com").await;
    h.contact(tenant, "grace@example.com").await;
    for city in ["Perth", "Sydney"] {
        h.update::<Contact>(tenant, contact, json!({ "city": city })).await.unwrap();
    }
    let all = h.events(tenant).await;
    let listed = async |filter: EventFilter| {
        let listed = h.read((tenant, filter), async |tx, (tenant, filter)| Ok(tx.list_events(*tenant, filter).await?));
        listed.await.unwrap().iter().map(|of| of.event.id).collect::<Vec<_>>()
    };
    let ids = |at: &[usize]| at.iter().map(|at| all[*at].id).collect::<Vec<_>>();
    let times = Timestamp::from_micros(0)..Timestamp::MAX;
    let newest = EventFilter::newest(times, 10);
    let oldest = EventFilter { oldest_first: true, ..newest.clone() };
    assert_eq!(listed(newest.clone()).await, ids(&[3, 2, 1, 0]));
    assert_eq!(listed(oldest.clone()).await, ids(&[0, 1, 2, 3]));
    assert_eq!(listed(EventFilter { limit: 2, ..oldest.clone() }).await, ids(&[0, 1]));
    let (since, until) = (all[1].created_at, all[3].created_at);
    assert_eq!(listed(EventFilter { since, until, ..newest.clone() }).await, ids(&[2, 1]), "at or after, and before");
    assert_eq!(listed(EventFilter { since, until, ..oldest.clone() }).await, ids(&[1, 2]));
    let record_id = Some(contact.uuid());
    assert_eq!(listed(EventFilter { record_id, ..newest }).await, ids(&[3, 2, 0]));
    assert_eq!(listed(EventFilter { record_id, since, limit: 1, ..oldest }).await, ids(&[2]));
}

pub(super) async fn the_first_pending_delivery_of_a_record_is_found(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (subscription, second) = (h.subscription(tenant, |_| {}).await, h.subscription(tenant, |_| {}).await);
    let key = Uuid::from_u128(7);
    let first = async |tenant: TenantId, subscription: SubscriptionId, key: Uuid| {
        let read = h.read((tenant, subscription, key), async |tx, &(tenant, subscription, key)| {
            Ok(tx.first_ordered(tenant, subscription, key).await?)
        });
        read.await.unwrap()
    };
    assert_eq!(first(tenant, subscription, key).await, None);
    let mut deliveries = Vec::new();
    for order_key in [None, Some(key), Some(key), Some(Uuid::from_u128(8))] {
        let event = h.event_of(tenant, EventKind::JobCreated).await;
        let delivery = event.delivery_to(h.store.env().id(event.created_at), subscription, false);
        deliveries.push(Delivery { order_key, ..delivery });
    }
    // Written in another order than that of their events.
    deliveries.reverse();
    let write = h.write(deliveries.clone(), async |tx, deliveries| Ok(tx.insert_deliveries(deliveries).await?));
    write.await.unwrap();
    deliveries.reverse();
    assert_eq!(call!(h.delivery(tenant, deliveries[1].id)).unwrap(), deliveries[1]);
    assert_eq!(first(tenant, subscription, key).await, Some(deliveries[1].id));
    assert_eq!(first(tenant, second, key).await, None, "of another subscription");
    assert_eq!(first(other, subscription, key).await, None, "of another tenant");
    let ended = Delivery { status: DeliveryStatus::Succeeded, next_attempt_at: None, ..deliveries[1].clone() };
    let write = h.write(ended, async |tx, ended| Ok(tx.update_delivery(ended, None).await?));
    write.await.unwrap();
    assert_eq!(first(tenant, subscription, key).await, Some(deliveries[2].id));

    let lease_ends = deliveries[3].created_at;
    let in_flight = async |from: Timestamp, until: Timestamp| {
        let read = h.read((tenant, subscription, from, until), async |tx, &(tenant, subscription, from, until)| {
            Ok(tx.count_in_flight(tenant, subscription, from..until).await?)
        });
        read.await.unwrap()
    };
    assert_eq!(in_flight(Timestamp::from_micros(0), Timestamp::MAX).await, 0);
    let mut claimed = deliveries[2].clone();
    claimed.claim(h.store.env().id(lease_ends), lease_ends);
    let write = h.write(claimed, async |tx, claimed| Ok(tx.claim_delivery(claimed, None).await?));
    write.await.unwrap();
    assert_eq!(in_flight(lease_ends, lease_ends.next()).await, 1);
    assert_eq!(in_flight(lease_ends.next(), Timestamp::MAX).await, 0, "the lease has ended by then");
    assert_eq!(in_flight(Timestamp::from_micros(0), lease_ends).await, 0, "it ends later");
}

pub(super) async fn a_created_delivery_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    let subscription = h.subscription(tenant, |row| row.enabled = false).await;
    for (position, kind) in EventKind::BUILT_IN.iter().copied().enumerate() {
        let at = h.advance_clock(tenant).await;
        let id = h.store.env().id(at);
        let only_for = (position % 2 == 0).then_some(subscription);
        let data = to_raw_value(&json!({ "id": id, "kind": kind, "n": [1, null, "ü"] })).unwrap();
        let event = Event { id, tenant_id: tenant, kind, data, created_at: at, only_for };
        let stored = event.clone();
        let write = h.write(stored, async |tx, stored| {
            let event = stored.clone();
            Ok(tx.insert_event(&event).await?)
        });
        write.await.unwrap();
        let back = h.events(tenant).await.pop().unwrap();
        assert_eq!((back.id, back.kind, back.created_at, back.data.get()), (id, kind, at, event.data.get()));
        let one = call!(h.event(tenant, id)).unwrap();
        assert_eq!((back.only_for, one.only_for), (only_for, only_for));
    }
    let event = h.events(tenant).await.pop().unwrap();
    for state in DeliveryStatus::ALL.iter().copied() {
        let id = h.store.env().id(event.created_at);
        let next_attempt_at = (state == DeliveryStatus::Pending).then_some(event.created_at.next());
        let delivery = Delivery { status: state, next_attempt_at, ..event.delivery_to(id, subscription, true) };
        let stored = delivery.clone();
        let write = h.write(stored, async |tx, stored| {
            let delivery = stored.clone();
            Ok(tx.insert_delivery(&delivery).await?)
        });
        write.await.unwrap();
        assert!(h.deliveries(tenant, event.id).await.contains(&delivery), "{delivery:?}");
    }
    // Payments are written but never read, so this only tests that the write succeeds.
    let total = Decimal::parse("10").unwrap();
    let input = InvoiceCreate { contact_id: None, total, currency: None, issue_date: None, due_date: None };
    let paid = h.write((tenant, input), async |tx, (tenant, input)| {
        let invoice = invoices::create(tx, *tenant, input.clone()).await?;
        invoices::pay(tx, *tenant, invoice.id, invoices::PaymentCreate::default()).await
    });
    let paid = paid.await.unwrap();
    assert_eq!((paid.amount_paid, h.row(tenant, paid.id).await), (paid.total, Some(paid)));
}

pub(super) async fn an_event_for_one_subscription_goes_to_no_other(h: Harness) {
    let tenant = h.tenant().await;
    let (one, other) = (h.subscription(tenant, |_| {}).await, h.subscription(tenant, |_| {}).await);
    let delivery = h
        .write((tenant, one), async |tx, &(tenant, one)| subscriptions::send_test(tx, tenant, one, None).await)
        .await
        .unwrap();
    let event = h.events(tenant).await.pop().unwrap();
    assert_eq!((event.id, event.only_for), (delivery.event_id, Some(one)));
    h.contact(tenant, "ada@example.com").await;

    // A replay of missed events does not deliver it to another subscription either.
    let late = h.subscription(tenant, |_| {}).await;
    for subscription in [one, other, late] {
        let since = Timestamp::from_micros(0);
        let input = ReplayCreate { subscription, since, until: None, statuses: Vec::new(), missed: true };
        let replay = h.write((tenant, input), async |tx, (tenant, input)| {
            let replay = replays::create(tx, *tenant, input.clone()).await?;
            while replays::step(tx, *tenant).await? {}
            tx.replay(*tenant, replay.id).await.map_err(Into::into)
        });
        let replay = replay.await.unwrap().unwrap();
        assert_eq!(replay.replayed, u64::from(subscription == late), "only the later subscription missed the contact");
    }
    assert_eq!(h.deliveries(tenant, event.id).await, [delivery]);
    let contact = h.events(tenant).await.pop().unwrap();
    assert_eq!(h.deliveries(tenant, contact.id).await.len(), 3);
}

/// One read would otherwise take as much memory as the largest events have, however few are wanted.
pub(super) async fn a_read_of_events_ends_with_the_size_of_their_data(h: Harness) {
    let tenant = h.tenant().await;
    // Three of them have a little more than one read returns, and each has characters of several bytes.
    let text = "ä".repeat(MAX_EVENT_BYTES / 2 / 3 + 100);
    for id in 0..7 {
        let stay = (tenant, json!({ "id": id, "text": text }));
        let emit = h.write(stay, async |tx, (tenant, stay)| {
            events::record_external(tx, *tenant, EventKind::StayCreated, stay).await.map(drop)
        });
        emit.await.unwrap();
    }
    h.contact(tenant, "ada@example.com").await;
    let beginning = Timestamp::from_micros(0);
    let mut ids = Vec::new();
    let mut after = beginning;
    let mut lengths = Vec::new();
    loop {
        let read =
            h.read((tenant, after), async |tx, &(tenant, after)| Ok(tx.events_after(tenant, after, 100).await?));
        let events = read.await.unwrap();
        let Some(last) = events.last() else { break };
        after = last.created_at;
        lengths.push((events.len(), is_cut(&events, 100)));
        ids.extend(events.iter().map(|event| event.id));
    }
    assert_eq!(lengths, [(3, true), (3, true), (2, false)], "the last read has a small event");
    for oldest_first in [true, false] {
        let filter = EventFilter { oldest_first, ..EventFilter::newest(beginning..Timestamp::MAX, 100) };
        let read = h.read((tenant, filter), async |tx, (tenant, filter)| Ok(tx.list_events(*tenant, filter).await?));
        let listed: Vec<EventId> = read.await.unwrap().iter().map(|of| of.event.id).collect();
        let mut want = ids.clone();
        if !oldest_first {
            want.reverse();
        }
        // The newest one is small.
        want.truncate(if oldest_first { 3 } else { 4 });
        assert_eq!(listed, want);
    }
    let read = h.read(tenant, async |tx, &tenant| Ok(tx.events_after(tenant, Timestamp::from_micros(0), 2).await?));
    assert_eq!(read.await.unwrap().len(), 2);
    let counted = h.read(tenant, async |tx, &tenant| {
        Ok(tx.count_events(tenant, Timestamp::from_micros(0), Timestamp::MAX, 100).await?)
    });
    assert_eq!(counted.await.unwrap(), 8);
    let read = h.read((tenant, after), async |tx, &(tenant, at)| Ok(tx.event_ids(tenant, at, 5).await?));
    let newest: Vec<EventId> = ids.iter().rev().skip(1).take(5).copied().collect();
    assert_eq!(read.await.unwrap(), newest, "before the newest one");
}
