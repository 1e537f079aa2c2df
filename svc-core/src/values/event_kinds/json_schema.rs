//! Checks of the data of events with JSON Schema 2020-12.

use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;

use super::KindName;
use super::registry::EventKindError;
use crate::error::{FieldCode, Issue};

pub(super) fn compile(kind: KindName, schema: &Value) -> Result<Validator, EventKindError> {
    let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
    options.build(schema).map_err(|error| EventKindError::Schema {
        kind,
        place: format!("#{}", error.instance_path()),
        reason: error.to_string(),
    })
}

/// Returns what does not fit.
pub(super) fn check(validator: &Validator, data: &Value) -> Vec<Issue> {
    validator.iter_errors(data).map(|error| issue(&error)).collect()
}

fn issue(error: &ValidationError<'_>) -> Issue {
    let code = match error.kind().keyword() {
        "required" => FieldCode::Required,
        "type" => FieldCode::InvalidType,
        "enum" | "const" => FieldCode::InvalidEnum,
        "maxLength" | "maxItems" | "maxProperties" => FieldCode::TooLong,
        "minLength" | "minItems" | "minProperties" => FieldCode::TooShort,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => FieldCode::OutOfRange,
        "additionalProperties" | "unevaluatedProperties" => FieldCode::UnknownField,
        _ => FieldCode::InvalidFormat,
    };
    // The value is left out, as it may be long.
    let issue = Issue::new(code, format!("does not fit the schema: {}", error.masked_with("it")));
    match error.instance_path().to_string().strip_prefix('/') {
        Some(path) => issue.at(path.replace('/', ".")),
        None => issue,
    }
}
