//! Reads and validates rows one by one, and sends them on in groups.

use std::io;

use svc_core::error::{Error, FieldCode, Issue};
use svc_core::imports::{Duplicates, Import, ImportRecord, ImportRow, MAX_ROWS};
use svc_core::input::Input as _;
use svc_core::input::json::{self, Json};
use svc_core::platform::RowProblem;
use tokio::sync::mpsc;

use super::cells::CellReader;
use super::columns::{ColumnNames, Header};
use super::csv::{Cells, Records};
use super::ndjson::Lines;
use super::refusals::{by_rules, too_long};
use super::source::{Input, MAX_ROW, Source};
use crate::cli::{Format, Import as Options};
use crate::exit::{Exit, Failure};

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
#[derive(Default)]
pub(super) struct Group {
    pub(super) rows: Vec<Row>,
    /// The number of bytes of the file that were read up to the end of this group.
    pub(super) end: u64,
    /// The number of blank rows up to the end of this group.
    pub(super) blank: u64,
    /// In the last group, what to say of options that had no effect on any row.
    pub(super) unused: Vec<String>,
}

/// Reads until the end of the file or until the channel is closed. `unique_email` says whether an email address identifies a
/// contact of the account.
pub(super) fn read<R: Import>(mut parser: Parser, unique_email: bool, groups: &mpsc::Sender<Result<Group, Failure>>) {
    let broken = |name: &str, error: io::Error| {
        let again = "Run the same command again to continue; rows that were added are not added twice";
        Failure::new(Exit::Failed, format!("Cannot read {name} any further: {error}. {again}."))
    };
    // The only part of an import that grows with the file.
    let mut duplicates = Duplicates::default();
    let (mut group, mut json, mut start) = (Group::default(), 0, 0);
    let send = |group: Group| groups.blocking_send(Ok(group)).is_ok();
    loop {
        let before = (parser.position)();
        let (line, input) = match parser.next::<R>() {
            Ok(Some(next)) => next,
            Ok(None) => {
                let (end, blank, unused) = ((parser.position)(), parser.blank(), parser.unused());
                send(Group { end, blank, unused, ..group });
                return;
            }
            Err(error) => {
                let (end, blank) = ((parser.position)(), parser.blank());
                if group.rows.is_empty() || send(Group { end, blank, ..group }) {
                    let _ = groups.blocking_send(Err(broken(&parser.name, error)));
                }
                return;
            }
        };
        let row = Row { line, parsed: input.and_then(|input| to_send::<R>(&input, &mut duplicates, unique_email)) };
        let size = row.parsed.as_ref().map_or(0, |row| row.record.json_len() + ROW_JSON);
        if json + size > GROUP_JSON && !group.rows.is_empty() {
            if !send(Group { end: before, ..std::mem::take(&mut group) }) {
                return;
            }
            (json, start) = (0, before);
        }
        group.rows.push(row);
        group.blank = parser.blank();
        json += size;
        let end = (parser.position)();
        if group.rows.len() >= MAX_ROWS || end - start > GROUP_BYTES {
            if !send(Group { end, ..std::mem::take(&mut group) }) {
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
pub(super) struct Parser {
    name: String,
    /// Returns the number of bytes read so far.
    position: Box<dyn Fn() -> u64 + Send>,
    rows: Rows,
    /// Whether empty cells leave the fields of existing contacts as they are.
    keep_empty: bool,
}

enum Rows {
    Csv(Box<CsvRows>),
    Ndjson { lines: Lines<Input>, names: ColumnNames },
}

/// The rows of a CSV file.
struct CsvRows {
    records: Records<Input>,
    /// The field of each column.
    columns: Vec<Option<&'static str>>,
    reader: CellReader,
    /// The number of cells that each row must have, if it matters.
    width: Option<usize>,
}

/// The line on which a row begins, and the row.
type ReadRow<R> = (u64, Result<<R as Import>::Row, RowProblem>);

impl Parser {
    /// Creates a parser. For CSV, reads and validates the header.
    pub(super) fn new<R: Import>(
        source: Source,
        names: ColumnNames,
        reader: CellReader,
        options: &Options,
    ) -> Result<Self, Failure> {
        let position = Box::new(source.position());
        let Source { input, format, delimiter, line_end, line, name, .. } = source;
        let rows = match format {
            Format::Ndjson => Rows::Ndjson { lines: Lines::new(input, line_end, line), names },
            Format::Csv => {
                let mut records = Records::new(input, delimiter, line_end, line);
                let (columns, width) = columns::<R>(&mut records, &name, &names)?;
                reader.check(&name, &columns, options)?;
                Rows::Csv(Box::new(CsvRows { records, columns, reader, width: options.strict.then_some(width) }))
            }
        };
        Ok(Self { name, position, rows, keep_empty: options.keep_empty })
    }

    fn next<R: Import>(&mut self) -> io::Result<Option<ReadRow<R>>> {
        match &mut self.rows {
            Rows::Csv(rows) => rows.next::<R>(self.keep_empty),
            Rows::Ndjson { lines, names } => {
                let Some(line) = lines.next()? else { return Ok(None) };
                let input = match line.bytes {
                    None => Err(too_long("each line must be one JSON object")),
                    Some(bytes) => object::<R>(&bytes, names, self.keep_empty).map_err(by_rules),
                };
                Ok(Some((line.number, input)))
            }
        }
    }

    /// Returns the number of blank rows so far.
    fn blank(&self) -> u64 {
        match &self.rows {
            Rows::Csv(rows) => rows.records.blank(),
            Rows::Ndjson { lines, .. } => lines.blank(),
        }
    }

    /// Returns what to say of options that had no effect on any row.
    fn unused(&self) -> Vec<String> {
        match &self.rows {
            Rows::Csv(rows) => rows.reader.unused(),
            Rows::Ndjson { names, .. } => names.unused(),
        }
    }
}

impl CsvRows {
    fn next<R: Import>(&mut self, keep_empty: bool) -> io::Result<Option<ReadRow<R>>> {
        let Self { records, columns, reader, width } = self;
        let Some(record) = records.next()? else { return Ok(None) };
        let Some(cells) = record.cells else {
            return Ok(Some((record.line, Err(too_long("a closing quote may be missing")))));
        };
        let input = members(columns, &cells, reader, *width).and_then(|members| {
            let cell = |field: &str| {
                let position = columns.iter().position(|column| *column == Some(field))?;
                std::str::from_utf8(cells.iter().nth(position)?).ok()
            };
            from_members::<R>(members, keep_empty).map_err(|error| reader.with_hints(error, cell))
        });
        Ok(Some((record.line, input.map_err(by_rules))))
    }
}

/// Reads the header, and returns the fields that it names and the number of its cells.
fn columns<R: Import>(
    records: &mut Records<Input>,
    file: &str,
    names: &ColumnNames,
) -> Result<(Vec<Option<&'static str>>, usize), Failure> {
    let failed = |reason: String| Failure::new(Exit::Failed, format!("{file} {reason}"));
    let header = match records.next() {
        Err(reason) => return Err(failed(format!("cannot be read: {reason}."))),
        Ok(None) => {
            return Err(failed("is empty; the first row of a CSV file must contain the field names.".to_owned()));
        }
        Ok(Some(header)) => header,
    };
    let cells = header.cells.ok_or_else(|| failed("has no header row: its first row is too long.".to_owned()))?;
    let width = cells.len();
    let mut shown: Vec<String> =
        cells.iter().map(|cell| String::from_utf8_lossy(cell.trim_ascii()).into_owned()).collect();
    // Spreadsheets write the empty cells at the end of a header, which are no columns.
    while shown.pop_if(|name| name.is_empty()).is_some() {}
    let columns = names.columns(&Header { file, line: header.line, names: shown })?;
    match R::REQUIRED.iter().find(|field| !columns.contains(&Some(**field))) {
        Some(field) => Err(failed(format!(
            "has no column {field}, which is required. Name the column that has it with --map COLUMN={field}."
        ))),
        None => Ok((columns, width)),
    }
}

/// Reads a row from its fields. With `keep_empty`, fields without a value are left out.
fn from_members<R: Import>(mut members: Vec<(String, Json)>, keep_empty: bool) -> Result<R::Row, Error> {
    let is_empty = |value: &Json| match value {
        Json::Null => true,
        Json::String(text) => text.trim().is_empty(),
        _ => false,
    };
    members.retain(|(_, value)| !(keep_empty && is_empty(value)));
    R::Row::from_members(members)
}

/// Reads a row from a JSON object.
fn object<R: Import>(bytes: &[u8], names: &mut ColumnNames, keep_empty: bool) -> Result<R::Row, Error> {
    match json::parse(bytes)? {
        Json::Object(members) => from_members::<R>(names.members(members), keep_empty),
        // It says what is wrong.
        _ => R::Row::from_body(bytes),
    }
}

/// Returns the fields of a row as JSON. An empty cell is null, as is one that is missing at the end of the row.
fn members(
    columns: &[Option<&'static str>],
    cells: &Cells<'_>,
    reader: &mut CellReader,
    width: Option<usize>,
) -> Result<Vec<(String, Json)>, Error> {
    let filled = cells.iter().enumerate().filter(|(_, cell)| !cell.trim_ascii().is_empty());
    let used = filled.last().map_or(0, |(position, _)| position + 1);
    let reason = match width {
        Some(width) if width != cells.len() => format!("must have {width} cells, like the header, not {}", cells.len()),
        _ if used > columns.len() => format!("must have at most {} cells, like the header, not {used}", columns.len()),
        _ => String::new(),
    };
    if !reason.is_empty() {
        return Err(Issue::new(FieldCode::InvalidFormat, reason).on("row"));
    }
    let read = |(name, cell): (&'static str, &[u8])| match std::str::from_utf8(cell) {
        Ok(cell) => Ok((name.to_owned(), reader.json(name, cell))),
        Err(_) => Err(Issue::new(FieldCode::InvalidFormat, "must be UTF-8").on(name)),
    };
    let filled = cells.iter().chain(std::iter::repeat(&b""[..]));
    columns.iter().zip(filled).filter_map(|(field, cell)| Some(((*field)?, cell))).map(read).collect()
}
