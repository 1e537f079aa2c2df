//! CSV (RFC 4180): a header row, then rows with the same number of cells. Lines end as the header does: with a line feed,
//! which carriage returns may precede, or with a carriage return alone, as older spreadsheets on a Mac write them.
//!
//! Quotes are read strictly. A cell that begins with a quote ends with one, and after that come only blanks, the delimiter or
//! the end of the line; no file ends within quotes. A reader that forgives a missing quote reads the following rows as text of
//! one cell, and loses them without a word. A quote within a cell that does not begin with one is text.
//!
//! A record of any length takes bounded memory: the part of it beyond the maximum length is skipped.

use std::fmt;
use std::io::{self, BufRead};

/// The maximum length of a row in bytes, which is also the limit of the API.
pub(super) const MAX_ROW: usize = 1 << 20;
/// The maximum number of cells in a row.
const MAX_CELLS: usize = 1024;

/// Why a file is no CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The file ends within the quotes that open on this line.
    Unclosed {
        /// The line of the opening quote.
        opened: u64,
    },
    /// A quoted cell, which begins on one line, goes on after its closing quote on another.
    AfterQuote {
        /// The line of the opening quote.
        opened: u64,
        /// The line of the closing quote.
        line: u64,
        /// Whether there is a backslash before the closing quote.
        is_escaped: bool,
    },
    /// A line ends otherwise than the header.
    LineEnd {
        /// The number of the line.
        line: u64,
        /// Whether it ends with a carriage return alone, and not with a line feed.
        is_return: bool,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed { opened } => write!(f, "the quote that opens on line {opened} is never closed"),
            Self::AfterQuote { opened, line, is_escaped } => {
                write!(
                    f,
                    "the cell whose quote opens on line {opened} has a quote on line {line} that is neither doubled nor before \
                     a delimiter or the end of the line"
                )?;
                if *is_escaped {
                    f.write_str("; a quote within quotes is written \"\", and not \\\"")?;
                }
                Ok(())
            }
            Self::LineEnd { line, is_return } => {
                let [this, header] = ["a carriage return", "a line feed"];
                let (this, header) = if *is_return { (this, header) } else { (header, this) };
                write!(f, "line {line} ends with {this} alone, and the header with {header}; all lines must end alike")
            }
        }
    }
}

/// The meaning of a byte at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A byte of a cell.
    Content,
    /// No part of a cell.
    Nothing,
    /// The opening quote of a cell. Only blanks came before it.
    Open,
    CellEnd,
    RowEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    RowStart,
    CellStart,
    /// After blanks at the beginning of a cell.
    Blank,
    Unquoted,
    Quoted,
    /// After a quote within quotes, which closes them or is the first of two.
    Quote,
    /// After blanks behind a closing quote.
    Closed,
    /// After a carriage return, which a line feed follows.
    Return,
}

/// Tells cells and rows apart, byte by byte.
#[derive(Clone, Debug)]
pub(super) struct Lexer {
    delimiter: u8,
    /// The last byte of the end of a line.
    line_end: u8,
    state: State,
    line: u64,
    /// The line of the last opening quote.
    opened: u64,
    /// Whether the last byte is a backslash, and whether there was one before the last quote.
    backslash: (bool, bool),
}

impl Lexer {
    /// Creates a lexer of lines that end with this byte, the first of which has this number.
    pub(super) fn new(delimiter: u8, line_end: u8, line: u64) -> Self {
        Self { delimiter, line_end, state: State::RowStart, line, opened: line, backslash: (false, false) }
    }

