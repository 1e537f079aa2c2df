//! Operational events: what whoever runs the service wants to know of all accounts (`docs/platform.md`, "Operational
//! events").
//!
//! They are events of an ordinary account, the [platform account](PLATFORM_ACCOUNT), which has one subscription to all of
//! its events: the *platform webhook*. So they are signed, retried, logged and replayed as every event is.
//!
//! # Protocol
//!
//! What happens in an account is recorded in the transaction of the change, in a table of its own. It is not written as an
//! event there, as a transaction of one account would then have to lock the platform account as well, and the writes of all
//! accounts would wait for each other. A step in the background, [`publish`], locks the platform account,
//! writes what was recorded as its events, and deletes it, all in one transaction. So no event is lost or doubled, however
//! often a process ends in between, and however many processes publish at the same time.
//!
//! Nothing is recorded while the platform webhook is disabled, or was never set.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::accounts::keys::{ApiKey, KeyId, Scope};
use crate::accounts::limits::MAX_WEBHOOKS;
use crate::accounts::tenants::{self, Tenant, TenantCreate};
use crate::error::{Error, StoreError};
use crate::resources::crud::{self, NoFilter, advance_clock};
use crate::resources::pages::{ListQuery, Order};
use crate::store::{Repository, Store, Tx};
use crate::values::{EventKind, EventSet, Id, KindName, Patch, TenantId, Text, TextEnum, Timestamp, WebhookUrl};
use crate::webhooks::deliveries::DeliveryId;
use crate::webhooks::engine::FailedAttempt;
use crate::webhooks::events::{self, EventId};
use crate::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};

/// The account that the operational events belong to. It is created when the platform webhook is first set.
pub const PLATFORM_ACCOUNT: TenantId = TenantId(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001));

/// How long before its expiry a key is reported.
pub const KEY_EXPIRY_NOTICE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The most events that one transaction publishes, and the most keys that are found at once.
const BATCH: u32 = 100;

/// What an operational event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
#[non_exhaustive]
pub enum OperationalKind {
    /// The service paused a webhook subscription, after ten failed attempts in a row.
    #[text = "endpoint.paused"]
    EndpointPaused,
    /// The last attempt of a delivery failed. It is sent again only by a replay.
    #[text = "delivery.exhausted"]
    DeliveryExhausted,
    /// An API key expires within seven days. Each key is reported once.
    #[text = "key.expiring"]
    KeyExpiring,
    /// An account that was pending or suspended was approved.
    #[text = "account.approved"]
    AccountApproved,
}

impl OperationalKind {
    /// Returns the kind of the event.
    pub fn event_kind(self) -> Option<EventKind> {
        KindName::from_text(self.as_str()).map(EventKind::Custom)
    }

    /// Returns the operational kind of an event of the platform account.
    pub fn of(kind: EventKind) -> Option<Self> {
        Self::from_text(kind.as_str())
    }

    /// Returns the `data` of a sample event.
    pub fn sample(self) -> Value {
        const ACCOUNT: &str = "0195a3c8-8a00-7000-8000-00000000a001";
        const TIME: &str = "2026-03-14T15:09:26.535897Z";
        match self {
            Self::EndpointPaused => json!({
                "id": "0195a3c8-8a00-7000-8000-000000001001",
                "account_id": ACCOUNT,
                "occurred_at": TIME,
                "url": "https://example.com/hooks",
                "consecutive_failures": 10,
                "last_delivery_status": 503,
            }),
            Self::DeliveryExhausted => json!({
                "id": "0195a3c8-8a00-7000-8000-000000001002",
                "account_id": ACCOUNT,
                "occurred_at": TIME,
                "event_id": "0195a3c8-8a00-7000-8000-000000001003",
                "event": "contact.created",
                "webhook_id": "0195a3c8-8a00-7000-8000-000000001001",
                "url": "https://example.com/hooks",
                "attempts": 6,
                "last_status": 503,
                "error": "status: 503",
            }),
            Self::KeyExpiring => json!({
                "id": "0195a3c8-8a00-7000-8000-000000001004",
                "account_id": ACCOUNT,
                "occurred_at": TIME,
                "name": "Accounting",
                "prefix": "svc_live_1a2B3c",
                "scopes": ["read", "write"],
                "expires_at": "2026-03-21T15:00:00.000000Z",
                "last_used_at": "2026-03-14T15:08:01.204977Z",
            }),
            Self::AccountApproved => json!({
                "id": ACCOUNT,
                "account_id": ACCOUNT,
                "occurred_at": TIME,
                "name": "Harbour Plumbing",
                "approved_by": "cli:ada",
            }),
        }
    }
}

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
    /// What the key is for, as whoever created it wrote down. Null if nothing was given.
    pub name: Option<String>,
    /// The first 15 characters of the key, which tell keys apart.
    pub prefix: String,
    /// What the key may do.
    pub scopes: Vec<Scope>,
    /// When the key stops working.
    pub expires_at: Timestamp,
    /// When the key was last used. Null if it never was.
    pub last_used_at: Option<Timestamp>,
}

/// An account that was approved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AccountApproved {
    /// The account.
    pub id: TenantId,
    /// The same account, as in all operational events.
    pub account_id: TenantId,
    /// When it was approved.
    pub occurred_at: Timestamp,
    /// The name of the account.
    pub name: String,
    /// Who approved it, as the audit log names them, such as `cli:ada`.
    pub approved_by: String,
}

/// The id of an operational event until it is published.
pub type OperationalEventId = Id<OperationalEvent>;

