//! A store that measures its jobs.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use svc_core::error::Error;
use svc_core::store::{Access, Observer, Store, StoreWrapper, UnitOfWork};

use super::Metrics;

/// A store like the one inside, which tells [`Metrics`] how long its jobs take and how they end.
struct Metered {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
}

/// Measures the jobs of a store, and what it tells of its groups and retries.
pub fn metered(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Arc<dyn Store> {
    store.observe(Arc::clone(&metrics) as Arc<dyn Observer>);
    Arc::new(Metered { store, metrics })
}

#[async_trait]
impl StoreWrapper for Metered {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        let begun = Instant::now();
        let done = self.store.run(access, name, job).await;
        let result = match &done {
            Ok(()) => "done",
            Err(Error::Store(error)) if error.is_transient() => "unavailable",
            Err(Error::Store(_)) => "fault",
            // The rules said no.
            Err(_) => "refused",
        };
        self.metrics.job(name, result, begun.elapsed());
        done
    }
}
