//! Refused rows: the first ones are shown to people, with one of each kind. All of them are written to the report file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use svc_core::error::{Error, FieldCode, Issue};
use svc_core::platform::{ImportKind, RowProblem};
use uuid::Uuid;

use crate::exit::{Exit, Failure};
use crate::output::{capitalized, plain};
use crate::service::{CallError, rules_error};

/// The number of refused rows that are shown on stderr, beside the first ones of further kinds.
const MAX_SHOWN: u64 = 20;
/// The number of kinds of refusals that are told apart.
const MAX_KINDS: usize = 30;

/// Returns the problem of a row that matches an existing record with different fields, or one that an earlier line of a dry run
/// would add.
pub(super) fn differs(kind: ImportKind, id: Uuid, added_by: Option<u64>, fields: &[String]) -> RowProblem {
    let (name, hint) = match kind {
        ImportKind::Contacts => ("contact", "; use --update to change it"),
        ImportKind::Invoices | ImportKind::All => ("invoice", ""),
    };
    let fields_named = fields.join(", ");
    let error = match added_by {
        Some(line) => format!("Line {line} adds the same {name} with a different {fields_named}{hint}."),
        None => format!("{} {id} already exists with a different {fields_named}{hint}.", capitalized(name)),
    };
    let (field, existing_id) = (fields.first().cloned(), Some(id).filter(|_| added_by.is_none()));
    RowProblem { error, code: "differs".to_owned(), field, errors: Vec::new(), existing_id }
}

/// Words a problem by the line of a dry run that would add the record that is in the way, whose id is that of no record.
pub(super) fn by_line(problem: RowProblem, line: u64) -> RowProblem {
    let error = match (problem.existing_id, problem.error.split_once(" is the number of another invoice, ")) {
        (Some(id), _) => problem.error.replace(&format!("The contact {id}"), &format!("The contact of line {line}")),
        (None, Some((number, _))) => format!("{number} is the number of the invoice of line {line}."),
        (None, None) => problem.error,
    };
    RowProblem { error, existing_id: None, ..problem }
}

/// Returns the problem of a row that is too long.
pub(super) fn too_long(hint: &str) -> RowProblem {
    by_rules(Issue::new(FieldCode::TooLong, format!("must have at most 1 MiB; {hint}")).on("row"))
}

/// Returns the problem of a row that the rules refused, worded for a row of a file.
pub(super) fn by_rules(error: Error) -> RowProblem {
    let problem = RowProblem::from(error.clone());
    match error {
        Error::Validation(_) => {
            let messages: Vec<&str> = problem.errors.iter().map(|error| error.message.as_str()).collect();
            RowProblem { error: format!("{}.", messages.join("; ")), ..problem }
        }
        Error::InvalidJson(reason) => RowProblem { error: reason.replace("The body", "The line"), ..problem },
        Error::ReferenceNotFound(field) => {
            let error = format!(
                "{field} must be the id of a contact of this account that is not deleted; import the contacts first, with the \
                 ids that they have in their export."
            );
            // The field is named, and there is no more to say of it.
            RowProblem { error, errors: Vec::new(), ..problem }
        }
        Error::EmailTaken { existing_id } => {
            let error = format!("The contact {existing_id} has this email already.");
            RowProblem { error, field: Some("email".to_owned()), ..problem }
        }
        _ => problem,
    }
}

/// Returns the problem of a row whose import failed.
pub(super) fn by_call(error: CallError) -> RowProblem {
    match error {
        CallError::Rules(error) => by_rules(error),
        error @ CallError::Server(_) => {
            let (error, code) = (Failure::from(error).message().to_owned(), "internal_error".to_owned());
            RowProblem { error, code, field: None, errors: Vec::new(), existing_id: None }
        }
    }
}

/// Words a problem that the service reported for a row of a file.
pub(super) fn reported(problem: RowProblem) -> RowProblem {
    rules_error(problem.clone()).map_or(problem, by_rules)
}

/// A refused row as the report has it.
#[derive(Serialize)]
struct ReportLine<'r> {
    line: u64,
    #[serde(flatten)]
    problem: &'r RowProblem,
}

