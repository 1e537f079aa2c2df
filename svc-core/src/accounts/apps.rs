//! Apps: third-party programs, which an owner of an account can let work on it (OAuth 2.0, `docs/oauth.md`).
//!
//! An app belongs to the operator, or to the account whose people develop it. Any account can grant it access.
//! A *confidential* app runs on a server and keeps a secret; a *public* one runs on the devices of its users and has none.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::keys::{self, Scope};
use crate::accounts::tenants;
use crate::crypto::sha256;
use crate::env::Env;
use crate::error::{Error, FieldCode, Issue, Violations};
use crate::input::Record;
use crate::store::Tx;
use crate::values::{Id, RedirectUri, Secret, TenantId, Text, Timestamp, WebhookUrl};

/// The id of an app.
pub type AppId = Id<App>;

/// The prefix of a client id.
pub const CLIENT_ID_PREFIX: &str = "svcapp_";
/// The prefix of a client secret.
pub const CLIENT_SECRET_PREFIX: &str = "svc_ocs_";
/// The number of redirect URIs of an app.
pub const MAX_REDIRECT_URIS: usize = 10;
/// The number of apps that an account, or the operator, can have.
pub const MAX_APPS: usize = 100;
const CLIENT_ID_LENGTH: usize = 24;

/// An app without its secret, which is shown once and stored as a digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct App {
    /// The unique identifier of the app, a UUID of version 7.
    pub id: AppId,
    /// The public identifier that the app sends as `client_id`: `svcapp_…`, or the URL at which an app that nobody has registered
    /// publishes what it is.
    pub client_id: String,
    /// The account whose people develop the app. Null for an app of the operator.
    pub tenant_id: Option<TenantId>,
    /// The name that owners of accounts see when they are asked for consent.
    pub name: Text<100>,
    /// The website of the app. Null if none was given.
    pub website: Option<WebhookUrl>,
    /// The URIs to which the app lets the browser return.
    pub redirect_uris: Vec<RedirectUri>,
    /// Whether the app keeps a secret. A public app has none, and its refresh tokens rotate.
    pub confidential: bool,
    /// The scopes that the app may ask for: `read`, or `read` and `write`.
    pub scopes: Vec<Scope>,
    /// Where the app learns, by a signed `app.disconnected`, that an account has revoked its access. Null if none was given.
    pub disconnect_url: Option<WebhookUrl>,
    /// The webhook of the platform account that tells the app. `None` without such a URL.
    #[serde(skip)]
    pub webhook_id: Option<Uuid>,
    /// When the app was created.
    pub created_at: Timestamp,
    /// The creator of the app, as audit logs name them.
    pub created_by: String,
    /// When the app was disabled: its tokens are refused, and it can ask for no others. Null while it is not.
    pub disabled_at: Option<Timestamp>,
    /// The SHA-256 of the secret.
    #[serde(skip)]
    pub secret_hash: Option<[u8; 32]>,
    /// The SHA-256 of the secret before the last rotation.
    #[serde(skip)]
    pub previous_hash: Option<[u8; 32]>,
    /// Until when the secret before the last rotation is taken.
    #[serde(skip)]
    pub previous_until: Option<Timestamp>,
}

impl App {
    /// Returns whether the app may ask for the scope `write`.
    pub fn writes(&self) -> bool {
        self.scopes.contains(&Scope::Write)
    }

    /// Returns whether the app publishes what it is at its client id, so that nobody has registered it
    /// ([`published`](crate::oauth::published)).
    pub fn is_published(&self) -> bool {
        !self.client_id.starts_with(CLIENT_ID_PREFIX)
    }

    /// Returns the host at which an app describes itself that nobody has registered. Unlike its name, it cannot lie. `None` for an
    /// app that was registered.
    pub fn published_host(&self) -> Option<&str> {
        let (_, rest) = self.client_id.split_once("://").filter(|_| self.is_published())?;
        rest.split('/').next()
    }

    /// Returns whether a text is a secret of the app at `now`: the current one or, during the overlap after a rotation, the
    /// one before.
    pub fn has_secret(&self, text: &str, now: Timestamp) -> bool {
        let Ok(hash) = keys::hash_of(CLIENT_SECRET_PREFIX, text) else { return false };
        // The digests of secrets of 190 random bits; how they differ tells nothing of the secrets.
        self.secret_hash == Some(hash)
            || (self.previous_hash == Some(hash) && self.previous_until.is_some_and(|until| now < until))
    }
}

