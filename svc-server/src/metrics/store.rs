//! A store that measures its transactions.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, Observer, Store, StoreWrapper, UnitOfWork};

use super::Metrics;

/// A layer over a store that records the duration and the result of each transaction in [`Metrics`].
struct Metered {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
}

/// Wraps a store so that the duration and the result of each transaction, the sizes of its groups and its retries are
/// recorded.
pub fn metered(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Arc<dyn Store> {
    store.observe(Arc::clone(&metrics) as Arc<dyn Observer>);
    Arc::new(Metered { store, metrics })
}

impl Metered {
    async fn measure(&self, name: &'static str, run: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let started = Instant::now();
        let outcome = run.await;
        let result = match &outcome {
            Ok(()) => "done",
            Err(Error::Store(StoreError::Closed)) => "unavailable",
            Err(Error::Store(error)) if error.is_transient() => "unavailable",
            Err(Error::Store(_)) => "fault",
            // A rule refused the operation, and the transaction was rolled back.
            Err(_) => "refused",
        };
        self.metrics.transaction(name, result, started.elapsed());
        outcome
    }
}

#[async_trait]
impl StoreWrapper for Metered {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.measure(name, self.store.run(access, name, work)).await
    }

    async fn run_in_place_wrapped(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.measure(name, self.store.run_in_place(name, work)).await
    }
}
