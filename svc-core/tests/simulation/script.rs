//! The scenarios: events, changes by the owners of endpoints, crashes and clock jumps at random times.

use rand::RngExt as _;
use serde_json::json;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::crud;
use svc_core::store::DeliveryFilter;
use svc_core::values::EventKind;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{DeliveryId, DeliveryStatus};
use svc_core::webhooks::engine::Policy;
use svc_core::webhooks::events;
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};

use super::driver::{Simulation, SimulationEvent};
use super::endpoints::{Behaviour, TIMEOUT};
use super::model::is_running;

const SECOND: u64 = 1_000_000;
const HOUR: i64 = 3_600;

/// Something that happens outside of the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Emit(TenantId),
    /// Moves the wall clock by this number of seconds.
    JumpClock(i64),
    /// Ends a process without a shutdown.
    Crash(usize),
    Start(usize),
    Enable(SubscriptionId),
    Disable(SubscriptionId),
    Delete(SubscriptionId),
    /// Changes the behaviour of an endpoint.
    Become(SubscriptionId, Behaviour),
    /// Replays a random delivery.
    ReplayOne,
    /// Starts a bulk replay of the failed and held deliveries of an endpoint.
    ReplayMany(SubscriptionId),
}

/// Returns the default policy with this concurrency.
pub(crate) fn policy(concurrency: usize) -> Policy {
    Policy { timeout: TIMEOUT, concurrency, ..Policy::default() }
}

impl Simulation {
    pub(crate) fn tenant(&self) -> TenantId {
        self.write((), async |tx, ()| tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await).unwrap().id
    }

    pub(crate) fn endpoint(&mut self, tenant: TenantId, behaviour: Behaviour) -> SubscriptionId {
        let body = json!({ "url": format!("https://example.com/{}", self.model.endpoints.len()), "events": ["*"] });
        let create = self.write((body, tenant), async |tx, (body, tenant)| {
            let input = WebhookCreate::from_body(body.to_string().as_bytes());
            crud::create::<WebhookSubscription>(tx, *tenant, input?).await
        });
        let subscription = create.unwrap();
        self.model.add_endpoint(tenant, &subscription, behaviour);
        subscription.id
    }

    pub(crate) fn emit(&mut self, tenant: TenantId) {
        let emitted = self.write(tenant, async |tx, &tenant| {
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
            let filter = DeliveryFilter { since: Some(now), ..DeliveryFilter::default() };
            Ok(tx.list_deliveries(tenant, &filter).await?)
        });
        let wall = self.wall();
        self.model.emitted(tenant, &emitted.unwrap(), wall);
        self.wake_all();
    }

    /// Emits many events in one transaction.
    pub(crate) fn emit_many(&mut self, tenant: TenantId, count: usize) {
        let emitted = self.write((tenant, count), async |tx, &(tenant, count)| {
            let since = Some(advance_clock(tx, tenant).await?);
            for _ in 0..count {
                let now = advance_clock(tx, tenant).await?;
                events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
            }
            Ok(tx.list_deliveries(tenant, &DeliveryFilter { since, ..DeliveryFilter::default() }).await?)
        });
        let wall = self.wall();
        for delivery in emitted.unwrap() {
            self.model.emitted(tenant, &[delivery], wall);
        }
        self.wake_all();
    }

    fn set_enabled(&self, id: SubscriptionId, enabled: bool) {
        let tenant = self.model.endpoints[&id].tenant;
        let patch = self.write((enabled, tenant, id), async |tx, &(enabled, tenant, id)| {
            let input = WebhookUpdate::from_body(json!({ "enabled": enabled }).to_string().as_bytes());
            crud::update::<WebhookSubscription>(tx, tenant, id, input?).await
        });
        patch.unwrap();
    }

