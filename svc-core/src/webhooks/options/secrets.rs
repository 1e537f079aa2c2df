//! Options with secrets: what a request has of them, and how they are stored.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::{self, Json};
use crate::values::{Secret, Stored, StreamUrl};
use crate::webhooks::signatures::WEBHOOK_PREFIX;

/// How many bytes a signing secret has, by the Standard Webhooks specification.
const SECRET_BYTES: RangeInclusive<usize> = 24..=64;

/// The greatest length of the value of a header, of a password, and of a token.
pub(super) const MAX_VALUE: usize = 4096;

/// An option with secrets, of which a response shows no more than it must.
pub trait WithSecrets: FromJson {
    /// The name of the schema of the JSON with the secrets.
    const SENT: &'static str;
    /// Whether the schema has no name, but stands where it is used.
    const IS_INLINE: bool = false;

    /// Returns the JSON with the secrets: as it was sent, and as it is stored encrypted.
    fn to_sent(&self) -> Secret;

    /// Reads the JSON as it was stored.
    ///
    /// # Errors
    /// If it is damaged.
    fn of_stored(json: Json) -> Result<Self, Issue> {
        Self::from_json(json)
    }

    /// Returns the schema of that JSON.
    fn sent_schema(generator: &mut SchemaGenerator) -> Schema;
}

/// An option with secrets as a request has it. Its JSON has the secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct Unredacted<T>(pub T);

impl<T: WithSecrets> FromJson for Unredacted<T> {
    fn from_json(json: Json) -> Result<Self, Issue> {
        T::from_json(json).map(Self)
    }
}

impl<T: WithSecrets> Serialize for Unredacted<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = RawValue::from_string(self.0.to_sent().reveal().to_owned());
        json.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<T: WithSecrets> JsonSchema for Unredacted<T> {
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

impl<T: WithSecrets> Stored for T {
    fn to_stored(&self) -> Secret {
        self.to_sent()
    }

    fn from_stored(text: &Secret) -> Option<Self> {
        T::of_stored(json::parse(text.reveal().as_bytes()).ok()?).ok()
    }
}

impl WithSecrets for StreamUrl {
    const SENT: &'static str = "StreamUrl";
    const IS_INLINE: bool = true;

    fn to_sent(&self) -> Secret {
        Secret::new(serde_json::Value::from(self.secret().reveal()).to_string())
    }

    fn sent_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uri", "maxLength": StreamUrl::MAX_LENGTH })
    }
}

/// A signing secret that a receiver has from another sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningSecret(pub(crate) Secret);

impl SigningSecret {
    /// Returns this secret: `whsec_` and the base64 of 24 to 64 bytes, as the Standard Webhooks specification has it.
    ///
    /// # Errors
    /// `invalid_format`, without any part of the text.
    pub fn new(text: &str) -> Result<Self, Issue> {
        let refused = |reason: String| {
            let (min, max) = (SECRET_BYTES.start(), SECRET_BYTES.end());
            let reason = format!("must be {WEBHOOK_PREFIX} and the base64 of {min} to {max} bytes: {reason}");
            Issue::new(FieldCode::InvalidFormat, reason)
        };
        let encoded = text.strip_prefix(WEBHOOK_PREFIX);
        let encoded = encoded.ok_or_else(|| refused(format!("it does not begin with {WEBHOOK_PREFIX}")))?;
        let bytes = STANDARD.decode(encoded);
        let bytes = bytes.map_err(|_| refused("what follows is not base64 with its padding".to_owned()))?;
        if SECRET_BYTES.contains(&bytes.len()) {
            Ok(Self(Secret::new(text)))
        } else {
            Err(refused(format!("it has {}", bytes.len())))
        }
    }
}

impl FromJson for SigningSecret {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::new(&json.into_string()?)
    }
}

impl WithSecrets for SigningSecret {
    const SENT: &'static str = "SigningSecret";
    const IS_INLINE: bool = true;

    fn to_sent(&self) -> Secret {
        Secret::new(serde_json::Value::from(self.0.reveal()).to_string())
    }

    fn sent_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$" })
    }
}

/// Checks the value of a header (RFC 9110, section 5.5), in ASCII.
pub(super) fn check_value(value: &str) -> Result<(), Issue> {
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
