//! The rules of one delivery.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::*;
use crate::accounts::tenants::{self, TenantCreate};
use crate::env::{Env, ManualClock, SeededEntropy};
use crate::input::Input as _;
use crate::store::memory::MemoryStore;
use crate::store::{DeliveryFilter, Store};
use crate::webhooks::events;
use crate::webhooks::subscriptions::{WebhookCreate, WebhookUpdate};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn log(status: i32, error: Option<&str>) -> AttemptLog {
    AttemptLog {
        attempt: 1,
        started_at: Timestamp::from_micros(0),
        duration_ms: 5,
        status,
        error: error.map(str::to_owned),
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    }
}

#[test]
fn retries_wait_longer_and_longer() {
    let schedule = RetrySchedule::default();
    let minutes = |minutes: u32| Some(MINUTE * minutes);
    for (failures, jitter, asked, want) in [
        (0, 0, None, None),
        (1, 0, None, minutes(1)),
        (2, 0, None, minutes(4)),
        (3, 0, None, minutes(16)),
        (4, 0, None, minutes(64)),
        (5, 0, None, minutes(240)),
        (6, 0, None, None),
        (u32::MAX, 255, Some(HOUR), None),
        (1, 255, None, Some(Duration::from_secs(66))),
        (5, 255, None, minutes(264)),
        (1, 51, None, Some(Duration::from_millis(61_200))),
        (1, 0, Some(Duration::ZERO), minutes(1)),
        (1, 0, Some(Duration::from_secs(59)), minutes(1)),
        (1, 0, Some(Duration::from_secs(61)), Some(Duration::from_secs(61))),
        (1, 255, Some(Duration::from_secs(61)), Some(Duration::from_secs(66))),
        (1, 0, Some(4 * HOUR), minutes(240)),
        (1, 255, Some(Duration::MAX), minutes(240)),
        (5, 255, Some(Duration::MAX), minutes(264)),
    ] {
        assert_eq!(schedule.wait(failures, jitter, asked), want, "{failures} {jitter} {asked:?}");
    }
    for failures in 1..=5 {
        let waits = (0..=255).map(|jitter| schedule.wait(failures, jitter, None).unwrap());
        assert!(waits.is_sorted_by(|a, b| a < b), "every jitter makes a difference");
    }
    assert_eq!(RetrySchedule::new(vec![]).wait(1, 0, None), None);
}

#[test]
fn success_is_a_2xx_without_an_error() {
    for (status, error, want) in [
        (200, None, true),
        (204, None, true),
        (299, None, true),
        (199, None, false),
        (300, None, false),
        (0, None, false),
        (-1, None, false),
        (200, Some("timeout: the body never ended"), false),
    ] {
        assert_eq!(log(status, error).succeeded(), want, "{status} {error:?}");
    }
}

/// Store, tenant, endpoint and one delivery to it.
struct House {
    store: MemoryStore,
    clock: ManualClock,
    tenant: TenantId,
    delivery: Delivery,
}

impl House {
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897));
        let store = MemoryStore::new(Env::new(clock.clone(), SeededEntropy::new(1)));
        let begin = write(&store, |tx| {
            Box::pin(async move {
                let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
                let input = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
                crud::create::<WebhookSubscription>(tx, tenant, input).await?;
                let now = crud::advance_clock(tx, tenant).await?;
                events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
                let deliveries = tx.list_deliveries(tenant, &DeliveryFilter::default()).await?;
                Ok((tenant, deliveries))
            })
        });
        let (tenant, mut deliveries) = begin.unwrap();
        Self { store, clock, tenant, delivery: deliveries.remove(0) }
    }

    fn put(&self, delivery: &Delivery) {
        let (delivery, lease) = (delivery.clone(), self.get().lease);
        let put = write(&self.store, move |tx| {
            let delivery = delivery.clone();
            Box::pin(async move { Ok(tx.update_delivery(&delivery, lease).await?) })
        });
        assert_eq!(put, Ok(()));
    }

    fn get(&self) -> Delivery {
        let (tenant, id) = (self.tenant, self.delivery.id);
        let get = write(&self.store, move |tx| Box::pin(async move { Ok(tx.delivery(tenant, id).await?) }));
        get.unwrap().unwrap()
    }

    fn replay(&self) -> Result<Delivery, Error> {
        let (tenant, id) = (self.tenant, self.delivery.id);
        write(&self.store, move |tx| Box::pin(replay(tx, tenant, id)))
    }

    fn enable(&self, enabled: bool) {
        let (tenant, id) = (self.tenant, self.delivery.subscription_id);
        let patch = write(&self.store, move |tx| {
            let input = WebhookUpdate::from_body(json!({ "enabled": enabled }).to_string().as_bytes());
            Box::pin(async move { crud::update::<WebhookSubscription>(tx, tenant, id, input?).await })
        });
        patch.unwrap();
    }
}