    /// Carries out an action, on the store and on the model.
    pub(crate) fn act(&mut self, action: Action) {
        self.trace(&format!("{action:?}"));
        match action {
            Action::Emit(tenant) => self.emit(tenant),
            Action::JumpClock(seconds) => self.jump_clock(seconds),
            Action::Crash(process) => self.crash(process),
            Action::Start(process) => self.start(process),
            Action::Become(id, behaviour) => {
                let endpoint = self.model.endpoints.get_mut(&id).unwrap();
                endpoint.behaviour = behaviour;
                endpoint.takes_every_delivery &= behaviour.takes_every_delivery();
            }
            Action::Enable(id) if !self.model.endpoints[&id].deleted => {
                self.set_enabled(id, true);
                self.model.enable(id);
                self.wake_all();
            }
            Action::Disable(id) if !self.model.endpoints[&id].deleted => {
                self.set_enabled(id, false);
                self.model.disable(id);
            }
            Action::Delete(id) if !self.model.endpoints[&id].deleted => {
                let tenant = self.model.endpoints[&id].tenant;
                let delete = self.write((tenant, id), async |tx, &(tenant, id)| {
                    crud::delete::<WebhookSubscription>(tx, tenant, id).await
                });
                delete.unwrap();
                self.model.delete(id);
            }
            Action::ReplayOne if !self.model.deliveries.is_empty() => {
                let nth = self.rng.random_range(0..self.model.deliveries.len());
                let id = *self.model.deliveries.keys().nth(nth).unwrap();
                self.replay_one(id);
            }
            Action::ReplayMany(id) => self.replay_many(id),
            _ => {}
        }
        let wall = self.wall();
        self.model.check_changed(&*self.store, wall);
    }

    fn replay_one(&mut self, id: DeliveryId) {
        let expected = &self.model.deliveries[&id];
        let (tenant, sends) = (expected.tenant, self.model.endpoints[&expected.endpoint].is_active());
        let replay = self.write((tenant, id), async |tx, &(tenant, id)| replays::replay_delivery(tx, tenant, id).await);
        match replay {
            Ok(_) => {
                assert!(sends, "{id} was replayed to an endpoint that is not active");
                assert!(!is_running(&self.processes, id), "{id} was replayed while an attempt is in progress");
                let wall = self.wall();
                self.model.replayed(id, wall);
                self.wake_all();
            }
            Err(Error::NotAllowed(_)) => assert!(!sends || self.model.is_leased(id), "the replay of {id} was refused"),
            Err(error) => panic!("{error}"),
        }
    }

