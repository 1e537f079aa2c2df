//! API keys of an account.

use std::time::Duration;

use super::Account;
use crate::accounts::keys::{self, ApiKey, KeyCreate, KeyId, NewKey};
use crate::error::Error;

/// The API keys of an account.
#[derive(Clone, Copy)]
pub struct Keys<'e> {
    account: Account<'e>,
}

impl<'e> Keys<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Creates a key. Its text is in the result, and nowhere else.
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
    /// # let account = svc.account(tenant);
    /// let new = account.keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await?;
    /// assert!(new.text.reveal().starts_with("svc_live_"));
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: KeyCreate) -> Result<NewKey, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .write("svc.keys.create", (tenant, input), async |tx, (tenant, input)| {
                keys::create(tx, *tenant, input.clone()).await
            })
            .await
    }

    /// Returns the key with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such key.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let new = account.keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await?;
    /// assert_eq!(account.keys().get(new.key.id).await?, new.key);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: KeyId) -> Result<ApiKey, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .read("svc.keys.get", (tenant, id), async |tx, &(tenant, id)| keys::get_of(tx, tenant, id).await)
            .await
    }

    /// Returns all keys, also those that are revoked or expired.
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
    /// # let account = svc.account(tenant);
    /// let new = account.keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await?;
    /// assert_eq!(account.keys().list().await?, [new.key]);
    /// # Ok(()) });
    /// ```
    pub async fn list(self) -> Result<Vec<ApiKey>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner.read("svc.keys.list", tenant, async |tx, &tenant| Ok(tx.api_keys(tenant).await?)).await
    }

    /// Revokes a key, which is refused from the next request on. Revoking it again changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such key.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let new = account.keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await?;
    /// assert!(account.keys().revoke(new.key.id).await?.revoked_at.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn revoke(self, id: KeyId) -> Result<ApiKey, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .write("svc.keys.revoke", (tenant, id), async |tx, &(tenant, id)| {
                keys::get_of(tx, tenant, id).await?;
                keys::revoke(tx, id).await
            })
            .await
    }

    /// Creates a key like this one, which expires after `overlap`.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such key; [`Error::NotAllowed`] if it is revoked or expired.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use std::time::Duration;
    ///
    /// # let account = svc.account(tenant);
    /// let new = account.keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await?;
    /// let next = account.keys().rotate(new.key.id, Duration::from_secs(60 * 60)).await?;
    /// assert_ne!(next.key.id, new.key.id);
    /// # Ok(()) });
    /// ```
    pub async fn rotate(self, id: KeyId, overlap: Duration) -> Result<NewKey, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .write("svc.keys.rotate", (tenant, id, overlap), async |tx, &(tenant, id, overlap)| {
                keys::get_of(tx, tenant, id).await?;
                keys::rotate(tx, id, overlap).await
            })
            .await
    }
}