/// A new app, or one whose secret was rotated, with the secret, which is shown once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewApp {
    /// The stored record of the app.
    pub app: App,
    /// The secret. `None` for a public app.
    pub secret: Option<Secret>,
    /// The secret that signs `app.disconnected`. `None` unless the URL for it was just set.
    pub webhook_secret: Option<Secret>,
}

/// The settings of a new app.
#[derive(Clone, Debug)]
pub struct AppCreate {
    /// The account whose people develop the app. `None` for an app of the operator.
    pub owner: Option<TenantId>,
    /// The name that owners of accounts see.
    pub name: Text<100>,
    /// The URIs to which the app lets the browser return, 1 to 10.
    pub redirect_uris: Vec<RedirectUri>,
    /// The website of the app.
    pub website: Option<WebhookUrl>,
    /// Whether the app is public: it keeps no secret.
    pub public: bool,
    /// Whether the app may ask for the scope `write`.
    pub write: bool,
    /// Where the app learns that an account has revoked its access.
    pub disconnect_url: Option<WebhookUrl>,
}

impl AppCreate {
    /// Returns the settings of a confidential app of the operator, which may ask for `read`.
    pub fn new(name: Text<100>, redirect_uris: Vec<RedirectUri>) -> Self {
        Self { owner: None, name, redirect_uris, website: None, public: false, write: false, disconnect_url: None }
    }
}

/// Changes to an app. Fields that are `None` keep their values.
#[derive(Clone, Debug, Default)]
pub struct AppUpdate {
    /// The name.
    pub name: Option<Text<100>>,
    /// The redirect URIs, in place of all that there were.
    pub redirect_uris: Option<Vec<RedirectUri>>,
    /// The website, or none.
    pub website: Option<Option<WebhookUrl>>,
    /// Whether the app may ask for `write`. Access that was granted stays as it is.
    pub write: Option<bool>,
    /// Where the app learns that an account has revoked its access, or nowhere.
    pub disconnect_url: Option<Option<WebhookUrl>>,
    /// Whether the app is disabled.
    pub disabled: Option<bool>,
}

/// Creates an app without a webhook, which [`create_app`](crate::oauth::create_app) adds. The actor of the transaction is
/// stored as the one who made it.
///
/// # Errors
/// [`Error::Validation`] without redirect URIs, with more than [`MAX_REDIRECT_URIS`] or with a repeated one,
/// [`Error::NotFound`] without the account, and [`Error::NotAllowed`] with [`MAX_APPS`] apps of this owner.
pub async fn create(tx: &mut dyn Tx, input: AppCreate) -> Result<NewApp, Error> {
    check_redirect_uris(&input.redirect_uris, !input.public)?;
    if let Some(owner) = input.owner {
        tx.lock_tenant(owner).await?;
        if tenants::get(tx, owner).await?.is_sandbox() {
            let reason =
                "A sandbox has no apps of its own. Create the app in its account, and connect it to the sandbox.";
            return Err(Error::NotAllowed(reason.to_owned()));
        }
    }
    let registered = tx.apps(input.owner).await?.into_iter().filter(|app| !app.is_published()).count();
    if registered >= MAX_APPS {
        return Err(Error::NotAllowed(format!("There are {MAX_APPS} apps. Delete one before you create another.")));
    }
    let now = tx.env().now();
    let secret = (!input.public).then(|| new_secret(tx.env()));
    let app = App {
        id: tx.env().id(now),
        client_id: format!("{CLIENT_ID_PREFIX}{}", keys::random_base62(CLIENT_ID_LENGTH, || tx.env().bytes())),
        tenant_id: input.owner,
        name: input.name,
        website: input.website,
        redirect_uris: input.redirect_uris,
        confidential: !input.public,
        scopes: keys::scopes(input.write),
        disconnect_url: input.disconnect_url,
        webhook_id: None,
        created_at: now,
        created_by: tx.actor().to_string(),
        disabled_at: None,
        secret_hash: secret.as_ref().map(digest),
        previous_hash: None,
        previous_until: None,
    };
    tx.insert_app(&app).await?;
    audit_change(tx, AuditAction::Create, None, Some(&app)).await?;
    Ok(NewApp { app, secret, webhook_secret: None })
}

/// Returns the app with this id.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn get(tx: &mut dyn Tx, id: AppId) -> Result<App, Error> {
    tx.app(id).await?.ok_or(Error::NotFound)
}

/// Returns the app with this id, if it belongs to the account.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn get_of(tx: &mut dyn Tx, owner: TenantId, id: AppId) -> Result<App, Error> {
    let app = get(tx, id).await?;
    if app.tenant_id == Some(owner) { Ok(app) } else { Err(Error::NotFound) }
}

