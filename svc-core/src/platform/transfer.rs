//! Imports, as the platform API takes them and reports what came of them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, FailingField, FieldCode, Issue, Violation, Violations};
use crate::imports::{
    ContactImport, Import, ImportOptions, ImportRecord, ImportRow, Imported, InvoiceImport, MAX_ROWS,
};
use crate::input::json::Json;
use crate::input::{FromJson, Input, Record};
use crate::resources::contacts::Contact;
use crate::resources::invoices::Invoice;
use crate::resources::kinds::AccountRecord;
use crate::values::TextEnum;

/// The kind of the rows of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TextEnum)]
pub enum ImportKind {
    /// Contacts that were made elsewhere.
    Contacts,
    /// Invoices that were made elsewhere, with any status.
    Invoices,
    /// Records of any type as an export returned them, each with its `kind`.
    All,
}

/// A batch of records that were made elsewhere.
#[derive(Clone, Debug, Input)]
pub struct ImportCreate {
    /// The kind of the rows: `contacts`, `invoices`, or `all` for records as an export returned them.
    pub kind: ImportKind,
    /// The rows, at most 500. A file with more is imported batch by batch, in its order.
    pub rows: ImportRows,
    /// Whether each record that is added or updated fires its event. Without it, or with null, it does. Records of an export
    /// never fire events, so with `all` it is left out.
    pub events: Option<bool>,
    /// Whether a contact that exists and differs is updated. Without it, or with null, it is not. With contacts only.
    pub update: Option<bool>,
    /// Whether to report only what would come of the rows, and to change nothing. Without it, or with null, the rows are
    /// imported. With contacts and invoices only, since a row of `all` may need those before it.
    pub dry_run: Option<bool>,
}

impl ImportCreate {
    /// Returns a batch of contacts.
    pub fn contacts<'r>(rows: impl IntoIterator<Item = &'r ContactImport>) -> Self {
        Self::of::<Contact>(ImportKind::Contacts, rows)
    }

    /// Returns a batch of invoices.
    pub fn invoices<'r>(rows: impl IntoIterator<Item = &'r InvoiceImport>) -> Self {
        Self::of::<Invoice>(ImportKind::Invoices, rows)
    }

    /// Returns a batch of records that an export returned, in their order.
    pub fn all<'r>(rows: impl IntoIterator<Item = &'r AccountRecord>) -> Self {
        Self::of::<AccountRecord>(ImportKind::All, rows)
    }

    fn of<'r, R: Import>(kind: ImportKind, rows: impl IntoIterator<Item = &'r R::Row>) -> Self {
        let row = |row| ImportRow { record: ImportRecord::of::<R>(row), duplicates_before: None };
        Self { kind, rows: ImportRows(rows.into_iter().map(row).collect()), events: None, update: None, dry_run: None }
    }

    /// Returns the choices of the import.
    ///
    /// # Errors
    /// [`Error::Validation`] for choices that the kind does not have.
    pub fn options(&self) -> Result<ImportOptions, Error> {
        let mut violations = Violations::default();
        let mut refuse = |is_refused: bool, field: &str, reason: &'static str| {
            if is_refused {
                violations.push(field, Issue::new(FieldCode::InvalidEnum, reason));
            }
        };
        let restores = self.kind == ImportKind::All;
        let update = self.update.unwrap_or_default();
        refuse(update && self.kind != ImportKind::Contacts, "update", "must not be true, except for contacts");
        refuse(
            restores && self.dry_run.unwrap_or_default(),
            "dry_run",
            "must not be true for all, as it would not see the contacts that other records refer to",
        );
        refuse(restores && self.events.unwrap_or_default(), "events", "must not be true for all, which fires none");
        if violations.is_empty() {
            Ok(ImportOptions { events: self.events.unwrap_or(!restores), update })
        } else {
            Err(Error::Validation(violations))
        }
    }
}

/// The rows of a batch.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ImportRows(pub Vec<ImportRow>);

