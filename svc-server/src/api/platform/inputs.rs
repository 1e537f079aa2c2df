//! The bodies and query parameters of the platform API that the public API does not have.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::limits::{CappedCollection, MAX_WEBHOOKS, RateLimits};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::{DeveloperAccess, Tenant, TenantCreate};
use svc_core::error::{FieldCode, Issue};
use svc_core::input::json::Json;
use svc_core::input::{FromJson, Input};
use svc_core::resources::pages::{Limit, SentCursor, Since};
use svc_core::values::{Currency, Decimal, Email, EventKind, Patch, Text, TimeZone, Timestamp};
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::subscriptions::SubscriptionId;
use uuid::Uuid;

/// How long an old key or secret stays valid beside a new one, unless the request says otherwise.
const DEFAULT_OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

/// Implements `JsonSchema` for a type of this module by a schema that is written where it is used.
macro_rules! inline_schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

/// A time zone, by its IANA name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Zone(pub TimeZone);

impl FromJson for Zone {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_string()?.parse().map(Self)
    }
}

inline_schema!(Zone, "TimeZone", json_schema!({ "type": "string", "examples": ["Australia/Sydney"] }));

/// A length of time in whole seconds, up to ten years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Seconds(u32);

impl Seconds {
    const MAX: u32 = 10 * 366 * 24 * 60 * 60;

    /// Returns the length of time.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

impl FromJson for Seconds {
    fn from_json(json: Json) -> Result<Self, Issue> {
        whole_number(json, 0, Self::MAX).map(Self)
    }
}

inline_schema!(Seconds, "Seconds", json_schema!({ "type": "integer", "minimum": 0, "maximum": Seconds::MAX }));

/// A limit: a whole number of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtLeastOne(NonZeroU32);

impl FromJson for AtLeastOne {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let number = whole_number(json, 1, u32::MAX)?;
        Ok(Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)))
    }
}

inline_schema!(AtLeastOne, "AtLeastOne", json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }));

/// A number of webhook subscriptions that an account can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookCount(u32);

impl FromJson for WebhookCount {
    fn from_json(json: Json) -> Result<Self, Issue> {
        whole_number(json, 1, MAX_WEBHOOKS).map(Self)
    }
}

inline_schema!(
    WebhookCount,
    "WebhookCount",
    json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX_WEBHOOKS })
);

fn whole_number(json: Json, min: u32, max: u32) -> Result<u32, Issue> {
    let text = json.into_number()?;
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Issue::new(FieldCode::InvalidType, "must be an integer"));
    }
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| Issue::new(FieldCode::OutOfRange, format!("must be from {min} to {max}")))
}

/// The limits of writes to set, by collection. Null restores the limit of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteLimitChanges(Vec<(CappedCollection, Option<NonZeroU32>)>);

impl Serialize for WriteLimitChanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(collection, limit)| (collection, limit)))
    }
}

impl FromJson for WriteLimitChanges {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let Json::Object(members) = json else {
            return Err(Issue::new(FieldCode::InvalidType, "must be an object"));
        };
        let change = |(name, limit): (String, Json)| {
            let collection = CappedCollection::from_text(&name).ok_or_else(|| {
                Issue::new(FieldCode::UnknownField, "is not a collection with writes").at(name.clone())
            })?;
            let limit = Option::<AtLeastOne>::from_json(limit).map_err(|issue| issue.at(name))?;
            Ok((collection, limit.map(|limit| limit.0)))
        };
        members.into_iter().map(change).collect::<Result<_, Issue>>().map(Self)
    }
}

inline_schema!(WriteLimitChanges, "WriteLimitChanges", {
    let limit = serde_json::json!({ "type": ["integer", "null"], "minimum": 1, "maximum": u32::MAX });
    let of = |collection: &CappedCollection| (collection.as_str().to_owned(), limit.clone());
    let properties: serde_json::Map<_, _> = CappedCollection::ALL.iter().map(of).collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
});

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
#[derive(Clone, Debug, PartialEq, Input)]
#[input(patch)]
pub struct AccountUpdate {
    /// The name of the business. Must be a single line.
    pub name: Patch<Text<300>>,
    /// The IANA name of the time zone that days begin in.
    pub time_zone: Patch<Zone>,
    /// The currency of records that name none: the upper-case code of an active currency of ISO 4217.
    pub currency: Patch<Currency>,
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
#[derive(Clone, Debug, PartialEq, Input)]
pub struct AccountFilter {
    /// The maximum number of accounts on the page, from 1 to 200.
    pub limit: Option<Limit>,
    /// The `next_cursor` of the previous page. Without it, the list starts at its beginning.
    pub cursor: Option<Uuid>,
}

/// The scopes of a new API key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyScopes {
    /// Whether the key also has the scope `write`.
    pub write: bool,
}

impl Serialize for KeyScopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let scopes: &[Scope] = if self.write { &[Scope::Read, Scope::Write] } else { &[Scope::Read] };
        scopes.serialize(serializer)
    }
}

impl FromJson for KeyScopes {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let scopes: Vec<Scope> = json.into_array()?.into_iter().map(Scope::from_json).collect::<Result<_, _>>()?;
        if scopes.contains(&Scope::Read) {
            return Ok(Self { write: scopes.contains(&Scope::Write) });
        }
        Err(Issue::new(FieldCode::InvalidEnum, "must contain read, which every key has"))
    }
}

inline_schema!(
    KeyScopes,
    "KeyScopes",
    json_schema!({
        "type": "array",
        "items": { "type": "string", "enum": ["read", "write"] },
        "contains": { "const": "read" },
    })
);

