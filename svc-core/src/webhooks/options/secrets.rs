//! Options with secrets: what a request has of them, and how they are stored.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::{self, Json};
use crate::values::{Secret, Stored, StreamUrl};

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

    /// Returns the schema of that JSON.
    fn sent_schema(generator: &mut SchemaGenerator) -> Schema;
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

impl<T: WithSecrets> Stored for T {
    fn to_stored(&self) -> Secret {
        self.to_sent()
    }

    fn from_stored(text: &Secret) -> Option<Self> {
        T::from_json(json::parse(text.reveal().as_bytes()).ok()?).ok()
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
