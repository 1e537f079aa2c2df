//! Stores that wrap other stores.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Access, AccountServers, Observer, RequestCounts, Store, StoreResult, UnitOfWork};
use crate::env::Env;
use crate::error::Error;
use crate::webhooks::deliveries::DeliveryWakeup;

/// A [`Store`] that wraps another one: it changes how units of work are run and forwards everything else.
///
/// ```
/// use async_trait::async_trait;
/// use svc_core::error::{Error, StoreError};
/// use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork, memory::MemoryStore};
///
/// /// Refuses all writes.
/// struct ReadOnly(MemoryStore);
///
/// #[async_trait]
/// impl StoreWrapper for ReadOnly {
///     fn inner(&self) -> &dyn Store {
///         &self.0
///     }
///
///     async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
///         match access {
///             Access::Read => self.0.run(access, name, work).await,
///             Access::Write => Err(StoreError::Unavailable("the store is read-only".to_owned()).into()),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait StoreWrapper: Send + Sync + 'static {
    /// Returns the wrapped store.
    fn inner(&self) -> &dyn Store;

    /// Runs a unit of work, as [`Store::run`] does.
    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error>;

    /// Runs a read, as [`Store::run_in_place`] does. By default it is an ordinary read of this store.
    async fn run_in_place_wrapped(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.run_wrapped(Access::Read, name, work).await
    }

    /// Checks that writes are taken, as [`Store::check_writable`] does.
    ///
    /// # Errors
    /// Those of [`Store::check_writable`].
    fn check_writable_wrapped(&self) -> StoreResult<()> {
        self.inner().check_writable()
    }
}

/// A store that is shared is a store, also by its own type, as for an application that hands it to several things.
#[async_trait]
impl<S: Store> StoreWrapper for Arc<S> {
    fn inner(&self) -> &dyn Store {
        &**self
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        S::run(self, access, name, work).await
    }

    async fn run_in_place_wrapped(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        S::run_in_place(self, name, work).await
    }
}

/// So is one of a type that is not known.
#[async_trait]
impl StoreWrapper for Arc<dyn Store> {
    fn inner(&self) -> &dyn Store {
        &**self
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.inner().run(access, name, work).await
    }

    async fn run_in_place_wrapped(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.inner().run_in_place(name, work).await
    }
}

#[async_trait]
impl<W: StoreWrapper> Store for W {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.run_wrapped(access, name, work).await
    }

    async fn run_in_place(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.run_in_place_wrapped(name, work).await
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

    fn servers(&self) -> Option<&dyn AccountServers> {
        self.inner().servers()
    }

    fn check_writable(&self) -> StoreResult<()> {
        self.check_writable_wrapped()
    }

    async fn close(&self) {
        self.inner().close().await;
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.inner().observe(observer);
    }
}
