//! Operational events: what the operator wants to know of all accounts (`docs/platform.md`, "Operational
//! events").
//!
//! They are events of an ordinary account, the [platform account](PLATFORM_ACCOUNT), which has one subscription to all of
//! its events: the *platform webhook*. So they are signed, retried, logged and replayed as every event is.
//!
//! # Protocol
//!
//! An occurrence in an account is recorded in the transaction of the change, in a table of its own. It is not written as an
//! event there, as a transaction of one account would then have to lock the platform account as well, and the writes of all
//! accounts would wait for each other. A step in the background,
//! [`publish`](crate::webhooks::operational::publish), locks the platform account,
//! writes what was recorded as its events, and deletes it, all in one transaction. So no event is lost or doubled, however
//! often a process ends in between, and however many processes publish at the same time.
//!
//! Nothing is recorded while the platform webhook is disabled, or was never set.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use crate::accounts::clocks::advance_clock;
use crate::error::{Error, StoreError};
use crate::store::Tx;
use crate::values::{EventKind, Id, KindName, TenantId, TextEnum, Timestamp};

/// The account that the operational events belong to. It is created when the platform webhook is first set.
pub const PLATFORM_ACCOUNT: TenantId = TenantId(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001));

/// The occurrence that an operational event reports.
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
    /// An account has let an app work on it, or do more than before.
    #[text = "app.authorized"]
    AppAuthorized,
    /// The access of an app to an account has ended.
    #[text = "app.revoked"]
    AppRevoked,
    /// The same, for the app, which gets it at the URL that it has registered.
    #[text = "app.disconnected"]
    AppDisconnected,
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
    /// The person or program that approved it, as the audit log names them, such as `cli:ada`.
    pub approved_by: String,
}

/// The id of an operational event until it is published.
pub type OperationalEventId = Id<OperationalEvent>;

/// Something that happened in an account and has not been published yet.
#[derive(Clone, Debug)]
pub struct OperationalEvent {
    /// The identifier, made for the time of the change. Events are published in its order.
    pub id: OperationalEventId,
    /// The kind of the event.
    pub kind: EventKind,
    /// The data of the event, a JSON object.
    pub data: Box<RawValue>,
}

/// The occurrences to record of a change of an account, in their order.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<(OperationalKind, Box<RawValue>)>);

impl Report {
    /// Adds what happened.
    pub(crate) fn add(&mut self, kind: OperationalKind, data: &impl Serialize) -> Result<(), Error> {
        let data = to_raw_value(data).map_err(|error| StoreError::Internal(error.to_string()))?;
        self.0.push((kind, data));
        Ok(())
    }
}

/// Records what happened in an account, in the transaction of the change, which has locked the account. Occurrences in the
/// platform account itself are not recorded: a receiver that is down would cause an event about each of its events. Nor is what
/// happens in a sandbox, where nothing is real.
pub(crate) async fn record(tx: &mut dyn Tx, tenant: TenantId, report: Report) -> Result<(), Error> {
    if report.0.is_empty() || tenant == PLATFORM_ACCOUNT || !is_on(tx).await? {
        return Ok(());
    }
    if tx.tenant(tenant).await?.is_none_or(|tenant| tenant.is_sandbox()) {
        return Ok(());
    }
    for (kind, data) in report.0 {
        insert(tx, tenant, kind, data).await?;
    }
    Ok(())
}

/// Records what happened in an account also if there is no platform webhook, as somebody else gets it.
pub(crate) async fn record_always(
    tx: &mut dyn Tx,
    tenant: TenantId,
    kind: OperationalKind,
    data: &(impl Serialize + Sync),
) -> Result<(), Error> {
    let data = to_raw_value(data).map_err(|error| StoreError::Internal(error.to_string()))?;
    insert(tx, tenant, kind, data).await
}

async fn insert(tx: &mut dyn Tx, tenant: TenantId, kind: OperationalKind, data: Box<RawValue>) -> Result<(), Error> {
    // The clock of the account, so that what happens in one account is published in its order.
    let at = advance_clock(tx, tenant).await?;
    let Some(kind) = kind.event_kind() else { return Ok(()) };
    let event = OperationalEvent { id: tx.env().id(at), kind, data };
    Ok(tx.insert_operational_event(&event).await?)
}

/// Returns whether the platform webhook is set and not disabled. While the service has paused it, its events are held.
pub(crate) async fn is_on(tx: &mut dyn Tx) -> Result<bool, Error> {
    let Some(kind) = OperationalKind::EndpointPaused.event_kind() else { return Ok(false) };
    Ok(!tx.matching_subscriptions(PLATFORM_ACCOUNT, kind).await?.is_empty())
}
