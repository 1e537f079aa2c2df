//! Keys of the platform API.

use super::executor::Runner;
use crate::accounts::platform_keys::{self, NewPlatformKey, PlatformKey, PlatformKeyCreate, PlatformKeyId};
use crate::error::Error;

/// The keys of the platform API, which belong to no account.
#[derive(Clone, Copy)]
pub struct PlatformKeys<'e> {
    runner: Runner<'e>,
}

impl<'e> PlatformKeys<'e> {
    pub(super) fn new(runner: Runner<'e>) -> Self {
        Self { runner }
    }

    /// Creates a key. Its text is in the result, and nowhere else.
    ///
    /// # Errors
    /// [`Error::Validation`] without scopes.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::accounts::platform_keys::{PlatformKeyCreate, PlatformScope};
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// let input = PlatformKeyCreate { name: None, scopes: vec![PlatformScope::All], expires_in: None };
    /// let new = svc.platform_keys().create(input).await?;
    /// assert!(new.text.reveal().starts_with("svc_plat_"));
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: PlatformKeyCreate) -> Result<NewPlatformKey, Error> {
        self.runner
            .write("svc.platform_keys.create", input, async |tx, input| platform_keys::create(tx, input.clone()).await)
            .await
    }

    /// Returns all keys, oldest first, also those that are revoked or expired.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// # svc_core::service::example(async |svc, _| {
    /// assert_eq!(svc.platform_keys().list().await?, []);
    /// # Ok(()) });
    /// ```
    pub async fn list(self) -> Result<Vec<PlatformKey>, Error> {
        let list = self.runner.read("svc.platform_keys.list", (), async |tx, ()| Ok(tx.platform_keys().await?));
        list.await
    }

    /// Revokes a key, which is refused from the next request on. Revoking it again changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such key.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::accounts::platform_keys::{PlatformKeyCreate, PlatformScope};
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// let input = PlatformKeyCreate { name: None, scopes: vec![PlatformScope::All], expires_in: None };
    /// let id = svc.platform_keys().create(input).await?.key.id;
    /// assert!(svc.platform_keys().revoke(id).await?.revoked_at.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn revoke(self, id: PlatformKeyId) -> Result<PlatformKey, Error> {
        self.runner
            .on(id)
            .write("svc.platform_keys.revoke", id, async |tx, &id| platform_keys::revoke(tx, id).await)
            .await
    }
}
