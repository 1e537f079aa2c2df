//! Webhook subscriptions: allowed URLs, enabling after a pause, and test deliveries.

use serde_json::{Value, json};
use svc_core::accounts::tenants::TenantCreate;
use svc_core::error::Error;
use svc_core::resources::contacts::Contact;
use svc_core::values::HostPolicy;
use svc_core::values::{EventKind, EventKinds};
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use svc_core::webhooks::options;
use svc_core::webhooks::samples;
use svc_core::webhooks::subscriptions::{
    self, DisabledReason, SubscriptionId, WebhookSubscription, WebhookSubscriptionWithSecret,
};

use crate::{Fixture, START, json_of, refusal};

fn to(url: &str) -> Value {
    json!({ "url": url, "events": ["*"] })
}

#[test]
fn a_new_subscription_has_every_field() {
    let fixture = Fixture::new();
    let events = json!(["job.created", "contact.created", "job.created"]);
    let body = json!({ "url": " https://EXAMPLE.com/hook ", "events": events, "description": "" });
    let subscription: WebhookSubscription = fixture.create(body).unwrap();
    let mut shown = json!({
        "id": subscription.id, "url": "https://EXAMPLE.com/hook", "events": ["job.created", "contact.created"],
        "enabled": true, "description": null, "created_at": "2026-03-14T15:09:26.535898Z", "last_delivery_at": null,
        "last_delivery_status": null, "disabled_reason": null, "paused_at": null, "consecutive_failures": 0,
    });
    options::FIELDS.iter().for_each(|field| shown[*field] = Value::Null);
    assert_eq!(json_of(&subscription), shown, "no secret and no deleted_at");
    let secret = subscription.secret.reveal().to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() == 6 + 44, "{secret}");
    let mut once = shown;
    once["secret"] = json!(secret);
    assert_eq!(json_of(&WebhookSubscriptionWithSecret::from(subscription)), once);
    assert_ne!(fixture.create::<WebhookSubscription>(to("https://example.com")).unwrap().secret.reveal(), secret);
    assert_eq!(fixture.new_kinds(), "");
}

#[test]
fn urls_must_have_public_hosts() {
    let public = Fixture::new();
    let private = Fixture::of(TenantCreate::named("Dev"), HostPolicy::AllowPrivate, START);
    let kept: WebhookSubscription = public.create(to("https://example.com")).unwrap();
    for url in [
        "http://example.com",
        "https://localhost/hook",
        "https://127.0.0.1",
        "https://0x7f.1",
        "https://10.0.0.1:8443/x",
        "https://[::1]",
        "https://169.254.169.254/latest/meta-data",
        "https://printer.local",
    ] {
        assert_eq!(refusal(public.create::<WebhookSubscription>(to(url))), "url invalid_format", "{url}");
        let change = public.update::<WebhookSubscription>(kept.id, json!({ "url": url, "description": "x" }));
        assert_eq!(refusal(change), "url invalid_format", "{url}");
        assert!(private.create::<WebhookSubscription>(to(url)).is_ok(), "{url}");
    }
    assert_eq!(public.get(kept.id), Ok(kept.clone()));
    let moved: WebhookSubscription = public.update(kept.id, json!({ "url": "https://1.1.1.1/hook" })).unwrap();
    assert_eq!((moved.url.as_str(), moved.secret), ("https://1.1.1.1/hook", kept.secret));
}

/// Returns a subscription as it is after the service has paused it.
fn paused(subscription: &WebhookSubscription) -> WebhookSubscription {
    WebhookSubscription {
        enabled: false,
        disabled_reason: Some(DisabledReason::AutoPaused),
        paused_at: Some(subscription.created_at),
        consecutive_failures: 10,
        last_delivery_status: Some(503),
        ..subscription.clone()
    }
}

#[test]
fn enabling_a_paused_subscription_resets_its_failures() {
    let fixture = Fixture::new();
    let fresh: WebhookSubscription = fixture.create(to("https://example.com")).unwrap();
    let paused = paused(&fresh);
    fixture.replace(paused.clone());
    let described: WebhookSubscription = fixture.update(fresh.id, json!({ "description": "x" })).unwrap();
    assert_eq!((described.enabled, described.disabled_reason), (false, Some(DisabledReason::AutoPaused)));
    assert_eq!(described.consecutive_failures, 10);

    let resumed: WebhookSubscription =
        fixture.update(fresh.id, json!({ "enabled": true, "description": null })).unwrap();
    let want = WebhookSubscription { last_delivery_status: Some(503), updated_at: resumed.updated_at, ..fresh };
    assert_eq!(resumed, want);
    let off: WebhookSubscription = fixture.update(resumed.id, json!({ "enabled": false })).unwrap();
    assert_eq!((off.enabled, off.disabled_reason, off.paused_at), (false, None, None));
    let failing = WebhookSubscription { enabled: true, consecutive_failures: 3, ..off };
    fixture.replace(failing.clone());
    let reset: WebhookSubscription = fixture.update(failing.id, json!({ "enabled": true })).unwrap();
    assert_eq!(reset.consecutive_failures, 0, "enabling resets failures before a pause too");
    assert_eq!(fixture.new_kinds(), "");
}

