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
use crate::error::Error;
use crate::resources::crud;
use crate::store::{Repository, Tx};
use crate::values::{EventSet, Patch, TenantId, Text, Timestamp, WebhookUrl};
use crate::webhooks::subscriptions::{self, WebhookCreate, WebhookSubscription, WebhookUpdate};

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
pub async fn update_app(tx: &mut dyn Tx, id: AppId, change: AppUpdate) -> Result<NewApp, Error> {
    let app = apps::update(tx, id, change).await?;
    with_webhook(tx, NewApp { app, secret: None, webhook_secret: None }).await
}

async fn with_webhook(tx: &mut dyn Tx, new: NewApp) -> Result<NewApp, Error> {
    let NewApp { mut app, secret, .. } = new;
    let (before, mut webhook_secret) = (app.webhook_id, None);
    match (app.disconnect_url.clone(), before) {
        (None, None) => {}
        (None, Some(id)) => {
            tx.lock_tenant(PLATFORM_ACCOUNT).await?;
            crud::delete::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, id.into()).await?;
            app.webhook_id = None;
        }
        (Some(url), Some(id)) => {
            let input = WebhookUpdate { url: Patch::Set(url), ..WebhookUpdate::default() };
            crud::update::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, id.into(), input).await?;
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

async fn create_webhook(tx: &mut dyn Tx, app: &App, url: WebhookUrl) -> Result<WebhookSubscription, Error> {
    if !tx.lock_tenant(PLATFORM_ACCOUNT).await? {
        tenants::create_platform(tx).await?;
    }
    let description = Some(Text::from_stored(&format!("Tells the app {} of its disconnection", app.client_id)));
    let input = WebhookCreate { description, ..WebhookCreate::new(url, EventSet::All) };
    let mut webhook = crud::create::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, input).await?;
    // No other webhook may ask for this kind.
    webhook.events = EventSet::Kinds(OperationalKind::AppDisconnected.event_kind().into_iter().collect());
    Repository::<WebhookSubscription>::update(tx, PLATFORM_ACCOUNT, &webhook).await?;
    Ok(webhook)
}

/// Lets the webhook of an app that is deleted end by itself, once what is pending has been delivered.
pub(super) async fn release_webhook(tx: &mut dyn Tx, app: &App) -> Result<(), Error> {
    match app.webhook_id {
        Some(id) => subscriptions::keep_for(tx, PLATFORM_ACCOUNT, id.into(), KEPT).await,
        None => Ok(()),
    }
}
