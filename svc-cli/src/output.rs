//! The output of commands: one JSON document for programs, or sentences and tables for people.
//!
//! Foreign text, such as names and the responses of receivers, could control the terminal, or reorder what is shown by
//! the control characters of bidirectional text. These characters are escaped here, in texts and in JSON.
//!
//! Results are written to stdout, notes and errors to stderr. anstream decides whether to use colour: it honours
//! `NO_COLOR`, and leaves colour out of pipes and dumb terminals.

use std::fmt::Display;
use std::io::{self, Write as _};

use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use svc_core::input::json::Json;
use svc_core::values::{Amount, Currency, formulas};

use crate::document::Document;
use crate::exit::{Exit, Failure};
pub(crate) use crate::table::Table;

pub(crate) const HEADING: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default().bold();

/// The cell of a table that has no value.
pub(crate) const DASH: &str = "-";

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Sentences and tables for people.
    Text,
    /// One JSON document.
    Json,
    /// Comma-separated values: a header row, and a row for each record.
    Csv,
}

/// The result of a command.
pub(crate) struct Outcome {
    /// The result for programs.
    json: String,
    /// The result for people.
    text: String,
    /// A note for stderr.
    note: Option<String>,
    /// A note for people about an empty list.
    empty: Option<String>,
    /// The reason why the command failed although it has a result.
    failure: Option<Failure>,
}

