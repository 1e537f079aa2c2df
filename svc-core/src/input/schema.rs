//! JSON schemas of inputs, records and enums, for the code that the derives generate.

pub use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;
use std::str::FromStr;

pub use serde::ser::SerializeMap;
pub use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
pub use uuid::Uuid;

use crate::error::Issue;

/// Deserializes a value that is written as text.
///
/// # Errors
/// The input is no text, or not that of a value.
pub fn deserialize_text<'de, D: Deserializer<'de>, T: FromStr<Err = Issue>>(deserializer: D) -> Result<T, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// The schema of one field.
pub struct FieldSchema {
    name: &'static str,
    schema: Schema,
    required: bool,
}

impl FieldSchema {
    /// Adds what applies when the field is left out.
    #[must_use]
    pub fn with_default(mut self, default: impl Into<Value>) -> Self {
        self.schema.insert("default".into(), default.into());
        self
    }
}

/// Returns the schema of a field of an input.
pub fn input_field<T: JsonSchema + super::FromJson>(
    generator: &mut SchemaGenerator,
    name: &'static str,
    description: &str,
) -> FieldSchema {
    let schema = describe(nullable_in_type(generator.subschema_for::<T>()), description);
    FieldSchema { name, schema, required: T::absent().is_none() }
}

/// Returns the schema of a field of a record.
pub fn record_field<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    name: &'static str,
    description: &str,
    required: bool,
) -> FieldSchema {
    FieldSchema { name, schema: describe(generator.subschema_for::<T>(), description), required }
}

/// Returns the schema of a body, which has no other fields.
pub fn input(description: &str, patch: bool, fields: Vec<FieldSchema>) -> Schema {
    let (properties, required) = properties(fields);
    let mut object = json!({
        "type": "object",
        "description": description,
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        object["required"] = required.into();
    }
    if patch {
        object["minProperties"] = 1.into();
    }
    Schema::try_from(object).unwrap_or_default()
}

/// Returns the schema of a record, to which later versions may add fields.
pub fn record(description: &str, fields: Vec<FieldSchema>) -> Schema {
    let (properties, required) = properties(fields);
    let object =
        json!({ "type": "object", "properties": properties, "required": required, "description": description });
    Schema::try_from(object).unwrap_or_default()
}

/// Returns the schema of an enum that is written as text. `meanings` is a list of the values in Markdown.
pub fn text_enum(texts: &[&str], meanings: &str) -> Schema {
    schemars::json_schema!({ "type": "string", "enum": texts, "description": meanings })
}

fn properties(fields: Vec<FieldSchema>) -> (Map<String, Value>, Vec<&'static str>) {
    let required = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let properties = fields.into_iter().map(|field| (field.name.to_owned(), field.schema.to_value())).collect();
    (properties, required)
}

/// Sets the description of a field.
fn describe(mut schema: Schema, description: &str) -> Schema {
    schema.insert("description".into(), description.into());
    schema
}

/// Writes a nullable schema as one with `null` among its types, or among its alternatives. Blank text is read as null, so
/// such a field has no least length.
fn nullable_in_type(schema: Schema) -> Schema {
    let mut value = schema.to_value();
    if let Some([inner, null]) = value["anyOf"].as_array().map(Vec::as_slice)
        && null["type"] == "null"
    {
        let mut flat = inner.clone();
        if let Some(kind) = inner["type"].as_str() {
            flat["type"] = json!([kind, "null"]);
            value = flat;
        } else if let Some(forms) = flat["anyOf"].as_array_mut() {
            forms.push(null.clone());
            value = flat;
        }
    }
    if value["type"].is_array()
        && let Some(object) = value.as_object_mut()
    {
        object.remove("minLength");
    }
    Schema::try_from(value).unwrap_or_default()
}

/// Returns how many names the lists have together.
pub const fn total_length(lists: &[&[&str]]) -> usize {
    let mut length = 0;
    let mut list = 0;
    while list < lists.len() {
        length += lists[list].len();
        list += 1;
    }
    length
}

/// Returns the names of all lists in one array of their [`total_length`].
pub const fn concatenate<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut names = [""; N];
    let (mut next, mut list) = (0, 0);
    while list < lists.len() {
        let mut name = 0;
        while name < lists[list].len() {
            names[next] = lists[list][name];
            next += 1;
            name += 1;
        }
        list += 1;
    }
    names
}
