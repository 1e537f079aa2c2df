//! What a webhook subscription can ask for beyond the contract: ways into its receiver, what is sent to it, and how fast
//! (`docs/webhooks.md`, "More for a webhook").
//!
//! Each option is a field of the subscription that is null unless it is set. Secrets among them are stored encrypted, and
//! shown nowhere: a response has the names of headers alone, and no password or token.

mod certificates;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::values::{Secret, TextEnum, WebhookUrl};
use crate::webhooks::deliveries::RetrySchedule;

pub use self::certificates::{CertificateAuthority, ClientCertificate, TlsOptions};

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
/// The highest number of headers of a subscription.
pub const MAX_HEADERS: usize = 20;
/// The greatest length of the name of a header.
const MAX_NAME: usize = 100;
/// The greatest length of the value of a header, of a password, and of a token.
const MAX_VALUE: usize = 4096;
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

/// What the body of a delivery has in `data`.
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
            if checked.iter().any(|(other, _)| *other == lower) {
                return Err(Issue::new(FieldCode::DuplicateKey, "comes twice, in another case of letters").at(name));
            }
            checked.push((lower, value));
        }
        Ok(Self(checked))
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
    if RESERVED.iter().any(|beginning| name.starts_with(beginning)) || RESERVED_NAMES.contains(&name) {
        return Err(Issue::new(FieldCode::InvalidFormat, "is set by the service itself"));
    }
    Ok(())
}

/// Checks the value of a header (RFC 9110, section 5.5), in ASCII.
fn check_value(value: &str) -> Result<(), Issue> {
    if value.len() > MAX_VALUE {
        return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_VALUE} characters")));
    }
    if value.is_empty() || value.trim() != value || !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err(Issue::new(
            FieldCode::InvalidFormat,
            "must have printable ASCII characters, without spaces around them",
        ));
    }
    Ok(())
}

