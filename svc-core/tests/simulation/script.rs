//! What happens from outside: events, owners who change their minds, crashes, clocks that jump.

use rand::Rng as _;
use serde_json::json;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::crud;
use svc_core::store::DeliveryFilter;
use svc_core::values::EventKind;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{self, DeliveryStatus, RetrySchedule};
use svc_core::webhooks::engine::Policy;
use svc_core::webhooks::events;
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookUpdate};
use uuid::Uuid;

use crate::endpoints::{Behaviour, TIMEOUT};
use crate::model::is_running;
use crate::world::{Happening, World};

const SECOND: u64 = 1_000_000;
const HOUR: i64 = 3_600;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Emit(TenantId),
    Jump(i64),
    Crash(usize),
    Start(usize),
    Enable(Uuid),
    Disable(Uuid),
    Delete(Uuid),
    Become(Uuid, Behaviour),
    /// Any one delivery is sent again.
    Replay,
    /// Those of an endpoint that failed or were held.
    Bulk(Uuid),
}

/// The policy of the service, with this concurrency.
pub(crate) fn policy(concurrency: usize) -> Policy {
    Policy { timeout: TIMEOUT, retry: RetrySchedule::default(), concurrency }
}

impl World {
    pub(crate) fn tenant(&self) -> TenantId {
        self.write(|tx| Box::pin(tenants::create(tx, TenantCreate::named("Harbour Plumbing")))).unwrap().id
    }

    pub(crate) fn endpoint(&mut self, tenant: TenantId, behaviour: Behaviour) -> Uuid {
        let body = json!({ "url": format!("https://example.com/{}", self.model.endpoints.len()), "events": ["*"] });
        let create = self.write(move |tx| {
            let input = WebhookCreate::from_body(body.to_string().as_bytes());
            Box::pin(async move { crud::create::<WebhookSubscription>(tx, tenant, input?).await })
        });
        let subscription = create.unwrap();
        self.model.add_endpoint(tenant, &subscription, behaviour);
        subscription.id
    }

    pub(crate) fn emit(&mut self, tenant: TenantId) {
        let emitted = self.write(move |tx| {
            Box::pin(async move {
                let now = crud::advance_clock(tx, tenant).await?;
                events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
                let filter = DeliveryFilter { since: Some(now), ..DeliveryFilter::default() };
                Ok(tx.list_deliveries(tenant, &filter).await?)
            })
        });
        let wall = self.wall();
        self.model.emitted(tenant, &emitted.unwrap(), wall);
        self.wake_all();
    }

    /// Many events at once.
    pub(crate) fn backlog(&mut self, tenant: TenantId, count: usize) {
        let emitted = self.write(move |tx| {
            Box::pin(async move {
                for _ in 0..count {
                    let now = crud::advance_clock(tx, tenant).await?;
                    events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
                }
                Ok(tx.list_deliveries(tenant, &DeliveryFilter::default()).await?)
            })
        });
        let wall = self.wall();
        for delivery in emitted.unwrap() {
            self.model.emitted(tenant, &[delivery], wall);
        }
        self.wake_all();
    }