/// Something that happened in an account and has not been published yet.
#[derive(Clone, Debug)]
pub struct OperationalEvent {
    /// The identifier, made for the time of the change. Events are published in its order.
    pub id: OperationalEventId,
    /// What happened.
    pub kind: EventKind,
    /// The data of the event, a JSON object.
    pub data: Box<RawValue>,
}

/// What is to be recorded of a change of an account, in its order.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<(OperationalKind, Box<RawValue>)>);

impl Report {
    fn add(&mut self, kind: OperationalKind, data: &impl Serialize) -> Result<(), Error> {
        let data = to_raw_value(data).map_err(|error| StoreError::Internal(error.to_string()))?;
        self.0.push((kind, data));
        Ok(())
    }

    /// Adds that the service paused a subscription.
    pub(crate) fn paused(&mut self, tenant: TenantId, subscription: &WebhookSubscription) -> Result<(), Error> {
        let data = EndpointPaused {
            id: subscription.id,
            account_id: tenant,
            occurred_at: subscription.paused_at.unwrap_or(subscription.updated_at),
            url: subscription.url.clone(),
            consecutive_failures: subscription.consecutive_failures,
            last_delivery_status: subscription.last_delivery_status,
        };
        self.add(OperationalKind::EndpointPaused, &data)
    }

    /// Adds that the last attempt of a delivery failed at `now`.
    pub(crate) fn exhausted(
        &mut self,
        subscription: &WebhookSubscription,
        failed: &FailedAttempt,
        now: Timestamp,
    ) -> Result<(), Error> {
        let delivery = &failed.delivery;
        let data = DeliveryExhausted {
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
        };
        self.add(OperationalKind::DeliveryExhausted, &data)
    }

    /// Adds that the actor of the transaction approved an account.
    pub(crate) fn approved(&mut self, tx: &dyn Tx, tenant: &Tenant) -> Result<(), Error> {
        let data = AccountApproved {
            id: tenant.id,
            account_id: tenant.id,
            occurred_at: tx.env().now(),
            name: tenant.name.clone(),
            approved_by: tx.actor().to_string(),
        };
        self.add(OperationalKind::AccountApproved, &data)
    }

    fn expiring(&mut self, key: ApiKey, expires_at: Timestamp, now: Timestamp) -> Result<(), Error> {
        let data = KeyExpiring {
            id: key.id,
            account_id: key.tenant_id,
            occurred_at: now,
            name: key.name,
            prefix: key.prefix,
            scopes: key.scopes,
            expires_at,
            last_used_at: key.last_used_at,
        };
        self.add(OperationalKind::KeyExpiring, &data)
    }
}

/// Records what happened in an account, in the transaction of the change, which has locked the account. What happens in the
/// platform account itself is not recorded: a receiver that is down would cause an event about each of its events.
pub(crate) async fn record(tx: &mut dyn Tx, tenant: TenantId, report: Report) -> Result<(), Error> {
    if report.0.is_empty() || tenant == PLATFORM_ACCOUNT || !is_on(tx).await? {
        return Ok(());
    }
    for (kind, data) in report.0 {
        // The clock of the account, so that what happens in one account is published in its order.
        let at = advance_clock(tx, tenant).await?;
        let Some(kind) = kind.event_kind() else { continue };
        let event = OperationalEvent { id: tx.env().id(at), kind, data };
        tx.insert_operational_event(&event).await?;
    }
    Ok(())
}

/// Returns whether the platform webhook is set and not disabled. While the service has paused it, its events are held.
async fn is_on(tx: &mut dyn Tx) -> Result<bool, Error> {
    let Some(kind) = OperationalKind::EndpointPaused.event_kind() else { return Ok(false) };
    Ok(!tx.matching_subscriptions(PLATFORM_ACCOUNT, kind).await?.is_empty())
}

/// Writes what was recorded as events of the platform account, and returns how many there were. When there is nothing, it
/// costs one read.
///
/// # Errors
/// [`Error::Store`]; what was published before it stays published.
pub async fn publish(store: &dyn Store) -> Result<u64, Error> {
    let mut published = 0;
    loop {
        let is_empty = store.read("operational_events.find", |tx| {
            Box::pin(async move { Ok(tx.operational_events(1).await?.is_empty()) })
        });
        if is_empty.await? {
            return Ok(published);
        }
        let step = store.write("operational_events.publish", |tx| Box::pin(publish_step(tx))).await?;
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
        let found = store.read("keys.expiring", |tx| {
            Box::pin(async move {
                let now = tx.env().now();
                if !is_on(tx).await? {
                    return Ok(Vec::new());
                }
                Ok(tx.expiring_keys(now, now.checked_add(KEY_EXPIRY_NOTICE).unwrap_or(now), BATCH).await?)
            })
        });
        let found = found.await?;
        for id in &found {
            let id = *id;
            let is_new = store.write("keys.report_expiry", move |tx| Box::pin(report_expiry(tx, id))).await?;
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
    report.expiring(key, expires_at, now)?;
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
        store.write("operational_events.set_webhook", move |tx| {
            let url = url.clone();
            Box::pin(async move { set_in(tx, url).await })
        })
    };
    if url.is_none() && !store.read("operational_events.is_on", |tx| Box::pin(is_on(tx))).await? {
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
        tenants::create_as(tx, PLATFORM_ACCOUNT, TenantCreate::named("Platform")).await?;
    }
    let all = ListQuery { limit: MAX_WEBHOOKS, order: Order::NewestFirst { before: None }, filter: NoFilter {} };
    let oldest = Repository::<WebhookSubscription>::list(tx, PLATFORM_ACCOUNT, &all).await?.pop();
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
