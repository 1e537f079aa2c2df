//! The values of the inputs, with what each accepts.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::accounts::apps::MAX_REDIRECT_URIS;
use crate::accounts::keys::Scope;
use crate::accounts::limits::{CappedCollection, MAX_WEBHOOKS};
use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::values::{EventKind, RedirectUri, TimeZone};
use crate::webhooks::deliveries::DeliveryStatus;

/// Implements `JsonSchema` for a type of this module by a schema that is written where it is used, or in one place for all
/// of its uses, from where generated clients take its name.
macro_rules! schema {
    (inline $type:ty, $name:literal, |$generator:tt| $schema:expr) => {
        schema!(true, $type, $name, $generator, $schema);
    };
    (named $type:ty, $name:literal, |$generator:tt| $schema:expr) => {
        schema!(false, $type, $name, $generator, $schema);
    };
    ($is_inline:literal, $type:ty, $name:literal, $generator:tt, $schema:expr) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                $is_inline
            }
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
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

schema!(inline Zone, "TimeZone", |_| json_schema!({ "type": "string", "examples": ["Australia/Sydney"] }));

/// A length of time in whole seconds, up to ten years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Seconds(u32);

impl Seconds {
    const MAX: u32 = 10 * 366 * 24 * 60 * 60;

    /// Returns a length of time, rounded up to whole seconds.
    ///
    /// # Errors
    ///
    /// Fails when it is longer than ten years.
    pub fn new(duration: Duration) -> Result<Self, Issue> {
        let seconds = Self::from(duration);
        if seconds.0 <= Self::MAX { Ok(seconds) } else { Err(out_of_range(0, Self::MAX)) }
    }

    /// Returns the length of time.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0.into())
    }

    /// Returns how long an old key or secret stays valid beside a new one: 24 hours, unless the request says otherwise.
    pub(super) fn overlap(sent: Option<Self>) -> Duration {
        sent.map_or(Duration::from_secs(24 * 60 * 60), Self::duration)
    }
}

/// Rounds up to whole seconds. The service refuses more than ten years.
impl From<Duration> for Seconds {
    fn from(duration: Duration) -> Self {
        let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
        Self(u32::try_from(seconds).unwrap_or(u32::MAX))
    }
}

impl FromJson for Seconds {
    fn from_json(json: Json) -> Result<Self, Issue> {
        whole_number(json, 0, Self::MAX).map(Self)
    }
}

schema!(inline Seconds, "Seconds", |_| json_schema!({ "type": "integer", "minimum": 0, "maximum": Seconds::MAX }));

/// A limit: a whole number of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtLeastOne(pub NonZeroU32);

impl FromJson for AtLeastOne {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let number = whole_number(json, 1, u32::MAX)?;
        Ok(Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)))
    }
}

schema!(inline AtLeastOne, "AtLeastOne", |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }));

/// A number of webhook subscriptions that an account can be allowed, from 1 to 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookCount(pub u32);

impl FromJson for WebhookCount {
    fn from_json(json: Json) -> Result<Self, Issue> {
        whole_number(json, 1, MAX_WEBHOOKS).map(Self)
    }
}

schema!(inline WebhookCount, "WebhookCount", |_| {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX_WEBHOOKS })
});

/// How many days after its issue an invoice is due, from 0 to 365.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DaysUntilDue(pub u32);

impl DaysUntilDue {
    /// The highest number of days.
    pub const MAX: u32 = 365;

    /// Reads a whole number of days.
    ///
    /// # Errors
    ///
    /// `out_of_range` for any other text.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        let days = text.parse().ok().filter(|days| *days <= Self::MAX);
        days.map(Self).ok_or_else(|| out_of_range(0, Self::MAX))
    }
}

impl FromJson for DaysUntilDue {
    fn from_json(json: Json) -> Result<Self, Issue> {
        whole_number(json, 0, Self::MAX).map(Self)
    }
}

schema!(inline DaysUntilDue, "DaysUntilDue", |_| {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": DaysUntilDue::MAX })
});

pub(super) fn whole_number(json: Json, min: u32, max: u32) -> Result<u32, Issue> {
    let text = json.into_number()?;
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Issue::new(FieldCode::InvalidType, "must be an integer"));
    }
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| out_of_range(min, max))
}

fn out_of_range(min: u32, max: u32) -> Issue {
    Issue::new(FieldCode::OutOfRange, format!("must be from {min} to {max}"))
}

