//! Apps of somebody else, and the grants of accounts to them.

use crate::accounts::apps::{self, App, AppId};
use crate::accounts::grants::{self, GrantId};
use crate::error::Error;
use crate::oauth::{self, RevokeReason};
use crate::pages::Page;
use crate::platform::{
    AppCreate, AppGrant, AppListParams, AppUpdate, AppWithSecret, Method, Operation, Seconds, SecretRotation,
};
use crate::values::TenantId;

/// Creates an app.
pub const CREATE_APP: Operation<(), AppCreate, AppWithSecret> =
    Operation::new("createApp", Method::Post, "apps", "", &async |tx, (), input: &AppCreate| {
        Ok(oauth::create_app(tx, input.clone().into()).await?.into())
    });

/// Lists the apps of the operator, or of an account.
pub const LIST_APPS: Operation<(), AppListParams, Page<App>> =
    Operation::new("listApps", Method::Get, "apps", "", &async |tx, (), input: &AppListParams| {
        Ok(Page::whole(tx.apps(input.account_id.map(TenantId)).await?))
    })
    .unwrapped();

/// Retrieves an app.
pub const GET_APP: Operation<AppId, (), App> =
    Operation::new("getApp", Method::Get, "apps", "", &async |tx, id, _| apps::get(tx, id).await);

/// Changes an app.
pub const UPDATE_APP: Operation<AppId, AppUpdate, AppWithSecret> =
    Operation::new("updateApp", Method::Patch, "apps", "", &async |tx, id, input: &AppUpdate| {
        Ok(oauth::update_app(tx, id, input.clone().into()).await?.into())
    });

/// Replaces the secret of an app.
pub const ROTATE_APP_SECRET: Operation<AppId, SecretRotation, AppWithSecret> = Operation::new(
    "rotateAppSecret",
    Method::Post,
    "apps",
    "rotate-secret",
    &async |tx, id, input: &SecretRotation| {
        Ok(apps::rotate_secret(tx, id, Seconds::overlap(input.overlap)).await?.into())
    },
);

/// Deletes an app, and ends its access to all accounts.
pub const DELETE_APP: Operation<AppId, (), ()> =
    Operation::new("deleteApp", Method::Delete, "apps", "", &async |tx, id, _| oauth::delete_app_at_once(tx, id).await);

/// Lists the apps that may work on an account.
pub const LIST_GRANTS: Operation<TenantId, (), Page<AppGrant>> =
    Operation::new("listGrants", Method::Get, "grants", "", &async |tx, account, _| {
        Ok(Page::whole(grants::list(tx, account).await?.into_iter().map(AppGrant::from).collect()))
    })
    .unwrapped();

/// Ends the access of an app to an account.
pub const REVOKE_GRANT: Operation<(TenantId, GrantId), (), AppGrant> =
    Operation::new("revokeGrant", Method::Post, "grants", "revoke", &async |tx, (account, id), _| {
        let app = grants::get(tx, account, id).await?.app_id;
        let app = tx.app(app).await?.ok_or(Error::NotFound)?;
        Ok((oauth::revoke(tx, account, id, RevokeReason::Revoked).await?, app).into())
    });
