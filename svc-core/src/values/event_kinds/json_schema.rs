//! Checks of the data of events with JSON Schema 2020-12.

use boon::{
    CompileError, Compiler, Draft, ErrorKind, InstanceLocation, SchemaIndex, Schemas, UrlLoader, ValidationError,
};
use serde_json::Value;

use super::KindName;
use super::registry::EventKindError;
use crate::error::{FieldCode, Issue};

/// The address of a schema while it is compiled, which a document without one must have.
const ADDRESS: &str = "https://schema.invalid/";

pub(super) struct Validator {
    schemas: Schemas,
    schema: SchemaIndex,
}

/// Loads nothing: references stay within the schema.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is another document").into())
    }
}

pub(super) fn compile(kind: KindName, schema: &Value) -> Result<Validator, EventKindError> {
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.enable_format_assertions();
    compiler.use_loader(Box::new(NoLoader));
    let mut schemas = Schemas::new();
    let compiled = match compiler.add_resource(ADDRESS, schema.clone()) {
        Ok(()) => compiler.compile(ADDRESS, &mut schemas),
        Err(error) => Err(error),
    };
    match compiled {
        Ok(schema) => Ok(Validator { schemas, schema }),
        Err(error) => {
            let (place, reason) = explain(schema, &error);
            Err(EventKindError::Schema { kind, place, reason: reason.replace(ADDRESS, "") })
        }
    }
}

/// Returns where a schema is not valid, and why.
fn explain(schema: &Value, error: &CompileError) -> (String, String) {
    match error {
        CompileError::ValidationError { src, .. } => {
            let mut errors = Vec::new();
            collect(src, &mut errors);
            let first = errors.first().unwrap_or(&src);
            let place = first.instance_location.to_string();
            let value = schema.pointer(&place).unwrap_or(schema);
            (format!("#{place}"), texts(first, &value.to_string()).join("; "))
        }
        CompileError::InvalidRegex { url, regex, src } => {
            (url.replace(ADDRESS, ""), format!("the pattern {regex:?} cannot be used: {src}"))
        }
        error => ("#".to_owned(), error.to_string()),
    }
}

/// Returns what does not fit.
pub(super) fn check(validator: &Validator, data: &Value) -> Vec<Issue> {
    let Err(error) = validator.schemas.validate(data, validator.schema) else { return Vec::new() };
    let mut errors = Vec::new();
    collect(&error, &mut errors);
    errors.into_iter().flat_map(issues).collect()
}

/// Collects the errors that say what is wrong. Those above them say that a part of the schema failed. Errors below a
/// choice of schemas are left out, as another choice may have been meant.
fn collect<'a, 's, 'v>(error: &'a ValidationError<'s, 'v>, found: &mut Vec<&'a ValidationError<'s, 'v>>) {
    match error.kind {
        ErrorKind::Group | ErrorKind::Schema { .. } | ErrorKind::Reference { .. } | ErrorKind::AllOf => {
            error.causes.iter().for_each(|cause| collect(cause, found));
        }
        _ => found.push(error),
    }
}

fn issues(error: &ValidationError<'_, '_>) -> Vec<Issue> {
    let code = match error.kind {
        ErrorKind::Required { .. } => FieldCode::Required,
        ErrorKind::Type { .. } => FieldCode::InvalidType,
        ErrorKind::Enum { .. } | ErrorKind::Const { .. } => FieldCode::InvalidEnum,
        ErrorKind::MaxLength { .. } | ErrorKind::MaxItems { .. } | ErrorKind::MaxProperties { .. } => {
            FieldCode::TooLong
        }
        ErrorKind::MinLength { .. } | ErrorKind::MinItems { .. } | ErrorKind::MinProperties { .. } => {
            FieldCode::TooShort
        }
        ErrorKind::Minimum { .. }
        | ErrorKind::Maximum { .. }
        | ErrorKind::ExclusiveMinimum { .. }
        | ErrorKind::ExclusiveMaximum { .. }
        | ErrorKind::MultipleOf { .. } => FieldCode::OutOfRange,
        ErrorKind::AdditionalProperties { .. } => FieldCode::UnknownField,
        _ => FieldCode::InvalidFormat,
    };
    let path = path(&error.instance_location);
    let issue = |text: String| {
        let issue = Issue::new(code, format!("does not fit the schema: {text}"));
        if path.is_empty() { issue } else { issue.at(path.clone()) }
    };
    // The value is left out, as it may be long.
    texts(error, "it").into_iter().map(issue).collect()
}

fn path(location: &InstanceLocation<'_>) -> String {
    location.to_string().strip_prefix('/').unwrap_or_default().replace('/', ".")
}

/// Returns what an error says of a value.
fn texts(error: &ValidationError<'_, '_>, value: &str) -> Vec<String> {
    let text = match &error.kind {
        ErrorKind::Required { want } => {
            return want.iter().map(|name| format!("{name:?} is a required property")).collect();
        }
        ErrorKind::Type { want, .. } => {
            let names: Vec<_> = want.iter().map(|name| format!("\"{name}\"")).collect();
            format!("{value} is not of type {}", names.join(" or "))
        }
        ErrorKind::Format { want, .. } => format!("{value} is not a {want:?}"),
        ErrorKind::Pattern { want, .. } => format!("{value} does not match {want:?}"),
        ErrorKind::Minimum { want, .. } => format!("{value} is less than the minimum of {want}"),
        ErrorKind::ExclusiveMinimum { want, .. } => format!("{value} is less than or equal to the minimum of {want}"),
        ErrorKind::Maximum { want, .. } => format!("{value} is greater than the maximum of {want}"),
        ErrorKind::ExclusiveMaximum { want, .. } => {
            format!("{value} is greater than or equal to the maximum of {want}")
        }
        ErrorKind::MultipleOf { want, .. } => format!("{value} is not a multiple of {want}"),
        ErrorKind::AnyOf => format!("{value} is not valid under any of the schemas listed in the 'anyOf' keyword"),
        ErrorKind::OneOf(None) => {
            format!("{value} is not valid under any of the schemas listed in the 'oneOf' keyword")
        }
        ErrorKind::OneOf(Some(_)) => {
            format!("{value} is valid under more than one of the schemas listed in the 'oneOf' keyword")
        }
        ErrorKind::Not => format!("{value} is valid under the schema of the 'not' keyword"),
        ErrorKind::FalseSchema => format!("{value} is not allowed"),
        kind => kind.to_string(),
    };
    vec![text]
}
