//! Tests of the replay of one delivery, against the in-memory store.

use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;

use super::*;
use crate::accounts::apps::AppCreate;
use crate::accounts::clocks::advance_clock;
use crate::accounts::operational::{OperationalKind, PLATFORM_ACCOUNT};
use crate::accounts::tenants::{self, TenantCreate};
use crate::env::{Env, ManualClock, SeededEntropy};
use crate::input::Input as _;
use crate::oauth;
use crate::store::memory::MemoryStore;
use crate::store::{Store, UnitOfWorkFn};
use crate::values::{EventKind, RedirectUri};
use crate::webhooks::events;
use crate::webhooks::subscriptions::{WebhookCreate, WebhookUpdate};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// A store with a tenant, an endpoint and one delivery to it.
struct OneDelivery {
    store: MemoryStore,
    clock: ManualClock,
    tenant: TenantId,
    delivery: Delivery,
}

impl OneDelivery {
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897));
        let store = MemoryStore::new(Env::new(clock.clone(), SeededEntropy::new(1)));
        let fill = write(&store, (), async |tx, ()| {
            let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
            let input = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
            crud::create::<WebhookSubscription>(tx, tenant, input).await?;
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
            let deliveries = tx.list_deliveries(tenant, &DeliveryFilter::default()).await?;
            Ok((tenant, deliveries))
        });
        let (tenant, mut deliveries) = fill.unwrap();
        Self { store, clock, tenant, delivery: deliveries.remove(0) }
    }

    fn put(&self, delivery: &Delivery) {
        let (delivery, lease) = (delivery.clone(), self.get().lease);
        let put = write(&self.store, (delivery, lease), async |tx, (delivery, lease)| {
            Ok(tx.update_delivery(delivery, *lease).await?)
        });
        assert_eq!(put, Ok(()));
    }

    fn get(&self) -> Delivery {
        let (tenant, id) = (self.tenant, self.delivery.id);
        let get = write(&self.store, (tenant, id), async |tx, &(tenant, id)| Ok(tx.delivery(tenant, id).await?));
        get.unwrap().unwrap()
    }

    fn replay(&self) -> Result<Delivery, Error> {
        let (tenant, id) = (self.tenant, self.delivery.id);
        write(&self.store, (tenant, id), async |tx, &(tenant, id)| replay_delivery(tx, tenant, id).await)
    }

    fn enable(&self, enabled: bool) {
        let (tenant, id) = (self.tenant, self.delivery.subscription_id);
        let patch = write(&self.store, (enabled, tenant, id), async |tx, &(enabled, tenant, id)| {
            let input = WebhookUpdate::from_body(json!({ "enabled": enabled }).to_string().as_bytes());
            crud::update::<WebhookSubscription>(tx, tenant, id, input?).await
        });
        patch.unwrap();
    }
}

fn write<I, T>(store: &dyn Store, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    store.write("replays", input, work).now_or_never().unwrap()
}

#[test]
fn a_replayed_delivery_is_due_now_with_all_its_retries() {
    let fixture = OneDelivery::new();
    let now = fixture.store.env().now();
    for status in DeliveryStatus::ALL.iter().copied() {
        let pending = status == DeliveryStatus::Pending;
        let before = Delivery {
            status,
            attempts: 6,
            failures: 6,
            last_status: Some(500),
            next_attempt_at: now.checked_add(HOUR).filter(|_| pending),
            ..fixture.delivery.clone()
        };
        fixture.put(&before);
        let want = Delivery { status: DeliveryStatus::Pending, failures: 0, next_attempt_at: Some(now), ..before };
        assert_eq!(fixture.replay(), Ok(want.clone()), "{status}");
        assert_eq!(fixture.get(), want);
    }
}

#[test]
fn a_delivery_is_not_replayed_while_an_attempt_is_in_progress() {
    let fixture = OneDelivery::new();
    let ends = fixture.store.env().now().checked_add(MINUTE).unwrap();
    let mut leased = fixture.delivery.clone();
    leased.claim(fixture.store.env().id(ends), ends);
    fixture.put(&leased);
    assert!(matches!(fixture.replay(), Err(Error::NotAllowed(_))));
    // A delivery that was held during its attempt keeps the lease.
    fixture.enable(false);
    fixture.enable(true);
    assert_eq!(fixture.get().status, DeliveryStatus::Held);
    assert!(matches!(fixture.replay(), Err(Error::NotAllowed(_))));
    assert_eq!(fixture.get().lease, leased.lease);
    // The lease has ended without an outcome.
    fixture.clock.advance(MINUTE);
    let replayed = fixture.replay().unwrap();
    assert_eq!(
        (replayed.status, replayed.lease, replayed.next_attempt_at),
        (DeliveryStatus::Pending, None, Some(ends))
    );
    assert_eq!(replayed.attempts, 1);
}