    /// Returns the number of the line that comes next.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Takes the next byte.
    ///
    /// # Errors
    /// The file is no CSV.
    fn take(&mut self, byte: u8) -> Result<Token, Fault> {
        use State::{Blank, CellStart, Closed, Quote, Quoted, Return, RowStart, Unquoted};
        let line = self.line;
        self.line += u64::from(byte == self.line_end);
        let is_blank = byte == b' ' || byte == b'\t' && byte != self.delimiter;
        let (next, token) = match (self.state, byte) {
            (Quoted, b'"') => (Quote, Token::Nothing),
            (Quoted, _) => (Quoted, Token::Content),
            (Quote, b'"') => (Quoted, Token::Content),
            (RowStart | CellStart | Blank, b'"') => {
                self.opened = line;
                (Quoted, Token::Open)
            }
            (_, byte) if byte == self.line_end => (RowStart, Token::RowEnd),
            (Return, b'\r') => (Return, Token::Nothing),
            (Return, _) => return Err(Fault::LineEnd { line, is_return: true }),
            (_, byte) if byte == self.delimiter => (CellStart, Token::CellEnd),
            // As in files whose lines end with both, the other way round.
            (RowStart, b'\r' | b'\n') => (RowStart, Token::Nothing),
            (_, b'\r') => (Return, Token::Nothing),
            (_, b'\n') => return Err(Fault::LineEnd { line, is_return: false }),
            (Quote | Closed, _) if is_blank => (Closed, Token::Nothing),
            (Quote | Closed, _) => {
                return Err(Fault::AfterQuote { opened: self.opened, line, is_escaped: self.backslash.1 });
            }
            (RowStart | CellStart | Blank, _) if is_blank => (Blank, Token::Content),
            (RowStart | CellStart | Blank | Unquoted, _) => (Unquoted, Token::Content),
        };
        if byte == b'"' {
            self.backslash.1 = self.backslash.0;
        }
        self.backslash.0 = byte == b'\\';
        self.state = next;
        Ok(token)
    }

    /// Takes bytes of which no cells are read.
    ///
    /// # Errors
    /// The file is no CSV.
    pub(super) fn check(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        bytes.iter().try_for_each(|byte| self.take(*byte).map(|_| ()))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The file ends within quotes.
    pub(super) fn finish(&self) -> Result<(), Fault> {
        if self.state == State::Quoted { Err(Fault::Unclosed { opened: self.opened }) } else { Ok(()) }
    }
}

/// Why no further row is read.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    Malformed(Fault),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        Self::Malformed(fault)
    }
}

/// A row with the number of the line on which it begins, counted from 1.
pub(super) struct Record<'r> {
    pub(super) line: u64,
    /// The cells of the row. `None` if they are too long or too many.
    pub(super) cells: Option<Cells<'r>>,
}

/// The cells of a row as bytes, which are not necessarily UTF-8.
pub(super) struct Cells<'r> {
    bytes: &'r [u8],
    ends: &'r [usize],
}

impl<'r> Cells<'r> {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'r [u8]> {
        let (bytes, mut start) = (self.bytes, 0);
        self.ends.iter().map(move |end| {
            let cell = bytes.get(start..*end).unwrap_or_default();
            start = *end;
            cell
        })
    }
}

/// The rows of a file, starting with its header row.
pub(super) struct Records<I> {
    input: I,
    lexer: Lexer,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    blank: u64,
}

impl<I: BufRead> Records<I> {
    /// Reads rows from the beginning of a row.
    pub(super) fn new(input: I, lexer: Lexer) -> Self {
        Self { input, lexer, bytes: Vec::new(), ends: Vec::new(), blank: 0 }
    }

    /// Returns the number of rows so far that were skipped because all their cells are empty. A blank line is such a row.
    pub(super) fn blank(&self) -> u64 {
        self.blank
    }

