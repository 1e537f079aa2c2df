//! The records that the platform API returns.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounts::keys::{self, KeyId, NewKey, Scope};
use crate::accounts::limits::{CappedCollection, RateLimits};
use crate::accounts::tenants::{DeveloperAccess, Tenant};
use crate::input::Record;
use crate::resources::invoices::{Invoice, OverduePosition};
use crate::resources::kinds::AccountRecord;
use crate::sandboxes;
use crate::values::{AnyObject, Currency, EventKind, Note, Secret, TenantId, Text, Timestamp};
use crate::webhooks::deliveries::{self, AttemptLog, DeliveryId, DeliveryStatus, FailureReason};
use crate::webhooks::events::{self, EventId};
use crate::webhooks::replays::{self, ReplayId};
use crate::webhooks::statistics::{AttemptOutcome, Backlog, HourOfAttempts};
use crate::webhooks::subscriptions::SubscriptionId;

/// The account of a business, with its settings, its approval and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Account {
    /// The unique identifier of the account, a UUID of version 7.
    pub id: TenantId,
    /// The name of the business.
    pub name: String,
    /// Whether the keys of the account may use the API: `approved`, `pending` or `suspended`.
    pub developer_access: DeveloperAccess,
    /// The IANA name of the time zone that days begin in.
    pub time_zone: String,
    /// The currency of records that name none: a three-letter code of ISO 4217 in upper case.
    pub currency: Currency,
    /// The postal address of the business, which its invoices and quotes show. It may have several lines. Null if it has none.
    pub address: Option<Note<500>>,
    /// The tax number of the business with its name, which its invoices and quotes show. Null if it has none.
    pub tax_number: Option<Text<100>>,
    /// How many days after `issue_date` an invoice is due that is created without a `due_date`. Null if it has no due date then.
    pub days_until_due: Option<u32>,
    /// How customers pay, which invoices show that are to be paid. It may have several lines. Null if nothing is said.
    pub payment_details: Option<Note<500>>,
    /// Whether no two contacts of the account that are not deleted can have the same email address.
    pub unique_contact_email: bool,
    /// The limit of all requests of a key, per 60 seconds. Null if that of the server applies.
    pub rate_limit: Option<u32>,
    /// The limits of writes, per key and route and 60 seconds.
    pub write_rate_limits: WriteLimits,
    /// The number of webhook subscriptions that the account can have. Null if the limit of the server applies.
    pub max_webhooks: Option<u32>,
    /// When the account was created.
    pub created_at: Timestamp,
    /// The `id` of the account whose sandbox this is. Null for a real account.
    pub sandbox_of: Option<TenantId>,
    /// The `id` of the sandbox of this account. Null while it has none.
    pub sandbox_id: Option<TenantId>,
}

/// The limits of writes by collection. Null where the limit of the server applies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct WriteLimits {
    /// The limit of writes to contacts.
    pub contacts: Option<u32>,
    /// The limit of writes to bookings.
    pub bookings: Option<u32>,
    /// The limit of writes to quotes.
    pub quotes: Option<u32>,
    /// The limit of writes to jobs.
    pub jobs: Option<u32>,
    /// The limit of writes to webhook subscriptions.
    pub webhooks: Option<u32>,
}

impl From<Tenant> for Account {
    fn from(tenant: Tenant) -> Self {
        let RateLimits { rate_limit, write_rate_limits } = tenant.limits;
        let of = |collection| write_rate_limits.of(collection).map(u32::from);
        Self {
            id: tenant.id,
            name: tenant.name,
            developer_access: tenant.developer_access,
            time_zone: tenant.time_zone.to_string(),
            currency: tenant.currency,
            address: tenant.address,
            tax_number: tenant.tax_number,
            days_until_due: tenant.days_until_due,
            payment_details: tenant.payment_details,
            unique_contact_email: tenant.unique_contact_email,
            rate_limit: rate_limit.map(u32::from),
            write_rate_limits: WriteLimits {
                contacts: of(CappedCollection::Contacts),
                bookings: of(CappedCollection::Bookings),
                quotes: of(CappedCollection::Quotes),
                jobs: of(CappedCollection::Jobs),
                webhooks: of(CappedCollection::Webhooks),
            },
            max_webhooks: tenant.max_webhooks,
            created_at: tenant.created_at,
            sandbox_of: tenant.sandbox_of,
            sandbox_id: tenant.sandbox_id,
        }
    }
}

