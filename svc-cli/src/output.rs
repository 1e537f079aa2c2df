//! What comes of a command, written down: one JSON document for programs, or sentences and tables for
//! people. Results go to stdout and everything else to stderr. Colour only where anstream finds it wanted.

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

/// What a table shows where there is nothing.
const NOTHING: &str = "-";

/// What came of a command.
pub(crate) struct Outcome {
    json: String,
    text: String,
    note: Option<String>,
    empty: Option<&'static str>,
    failure: Option<Failure>,
}

impl Outcome {
    /// A result as programs and as people see it.
    pub(crate) fn new(value: &impl Serialize, text: String) -> Result<Self, Failure> {
        let json = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::new(Exit::Failed, format!("The result cannot be written as JSON: {error}")))?;
        Ok(Self { json, text, note: None, empty: None, failure: None })
    }

    /// Nothing more to be said.
    pub(crate) fn nothing() -> Self {
        Self { json: String::new(), text: String::new(), note: None, empty: None, failure: None }
    }

    /// A list; `empty` is said to people when there is nothing in it.
    pub(crate) fn list(values: &[impl Serialize], table: &Table, empty: &'static str) -> Result<Self, Failure> {
        let outcome = Self::new(&values, if values.is_empty() { String::new() } else { table.to_text() })?;
        Ok(Self { empty: values.is_empty().then_some(empty), ..outcome })
    }

    /// Adds something to be said on stderr.
    pub(crate) fn with_note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// Makes it the result of a command that failed all the same: it is printed, and then why it failed.
    pub(crate) fn with_failure(self, failure: Option<Failure>) -> Self {
        Self { failure, ..self }
    }

    /// Writes it.
    ///
    /// # Errors
    /// Its failure, if it has one; or that it could not be written.
    pub(crate) fn print(self, json: bool) -> Result<(), Failure> {
        write_out(if json { &self.json } else { &self.text })?;
        let empty = self.empty.filter(|_| !json);
        for note in self.note.as_deref().into_iter().chain(empty) {
            say(NOTE, "note", note);
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Writes to stdout. A reader that has gone away, as in `svc … | head -1`, is no failure.
fn write_out(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    match write_now(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Writes to stdout at once, for commands that go on; a reader that has gone away is theirs to judge.
pub(crate) fn write_now(text: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{text}{end}")?;
    out.flush()
}

/// Where commands write that have more to say than fits into memory; flush it at the end.
pub(crate) fn stream() -> impl io::Write {
    io::BufWriter::with_capacity(1 << 16, io::stdout())
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Failed, format!("The command was carried out, but its result could not be printed: {error}"))
    }
}

/// Says on stderr why the command failed.
pub(crate) fn error(message: &str) {
    say(ERROR, "error", message);
}

fn say(style: Style, word: &str, message: &str) {
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    // When stderr is gone there is nobody left to tell.
    let _ = writeln!(err, "{style}{word}:{style:#} {message}");
}

/// A verdict, in the colour of good or of bad.
pub(crate) fn verdict(good: bool, text: &str) -> String {
    let style = if good { GOOD } else { ERROR };
    format!("{style}{text}{style:#}")
}

/// Text that others wrote, with everything escaped that could steer a terminal.
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

/// Text for people where there may be none.
pub(crate) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| value.to_string())
}

/// Rows with aligned columns under a heading.
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// One row per item, one cell per heading.
    pub(crate) fn new<T, const N: usize>(heading: [&str; N], items: &[T], row: impl Fn(&T) -> [String; N]) -> Self {
        Self { heading: heading.map(str::to_owned).into(), rows: items.iter().map(|item| row(item).into()).collect() }
    }

    /// The rows as text.
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

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| {
        let padding = width - cell.width().min(*width);
        format!("{cell}{:padding$}", "")
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// One `name: value` per line, the values aligned.
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
    fn columns_line_up_whatever_the_script() {
        let table = Table::new(["NAME", "STATE"], &["Ada", "港湾配管", "Zoë"], |name| {
            [(*name).to_owned(), "approved".to_owned()]
        });
        let text = anstream::adapter::strip_str(&table.to_text()).to_string();
        assert_eq!(text, "NAME      STATE\nAda       approved\n港湾配管  approved\nZoë       approved\n");
    }

    #[test]
    fn the_text_of_others_steers_no_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\r\n\u{9b}c\té"), "a\\u{1b}[2Jb\\r\n\\u{9b}c\té");
    }

    #[test]
    fn values_line_up() {
        let text = fields([("id", "1".to_owned()), ("time zone", "UTC".to_owned())]);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "id:        1\ntime zone: UTC\n");
    }
}