/// Locks the account that an app belongs to, and then the app, and returns the app.
///
/// # Errors
/// [`Error::NotFound`].
pub(crate) async fn get_for_update(tx: &mut dyn Tx, id: AppId) -> Result<App, Error> {
    if let Some(owner) = get(tx, id).await?.tenant_id {
        tx.lock_tenant(owner).await?;
    }
    tx.lock_app(id).await?.ok_or(Error::NotFound)
}

/// Changes an app but for its webhook, which [`update_app`](crate::oauth::update_app) changes. A change without effect
/// writes nothing.
///
/// # Errors
/// [`Error::NotFound`], and [`Error::Validation`] as for a new app.
pub async fn update(tx: &mut dyn Tx, id: AppId, change: AppUpdate) -> Result<App, Error> {
    let before = get_for_update(tx, id).await?;
    if before.is_published() && (change.name.is_some() || change.redirect_uris.is_some() || change.website.is_some()) {
        let reason = "The app publishes its name, its website and its redirect URIs itself, at its client id.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    let mut app = before.clone();
    if let Some(uris) = change.redirect_uris {
        check_redirect_uris(&uris, before.confidential)?;
        app.redirect_uris = uris;
    }
    app.name = change.name.unwrap_or(app.name);
    app.website = change.website.unwrap_or(app.website);
    app.disconnect_url = change.disconnect_url.unwrap_or(app.disconnect_url);
    app.scopes = change.write.map_or(app.scopes, keys::scopes);
    if let Some(disabled) = change.disabled
        && disabled != app.disabled_at.is_some()
    {
        app.disabled_at = disabled.then(|| tx.env().now());
    }
    if app != before {
        tx.update_app(&app).await?;
        audit_change(tx, AuditAction::Update, Some(&before), Some(&app)).await?;
    }
    Ok(app)
}

/// Replaces the secret of a confidential app. The one that it had is taken until the end of `overlap`.
///
/// # Errors
/// [`Error::NotFound`], and [`Error::NotAllowed`] for a public app.
pub async fn rotate_secret(tx: &mut dyn Tx, id: AppId, overlap: Duration) -> Result<NewApp, Error> {
    let before = get_for_update(tx, id).await?;
    if !before.confidential {
        return Err(Error::NotAllowed("A public app has no secret.".to_owned()));
    }
    let (now, secret) = (tx.env().now(), new_secret(tx.env()));
    let app = App {
        secret_hash: Some(digest(&secret)),
        previous_hash: before.secret_hash,
        previous_until: Some(now.checked_add(overlap).unwrap_or(now)),
        ..before.clone()
    };
    tx.update_app(&app).await?;
    audit_change(tx, AuditAction::Rotate, Some(&before), Some(&app)).await?;
    Ok(NewApp { app, secret: Some(secret), webhook_secret: None })
}

/// Records a change of an app in the audit log of the account that it belongs to.
pub(crate) async fn audit_change(
    tx: &mut dyn Tx,
    action: AuditAction,
    before: Option<&App>,
    after: Option<&App>,
) -> Result<(), Error> {
    match after.or(before) {
        Some(App { id, tenant_id: Some(owner), .. }) => {
            audit::record(tx, *owner, action, Object { kind: "app", id: id.uuid() }, before, after).await
        }
        // Audit logs belong to accounts.
        _ => Ok(()),
    }
}

fn new_secret(env: &Env) -> Secret {
    Secret::new(keys::new_text(env, CLIENT_SECRET_PREFIX))
}

fn digest(secret: &Secret) -> [u8; 32] {
    sha256(secret.reveal().as_bytes())
}

fn check_redirect_uris(uris: &[RedirectUri], confidential: bool) -> Result<(), Error> {
    let issue = |code, message: &'static str| Issue::new(code, message).on("redirect_uris");
    if uris.is_empty() {
        return Err(issue(FieldCode::TooShort, "must have at least one URI"));
    }
    if uris.len() > MAX_REDIRECT_URIS {
        return Err(issue(FieldCode::TooLong, "must have at most 10 URIs"));
    }
    let mut violations = Violations::default();
    for (at, uri) in uris.iter().enumerate() {
        if confidential && uri.has_short_scheme() {
            let message = "must use https, or a scheme with a dot; a scheme without one is for public apps";
            violations.push("redirect_uris", Issue::new(FieldCode::InvalidFormat, message).at(at.to_string()));
        }
        if uris[..at].contains(uri) {
            violations.push("redirect_uris", Issue::new(FieldCode::DuplicateKey, "is repeated").at(at.to_string()));
        }
    }
    if violations.is_empty() { Ok(()) } else { Err(Error::Validation(violations)) }
}