/// A new sandbox with its first API key, whose text no other response contains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct NewSandbox {
    /// The sandbox, which is an account of its own.
    pub account: Account,
    /// A key of the sandbox that reads and writes.
    pub key: ApiKeyWithSecret,
}

impl From<sandboxes::NewSandbox> for NewSandbox {
    fn from(new: sandboxes::NewSandbox) -> Self {
        Self { account: new.sandbox.into(), key: new.key.into() }
    }
}

/// An API key of an account, without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct ApiKey {
    /// The unique identifier of the key, a UUID of version 7.
    pub id: KeyId,
    /// The `id` of the account that the key belongs to.
    pub tenant_id: TenantId,
    /// The purpose of the key, in the words of its creator. Null if nothing was given.
    pub name: Option<String>,
    /// The scopes of the key: `read`, or `read` and `write`.
    pub scopes: Vec<Scope>,
    /// Whether writes with the key must be signed.
    pub signed: bool,
    /// The first 15 characters of the key, which tell keys apart.
    pub prefix: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When the key stops working. Null if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// When the key was revoked. Null while it has not been.
    pub revoked_at: Option<Timestamp>,
    /// When the key was last used, exact to about ten seconds. Null if it never was.
    pub last_used_at: Option<Timestamp>,
}

impl From<keys::ApiKey> for ApiKey {
    fn from(key: keys::ApiKey) -> Self {
        Self {
            id: key.id,
            tenant_id: key.tenant_id,
            name: key.name,
            scopes: key.scopes,
            signed: key.signing_secret.is_some(),
            prefix: key.prefix,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// A new API key with its secrets, which no other response contains.
#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
pub struct ApiKeyWithSecret {
    /// The unique identifier of the key, a UUID of version 7.
    pub id: KeyId,
    /// The `id` of the account that the key belongs to.
    pub tenant_id: TenantId,
    /// The purpose of the key, in the words of its creator. Null if nothing was given.
    pub name: Option<String>,
    /// The scopes of the key: `read`, or `read` and `write`.
    pub scopes: Vec<Scope>,
    /// The text of the key, which a client sends.
    pub key: String,
    /// The secret with which the key signs its writes. Null if it does not sign them.
    pub signing_secret: Option<String>,
    /// The first 15 characters of the key, which tell keys apart.
    pub prefix: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When the key stops working. Null if it does not expire.
    pub expires_at: Option<Timestamp>,
}

impl fmt::Debug for ApiKeyWithSecret {
    /// Shows no secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyWithSecret").field("id", &self.id).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl From<NewKey> for ApiKeyWithSecret {
    fn from(new: NewKey) -> Self {
        let key = new.key;
        Self {
            id: key.id,
            tenant_id: key.tenant_id,
            name: key.name,
            scopes: key.scopes,
            key: new.text.reveal().to_owned(),
            signing_secret: key.signing_secret.as_ref().map(|secret| Secret::reveal(secret).to_owned()),
            prefix: key.prefix,
            created_at: key.created_at,
            expires_at: key.expires_at,
        }
    }
}

/// A page of all records of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct ExportPage {
    /// The records of this page. A record comes after the contact that it refers to.
    pub data: Vec<AccountRecord>,
    /// The position after this page: send it as `cursor` to get the next one. Null on the last page.
    pub next_cursor: Option<String>,
}

/// The invoices that became overdue in one step of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MarkedInvoices")]
pub struct MarkedInvoices<I = Invoice> {
    /// The invoices that became overdue.
    pub data: Vec<I>,
    /// Where the check goes on: send it as `next` in the next request. Null after the last step.
    #[schemars(with = "Option<String>")]
    pub next: Option<OverduePosition>,
}

impl From<(events::Event, Vec<deliveries::Delivery>)> for EmittedEvent {
    fn from((event, deliveries): (events::Event, Vec<deliveries::Delivery>)) -> Self {
        Self { event: event.into(), deliveries: deliveries.into_iter().map(Delivery::from).collect() }
    }
}

/// Something that happened to a record of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Event {
    /// The unique identifier of the event, a UUID of version 7.
    pub id: EventId,
    /// The `id` of the account.
    pub tenant_id: TenantId,
    /// The kind of event, such as `contact.created`.
    #[record(schema = String)]
    pub kind: EventKind,
    /// The record as it was right after the change.
    pub data: AnyObject,
    /// Whether the event is a test of one webhook subscription.
    pub is_test: bool,
    /// When it happened. Unique within the account.
    pub created_at: Timestamp,
}

impl From<events::Event> for Event {
    fn from(event: events::Event) -> Self {
        let is_test = event.is_test();
        let events::Event { id, tenant_id, kind, data, created_at, .. } = event;
        Self { id, tenant_id, kind, data: AnyObject(data), is_test, created_at }
    }
}

/// A new event with its deliveries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct EmittedEvent {
    /// The event that was written.
    pub event: Event,
    /// Its deliveries, one for each webhook subscription that receives it.
    pub deliveries: Vec<Delivery>,
}

