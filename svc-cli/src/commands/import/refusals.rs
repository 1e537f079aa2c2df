//! Refused rows: the first ones are shown to people, all of them are written to the report file.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use svc_core::error::{Error, FieldCode, Issue};
use svc_core::platform::RowProblem;
use uuid::Uuid;

use crate::cli::ImportKind;
use crate::exit::{Exit, Failure};
use crate::output::plain;
use crate::service::{CallError, rules_error};

/// The number of refused rows that are shown on stderr.
const MAX_SHOWN: u64 = 20;

/// The reason why a row was refused, in the form of an error of the API.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Refusal {
    error: String,
    code: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_id: Option<Uuid>,
}

/// An invalid field.
#[derive(Clone, Debug, Serialize)]
struct FieldError {
    field: String,
    code: FieldCode,
    message: String,
}

impl Refusal {
    /// The row matches an existing record that has different fields.
    pub(super) fn differs(kind: ImportKind, id: Uuid, fields: &[String]) -> Self {
        let fields_text = fields.join(", ");
        let error = match kind {
            ImportKind::Contacts => {
                format!("Contact {id} already exists with a different {fields_text}; use --update to change it.")
            }
            ImportKind::Invoices | ImportKind::All => {
                format!("Invoice {id} already exists with a different {fields_text}.")
            }
        };
        let field = fields.first().cloned();
        Self { error, code: "differs".into(), field, errors: Vec::new(), existing_id: Some(id) }
    }

    pub(super) fn too_long(hint: &str) -> Self {
        Issue::new(FieldCode::TooLong, format!("must have at most 1 MiB; {hint}")).on("row").into()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = error.code().into();
        let refusal = Self { error: error.to_string(), code, field: None, errors: Vec::new(), existing_id: None };
        match error {
            Error::Validation(violations) => {
                let errors: Vec<FieldError> = violations
                    .as_slice()
                    .iter()
                    .map(|violation| FieldError {
                        field: violation.field.clone(),
                        code: violation.code,
                        message: violation.message.clone(),
                    })
                    .collect();
                let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
                let error = format!("{}.", messages.join("; "));
                Self { error, field: errors.first().map(|error| error.field.clone()), errors, ..refusal }
            }
            Error::InvalidJson(reason) => Self { error: reason.replace("The body", "The line"), ..refusal },
            Error::ReferenceNotFound(field) => Self { field: Some(field.to_owned()), ..refusal },
            Error::EmailTaken { existing_id } => {
                let error = format!("The contact {existing_id} has this email already.");
                Self { error, field: Some("email".to_owned()), existing_id: Some(existing_id), ..refusal }
            }
            _ => refusal,
        }
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rules(error) => error.into(),
            error @ CallError::Server(_) => {
                let (error, code) = (Failure::from(error).message().to_owned(), "internal_error".into());
                Self { error, code, field: None, errors: Vec::new(), existing_id: None }
            }
        }
    }
}

/// The row was refused by the rules, wherever these run.
impl From<RowProblem> for Refusal {
    fn from(problem: RowProblem) -> Self {
        let RowProblem { error, code, field, existing_id, .. } = problem.clone();
        match rules_error(problem) {
            Some(error) => error.into(),
            None => Self { error, code: code.into(), field, errors: Vec::new(), existing_id },
        }
    }
}

/// A refused row as the report has it.
#[derive(Serialize)]
struct Reported<'r> {
    line: u64,
    #[serde(flatten)]
    refusal: &'r Refusal,
}

/// The report file.
struct Report {
    path: PathBuf,
    file: BufWriter<File>,
}

/// The refused rows of an import.
pub(super) struct Refusals {
    shown: String,
    count: u64,
    report: Option<Report>,
}

impl Refusals {
    /// Creates an empty collection, and creates or truncates the report file.
    pub(super) fn new(report: Option<&Path>, source: &Path) -> Result<Self, Failure> {
        let report = match report {
            Some(path) => {
                let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
                if same(path, source) == Some(true) {
                    let reason = "--report must not name the file that is imported, which it would overwrite.";
                    return Err(Failure::new(Exit::Usage, reason));
                }
                let file = File::create(path).map_err(|reason| unwritten(path, &reason))?;
                Some(Report { path: path.to_owned(), file: BufWriter::new(file) })
            }
            None => None,
        };
        Ok(Self { shown: String::new(), count: 0, report })
    }

    pub(super) fn add(&mut self, line: u64, refusal: &Refusal) -> Result<(), Failure> {
        self.count += 1;
        if self.count <= MAX_SHOWN {
            let text: String = refusal.error.chars().take(500).collect();
            let _ = write!(self.shown, "\n  line {line}: {}", plain(&text));
        }
        if let Some(Report { path, file }) = &mut self.report {
            let written = serde_json::to_writer(&mut *file, &Reported { line, refusal }).map_err(io::Error::from);
            written.and_then(|()| file.write_all(b"\n")).map_err(|error| unwritten(path, &error))?;
        }
        Ok(())
    }

    /// Writes the buffered part of the report.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.report {
            Some(Report { path, file }) => file.flush().map_err(|error| unwritten(path, &error)),
            None => Ok(()),
        }
    }

    /// Formats the summary of refused rows for people.
    pub(super) fn to_text(&self, refused: u64, rows: u64) -> String {
        let mut text = format!("Refused {refused} of {rows} rows:{}", self.shown);
        let rest = self.count.saturating_sub(MAX_SHOWN);
        if rest > 0 {
            let all = match &self.report {
                Some(Report { path, .. }) => format!("{} lists all of them", plain(&path.to_string_lossy())),
                None => "use --report FILE to list all of them".to_owned(),
            };
            let _ = write!(text, "\n  and {rest} more; {all}");
        }
        text
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("The report {} cannot be written: {error}.", plain(&path.to_string_lossy())))
}
