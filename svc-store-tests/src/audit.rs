//! The audit log: every change of tenants, keys and subscriptions is recorded with its actor.

use std::time::Duration;

use serde_json::{Value, json};
use svc_core::accounts::actor::{Actor, acting};
use svc_core::accounts::audit::{self, AuditEntry};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, DeveloperAccess};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::values::{AnyObject, EventKind, TenantId, Timestamp};
use svc_core::webhooks::events;
use svc_core::webhooks::subscriptions::{self, WebhookSubscription};
use uuid::Uuid;

use crate::Harness;

impl Harness {
    /// Returns the audit log of a tenant, oldest entry first.
    async fn log(&self, tenant: TenantId) -> Vec<AuditEntry> {
        let beginning = Timestamp::from_micros(0);
        let log = self.read((tenant, beginning), async |tx, &(tenant, beginning)| {
            Ok(tx.audit_entries(tenant, beginning, Timestamp::MAX, 1_000).await?)
        });
        let mut log = log.await.unwrap();
        log.reverse();
        log
    }

    /// Advances the clock, so that the order of two changes is known.
    fn advance(&self) {
        self.clock.advance(Duration::from_millis(1));
    }
}

fn values(entry: &AuditEntry) -> (Value, Value) {
    let read = |json: &Option<AnyObject>| {
        json.as_ref().map_or(Value::Null, |json| serde_json::from_str(json.as_str()).unwrap())
    };
    (read(&entry.before), read(&entry.after))
}

fn action(entry: &AuditEntry) -> (String, Uuid) {
    (format!("{} {}", entry.object_kind, entry.action), entry.object_id)
}

pub(super) async fn every_change_is_recorded(h: Harness) {
    let tenant = h.tenant().await;
    h.advance();
    for _ in 0..2 {
        let suspend = h.write(tenant, async |tx, &tenant| {
            tenants::update(tx, tenant.0, |tenant| tenant.developer_access = DeveloperAccess::Suspended).await
        });
        suspend.await.unwrap();
    }
    h.advance();
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: true };
    let created = input.clone();
    let key = h
        .write((tenant, created), async |tx, (tenant, created)| keys::create(tx, *tenant, created.clone()).await)
        .await
        .unwrap();
    h.advance();
    let revoked = h
        .write((tenant, input), async |tx, (tenant, input)| keys::create(tx, *tenant, input.clone()).await)
        .await
        .unwrap()
        .key
        .id;
    h.advance();
    for _ in 0..2 {
        h.write(revoked, async |tx, &revoked| keys::revoke(tx, revoked).await).await.unwrap();
    }
    h.advance();
    let id = key.key.id;
    let rotated = h.write(id, async |tx, &id| keys::rotate(tx, id, Duration::ZERO).await).await.unwrap();
    h.advance();
    let body = json!({ "url": "https://example.com", "events": ["*"] });
    let webhook = h.create::<WebhookSubscription>(tenant, body).await.unwrap();
    h.advance();
    let hook = webhook.id;
    for _ in 0..2 {
        h.update::<WebhookSubscription>(tenant, hook, json!({ "description": "x" })).await.unwrap();
    }
    h.advance();
    let new = h
        .write((tenant, hook), async |tx, &(tenant, hook)| {
            subscriptions::rotate_secret(tx, tenant, hook, Duration::ZERO).await
        })
        .await
        .unwrap();
    h.advance();
    h.delete::<WebhookSubscription>(tenant, hook).await.unwrap();
    h.contact(tenant, "ada@example.com").await;

    let log = h.log(tenant).await;
    let mut actions: Vec<(String, Uuid)> = log.iter().map(action).collect();
    // These two entries have the same time.
    actions[5..7].sort();
    let want = [
        ("tenant create", tenant.0),
        ("tenant update", tenant.0),
        ("key create", id.uuid()),
        ("key create", revoked.uuid()),
        ("key revoke", revoked.uuid()),
        ("key create", rotated.key.id.uuid()),
        ("key rotate", id.uuid()),
        ("webhook create", hook.uuid()),
        ("webhook update", hook.uuid()),
        ("webhook rotate", hook.uuid()),
        ("webhook delete", hook.uuid()),
    ];
    assert_eq!(actions, want.map(|(what, id)| (what.to_owned(), id)));
    assert!(log.iter().all(|entry| entry.tenant_id == tenant && entry.actor == "system"));
    assert!(log.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].id < pair[1].id));
    let (before, after) = values(&log[1]);
    assert_eq!((&before["developer_access"], &after["developer_access"]), (&json!("approved"), &json!("suspended")));
    assert_eq!(values(&log[0]).0, Value::Null);
    assert_eq!(values(&log[10]).1, Value::Null);
    let text = format!("{log:?}");
    let secrets = [&webhook.secret, &new.secret, &key.text, &rotated.text];
    assert!(secrets.iter().all(|secret| !text.contains(secret.reveal())));
    assert!(!text.contains(key.key.signing_secret.as_ref().unwrap().reveal()));
}

