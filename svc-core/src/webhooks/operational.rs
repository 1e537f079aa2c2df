//! The operational events of webhooks and API keys, and how all operational events are published as events of the
//! [platform account](PLATFORM_ACCOUNT). [`accounts::operational`](crate::accounts::operational) has the protocol.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::accounts::clocks::advance_clock;
use crate::accounts::keys::{ApiKey, KeyId, Scope};
use crate::accounts::limits::MAX_WEBHOOKS;
use crate::accounts::operational::{OperationalEvent, OperationalKind, PLATFORM_ACCOUNT, Report, is_on, record};
use crate::accounts::tenants;
use crate::error::{Error, StoreError};
use crate::pages::{ListQuery, Order};
use crate::resources::{NoFilter, crud};
use crate::store::{Repository, Store, Tx};
use crate::values::{EventKind, EventSet, Patch, TenantId, Text, Timestamp, WebhookUrl};
use crate::webhooks::deliveries::DeliveryId;
use crate::webhooks::engine::FailedAttempt;
use crate::webhooks::events::{self, EventId};
use crate::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};

/// How long before its expiry a key is reported.
pub const KEY_EXPIRY_NOTICE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The most events that one transaction publishes, and the most keys that are found at once.
const BATCH: u32 = 100;

/// A webhook subscription that the service paused.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EndpointPaused {
    /// The webhook subscription.
    pub id: SubscriptionId,
    /// The account that it belongs to.
    pub account_id: TenantId,
    /// When the service paused it.
    pub occurred_at: Timestamp,
    /// The URL of the endpoint.
    pub url: WebhookUrl,
    /// The number of attempts that failed in a row.
    pub consecutive_failures: u32,
    /// The result of the last attempt: the HTTP status of the response, 0 for a network failure or a timeout, or -1 if
    /// nothing was sent because the URL is not allowed.
    pub last_delivery_status: Option<i32>,
}

/// A delivery whose last attempt failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveryExhausted {
    /// The delivery.
    pub id: DeliveryId,
    /// The account that it belongs to.
    pub account_id: TenantId,
    /// When the failure of the last attempt was recorded.
    pub occurred_at: Timestamp,
    /// The event that was not delivered.
    pub event_id: EventId,
    /// The kind of that event.
    #[schemars(with = "String")]
    pub event: EventKind,
    /// The webhook subscription.
    pub webhook_id: SubscriptionId,
    /// The URL of the endpoint.
    pub url: WebhookUrl,
    /// The number of attempts, over all replays.
    pub attempts: u32,
    /// The result of the last attempt: the HTTP status of the response, 0 for a network failure or a timeout, or -1 if
    /// nothing was sent because the URL is not allowed.
    pub last_status: Option<i32>,
    /// The error of the last attempt: its class, a colon, and what happened.
    pub error: Option<String>,
}

/// An API key that expires within seven days.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeyExpiring {
    /// The API key.
    pub id: KeyId,
    /// The account that it belongs to.
    pub account_id: TenantId,
    /// When it was found that the key is about to expire.
    pub occurred_at: Timestamp,
    /// The purpose of the key, in the words of its creator. Null if nothing was given.
    pub name: Option<String>,
    /// The first 15 characters of the key, which tell keys apart.
    pub prefix: String,
    /// The scopes of the key.
    pub scopes: Vec<Scope>,
    /// When the key stops working.
    pub expires_at: Timestamp,
    /// When the key was last used. Null if it never was.
    pub last_used_at: Option<Timestamp>,
}

impl EndpointPaused {
    /// Returns the event of a subscription that the service has just paused.
    pub(crate) fn new(tenant: TenantId, subscription: &WebhookSubscription) -> Self {
        Self {
            id: subscription.id,
            account_id: tenant,
            occurred_at: subscription.paused_at.unwrap_or(subscription.updated_at),
            url: subscription.url.clone(),
            consecutive_failures: subscription.consecutive_failures,
            last_delivery_status: subscription.last_delivery_status,
        }
    }
}

impl DeliveryExhausted {
    /// Returns the event of a delivery whose last attempt failed at `now`.
    pub(crate) fn new(subscription: &WebhookSubscription, failed: &FailedAttempt, now: Timestamp) -> Self {
        let delivery = &failed.delivery;
        Self {
            id: delivery.id,
            account_id: delivery.tenant_id,
            occurred_at: now,
            event_id: delivery.event_id,
            event: delivery.kind,
            webhook_id: subscription.id,
            url: subscription.url.clone(),
            attempts: delivery.attempts,
            last_status: delivery.last_status,
            error: failed.error.clone(),
        }
    }
}