/// A new API key.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct KeyInput {
    /// What the key may do: `["read"]`, or `["read", "write"]`.
    pub scopes: KeyScopes,
    /// What the key is for. Must be a single line.
    pub name: Option<Text<300>>,
    /// The number of seconds after which the key expires. Without it, or with null, it does not expire.
    pub expires_in: Option<Seconds>,
    /// Whether writes with the key must be signed. Without it, or with null, they need not be.
    pub signed: Option<bool>,
}

/// The rotation of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Input)]
pub struct KeyRotation {
    /// The number of seconds for which the old key stays valid. Without it, or with null, it is 86,400: 24 hours.
    pub overlap: Option<Seconds>,
}

/// The rotation of a signing secret.
#[derive(Clone, Copy, Debug, PartialEq, Input)]
pub struct SecretRotation {
    /// The number of seconds for which the previous secret signs as well. Without it, or with null, it is 86,400: 24 hours.
    pub overlap: Option<Seconds>,
}

/// Returns the overlap of a rotation.
pub fn overlap(sent: Option<Seconds>) -> Duration {
    sent.map_or(DEFAULT_OVERLAP, Seconds::duration)
}

/// A new link to the dashboard.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct DashboardLinkInput {
    /// What the person may do: `viewer`, `developer` or `owner`.
    pub role: Role,
    /// The name of the person in the audit log, such as a mail address. Without it, or with null, it follows from the role.
    pub identity: Option<Text<200>>,
}

/// A new member.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct MemberInput {
    /// The email address with which the person signs in.
    pub email: Email,
    /// What the person may do: `viewer`, `developer` or `owner`.
    pub role: Role,
}

/// The change of a member.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(patch)]
pub struct MemberUpdate {
    /// What the person may do: `viewer`, `developer` or `owner`.
    pub role: Role,
}

/// A payment or a refund.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct PaymentInput {
    /// The amount in the currency of the invoice. Without it, or with null, it is all that is left to pay or was paid.
    pub amount: Option<Decimal>,
}

/// Where a check for overdue invoices goes on.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct OverdueInput {
    /// The `next` of the previous response. Without it, or with null, the check begins at the first invoice.
    pub next: Option<Text<100>>,
}

/// A JSON object, as it was sent except for white space.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct AnyObject(pub Box<RawValue>);

impl FromJson for AnyObject {
    fn from_json(json: Json) -> Result<Self, Issue> {
        if !matches!(json, Json::Object(_)) {
            return Err(Issue::new(FieldCode::InvalidType, "must be an object"));
        }
        let mut text = String::new();
        write_json(&json, &mut text);
        RawValue::from_string(text).map(Self).map_err(|error| Issue::new(FieldCode::InvalidFormat, error.to_string()))
    }
}

inline_schema!(AnyObject, "AnyObject", json_schema!({ "type": "object" }));

/// Writes a value as JSON. Numbers stay as they were written.
fn write_json(json: &Json, text: &mut String) {
    let write_string = |string: &str, text: &mut String| {
        text.push_str(&serde_json::Value::from(string).to_string());
    };
    match json {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => text.push_str(number),
        Json::String(string) => write_string(string, text),
        Json::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_json(item, text);
            }
            text.push(']');
        }
        Json::Object(members) => {
            text.push('{');
            for (position, (name, member)) in members.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_string(name, text);
                text.push(':');
                write_json(member, text);
            }
            text.push('}');
        }
    }
}

/// A new event.
#[derive(Clone, Debug, Input)]
pub struct EventInput {
    /// The kind of the event: one of stays or cohorts, or one that is registered for this service.
    pub kind: EventKind,
    /// The record that it happened to: an object with an `id`, or what the schema of a registered kind asks for.
    pub data: AnyObject,
}

/// A new event with sample data.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct SampleInput {
    /// The kind of the event.
    pub kind: EventKind,
}

/// A test of a webhook subscription.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct TestInput {
    /// The kind of the event. Without it, or with null, it is the first kind that the subscription is for.
    pub kind: Option<EventKind>,
}

/// Statuses of deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statuses(pub Vec<DeliveryStatus>);

impl FromJson for Statuses {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_array()?.into_iter().map(DeliveryStatus::from_json).collect::<Result<_, _>>().map(Self)
    }
}

inline_schema!(Statuses, "Statuses", {
    let statuses: Vec<&str> = DeliveryStatus::ALL.iter().map(|status| status.as_str()).collect();
    json_schema!({ "type": "array", "items": { "type": "string", "enum": statuses } })
});

/// A new bulk replay.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct ReplayInput {
    /// The `id` of the webhook subscription that receives the deliveries.
    pub subscription_id: SubscriptionId,
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

/// The page of a log.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct LogParams {
    /// The maximum number of records on the page, from 1 to 200.
    pub limit: Option<Limit>,
    /// The `next_cursor` of the previous page. Send it with the same filters; only `limit` may change. Without it, the list
    /// starts at its beginning.
    pub cursor: Option<SentCursor>,
}

/// The newest records of a list.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct NewestParams {
    /// The maximum number of records, from 1 to 200.
    pub limit: Option<Limit>,
}

/// The filter of a log.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct LogFilter {
    /// Returns only what happened at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
}

/// The filters of the list of deliveries.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct DeliveryListFilter {
    /// Returns only deliveries to this webhook subscription.
    pub subscription_id: Option<SubscriptionId>,
    /// Returns only deliveries with this status.
    pub status: Option<DeliveryStatus>,
    /// Returns only deliveries of events of this kind.
    pub kind: Option<EventKind>,
    /// Returns only deliveries of events at or after this time, in RFC 3339 with an offset.
    pub since: Option<Since>,
}

impl DeliveryListFilter {
    /// Returns what a cursor of the list is valid for.
    pub fn scope(&self) -> impl Serialize + '_ {
        (self.subscription_id, self.status, self.kind, self.since.map(|since| since.0))
    }
}