/// One event on its way to one webhook subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Delivery {
    /// The unique identifier of the delivery, the same on every attempt and every replay.
    pub id: DeliveryId,
    /// The `id` of the event that is delivered.
    pub event_id: EventId,
    /// The kind of that event, such as `contact.created`.
    #[record(schema = String)]
    pub event: EventKind,
    /// The `id` of the webhook subscription that receives it.
    pub subscription_id: SubscriptionId,
    /// The status: `pending`, `succeeded`, `failed` or `held`.
    pub status: DeliveryStatus,
    /// The number of attempts over all replays.
    pub attempts: u32,
    /// The HTTP status of the last attempt, 0 for a network failure or timeout, -1 for an address that is not allowed. Null
    /// before the first one ended.
    pub last_status: Option<i32>,
    /// When the next attempt is due. Null unless the delivery is pending, and while it waits for an earlier one of its record.
    pub next_attempt_at: Option<Timestamp>,
    /// Why the delivery failed, if it was not for the outcome of its last attempt. Null otherwise.
    pub failure_reason: Option<FailureReason>,
    /// When the event happened.
    pub created_at: Timestamp,
}

impl From<deliveries::Delivery> for Delivery {
    fn from(delivery: deliveries::Delivery) -> Self {
        Self {
            id: delivery.id,
            event_id: delivery.event_id,
            event: delivery.kind,
            subscription_id: delivery.subscription_id,
            status: delivery.status,
            attempts: delivery.attempts,
            last_status: delivery.last_status,
            next_attempt_at: delivery.next_attempt_at.filter(|at| *at < deliveries::WAITS_FOR_ANOTHER),
            failure_reason: delivery.failure_reason,
            created_at: delivery.created_at,
        }
    }
}

/// A delivery with its event and the log of its newest attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct DeliveryDetails {
    /// The delivery itself.
    pub delivery: Delivery,
    /// The event that is delivered.
    pub event: Event,
    /// The log of its newest attempts, 20 at most, the first of them first. `attempts` of the delivery is how many there were in
    /// all; the list of its attempts has the earlier ones.
    pub log: Vec<AttemptLog>,
}