    fn patch(&self, id: Uuid, enabled: bool) {
        let tenant = self.model.endpoints[&id].tenant;
        let patch = self.write(move |tx| {
            let input = WebhookUpdate::from_body(json!({ "enabled": enabled }).to_string().as_bytes());
            Box::pin(async move { crud::update::<WebhookSubscription>(tx, tenant, id, input?).await })
        });
        patch.unwrap();
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.note(&format!("{action:?}"));
        match action {
            Action::Emit(tenant) => self.emit(tenant),
            Action::Jump(seconds) => self.jump(seconds),
            Action::Crash(sender) => self.crash(sender),
            Action::Start(sender) => self.start(sender),
            Action::Become(id, behaviour) => {
                let endpoint = self.model.endpoints.get_mut(&id).unwrap();
                endpoint.behaviour = behaviour;
                endpoint.blameless &= behaviour.always_takes();
            }
            Action::Enable(id) if !self.model.endpoints[&id].deleted => {
                self.patch(id, true);
                self.model.enable(id);
            }
            Action::Disable(id) if !self.model.endpoints[&id].deleted => {
                self.patch(id, false);
                self.model.disable(id);
            }
            Action::Delete(id) if !self.model.endpoints[&id].deleted => {
                let tenant = self.model.endpoints[&id].tenant;
                let delete = self.write(move |tx| Box::pin(crud::delete::<WebhookSubscription>(tx, tenant, id)));
                delete.unwrap();
                self.model.endpoints.get_mut(&id).unwrap().deleted = true;
            }
            Action::Replay if !self.model.parcels.is_empty() => {
                let nth = self.rng.random_range(0..self.model.parcels.len());
                let id = *self.model.parcels.keys().nth(nth).unwrap();
                self.replay(id);
            }
            Action::Bulk(id) => self.bulk(id),
            _ => {}
        }
        let wall = self.wall();
        self.model.check_touched(&*self.store, wall);
    }

    fn replay(&mut self, id: Uuid) {
        let parcel = &self.model.parcels[&id];
        let (tenant, sends) = (parcel.tenant, self.model.endpoints[&parcel.endpoint].sends());
        let replay = self.write(move |tx| Box::pin(deliveries::replay(tx, tenant, id)));
        match replay {
            Ok(_) => {
                assert!(sends, "{id} cannot be replayed");
                assert!(!is_running(&self.senders, id), "{id} is being attempted");
                let wall = self.wall();
                self.model.replayed(id, wall);
                self.wake_all();
            }
            Err(Error::NotAllowed(_)) => assert!(!sends || self.model.is_leased(id), "{id} can be replayed"),
            Err(error) => panic!("{error}"),
        }
    }

    fn bulk(&mut self, id: Uuid) {
        let endpoint = &self.model.endpoints[&id];
        let (tenant, sends, deleted) = (endpoint.tenant, endpoint.sends(), endpoint.deleted);
        let since = Timestamp::from_micros(0);
        let input = ReplayCreate { subscription: id, since, until: None, statuses: Vec::new(), missed: false };
        let replay = self.write(move |tx| {
            let input = input.clone();
            Box::pin(replays::create(tx, tenant, input))
        });
        match replay {
            Ok(replay) => {
                assert!(sends);
                self.model.bulk.push(replay);
                self.wake_all();
            }
            Err(Error::NotFound) => assert!(deleted),
            Err(Error::NotAllowed(_)) => assert!(!sends && !deleted),
            Err(error) => panic!("{error}"),
        }
    }
}

/// One scenario: an hour of trouble, the hours after it, and what was left over sent again.
pub(crate) fn scenario(seed: u64, talks: bool) {
    let mut world = World::new(seed, 2, policy(1));
    let concurrency = [1, 2, 3, 8, 64, 2048][world.rng.random_range(0..6)];
    (world.talks, world.policy) = (talks, policy(concurrency).into());
    let mut tenants = Vec::new();
    for _ in 0..world.rng.random_range(1..4) {
        let tenant = world.tenant();
        tenants.push(tenant);
        for _ in 0..world.rng.random_range(1..4) {
            let behaviour = Behaviour::any(&mut world.rng);
            let id = world.endpoint(tenant, behaviour);
            world.note(&format!("{id} of {tenant} is {behaviour:?}"));
        }
    }
    let quiet = world.rng.random_range(0..4) == 0;
    world.faults = if quiet { 0 } else { world.rng.random_range(0..4) };
    plan(&mut world, &tenants, quiet);
    world.run();
    settled(&mut world);
    world.note("everybody recovers");
    recover(&mut world);
}