impl fmt::Debug for CustomHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl FromJson for CustomHeaders {
    fn from_json(json: Json) -> Result<Self, Issue> {
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
        Self::new(headers.collect::<Result<_, Issue>>()?)
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

/// How a delivery is authenticated at its receiver. The JSON of a response has no password and no token.
#[derive(Clone, PartialEq, Eq)]
pub enum Authentication {
    /// A user name and a password (RFC 7617).
    Basic {
        /// The user name, which has no colon.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A token (RFC 6750).
    Bearer {
        /// The token.
        token: Secret,
    },
    /// An access token that the sender gets itself (OAuth 2.0).
    OAuth2(ClientCredentials),
}

/// What an access token is got with, at a token endpoint (RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The URL of the token endpoint. Its host must be public, as that of an endpoint.
    pub token_url: WebhookUrl,
    /// The id of the client.
    pub client_id: String,
    /// The secret of the client.
    pub client_secret: Secret,
    /// The scope that is asked for, if any.
    pub scope: Option<String>,
}

impl Authentication {
    /// Returns the value of the header `Authorization`. `None` if an access token has to be got first.
    pub fn authorization(&self) -> Option<Secret> {
        Some(Secret::new(match self {
            Self::Basic { username, password } => {
                format!("Basic {}", STANDARD.encode(format!("{username}:{}", password.reveal())))
            }
            Self::Bearer { token } => format!("Bearer {}", token.reveal()),
            Self::OAuth2(_) => return None,
        }))
    }

    /// Returns what an access token is got with, if one has to be.
    pub fn client_credentials(&self) -> Option<&ClientCredentials> {
        match self {
            Self::OAuth2(credentials) => Some(credentials),
            _ => None,
        }
    }
}

/// What a kind of authentication is called, which members it has, and what it is.
const AUTHENTICATIONS: [(&str, &[&str], &str); 3] = [
    ("basic", &["username", "password"], "A user name, which has no colon, and a password (RFC 7617)."),
    ("bearer", &["token"], "A token that does not change (RFC 6750)."),
    (
        "oauth2",
        &["token_url", "client_id", "client_secret", "scope"],
        "An access token that the service gets with client credentials (RFC 6749, section 4.4).",
    ),
];
/// The members that a response has, and those that may be left out.
const SHOWN: [&str; 4] = ["username", "token_url", "client_id", "scope"];
const OPTIONAL: [&str; 1] = ["scope"];

impl FromJson for Authentication {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let Json::Object(members) = json else {
            return Err(Issue::new(FieldCode::InvalidType, "must be an object with a type"));
        };
        let found = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| value.clone());
        let text = |name: &'static str| {
            let missing = || Issue::new(FieldCode::Required, "is required").at(name);
            found(name).ok_or_else(missing)?.into_string().map_err(|issue| issue.at(name))
        };
        let kind = text("type")?;
        let Some((_, names, _)) = AUTHENTICATIONS.iter().find(|(name, ..)| *name == kind) else {
            return Err(Issue::new(FieldCode::InvalidEnum, "must be basic, bearer or oauth2").at("type"));
        };
        if let Some((unknown, _)) = members.iter().find(|(name, _)| name != "type" && !names.contains(&name.as_str())) {
            let reason = format!("is not a member of {kind}");
            return Err(Issue::new(FieldCode::UnknownField, reason).at(unknown.clone()));
        }
        let checked = |name| {
            let value = text(name)?;
            check_value(&value).map_err(|issue| issue.at(name))?;
            Ok::<_, Issue>(value)
        };
        Ok(match kind.as_str() {
            "bearer" => Self::Bearer { token: Secret::new(checked("token")?) },
            "basic" => {
                let username = checked("username")?;
                if username.contains(':') {
                    return Err(Issue::new(FieldCode::InvalidFormat, "must not have a colon").at("username"));
                }
                Self::Basic { username, password: Secret::new(checked("password")?) }
            }
            _ => Self::OAuth2(ClientCredentials {
                token_url: WebhookUrl::from_json(Json::String(text("token_url")?))
                    .map_err(|issue| issue.at("token_url"))?,
                client_id: checked("client_id")?,
                client_secret: Secret::new(checked("client_secret")?),
                scope: match found("scope") {
                    None | Some(Json::Null) => None,
                    Some(_) => Some(checked("scope")?),
                },
            }),
        })
    }
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic(…)",
            Self::Bearer { .. } => "Bearer(…)",
            Self::OAuth2(_) => "OAuth2(…)",
        })
    }
}

/// The JSON of [`Authentication`] in a response.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Shown {
    Basic { username: String },
    Bearer,
    Oauth2 { token_url: WebhookUrl, client_id: String, scope: Option<String> },
}

/// Without the secret.
impl Serialize for Authentication {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = match self {
            Self::Basic { username, .. } => Shown::Basic { username: username.clone() },
            Self::Bearer { .. } => Shown::Bearer,
            Self::OAuth2(ClientCredentials { token_url, client_id, scope, .. }) => {
                Shown::Oauth2 { token_url: token_url.clone(), client_id: client_id.clone(), scope: scope.clone() }
            }
        };
        shown.serialize(serializer)
    }
}

/// Without the secret, which is not known.
impl<'de> Deserialize<'de> for Authentication {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Shown::deserialize(deserializer)? {
            Shown::Basic { username } => Self::Basic { username, password: Secret::default() },
            Shown::Bearer => Self::Bearer { token: Secret::default() },
            Shown::Oauth2 { token_url, client_id, scope } => {
                Self::OAuth2(ClientCredentials { token_url, client_id, client_secret: Secret::default(), scope })
            }
        })
    }
}

impl JsonSchema for Authentication {
    fn schema_name() -> Cow<'static, str> {
        "Authentication".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        authentications::<false>(generator, "How deliveries are authenticated at the endpoint, without the secret.")
    }
}