/// A bulk replay with its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Replay {
    /// The unique identifier of the replay, a UUID of version 7.
    pub id: ReplayId,
    /// The `id` of the account.
    pub tenant_id: TenantId,
    /// The `id` of the webhook subscription whose deliveries are sent again.
    pub subscription_id: SubscriptionId,
    /// The start of the time span.
    pub since: Timestamp,
    /// The end of the time span, which is not part of it.
    pub until: Timestamp,
    /// The statuses of the deliveries that are sent again.
    pub statuses: Vec<DeliveryStatus>,
    /// Whether matching events without a delivery are sent as well.
    pub missed: bool,
    /// How far the replay has come: events before this time are done.
    pub position: Timestamp,
    /// How many deliveries or events the replay has to go through, counted up to 10,000, which stands for that many or more.
    /// 0 if it is not known.
    pub total: u32,
    /// How many of them the replay has gone through so far.
    pub done: u32,
    /// How much of the replay is done, in percent.
    pub percent: u8,
    /// How many deliveries became due through this replay so far.
    pub replayed: u32,
    /// Whether the replay ended early, since its subscription was disabled, paused or deleted meanwhile.
    pub broken_off: bool,
    /// When the replay was requested.
    pub created_at: Timestamp,
    /// When the replay ended. Null while it is running.
    pub finished_at: Option<Timestamp>,
}

impl From<replays::Replay> for Replay {
    fn from(replay: replays::Replay) -> Self {
        let (percent, broken_off) = (replay.percent(), replay.broken_off());
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            id: replay.id,
            tenant_id: replay.tenant_id,
            subscription_id: replay.subscription_id,
            since: replay.since,
            until: replay.until,
            statuses: replay.statuses,
            missed: replay.missed,
            position: replay.position,
            total: count(replay.total),
            done: count(replay.done),
            percent,
            replayed: count(replay.replayed),
            broken_off,
            created_at: replay.created_at,
            finished_at: replay.finished_at,
        }
    }
}

/// The attempts of the last 24 hours, and for one webhook subscription what waits for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Statistics {
    /// The attempts by hour, the oldest hour first.
    pub hours: Vec<HourlyStatistics>,
    /// The number of pending deliveries, counted up to 10,000. Null for the statistics of an account.
    pub pending: Option<u32>,
    /// The number of held deliveries, counted up to 10,000. Null for the statistics of an account.
    pub held: Option<u32>,
}

impl Statistics {
    /// Returns the statistics of an account, or with its backlog those of a subscription.
    pub fn new(hours: Vec<HourOfAttempts>, backlog: Option<Backlog>) -> Self {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            hours: hours.into_iter().map(HourlyStatistics::from).collect(),
            pending: backlog.map(|backlog| count(backlog.pending)),
            held: backlog.map(|backlog| count(backlog.held)),
        }
    }
}

/// The attempts of one hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct HourlyStatistics {
    /// When the hour begins.
    pub begins_at: Timestamp,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of attempts that got a status of 2xx.
    pub succeeded: u32,
    /// The number of attempts that got another status.
    pub refused: u32,
    /// The number of attempts that got no response.
    pub no_response: u32,
    /// The duration in milliseconds that half of the attempts did not exceed, rounded up. Null without attempts.
    pub p50_ms: Option<u32>,
    /// The duration in milliseconds that 95 % of the attempts did not exceed, rounded up. Null without attempts.
    pub p95_ms: Option<u32>,
}

impl From<HourOfAttempts> for HourlyStatistics {
    fn from(hour: HourOfAttempts) -> Self {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            begins_at: hour.begins_at,
            attempts: count(hour.tally.attempts()),
            succeeded: count(hour.tally.count(AttemptOutcome::Succeeded)),
            refused: count(hour.tally.count(AttemptOutcome::Refused)),
            no_response: count(hour.tally.count(AttemptOutcome::NoResponse)),
            p50_ms: hour.tally.percentile(50),
            p95_ms: hour.tally.percentile(95),
        }
    }
}