/// Plans the hour.
fn plan(world: &mut World, tenants: &[TenantId], quiet: bool) {
    let endpoints: Vec<Uuid> = world.model.endpoints.keys().copied().collect();
    let hour = HOUR.unsigned_abs() * SECOND;
    let mut times = Vec::new();
    for _ in 0..world.rng.random_range(1..20) {
        let (at, tenant) = (world.rng.random_range(0..hour), tenants[world.rng.random_range(0..tenants.len())]);
        times.push(at);
        // Now and then many at once.
        let count = if world.rng.random_range(0..8) == 0 { 12 } else { 1 };
        for _ in 0..count {
            let at = at + world.rng.random_range(0..10);
            world.later(at, Happening::Act(Action::Emit(tenant)));
        }
    }
    let troubles = if quiet { 0 } else { world.rng.random_range(0..12) };
    for _ in 0..troubles {
        // Half of the troubles come while something is in flight.
        let at = match world.rng.random() {
            true => times[world.rng.random_range(0..times.len())] + world.rng.random_range(0..12 * SECOND),
            false => world.rng.random_range(0..hour * 5 / 4),
        };
        let id = endpoints[world.rng.random_range(0..endpoints.len())];
        let action = match world.rng.random_range(0..16) {
            0..3 => {
                let sender = world.rng.random_range(0..2);
                let down = world.rng.random_range(0..120) * SECOND;
                world.later(at + down, Happening::Act(Action::Start(sender)));
                Action::Crash(sender)
            }
            3..6 => Action::Jump([HOUR, -HOUR, 31, -31, 7][world.rng.random_range(0..5)]),
            6..8 => Action::Become(id, Behaviour::any(&mut world.rng)),
            8..10 => Action::Enable(id),
            10 => {
                // A short while: what is in flight comes back to an endpoint that is enabled again.
                let wait = world.rng.random_range(0..60) * SECOND / 4;
                world.later(at + wait, Happening::Act(Action::Enable(id)));
                if world.rng.random() {
                    world.later(at + wait + SECOND, Happening::Act(Action::Bulk(id)));
                }
                Action::Disable(id)
            }
            11 => Action::Disable(id),
            12 => Action::Delete(id),
            13..15 => Action::Replay,
            _ => Action::Bulk(id),
        };
        world.later(at, Happening::Act(action));
    }
}

/// Nothing is left to do, and the store agrees with the model.
fn settled(world: &mut World) {
    let wall = world.wall();
    world.model.check_all(&*world.store, wall);
    for (id, parcel) in &world.model.parcels {
        let endpoint = &world.model.endpoints[&parcel.endpoint];
        assert_ne!(parcel.state, DeliveryStatus::Pending, "{id} is forgotten: {parcel:?}, {endpoint:?}");
        if endpoint.blameless && !endpoint.deleted {
            assert_eq!(parcel.state, DeliveryStatus::Succeeded, "{id} is lost");
        }
    }
    let turn = world.write(|tx| Box::pin(async move { Ok(tx.next_endpoint_due().await?) }));
    assert_eq!(turn, Ok(None), "a turn without anything to send");
    assert!(world.senders.iter().all(|sender| sender.running.is_empty() && sender.batch.is_empty()));
}

/// All endpoints come back, and what was not delivered is replayed: then everything has arrived.
fn recover(world: &mut World) {
    world.faults = 0;
    for sender in 0..2 {
        if !world.senders[sender].alive {
            world.start(sender);
        }
    }
    let endpoints: Vec<Uuid> = world.model.endpoints.keys().copied().collect();
    for id in endpoints {
        world.act(Action::Become(id, Behaviour::Healthy));
        world.act(Action::Enable(id));
        if world.rng.random() {
            world.bulk(id);
        }
    }
    world.run();
    // By then every lease has ended, also one from before the clock was set back.
    world.run_until(world.now + 12 * HOUR.unsigned_abs() * SECOND);
    let left: Vec<Uuid> = world.model.parcels.keys().copied().collect();
    for id in left {
        if world.model.parcels[&id].state != DeliveryStatus::Succeeded {
            world.replay(id);
        }
    }
    world.run();
    settled(world);
    for (id, parcel) in &world.model.parcels {
        if !world.model.endpoints[&parcel.endpoint].deleted {
            assert_eq!(parcel.state, DeliveryStatus::Succeeded, "{id} never arrived");
        }
    }
}