/// The report file.
struct Report {
    path: PathBuf,
    file: BufWriter<File>,
}

/// Refused rows with the same field and code.
struct Kind {
    field: Option<String>,
    code: String,
    count: u64,
}

/// The refused rows of an import.
pub(super) struct Refusals {
    /// The text of the rows that are shown, and how many they are.
    shown: (String, u64),
    kinds: Vec<Kind>,
    count: u64,
    report: Option<Report>,
}

impl Refusals {
    /// Creates an empty collection, and creates the report file. A file that exists is not overwritten, also behind a link.
    pub(super) fn new(report: Option<&Path>, source: &Path) -> Result<Self, Failure> {
        let report = match report {
            Some(path) => {
                let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
                if same(path, source) == Some(true) {
                    let reason = "--report must not name the file that is imported, which it would overwrite.";
                    return Err(Failure::new(Exit::Usage, reason));
                }
                let file = create(path).map_err(|reason| unwritten(path, &reason))?;
                Some(Report { path: path.to_owned(), file: BufWriter::new(file) })
            }
            None => None,
        };
        Ok(Self { shown: (String::new(), 0), kinds: Vec::new(), count: 0, report })
    }

    pub(super) fn add(&mut self, line: u64, problem: &RowProblem) -> Result<(), Failure> {
        self.count += 1;
        if self.is_new(problem) || self.count <= MAX_SHOWN {
            let text: String = problem.error.chars().take(500).collect();
            let (shown, count) = &mut self.shown;
            let _ = write!(shown, "\n  line {line}: {}", plain(&text));
            *count += 1;
        }
        if let Some(Report { path, file }) = &mut self.report {
            let written = serde_json::to_writer(&mut *file, &ReportLine { line, problem }).map_err(io::Error::from);
            written.and_then(|()| file.write_all(b"\n")).map_err(|error| unwritten(path, &error))?;
        }
        Ok(())
    }

    /// Counts a problem by its kind, which is the field and the code of what is wrong first. Returns whether it is the first
    /// of a kind.
    fn is_new(&mut self, problem: &RowProblem) -> bool {
        let (field, code) = match problem.errors.first() {
            Some(first) => (Some(&first.field), &first.code),
            None => (problem.field.as_ref(), &problem.code),
        };
        let known = self.kinds.iter_mut().find(|kind| kind.field.as_ref() == field && kind.code == *code);
        if let Some(kind) = known {
            kind.count += 1;
            return false;
        }
        let is_shown = self.kinds.len() < MAX_KINDS;
        if is_shown {
            self.kinds.push(Kind { field: field.cloned(), code: code.clone(), count: 1 });
        }
        is_shown
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
        let (shown, count) = &self.shown;
        let mut text = format!("Refused {refused} of {rows} rows:{shown}");
        let rest = self.count.saturating_sub(*count);
        if rest > 0 {
            let all = match &self.report {
                Some(Report { path, .. }) => format!("{} lists all of them", plain(&path.to_string_lossy())),
                None => "use --report FILE to list all of them".to_owned(),
            };
            let _ = write!(text, "\n  and {rest} more; {all}\nBy kind: {}", self.by_kind());
        }
        text
    }

    /// Counts the refused rows by kind, the most frequent first.
    fn by_kind(&self) -> String {
        let mut kinds: Vec<&Kind> = self.kinds.iter().collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        let mut shown: Vec<String> = kinds
            .iter()
            .map(|Kind { field, code, count }| match field {
                Some(field) => format!("{count} {} {code}", plain(field)),
                None => format!("{count} {code}"),
            })
            .collect();
        let others = self.count - kinds.iter().map(|kind| kind.count).sum::<u64>();
        shown.extend((others > 0).then(|| format!("{others} others")));
        format!("{}.", shown.join(", "))
    }
}

/// Opens a report that does not exist yet, or a device such as `/dev/stderr`.
fn create(path: &Path) -> io::Result<File> {
    match File::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_device = std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir());
            if is_device {
                return File::options().append(true).open(path);
            }
            Err(io::Error::new(error.kind(), "the file exists already; name another one, or delete it"))
        }
        result => result,
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("The report {} cannot be written: {error}.", plain(&path.to_string_lossy())))
}
