//! A store on which every transaction fails before it succeeds.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};

/// Wraps a store so that each write runs twice. The first run fails at its end, after all of its changes, as when the disk is
/// full or the transaction conflicts with another one.
///
/// The changes of the first run must be rolled back, and the unit of work must succeed when it runs again. An error of the
/// unit of work itself is returned from the first run. Both runs are detached together, as a unit of work completes even if
/// its caller stops waiting.
///
/// A store that passes the conformance suite also passes it when it is wrapped.
pub fn fails_first(store: Arc<dyn Store>, detach: Detach) -> Arc<dyn Store> {
    Arc::new(FailsFirst { store, detach })
}

struct FailsFirst {
    store: Arc<dyn Store>,
    detach: Detach,
}

/// A function that runs a future to its end, even if the returned future is dropped.
pub type Detach = fn(BoxFuture<'static, Result<(), Error>>) -> BoxFuture<'static, Result<(), Error>>;

const INJECTED: &str = "injected";

#[async_trait]
impl StoreWrapper for FailsFirst {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        if access == Access::Read {
            return self.store.run(access, name, work).await;
        }
        (self.detach)(Box::pin(run_twice(Arc::clone(&self.store), name, work))).await
    }
}

async fn run_twice(store: Arc<dyn Store>, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
    let work = Arc::new(work);
    let first_work = Arc::clone(&work);
    let first: UnitOfWork = Box::new(move |tx| {
        let run = first_work(tx);
        Box::pin(async move {
            run.await?;
            Err(StoreError::Unavailable(INJECTED.to_owned()).into())
        })
    });
    match store.run(Access::Write, name, first).await {
        Err(Error::Store(StoreError::Unavailable(error))) if error == INJECTED => {
            store.run(Access::Write, name, Box::new(move |tx| work(tx))).await
        }
        result => result,
    }
}
