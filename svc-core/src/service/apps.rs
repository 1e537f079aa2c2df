//! Apps, and what accounts granted them.

use std::time::Duration;

use super::executor::Runner;
use super::{Account, Svc};
use crate::accounts::apps::{self, App, AppCreate, AppId, AppUpdate, NewApp};
use crate::accounts::grants::{self, Grant, GrantId};
use crate::error::Error;
use crate::oauth::{self, RevokeReason};
use crate::values::TenantId;

/// The apps that can ask accounts for access (OAuth 2.0).
#[derive(Clone, Copy)]
pub struct Apps<'e> {
    svc: &'e Svc,
    runner: Runner<'e>,
}

impl<'e> Apps<'e> {
    pub(super) fn new(svc: &'e Svc, runner: Runner<'e>) -> Self {
        Self { svc, runner }
    }

    /// Creates an app. Its secret is in the result, and nowhere else.
    ///
    /// # Errors
    /// [`Error::Validation`] for the redirect URIs, [`Error::NotFound`] without the account that is to own it, and
    /// [`Error::NotAllowed`] with [`MAX_APPS`](apps::MAX_APPS) apps of one owner.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::accounts::apps::AppCreate;
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// let uris = vec!["https://example.com/callback".parse()?];
    /// let new = svc.apps().create(AppCreate::new("Route Planner".parse()?, uris)).await?;
    /// assert!(new.app.client_id.starts_with("svcapp_"));
    /// assert!(new.secret.unwrap().reveal().starts_with("svc_ocs_"));
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: AppCreate) -> Result<NewApp, Error> {
        let create = "svc.apps.create";
        self.runner.write(create, input, async |tx, input| oauth::create_app(tx, input.clone()).await).await
    }

    /// Returns the apps of an account, or those of the operator, oldest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// # svc_core::service::example(async |svc, tenant| {
    /// assert!(svc.apps().list(Some(tenant)).await?.is_empty());
    /// # Ok(()) });
    /// ```
    pub async fn list(self, owner: Option<TenantId>) -> Result<Vec<App>, Error> {
        self.runner.read("svc.apps.list", owner, async |tx, &owner| Ok(tx.apps(owner).await?)).await
    }

    /// Returns the app with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::error::Error;
    /// use svc_core::values::Id;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// assert_eq!(svc.apps().get(Id::nil()).await.unwrap_err(), Error::NotFound);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: AppId) -> Result<App, Error> {
        self.runner.on(id).read("svc.apps.get", id, async |tx, &id| apps::get(tx, id).await).await
    }

    /// Changes an app. The result has the secret that signs `app.disconnected`, if the URL for it is new.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::Validation`] for the redirect URIs.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::accounts::apps::{AppCreate, AppUpdate};
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// let uris = vec!["https://example.com/callback".parse()?];
    /// let app = svc.apps().create(AppCreate::new("Route Planner".parse()?, uris)).await?.app;
    /// let change = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    /// assert!(svc.apps().update(app.id, change).await?.app.disabled_at.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: AppId, change: AppUpdate) -> Result<NewApp, Error> {
        self.runner
            .on(id)
            .write("svc.apps.update", (id, change), async |tx, (id, change)| {
                oauth::update_app(tx, *id, change.clone()).await
            })
            .await
    }

    /// Replaces the secret of an app. The one that it had is taken until the end of `overlap`.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::NotAllowed`] for a public app.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use svc_core::accounts::apps::AppCreate;
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// let uris = vec!["https://example.com/callback".parse()?];
    /// let app = svc.apps().create(AppCreate::new("Route Planner".parse()?, uris)).await?.app;
    /// let new = svc.apps().rotate_secret(app.id, Duration::from_secs(24 * 3600)).await?;
    /// assert!(new.secret.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn rotate_secret(self, id: AppId, overlap: Duration) -> Result<NewApp, Error> {
        self.runner
            .on(id)
            .write("svc.apps.rotate_secret", (id, overlap), async |tx, &(id, overlap)| {
                apps::rotate_secret(tx, id, overlap).await
            })
            .await
    }

    /// Deletes an app, and ends its access to all accounts. The access to each ends in a transaction of its own.
    ///
    /// # Errors
    /// [`Error::NotFound`]. Access that ended before a failure stays ended, and the app disabled.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::accounts::apps::AppCreate;
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// let uris = vec!["https://example.com/callback".parse()?];
    /// let app = svc.apps().create(AppCreate::new("Route Planner".parse()?, uris)).await?.app;
    /// svc.apps().delete(app.id).await?;
    /// assert!(svc.apps().list(None).await?.is_empty());
    /// # Ok(()) });
    /// ```
    pub async fn delete(self, id: AppId) -> Result<App, Error> {
        oauth::delete_app(&**self.svc.store(), id).await
    }
}

/// The apps that may work on an account.
#[derive(Clone, Copy)]
pub struct Grants<'e> {
    account: Account<'e>,
}

impl<'e> Grants<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Returns the grants with their apps, oldest first, at most [`MAX_LISTED`](grants::MAX_LISTED).
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// # svc_core::service::example(async |svc, tenant| {
    /// assert!(svc.account(tenant).grants().list().await?.is_empty());
    /// # Ok(()) });
    /// ```
    pub async fn list(self) -> Result<Vec<(Grant, App)>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner.read("svc.grants.list", tenant, async |tx, &tenant| grants::list(tx, tenant).await).await
    }

    /// Ends the access of an app: its tokens are refused from the next request on, and its webhook subscriptions are deleted.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::error::Error;
    /// use svc_core::values::Id;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// assert_eq!(svc.account(tenant).grants().revoke(Id::nil()).await.unwrap_err(), Error::NotFound);
    /// # Ok(()) });
    /// ```
    pub async fn revoke(self, id: GrantId) -> Result<Grant, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .write("svc.grants.revoke", (tenant, id), async |tx, &(tenant, id)| {
                oauth::revoke(tx, tenant, id, RevokeReason::Revoked).await
            })
            .await
    }
}
