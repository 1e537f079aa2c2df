//! Subscriptions whose events go to a broker in place of deliveries.

use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use svc_core::accounts::actor::Actor;
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::store::Store;
use svc_core::values::Timestamp;
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::streams::{Broker, Message, Next, PublishError, Sender, StreamKey};
use svc_core::webhooks::subscriptions::{self, StreamCreate, SubscriptionId, WebhookSubscription, WebhookUpdate};
use uuid::Uuid;

use super::{Rules, json_of, refusal};

const ENGINE: &str = "nats://svc:secret@nats.example.com/svc?create=EVENTS";

/// A broker that keeps the bodies of messages.
#[derive(Default)]
struct Fake(Mutex<Vec<Value>>);

#[async_trait]
impl Broker for Fake {
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        self.0.lock().unwrap().push(serde_json::from_slice(&messages[0].body()).unwrap());
        Ok(1)
    }
}

impl Fake {
    /// Returns the kinds and first names of what was published since the last call.
    fn taken(&self) -> Vec<String> {
        let bodies = std::mem::take(&mut *self.0.lock().unwrap());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        bodies.iter().map(|body| format!("{} {}", text(&body["event"]), text(&body["data"]["first_name"]))).collect()
    }
}

impl Rules {
    fn to_broker(&self, body: Value, actor: Actor) -> Result<WebhookSubscription, Error> {
        let input = StreamCreate::from_body(body.to_string().as_bytes())?;
        self.write((self.tenant, input, actor), async |tx, (tenant, input, actor)| {
            tx.act_as(actor.clone());
            subscriptions::create_stream(tx, *tenant, input).await
        })
    }

    fn contact_in(&self, first_name: &str, city: &str) {
        let body = json!({ "email": format!("{first_name}@example.com"), "first_name": first_name, "city": city });
        let input = ContactCreate::from_body(body.to_string().as_bytes()).unwrap();
        self.write((self.tenant, input), async |tx, (tenant, input)| {
            crud::create::<Contact>(tx, *tenant, input.clone()).await
        })
        .unwrap();
    }

    /// Returns what is published of the stream of a subscription.
    fn published(&self, id: SubscriptionId) -> Vec<String> {
        let (broker, store): (Fake, &dyn Store) = (Fake::default(), &**self.store());
        let mut sender = Sender::new(self.store().env(), StreamKey { tenant_id: self.tenant, id });
        while sender.step(store, &broker).now_or_never().unwrap().unwrap().next == Next::Now {}
        sender.release(store).now_or_never().unwrap().unwrap();
        broker.taken()
    }

    fn streams_behind(&self) -> usize {
        self.write((), async |tx, ()| Ok(tx.subscription_streams_behind(None, 10).await?.len())).unwrap()
    }

    fn set_enabled(&self, id: SubscriptionId, enabled: bool) {
        self.update::<WebhookSubscription>(id, json!({ "enabled": enabled })).unwrap();
    }
}

#[test]
fn its_events_are_those_of_its_kinds_that_pass_its_filter_from_its_creation_on() {
    let fixture = Rules::new();
    fixture.contact_in("before", "Perth");
    let body = json!({ "to": ENGINE, "events": ["contact.created"], "filter": "data.city == \"Perth\"" });
    let subscription = fixture.to_broker(body, Actor::System).unwrap();
    assert_eq!(fixture.streams_behind(), 0);
    for (name, city) in [("ada", "Perth"), ("bob", "Sydney"), ("grace", "Perth")] {
        fixture.contact_in(name, city);
    }
    fixture.create::<svc_core::resources::bookings::Booking>(json!({ "start_time": "2026-03-20T09:00:00Z" })).ok();
    assert_eq!(fixture.streams_behind(), 1);
    assert_eq!(fixture.published(subscription.id), ["contact.created ada", "contact.created grace"]);
    assert_eq!((fixture.streams_behind(), fixture.published(subscription.id)), (0, vec![]));
}

#[test]
fn it_is_shown_without_its_credentials_and_has_no_deliveries() {
    let fixture = Rules::new();
    let body = json!({ "to": ENGINE, "events": ["*"], "payload": "thin", "description": "Warehouse" });
    let subscription = fixture.to_broker(body, Actor::System).unwrap();
    let shown = json_of(&subscription);
    assert_eq!((&shown["url"], &shown["payload"]), (&json!("nats://nats.example.com/svc"), &json!("thin")));
    assert!(!shown.to_string().contains("secret") && !format!("{subscription:?}").contains("secret@"), "{shown}");
    fixture.contact_in("ada", "Perth");
    let (tenant, id) = (fixture.tenant, subscription.id);
    let pending = fixture.write((tenant, id), async |tx, &(tenant, id)| Ok(tx.next_delivery_due(tenant, id).await?));
    assert_eq!(pending.unwrap(), None);
    let not_allowed = |result: Result<(), Error>| assert_eq!(refusal(result), "not_allowed");
    not_allowed(
        fixture.write((tenant, id), async |tx, &(tenant, id)| {
            subscriptions::send_test(tx, tenant, id, None).await.map(drop)
        }),
    );
    not_allowed(fixture.write((tenant, id), async |tx, &(tenant, id)| {
        subscriptions::rotate_secret(tx, tenant, id, std::time::Duration::ZERO).await.map(drop)
    }));
    not_allowed(fixture.write((tenant, id), async |tx, &(tenant, id)| {
        replays::create(tx, tenant, ReplayCreate::new(id, Timestamp::from_micros(0))).await.map(drop)
    }));
}

