//! Reads rows, checks each by itself, and hands them on in groups.

use std::collections::HashMap;
use std::io;

use svc_core::accounts::tenants::Tenant;
use svc_core::error::{Error, FieldCode, Issue};
use svc_core::imports::Import;
use svc_core::input::json::Json;
use svc_core::input::{FieldNames as _, Input as _};
use tokio::sync::mpsc;

use super::csv::{Cells, Records};
use super::ndjson::Lines;
use super::refusals::Refusal;
use super::source::{Input, Source};
use crate::cli::Format;
use crate::exit::{Exit, Failure};

/// Longest row in bytes: as much as the API takes.
pub(super) const MAX_ROW: usize = 1 << 20;
/// Rows of one transaction: many for the sake of one commit, few enough for a server beside it not to wait long.
const GROUP_ROWS: usize = 500;
/// Bytes of a file after which a group is handed on as it is.
const GROUP_BYTES: u64 = 8 << 20;

/// A row that was read.
pub(super) struct Row<R: Import> {
    pub(super) line: u64,
    /// What it says, and how many rows of the file said the same before it, where that matters.
    pub(super) row: Result<(R::Row, u32), Refusal>,
}

/// Rows that go in together.
pub(super) struct Group<R: Import> {
    pub(super) rows: Vec<Row<R>>,
    /// How far the file was read, in bytes.
    pub(super) end: u64,
}

/// Reads to the end of the file, or until nobody takes the rows any more.
pub(super) fn read<R: Import>(source: Source, tenant: &Tenant, groups: &mpsc::Sender<Result<Group<R>, Failure>>) {
    let (name, position) = (source.name.clone(), source.position());
    let broken = |error: io::Error| {
        let again = "run the same command again to go on: what is there is not added twice";
        Failure::new(Exit::Failed, format!("{name} cannot be read any further: {error}; {again}."))
    };
    let mut parser = match Parser::<R>::new(source) {
        Ok(parser) => parser,
        Err(failure) => {
            let _ = groups.blocking_send(Err(failure));
            return;
        }
    };
    let mut same = Same::default();
    let (mut rows, mut start) = (Vec::new(), 0);
    loop {
        let next = parser.next();
        let ended = !matches!(next, Ok(Some(_)));
        if let Ok(Some((line, row))) = &next {
            let row = row.clone().map(|row| {
                let before = R::content(&row, tenant).map_or(0, |content| same.before(&content));
                (row, before)
            });
            rows.push(Row { line: *line, row });
        }
        let end = position();
        if rows.len() >= GROUP_ROWS || end - start > GROUP_BYTES || (ended && !rows.is_empty()) {
            start = end;
            if groups.blocking_send(Ok(Group { rows: std::mem::take(&mut rows), end })).is_err() {
                return;
            }
        }
        match next {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => {
                let _ = groups.blocking_send(Err(broken(error)));
                return;
            }
        }
    }
}

/// Counts rows that say the same. Only rows that nothing else tells apart are counted, and of each only a digest: it
/// is all that grows with the file.
#[derive(Default)]
struct Same(HashMap<u64, u32>);

impl Same {
    /// How many came before.
    fn before(&mut self, content: &[u8; 32]) -> u32 {
        let key = content.iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte));
        let count = self.0.entry(key).or_default();
        *count += 1;
        *count - 1
    }
}

/// Reads one row after the other.
enum Parser<R: Import> {
    Csv(Box<Records<Input>>, Vec<&'static str>),
    Ndjson(Lines<Input>, std::marker::PhantomData<fn() -> R>),
}

/// A row with its line.
type Next<R> = (u64, Result<<R as Import>::Row, Refusal>);

impl<R: Import> Parser<R> {
    /// Reads the header, if there is one.
    fn new(source: Source) -> Result<Self, Failure> {
        match source.format {
            Format::Ndjson => Ok(Self::Ndjson(Lines::new(source.input), std::marker::PhantomData)),
            Format::Csv => {
                let mut records = Box::new(Records::new(source.input));
                let failed = |reason: String| Failure::new(Exit::Failed, format!("{} {reason}", source.name));
                let header = match records.next() {
                    Err(reason) => return Err(failed(format!("cannot be read: {reason}."))),
                    Ok(None) => return Err(failed("is empty; CSV begins with a row of field names.".to_owned())),
                    Ok(Some(record)) => record.cells,
                };
                let header = header.ok_or_else(|| failed("has no header: its first row is too long.".to_owned()))?;
                let columns = columns::<R>(&header).map_err(failed)?;
                Ok(Self::Csv(records, columns))
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<Next<R>>> {
        match self {
            Self::Csv(records, columns) => {
                let Some(record) = records.next()? else { return Ok(None) };
                let row = match record.cells {
                    None => Err(Refusal::too_long("a closing quote may be missing")),
                    Some(cells) => members::<R>(columns, &cells).and_then(R::Row::from_members).map_err(Refusal::from),
                };
                Ok(Some((record.line, row)))
            }
            Self::Ndjson(lines, _) => {
                let Some(line) = lines.next()? else { return Ok(None) };
                let row = match line.bytes {
                    None => Err(Refusal::too_long("each line is one JSON object")),
                    Some(bytes) => R::Row::from_body(&bytes).map_err(Refusal::from),
                };
                Ok(Some((line.number, row)))
            }
        }
    }
}

/// The fields that the header names.
fn columns<R: Import>(header: &Cells<'_>) -> Result<Vec<&'static str>, String> {
    let known = R::Row::FIELD_NAMES;
    let (mut columns, mut unknown) = (Vec::new(), Vec::new());
    for cell in header.iter() {
        let name = String::from_utf8_lossy(cell.trim_ascii()).into_owned();
        match known.iter().copied().find(|known| *known == name) {
            Some(field) if columns.contains(&field) => return Err(format!("has the column {field} twice.")),
            Some(field) => columns.push(field),
            None => unknown.push(format!("{:?}", name.chars().take(100).collect::<String>())),
        }
    }
    if !unknown.is_empty() {
        let columns = if unknown.len() == 1 { "a column that is" } else { "columns that are" };
        return Err(format!("has {columns} not known: {}; known are {}.", unknown.join(", "), known.join(", ")));
    }
    match R::REQUIRED.iter().find(|field| !columns.contains(field)) {
        Some(field) => Err(format!("has no column {field}, which every row needs.")),
        None => Ok(columns),
    }
}

/// The fields of a row. An empty cell is null.
fn members<R: Import>(columns: &[&'static str], cells: &Cells<'_>) -> Result<Vec<(String, Json)>, Error> {
    if cells.len() != columns.len() {
        let reason = format!("must have {} cells, as the header has; it has {}", columns.len(), cells.len());
        return Err(Issue::new(FieldCode::InvalidFormat, reason).on("row"));
    }
    let read = |(name, cell): (&&'static str, &[u8])| {
        let text =
            std::str::from_utf8(cell).map_err(|_| Issue::new(FieldCode::InvalidFormat, "must be UTF-8").on(name))?;
        let json = match text.trim() {
            "" => Json::Null,
            number if R::NUMBERS.contains(name) => Json::Number(number.to_owned()),
            _ => Json::String(text.to_owned()),
        };
        Ok(((*name).to_owned(), json))
    };
    columns.iter().zip(cells.iter()).map(read).collect()
}