impl FromJson for ImportRows {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let rows = json.into_array()?;
        if rows.len() > MAX_ROWS {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_ROWS} rows")));
        }
        let read = |(at, row): (usize, Json)| row_from_json(row).map_err(|issue| issue.within(&at.to_string()));
        rows.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }
}

fn row_from_json(json: Json) -> Result<ImportRow, Issue> {
    let object = |json| match json {
        Json::Object(members) => Ok(members),
        _ => Err(Issue::new(FieldCode::InvalidType, "must be an object")),
    };
    let (mut record, mut duplicates_before) = (None, None);
    for (name, value) in object(json)? {
        let read = match name.as_str() {
            "record" => object(value).map(|members| record = Some(ImportRecord::read(members))),
            "duplicates_before" => {
                Option::<Count>::from_json(value).map(|count| duplicates_before = count.map(|count| count.0))
            }
            _ => Err(Issue::new(FieldCode::UnknownField, "is no field of this request; leave it out")),
        };
        read.map_err(|issue| issue.at(name))?;
    }
    let record = record.ok_or_else(|| Issue::new(FieldCode::Required, "is required").at("record"))?;
    Ok(ImportRow { record, duplicates_before })
}

/// A whole number that is not negative.
struct Count(u32);

impl FromJson for Count {
    fn from_json(json: Json) -> Result<Self, Issue> {
        super::values::whole_number(json, 0, u32::MAX).map(Self)
    }
}

impl JsonSchema for ImportRows {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ImportRows".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let row = generator.subschema_for::<ImportRow>();
        json_schema!({ "type": "array", "items": row, "maxItems": MAX_ROWS })
    }
}

impl JsonSchema for ImportRow {
    fn schema_name() -> Cow<'static, str> {
        "ImportRow".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let records = [
            generator.subschema_for::<ContactImport>(),
            generator.subschema_for::<InvoiceImport>(),
            generator.subschema_for::<AccountRecord>(),
        ];
        json_schema!({
            "type": "object",
            "description": "A row of an import.",
            "properties": {
                "record": {
                    "description": "The record: a contact or an invoice that was made elsewhere, or a record as an export \
                        returned it. A record with an `id` of version 7 is created under this id. A contact without an \
                        email address and an invoice without a number are recognised by all of their fields. One that does \
                        not fit is refused alone, and its row of the report says why.",
                    "anyOf": records,
                },
                "duplicates_before": {
                    "type": ["integer", "null"],
                    "minimum": 0,
                    "maximum": u32::MAX,
                    "description": "How many earlier rows of the whole import have the same content, for a row that nothing \
                        else identifies. So equal rows of a file stay as many records, and none is added twice when the \
                        import is repeated. Without it, or with null, the rows of this request are counted.",
                },
            },
            "required": ["record"],
            "additionalProperties": false,
        })
    }
}

/// The result of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct ImportReport {
    /// The result of each row, in the order of the rows.
    pub rows: Vec<ImportedRow>,
    /// The number of webhook subscriptions that receive an event of each record that is added. It is 0 without events.
    pub webhooks: u32,
}

/// The outcome of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TextEnum)]
pub enum RowOutcome {
    /// The record was added.
    Added,
    /// The record is there already, and agrees with the row.
    ThereAlready,
    /// The record was there and was updated.
    Updated,
    /// The record is there, differs from the row, and was not changed.
    Differs,
    /// The row was refused; `problem` says why.
    Refused,
}

/// The result of a row, with the reason if it was not imported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct ImportedRow {
    /// The outcome of the row.
    pub result: RowOutcome,
    /// The `id` of the record from which the row differs. The field is present with `differs` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[record(schema = Uuid)]
    pub existing_id: Option<Uuid>,
    /// The names of the fields that differ. The field is present with `differs` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Why the row was refused. The field is present with `refused` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[record(schema = RowProblem)]
    pub problem: Option<RowProblem>,
}

/// The number of failing fields of a row that are reported. The report of a batch is the response to a request and is stored
/// under its idempotency key, so it must not be many times as long as the request.
const MAX_FIELD_PROBLEMS: usize = 10;
/// The most bytes of the names and messages of these fields, of which the first is reported in any case. Unknown fields can
/// have long names.
const MAX_FIELD_TEXT: usize = 1_000;