#[test]
fn what_concerns_deliveries_cannot_be_set() {
    let fixture = Rules::new();
    let create = |more: Value| {
        let mut body = json!({ "to": ENGINE, "events": ["*"] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fixture.to_broker(body, Actor::System)
    };
    assert_eq!(refusal(create(json!({ "url": "https://example.com" }))), "url unknown_field");
    assert_eq!(refusal(create(json!({ "timeout": 5 }))), "timeout unknown_field");
    assert_eq!(refusal(create(json!({ "to": "https://example.com" }))), "to invalid_format");
    assert_eq!(refusal(create(json!({ "events": ["contact.painted"] }))), "events invalid_enum");
    let id = create(json!({})).unwrap().id;
    for (field, value) in [
        ("url", json!("https://example.com/hook")),
        ("headers", json!({ "x-team": "ledger" })),
        ("max_per_second", json!(5)),
        ("max_in_flight", json!(5)),
        ("timeout", json!(5)),
        ("retry_schedule", json!([60])),
        ("ordering", json!("record")),
        ("signature", json!("ed25519")),
    ] {
        let changed = fixture.update::<WebhookSubscription>(id, json!({ field: value }));
        assert_eq!(refusal(changed), format!("{field} read_only_field"));
    }
    let changed =
        fixture.update::<WebhookSubscription>(id, json!({ "events": ["invoice.paid"], "description": "Paid" }));
    assert_eq!(changed.unwrap().description.unwrap().as_str(), "Paid");
    // No request makes an ordinary subscription one of these.
    let other: WebhookSubscription =
        fixture.create(json!({ "url": "https://example.com/hook", "events": ["*"] })).unwrap();
    for url in ["nats://nats.example.com/svc", "amqps://rabbit.example.com/a/b", "kafka://kafka.example.com/a"] {
        assert_eq!(
            refusal(fixture.update::<WebhookSubscription>(other.id, json!({ "url": url }))),
            "url invalid_format"
        );
        let created = fixture.create::<WebhookSubscription>(json!({ "url": url, "events": ["*"] }));
        assert_eq!(refusal(created), "url invalid_format");
    }
}

#[test]
fn it_ends_when_it_is_disabled_and_begins_again_when_it_is_enabled() {
    let fixture = Rules::new();
    let id = fixture.to_broker(json!({ "to": ENGINE, "events": ["contact.created"] }), Actor::System).unwrap().id;
    fixture.contact_in("ada", "Perth");
    fixture.set_enabled(id, false);
    fixture.contact_in("bob", "Perth");
    assert_eq!((fixture.streams_behind(), fixture.published(id)), (0, vec![]));
    fixture.set_enabled(id, true);
    fixture.contact_in("grace", "Perth");
    assert_eq!(fixture.published(id), ["contact.created grace"]);
    fixture.contact_in("edsger", "Perth");
    fixture.delete::<WebhookSubscription>(id).unwrap();
    assert_eq!((fixture.streams_behind(), fixture.published(id)), (0, vec![]));
}

#[test]
fn operators_alone_create_change_and_delete_it() {
    let fixture = Rules::new();
    let body = json!({ "to": ENGINE, "events": ["*"] });
    let operators = [Actor::Cli("root".to_owned()), Actor::PlatformKey(Uuid::nil().into())];
    let others = [Actor::Key(Uuid::nil().into()), Actor::Dashboard("Ada".to_owned())];
    let id = operators.map(|actor| fixture.to_broker(body.clone(), actor).unwrap().id)[0];
    for actor in others {
        assert_eq!(refusal(fixture.to_broker(body.clone(), actor.clone())), "not_allowed");
        let input = (fixture.tenant, id, actor);
        let changed = fixture.write(input.clone(), async |tx, (tenant, id, actor)| {
            tx.act_as(actor.clone());
            let change = WebhookUpdate::from_body(br#"{"enabled": false}"#)?;
            crud::update::<WebhookSubscription>(tx, *tenant, *id, change).await
        });
        assert_eq!(refusal(changed), "not_allowed");
        let deleted = fixture.write(input, async |tx, (tenant, id, actor)| {
            tx.act_as(actor.clone());
            crud::delete::<WebhookSubscription>(tx, *tenant, *id).await
        });
        assert_eq!(refusal(deleted), "not_allowed");
    }
}
