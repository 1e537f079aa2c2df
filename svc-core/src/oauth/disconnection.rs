//! How an app learns that an account has ended its access: by a webhook of its own, `app.disconnected`.
//!
//! It is a subscription of the [platform account](PLATFORM_ACCOUNT), which gets this event of its app and no other. So it is
//! signed, retried, logged and replayed as every delivery is, after the account itself has nothing left of the app. The event is
//! recorded in the transaction that ends the access, and published as [operational events](crate::accounts::operational) are.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::RevokeReason;
use crate::accounts::apps::{self, App, AppCreate, AppId, AppUpdate, NewApp};
use crate::accounts::grants::GrantId;
use crate::accounts::operational::{OperationalKind, PLATFORM_ACCOUNT};
use crate::accounts::tenants;
use crate::error::{Error, Violation};
use crate::resources::crud;
use crate::store::{Repository, Tx};
use crate::values::{EventSet, Patch, TenantId, Text, Timestamp, WebhookUrl};
use crate::webhooks::subscriptions::{self, SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};

/// How long the webhook of a deleted app stays, for the deliveries that are pending.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An account has ended the access of an app, which gets this.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AppDisconnected {
    /// The grant that has ended.
    pub id: GrantId,
    /// The account, as `tenant_id` in the response with the tokens named it.
    pub account_id: TenantId,
    /// When it ended.
    pub occurred_at: Timestamp,
    /// The public identifier of the app.
    pub client_id: String,
    /// Why it ended: `revoked`, `disconnected` by the app, `token_reused` or `app_deleted`.
    pub reason: RevokeReason,
    /// The webhook of the app that gets this.
    pub webhook_id: Uuid,
}

/// Creates an app, with the webhook at which it learns of its disconnection if it has a URL for that.
///
/// # Errors
/// Those of [`apps::create`], and [`Error::Validation`] for a URL that may not receive webhooks.
pub async fn create_app(tx: &mut dyn Tx, input: AppCreate) -> Result<NewApp, Error> {
    let new = apps::create(tx, input).await?;
    with_webhook(tx, new).await
}

/// Changes an app, and its webhook.
///
/// # Errors
/// Those of [`apps::update`], and [`Error::Validation`] for a URL that may not receive webhooks.
pub async fn update_app(tx: &mut dyn Tx, id: AppId, mut change: AppUpdate) -> Result<NewApp, Error> {
    let before = apps::get_for_update(tx, id).await?;
    if let Some(webhook) = before.webhook_id
        && change.disconnect_url.is_none()
        && live_webhook(tx, webhook.into()).await?.is_none()
    {
        // An operator has deleted the webhook, so nothing is sent to the URL any more.
        change.disconnect_url = Some(None);
    }
    let app = apps::update(tx, id, change).await?;
    with_webhook(tx, NewApp { app, secret: None, webhook_secret: None }).await
}

async fn with_webhook(tx: &mut dyn Tx, new: NewApp) -> Result<NewApp, Error> {
    let NewApp { mut app, secret, .. } = new;
    let (before, mut webhook_secret) = (app.webhook_id, None);
    let current = match before {
        Some(id) => live_webhook(tx, id.into()).await?,
        None => None,
    };
    match (app.disconnect_url.clone(), current) {
        (None, None) => app.webhook_id = None,
        (None, Some(webhook)) => {
            crud::delete::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, webhook.id).await?;
            app.webhook_id = None;
        }
        (Some(url), Some(webhook)) => {
            let input = WebhookUpdate { url: Patch::Set(url), ..WebhookUpdate::default() };
            let updated = crud::update::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, webhook.id, input).await;
            updated.map_err(on_disconnect_url)?;
        }
        (Some(url), None) => {
            let webhook = create_webhook(tx, &app, url).await?;
            (app.webhook_id, webhook_secret) = (Some(webhook.id.uuid()), Some(webhook.secret));
        }
    }
    if app.webhook_id != before {
        tx.update_app(&app).await?;
    }
    Ok(NewApp { app, secret, webhook_secret })
}

/// Locks the platform account, and returns the webhook of an app. `None` if an operator has deleted it there.
async fn live_webhook(tx: &mut dyn Tx, id: SubscriptionId) -> Result<Option<WebhookSubscription>, Error> {
    tx.lock_tenant(PLATFORM_ACCOUNT).await?;
    match crud::get(tx, PLATFORM_ACCOUNT, id).await {
        Ok(webhook) => Ok(Some(webhook)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn create_webhook(tx: &mut dyn Tx, app: &App, url: WebhookUrl) -> Result<WebhookSubscription, Error> {
    if !tx.lock_tenant(PLATFORM_ACCOUNT).await? {
        tenants::create_platform(tx).await?;
    }
    let description = Some(Text::from_stored(&format!("Tells the app {} of its disconnection", app.client_id)));
    let input = WebhookCreate { description, ..WebhookCreate::new(url, EventSet::All) };
    let created = crud::create::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, input).await;
    let mut webhook = created.map_err(on_disconnect_url)?;
    // No other webhook may ask for this kind.
    webhook.events = EventSet::Kinds(OperationalKind::AppDisconnected.event_kind().into_iter().collect());
    Repository::<WebhookSubscription>::update(tx, PLATFORM_ACCOUNT, &webhook).await?;
    Ok(webhook)
}

/// Names the field of the app in the place of that of its webhook.
fn on_disconnect_url(error: Error) -> Error {
    let Error::Validation(violations) = error else { return error };
    let of_app = |violation: &Violation| match violation.message.strip_prefix("url ") {
        Some(reason) if violation.field == "url" => {
            let message = format!("disconnect_url {reason}");
            Violation { field: "disconnect_url".to_owned(), message, ..violation.clone() }
        }
        _ => violation.clone(),
    };
    Error::Validation(violations.as_slice().iter().map(of_app).collect())
}

/// Lets the webhook of an app that is deleted end by itself, once what is pending has been delivered.
pub(super) async fn release_webhook(tx: &mut dyn Tx, app: &App) -> Result<(), Error> {
    let Some(id) = app.webhook_id else { return Ok(()) };
    match subscriptions::keep_for(tx, PLATFORM_ACCOUNT, id.into(), KEPT).await {
        // An operator has deleted it already.
        Err(Error::NotFound) => Ok(()),
        kept => kept,
    }
}