#[test]
fn disabling_a_paused_subscription_ends_the_pause_and_holds_no_more_events() {
    let fixture = Fixture::new();
    let (tenant, fresh) = (fixture.tenant, fixture.create::<WebhookSubscription>(to("https://example.com")).unwrap());
    let paused = paused(&fresh);
    fixture.replace(paused.clone());
    let held_after = |email: &str| {
        fixture.create::<Contact>(json!({ "email": email })).unwrap();
        let count = fixture.write((tenant, fresh.id), async |tx, &(tenant, id)| {
            Ok(tx.count_deliveries(tenant, id, DeliveryStatus::Held).await?)
        });
        count.unwrap()
    };
    assert_eq!(held_after("ada@example.com"), 1, "a paused subscription holds its events");

    let off: WebhookSubscription = fixture.update(fresh.id, json!({ "enabled": false })).unwrap();
    let want =
        WebhookSubscription { disabled_reason: None, paused_at: None, updated_at: off.updated_at, ..paused.clone() };
    assert_eq!(off, want);
    assert!(off.updated_at > paused.updated_at);
    assert_eq!(held_after("grace@example.com"), 1, "a disabled one gets no further deliveries");
    assert_eq!(fixture.update(fresh.id, json!({ "enabled": false })), Ok(off), "a second time changes nothing");
}

#[test]
fn a_deleted_subscription_is_not_found() {
    let fixture = Fixture::new();
    let subscription: WebhookSubscription = fixture.create(to("https://example.com")).unwrap();
    assert_eq!(fixture.delete::<WebhookSubscription>(subscription.id), Ok(()));
    assert_eq!(fixture.get::<WebhookSubscription>(subscription.id), Err(Error::NotFound));
    assert_eq!(fixture.delete::<WebhookSubscription>(subscription.id), Err(Error::NotFound));
    let change = fixture.update::<WebhookSubscription>(subscription.id, json!({ "enabled": true }));
    assert_eq!(change, Err(Error::NotFound));
}

#[test]
fn a_change_without_effect_writes_nothing() {
    let fixture = Fixture::new();
    let subscription: WebhookSubscription = fixture.create(to("https://example.com")).unwrap();
    let body = json!({ "url": "https://example.com", "events": ["*"], "enabled": true, "description": "" });
    assert_eq!(fixture.update(subscription.id, body), Ok(subscription));
}

fn send_test(fixture: &Fixture, id: SubscriptionId, kind: Option<EventKind>) -> Result<Delivery, Error> {
    let tenant = fixture.tenant;
    fixture
        .write((tenant, id, kind), async |tx, &(tenant, id, kind)| subscriptions::send_test(tx, tenant, id, kind).await)
}

#[test]
fn a_test_is_sent_to_its_subscription_only() {
    let fixture = Fixture::new();
    let all: WebhookSubscription = fixture.create(to("https://example.com")).unwrap();
    let some = json!({ "url": "https://example.org", "events": ["job.updated", "job.created"] });
    let some: WebhookSubscription = fixture.create(some).unwrap();
    for (id, kind, want) in [
        (all.id, None, EventKind::ContactCreated),
        (all.id, Some(EventKind::StayNoShow), EventKind::StayNoShow),
        (some.id, None, EventKind::JobUpdated),
        (some.id, Some(EventKind::JobCreated), EventKind::JobCreated),
    ] {
        let delivery = send_test(&fixture, id, kind).unwrap();
        assert_eq!((delivery.subscription_id, delivery.status), (id, DeliveryStatus::Pending));
        let event = fixture.new_events().pop().unwrap();
        assert_eq!((event.id, event.kind, event.only_for), (delivery.event_id, want, Some(id)));
        let data: Value = serde_json::from_str(event.data.get()).unwrap();
        assert_eq!((data, event.is_test()), (samples::data(&EventKinds::default(), want).unwrap(), true));
    }
}

#[test]
fn a_test_needs_an_enabled_subscription_to_its_kind() {
    let fixture = Fixture::new();
    let body = json!({ "url": "https://example.org", "events": ["job.updated", "job.created"] });
    let some: WebhookSubscription = fixture.create(body).unwrap();
    let refused = |kind| match send_test(&fixture, some.id, kind).unwrap_err() {
        Error::NotAllowed(reason) => reason,
        other => panic!("{other:?}"),
    };
    let reason = refused(Some(EventKind::InvoicePaid));
    assert_eq!(reason, "The subscription does not take invoice.paid; it takes job.updated, job.created.");
    fixture.replace(WebhookSubscription { enabled: false, ..some.clone() });
    assert_eq!(refused(None), "The subscription is disabled; enable it first.");
    let disabled_reason = Some(DisabledReason::AutoPaused);
    fixture.replace(WebhookSubscription { enabled: false, disabled_reason, ..some.clone() });
    assert_eq!(refused(None), "The subscription is paused; enable it first.");
    assert_eq!(fixture.delete::<WebhookSubscription>(some.id), Ok(()));
    assert_eq!(send_test(&fixture, some.id, None), Err(Error::NotFound));
    assert_eq!(fixture.new_kinds(), "");
}
