//! The output of commands: one JSON document for programs, or sentences and tables for people.
//!
//! Results are written to stdout, notes and errors to stderr. anstream decides whether to use colour: it honours
//! `NO_COLOR`, and leaves colour out of pipes and dumb terminals.

use std::fmt::Display;
use std::io::{self, Write as _};

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::exit::{Exit, Failure};

const HEADING: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default().bold();

/// The cell of a table that has no value.
const DASH: &str = "-";

/// The result of a command.
pub(crate) struct Outcome {
    /// The result for programs.
    json: String,
    /// The result for people.
    text: String,
    /// A note for stderr.
    note: Option<String>,
    /// A note for people about an empty list.
    empty: Option<&'static str>,
    /// The reason why the command failed although it has a result.
    failure: Option<Failure>,
}

impl Outcome {
    /// Creates a result from a value, printed as JSON for programs, and a text for people.
    pub(crate) fn new(value: &impl Serialize, text: String) -> Result<Self, Failure> {
        let json = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::new(Exit::Failed, format!("The result cannot be written as JSON: {error}")))?;
        Ok(Self { json, text, note: None, empty: None, failure: None })
    }

    /// Creates the result of a command that has already printed its output.
    pub(crate) fn nothing() -> Self {
        Self { json: String::new(), text: String::new(), note: None, empty: None, failure: None }
    }

    /// Creates a list. `empty` is the note that people see when the list is empty.
    pub(crate) fn list(values: &[impl Serialize], table: &Table, empty: &'static str) -> Result<Self, Failure> {
        let outcome = Self::new(&values, if values.is_empty() { String::new() } else { table.to_text() })?;
        Ok(Self { empty: values.is_empty().then_some(empty), ..outcome })
    }

    /// Adds a note, which is printed to stderr.
    pub(crate) fn with_note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// Adds a failure: the result is printed first, then the failure.
    pub(crate) fn with_failure(self, failure: Option<Failure>) -> Self {
        Self { failure, ..self }
    }

    /// Prints the result.
    ///
    /// # Errors
    /// The failure of the command, or the failure to print its result.
    pub(crate) fn print(self, json: bool) -> Result<(), Failure> {
        write_out(if json { &self.json } else { &self.text })?;
        let empty = self.empty.filter(|_| !json);
        for note in self.note.as_deref().into_iter().chain(empty) {
            print_message(NOTE, "note", note);
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Writes to stdout. A closed pipe, as in `svc … | head -1`, is not a failure.
fn write_out(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    match write_now(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Writes to stdout and flushes it, for commands that keep running. The caller decides what a closed pipe means.
pub(crate) fn write_now(text: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{text}{end}")?;
    out.flush()
}

/// Returns a buffered stdout for output that does not fit into memory. The caller must flush it.
pub(crate) fn stream() -> impl io::Write {
    io::BufWriter::with_capacity(1 << 16, io::stdout())
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Failed, format!("The command succeeded, but its result could not be printed: {error}"))
    }
}

/// Prints an error message to stderr.
pub(crate) fn error(message: &str) {
    print_message(ERROR, "error", message);
}

fn print_message(style: Style, word: &str, message: &str) {
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    // There is nowhere to report that stderr is closed.
    let _ = writeln!(err, "{style}{word}:{style:#} {message}");
}

/// Colours a text green for a good result or red for a bad one.
pub(crate) fn verdict(good: bool, text: &str) -> String {
    let style = if good { GOOD } else { ERROR };
    format!("{style}{text}{style:#}")
}

/// Escapes control characters other than line feeds and tabs in foreign text, which could otherwise control the
/// terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => plain.push(char),
            _ if char.is_control() => plain.extend(char.escape_default()),
            _ => plain.push(char),
        }
    }
    plain
}

/// Formats an optional value, with a dash for `None`.
pub(crate) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| DASH.to_owned(), |value| value.to_string())
}

/// A table with a heading and aligned columns.
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with one row per item and one cell per heading.
    pub(crate) fn new<T, const N: usize>(heading: [&str; N], items: &[T], row: impl Fn(&T) -> [String; N]) -> Self {
        Self { heading: heading.map(str::to_owned).into(), rows: items.iter().map(|item| row(item).into()).collect() }
    }

    /// Formats the table as lines of text.
    pub(crate) fn to_text(&self) -> String {
        let widths: Vec<usize> = (0..self.heading.len())
            .map(|column| {
                let cells = self.rows.iter().chain([&self.heading]).filter_map(|row| row.get(column));
                cells.map(|cell| cell.width()).max().unwrap_or(0)
            })
            .collect();
        let mut text = format!("{HEADING}{}{HEADING:#}\n", line(&self.heading, &widths));
        for row in &self.rows {
            text.push_str(&line(row, &widths));
            text.push('\n');
        }
        text
    }
}

/// Formats one row, each cell padded to its column's width.
fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| {
        let padding = width - cell.width().min(*width);
        format!("{cell}{:padding$}", "")
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Formats one `name: value` per line, with aligned values.
pub(crate) fn fields<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<(&str, String)> = fields.into_iter().collect();
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    let lines = fields.iter().map(|(name, value)| {
        let padding = width - name.len();
        format!("{HEADING}{name}:{HEADING:#}{:padding$}{value}\n", "")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_in_every_script() {
        let table = Table::new(["NAME", "ACCESS"], &["Ada", "港湾配管", "Zoë"], |name| {
            [(*name).to_owned(), "approved".to_owned()]
        });
        let text = anstream::adapter::strip_str(&table.to_text()).to_string();
        assert_eq!(text, "NAME      ACCESS\nAda       approved\n港湾配管  approved\nZoë       approved\n");
    }

    #[test]
    fn control_characters_of_foreign_text_are_escaped() {
        assert_eq!(plain("a\u{1b}[2Jb\r\n\u{9b}c\té"), "a\\u{1b}[2Jb\\r\n\\u{9b}c\té");
    }

    #[test]
    fn values_of_fields_align() {
        let text = fields([("id", "1".to_owned()), ("time zone", "UTC".to_owned())]);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "id:        1\ntime zone: UTC\n");
    }
}
