//! The end of a grant, and of an app.

use schemars::JsonSchema;
use serde::Serialize;

use super::disconnection::{AppDisconnected, release_webhook};
use crate::accounts::apps::{self, App, AppId};
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::grants::{self, Grant, GrantId};
use crate::accounts::keys::Scope;
use crate::accounts::limits::MAX_WEBHOOKS;
use crate::accounts::operational::{self, OperationalKind, Report};
use crate::error::Error;
use crate::pages::{ListQuery, Order};
use crate::resources::{NoFilter, crud};
use crate::store::{Repository, Store, Tx};
use crate::values::{TenantId, TextEnum, Timestamp};
use crate::webhooks::subscriptions::WebhookSubscription;

/// How many grants are found at once when an app is deleted.
const BATCH: u32 = 100;

/// Why the access of an app has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
#[non_exhaustive]
pub enum RevokeReason {
    /// A person of the account revoked it, or the operator.
    Revoked,
    /// The app revoked its last refresh token.
    Disconnected,
    /// A refresh token came again after it was replaced, so two hold it.
    TokenReused,
    /// The app was deleted.
    AppDeleted,
}

/// An account has let an app work on it, or do more than before.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AppAuthorized {
    /// The grant.
    pub id: GrantId,
    /// The account.
    pub account_id: TenantId,
    /// When it was granted.
    pub occurred_at: Timestamp,
    /// The app.
    pub app_id: AppId,
    /// The name of the app.
    pub app_name: String,
    /// The scopes of the app.
    pub scopes: Vec<Scope>,
    /// The member who granted it.
    pub member: String,
}

/// The access of an app to an account has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AppRevoked {
    /// The grant.
    pub id: GrantId,
    /// The account.
    pub account_id: TenantId,
    /// When it ended.
    pub occurred_at: Timestamp,
    /// The app.
    pub app_id: AppId,
    /// The name of the app.
    pub app_name: String,
    /// Why it ended: `revoked`, `disconnected` by the app, `token_reused` or `app_deleted`.
    pub reason: RevokeReason,
    /// The person or program that ended it, as the audit log names them.
    pub revoked_by: String,
}

impl AppAuthorized {
    pub(super) fn new(grant: &Grant, app: &App, now: Timestamp) -> Self {
        Self {
            id: grant.id,
            account_id: grant.tenant_id,
            occurred_at: now,
            app_id: app.id,
            app_name: app.name.to_string(),
            scopes: grant.scopes.clone(),
            member: grant.member.clone(),
        }
    }
}

/// Ends the access of an app to an account: deletes the grant with its tokens and the webhook subscriptions of the app, all in
/// this transaction, so that no request is let in and no delivery starts after it.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn revoke(tx: &mut dyn Tx, tenant: TenantId, id: GrantId, reason: RevokeReason) -> Result<Grant, Error> {
    tx.lock_tenant(tenant).await?;
    let grant = grants::get(tx, tenant, id).await?;
    let app = tx.app(grant.app_id).await?;
    let all = ListQuery { limit: MAX_WEBHOOKS, order: Order::NewestFirst { before: None }, filter: NoFilter {} };
    for webhook in Repository::<WebhookSubscription>::list(tx, tenant, &all).await? {
        if webhook.grant_id == Some(id) {
            crud::delete::<WebhookSubscription>(tx, tenant, webhook.id).await?;
        }
    }
    tx.delete_grant(tenant, id).await?;
    audit::record(tx, tenant, AuditAction::Revoke, Object { kind: "grant", id: id.uuid() }, Some(&grant), None).await?;
    // On Citus no foreign key keeps an app whose deletion meets the consent of an account.
    let Some(app) = app else { return Ok(grant) };
    let revoked = AppRevoked {
        id,
        account_id: tenant,
        occurred_at: tx.env().now(),
        app_id: app.id,
        app_name: app.name.to_string(),
        reason,
        revoked_by: tx.actor().to_string(),
    };
    let mut report = Report::default();
    report.add(OperationalKind::AppRevoked, &revoked)?;
    operational::record(tx, tenant, report).await?;
    if let Some(webhook_id) = app.webhook_id {
        let AppRevoked { id, account_id, occurred_at, reason, .. } = revoked;
        let client_id = app.client_id;
        let gone = AppDisconnected { id, account_id, occurred_at, client_id, reason, webhook_id };
        operational::record_always(tx, tenant, OperationalKind::AppDisconnected, &gone).await?;
    }
    Ok(grant)
}

/// Deletes an app and ends its access to all accounts: the app is disabled first, then each grant ends in a transaction of its
/// own.
///
/// # Errors
/// [`Error::NotFound`], and [`Error::Store`]. Access that ended before a failure stays ended, and the app disabled.
pub async fn delete_app(store: &dyn Store, id: AppId) -> Result<App, Error> {
    let disable = store.write("apps.disable", id, async |tx, &id| {
        apps::update(tx, id, apps::AppUpdate { disabled: Some(true), ..apps::AppUpdate::default() }).await
    });
    // It waits for the consents that are under way. No account can connect the app after it.
    disable.await?;
    loop {
        let found = store.read("grants.of_app", id, async |tx, &id| Ok(tx.grants_to(id, BATCH).await?)).await?;
        for Grant { tenant_id, id, .. } in &found {
            let ended = store.write("grants.revoke", (*tenant_id, *id), async |tx, &(tenant, id)| {
                revoke(tx, tenant, id, RevokeReason::AppDeleted).await
            });
            match ended.await {
                // Somebody else has ended it meanwhile.
                Ok(_) | Err(Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        if found.is_empty() {
            break;
        }
    }
    store.write("apps.delete", id, async |tx, &id| delete(tx, id).await).await
}

/// Deletes an app and ends its access to all accounts, in this transaction.
///
/// # Errors
/// [`Error::NotFound`], and [`Error::NotAllowed`] if it has access to more than 100 accounts, which a transaction must not lock.
pub async fn delete_app_at_once(tx: &mut dyn Tx, id: AppId) -> Result<(), Error> {
    apps::get(tx, id).await?;
    let grants = tx.grants_to(id, BATCH + 1).await?;
    if grants.len() > BATCH as usize {
        let reason = format!(
            "The app has access to more than {BATCH} accounts. Disable it, which ends that at once, and delete it when fewer \
             are left."
        );
        return Err(Error::NotAllowed(reason));
    }
    // In the order of their ids, as others lock several accounts.
    for Grant { tenant_id, id, .. } in grants {
        revoke(tx, tenant_id, id, RevokeReason::AppDeleted).await?;
    }
    delete(tx, id).await.map(drop)
}

/// Deletes an app that has access to no account.
///
/// # Errors
/// [`Error::NotFound`], and [`Error::NotAllowed`] if an account has connected the app meanwhile.
pub(super) async fn delete(tx: &mut dyn Tx, id: AppId) -> Result<App, Error> {
    let app = apps::get_for_update(tx, id).await?;
    if !tx.grants_to(id, 1).await?.is_empty() {
        let reason = "An account has just connected the app. Delete it again, which ends that access as well.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    release_webhook(tx, &app).await?;
    tx.delete_app(id).await?;
    apps::audit_change(tx, AuditAction::Delete, Some(&app), None).await?;
    Ok(app)
}
