//! Accounts.

use super::executor::Runner;
use crate::accounts::tenants::{self, Tenant, TenantCreate};
use crate::error::Error;
use crate::values::TenantId;

/// The accounts of a store: businesses, each with records of its own.
#[derive(Clone, Copy)]
pub struct Accounts<'e> {
    runner: Runner<'e>,
}

impl<'e> Accounts<'e> {
    pub(super) fn new(runner: Runner<'e>) -> Self {
        Self { runner }
    }

    /// Creates an account.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// let settings = TenantCreate { currency: "EUR".parse()?, ..TenantCreate::named("Hill Electric") };
    /// let tenant = svc.accounts().create(settings).await?;
    /// assert_eq!(tenant.name, "Hill Electric");
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: TenantCreate) -> Result<Tenant, Error> {
        self.runner
            .write("svc.accounts.create", input, async |tx, input| tenants::create(tx, input.clone()).await)
            .await
    }

    /// Returns the account with this id.
    ///
    /// # Errors
    /// [`Error::UnknownTenant`] if there is no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// assert_eq!(svc.accounts().get(tenant).await?.name, "Harbour Plumbing");
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: TenantId) -> Result<Tenant, Error> {
        self.runner.of_tenant(id).read("svc.accounts.get", id, async |tx, &id| tenants::get(tx, id).await).await
    }

    /// Returns the accounts after this one in the order of their ids, which is that of their creation. At most `limit` are
    /// returned; without `after`, the first. Sandboxes are left out: [`Account::sandbox`](super::Account::sandbox) has that of
    /// an account.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// assert_eq!(svc.accounts().list(None, 100).await?.len(), 1);
    /// assert_eq!(svc.accounts().list(Some(tenant), 100).await?, []);
    /// # Ok(()) });
    /// ```
    pub async fn list(self, after: Option<TenantId>, limit: u32) -> Result<Vec<Tenant>, Error> {
        let list = self.runner.read("svc.accounts.list", (after, limit), async |tx, &(after, limit)| {
            Ok(tx.tenants(after, limit, false).await?)
        });
        list.await
    }
}
