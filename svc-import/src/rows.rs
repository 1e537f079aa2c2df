//! Reads and validates rows one by one, and returns them in groups.

use std::borrow::Cow;
use std::marker::PhantomData;

use svc_core::error::{Error, FieldCode, Issue};
use svc_core::imports::{Duplicates, Import, ImportRecord, ImportRow, MAX_ROWS};
use svc_core::input::Input as _;
use svc_core::input::json::{self, Json};
use svc_core::platform::{ImportKind, RowProblem};
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::kinds::AccountRecord;

use crate::amounts;
use crate::cells::{CellReader, content};
use crate::check::FileFault;
use crate::checked_plan::CheckedPlan;
use crate::columns::{Cell, ColumnNames, Columns, Header, HeaderColumn};
use crate::csv::{Cells, Lexer, MAX_ROW, ReadError, Records};
use crate::error::ImportError;
use crate::ndjson::Lines;
use crate::plan::UnusedMapping;
use crate::presets::InvoiceRows;
use crate::problems::{of_rules, too_long};
use crate::source::{Format, Input, Source};

/// The number of bytes of the file after which a group is complete, however few rows it has.
const GROUP_BYTES: u64 = 8 << 20;
/// The most bytes that the rows of a group have together in a request, which has at most 1 MiB.
const GROUP_JSON: usize = MAX_ROW - 1024;
/// The bytes around the record of a row in a request.
const ROW_JSON: usize = 64;

/// A row that was read.
#[derive(Clone, Debug)]
pub struct Row {
    /// The line on which the row begins, counted from 1.
    pub line: u64,
    /// The line on which the last row of the record begins, where several rows are one invoice. Otherwise the same line.
    pub last_line: u64,
    /// The record that can be imported, or what is wrong with the row.
    pub parsed: Result<ImportRow, RowProblem>,
}

/// Rows that are imported in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The rows, in the order of the file.
    pub rows: Vec<Row>,
    /// The number of bytes of the file that were read up to the end of this group.
    pub end: u64,
    /// The number of blank rows up to the end of this group.
    pub blank: u64,
    /// In the last group, the mappings that had no effect on any row.
    pub unused: Vec<UnusedMapping>,
    /// In the last group, an amount that was read with a decimal point, though the point may separate thousands.
    pub assumed: Option<String>,
}

impl CheckedPlan {
    /// Returns the rows of a file. Of CSV, it reads the header.
    ///
    /// # Errors
    /// The file has no header, or the plan does not fit its columns.
    pub fn read(self, source: Source) -> Result<Rows, ImportError> {
        match self.kind {
            ImportKind::Contacts => Rows::new::<Contact>(source, self),
            ImportKind::Invoices => Rows::new::<Invoice>(source, self),
            ImportKind::All => Rows::new::<AccountRecord>(source, self),
        }
    }
}

impl CheckedPlan {
    /// Returns the columns of a CSV file. Where the plan does not fit them, none is for a field.
    ///
    /// # Errors
    /// The file has no header.
    pub fn columns(&self, source: Source) -> Result<Vec<HeaderColumn>, ImportError> {
        let Source { input, delimiter, line_end, line, .. } = source;
        let (header, _) = header(&mut Records::new(input, Lexer::new(delimiter, line_end, line)))?;
        let columns = self.names.columns(&header).unwrap_or_else(|_| Columns::without_fields(header.names.len()));
        Ok(columns.described(&header.names))
    }
}

/// Returns the cells of the header of a CSV file and of the rows that begin on wanted lines, as they are. Cells that are too
/// long are left out.
///
/// # Errors
/// The file has no header or cannot be read.
pub fn cells_of(source: Source, is_wanted: impl Fn(u64) -> bool) -> Result<Vec<(u64, Vec<String>)>, ImportError> {
    let Source { input, delimiter, line_end, line, .. } = source;
    let mut records = Records::new(input, Lexer::new(delimiter, line_end, line));
    let (header, _) = header(&mut records)?;
    let mut rows = vec![(header.line, header.names)];
    loop {
        let record = match records.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(rows),
            Err(ReadError::Io(error)) => return Err(ImportError::ReadRest(error)),
            Err(ReadError::Malformed(fault)) => return Err(ImportError::Changed(fault)),
        };
        if is_wanted(record.line) {
            let cell = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
            rows.push((record.line, record.cells.iter().flat_map(Cells::iter).map(cell).collect()));
        }
    }
}

