//! Stores over other stores.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Access, Observer, RequestCounts, Store, UnitOfWork};
use crate::env::Env;
use crate::error::Error;
use crate::webhooks::deliveries::DeliveryWakeup;

/// Does something around the jobs of another store, and is like it in everything else.
///
/// ```
/// use async_trait::async_trait;
/// use svc_core::error::Error;
/// use svc_core::error::StoreError;
/// use svc_core::store::{Access, UnitOfWork, Layer, Store, memory::MemoryStore};
///
/// /// Lets nobody write.
/// struct ReadOnly(MemoryStore);
///
/// #[async_trait]
/// impl Layer for ReadOnly {
///     fn inner(&self) -> &dyn Store {
///         &self.0
///     }
///
///     async fn around(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
///         match access {
///             Access::Read => self.0.run(access, name, job).await,
///             Access::Write => Err(StoreError::Unavailable("it is read only".to_owned()).into()),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Layer: Send + Sync + 'static {
    /// The store below.
    fn inner(&self) -> &dyn Store;

    /// Runs a job, as [`Store::run`] does.
    async fn around(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error>;
}

#[async_trait]
impl<L: Layer> Store for L {
    async fn run(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        self.around(access, name, job).await
    }

    fn env(&self) -> &Env {
        self.inner().env()
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        self.inner().delivery_wakeup()
    }

    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        self.inner().request_counts()
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.inner().observe(observer);
    }
}
