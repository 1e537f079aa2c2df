//! Reads and validates rows one by one, and sends them on in groups.

use std::io;

use svc_core::error::{Error, FieldCode, Issue};
use svc_core::imports::{Duplicates, Import, ImportRecord, ImportRow, MAX_ROWS};
use svc_core::input::json::{self, Json};
use svc_core::input::{FieldNames as _, Input as _};
use svc_core::platform::RowProblem;
use tokio::sync::mpsc;

use super::columns::{ColumnNames, suggestion};
use super::csv::{Cells, Records};
use super::ndjson::Lines;
use super::refusals::{by_rules, too_long};
use super::source::{Input, MAX_ROW, Source};
use crate::cli::Format;
use crate::exit::{Exit, Failure};
use crate::formulas;

/// The number of bytes of the file after which a group is complete, however few rows it has.
const GROUP_BYTES: u64 = 8 << 20;
/// The most bytes that the rows of a group have together in a request, which has at most 1 MiB.
const GROUP_JSON: usize = MAX_ROW - 1024;
/// What a row has around its record in a request, in bytes.
const ROW_JSON: usize = 64;

/// A row that was read.
pub(super) struct Row {
    /// The line on which the row begins, counted from 1.
    pub(super) line: u64,
    pub(super) parsed: Result<ImportRow, RowProblem>,
}

/// Rows that are imported in one transaction.
pub(super) struct Group {
    pub(super) rows: Vec<Row>,
    /// The number of bytes of the file that were read up to the end of this group.
    pub(super) end: u64,
}

/// Reads until the end of the file or until the channel is closed. `unique_email` says whether an email address identifies a
/// contact of the account.
pub(super) fn read<R: Import>(
    source: Source,
    names: ColumnNames,
    unique_email: bool,
    groups: &mpsc::Sender<Result<Group, Failure>>,
) {
    let (name, position) = (source.name.clone(), source.position());
    let broken = |error: io::Error| {
        let again = "Run the same command again to continue; rows that were added are not added twice";
        Failure::new(Exit::Failed, format!("Cannot read {name} any further: {error}. {again}."))
    };
    let mut parser = match Parser::new::<R>(source, names) {
        Ok(parser) => parser,
        Err(failure) => {
            let _ = groups.blocking_send(Err(failure));
            return;
        }
    };
    // The only part of an import that grows with the file.
    let mut duplicates = Duplicates::default();
    let (mut rows, mut json, mut start) = (Vec::new(), 0, 0);
    let send = |rows: &mut Vec<Row>, end| {
        let group = Group { rows: std::mem::take(rows), end };
        group.rows.is_empty() || groups.blocking_send(Ok(group)).is_ok()
    };
    loop {
        let before = position();
        let (line, input) = match parser.next::<R>() {
            Ok(Some(next)) => next,
            Ok(None) => {
                send(&mut rows, position());
                return;
            }
            Err(error) => {
                if send(&mut rows, position()) {
                    let _ = groups.blocking_send(Err(broken(error)));
                }
                return;
            }
        };
        let row = Row { line, parsed: input.and_then(|input| to_send::<R>(&input, &mut duplicates, unique_email)) };
        let size = row.parsed.as_ref().map_or(0, |row| row.record.json_len() + ROW_JSON);
        if json + size > GROUP_JSON {
            if !send(&mut rows, before) {
                return;
            }
            (json, start) = (0, before);
        }
        rows.push(row);
        json += size;
        let end = position();
        if rows.len() >= MAX_ROWS || end - start > GROUP_BYTES {
            if !send(&mut rows, end) {
                return;
            }
            (json, start) = (0, end);
        }
    }
}

/// Returns a row as it is sent.
fn to_send<R: Import>(
    input: &R::Row,
    duplicates: &mut Duplicates,
    unique_email: bool,
) -> Result<ImportRow, RowProblem> {
    let before = duplicates.count_before::<R>(input, unique_email);
    let record = ImportRecord::of::<R>(input);
    if record.json_len() + ROW_JSON > GROUP_JSON {
        return Err(too_long("its fields are too long"));
    }
    Ok(ImportRow { record, duplicates_before: Some(before).filter(|before| *before > 0) })
}

