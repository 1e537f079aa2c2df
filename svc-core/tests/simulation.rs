//! A simulation of the delivery engine under a virtual clock: random scenarios of one hour, with crashes,
//! failing commits, clock jumps, and endpoints that are slow, down, throttling or flapping. After every transaction, the store is
//! compared with a [model](model) of what must hold.
//!
//! `SVC_SIMULATION_SEEDS` sets the number of scenarios, 20,000 in `.ci/release`. `SVC_SIMULATION_SEED` runs the scenario of one seed
//! and prints what happens in it.

#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod driver;
mod endpoints;
mod fairness;
mod model;
mod recovery;
mod script;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of scenarios that run by default.
const DEFAULT_SEEDS: u64 = 200;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn every_delivery_ends_as_the_model_says_in_every_scenario() {
    if let Some(seed) = variable("SVC_SIMULATION_SEED") {
        return script::scenario(seed, true);
    }
    for seed in 0..variable("SVC_SIMULATION_SEEDS").unwrap_or(DEFAULT_SEEDS) {
        if catch_unwind(AssertUnwindSafe(|| script::scenario(seed, false))).is_err() {
            panic!(
                "seed {seed} fails; to print its scenario:\n\
                 SVC_SIMULATION_SEED={seed} cargo test -p svc-core --test main every_delivery -- --nocapture"
            );
        }
    }
}
