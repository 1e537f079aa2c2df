//! A store on which every transaction fails before it succeeds.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::error::{Error, StoreError};
use crate::store::{Access, Store, StoreWrapper, UnitOfWork};

/// A store over another that runs each write twice: the first time it fails at its very end, after everything was done, as when a disk is full
/// or another transaction was met. So nothing may be left of it, and a job must be as good the second time. What a job
/// itself refuses is refused the first time. A job that nobody waits for any more runs to its end, so both runs are
/// detached together.
///
/// The conformance suite passes on it over any store that passes by itself.
pub fn fails_first(store: Arc<dyn Store>, detach: Detach) -> Arc<dyn Store> {
    Arc::new(FailsFirst { store, detach })
}

struct FailsFirst {
    store: Arc<dyn Store>,
    detach: Detach,
}

/// Lets a future run to its end, also when nobody waits for it any more.
pub type Detach = fn(BoxFuture<'static, Result<(), Error>>) -> BoxFuture<'static, Result<(), Error>>;

const INJECTED: &str = "injected";

#[async_trait]
impl StoreWrapper for FailsFirst {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        if access == Access::Read {
            return self.store.run(access, name, job).await;
        }
        (self.detach)(Box::pin(twice(Arc::clone(&self.store), name, job))).await
    }
}

async fn twice(store: Arc<dyn Store>, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
    let job = Arc::new(job);
    let doomed = Arc::clone(&job);
    let first: UnitOfWork = Box::new(move |tx| {
        let work = doomed(tx);
        Box::pin(async move {
            work.await?;
            Err(StoreError::Unavailable(INJECTED.to_owned()).into())
        })
    });
    match store.run(Access::Write, name, first).await {
        Err(Error::Store(StoreError::Unavailable(error))) if error == INJECTED => {
            store.run(Access::Write, name, Box::new(move |tx| job(tx))).await
        }
        refused => refused,
    }
}