    /// Reads the next row that has a cell which is not empty.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            let line = self.lexer.line();
            let Some(fits) = self.read()? else { return Ok(None) };
            if !fits {
                return Ok(Some(Record { line, cells: None }));
            }
            if self.bytes.trim_ascii().is_empty() {
                self.blank += 1;
                continue;
            }
            return Ok(Some(Record { line, cells: Some(Cells { bytes: &self.bytes, ends: &self.ends }) }));
        }
    }

    /// Reads a row into the buffers. Returns whether it fits into them, and `None` at the end of the file.
    fn read(&mut self) -> Result<Option<bool>, ReadError> {
        self.bytes.clear();
        self.ends.clear();
        let (mut is_begun, mut fits) = (false, true);
        let mut is_ended = false;
        while !is_ended {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                self.lexer.finish()?;
                if !is_begun {
                    return Ok(None);
                }
                self.ends.push(self.bytes.len());
                break;
            }
            let mut read = 0;
            for byte in buffer {
                read += 1;
                let token = self.lexer.take(*byte)?;
                is_begun |= token != Token::Nothing;
                match token {
                    Token::Nothing => {}
                    Token::Open => self.bytes.truncate(self.ends.last().copied().unwrap_or(0)),
                    Token::Content if self.bytes.len() < MAX_ROW => self.bytes.push(*byte),
                    Token::CellEnd | Token::RowEnd if self.ends.len() < MAX_CELLS => self.ends.push(self.bytes.len()),
                    Token::Content | Token::CellEnd | Token::RowEnd => fits = false,
                }
                if token == Token::RowEnd {
                    is_ended = true;
                    break;
                }
            }
            self.input.consume(read);
        }
        Ok(Some(fits && self.ends.len() <= MAX_CELLS))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    type Rows = Vec<(u64, Option<Vec<String>>)>;

    fn try_read(text: &[u8], line_end: u8, capacity: usize) -> Result<Rows, Fault> {
        let lexer = Lexer::new(b',', line_end, 1);
        let mut checked = lexer.clone();
        let mut records = Records::new(BufReader::with_capacity(capacity, text), lexer);
        let mut seen = Vec::new();
        loop {
            match records.next() {
                Ok(None) => break,
                Ok(Some(record)) => {
                    let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
                    seen.push((record.line, record.cells.map(|cells| cells.iter().map(text).collect())));
                }
                Err(ReadError::Malformed(fault)) => {
                    assert_eq!(
                        checked.check(text).and_then(|()| checked.finish()),
                        Err(fault),
                        "the check finds it, too"
                    );
                    return Err(fault);
                }
                Err(ReadError::Io(error)) => panic!("{error}"),
            }
        }
        Ok(seen)
    }

    fn read(text: &[u8], line_end: u8, capacity: usize) -> Rows {
        try_read(text, line_end, capacity).unwrap()
    }

    fn cells(cells: &[&str]) -> Option<Vec<String>> {
        Some(cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn quotes_and_line_ends_are_parsed_and_lines_are_counted() {
        let text = b"\r\na,b\r\n\r\n1,\"x \"\"y\"\"\r\nz\"\r\n,\n\n\"2\", 3 \n4,\"5\"\r\n6\r\n\"8\"";
        for capacity in [1, 2, 5, 4096] {
            let want = [
                (2, cells(&["a", "b"])),
                (4, cells(&["1", "x \"y\"\r\nz"])),
                (8, cells(&["2", " 3 "])),
                (9, cells(&["4", "5"])),
                (10, cells(&["6"])),
                (11, cells(&["8"])),
            ];
            assert_eq!(read(text, b'\n', capacity), want, "{capacity}");
        }
        assert_eq!(read(b"", b'\n', 1), []);
        assert_eq!(read(b"\r\n\n", b'\n', 2), []);
    }

    #[test]
    fn lines_may_end_with_a_carriage_return_alone() {
        for capacity in [1, 4096] {
            let want = [(1, cells(&["a", "b"])), (2, cells(&["1", "x\ry\nz"])), (5, cells(&["2", ""]))];
            assert_eq!(read(b"a,b\r1,\"x\ry\nz\"\r\r2,\r", b'\r', capacity), want, "{capacity}");
        }
    }

    #[test]
    fn lines_may_end_with_several_carriage_returns_and_cells_may_have_blanks_around_quotes() {
        for text in [
            "\"a\",\"b\"\r\r\n\"1\",\"2\"\r\r\n",
            "\"a\",\"b\"\n\r\"1\",\"2\"\n\r",
            "a,b\r\r\n1,2\r\r\n",
            "\"a\" , \"b\"\n\"1\"\t,  \"2\" \r\n",
            "\"a\",\"b\"\n1,2\r",
        ] {
            let rows: Vec<_> = read(text.as_bytes(), b'\n', 3).into_iter().map(|(_, cells)| cells).collect();
            assert_eq!(rows, [cells(&["a", "b"]), cells(&["1", "2"])], "{text:?}");
        }
        let text = "a\n1 \"Ada\" 2,x\"y\n";
        assert_eq!(read(text.as_bytes(), b'\n', 9)[1].1, cells(&["1 \"Ada\" 2", "x\"y"]), "quotes within are text");
        let tabs = Lexer::new(b'\t', b'\n', 1);
        let mut records = Records::new(&b"\"a\"\t\"b\"\n"[..], tabs);
        assert_eq!(records.next().unwrap().unwrap().cells.unwrap().len(), 2, "a tab between cells is no blank");
    }

    #[test]
    fn blank_rows_are_counted() {
        let mut records = Records::new(&b"a,b\n\n , \n\r\n1,\n\n"[..], Lexer::new(b',', b'\n', 1));
        while records.next().unwrap().is_some() {}
        assert_eq!(records.blank(), 4);
    }

    #[test]
    fn what_is_no_csv_is_refused_with_the_lines_of_its_quotes() {
        let after = |opened, line, is_escaped| Fault::AfterQuote { opened, line, is_escaped };
        for (text, line_end, want) in [
            ("a,b\n1,\"call back\n2,ok\n", b'\n', Fault::Unclosed { opened: 2 }),
            ("a\nb@example.com,\"Bob", b'\n', Fault::Unclosed { opened: 2 }),
            ("a,b\n1,\"\"\"", b'\n', Fault::Unclosed { opened: 2 }),
            ("a,b,c\n1,\"Ann,Perth\n2,\"Bob\",Oslo\n", b'\n', after(2, 3, false)),
            ("a\n\"Nguyen \"Ada\" Plumbing\"\n", b'\n', after(2, 2, false)),
            ("a\n\"Nguyen \\\"Ada\\\" Plumbing\"\n", b'\n', after(2, 2, true)),
            ("a\n\"Bo \\\"B\\\", Sons\",\n", b'\n', after(2, 2, true)),
            ("a\n\"x\" y\n", b'\n', after(2, 2, false)),
            ("a\n\"x\" \"y\"\n", b'\n', after(2, 2, false)),
            ("a\r\"x\ry\"z\r", b'\r', after(2, 3, false)),
            ("a;b\n1,\"x\"\"\n", b'\n', Fault::Unclosed { opened: 2 }),
            ("a,b\n1,\r2,x\n", b'\n', Fault::LineEnd { line: 2, is_return: true }),
            ("a,b\n1,\"x\"\r2,y\n", b'\n', Fault::LineEnd { line: 2, is_return: true }),
            ("a,b\r1,2\n3,4\r", b'\r', Fault::LineEnd { line: 2, is_return: false }),
            ("a,b\r1,\"2\"\n3,4\r", b'\r', Fault::LineEnd { line: 2, is_return: false }),
        ] {
            for capacity in [1, 4096] {
                assert_eq!(try_read(text.as_bytes(), line_end, capacity), Err(want), "{text:?}");
            }
        }
        assert_eq!(Fault::Unclosed { opened: 2 }.to_string(), "the quote that opens on line 2 is never closed");
    }

    #[test]
    fn rows_are_the_same_as_those_of_the_csv_crate() {
        for line_end in [b'\n', b'\r'] {
            let alphabet = [b'a', b',', b'"', line_end];
            for length in 0..=6_u32 {
                for mut number in 0..4_usize.pow(length) {
                    let text: Vec<u8> = (0..length)
                        .map(|_| {
                            let byte = alphabet[number % 4];
                            number /= 4;
                            byte
                        })
                        .collect();
                    let reader = ::csv::ReaderBuilder::new()
                        .has_headers(false)
                        .flexible(true)
                        .terminator(::csv::Terminator::Any(line_end))
                        .from_reader(&*text);
                    let rows = reader
                        .into_records()
                        .map(|record| record.unwrap().iter().map(str::to_owned).collect::<Vec<String>>());
                    let want: Vec<_> = rows.filter(|cells| !cells.concat().trim().is_empty()).collect();
                    for capacity in [1, 64] {
                        // That crate takes what is no CSV as well.
                        let Ok(seen) = try_read(&text, line_end, capacity) else { continue };
                        let seen = seen.into_iter().map(|(_, cells)| cells.unwrap()).collect::<Vec<_>>();
                        assert_eq!(seen, want, "{:?}", String::from_utf8_lossy(&text));
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_too_long_is_skipped() {
        let text = format!("a\n\"{}\",2\n3\n{}\n4\n\"5\n6\"", "x\n".repeat(MAX_ROW), ",".repeat(MAX_CELLS));
        let seen = read(text.as_bytes(), b'\n', 65_536);
        let last = 3 + MAX_ROW as u64;
        let lines: Vec<(u64, bool)> = seen.iter().map(|(line, cells)| (*line, cells.is_some())).collect();
        assert_eq!(lines, [(1, true), (2, false), (last, true), (last + 1, false), (last + 2, true), (last + 3, true)]);
    }
}
