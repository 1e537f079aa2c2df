//! Third-party apps, and the grants of accounts to them.

use super::memory::WHOLE_LIST;
use crate::accounts::apps::{self, App, AppId};
use crate::accounts::grants::{self, GrantId};
use crate::accounts::platform_keys::Area;
use crate::error::Error;
use crate::oauth::{self, RevokeReason};
use crate::operation::{Method, Operation, Outside};
use crate::pages::Page;
use crate::platform::{AppCreate, AppGrant, AppListParams, AppUpdate, AppWithSecret, Seconds, SecretRotation};
use crate::values::TenantId;

/// Creates an app.
pub const CREATE_APP: Operation<(), AppCreate, AppWithSecret> =
    Operation::new("createApp", Method::Post, "apps", "", &async |tx, (), input: &AppCreate| {
        Ok(oauth::create_app(tx, input.clone().into()).await?.into())
    })
    .in_area(Area::Apps)
    .creates()
    .checked_outside(|input| Outside::webhook("disconnect_url", input.disconnect_url.clone()))
    .described(
        "Create an app",
        "Creates an app of somebody else, which owners of accounts can let work on them (OAuth 2.0). The response \
         contains its secret. Store it, as no other request returns it.",
        "The created app, with its secret.",
    );

/// Lists the apps of the operator, or of an account.
pub const LIST_APPS: Operation<(), AppListParams, Page<App>> =
    Operation::new("listApps", Method::Get, "apps", "", &async |tx, (), input: &AppListParams| {
        Ok(Page::whole(tx.apps(input.account_id.map(TenantId)).await?))
    })
    .unwrapped()
    .in_area(Area::Apps)
    .reading(|_| WHOLE_LIST)
    .described(
        "List apps",
        "Returns the apps of the operator, or those of the account `account_id`, the oldest first.",
        "All apps of the operator, or of the account.",
    );

/// Retrieves an app.
pub const GET_APP: Operation<AppId, (), App> =
    Operation::new("getApp", Method::Get, "apps", "", &async |tx, id, _| apps::get(tx, id).await)
        .in_area(Area::Apps)
        .with_etag()
        .described("Retrieve an app", "Returns the app with this id, without its secret.", "The app with this id.");

/// Changes an app.
pub const UPDATE_APP: Operation<AppId, AppUpdate, AppWithSecret> =
    Operation::new("updateApp", Method::Patch, "apps", "", &async |tx, id, input: &AppUpdate| {
        Ok(oauth::update_app(tx, id, input.clone().into()).await?.into())
    })
    .in_area(Area::Apps)
    .checked_outside(|input| Outside::webhook("disconnect_url", input.disconnect_url.clone().sent().flatten()))
    .described(
        "Update an app",
        "Changes the fields that you send and leaves the others as they are (JSON Merge Patch, RFC 7396). The tokens \
         of a disabled app are refused from the next request on, and work again once it is enabled.",
        "The app after the change.",
    );

/// Replaces the secret of an app.
pub const ROTATE_APP_SECRET: Operation<AppId, SecretRotation, AppWithSecret> = Operation::new(
    "rotateAppSecret",
    Method::Post,
    "apps",
    "rotate-secret",
    &async |tx, id, input: &SecretRotation| {
        Ok(apps::rotate_secret(tx, id, Seconds::overlap(input.overlap)).await?.into())
    },
)
.in_area(Area::Apps)
.described(
    "Rotate the secret of an app",
    "Creates another secret. The one before is taken until the end of the overlap. A public app, which has no secret, \
     is refused with 409 `not_allowed`.",
    "The app, with its new secret.",
);

/// Deletes an app, and ends its access to all accounts.
pub const DELETE_APP: Operation<AppId, (), ()> = Operation::new(
    "deleteApp",
    Method::Delete,
    "apps",
    "",
    &async |tx, id, _| oauth::delete_app_at_once(tx, id).await,
)
.in_area(Area::Apps)
.described(
    "Delete an app",
    "Deletes the app, and ends its access to all accounts. One with access to more than 100 accounts is refused with \
     409 `not_allowed`; disable it instead.",
    "The app was deleted. The response has no body.",
);

/// Lists the apps that may work on an account.
pub const LIST_GRANTS: Operation<TenantId, (), Page<AppGrant>> =
    Operation::new("listGrants", Method::Get, "grants", "", &async |tx, account, _| {
        Ok(Page::whole(grants::list(tx, account).await?.into_iter().map(AppGrant::from).collect()))
    })
    .unwrapped()
    .in_area(Area::Apps)
    .reading(|_| WHOLE_LIST)
    .tagged("apps")
    .described(
        "List grants",
        "Returns the apps that may work on the account, the one that was granted first at the top.",
        "All grants of the account.",
    );

/// Ends the access of an app to an account.
pub const REVOKE_GRANT: Operation<(TenantId, GrantId), (), AppGrant> =
    Operation::new("revokeGrant", Method::Post, "grants", "revoke", &async |tx, (account, id), _| {
        let app = grants::get(tx, account, id).await?.app_id;
        let app = tx.app(app).await?.ok_or(Error::NotFound)?;
        Ok((oauth::revoke(tx, account, id, RevokeReason::Revoked).await?, app).into())
    })
    .in_area(Area::Apps)
    .tagged("apps")
    .described(
        "Revoke a grant",
        "Ends the access of an app to the account: its tokens are refused from the next request on, and its webhook \
         subscriptions are deleted.",
        "The grant that has ended.",
    );
