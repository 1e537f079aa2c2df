//! Refused rows: the first ones are shown to people, with one of each kind. All of them are written to the report file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use svc_core::platform::RowProblem;

use crate::exit::{Exit, Failure};
use crate::output::plain;

/// The number of refused rows that are shown on stderr, beside the first ones of further kinds.
const MAX_SHOWN: u64 = 20;
/// The number of kinds of refusals that are told apart.
const MAX_KINDS: usize = 30;

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
