//! The options of a webhook subscription beyond the contract: ways into its receiver, what is sent to it, and how fast
//! (`docs/webhook-options.md`, "Webhook options").
//!
//! Each option is a field of the subscription that is null unless it is set. Secrets among them are stored encrypted, and
//! shown nowhere: a response has the names of headers alone, and no password or token.

mod authentication;
mod certificates;
mod secrets;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::values::{Secret, TextEnum};
use crate::webhooks::retries::RetrySchedule;

pub use self::authentication::{Authentication, ClientCredentials};
pub use self::certificates::{CertificateAuthority, ClientCertificate, TlsOptions, VERIFIABLE_KEYS};
use self::secrets::{MAX_VALUE, check_value};
pub use self::secrets::{SigningSecret, Unredacted, WithSecrets};

/// The names of the fields of a subscription that the contract does not have.
pub const FIELDS: [&str; 13] = [
    "headers",
    "authentication",
    "filter",
    "payload",
    "max_per_second",
    "max_in_flight",
    "timeout",
    "retry_schedule",
    "ordering",
    "signature",
    "signing_keys",
    "client_certificate",
    "certificate_authority",
];
/// The name of the field of a new subscription that the contract does not have, and that no subscription shows.
pub const SECRET: &str = "secret";
/// The highest number of headers of a subscription.
pub const MAX_HEADERS: usize = 20;
/// The greatest length of the name of a header.
const MAX_NAME: usize = 100;
/// The bounds of the timeout of an attempt, in seconds.
pub const TIMEOUTS: std::ops::RangeInclusive<u32> = 1..=30;
/// The highest number of retries, and the bounds of the wait before each, in seconds (`docs/contract.md`, "Retries and
/// pauses").
const MAX_RETRIES: usize = 5;
const RETRY_DELAYS: std::ops::RangeInclusive<u32> = 60..=14_400;
/// The highest rate that can be asked for, in deliveries a second.
const MAX_PER_SECOND: u32 = 1000;
/// The highest number of attempts in flight that can be asked for: the largest window of an endpoint.
const MAX_IN_FLIGHT: u32 = 64;

/// The beginnings of the names of headers that the service or HTTP itself sets.
const RESERVED: [&str; 4] = ["x-svc-", "webhook-", "proxy-", "content-"];
/// The names of other headers that the service or HTTP itself sets.
const RESERVED_NAMES: [&str; 10] = [
    "host",
    "user-agent",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept",
];

/// The `data` in the body of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum Payload {
    /// The record as it was right after the change, as the contract says.
    Contract,
    /// The `id` of the record alone. The event is read by its `event_id`.
    Thin,
}

/// Which deliveries wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum Ordering {
    /// None.
    None,
    /// That of an event waits until those of earlier events of the same record have succeeded or have been given up.
    Record,
}

/// How deliveries are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum SignatureScheme {
    /// With the secret of the subscription, by HMAC-SHA256.
    Hmac,
    /// With a private key of the service as well, by Ed25519: a receiver needs the public key alone.
    Ed25519,
}

/// A whole number between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bounded<const MIN: u32, const MAX: u32>(u32);

/// A timeout of attempts, in seconds.
pub type TimeoutSeconds = Bounded<{ *TIMEOUTS.start() }, { *TIMEOUTS.end() }>;
/// A rate of deliveries.
pub type PerSecond = Bounded<1, MAX_PER_SECOND>;
/// A number of attempts in flight.
pub type AttemptsInFlight = Bounded<1, MAX_IN_FLIGHT>;

impl<const MIN: u32, const MAX: u32> Bounded<MIN, MAX> {
    /// Returns the number, or an issue if it is out of bounds.
    ///
    /// # Errors
    /// `out_of_range`.
    pub fn new(number: u32) -> Result<Self, Issue> {
        if (MIN..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(Issue::new(FieldCode::OutOfRange, format!("must be from {MIN} to {MAX}")))
    }

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl TimeoutSeconds {
    /// Returns the length of time.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

impl<const MIN: u32, const MAX: u32> FromJson for Bounded<MIN, MAX> {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::new(whole_number(json)?)
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Bounded<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("From{MIN}To{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// Returns a whole number; one that is too large for the type is the largest one.
fn whole_number(json: Json) -> Result<u32, Issue> {
    let text = json.into_number()?;
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.parse().unwrap_or(u32::MAX));
    }
    Err(Issue::new(FieldCode::InvalidType, "must be a whole number that is not negative"))
}

/// The delays before the retries of a delivery, in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RetryDelays(Vec<u32>);

impl RetryDelays {
    /// Returns these delays: 0 to 5, each from 60 to 14,400 seconds.
    ///
    /// # Errors
    /// `too_long` or `out_of_range`.
    pub fn new(delays: Vec<u32>) -> Result<Self, Issue> {
        if delays.len() > MAX_RETRIES {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_RETRIES} delays")));
        }
        let (min, max) = (RETRY_DELAYS.start(), RETRY_DELAYS.end());
        match delays.iter().position(|delay| !RETRY_DELAYS.contains(delay)) {
            None => Ok(Self(delays)),
            Some(at) => {
                Err(Issue::new(FieldCode::OutOfRange, format!("must be from {min} to {max} seconds"))
                    .at(at.to_string()))
            }
        }
    }

    /// Returns the delays in seconds.
    pub fn seconds(&self) -> &[u32] {
        &self.0
    }

    /// Returns the schedule of retries.
    pub fn schedule(&self) -> RetrySchedule {
        RetrySchedule::new(self.0.iter().map(|delay| Duration::from_secs((*delay).into())).collect())
    }
}

impl FromJson for RetryDelays {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let delays = json.into_array()?.into_iter().enumerate();
        Self::new(
            delays
                .map(|(at, delay)| whole_number(delay).map_err(|issue| issue.at(at.to_string())))
                .collect::<Result<_, _>>()?,
        )
    }
}

impl JsonSchema for RetryDelays {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "RetryDelays".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": { "type": "integer", "minimum": RETRY_DELAYS.start(), "maximum": RETRY_DELAYS.end() },
            "maxItems": MAX_RETRIES,
            "examples": [[60, 240, 960]],
        })
    }
}

