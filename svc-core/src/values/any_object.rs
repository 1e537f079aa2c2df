//! JSON objects that the service passes on as they are.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::{self, Json};

/// A JSON object with any members, as it was written except for white space.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyObject(pub Box<RawValue>);

impl AnyObject {
    /// Returns a value as JSON. The service refuses one that is no object.
    ///
    /// # Errors
    ///
    /// Fails when the value cannot be written as JSON.
    pub fn new(value: &impl Serialize) -> Result<Self, Issue> {
        to_raw_value(value).map(Self).map_err(|error| Issue::new(FieldCode::InvalidFormat, error.to_string()))
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

/// Objects are equal if their texts are.
impl PartialEq for AnyObject {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl FromJson for AnyObject {
    fn from_json(json: Json) -> Result<Self, Issue> {
        if !matches!(json, Json::Object(_)) {
            return Err(Issue::new(FieldCode::InvalidType, "must be an object"));
        }
        RawValue::from_string(json::to_text(&json))
            .map(Self)
            .map_err(|error| Issue::new(FieldCode::InvalidFormat, error.to_string()))
    }
}

impl JsonSchema for AnyObject {
    fn schema_name() -> Cow<'static, str> {
        "AnyObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "A JSON object with any members." })
    }
}
