//! The bodies and query parameters that the platform API takes.

use serde::Serialize;
use uuid::Uuid;

use super::values::{
    AtLeastOne, DaysUntilDue, EmittableKind, KeyScopes, Seconds, StatusFilter, Statuses, WebhookCount,
    WriteLimitChanges, Zone,
};
use crate::accounts::dashboard_links::INVITATION_LIFETIME;
use crate::accounts::keys::KeyId;
use crate::accounts::limits::RateLimits;
use crate::accounts::sessions::Role;
use crate::accounts::tenants::{DeveloperAccess, Tenant, TenantCreate};
use crate::input::Input;
use crate::pages::{Limit, SentCursor, Since};
use crate::resources::invoices::{InvoiceId, OverduePosition};
use crate::values::{AnyObject, Currency, Email, EventKind, Note, Patch, Text, TextEnum, Timestamp};
use crate::webhooks::deliveries::DeliveryStatus;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookCreate};

/// A new account.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct AccountCreate {
    /// The name of the business. Must be a single line.
    pub name: Text<300>,
    /// The IANA name of the time zone that days begin in. Without it, or with null, it is `UTC`.
    pub time_zone: Option<Zone>,
    /// The currency of records that name none: the upper-case code of an active currency of ISO 4217. Without it, or with
    /// null, it is `AUD`.
    pub currency: Option<Currency>,
    /// Whether the keys of the account may use the API. Without it, or with null, the account is `approved`.
    pub developer_access: Option<DeveloperAccess>,
}

impl AccountCreate {
    /// Returns an account with this name, and with the defaults of the service otherwise.
    pub fn new(name: Text<300>) -> Self {
        Self { name, time_zone: None, currency: None, developer_access: None }
    }
}

impl From<AccountCreate> for TenantCreate {
    fn from(input: AccountCreate) -> Self {
        let default = Self::named(input.name.as_str());
        Self {
            time_zone: input.time_zone.map_or(default.time_zone.clone(), |zone| zone.0),
            currency: input.currency.unwrap_or(default.currency),
            developer_access: input.developer_access.unwrap_or(default.developer_access),
            ..default
        }
    }
}

/// Changes to an account. A field that is left out keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Input)]
#[input(patch)]
pub struct AccountUpdate {
    /// The name of the business. Must be a single line.
    pub name: Patch<Text<300>>,
    /// The IANA name of the time zone that days begin in.
    pub time_zone: Patch<Zone>,
    /// The currency of records that name none: the upper-case code of an active currency of ISO 4217.
    pub currency: Patch<Currency>,
    /// The postal address of the business, which its invoices and quotes show. It may have several lines. Null removes it.
    pub address: Patch<Option<Note<500>>>,
    /// The tax number of the business with its name, such as `ABN 51 824 753 556`, which its invoices and quotes show. Must be a
    /// single line. Null removes it.
    pub tax_number: Patch<Option<Text<100>>>,
    /// How many days after `issue_date` an invoice is due that is created without a `due_date`, from 0 to 365. With null, such
    /// an invoice has no due date.
    pub days_until_due: Patch<Option<DaysUntilDue>>,
    /// How customers pay, such as the number of a bank account, which invoices show that are to be paid. It may have several lines.
    /// Null removes it.
    pub payment_details: Patch<Option<Note<500>>>,
    /// Whether the keys of the account may use the API: `approved`, `pending` or `suspended`.
    pub developer_access: Patch<DeveloperAccess>,
    /// Whether no two contacts of the account that are not deleted can have the same email address.
    pub unique_contact_email: Patch<bool>,
    /// The limit of all requests of a key, per 60 seconds. Null restores the limit of the server.
    pub rate_limit: Patch<Option<AtLeastOne>>,
    /// The limits of writes, per key and route and 60 seconds, by collection. Collections that are left out keep theirs, and
    /// null restores the limit of the server.
    pub write_rate_limits: Patch<WriteLimitChanges>,
    /// The number of webhook subscriptions that the account can have, at most 1,000. Null restores the limit of the server.
    pub max_webhooks: Patch<Option<WebhookCount>>,
}

