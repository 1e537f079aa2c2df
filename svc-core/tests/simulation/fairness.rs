//! Fairness: trouble or load of some endpoints must not delay the deliveries of others.

use std::time::Duration;

use svc_core::values::TenantId;

use super::driver::{MAX_ENDPOINTS, Simulation};
use super::endpoints::Behaviour;
use super::script::policy;

const SECOND: u64 = 1_000_000;

/// Creates a simulation of one process with the default concurrency, and a tenant with a healthy endpoint.
fn healthy_tenant() -> (Simulation, TenantId) {
    let mut simulation = Simulation::new(1, 1, policy(2048));
    let tenant = simulation.tenant();
    simulation.endpoint(tenant, Behaviour::Healthy);
    (simulation, tenant)
}

/// Emits one event a second for the tenant. Returns the longest time from an event to the first attempt at its delivery.
fn longest_delay(simulation: &mut Simulation, tenant: TenantId, seconds: u64) -> Duration {
    for second in 1..=seconds {
        simulation.run_until(second * SECOND);
        simulation.emit(tenant);
    }
    simulation.run_until((seconds + 2) * SECOND);
    let deliveries = simulation.model.deliveries.iter().filter(|(_, expected)| expected.tenant == tenant);
    let delays: Vec<Duration> = deliveries.map(|(id, _)| simulation.model.delays[id]).collect();
    assert_eq!(delays.len() as u64, seconds);
    delays.into_iter().max().unwrap()
}

#[test]
fn a_thousand_tenants_with_a_hanging_endpoint_do_not_delay_another_tenant() {
    let (mut simulation, tenant) = healthy_tenant();
    let others: Vec<TenantId> = (0..1_000).map(|_| simulation.tenant()).collect();
    for other in &others {
        simulation.endpoint(*other, Behaviour::Hanging);
    }
    for other in &others {
        for _ in 0..5 {
            simulation.emit(*other);
        }
    }
    let delay = longest_delay(&mut simulation, tenant, 120);
    assert!(delay < Duration::from_millis(200), "{delay:?}");
}

#[test]
fn a_thousand_hanging_endpoints_of_one_tenant_do_not_delay_another_tenant() {
    let (mut simulation, tenant) = healthy_tenant();
    let other = simulation.tenant();
    for _ in 0..1_000 {
        simulation.endpoint(other, Behaviour::Hanging);
    }
    for _ in 0..5 {
        simulation.emit(other);
    }
    let delay = longest_delay(&mut simulation, tenant, 120);
    assert!(delay < Duration::from_millis(200), "{delay:?}");
}

#[test]
fn thousands_of_due_endpoints_of_one_tenant_do_not_delay_another_tenant() {
    let (mut simulation, tenant) = healthy_tenant();
    let other = simulation.tenant();
    for _ in 0..MAX_ENDPOINTS {
        simulation.endpoint(other, Behaviour::Slow);
    }
    for _ in 0..3 {
        simulation.emit(other);
    }
    let delay = longest_delay(&mut simulation, tenant, 20);
    assert!(delay < Duration::from_millis(50), "{delay:?}");
}

#[test]
fn many_busy_endpoints_of_one_tenant_do_not_delay_another_tenant() {
    let (mut simulation, tenant) = healthy_tenant();
    let other = simulation.tenant();
    for _ in 0..500 {
        simulation.endpoint(other, Behaviour::Healthy);
    }
    for _ in 0..40 {
        simulation.emit(other);
    }
    let delay = longest_delay(&mut simulation, tenant, 5);
    assert!(delay < Duration::from_millis(200), "{delay:?}");
}

#[test]
fn a_long_backlog_does_not_delay_another_tenant() {
    for (behaviour, count, seconds) in [(Behaviour::Slow, 100_000, 60), (Behaviour::Healthy, 20_000, 10)] {
        let (mut simulation, tenant) = healthy_tenant();
        let other = simulation.tenant();
        simulation.endpoint(other, behaviour);
        simulation.emit_many(other, count);
        let delay = longest_delay(&mut simulation, tenant, seconds);
        assert!(delay < Duration::from_millis(200), "{behaviour:?}: {delay:?}");
        assert!(simulation.model.delays.len() > seconds as usize * 2, "the backlog is being sent");
    }
}