    fn replay_many(&mut self, id: SubscriptionId) {
        let endpoint = &self.model.endpoints[&id];
        let (tenant, sends, deleted) = (endpoint.tenant, endpoint.is_active(), endpoint.deleted);
        let since = Timestamp::from_micros(0);
        let input = ReplayCreate { subscription: id, since, until: None, statuses: Vec::new(), missed: false };
        let replay =
            self.write((tenant, input), async |tx, (tenant, input)| replays::create(tx, *tenant, input.clone()).await);
        match replay {
            Ok(replay) => {
                assert!(sends);
                self.model.replays.push(replay);
                self.wake_all();
            }
            Err(Error::NotFound) => assert!(deleted),
            Err(Error::NotAllowed(_)) => assert!(!sends && !deleted),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Runs one scenario: an hour of events and troubles, the hours after it until nothing is left to do, and the recovery in
/// which all unsent deliveries are replayed.
pub(crate) fn scenario(seed: u64, verbose: bool) {
    let mut simulation = Simulation::new(seed, 2, policy(1));
    let concurrency = [1, 2, 3, 8, 64, 2048][simulation.rng.random_range(0..6)];
    (simulation.verbose, simulation.policy) = (verbose, policy(concurrency).into());
    let mut tenants = Vec::new();
    for _ in 0..simulation.rng.random_range(1..4) {
        let tenant = simulation.tenant();
        tenants.push(tenant);
        for _ in 0..simulation.rng.random_range(1..4) {
            let behaviour = Behaviour::any(&mut simulation.rng);
            let id = simulation.endpoint(tenant, behaviour);
            simulation.trace(&format!("endpoint {id} of {tenant} is {behaviour:?}"));
        }
    }
    let quiet = simulation.rng.random_range(0..4) == 0;
    simulation.failing_commits = if quiet { 0 } else { simulation.rng.random_range(0..4) };
    queue_actions(&mut simulation, &tenants, quiet);
    simulation.run();
    check_settled(&mut simulation);
    simulation.trace("all endpoints recover");
    recover(&mut simulation);
}

/// Queues the events and the troubles of the hour.
fn queue_actions(simulation: &mut Simulation, tenants: &[TenantId], quiet: bool) {
    let endpoints: Vec<_> = simulation.model.endpoints.keys().copied().collect();
    let hour = HOUR.unsigned_abs() * SECOND;
    let mut times = Vec::new();
    for _ in 0..simulation.rng.random_range(1..20) {
        let (at, tenant) =
            (simulation.rng.random_range(0..hour), tenants[simulation.rng.random_range(0..tenants.len())]);
        times.push(at);
        // Sometimes many at once.
        let count = if simulation.rng.random_range(0..8) == 0 { 12 } else { 1 };
        for _ in 0..count {
            let at = at + simulation.rng.random_range(0..10);
            simulation.schedule(at, SimulationEvent::Act(Action::Emit(tenant)));
        }
    }
    let troubles = if quiet { 0 } else { simulation.rng.random_range(0..12) };
    for _ in 0..troubles {
        // Half of the troubles happen while attempts are in flight.
        let at = match simulation.rng.random() {
            true => times[simulation.rng.random_range(0..times.len())] + simulation.rng.random_range(0..12 * SECOND),
            false => simulation.rng.random_range(0..hour * 5 / 4),
        };
        let id = endpoints[simulation.rng.random_range(0..endpoints.len())];
        let action = match simulation.rng.random_range(0..16) {
            0..3 => {
                let process = simulation.rng.random_range(0..2);
                let down = simulation.rng.random_range(0..120) * SECOND;
                simulation.schedule(at + down, SimulationEvent::Act(Action::Start(process)));
                Action::Crash(process)
            }
            3..6 => Action::JumpClock([HOUR, -HOUR, -24 * HOUR, 31, -31, 7][simulation.rng.random_range(0..6)]),
            6..8 => Action::Become(id, Behaviour::any(&mut simulation.rng)),
            8..10 => Action::Enable(id),
            10 => {
                // For a short time, so that attempts in flight end after the endpoint is enabled again.
                let wait = simulation.rng.random_range(0..60) * SECOND / 4;
                simulation.schedule(at + wait, SimulationEvent::Act(Action::Enable(id)));
                if simulation.rng.random() {
                    simulation.schedule(at + wait + SECOND, SimulationEvent::Act(Action::ReplayMany(id)));
                }
                Action::Disable(id)
            }
            11 => Action::Disable(id),
            12 => Action::Delete(id),
            13..15 => Action::ReplayOne,
            _ => Action::ReplayMany(id),
        };
        simulation.schedule(at, SimulationEvent::Act(action));
    }
}

/// Checks that nothing is left to do and that the store agrees with the model.
fn check_settled(simulation: &mut Simulation) {
    let wall = simulation.wall();
    simulation.model.check_all(&*simulation.store, wall);
    for (id, expected) in &simulation.model.deliveries {
        let endpoint = &simulation.model.endpoints[&expected.endpoint];
        assert_ne!(expected.status, DeliveryStatus::Pending, "{id} is still pending: {expected:?}, {endpoint:?}");
        if endpoint.takes_every_delivery && !endpoint.deleted {
            assert_eq!(expected.status, DeliveryStatus::Succeeded, "{id} has not arrived");
        }
    }
    let due = simulation.write((), async |tx, ()| Ok(tx.next_endpoint_due().await?));
    assert_eq!(due, Ok(None), "an endpoint is scheduled without a pending delivery");
    assert!(simulation.processes.iter().all(|process| process.running.is_empty() && process.outcomes.is_empty()));
}

/// Makes all endpoints healthy, replays what has not arrived, and checks that everything arrives.
fn recover(simulation: &mut Simulation) {
    simulation.failing_commits = 0;
    for process in 0..2 {
        if !simulation.processes[process].alive {
            simulation.start(process);
        }
    }
    let endpoints: Vec<_> = simulation.model.endpoints.keys().copied().collect();
    for id in endpoints {
        simulation.act(Action::Become(id, Behaviour::Healthy));
        simulation.act(Action::Enable(id));
        if simulation.rng.random() {
            simulation.replay_many(id);
        }
    }
    simulation.run();
    // After this time every lease has ended, also that of a delivery that was held before the clock was set back.
    simulation.run_until(simulation.now + 14 * 24 * HOUR.unsigned_abs() * SECOND);
    let left: Vec<_> = simulation.model.deliveries.keys().copied().collect();
    for id in left {
        if simulation.model.deliveries[&id].status != DeliveryStatus::Succeeded {
            simulation.replay_one(id);
        }
    }
    simulation.run();
    check_settled(simulation);
    for (id, expected) in &simulation.model.deliveries {
        if !simulation.model.endpoints[&expected.endpoint].deleted {
            assert_eq!(expected.status, DeliveryStatus::Succeeded, "{id} has not arrived after the recovery");
        }
    }
}
