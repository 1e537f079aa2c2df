//! Third-party apps, and the grants of accounts to them.

use std::time::Duration;

use svc_core::accounts::apps::{App, AppId};
use svc_core::accounts::grants::GrantId;
use svc_core::platform::{AppCreate, AppGrant, AppListParams, AppUpdate, AppWithSecret, SecretRotation, operations};
use svc_core::values::TenantId;

use super::{AccountClient, Platform};
use crate::error::Result;

impl Platform {
    /// Creates an app. The response contains its secret, which no other response does.
    ///
    /// # Errors
    /// `validation_failed`, and any other [`Error`](crate::Error).
    pub async fn create_app(&self, app: &AppCreate) -> Result<AppWithSecret> {
        self.call(&operations::CREATE_APP, (), app).await
    }

    /// Returns the apps of the operator, or those of an account, oldest first.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn apps(&self, owner: Option<TenantId>) -> Result<Vec<App>> {
        let params = AppListParams { account_id: owner.map(|owner| owner.0) };
        Ok(self.call(&operations::LIST_APPS, (), &params).await?.data)
    }

    /// Returns the app with this id.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn app(&self, id: AppId) -> Result<App> {
        self.call(&operations::GET_APP, id, &()).await
    }

    /// Changes an app.
    ///
    /// # Errors
    /// `not_found`, `validation_failed`, and any other [`Error`](crate::Error).
    pub async fn update_app(&self, id: AppId, change: &AppUpdate) -> Result<AppWithSecret> {
        self.call(&operations::UPDATE_APP, id, change).await
    }

    /// Replaces the secret of an app. The one that it had is taken for the overlap: 24 hours, unless it is given.
    ///
    /// # Errors
    /// `not_found`, `not_allowed` for a public app, and any other [`Error`](crate::Error).
    pub async fn rotate_app_secret(&self, id: AppId, overlap: Option<Duration>) -> Result<AppWithSecret> {
        let rotation = SecretRotation { overlap: overlap.map(Into::into) };
        self.call(&operations::ROTATE_APP_SECRET, id, &rotation).await
    }

    /// Deletes an app, and ends its access to all accounts.
    ///
    /// # Errors
    /// `not_found`, `not_allowed` if it has access to more than 100 accounts, and any other [`Error`](crate::Error).
    pub async fn delete_app(&self, id: AppId) -> Result<()> {
        self.call(&operations::DELETE_APP, id, &()).await
    }
}

impl AccountClient {
    /// Returns the apps that may work on the account, oldest grant first.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn grants(&self) -> Result<Vec<AppGrant>> {
        Ok(self.call(&operations::LIST_GRANTS, &()).await?.data)
    }

    /// Ends the access of an app to the account: its tokens are refused from the next request on.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn revoke_grant(&self, id: GrantId) -> Result<AppGrant> {
        let output = self.client.send(&operations::REVOKE_GRANT, Some(id.uuid()), &(), None).await?;
        self.client.output(&operations::REVOKE_GRANT, &output)
    }
}