impl Outcome {
    /// Creates a result from a value, printed as JSON for programs, and a text for people.
    pub(crate) fn new(value: &impl Serialize, text: String) -> Result<Self, Failure> {
        let json = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::new(Exit::Failed, format!("The result cannot be written as JSON: {error}")))?;
        Ok(Self { json: plain_json(json), text: plain_styled(&text), note: None, empty: None, failure: None })
    }

    /// Creates the result of a command that has already printed its output.
    pub(crate) fn nothing() -> Self {
        Self { json: String::new(), text: String::new(), note: None, empty: None, failure: None }
    }

    /// Creates a list. `empty` is the note that people see when the list is empty.
    pub(crate) fn list(values: &[impl Serialize], table: &Table, empty: impl Into<String>) -> Result<Self, Failure> {
        let outcome = Self::new(&values, if values.is_empty() { String::new() } else { table.to_text() })?;
        Ok(Self { empty: values.is_empty().then(|| empty.into()), ..outcome })
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
    pub(crate) fn print(self, output: Output) -> Result<(), Failure> {
        match output {
            Output::Text => write_out(&self.text)?,
            Output::Json => write_out(&self.json)?,
            Output::Csv => write_out(&csv(&self.json)?)?,
        }
        let empty = self.empty.filter(|_| output == Output::Text);
        for note in self.note.into_iter().chain(empty) {
            print_message(NOTE, "note", &note);
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Formats JSON as CSV: a row for each object, and a column for each of their members.
fn csv(json: &str) -> Result<String, Failure> {
    let rows = match Document::parse(json.as_bytes()) {
        Document::Json(Json::Array(rows)) => rows,
        Document::Json(row) => vec![row],
        Document::Text(_) => Vec::new(),
    };
    let members = |row: Json| match row {
        Json::Object(members) => members,
        value => vec![("value".to_owned(), value)],
    };
    let rows: Vec<Vec<(String, Json)>> = rows.into_iter().map(members).collect();
    // A member can be left out of some objects, as that of a deleted record is.
    let mut heading: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !heading.contains(name) {
            heading.push(name.clone());
        }
    }
    let failed = |error: String| Failure::new(Exit::Failed, format!("The result cannot be written as CSV: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    if !heading.is_empty() {
        writer.write_record(&heading).map_err(|error| failed(error.to_string()))?;
    }
    for row in rows {
        let cells = heading.iter().map(|name| {
            let value = row.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            cell(value.unwrap_or(Json::Null), true)
        });
        writer.write_record(cells).map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    Ok(plain(&String::from_utf8_lossy(&bytes)))
}

/// Formats a value as a cell of CSV. Numbers keep their digits. With `escape_formulas`, texts that a spreadsheet would run get
/// an apostrophe, as customers choose them.
pub(crate) fn cell(value: Json, escape_formulas: bool) -> String {
    match value {
        Json::Null => String::new(),
        Json::Bool(value) => value.to_string(),
        Json::Number(digits) => digits,
        Json::String(text) => formulas::to_cell(text, escape_formulas),
        Json::Array(items) => items.into_iter().map(|item| cell(item, escape_formulas)).collect::<Vec<_>>().join(","),
        object @ Json::Object(_) => serde_json::to_string(&Document::Json(object)).unwrap_or_default(),
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

/// Returns a progress bar of this length, in the form of an indicatif template. It is shown if stderr is a terminal.
pub(crate) fn progress_bar(length: Option<u64>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Prints an error message to stderr.
pub(crate) fn error(message: &str) {
    print_message(ERROR, "error", message);
}

/// Prints a note to stderr.
pub(crate) fn note(message: &str) {
    print_message(NOTE, "note", message);
}

/// Prints a warning to stderr.
pub(crate) fn warning(message: &str) {
    print_message(NOTE, "warning", message);
}

fn print_message(style: Style, word: &str, message: &str) {
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    // There is nowhere to report that stderr is closed.
    let _ = writeln!(err, "{style}{word}:{style:#} {}", plain(message));
}

/// Colours a text green for a good result or red for a bad one.
pub(crate) fn verdict(good: bool, text: &str) -> String {
    let style = if good { GOOD } else { ERROR };
    format!("{style}{text}{style:#}")
}

/// Colours a state: green if all is well, red if something is wrong, and yellow if something is to come or was put off.
pub(crate) fn state(text: impl Display) -> String {
    let text = text.to_string();
    let style = match text.as_str() {
        "succeeded" | "enabled" | "approved" | "active" | "paid" | "accepted" | "completed" | "converted" => GOOD,
        "failed" | "auto_paused" | "suspended" | "revoked" | "overdue" | "declined" | "no_show" => ERROR,
        "pending" | "held" | "disabled" | "partial" | "on_hold" | "expired" | "cancelled" => NOTE,
        _ => return text,
    };
    format!("{style}{text}{style:#}")
}

/// Returns whether a character controls the terminal or the direction of text, or shows nothing itself. The joiners of
/// letters and of emoji are parts of what is shown.
fn is_control(char: char) -> bool {
    let is_bidirectional =
        matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    let is_invisible = matches!(
        char,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{feff}'
    );
    char.is_control() || is_bidirectional || is_invisible
}

/// Escapes control characters other than line feeds and tabs in foreign text.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => plain.push(char),
            _ if is_control(char) => plain.extend(char.escape_default()),
            _ => plain.push(char),
        }
    }
    plain
}

/// Escapes all control characters in foreign text that has one line to itself.
pub(crate) fn plain_line(text: &str) -> String {
    on_one_line(&plain(text))
}

pub(crate) fn on_one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\t', "\\t")
}

/// Escapes control characters other than line feeds and tabs in a text with styles of this module. Foreign text can
/// contain the same styles, which do nothing but colour it.
pub(crate) fn plain_styled(text: &str) -> String {
    // The longest first, since a style can begin with another one.
    let styles = [GOOD, ERROR, NOTE, HEADING].map(|style| style.to_string());
    let styles = [&styles[..], &[format!("{HEADING:#}")]].concat();
    let mut styled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, after) = rest.split_at(at);
        styled.push_str(&plain(before));
        let kept = styles.iter().map(String::as_str).find(|style| after.starts_with(style));
        styled.push_str(kept.unwrap_or("\\u{1b}"));
        rest = after.get(kept.map_or(1, str::len)..).unwrap_or_default();
    }
    styled.push_str(&plain(rest));
    styled
}

/// Escapes control characters in JSON. They stand in strings only, except for line feeds, which serde_json writes
/// between members and escapes in strings.
pub(crate) fn plain_json(json: String) -> String {
    if !json.contains(|char| char != '\n' && is_control(char)) {
        return json;
    }
    let mut plain = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            _ if char == '\n' || !is_control(char) => plain.push(char),
            // None of them is outside of the Basic Multilingual Plane.
            _ => plain.push_str(&format!("\\u{:04x}", u32::from(char))),
        }
    }
    plain
}