/// Returns the schema of the kinds of authentication, with their secrets or without them.
fn authentications<const SENT: bool>(generator: &mut SchemaGenerator, description: &str) -> Schema {
    let kinds = [
        generator.subschema_for::<Kind<0, SENT>>(),
        generator.subschema_for::<Kind<1, SENT>>(),
        generator.subschema_for::<Kind<2, SENT>>(),
    ];
    json_schema!({ "description": description, "oneOf": kinds })
}

/// One of [`AUTHENTICATIONS`] as a schema of its own, which has a name in generated clients.
struct Kind<const AT: usize, const SENT: bool>;

impl<const AT: usize, const SENT: bool> JsonSchema for Kind<AT, SENT> {
    fn schema_name() -> Cow<'static, str> {
        let (sent, shown) = [
            ("BasicCredentials", "BasicAuthentication"),
            ("BearerCredentials", "BearerAuthentication"),
            ("OAuth2Credentials", "OAuth2Authentication"),
        ][AT];
        if SENT { sent.into() } else { shown.into() }
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (kind, names, description) = AUTHENTICATIONS[AT];
        let mut properties = json!({ "type": { "type": "string", "const": kind } });
        let mut required = vec!["type"];
        for name in names.iter().copied().filter(|name| SENT || SHOWN.contains(name)) {
            let is_optional = OPTIONAL.contains(&name);
            let types = if is_optional { json!(["string", "null"]) } else { json!("string") };
            properties[name] = json!({ "type": types, "minLength": 1, "maxLength": MAX_VALUE });
            required.extend((!is_optional).then_some(name));
        }
        json_schema!({
            "type": "object",
            "description": description,
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

/// An option with secrets, of which a response shows no more than it must.
pub trait WithSecrets: FromJson {
    /// The name of the schema of the JSON with the secrets.
    const SENT: &'static str;
    /// Whether the schema has no name, but stands where it is used.
    const IS_INLINE: bool = false;

    /// Returns the JSON with the secrets: as it was sent, and as it is stored encrypted.
    fn to_sent(&self) -> Secret;

    /// Returns the schema of that JSON.
    fn sent_schema(generator: &mut SchemaGenerator) -> Schema;
}

impl WithSecrets for CustomHeaders {
    const SENT: &'static str = "HeaderValues";

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

impl WithSecrets for Authentication {
    const SENT: &'static str = "Credentials";

    fn to_sent(&self) -> Secret {
        let sent = match self {
            Self::Basic { username, password } => {
                json!({ "type": "basic", "username": username, "password": password.reveal() })
            }
            Self::Bearer { token } => json!({ "type": "bearer", "token": token.reveal() }),
            Self::OAuth2(ClientCredentials { token_url, client_id, client_secret, scope }) => json!({
                "type": "oauth2",
                "token_url": token_url,
                "client_id": client_id,
                "client_secret": client_secret.reveal(),
                "scope": scope,
            }),
        };
        Secret::new(sent.to_string())
    }

    fn sent_schema(generator: &mut SchemaGenerator) -> Schema {
        authentications::<true>(generator, "What deliveries are authenticated with at the endpoint.")
    }
}

/// An option with secrets as a request has it. Its JSON has the secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent<T>(pub T);

impl<T: WithSecrets> FromJson for Sent<T> {
    fn from_json(json: Json) -> Result<Self, Issue> {
        T::from_json(json).map(Self)
    }
}

impl<T: WithSecrets> Serialize for Sent<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = RawValue::from_string(self.0.to_sent().reveal().to_owned());
        json.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<T: WithSecrets> JsonSchema for Sent<T> {
    fn inline_schema() -> bool {
        T::IS_INLINE
    }
    fn schema_name() -> Cow<'static, str> {
        T::SENT.into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::sent_schema(generator)
    }
}

/// Returns the option with this JSON, as it is stored, or `None` if it is not one.
pub fn from_stored<T: WithSecrets>(json: &str) -> Option<T> {
    T::from_json(crate::input::json::parse(json.as_bytes()).ok()?).ok()
}

#[cfg(test)]
mod tests;