/// The limits of writes to set, by collection. Null restores the limit of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteLimitChanges(pub Vec<(CappedCollection, Option<NonZeroU32>)>);

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

schema!(named WriteLimitChanges, "WriteLimitChanges", |_| {
    let limit = serde_json::json!({ "type": ["integer", "null"], "minimum": 1, "maximum": u32::MAX });
    let of = |collection: &CappedCollection| (collection.as_str().to_owned(), limit.clone());
    let properties: serde_json::Map<_, _> = CappedCollection::ALL.iter().map(of).collect();
    json_schema!({
        "type": "object",
        "description": "The limits of writes to set, by collection. Null restores the limit of the server.",
        "properties": properties,
        "additionalProperties": false,
    })
});

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

schema!(inline KeyScopes, "KeyScopes", |generator| {
    let scope = generator.subschema_for::<Scope>();
    json_schema!({ "type": "array", "items": scope, "contains": { "const": "read" } })
});

/// The redirect URIs of an app.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RedirectUris(pub Vec<RedirectUri>);

impl FromJson for RedirectUris {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let uris = json.into_array()?.into_iter().enumerate();
        uris.map(|(at, uri)| RedirectUri::from_json(uri).map_err(|issue| issue.at(at.to_string())))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

schema!(inline RedirectUris, "RedirectUris", |generator| {
    let uri = generator.subschema_for::<RedirectUri>();
    json_schema!({ "type": "array", "items": uri, "minItems": 1, "maxItems": MAX_REDIRECT_URIS })
});

/// Statuses of deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statuses(pub Vec<DeliveryStatus>);

impl FromJson for Statuses {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_array()?.into_iter().map(DeliveryStatus::from_json).collect::<Result<_, _>>().map(Self)
    }
}

schema!(inline Statuses, "Statuses", |generator| {
    let status = generator.subschema_for::<DeliveryStatus>();
    json_schema!({ "type": "array", "items": status })
});

/// The status of a response, such as `404`, or a class of them, such as `4xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusFilter {
    first: u16,
    last: u16,
}

impl StatusFilter {
    /// Returns the statuses.
    pub fn range(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
}

/// ```
/// use svc_core::platform::StatusFilter;
/// assert_eq!("404".parse::<StatusFilter>().unwrap().range(), 404..=404);
/// assert_eq!("4xx".parse::<StatusFilter>().unwrap().range(), 400..=499);
/// assert!("4x".parse::<StatusFilter>().is_err());
/// ```
impl FromStr for StatusFilter {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        let class = text.strip_suffix("xx").and_then(|class| class.parse().ok()).map(|class: u16| (class, 100));
        let status = text.parse().ok().map(|status: u16| (status, 1));
        match class.or(status).and_then(|(number, length)| Some((number.checked_mul(length)?, length))) {
            Some((first, length)) if (100..=599).contains(&first) => Ok(Self { first, last: first + length - 1 }),
            _ => Err(Issue::new(FieldCode::InvalidFormat, "must be a status such as 404, or a class such as 4xx")),
        }
    }
}

impl fmt::Display for StatusFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}xx", self.first / 100) }
    }
}

impl FromJson for StatusFilter {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_string()?.parse()
    }
}

impl Serialize for StatusFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

schema!(inline StatusFilter, "StatusFilter", |_| {
    json_schema!({ "type": "string", "pattern": "^[1-5]([0-9]{2}|xx)$", "examples": ["404", "4xx"] })
});

/// The kind of an event that this service does not fire itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EmittableKind(pub EventKind);

/// Whether it can be emitted is checked where the event is written, with the kinds that are registered.
impl FromJson for EmittableKind {
    fn from_json(json: Json) -> Result<Self, Issue> {
        EventKind::from_json(json).map(Self)
    }
}

schema!(named EmittableKind, "EmittableKind", |generator| {
    let all = EventKind::json_schema(generator).to_value();
    let names: Vec<&str> =
        EventKind::BUILT_IN.iter().filter(|kind| kind.is_external()).map(|kind| kind.as_str()).collect();
    let lines = all["description"].as_str().unwrap_or_default().lines();
    let meanings: Vec<&str> =
        lines.filter(|line| names.iter().any(|name| line.starts_with(&format!("- `{name}`: ")))).collect();
    json_schema!({ "type": "string", "enum": names, "description": meanings.join("\n") })
});
