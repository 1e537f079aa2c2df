//! Webhook subscriptions: allowed URLs, enabling after a pause, and test deliveries.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use svc_core::accounts::actor::Actor;
use svc_core::accounts::apps::AppId;
use svc_core::accounts::grants::GrantId;
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::values::{EventKind, EventKinds};
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use svc_core::webhooks::options;
use svc_core::webhooks::samples;
use svc_core::webhooks::subscriptions::{
    self, DisabledReason, SubscriptionId, WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret,
    WebhookUpdate,
};
use uuid::Uuid;

use super::{Rules, json_of, refusal};

fn to(url: &str) -> Value {
    json!({ "url": url, "events": ["*"] })
}

#[test]
fn a_new_subscription_has_every_field() {
    let fixture = Rules::new();
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
    let public = Rules::new();
    let private = Rules::with_private_webhooks();
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
    let fixture = Rules::new();
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
    let fixture = Rules::new();
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
    let fixture = Rules::new();
    let subscription: WebhookSubscription = fixture.create(to("https://example.com")).unwrap();
    assert_eq!(fixture.delete::<WebhookSubscription>(subscription.id), Ok(()));
    assert_eq!(fixture.get::<WebhookSubscription>(subscription.id), Err(Error::NotFound));
    assert_eq!(fixture.delete::<WebhookSubscription>(subscription.id), Err(Error::NotFound));
    let change = fixture.update::<WebhookSubscription>(subscription.id, json!({ "enabled": true }));
    assert_eq!(change, Err(Error::NotFound));
}

#[test]
fn a_change_without_effect_writes_nothing() {
    let fixture = Rules::new();
    let subscription: WebhookSubscription = fixture.create(to("https://example.com")).unwrap();
    let body = json!({ "url": "https://example.com", "events": ["*"], "enabled": true, "description": "" });
    assert_eq!(fixture.update(subscription.id, body), Ok(subscription));
}

fn send_test(fixture: &Rules, id: SubscriptionId, kind: Option<EventKind>) -> Result<Delivery, Error> {
    let tenant = fixture.tenant;
    fixture
        .write((tenant, id, kind), async |tx, &(tenant, id, kind)| subscriptions::send_test(tx, tenant, id, kind).await)
}

