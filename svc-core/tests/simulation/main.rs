//! The delivery engine as a state machine under a virtual clock: thousands of random hours of crashes, clocks that
//! jump, and endpoints that are slow, dead or both in turn, each checked against a model of what must hold.
//!
//! `SVC_SIMULATION_SEEDS` sets how many scenarios run, `SVC_SIMULATION_SEED` runs one, and tells what happens.

#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod endpoints;
mod fairness;
mod model;
mod script;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Scenarios that run unless told otherwise.
const SEEDS: u64 = 2_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn whatever_happens_every_delivery_ends_as_it_must() {
    if let Some(seed) = variable("SVC_SIMULATION_SEED") {
        return script::scenario(seed, true);
    }
    for seed in 0..variable("SVC_SIMULATION_SEEDS").unwrap_or(SEEDS) {
        if catch_unwind(AssertUnwindSafe(|| script::scenario(seed, false))).is_err() {
            panic!(
                "seed {seed} fails; to see how:\n\
                 SVC_SIMULATION_SEED={seed} cargo test -p svc-core --test simulation whatever -- --nocapture"
            );
        }
    }
}