/// Why a row was refused, as a request with this record alone would be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct RowProblem {
    /// A sentence for people that says what is wrong and how to correct it. It may be reworded.
    pub error: String,
    /// The kind of mistake, for programs, such as `validation_failed` or `email_taken`. Codes do not change.
    pub code: String,
    /// The first failing field, if a field failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[record(schema = String)]
    pub field: Option<String>,
    /// The first failing fields, at most 10 and fewer if their names are long, if a field failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// The `id` of the contact that has the email address, with the code `email_taken`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[record(schema = Uuid)]
    pub existing_id: Option<Uuid>,
}

/// A field of a row that is not valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct FieldProblem {
    /// The name of the field.
    pub field: String,
    /// The mistake in the field, for programs, such as `required` or `too_long`.
    pub code: String,
    /// The mistake in the field, as a sentence without a full stop.
    pub message: String,
}

impl From<Result<Imported, Error>> for ImportedRow {
    fn from(result: Result<Imported, Error>) -> Self {
        let row = |result| Self { result, existing_id: None, fields: Vec::new(), problem: None };
        match result {
            Ok(Imported::Added) => row(RowOutcome::Added),
            Ok(Imported::Unchanged) => row(RowOutcome::ThereAlready),
            Ok(Imported::Updated) => row(RowOutcome::Updated),
            Ok(Imported::Differs { id, fields }) => Self {
                existing_id: Some(id),
                fields: fields.into_iter().map(str::to_owned).collect(),
                ..row(RowOutcome::Differs)
            },
            Err(error) => Self { problem: Some(error.into()), ..row(RowOutcome::Refused) },
        }
    }
}

impl RowProblem {
    /// Returns the error of the rules that the problem reports. `None` if it is none of the rules.
    pub fn to_error(&self) -> Option<Error> {
        let Self { error: message, code, errors, existing_id, .. } = self;
        Some(match code.as_str() {
            "not_found" => Error::NotFound,
            "empty_patch" => Error::EmptyPatch,
            "invalid_cursor" => Error::InvalidCursor,
            "precondition_failed" => Error::PreconditionFailed,
            "invalid_json" => Error::InvalidJson(message.clone().into()),
            "not_allowed" if let Some(existing_id) = *existing_id => {
                Error::AlreadyConverted { reason: message.clone(), existing_id }
            }
            "not_allowed" | "limit_reached" => Error::NotAllowed(message.clone()),
            // Contacts are all that records refer to.
            "reference_not_found" => Error::ReferenceNotFound("contact_id"),
            "email_taken" => Error::EmailTaken { existing_id: (*existing_id)? },
            "validation_failed" if !errors.is_empty() => {
                let violation = |failing: &FieldProblem| {
                    let code = FieldCode::from_text(&failing.code).unwrap_or(FieldCode::InvalidFormat);
                    Violation::reported(failing.field.clone(), code, failing.message.clone())
                };
                Error::Validation(errors.iter().map(violation).collect::<Violations>())
            }
            _ => return None,
        })
    }
}

impl From<Error> for RowProblem {
    fn from(error: Error) -> Self {
        let field = |failing: FailingField<'_>| FieldProblem {
            field: failing.field.to_owned(),
            code: failing.code.to_owned(),
            message: failing.message.into_owned(),
        };
        let mut length = 0;
        let is_short = |problem: &FieldProblem| {
            let is_first = length == 0;
            length += problem.field.len() + problem.message.len();
            is_first || length <= MAX_FIELD_TEXT
        };
        let errors = error.failing_fields().into_iter().take(MAX_FIELD_PROBLEMS).map(field);
        let errors: Vec<FieldProblem> = errors.take_while(is_short).collect();
        Self {
            error: error.to_string(),
            code: error.code().to_owned(),
            field: errors.first().map(|first| first.field.clone()),
            errors,
            existing_id: error.existing_id(),
        }
    }
}
