//! Rows that were refused: the first of them for people, all of them in a file for programs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use svc_core::error::{Error, FieldCode, Issue};
use uuid::Uuid;

use crate::cli::ImportKind;
use crate::exit::{Exit, Failure};
use crate::output::plain;

/// Refused rows that are told on stderr.
const TOLD: u64 = 20;

/// Why a row was refused, in the form in which the API refuses.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Refusal {
    error: String,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Failing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_id: Option<Uuid>,
}

/// A failing field.
#[derive(Clone, Debug, Serialize)]
struct Failing {
    field: String,
    code: FieldCode,
    message: String,
}

impl Refusal {
    /// The record that the row was recognised as says something else.
    pub(super) fn differs(kind: ImportKind, id: Uuid, fields: &[&str]) -> Self {
        let others = fields.join(", ");
        let error = match kind {
            ImportKind::Contacts => format!("The contact {id} is there with another {others}; --update changes it."),
            ImportKind::Invoices => format!("The invoice {id} is there with another {others}."),
        };
        let field = fields.first().map(|field| (*field).to_owned());
        Self { error, code: "differs", field, errors: Vec::new(), existing_id: Some(id) }
    }

    pub(super) fn too_long(hint: &str) -> Self {
        Issue::new(FieldCode::TooLong, format!("must have at most 1 MiB; {hint}")).on("row").into()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = error.code();
        let refusal = Self { error: error.to_string(), code, field: None, errors: Vec::new(), existing_id: None };
        match error {
            Error::Validation(violations) => {
                let errors: Vec<Failing> = violations
                    .as_slice()
                    .iter()
                    .map(|violation| Failing {
                        field: violation.field.clone(),
                        code: violation.code,
                        message: violation.message.clone(),
                    })
                    .collect();
                let messages: Vec<&str> = errors.iter().map(|failing| failing.message.as_str()).collect();
                let error = format!("{}.", messages.join("; "));
                Self { error, field: errors.first().map(|failing| failing.field.clone()), errors, ..refusal }
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

/// A refused row as the report has it.
#[derive(Serialize)]
struct Reported<'r> {
    line: u64,
    #[serde(flatten)]
    refusal: &'r Refusal,
}

/// All that were refused.
pub(super) struct Refusals {
    told: String,
    count: u64,
    report: Option<(PathBuf, BufWriter<File>)>,
}

impl Refusals {
    /// None yet; makes the report anew.
    pub(super) fn new(report: Option<&Path>, source: &Path) -> Result<Self, Failure> {
        let report = match report {
            Some(path) => {
                let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
                if same(path, source) == Some(true) {
                    let reason = "--report must be another file than the one that is read, which it would replace.";
                    return Err(Failure::new(Exit::Usage, reason));
                }
                let file = File::create(path).map_err(|reason| unwritten(path, &reason))?;
                Some((path.to_owned(), BufWriter::new(file)))
            }
            None => None,
        };
        Ok(Self { told: String::new(), count: 0, report })
    }

    pub(super) fn add(&mut self, line: u64, refusal: &Refusal) -> Result<(), Failure> {
        self.count += 1;
        if self.count <= TOLD {
            let text: String = refusal.error.chars().take(500).collect();
            let _ = write!(self.told, "\n  line {line}: {}", plain(&text));
        }
        if let Some((path, file)) = &mut self.report {
            let written = serde_json::to_writer(&mut *file, &Reported { line, refusal }).map_err(io::Error::from);
            written.and_then(|()| file.write_all(b"\n")).map_err(|error| unwritten(path, &error))?;
        }
        Ok(())
    }

    /// Brings the report to the disk.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.report {
            Some((path, file)) => file.flush().map_err(|error| unwritten(path, &error)),
            None => Ok(()),
        }
    }

    /// What to tell people.
    pub(super) fn to_text(&self, refused: u64, rows: u64) -> String {
        let mut text = format!("Refused {refused} of {rows} rows:{}", self.told);
        let rest = self.count.saturating_sub(TOLD);
        if rest > 0 {
            let all = match &self.report {
                Some((path, _)) => format!("{} has them all", plain(&path.to_string_lossy())),
                None => "--report FILE keeps them all".to_owned(),
            };
            let _ = write!(text, "\n  and {rest} more; {all}");
        }
        text
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("The report {} cannot be written: {error}.", plain(&path.to_string_lossy())))
}