#[test]
fn a_test_is_sent_to_its_subscription_only() {
    let fixture = Rules::new();
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
    let fixture = Rules::new();
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

/// A body with an option of each kind that has a secret.
fn with_secrets(url: &str) -> Value {
    let section = |label: &str, base64: &str| format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n");
    json!({
        "url": url,
        "events": ["*"],
        "headers": { "X-Api-Key": "k3y" },
        "authentication": { "type": "bearer", "token": "t0ken" },
        "client_certificate": {
            "certificate": section("CERTIFICATE", "MAA="), "private_key": section("PRIVATE KEY", "MAAw"),
        },
        "certificate_authority": section("CERTIFICATE", "MAA="),
        "filter": "data.id != \"\"",
        "timeout": 20,
    })
}

/// Returns which options with secrets a subscription has.
fn secrets_of(subscription: &WebhookSubscription) -> (bool, bool, bool) {
    let WebhookSubscription { headers, authentication, client_certificate, .. } = subscription;
    (headers.is_some(), authentication.is_some(), client_certificate.is_some())
}

#[test]
fn a_url_at_another_host_takes_no_secret_along() {
    let fixture = Rules::with_private_webhooks();
    let (all, none) = ((true, true, true), (false, false, false));
    for (url, want) in [
        ("https://example.com/hook", all),
        ("https://example.com/other?key=1", all),
        ("https://EXAMPLE.com:443/hook", all),
        ("http://example.com/hook", none),
        ("https://example.com:8443/hook", none),
        ("https://hooks.example.com/hook", none),
        ("https://example.com.attacker.example/hook", none),
        ("https://attacker.example/https://example.com/hook", none),
        ("https://127.0.0.1/hook", none),
    ] {
        let before: WebhookSubscription = fixture.create(with_secrets("https://example.com/hook")).unwrap();
        let moved: WebhookSubscription = fixture.update(before.id, json!({ "url": url })).unwrap();
        assert_eq!(secrets_of(&moved), want, "{url}");
        let kept = |subscription: &WebhookSubscription| {
            let WebhookSubscription { secret, filter, timeout, certificate_authority, .. } = subscription.clone();
            (secret, filter, timeout, certificate_authority)
        };
        assert_eq!(kept(&moved), kept(&before), "what is no secret, and what is never sent, stays");
        let back: WebhookSubscription =
            fixture.update(before.id, json!({ "url": "https://example.com/hook" })).unwrap();
        assert_eq!(secrets_of(&back), want, "what is gone is not kept for a way back");

        let other: WebhookSubscription = fixture.create(with_secrets("https://example.com/hook")).unwrap();
        let mut change = with_secrets(url);
        change["client_certificate"] = Value::Null;
        let moved: WebhookSubscription = fixture.update(other.id, change).unwrap();
        assert_eq!(secrets_of(&moved), (true, true, false), "the change says itself what the new host gets");
    }
}

#[test]
fn the_webhook_of_an_app_is_changed_by_the_app_alone() {
    let fixture = Rules::new();
    let (app, grant, other) = (AppId::new(Uuid::from_u128(1)), GrantId::new(Uuid::from_u128(2)), Uuid::from_u128(3));
    let of_app = Actor::App { app, grant };
    let others = [
        Actor::System,
        Actor::Cli("ada".to_owned()),
        Actor::Key(other.into()),
        Actor::PlatformKey(other.into()),
        Actor::Dashboard("ada@example.com".to_owned()),
        Actor::App { app, grant: other.into() },
    ];
    let tenant = fixture.tenant;
    let created = fixture.write((tenant, of_app.clone()), async |tx, (tenant, actor)| {
        tx.act_as(actor.clone());
        let input = WebhookCreate::from_body(with_secrets("https://app.example.com/hook").to_string().as_bytes())?;
        crud::create::<WebhookSubscription>(tx, *tenant, input).await
    });
    let created = created.unwrap();
    let update = |actor: &Actor, body: Value| {
        fixture.write((tenant, actor.clone(), created.id, body), async |tx, (tenant, actor, id, body)| {
            tx.act_as(actor.clone());
            let input = WebhookUpdate::from_body(body.to_string().as_bytes())?;
            crud::update::<WebhookSubscription>(tx, *tenant, *id, input).await
        })
    };
    let rotate = |actor: &Actor, finish: bool| {
        fixture.write((tenant, actor.clone(), created.id, finish), async |tx, (tenant, actor, id, finish)| {
            tx.act_as(actor.clone());
            match finish {
                true => subscriptions::finish_rotation(tx, *tenant, *id).await,
                false => subscriptions::rotate_secret(tx, *tenant, *id, Duration::from_secs(60)).await,
            }
        })
    };
    let changes = [
        json!({ "url": "https://app.example.com/other" }),
        json!({ "url": "https://attacker.example/" }),
        json!({ "headers": { "X-Api-Key": "mine" } }),
        json!({ "headers": null, "enabled": false }),
        json!({ "authentication": null }),
        json!({ "events": ["job.created"] }),
        json!({ "signature": "ed25519" }),
    ];
    for actor in &others {
        let is_refused = |result| matches!(result, Err(Error::NotAllowed(_)));
        // Another app sees nothing of it.
        let is_refused = |result: Result<WebhookSubscription, Error>| {
            if actor.grant().is_some() { result == Err(Error::NotFound) } else { is_refused(result) }
        };
        for change in &changes {
            assert!(is_refused(update(actor, change.clone())), "{actor}: {change}");
        }
        assert!(is_refused(rotate(actor, false)) && is_refused(rotate(actor, true)), "{actor}");
        if actor.grant().is_none() {
            let off = update(actor, json!({ "enabled": false })).unwrap();
            assert_eq!((off.enabled, secrets_of(&off)), (false, (true, true, true)));
            let on = update(actor, json!({ "url": "https://app.example.com/hook", "enabled": true })).unwrap();
            assert!(on.enabled, "what stays the same is no change");
        }
    }
    for change in changes {
        update(&of_app, change).unwrap();
    }
    assert_ne!(rotate(&of_app, false).unwrap().secret, created.secret);
    rotate(&of_app, true).unwrap();
}

#[test]
fn a_receiver_keeps_the_secret_that_it_has_from_another_sender() {
    let fixture = Rules::new();
    let with = |secret: &str| {
        let mut body = to("https://example.com");
        body["secret"] = json!(secret);
        fixture.create::<WebhookSubscription>(body)
    };
    for bytes in [24, 32, 64] {
        let secret = format!("whsec_{}", STANDARD.encode(vec![b'k'; bytes]));
        let created = with(&secret).unwrap();
        assert_eq!(created.secret.reveal(), secret);
        assert_eq!(WebhookSubscriptionWithSecret::from(created).secret, secret, "the response has it as always");
    }
    let of_bytes = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![b'k'; bytes]));
    let refused: Vec<String> = [
        of_bytes(23),
        of_bytes(65),
        of_bytes(32).replace('=', ""),
        of_bytes(32).replace("whsec_", ""),
        "whsec_".to_owned(),
        "whsec_????????".to_owned(),
    ]
    .iter()
    .map(|secret| {
        let Err(Error::Validation(violations)) = with(secret) else { panic!("{secret}") };
        let violation = &violations.as_slice()[0];
        assert!(secret.len() < 10 || !violation.message.contains(&secret[7..]), "{violation:?}");
        format!("{} {}: {}", violation.field, violation.code, violation.message)
    })
    .collect();
    let rule = "secret invalid_format: secret must be whsec_ and the base64 of 24 to 64 bytes";
    let reasons = [
        "it has 23",
        "it has 65",
        "what follows is not base64 with its padding",
        "it does not begin with whsec_",
        "it has 0",
        "what follows is not base64 with its padding",
    ];
    assert_eq!(refused, reasons.map(|reason| format!("{rule}: {reason}")));
    let given = fixture.create::<WebhookSubscription>(to("https://example.com")).unwrap();
    let change = fixture.update::<WebhookSubscription>(given.id, json!({ "secret": of_bytes(32) }));
    assert_eq!(refusal(change), "secret read_only_field", "another one comes by a rotation");
}
