//! The inputs and records of the platform API about apps and the grants of accounts to them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::values::{KeyScopes, RedirectUris};
use crate::accounts::apps::{self, App, AppId, NewApp};
use crate::accounts::grants::{Grant, GrantId};
use crate::accounts::keys::Scope;
use crate::input::{Input, Record};
use crate::values::{Patch, RedirectUri, Secret, TenantId, Text, Timestamp, WebhookUrl};

/// A new app.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct AppCreate {
    /// The name that owners of accounts see when they are asked for consent. Must be a single line.
    pub name: Text<100>,
    /// The URIs to which the app lets the browser return, 1 to 10: `https`, `http` of 127.0.0.1, `[::1]` or localhost, or a
    /// scheme of a native app, which has a dot unless the app is public.
    pub redirect_uris: RedirectUris,
    /// The scopes that the app may ask for: `["read"]`, or `["read", "write"]`. Without it, or with null, it is `["read"]`.
    pub scopes: Option<KeyScopes>,
    /// Whether the app is public: it runs on the devices of its users and has no secret. Without it, or with null, it has one.
    pub public: Option<bool>,
    /// The website of the app.
    pub website: Option<WebhookUrl>,
    /// The URL that is told, by a signed `app.disconnected`, when an account ends the access of the app.
    pub disconnect_url: Option<WebhookUrl>,
    /// The `id` of the account whose people develop the app. Without it, or with null, it is an app of the operator.
    pub account_id: Option<Uuid>,
}

impl AppCreate {
    /// Returns a confidential app of the operator, which may ask for `read`.
    pub fn new(name: Text<100>, redirect_uris: Vec<RedirectUri>) -> Self {
        let redirect_uris = RedirectUris(redirect_uris);
        let (scopes, public, website, disconnect_url, account_id) = (None, None, None, None, None);
        Self { name, redirect_uris, scopes, public, website, disconnect_url, account_id }
    }
}

impl From<AppCreate> for apps::AppCreate {
    fn from(input: AppCreate) -> Self {
        Self {
            owner: input.account_id.map(TenantId),
            website: input.website,
            public: input.public.unwrap_or_default(),
            write: input.scopes.is_some_and(|scopes| scopes.write),
            disconnect_url: input.disconnect_url,
            ..Self::new(input.name, input.redirect_uris.0)
        }
    }
}

/// Changes to an app. A field that is left out keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Input)]
#[input(patch)]
pub struct AppUpdate {
    /// The name that owners of accounts see.
    pub name: Patch<Text<100>>,
    /// The redirect URIs, in place of all that the app has.
    pub redirect_uris: Patch<RedirectUris>,
    /// The scopes that the app may ask for. Grants stay as they are.
    pub scopes: Patch<KeyScopes>,
    /// The website of the app. Null removes it.
    pub website: Patch<Option<WebhookUrl>>,
    /// The URL that is told when an account ends the access of the app. Null removes it.
    pub disconnect_url: Patch<Option<WebhookUrl>>,
    /// Whether the app is disabled: its tokens are refused, and it can ask for no others.
    pub disabled: Patch<bool>,
}

impl From<AppUpdate> for apps::AppUpdate {
    fn from(change: AppUpdate) -> Self {
        Self {
            name: change.name.sent(),
            redirect_uris: change.redirect_uris.sent().map(|uris| uris.0),
            website: change.website.sent(),
            write: change.scopes.sent().map(|scopes| scopes.write),
            disconnect_url: change.disconnect_url.sent(),
            disabled: change.disabled.sent(),
        }
    }
}

/// The owner of the apps that are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct AppListParams {
    /// The `id` of the account whose apps are listed. Without it, those of the operator are.
    pub account_id: Option<Uuid>,
}

/// An app with its secrets, where the request has made them. No other response contains them.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppWithSecret {
    /// The app.
    #[serde(flatten)]
    pub app: App,
    /// The secret with which the app authenticates. Null for a public app, and if the request has made none.
    pub client_secret: Option<String>,
    /// The secret that signs `app.disconnected`. Null unless the request has set the URL for it.
    pub webhook_secret: Option<String>,
}

impl fmt::Debug for AppWithSecret {
    /// Shows no secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppWithSecret").field("app", &self.app).finish_non_exhaustive()
    }
}

impl From<NewApp> for AppWithSecret {
    fn from(new: NewApp) -> Self {
        let reveal = |secret: Option<Secret>| secret.map(|secret| secret.reveal().to_owned());
        Self { app: new.app, client_secret: reveal(new.secret), webhook_secret: reveal(new.webhook_secret) }
    }
}

/// The access of an app to an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct AppGrant {
    /// The unique identifier of the grant, a UUID of version 7.
    pub id: GrantId,
    /// The app.
    pub app_id: AppId,
    /// The name of the app.
    pub app_name: String,
    /// The account that granted the access.
    pub tenant_id: TenantId,
    /// The scopes of the app: `read`, or `read` and `write`.
    pub scopes: Vec<Scope>,
    /// The person who granted it last, as the audit log names them.
    pub member: String,
    /// When it was granted.
    pub created_at: Timestamp,
    /// When the app last sent a request, exact to about ten seconds. Null if it never did.
    pub last_used_at: Option<Timestamp>,
    /// How many requests the app has sent, exact to about ten seconds.
    pub requests: u64,
}

impl From<(Grant, App)> for AppGrant {
    fn from((grant, app): (Grant, App)) -> Self {
        Self {
            id: grant.id,
            app_id: grant.app_id,
            app_name: app.name.to_string(),
            tenant_id: grant.tenant_id,
            scopes: grant.scopes,
            member: grant.member,
            created_at: grant.created_at,
            last_used_at: grant.last_used_at,
            requests: grant.requests,
        }
    }
}
