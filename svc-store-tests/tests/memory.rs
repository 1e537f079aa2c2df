//! The suite on the store in memory, and on the example of a store.

use std::sync::Arc;

use futures_util::FutureExt as _;
use svc_core::store::Store;
use svc_core::store::memory::MemoryStore;
use svc_store_tests::{fails_first, run_all};

#[path = "../examples/store.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod example;

#[test]
fn the_memory_store_passes() {
    run_all(|env| async { Arc::new(MemoryStore::new(env)) as Arc<dyn Store> }).now_or_never().unwrap();
}

#[test]
fn the_memory_store_passes_when_every_write_fails_first() {
    let make = |env| async { fails_first(Arc::new(MemoryStore::new(env)), |runs| runs) };
    run_all(make).now_or_never().unwrap();
}

#[test]
fn the_example_of_a_store_passes() {
    run_all(|env| async { Arc::new(example::SnapshotStore::new(env)) as Arc<dyn Store> }).now_or_never().unwrap();
    let make = |env| async { fails_first(Arc::new(example::SnapshotStore::new(env)), |runs| runs) };
    run_all(make).now_or_never().unwrap();
}
