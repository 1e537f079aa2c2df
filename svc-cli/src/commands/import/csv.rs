//! CSV (RFC 4180): a header row, then rows with the same number of cells.
//!
//! The crate `csv` keeps a whole record in memory, and a record without its closing quote extends to the end of the
//! file. This module therefore drives the parser of `csv` itself and skips the part of a record beyond the maximum
//! length.

use std::io::{self, BufRead};

use csv_core::ReadRecordResult;

use super::source::MAX_ROW;

/// The maximum number of cells in a row.
const MAX_CELLS: usize = 256;

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
    parser: csv_core::Reader,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    line: u64,
}

impl<I: BufRead> Records<I> {
    pub(super) fn new(input: I, delimiter: u8) -> Self {
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        Self { input, parser, bytes: vec![0; MAX_ROW], ends: vec![0; MAX_CELLS], line: 1 }
    }

    /// Reads the next row. Blank lines are skipped.
    pub(super) fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        self.skip_blank()?;
        let line = self.line;
        let (mut length, mut count, mut too_long) = (0, 0, false);
        loop {
            // An empty buffer is the end of the file, which also ends the record.
            let buffer = self.input.fill_buf()?;
            let (bytes, ends) = (&mut self.bytes[length..], &mut self.ends[count..]);
            let (result, read, written, ended) = self.parser.read_record(buffer, bytes, ends);
            self.line += count_lines(&buffer[..read]);
            self.input.consume(read);
            length += written;
            count += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    too_long = true;
                    (length, count) = (0, 0);
                }
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(None),
            }
        }
        let cells = (!too_long).then(|| Cells { bytes: &self.bytes[..length], ends: &self.ends[..count] });
        Ok(Some(Record { line, cells }))
    }

    /// Skips the end of the previous line and blank lines. The parser would skip them, too, but without reporting on
    /// which line the record begins.
    fn skip_blank(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let blank = buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let more = blank > 0 && blank == buffer.len();
            self.line += count_lines(&buffer[..blank]);
            self.input.consume(blank);
            if !more {
                return Ok(());
            }
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(text: &[u8], capacity: usize) -> Vec<(u64, Option<Vec<String>>)> {
        let mut records = Records::new(BufReader::with_capacity(capacity, text), b',');
        let mut seen = Vec::new();
        while let Some(record) = records.next().unwrap() {
            let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
            seen.push((record.line, record.cells.map(|cells| cells.iter().map(text).collect())));
        }
        seen
    }

    #[test]
    fn quotes_and_line_ends_are_parsed_and_lines_are_counted() {
        let text = b"\r\na,b\r\n\r\n1,\"x \"\"y\"\"\r\nz\"\r\n,\n\n\"2\", 3 \n4";
        let cells = |cells: &[&str]| Some(cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
        for capacity in [1, 2, 5, 4096] {
            let want = [
                (2, cells(&["a", "b"])),
                (4, cells(&["1", "x \"y\"\r\nz"])),
                (6, cells(&["", ""])),
                (8, cells(&["2", " 3 "])),
                (9, cells(&["4"])),
            ];
            assert_eq!(read(text, capacity), want, "{capacity}");
        }
        assert_eq!(read(b"", 1), []);
        assert_eq!(read(b"\r\n\n", 2), []);
    }

    #[test]
    fn rows_are_the_same_as_those_of_the_csv_crate() {
        let alphabet = b"a,\"\n\r";
        for length in 0..=5_u32 {
            for mut number in 0..5_usize.pow(length) {
                let text: Vec<u8> = (0..length)
                    .map(|_| {
                        let byte = alphabet[number % 5];
                        number /= 5;
                        byte
                    })
                    .collect();
                let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&*text);
                let want: Vec<Vec<String>> =
                    reader.into_records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect();
                for capacity in [1, 64] {
                    let seen: Vec<_> = read(&text, capacity).into_iter().map(|(_, cells)| cells.unwrap()).collect();
                    assert_eq!(seen, want, "{:?}", String::from_utf8_lossy(&text));
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_too_long_is_skipped() {
        let text = format!("a\n\"{}\",2\n3\n{}\n4\n\"5\n6", "x\n".repeat(MAX_ROW), ",".repeat(MAX_CELLS));
        let seen = read(text.as_bytes(), 65_536);
        let last = 3 + MAX_ROW as u64;
        let lines: Vec<(u64, bool)> = seen.iter().map(|(line, cells)| (*line, cells.is_some())).collect();
        assert_eq!(lines, [(1, true), (2, false), (last, true), (last + 1, false), (last + 2, true), (last + 3, true)]);
    }
}