/// The headers that a subscription adds to each delivery. Their values are secret, and the JSON of a response has the names
/// alone.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct CustomHeaders(Vec<(String, Secret)>);

impl CustomHeaders {
    /// Returns these headers.
    ///
    /// # Errors
    /// An issue with the name of the header that is refused: more than 20, one that the service or HTTP itself sets, one that
    /// comes twice, or a name or value that HTTP does not allow.
    pub fn new(headers: Vec<(String, Secret)>) -> Result<Self, Issue> {
        if headers.len() > MAX_HEADERS {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_HEADERS} headers")));
        }
        let mut checked: Vec<(String, Secret)> = Vec::new();
        for (name, value) in headers {
            let lower = name.to_ascii_lowercase();
            check_name(&lower).and_then(|()| check_value(value.reveal())).map_err(|issue| issue.at(name.clone()))?;
            if checked.iter().any(|(other, _)| as_variable(other) == as_variable(&lower)) {
                let reason = "comes twice, in another case of letters or with other characters between them";
                return Err(Issue::new(FieldCode::DuplicateKey, reason).at(name));
            }
            checked.push((lower, value));
        }
        Ok(Self(checked))
    }

    /// Returns the names and values of an object.
    fn members(json: Json) -> Result<Vec<(String, Secret)>, Issue> {
        let Json::Object(members) = json else {
            return Err(Issue::new(
                FieldCode::InvalidType,
                "must be an object with the values of headers by their names",
            ));
        };
        let headers = members.into_iter().map(|(name, value)| {
            let value = value.into_string().map_err(|issue| issue.at(name.clone()))?;
            Ok((name, Secret::new(value)))
        });
        headers.collect()
    }

    /// Returns the names of the headers, in lower case, and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn check_name(name: &str) -> Result<(), Issue> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_token) {
        let reason = format!("must be the name of a header: 1 to {MAX_NAME} letters, digits and hyphens");
        return Err(Issue::new(FieldCode::InvalidFormat, reason));
    }
    let read = as_variable(name);
    if RESERVED.iter().any(|beginning| read.starts_with(beginning)) || RESERVED_NAMES.contains(&read.as_str()) {
        let reason = if read == name {
            "is set by the service itself".to_owned()
        } else {
            format!("is read as {read} by many receivers, which the service itself sets")
        };
        return Err(Issue::new(FieldCode::InvalidFormat, reason));
    }
    Ok(())
}

/// Returns a name as receivers read it that turn headers into variables, as those behind CGI, WSGI and Rack do. To them, names
/// with other characters between their letters are the same.
fn as_variable(name: &str) -> String {
    name.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect()
}

impl fmt::Debug for CustomHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl FromJson for CustomHeaders {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::new(Self::members(json)?)
    }
}

/// The names alone.
impl Serialize for CustomHeaders {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(name, _)| name))
    }
}

/// The names alone: their values are not known.
impl<'de> Deserialize<'de> for CustomHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(Self(names.into_iter().map(|name| (name, Secret::default())).collect()))
    }
}

impl JsonSchema for CustomHeaders {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "CustomHeaders".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string" } })
    }
}

impl WithSecrets for CustomHeaders {
    const SENT: &'static str = "HeaderValues";

    /// The names were checked when they were sent, by the rules of then.
    fn of_stored(json: Json) -> Result<Self, Issue> {
        Self::members(json).map(Self)
    }

    fn to_sent(&self) -> Secret {
        let members = self.iter().map(|(name, value)| (name.to_owned(), value.reveal().into()));
        Secret::new(serde_json::Value::Object(members.collect()).to_string())
    }

    fn sent_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "The values of headers by their names.",
            "additionalProperties": { "type": "string", "minLength": 1, "maxLength": MAX_VALUE },
            "maxProperties": MAX_HEADERS,
            "examples": [{ "X-Team": "ledger" }],
        })
    }
}

#[cfg(test)]
mod tests;