impl AccountUpdate {
    /// Makes the changes.
    pub fn apply(self, tenant: &mut Tenant) {
        let RateLimits { rate_limit, write_rate_limits } = &mut tenant.limits;
        if let Patch::Set(name) = self.name {
            tenant.name = name.as_str().to_owned();
        }
        if let Patch::Set(zone) = self.time_zone {
            tenant.time_zone = zone.0;
        }
        self.currency.apply(&mut tenant.currency);
        self.address.apply(&mut tenant.address);
        self.tax_number.apply(&mut tenant.tax_number);
        if let Patch::Set(days) = self.days_until_due {
            tenant.days_until_due = days.map(|days| days.0);
        }
        self.payment_details.apply(&mut tenant.payment_details);
        self.developer_access.apply(&mut tenant.developer_access);
        self.unique_contact_email.apply(&mut tenant.unique_contact_email);
        if let Patch::Set(limit) = self.rate_limit {
            *rate_limit = limit.map(|limit| limit.0);
        }
        if let Patch::Set(WriteLimitChanges(changes)) = self.write_rate_limits {
            for (collection, limit) in changes {
                write_rate_limits.set(collection, limit);
            }
        }
        if let Patch::Set(count) = self.max_webhooks {
            tenant.max_webhooks = count.map(|count| count.0);
        }
    }
}

/// The page of the list of accounts.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct AccountListParams {
    /// The maximum number of accounts on the page, from 1 to 200.
    pub limit: Option<Limit>,
    /// The `next_cursor` of the previous page. Without it, the list starts at its beginning.
    pub cursor: Option<Uuid>,
    /// Whether the sandboxes of accounts are listed as well. Without it, they are not.
    pub sandboxes: Option<bool>,
}

/// A new API key.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct ApiKeyCreate {
    /// The scopes of the key: `["read"]`, or `["read", "write"]`.
    pub scopes: KeyScopes,
    /// The purpose of the key. Must be a single line.
    pub name: Option<Text<300>>,
    /// The number of seconds after which the key expires. Without it, or with null, it does not expire.
    pub expires_in: Option<Seconds>,
    /// Whether writes with the key must be signed. Without it, or with null, they need not be.
    pub signed: Option<bool>,
}

impl ApiKeyCreate {
    /// Returns a key that reads, and writes if `write` is true. It does not expire and does not sign.
    pub fn new(write: bool) -> Self {
        Self { scopes: KeyScopes { write }, name: None, expires_in: None, signed: None }
    }
}

/// The rotation of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Input)]
pub struct ApiKeyRotation {
    /// The number of seconds for which the old key stays valid. Without it, or with null, it is 86,400: 24 hours.
    pub overlap: Option<Seconds>,
}

/// The rotation of a signing secret.
#[derive(Clone, Copy, Debug, PartialEq, Input)]
pub struct SecretRotation {
    /// The number of seconds for which the previous secret signs as well. Without it, or with null, it is 86,400: 24 hours.
    pub overlap: Option<Seconds>,
}

/// A new link to the dashboard.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct DashboardLinkCreate {
    /// The role of the person: `viewer`, `developer` or `owner`. Required without `email`, and left out with it.
    pub role: Option<Role>,
    /// The name of the person in the audit log, such as a mail address. Without it, or with null, it follows from the role. Left out
    /// with `email`.
    pub identity: Option<Text<200>>,
    /// The email address of a member of the account. The link signs in as this member, with the member's role, and the audit log and
    /// the list of sessions name the address.
    pub email: Option<Email>,
    /// The number of seconds for which the link can be used: 604,800, which is seven days, at most. Without it, or with null, it is
    /// 600: ten minutes.
    pub lifetime: Option<Seconds>,
}

impl DashboardLinkCreate {
    /// Returns a link for a person with this role.
    pub fn new(role: Role) -> Self {
        Self { role: Some(role), identity: None, email: None, lifetime: None }
    }

    /// Returns a link for the member with this address.
    pub fn to_member(email: Email) -> Self {
        Self { role: None, identity: None, email: Some(email), lifetime: None }
    }