/// The rows of a file in groups, each of which fits into one request. After an error, there are no more.
pub struct Rows {
    groups: Box<dyn Iterator<Item = Result<Group, ImportError>> + Send>,
    columns: Vec<HeaderColumn>,
}

impl Rows {
    fn new<R: Import>(source: Source, plan: CheckedPlan) -> Result<Self, ImportError> {
        let unique_email = plan.unique_email;
        let (parser, columns) = Parser::new::<R>(source, plan)?;
        let groups = Groups::<R> {
            parser,
            unique_email,
            duplicates: Duplicates::default(),
            group: Group::default(),
            json: 0,
            start: 0,
            next: Next::Row,
            records: PhantomData,
        };
        Ok(Self { groups: Box::new(groups), columns })
    }

    /// Returns the columns of CSV, with the fields that they are for. NDJSON has none.
    pub fn columns(&self) -> &[HeaderColumn] {
        &self.columns
    }
}

impl Iterator for Rows {
    type Item = Result<Group, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.groups.next()
    }
}

/// Collects the rows of a file in groups.
struct Groups<R> {
    parser: Parser,
    /// Whether an email address identifies a contact of the account.
    unique_email: bool,
    /// The only part of an import that grows with the file.
    duplicates: Duplicates,
    group: Group,
    /// The size of the rows of the group in a request, in bytes.
    json: usize,
    /// Where the group begins in the file.
    start: u64,
    next: Next,
    records: PhantomData<fn() -> R>,
}

/// The item that comes next.
enum Next {
    Row,
    Error(ImportError),
    Nothing,
}

impl<R: Import> Iterator for Groups<R> {
    type Item = Result<Group, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        match std::mem::replace(&mut self.next, Next::Row) {
            Next::Row => {}
            Next::Error(error) => {
                self.next = Next::Nothing;
                return Some(Err(error));
            }
            Next::Nothing => {
                self.next = Next::Nothing;
                return None;
            }
        }
        loop {
            let before = (self.parser.position)();
            let ([line, last_line], input) = match self.parser.next::<R>() {
                Ok(Some(next)) => next,
                Ok(None) => {
                    self.next = Next::Nothing;
                    let (unused, assumed) = (self.parser.unused(), self.parser.assumed());
                    return Some(Ok(Group { unused, assumed, ..self.complete((self.parser.position)()) }));
                }
                Err(error) => {
                    // The rows before a missing quote may be wrong as well.
                    let is_dropped = self.group.rows.is_empty() || matches!(error, ReadError::Malformed(_));
                    let error = match error {
                        ReadError::Io(error) => ImportError::ReadRest(error),
                        ReadError::Malformed(fault) => ImportError::Changed(fault),
                    };
                    if is_dropped {
                        self.next = Next::Nothing;
                        return Some(Err(error));
                    }
                    self.next = Next::Error(error);
                    return Some(Ok(self.complete((self.parser.position)())));
                }
            };
            let unique_email = self.unique_email;
            let parsed = input.and_then(|input| to_send::<R>(&input, &mut self.duplicates, unique_email));
            let size = parsed.as_ref().map_or(0, |row| row.record.json_len() + ROW_JSON);
            let is_full = self.json + size > GROUP_JSON && !self.group.rows.is_empty();
            let full = is_full.then(|| {
                let full = Group { end: before, ..std::mem::take(&mut self.group) };
                (self.json, self.start) = (0, before);
                full
            });
            self.group.rows.push(Row { line, last_line, parsed });
            self.group.blank = self.parser.blank();
            self.json += size;
            if full.is_some() {
                return full.map(Ok);
            }
            let end = (self.parser.position)();
            if self.group.rows.len() >= MAX_ROWS || end - self.start > GROUP_BYTES {
                return Some(Ok(self.complete(end)));
            }
        }
    }
}