/// Formats a value as indented JSON for people, with control characters escaped.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).map_or_else(|error| error.to_string(), plain_json)
}

/// Returns a text with a capital letter at its beginning.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

/// Formats an optional value, with a dash for `None`.
pub(crate) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| DASH.to_owned(), |value| value.to_string())
}

/// Formats an amount with its currency: `AUD 9,860.50`. Programs get its exact digits in JSON.
pub(crate) fn money(sum: Amount, currency: Currency) -> String {
    format!("{currency} {}", amount(sum, currency.scale()))
}

/// Formats an amount with this many decimals, or with its own if it has more. One from a server is read without its currency.
pub(crate) fn amount(amount: Amount, scale: u8) -> String {
    amount.with_scale(scale).unwrap_or(amount).grouped()
}

/// Formats one `name: value` per line, with aligned values.
pub(crate) fn fields(fields: impl IntoIterator<Item = (impl AsRef<str>, String)>) -> String {
    let fields: Vec<_> = fields.into_iter().collect();
    let width = fields.iter().map(|(name, _)| name.as_ref().len()).max().unwrap_or(0) + 1;
    let lines = fields.iter().map(|(name, value)| {
        let name = name.as_ref();
        let padding = width - name.len();
        format!("{HEADING}{name}:{HEADING:#}{:padding$}{}\n", "", plain_line(value))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_foreign_text_are_escaped() {
        assert_eq!(plain("a\u{1b}[2Jb\r\n\u{9b}c\té"), "a\\u{1b}[2Jb\\r\n\\u{9b}c\té");
    }

    #[test]
    fn no_output_has_control_characters() {
        let controls =
            ('\0'..=' ').chain('\u{7f}'..='\u{9f}').chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        let controls: Vec<char> = controls.chain(['\u{200e}', '\u{200f}', '\u{61c}']).filter(|it| *it != ' ').collect();
        assert_eq!(controls.len(), 32 + 33 + 5 + 4 + 3);
        for control in controls {
            let name = format!("a{control}b");
            let shows_it = |text: &str| anstream::adapter::strip_str(text).to_string().contains(control);
            let table = Table::new(["NAME"], &[&name], |name| [(*name).clone()]).to_text();
            let lines = table.lines().count() + fields([("name", name.clone())]).lines().count();
            assert_eq!(lines, 3, "{control:?}");
            let outcome = Outcome::new(&name, format!("{HEADING}x{HEADING:#} {name}")).unwrap();
            assert!(outcome.text.starts_with("\u{1b}[1mx\u{1b}[0m "), "{:?}", outcome.text);
            assert_eq!(shows_it(&outcome.text), control == '\n' || control == '\t', "{control:?}");
            assert!(!outcome.json.contains(control), "{control:?}");
            assert_eq!(serde_json::from_str::<String>(&outcome.json).unwrap(), name);
        }
    }

    #[test]
    fn money_has_one_format() {
        let aud = Currency::parse("AUD").unwrap();
        assert_eq!(money(Amount::from_minor(986_050, 2), aud), "AUD 9,860.50");
        assert_eq!(money(Amount::from_minor(98_605_000, 4), aud), "AUD 9,860.50");
        assert_eq!(money(Amount::from_minor(12_345, 4), aud), "AUD 1.2345");
        assert_eq!(money(Amount::from_minor(12_000, 0), Currency::parse("JPY").unwrap()), "JPY 12,000");
        assert_eq!(amount(Amount::from_minor(0, 0), 2), "0.00");
    }

    #[test]
    fn values_of_fields_align() {
        let text = fields([("id", "1".to_owned()), ("time zone", "UTC".to_owned())]);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "id:        1\ntime zone: UTC\n");
    }
}