    /// Returns an invitation: a link for the member with this address that can be used for seven days.
    pub fn invitation(email: Email) -> Self {
        Self { lifetime: Some(INVITATION_LIFETIME.into()), ..Self::to_member(email) }
    }
}

/// A request for the address at which people see something without signing in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct SharedAddressCreate {
    /// Whether an address that there is ends, and another one is made. Without it, or with null, it is false.
    pub renew: Option<bool>,
}

/// A new link that signs an operator in to the dashboard.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct OperatorLinkCreate {
    /// The name of the person in the audit log, such as a mail address. Without it, or with null, it is `operator@link`.
    pub identity: Option<Text<200>>,
}

/// A new member.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct MemberCreate {
    /// The email address with which the person signs in.
    pub email: Email,
    /// The role of the person: `viewer`, `developer` or `owner`.
    pub role: Role,
}

/// The change of a member.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(patch)]
pub struct MemberUpdate {
    /// The role of the person: `viewer`, `developer` or `owner`.
    pub role: Role,
}

/// Where a check for overdue invoices goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct OverdueCheck {
    /// The `next` of the previous response. Without it, or with null, the check begins at the first invoice.
    pub next: Option<OverduePosition>,
}

/// A new event.
#[derive(Clone, Debug, Input)]
pub struct EventCreate {
    /// The kind of the event: one of stays or cohorts, or one that is registered for this service.
    pub kind: EmittableKind,
    /// The record that it happened to: an object with an `id`, or what the schema of a registered kind asks for.
    pub data: AnyObject,
}

/// A new event with sample data.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct SampleEventCreate {
    /// The kind of the event.
    pub kind: EventKind,
}

/// A test of a webhook subscription.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct WebhookTest {
    /// The kind of the event. Without it, or with null, it is the first kind that the subscription is for.
    pub kind: Option<EventKind>,
}

/// A new webhook subscription that the service deletes by itself.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct TemporaryWebhookCreate {
    /// The webhook subscription.
    #[input(flatten)]
    pub webhook: WebhookCreate,
    /// The number of seconds after which the service deletes it, unless it is kept for longer until then.
    pub expires_in: Seconds,
}

/// For how long a temporary webhook subscription is kept.
#[derive(Clone, Copy, Debug, PartialEq, Input)]
pub struct WebhookLifetime {
    /// The number of seconds from now after which the service deletes the webhook subscription.
    pub expires_in: Seconds,
}

/// The filter and the position of the list of attempts.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct AttemptListParams {
    /// Returns only attempts at deliveries of events at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
    /// The `next_cursor` of the previous page. Send it with the same `since`. Without it, the list starts at its beginning.
    pub cursor: Option<SentCursor>,
}

/// The position of the list of attempts at a delivery.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct DeliveryAttemptListParams {
    /// The `next_cursor` of the previous page. Without it, the list starts at the newest attempt.
    pub cursor: Option<SentCursor>,
}

/// A new bulk replay.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct ReplayCreate {
    /// The `id` of the webhook subscription that receives the deliveries.
    pub subscription_id: SubscriptionId,
    /// Which deliveries it sends.
    #[input(flatten)]
    pub selection: ReplaySelection,
}

impl ReplayCreate {
    /// Returns a replay of the failed and held deliveries to a subscription, of events from this time until now.
    pub fn new(subscription_id: SubscriptionId, since: Timestamp) -> Self {
        Self { subscription_id, selection: ReplaySelection::new(since) }
    }
}

/// The deliveries that a bulk replay sends.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct ReplaySelection {
    /// The start of the time span: deliveries of events at or after this time are sent.
    pub since: Timestamp,
    /// The end of the time span: deliveries of events before this time are sent. Without it, or with null, it is now.
    pub until: Option<Timestamp>,
    /// The statuses of the deliveries that are sent. Without it, with null or empty, they are `failed` and `held`.
    pub statuses: Option<Statuses>,
    /// Whether matching events are sent as well that have no delivery, because the subscription was disabled or did not
    /// exist. Without it, or with null, they are not.
    pub missed: Option<bool>,
}

impl ReplaySelection {
    /// Returns the failed and held deliveries of events from this time until now.
    pub fn new(since: Timestamp) -> Self {
        Self { since, until: None, statuses: None, missed: None }
    }
}

