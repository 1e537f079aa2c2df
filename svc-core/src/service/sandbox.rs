//! The sandbox of an account.

use super::Account;
use crate::accounts::tenants::Tenant;
use crate::error::Error;
use crate::platform::operations;
use crate::sandboxes::{self, NewSandbox};

/// The sandbox of an account: an account of its own, for testing programs.
#[derive(Clone, Copy)]
pub struct Sandbox<'e> {
    account: Account<'e>,
}

impl<'e> Sandbox<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Returns the sandbox, if the account has one.
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
    /// assert_eq!(svc.account(tenant).sandbox().find().await?, None);
    /// # Ok(()) });
    /// ```
    pub async fn find(self) -> Result<Option<Tenant>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner.read("svc.sandbox.find", tenant, async |tx, &tenant| sandboxes::find(tx, tenant).await).await
    }

    /// Creates the sandbox, with sample records and a key.
    ///
    /// # Errors
    /// [`Error::UnknownTenant`] if there is no such account; [`Error::NotAllowed`] if it has a sandbox already, or is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let new = svc.account(tenant).sandbox().create().await?;
    /// assert_eq!(new.sandbox.sandbox_of, Some(tenant));
    /// assert!(new.key.text.reveal().starts_with("svc_test_"));
    /// let contacts = svc.account(new.sandbox.id).contacts().list(ContactFilter::default(), ListParams::default()).await?;
    /// assert_eq!(contacts.data.len(), 3);
    /// # Ok(()) });
    /// ```
    pub async fn create(self) -> Result<NewSandbox, Error> {
        let Account { runner, id: tenant } = self.account;
        runner.write("svc.sandbox.create", tenant, async |tx, &tenant| sandboxes::create(tx, tenant).await).await
    }

    /// Deletes the data of the sandbox and creates the sample records again. Keys and webhook subscriptions stay.
    ///
    /// Over a store this is a transaction for each [`STEP`](sandboxes::STEP) rows. Rows that earlier ones have deleted stay deleted
    /// if a later one fails; reset the sandbox again then.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no sandbox.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let sandbox = svc.account(tenant).sandbox().create().await?.sandbox.id;
    /// svc.account(sandbox).contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// svc.account(tenant).sandbox().reset().await?;
    /// let contacts = svc.account(sandbox).contacts().list(ContactFilter::default(), ListParams::default()).await?;
    /// assert_eq!(contacts.data.len(), 3);
    /// # Ok(()) });
    /// ```
    pub async fn reset(self) -> Result<(), Error> {
        while !self.account.call(&operations::RESET_SANDBOX, ()).await?.is_done {}
        Ok(())
    }

    /// Deletes the sandbox with all that it has, in steps as [`reset`](Self::reset) does.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no sandbox.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let sandbox = svc.account(tenant).sandbox().create().await?.sandbox.id;
    /// svc.account(tenant).sandbox().delete().await?;
    /// assert_eq!(svc.accounts().get(sandbox).await, Err(Error::UnknownTenant(sandbox)));
    /// # Ok(()) });
    /// ```
    pub async fn delete(self) -> Result<(), Error> {
        while !self.account.call(&operations::DELETE_SANDBOX, ()).await?.is_done {}
        Ok(())
    }
}