/// Parses one row after the other.
enum Parser {
    Csv { records: Box<Records<Input>>, columns: Vec<Option<&'static str>> },
    Ndjson { lines: Lines<Input>, names: ColumnNames },
}

/// The line on which a row begins, and the row.
type ReadRow<R> = (u64, Result<<R as Import>::Row, RowProblem>);

impl Parser {
    /// Creates a parser. For CSV, reads and validates the header.
    fn new<R: Import>(source: Source, names: ColumnNames) -> Result<Self, Failure> {
        match source.format {
            Format::Ndjson => Ok(Self::Ndjson { lines: Lines::new(source.input), names }),
            Format::Csv => {
                let mut records = Box::new(Records::new(source.input, source.delimiter));
                let failed = |reason: String| Failure::new(Exit::Failed, format!("{} {reason}", source.name));
                let header = match records.next() {
                    Err(reason) => return Err(failed(format!("cannot be read: {reason}."))),
                    Ok(None) => {
                        return Err(failed(
                            "is empty; the first row of a CSV file must contain the field names.".to_owned(),
                        ));
                    }
                    Ok(Some(record)) => record.cells,
                };
                let header =
                    header.ok_or_else(|| failed("has no header row: its first row is too long.".to_owned()))?;
                let columns = columns::<R>(&header, &names).map_err(failed)?;
                Ok(Self::Csv { records, columns })
            }
        }
    }

    fn next<R: Import>(&mut self) -> io::Result<Option<ReadRow<R>>> {
        match self {
            Self::Csv { records, columns } => {
                let Some(record) = records.next()? else { return Ok(None) };
                let input = match record.cells {
                    None => Err(too_long("a closing quote may be missing")),
                    Some(cells) => members::<R>(columns, &cells).and_then(R::Row::from_members).map_err(by_rules),
                };
                Ok(Some((record.line, input)))
            }
            Self::Ndjson { lines, names } => {
                let Some(line) = lines.next()? else { return Ok(None) };
                let input = match line.bytes {
                    None => Err(too_long("each line must be one JSON object")),
                    Some(bytes) => object::<R>(&bytes, names).map_err(by_rules),
                };
                Ok(Some((line.number, input)))
            }
        }
    }
}

/// Returns the fields that the header names.
fn columns<R: Import>(header: &Cells<'_>, names: &ColumnNames) -> Result<Vec<Option<&'static str>>, String> {
    let known = R::Row::FIELD_NAMES;
    let (mut columns, mut unknown) = (Vec::new(), Vec::new());
    for cell in header.iter() {
        let name = String::from_utf8_lossy(cell.trim_ascii()).into_owned();
        match names.field(&name, known) {
            Some(field) if columns.contains(&Some(field)) => return Err(format!("has the column {field} twice.")),
            Some(field) => columns.push(Some(field)),
            None if names.ignore_unknown => columns.push(None),
            None => {
                let name: String = name.chars().take(100).collect();
                unknown.push(format!("{name:?}{}", suggestion(&name, known)));
            }
        }
    }
    if !unknown.is_empty() {
        let columns = if unknown.len() == 1 { "an unknown column" } else { "unknown columns" };
        return Err(format!(
            "has {columns}: {}. The known columns are {}. Name the field \
             of a column with --map, or skip what is unknown with --ignore-unknown.",
            unknown.join(", "),
            known.join(", ")
        ));
    }
    match R::REQUIRED.iter().find(|field| !columns.contains(&Some(**field))) {
        Some(field) => Err(format!("has no column {field}, which is required.")),
        None => Ok(columns),
    }
}

/// Reads a row from a JSON object.
fn object<R: Import>(bytes: &[u8], names: &ColumnNames) -> Result<R::Row, Error> {
    match json::parse(bytes)? {
        Json::Object(members) => R::Row::from_members(names.members(members, R::Row::FIELD_NAMES)),
        // It says what is wrong.
        _ => R::Row::from_body(bytes),
    }
}

/// Returns the fields of a row as JSON. An empty cell is null.
fn members<R: Import>(columns: &[Option<&'static str>], cells: &Cells<'_>) -> Result<Vec<(String, Json)>, Error> {
    if cells.len() != columns.len() {
        let reason = format!("must have {} cells, like the header, not {}", columns.len(), cells.len());
        return Err(Issue::new(FieldCode::InvalidFormat, reason).on("row"));
    }
    let read = |(name, cell): (&&'static str, &[u8])| {
        let text =
            std::str::from_utf8(cell).map_err(|_| Issue::new(FieldCode::InvalidFormat, "must be UTF-8").on(name))?;
        let json = match text.trim() {
            "" => Json::Null,
            number if R::NUMBERS.contains(name) => Json::Number(number.to_owned()),
            _ => Json::String(formulas::from_cell(text).into_owned()),
        };
        Ok(((*name).to_owned(), json))
    };
    let of_fields = columns.iter().zip(cells.iter()).filter_map(|(field, cell)| Some((field.as_ref()?, cell)));
    of_fields.map(read).collect()
}