#[test]
fn a_delivery_is_replayed_only_to_an_active_subscription_of_its_tenant() {
    let fixture = OneDelivery::new();
    fixture.enable(false);
    let held = fixture.get();
    assert_eq!(held.status, DeliveryStatus::Held);
    assert!(matches!(fixture.replay(), Err(Error::NotAllowed(_))));
    fixture.enable(true);
    assert_eq!(fixture.get(), held, "enabling the subscription does not restart it");
    assert!(fixture.replay().is_ok());
    let (tenant, id) = (fixture.tenant, fixture.delivery.subscription_id);
    let delete = write(&fixture.store, (tenant, id), async |tx, &(tenant, id)| {
        crud::delete::<WebhookSubscription>(tx, tenant, id).await
    });
    assert_eq!(delete, Ok(()));
    assert!(matches!(fixture.replay(), Err(Error::NotAllowed(_))));
    let unknown = write(&fixture.store, tenant, async |tx, &tenant| replay_delivery(tx, tenant, Id::nil()).await);
    assert_eq!(unknown, Err(Error::NotFound));
    let other =
        write(&fixture.store, (), async |tx, ()| tenants::create(tx, TenantCreate::named("Other")).await).unwrap().id;
    let id = fixture.delivery.id;
    let theirs = write(&fixture.store, (other, id), async |tx, &(other, id)| replay_delivery(tx, other, id).await);
    assert_eq!(theirs, Err(Error::NotFound));
}

/// Apps of different developers have their webhooks in the platform account. The event of one's disconnection is never
/// sent to another: not when it happens, and not by a replay of what was missed.
#[test]
fn a_replay_of_what_was_missed_sends_an_app_what_it_is_meant_for_alone() {
    let fixture = OneDelivery::new();
    let kind = OperationalKind::AppDisconnected.event_kind().unwrap();
    let (apps, sent) = write(&fixture.store, kind, async |tx, &kind| {
        let mut apps = Vec::new();
        for number in 0..2 {
            let input = AppCreate {
                owner: None,
                name: "Route Planner".parse().unwrap(),
                redirect_uris: vec![RedirectUri::parse("https://example.com/back").unwrap()],
                website: None,
                public: true,
                write: false,
                disconnect_url: Some(format!("https://app{number}.example.com/gone").parse().unwrap()),
            };
            apps.push(SubscriptionId::from(oauth::create_app(tx, input).await?.app.webhook_id.unwrap()));
        }
        for webhook in &apps {
            let now = advance_clock(tx, PLATFORM_ACCOUNT).await?;
            let data = json!({ "id": "0195a3c8-8a00-7000-8000-000000001005", "webhook_id": webhook });
            events::emit(tx, PLATFORM_ACCOUNT, now, &[kind], &data).await?;
        }
        let sent = tx.list_deliveries(PLATFORM_ACCOUNT, &DeliveryFilter::default()).await?;
        Ok((apps, sent.iter().map(|delivery| delivery.subscription_id).rev().collect::<Vec<_>>()))
    })
    .unwrap();
    assert_eq!(sent, apps, "each event goes to one app when it happens");

    fixture.clock.advance(MINUTE);
    let statuses = vec![DeliveryStatus::Failed];
    let (subscription, since) = (apps[0], Timestamp::from_micros(0));
    let input = ReplayCreate { subscription, since, until: None, statuses, missed: true };
    let replayed = write(&fixture.store, input, async |tx, input| {
        create(tx, PLATFORM_ACCOUNT, input.clone()).await?;
        while tx.unfinished_replay(PLATFORM_ACCOUNT).await?.is_some() {
            step(tx, PLATFORM_ACCOUNT).await?;
        }
        let all = tx.list_deliveries(PLATFORM_ACCOUNT, &DeliveryFilter::default()).await?;
        Ok(all.iter().map(|delivery| delivery.subscription_id).rev().collect::<Vec<_>>())
    });
    assert_eq!(replayed.unwrap(), apps, "and by a replay of what one has missed");
}