/// The page of a log.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct LogParams {
    /// The maximum number of records on the page, from 1 to 200.
    pub limit: Option<Limit>,
    /// The `next_cursor` of the previous page. Send it with the same filters; only `limit` may change. Without it, the list
    /// starts at its beginning.
    pub cursor: Option<SentCursor>,
}

/// The page of an export.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct ExportParams {
    /// Exports only records that changed at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
    /// The maximum number of records on the page, from 1 to 200.
    pub limit: Option<Limit>,
    /// The `next_cursor` of the previous page. Send it with the same `since`; only `limit` may change. It never expires.
    /// Without it, the export starts at its beginning.
    pub cursor: Option<String>,
}

/// The newest records of a list.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct NewestParams {
    /// The maximum number of records, from 1 to 200.
    pub limit: Option<Limit>,
}

/// The filter of a log.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct LogFilter {
    /// Returns only what happened at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
}

/// The filters of the list of payments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct PaymentListFilter {
    /// Returns only payments of this invoice, of which the newest 1,000 are listed.
    pub invoice_id: Option<InvoiceId>,
    /// Returns only payments at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
    /// Returns only payments before this time, in RFC 3339 with an offset.
    pub until: Option<Since>,
}

impl PaymentListFilter {
    /// Returns what a cursor of the list is valid for.
    pub fn scope(&self) -> impl Serialize + '_ {
        (self.invoice_id, self.since, self.until)
    }
}

/// The filters of the request log.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct RequestListFilter {
    /// Returns only requests at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
    /// Returns only requests with this method, such as `POST`.
    pub method: Option<Text<20>>,
    /// Returns only requests whose path contains this text.
    pub path: Option<Text<500>>,
    /// Returns only requests whose response has this status, such as `404`, or one of this class, such as `4xx`.
    pub status: Option<StatusFilter>,
    /// Returns only requests with this API key.
    pub key_id: Option<KeyId>,
}

impl RequestListFilter {
    /// Returns what a cursor of the list is valid for.
    pub fn scope(&self) -> impl Serialize + '_ {
        (self.since, &self.method, &self.path, self.status, self.key_id)
    }
}

/// The filters of the list of events.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct EventListFilter {
    /// Returns only events of this kind.
    pub kind: Option<EventKind>,
    /// Returns only events in the history of the record with this `id`. Those of a payment are in that of its invoice.
    pub record_id: Option<Uuid>,
    /// Returns only events at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
    /// Returns only events before this time, in RFC 3339 with an offset.
    pub until: Option<Since>,
    /// Which events come first: `newest_first`, or `oldest_first` to follow what happens. Without it, the newest.
    pub order: Option<EventOrder>,
}

/// The order of a list of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum EventOrder {
    /// The newest event comes first.
    NewestFirst,
    /// The oldest event comes first.
    OldestFirst,
}

impl EventListFilter {
    /// Returns what a cursor of the list is valid for.
    pub fn scope(&self) -> impl Serialize + '_ {
        (self.kind, self.record_id, self.since, self.until, self.order)
    }
}

/// The filters of the list of deliveries.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct DeliveryListFilter {
    /// Returns only deliveries to this webhook subscription.
    pub subscription_id: Option<SubscriptionId>,
    /// The filters of the deliveries to one subscription.
    #[input(flatten)]
    pub of_webhook: WebhookDeliveryListFilter,
}

/// The filters of the list of deliveries to one webhook subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct WebhookDeliveryListFilter {
    /// Returns only deliveries with this status.
    pub status: Option<DeliveryStatus>,
    /// Returns only deliveries of events of this kind.
    pub kind: Option<EventKind>,
    /// Returns only deliveries of events at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
    /// Returns only deliveries of events before this time, in RFC 3339 with an offset.
    pub until: Option<Since>,
}

impl DeliveryListFilter {
    /// Returns what a cursor of the list is valid for.
    pub fn scope(&self) -> impl Serialize + '_ {
        let WebhookDeliveryListFilter { status, kind, since, until } = self.of_webhook;
        (self.subscription_id, status, kind, since, until)
    }
}