pub(super) async fn the_actor_of_the_transaction_is_recorded(h: Harness) {
    let tenant = h.tenant().await;
    let key = Uuid::from_u128(7).into();
    h.advance();
    let by_key = h.write((key, tenant), async |tx, &(key, tenant)| {
        tx.act_as(Actor::Key(key));
        tenants::update(tx, tenant.0, |tenant| tenant.name = "a".to_owned()).await
    });
    by_key.await.unwrap();
    h.advance();
    let store = acting(std::sync::Arc::clone(&h.store), Actor::Cli("ada".to_owned()));
    let by_cli = store
        .write("test", tenant.0, async |tx, &id| tenants::update(tx, id, |tenant| tenant.name = "b".to_owned()).await);
    by_cli.await.unwrap();
    h.advance();
    let by_none =
        h.write(tenant, async |tx, &tenant| tenants::update(tx, tenant.0, |tenant| tenant.name = "c".to_owned()).await);
    by_none.await.unwrap();
    let actors: Vec<String> = h.log(tenant).await.into_iter().map(|entry| entry.actor).collect();
    assert_eq!(actors, ["system".to_owned(), format!("key:{key}"), "cli:ada".to_owned(), "system".to_owned()]);
}

/// Changes of records are listed from their events, which have an actor.
pub(super) async fn events_have_an_actor(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let key = Uuid::from_u128(7).into();
    h.advance();
    let start = h.store.env().now();
    let by_key = h.write((key, tenant), async |tx, &(key, tenant)| {
        tx.act_as(Actor::Key(key));
        let input = ContactCreate::from_body(br#"{ "email": "ada@example.com" }"#)?;
        crud::create::<Contact>(tx, tenant, input).await
    });
    let contact = by_key.await.unwrap().id;
    h.advance();
    let by_none =
        h.write(tenant, async |tx, &tenant| tenants::update(tx, tenant.0, |tenant| tenant.name = "b".to_owned()).await);
    by_none.await.unwrap();
    h.advance();
    let store = acting(std::sync::Arc::clone(&h.store), Actor::Cli("ada".to_owned()));
    store
        .write("test", (tenant, contact), async |tx, &(tenant, contact)| {
            crud::delete::<Contact>(tx, tenant, contact).await
        })
        .await
        .unwrap();
    let hook = h.subscription(tenant, |_| {}).await;
    h.advance();
    h.write((tenant, hook), async |tx, &(tenant, hook)| subscriptions::send_test(tx, tenant, hook, None).await)
        .await
        .unwrap();
    h.advance();
    let stay = json!({ "id": 7 });
    h.write((tenant, stay), async |tx, (tenant, stay)| {
        events::record_external(tx, *tenant, EventKind::StayCreated, stay).await.map(drop)
    })
    .await
    .unwrap();

    let listed = |tenant, limit| {
        h.read((tenant, start, limit), async |tx, &(tenant, start, limit)| audit::list(tx, tenant, start, limit).await)
    };
    let log = listed(tenant, 100).await.unwrap();
    let event = h.events(tenant).await.pop().unwrap().id;
    let actions: Vec<(String, Uuid, &str)> =
        log.iter().map(|entry| (action(entry).0, entry.object_id, entry.actor.as_str())).collect();
    let by = format!("key:{key}");
    let want = [
        ("stay created", event.uuid(), "system"),
        ("webhook test", hook.uuid(), "system"),
        ("contact deleted", contact.uuid(), "cli:ada"),
        ("tenant update", tenant.0, "system"),
        ("contact created", contact.uuid(), by.as_str()),
    ];
    assert_eq!(actions, want.map(|(what, id, actor)| (what.to_owned(), id, actor)));
    assert_eq!(values(&log[4]).1["email"], "ada@example.com");
    assert!(log.windows(2).all(|pair| pair[0].at > pair[1].at));
    let newest = listed(tenant, 2).await.unwrap();
    assert_eq!(newest.iter().map(|entry| entry.id).collect::<Vec<_>>(), [log[0].id, log[1].id]);
    assert_eq!(listed(other, 100).await.unwrap().len(), 0, "another tenant has no entries");
}

pub(super) async fn a_failed_change_is_not_recorded(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let failed = h.write(tenant, async |tx, &tenant| {
        tenants::update(tx, tenant.0, |tenant| tenant.name = "x".to_owned()).await?;
        Err::<(), _>(Error::PreconditionFailed)
    });
    failed.await.unwrap_err();
    assert_eq!((h.log(tenant).await.len(), h.log(other).await.len()), (1, 1));
    let now = h.store.env().now();
    let since = |at: Timestamp, limit| {
        h.read((tenant, at, limit), async |tx, &(tenant, at, limit)| {
            Ok(tx.audit_entries(tenant, at, Timestamp::MAX, limit).await?.len())
        })
    };
    assert_eq!(since(now, 10).await, Ok(1), "at or after");
    assert_eq!(since(now.next(), 10).await, Ok(0));
    h.advance();
    let renamed =
        h.write(tenant, async |tx, &tenant| tenants::update(tx, tenant.0, |tenant| tenant.name = "y".to_owned()).await);
    renamed.await.unwrap();
    assert_eq!(since(now, 1).await, Ok(1));
    let newest = h.read((tenant, now), async |tx, &(tenant, now)| {
        Ok(tx.audit_entries(tenant, now, Timestamp::MAX, 1).await?.remove(0).action)
    });
    assert_eq!(newest.await.as_deref(), Ok("update"), "the newest entry comes first");
}
