//! How a subscription authenticates its deliveries at the receiver.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use super::secrets::{MAX_VALUE, WithSecrets, check_value};
use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::values::{Secret, WebhookUrl};

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

/// The credentials for an access token, at a token endpoint (RFC 6749, section 4.4).
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

/// A kind of authentication.
struct Kind {
    /// The value of its member `type`.
    name: &'static str,
    members: &'static [&'static str],
    description: &'static str,
    /// The names of its schemas: with the secret, and without it.
    schemas: [&'static str; 2],
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "basic",
        members: &["username", "password"],
        description: "A user name, which has no colon, and a password (RFC 7617).",
        schemas: ["BasicCredentials", "BasicAuthentication"],
    },
    Kind {
        name: "bearer",
        members: &["token"],
        description: "A token that does not change (RFC 6750).",
        schemas: ["BearerCredentials", "BearerAuthentication"],
    },
    Kind {
        name: "oauth2",
        members: &["token_url", "client_id", "client_secret", "scope"],
        description: "An access token that the service gets with client credentials (RFC 6749, section 4.4).",
        schemas: ["OAuth2Credentials", "OAuth2Authentication"],
    },
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
        let Some(Kind { members: known, .. }) = KINDS.iter().find(|known| known.name == kind) else {
            return Err(Issue::new(FieldCode::InvalidEnum, "must be basic, bearer or oauth2").at("type"));
        };
        if let Some((unknown, _)) = members.iter().find(|(name, _)| name != "type" && !known.contains(&name.as_str())) {
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
enum RedactedAuthentication {
    Basic { username: String },
    Bearer,
    Oauth2 { token_url: WebhookUrl, client_id: String, scope: Option<String> },
}

/// Without the secret.
impl Serialize for Authentication {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = match self {
            Self::Basic { username, .. } => RedactedAuthentication::Basic { username: username.clone() },
            Self::Bearer { .. } => RedactedAuthentication::Bearer,
            Self::OAuth2(ClientCredentials { token_url, client_id, scope, .. }) => RedactedAuthentication::Oauth2 {
                token_url: token_url.clone(),
                client_id: client_id.clone(),
                scope: scope.clone(),
            },
        };
        shown.serialize(serializer)
    }
}

/// Without the secret, which is not known.
impl<'de> Deserialize<'de> for Authentication {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match RedactedAuthentication::deserialize(deserializer)? {
            RedactedAuthentication::Basic { username } => Self::Basic { username, password: Secret::default() },
            RedactedAuthentication::Bearer => Self::Bearer { token: Secret::default() },
            RedactedAuthentication::Oauth2 { token_url, client_id, scope } => {
                Self::OAuth2(ClientCredentials { token_url, client_id, client_secret: Secret::default(), scope })
            }
        })
    }
}

impl JsonSchema for Authentication {
    fn schema_name() -> Cow<'static, str> {
        "EndpointAuthentication".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        authentications::<false>(generator, "How deliveries are authenticated at the endpoint, without the secret.")
    }
}

/// Returns the schema of the kinds of authentication, with their secrets or without them.
fn authentications<const SENT: bool>(generator: &mut SchemaGenerator, description: &str) -> Schema {
    let kinds = [
        generator.subschema_for::<KindSchema<0, SENT>>(),
        generator.subschema_for::<KindSchema<1, SENT>>(),
        generator.subschema_for::<KindSchema<2, SENT>>(),
    ];
    json_schema!({ "description": description, "oneOf": kinds })
}

/// One of [`KINDS`] as a schema of its own, which has a name in generated clients.
struct KindSchema<const AT: usize, const SENT: bool>;

impl<const AT: usize, const SENT: bool> JsonSchema for KindSchema<AT, SENT> {
    fn schema_name() -> Cow<'static, str> {
        let [sent, shown] = KINDS[AT].schemas;
        if SENT { sent.into() } else { shown.into() }
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let Kind { name: kind, members, description, .. } = KINDS[AT];
        let mut properties = json!({ "type": { "type": "string", "const": kind } });
        let mut required = vec!["type"];
        for name in members.iter().copied().filter(|name| SENT || SHOWN.contains(name)) {
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