impl KeyExpiring {
    fn new(key: ApiKey, expires_at: Timestamp, now: Timestamp) -> Self {
        Self {
            id: key.id,
            account_id: key.tenant_id,
            occurred_at: now,
            name: key.name,
            prefix: key.prefix,
            scopes: key.scopes,
            expires_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// Writes what was recorded as events of the platform account, and returns how many there were. When there is nothing, it
/// costs one read.
///
/// # Errors
/// [`Error::Store`]; what was published before it stays published.
pub async fn publish(store: &dyn Store) -> Result<u64, Error> {
    let mut published = 0;
    loop {
        let is_empty =
            store.read("operational_events.find", (), async |tx, ()| Ok(tx.operational_events(1).await?.is_empty()));
        if is_empty.await? {
            return Ok(published);
        }
        let step = store.write("operational_events.publish", (), async |tx, ()| publish_step(tx).await).await?;
        published += step;
        if step < u64::from(BATCH) {
            return Ok(published);
        }
    }
}

async fn publish_step(tx: &mut dyn Tx) -> Result<u64, Error> {
    // Only after the lock does a process see what another one has published.
    if !tx.lock_tenant(PLATFORM_ACCOUNT).await? {
        return Ok(0);
    }
    let recorded = tx.operational_events(BATCH).await?;
    for OperationalEvent { id, kind, data } in &recorded {
        let now = advance_clock(tx, PLATFORM_ACCOUNT).await?;
        events::emit(tx, PLATFORM_ACCOUNT, now, &[*kind], data).await?;
        tx.delete_operational_event(*id).await?;
    }
    Ok(recorded.len() as u64)
}

/// Records the API keys that expire within [`KEY_EXPIRY_NOTICE`] and were not recorded before, and returns how many there
/// were.
///
/// # Errors
/// [`Error::Store`]; what was recorded before it stays recorded.
pub async fn report_expiring_keys(store: &dyn Store) -> Result<u64, Error> {
    let mut reported = 0;
    loop {
        let found = store.read("keys.expiring", (), async |tx, ()| {
            let now = tx.env().now();
            if !is_on(tx).await? {
                return Ok(Vec::new());
            }
            Ok(tx.expiring_keys(now, now.checked_add(KEY_EXPIRY_NOTICE).unwrap_or(now), BATCH).await?)
        });
        let found = found.await?;
        for id in &found {
            let id = *id;
            let is_new = store.write("keys.report_expiry", id, async |tx, &id| report_expiry(tx, id).await).await?;
            reported += u64::from(is_new);
        }
        if found.len() < BATCH as usize {
            return Ok(reported);
        }
    }
}

/// Records that a key expires, unless another process has done so, or it has been revoked since it was found.
async fn report_expiry(tx: &mut dyn Tx, id: KeyId) -> Result<bool, Error> {
    let Some(tenant) = tx.api_key(id).await?.map(|key| key.tenant_id) else { return Ok(false) };
    tx.lock_tenant(tenant).await?;
    let Some(key) = tx.api_key(id).await? else { return Ok(false) };
    let Some(expires_at) = key.expires_at else { return Ok(false) };
    if key.revoked_at.is_some() || !tx.mark_key_expiry_reported(id).await? {
        return Ok(false);
    }
    let (mut report, now) = (Report::default(), tx.env().now());
    report.add(OperationalKind::KeyExpiring, &KeyExpiring::new(key, expires_at, now))?;
    record(tx, tenant, report).await?;
    Ok(true)
}

/// Sets the URL of the platform webhook, or disables it. Setting it the first time creates the platform account and its
/// subscription; setting it again changes the URL, and enables the subscription unless the service has paused it at this URL.
///
/// # Errors
/// [`Error::Validation`] for a URL that may not receive webhooks, and [`Error::Store`].
pub async fn set_webhook(store: &dyn Store, url: Option<&WebhookUrl>) -> Result<(), Error> {
    let set = || {
        let url = url.cloned();
        store.write("operational_events.set_webhook", url, async |tx, url| set_in(tx, url.clone()).await)
    };
    if url.is_none() && !store.read("operational_events.is_on", (), async |tx, ()| is_on(tx).await).await? {
        return Ok(());
    }
    match set().await {
        // Another process has created the account at the same time.
        Err(Error::Store(StoreError::Conflict { .. })) => set().await,
        done => done,
    }
}

async fn set_in(tx: &mut dyn Tx, url: Option<WebhookUrl>) -> Result<(), Error> {
    if !tx.lock_tenant(PLATFORM_ACCOUNT).await? {
        if url.is_none() {
            return Ok(());
        }
        tenants::create_platform(tx).await?;
    }
    let all = ListQuery { limit: MAX_WEBHOOKS, order: Order::NewestFirst { before: None }, filter: NoFilter {} };
    // Those of apps are for one kind.
    let mut webhooks = Repository::<WebhookSubscription>::list(tx, PLATFORM_ACCOUNT, &all).await?;
    webhooks.retain(|webhook| webhook.events == EventSet::All);
    let oldest = webhooks.pop();
    match (oldest, url) {
        (None, None) => {}
        (Some(webhook), None) => {
            let input = WebhookUpdate { enabled: Patch::Set(false), ..WebhookUpdate::default() };
            crud::update::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, webhook.id, input).await?;
        }
        (Some(webhook), Some(url)) => {
            let is_paused_here = webhook.disabled_reason.is_some() && webhook.url == url;
            if webhook.url != url || !(webhook.enabled || is_paused_here) {
                let input =
                    WebhookUpdate { url: Patch::Set(url), enabled: Patch::Set(true), ..WebhookUpdate::default() };
                crud::update::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, webhook.id, input).await?;
            }
        }
        (None, Some(url)) => {
            let description = Some(Text::from_stored("The platform webhook, which svc-server keeps at its URL"));
            let input = WebhookCreate { description, ..WebhookCreate::new(url, EventSet::All) };
            crud::create::<WebhookSubscription>(tx, PLATFORM_ACCOUNT, input).await?;
        }
    }
    Ok(())
}
