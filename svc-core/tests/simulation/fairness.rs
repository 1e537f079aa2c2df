//! Nobody waits for the trouble of others.

use std::time::Duration;

use svc_core::values::TenantId;

use crate::endpoints::Behaviour;
use crate::script::policy;
use crate::world::World;

const SECOND: u64 = 1_000_000;

/// A service as it runs, one sender, with a healthy endpoint of one tenant among others.
fn world() -> (World, TenantId) {
    let mut world = World::new(1, 1, policy(2048));
    let tenant = world.tenant();
    world.endpoint(tenant, Behaviour::Healthy);
    (world, tenant)
}

/// One event a second of that tenant, for so long: how late the first attempt at each was.
fn worst_delay(world: &mut World, tenant: TenantId, seconds: u64) -> Duration {
    for second in 1..=seconds {
        world.run_until(second * SECOND);
        world.emit(tenant);
    }
    world.run_until((seconds + 2) * SECOND);
    let parcels = world.model.parcels.iter().filter(|(_, parcel)| parcel.tenant == tenant);
    let delays: Vec<Duration> = parcels.map(|(id, _)| world.model.delays[id]).collect();
    assert_eq!(delays.len() as u64, seconds);
    delays.into_iter().max().unwrap()
}

#[test]
fn a_thousand_hanging_endpoints_delay_nobody() {
    let (mut world, tenant) = world();
    let troubled: Vec<TenantId> = (0..1_000).map(|_| world.tenant()).collect();
    for other in &troubled {
        world.endpoint(*other, Behaviour::Hanging);
    }
    for other in &troubled {
        for _ in 0..5 {
            world.emit(*other);
        }
    }
    let delay = worst_delay(&mut world, tenant, 120);
    assert!(delay < Duration::from_millis(200), "{delay:?}");
}

#[test]
fn a_tenant_with_a_thousand_hanging_endpoints_delays_nobody() {
    let (mut world, tenant) = world();
    let other = world.tenant();
    for _ in 0..1_000 {
        world.endpoint(other, Behaviour::Hanging);
    }
    for _ in 0..5 {
        world.emit(other);
    }
    let delay = worst_delay(&mut world, tenant, 120);
    assert!(delay < Duration::from_millis(200), "{delay:?}");
}

#[test]
fn a_tenant_with_many_busy_endpoints_delays_nobody() {
    let (mut world, tenant) = world();
    let other = world.tenant();
    for _ in 0..500 {
        world.endpoint(other, Behaviour::Healthy);
    }
    for _ in 0..40 {
        world.emit(other);
    }
    let delay = worst_delay(&mut world, tenant, 5);
    assert!(delay < Duration::from_millis(200), "{delay:?}");
}

#[test]
fn a_backlog_delays_nobody() {
    for (behaviour, count, seconds) in [(Behaviour::Slow, 100_000, 60), (Behaviour::Healthy, 20_000, 10)] {
        let (mut world, tenant) = world();
        let other = world.tenant();
        world.endpoint(other, behaviour);
        world.backlog(other, count);
        let delay = worst_delay(&mut world, tenant, seconds);
        assert!(delay < Duration::from_millis(200), "{behaviour:?}: {delay:?}");
        assert!(world.model.delays.len() > seconds as usize * 2, "the backlog moves");
    }
}