impl<R> Groups<R> {
    /// Returns the group, which ends here in the file, and begins the next one.
    fn complete(&mut self, end: u64) -> Group {
        (self.json, self.start) = (0, end);
        Group { end, blank: self.parser.blank(), ..std::mem::take(&mut self.group) }
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
struct Parser {
    /// Returns the number of bytes read so far.
    position: Box<dyn Fn() -> u64 + Send>,
    rows: RowReader,
    /// Whether empty cells leave the fields of existing contacts as they are.
    keep_empty: bool,
}

enum RowReader {
    Csv(Box<CsvRows>),
    Ndjson { lines: Lines<Input>, names: ColumnNames },
}

/// The rows of a CSV file.
struct CsvRows {
    records: Records<Input>,
    columns: Columns,
    reader: CellReader,
    /// The number of cells that each row must have, if it matters.
    width: Option<usize>,
    /// Which rows are one invoice.
    invoice_rows: InvoiceRows,
    /// A row that was read to see whether it is of the same invoice as the row before.
    next: Option<CsvRow>,
}

/// A row of a CSV file.
struct CsvRow {
    line: u64,
    members: Result<Vec<(String, Json)>, RowProblem>,
    /// The fields with the texts of their cells.
    texts: Vec<(&'static str, String)>,
}

/// The lines on which the first and the last row of a record begin, and the record.
type ReadRow<R> = ([u64; 2], Result<<R as Import>::Row, RowProblem>);

impl Parser {
    /// Creates a parser. Of CSV, reads and validates the header.
    fn new<R: Import>(source: Source, plan: CheckedPlan) -> Result<(Self, Vec<HeaderColumn>), ImportError> {
        let position = Box::new(source.position());
        let Source { input, format, delimiter, line_end, line, .. } = source;
        let CheckedPlan { names, reader, strict, keep_empty, invoice_rows, .. } = plan;
        let mut header = Vec::new();
        let rows = match format {
            Format::Ndjson => RowReader::Ndjson { lines: Lines::new(input, line_end, line), names },
            Format::Csv => {
                let mut records = Records::new(input, Lexer::new(delimiter, line_end, line));
                let (columns, width, shown) = columns::<R>(&mut records, &names)?;
                reader.check(&columns)?;
                header = columns.described(&shown);
                let width = strict.then_some(width);
                RowReader::Csv(Box::new(CsvRows { records, columns, reader, width, invoice_rows, next: None }))
            }
        };
        Ok((Self { position, rows, keep_empty }, header))
    }

    fn next<R: Import>(&mut self) -> Result<Option<ReadRow<R>>, ReadError> {
        match &mut self.rows {
            RowReader::Csv(rows) => rows.next::<R>(self.keep_empty),
            RowReader::Ndjson { lines, names } => {
                let Some(line) = lines.next()? else { return Ok(None) };
                let input = match line.bytes {
                    None => Err(too_long("each line must be one JSON object")),
                    Some(bytes) => object::<R>(&bytes, names, self.keep_empty).map_err(of_rules),
                };
                Ok(Some(([line.number; 2], input)))
            }
        }
    }

    /// Returns the number of blank rows so far.
    fn blank(&self) -> u64 {
        match &self.rows {
            RowReader::Csv(rows) => rows.records.blank(),
            RowReader::Ndjson { lines, .. } => lines.blank(),
        }
    }

    /// Returns the mappings that had no effect on any row.
    fn unused(&self) -> Vec<UnusedMapping> {
        match &self.rows {
            RowReader::Csv(rows) => rows.reader.unused(),
            RowReader::Ndjson { names, .. } => names.unused(),
        }
    }

    /// Returns an amount that was read as one of two.
    fn assumed(&self) -> Option<String> {
        match &self.rows {
            RowReader::Csv(rows) => rows.reader.assumed(),
            RowReader::Ndjson { .. } => None,
        }
    }
}

impl CsvRows {
    fn next<R: Import>(&mut self, keep_empty: bool) -> Result<Option<ReadRow<R>>, ReadError> {
        let first = match self.next.take() {
            Some(row) => Some(row),
            None => self.read(None)?,
        };
        let Some(mut row) = first else { return Ok(None) };
        let mut last = row.line;
        if self.invoice_rows != InvoiceRows::Whole {
            while let Some(more) = self.read(Some(&row))? {
                if !row.is_continued_by(&more, self.invoice_rows) {
                    self.next = Some(more);
                    break;
                }
                last = more.line;
                match self.other_currency(&row, &more) {
                    Some(error) if row.members.is_ok() => row.members = Err(of_rules(error)),
                    _ => row.add(more),
                }
            }
        }
        let CsvRow { line, members, texts } = row;
        let cell = |field: &str| texts.iter().find(|(name, _)| *name == field).map(|(_, text)| text.as_str());
        let input = members.and_then(|members| {
            from_members::<R>(members, keep_empty).map_err(|error| of_rules(self.reader.with_hints(error, cell)))
        });
        Ok(Some(([line, last], input)))
    }

    /// Returns what is wrong with the next line of an invoice that names another currency than the first one.
    fn other_currency(&mut self, first: &CsvRow, next: &CsvRow) -> Option<Error> {
        if is_blank(next.text("currency")) {
            return None;
        }
        let [one, other] = [first, next].map(|row| self.reader.currency_of(Some(row.text("currency"))));
        // The rules refuse a first one that is no currency.
        let one = one.filter(|one| Some(*one) != other)?;
        let other = other.map_or_else(|| next.text("currency").to_owned(), |other| other.to_string());
        let reason =
            format!("must be the same in all lines of an invoice, and line {} has {other} after {one}", next.line);
        Some(Issue::new(FieldCode::InvalidFormat, reason).on("currency"))
    }

    /// Reads the next row. Another line of the invoice that `first` begins has its currency, if it names none.
    fn read(&mut self, first: Option<&CsvRow>) -> Result<Option<CsvRow>, ReadError> {
        let Self { records, columns, reader, width, invoice_rows, .. } = self;
        let Some(record) = records.next()? else { return Ok(None) };
        let line = record.line;
        let Some(cells) = record.cells else {
            let members = Err(too_long("its cells are too long or too many"));
            return Ok(Some(CsvRow { line, members, texts: Vec::new() }));
        };
        let row: Vec<&[u8]> = cells.iter().collect();
        let cells = columns.cells(&row);
        let text = |cell: &Cell<'_>| (cell.field, String::from_utf8_lossy(cell.bytes).into_owned());
        let texts = cells.iter().map(text).collect();
        let mut read = CsvRow { line, members: Ok(Vec::new()), texts };
        let first =
            first.filter(|first| is_blank(read.text("currency")) && first.is_continued_by(&read, *invoice_rows));
        let currency = first.unwrap_or(&read).text("currency");
        read.members =
            check_width(&row, columns, *width).and_then(|()| members(&cells, reader, currency)).map_err(of_rules);
        Ok(Some(read))
    }
}

/// Returns whether a cell has no text.
fn is_blank(cell: &str) -> bool {
    content(cell).is_ok_and(|text| text.trim().is_empty())
}

impl CsvRow {
    fn text(&self, field: &str) -> &str {
        self.texts.iter().find(|(name, _)| *name == field).map_or("", |(_, text)| text.trim())
    }

    /// Returns whether the next row has another line of the same invoice.
    fn is_continued_by(&self, next: &Self, rows: InvoiceRows) -> bool {
        let number = self.text("invoice_number");
        let is_same = !number.is_empty() && number == next.text("invoice_number");
        is_same && (rows == InvoiceRows::Summed || next.text("total").is_empty())
    }

    /// Adds the total of another line of the same invoice. If one of the rows is wrong, the invoice is.
    fn add(&mut self, next: Self) {
        let Ok(members) = &mut self.members else { return };
        let more = match next.members {
            Err(problem) => {
                self.members = Err(problem);
                return;
            }
            Ok(more) => more.into_iter().find(|(field, value)| field == "total" && *value != Json::Null),
        };
        let total = members.iter_mut().find(|(field, _)| field == "total");
        let (Some((_, total)), Some((_, more))) = (total, more) else { return };
        if *total == Json::Null {
            *total = more;
            return;
        }
        let (Json::Number(sum), Json::Number(line)) = (total, &more) else { return };
        match amounts::sum(sum, line) {
            Some(total) => *sum = total,
            // The rules refuse the one that is no amount.
            None if amounts::sum(sum, "0").is_some() => {
                sum.clone_from(line);
                self.texts = next.texts;
            }
            None => {}
        }
    }
}

/// Reads the header, and returns the fields that it names, the number of its cells and the names of the columns.
fn columns<R: Import>(
    records: &mut Records<Input>,
    names: &ColumnNames,
) -> Result<(Columns, usize, Vec<String>), ImportError> {
    let (header, width) = header(records)?;
    let columns = names.columns(&header)?;
    match R::REQUIRED.iter().find(|field| !columns.have(&[**field])) {
        Some(field) => Err(ImportError::RequiredField { field }),
        None => Ok((columns, width, header.names)),
    }
}

/// Reads the header, and returns it with the number of its cells.
fn header(records: &mut Records<Input>) -> Result<(Header, usize), ImportError> {
    let header = match records.next() {
        Err(ReadError::Io(error)) => return Err(ImportError::Read(error)),
        Err(ReadError::Malformed(fault)) => return Err(ImportError::File(FileFault::Csv(fault))),
        Ok(None) => return Err(ImportError::Empty),
        Ok(Some(header)) => header,
    };
    let cells = header.cells.ok_or(ImportError::LongHeader)?;
    let width = cells.len();
    let name = |cell: &[u8]| {
        let name = std::str::from_utf8(cell).map_err(|_| ImportError::HeaderEncoding)?;
        Ok(content(name).map_or_else(|_| name.to_owned(), Cow::into_owned).trim().to_owned())
    };
    let mut names: Vec<String> = cells.iter().map(name).collect::<Result<_, ImportError>>()?;
    // Spreadsheets write the empty cells at the end of a header, which are no columns.
    while names.pop_if(|name| name.is_empty()).is_some() {}
    Ok((Header { line: header.line, names }, width))
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

/// Checks how many cells a row has: as many as the header if `width` says how many these are, or else no more that are not
/// empty.
fn check_width(row: &[&[u8]], columns: &Columns, width: Option<usize>) -> Result<(), Error> {
    let used = row.iter().rposition(|cell| !cell.trim_ascii().is_empty()).map_or(0, |last| last + 1);
    let reason = match width {
        Some(width) if width != row.len() => format!("must have {width} cells, like the header, not {}", row.len()),
        _ if used > columns.count() => {
            format!("must have at most {} cells, like the header, not {used}", columns.count())
        }
        _ => return Ok(()),
    };
    Err(Issue::new(FieldCode::InvalidFormat, reason).on("row"))
}

/// Returns the fields of a row with this currency as JSON. An empty cell is null.
fn members(cells: &[Cell<'_>], reader: &mut CellReader, currency: &str) -> Result<Vec<(String, Json)>, Error> {
    let read = |cell: &Cell<'_>| {
        let value = match std::str::from_utf8(cell.bytes) {
            Ok(text) => reader.json(cell, text, Some(currency)),
            Err(_) => Err(Issue::new(FieldCode::InvalidFormat, "must be UTF-8; save the file as CSV in UTF-8")),
        };
        value.map(|value| (cell.field.to_owned(), value)).map_err(|issue| issue.on(cell.field))
    };
    cells.iter().map(read).collect()
}