fn write<T, F>(store: &dyn Store, job: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
{
    store.write("deliveries", job).now_or_never().unwrap()
}

#[test]
fn an_attempt_ends_in_one_of_four_states() {
    let new = House::new().delivery;
    let now = new.created_at.next();
    let (taken, refused) = (log(204, None), log(503, Some("status")));
    for (log, wait, taking, state) in [
        (&taken, None, true, DeliveryStatus::Succeeded),
        (&taken, Some(MINUTE), true, DeliveryStatus::Succeeded),
        (&taken, Some(MINUTE), false, DeliveryStatus::Succeeded),
        (&refused, Some(MINUTE), true, DeliveryStatus::Pending),
        (&refused, Some(MINUTE), false, DeliveryStatus::Held),
        (&refused, None, true, DeliveryStatus::Failed),
        (&refused, None, false, DeliveryStatus::Failed),
    ] {
        let mut delivery = new.clone();
        delivery.begin(Uuid::from_u128(7), now);
        assert_eq!(
            (delivery.attempts, delivery.lease, delivery.next_attempt_at),
            (1, Some(Uuid::from_u128(7)), Some(now))
        );
        delivery.end(log, wait, now, taking);
        let due = now.checked_add(MINUTE).filter(|_| state == DeliveryStatus::Pending);
        let want =
            Delivery { status: state, attempts: 1, last_status: Some(log.status), next_attempt_at: due, ..new.clone() };
        assert_eq!(delivery, want);
    }
}

#[test]
fn what_is_replayed_is_due_at_once() {
    let house = House::new();
    let now = house.store.env().now();
    for state in DeliveryStatus::ALL.iter().copied() {
        let pending = state == DeliveryStatus::Pending;
        let was = Delivery {
            status: state,
            attempts: 6,
            failures: 6,
            last_status: Some(500),
            next_attempt_at: now.checked_add(HOUR).filter(|_| pending),
            ..house.delivery.clone()
        };
        house.put(&was);
        let want = Delivery { status: DeliveryStatus::Pending, failures: 0, next_attempt_at: Some(now), ..was };
        assert_eq!(house.replay(), Ok(want.clone()), "{state}");
        assert_eq!(house.get(), want);
    }
}

#[test]
fn what_is_being_attempted_is_not_replayed() {
    let house = House::new();
    let ends = house.store.env().now().checked_add(MINUTE).unwrap();
    let mut leased = house.delivery.clone();
    leased.begin(house.store.env().id(ends), ends);
    house.put(&leased);
    assert!(matches!(house.replay(), Err(Error::NotAllowed(_))));
    // Nor when it was held meanwhile.
    house.enable(false);
    house.enable(true);
    assert_eq!(house.get().status, DeliveryStatus::Held);
    assert!(matches!(house.replay(), Err(Error::NotAllowed(_))));
    assert_eq!(house.get().lease, leased.lease);
    // Its sender is gone.
    house.clock.advance(MINUTE);
    let again = house.replay().unwrap();
    assert_eq!((again.status, again.lease, again.next_attempt_at), (DeliveryStatus::Pending, None, Some(ends)));
    assert_eq!(again.attempts, 1);
}

#[test]
fn what_takes_nothing_is_not_replayed_to() {
    let house = House::new();
    house.enable(false);
    let held = house.get();
    assert_eq!(held.status, DeliveryStatus::Held);
    assert!(matches!(house.replay(), Err(Error::NotAllowed(_))));
    house.enable(true);
    assert_eq!(house.get(), held, "not by itself");
    assert!(house.replay().is_ok());
    let (tenant, id) = (house.tenant, house.delivery.subscription_id);
    let delete = write(&house.store, move |tx| Box::pin(crud::delete::<WebhookSubscription>(tx, tenant, id)));
    assert_eq!(delete, Ok(()));
    assert!(matches!(house.replay(), Err(Error::NotAllowed(_))));
    let unknown = write(&house.store, move |tx| Box::pin(replay(tx, tenant, Uuid::nil())));
    assert_eq!(unknown, Err(Error::NotFound));
    let other = write(&house.store, |tx| Box::pin(tenants::create(tx, TenantCreate::named("Other")))).unwrap().id;
    let id = house.delivery.id;
    let theirs = write(&house.store, move |tx| Box::pin(replay(tx, other, id)));
    assert_eq!(theirs, Err(Error::NotFound));
}
