//! CSV (RFC 4180): a header row, then rows with the same number of cells. Lines end as the header does: with a line feed,
//! which a carriage return may precede, or with a carriage return alone, as older spreadsheets on a Mac write them.
//!
//! The crate `csv` keeps a whole record in memory, and a record without its closing quote extends to the end of the
//! file. This module therefore drives the parser of `csv` itself and skips the part of a record beyond the maximum
//! length.

use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Terminator};

use super::source::MAX_ROW;

/// The maximum number of cells in a row.
const MAX_CELLS: usize = 1024;

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
    /// The last byte of the end of a line.
    line_end: u8,
    line: u64,
    blank: u64,
}

impl<I: BufRead> Records<I> {
    /// Reads rows from a line on which the given number of lines has been read before.
    pub(super) fn new(input: I, delimiter: u8, line_end: u8, line: u64) -> Self {
        let terminator = Terminator::Any(line_end);
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).terminator(terminator).build();
        Self { input, parser, bytes: vec![0; MAX_ROW], ends: vec![0; MAX_CELLS], line_end, line, blank: 0 }
    }

    /// Returns the number of rows so far that were skipped because all their cells are empty. A blank line is such a row.
    pub(super) fn blank(&self) -> u64 {
        self.blank
    }

    /// Reads the next row that has a cell which is not empty.
    pub(super) fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        loop {
            self.skip_blank_lines()?;
            let line = self.line;
            let Some(size) = self.read()? else { return Ok(None) };
            let Some((length, count)) = size else { return Ok(Some(Record { line, cells: None })) };
            if self.bytes[..length].trim_ascii().is_empty() {
                self.blank += 1;
                continue;
            }
            let cells = Cells { bytes: &self.bytes[..length], ends: &self.ends[..count] };
            return Ok(Some(Record { line, cells: Some(cells) }));
        }
    }

    /// Reads a row into the buffers. Returns the number of its bytes and that of its cells, `Some(None)` if there are too
    /// many of either, and `None` at the end of the file.
    fn read(&mut self) -> io::Result<Option<Option<(usize, usize)>>> {
        let (mut length, mut count, mut too_long) = (0, 0, false);
        loop {
            // An empty buffer is the end of the file, which also ends the record.
            let buffer = self.input.fill_buf()?;
            let (bytes, ends) = (&mut self.bytes[length..], &mut self.ends[count..]);
            let (result, read, written, ended) = self.parser.read_record(buffer, bytes, ends);
            self.line += count_lines(&buffer[..read], self.line_end);
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
        if too_long {
            return Ok(Some(None));
        }
        // The carriage return before a line feed is no content of the last cell.
        if let Some((last, before)) = self.ends[..count].split_last_mut() {
            let start = before.last().copied().unwrap_or(0);
            if self.line_end == b'\n' && self.bytes[start..*last].ends_with(b"\r") {
                *last -= 1;
                length -= 1;
            }
        }
        Ok(Some(Some((length, count))))
    }

    /// Skips blank lines. The parser would skip them, too, but without reporting on which line the record begins.
    fn skip_blank_lines(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let blank = buffer.iter().take_while(|byte| **byte == self.line_end).count();
            let more = blank > 0 && blank == buffer.len();
            self.line += blank as u64;
            self.blank += blank as u64;
            self.input.consume(blank);
            if !more {
                return Ok(());
            }
        }
    }
}

fn count_lines(bytes: &[u8], line_end: u8) -> u64 {
    bytes.iter().filter(|byte| **byte == line_end).count() as u64
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(text: &[u8], line_end: u8, capacity: usize) -> Vec<(u64, Option<Vec<String>>)> {
        let mut records = Records::new(BufReader::with_capacity(capacity, text), b',', line_end, 1);
        let mut seen = Vec::new();
        while let Some(record) = records.next().unwrap() {
            let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
            seen.push((record.line, record.cells.map(|cells| cells.iter().map(text).collect())));
        }
        seen
    }

    fn cells(cells: &[&str]) -> Option<Vec<String>> {
        Some(cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn quotes_and_line_ends_are_parsed_and_lines_are_counted() {
        let text = b"\r\na,b\r\n\r\n1,\"x \"\"y\"\"\r\nz\"\r\n,\n\n\"2\", 3 \n4,\"5\"\r\n6\r7\r\n\"8\"";
        for capacity in [1, 2, 5, 4096] {
            let want = [
                (2, cells(&["a", "b"])),
                (4, cells(&["1", "x \"y\"\r\nz"])),
                (8, cells(&["2", " 3 "])),
                (9, cells(&["4", "5"])),
                (10, cells(&["6\r7"])),
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
    fn blank_rows_are_counted() {
        let mut records = Records::new(&b"a,b\n\n , \n\r\n1,\n\n"[..], b',', b'\n', 1);
        while records.next().unwrap().is_some() {}
        assert_eq!(records.blank(), 4);
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
                for line_end in [b'\n', b'\r'] {
                    let reader = csv::ReaderBuilder::new()
                        .has_headers(false)
                        .flexible(true)
                        .terminator(csv::Terminator::Any(line_end))
                        .from_reader(&*text);
                    let without_return = |record: csv::StringRecord| {
                        let mut cells: Vec<String> = record.iter().map(str::to_owned).collect();
                        if let Some(last) = cells.last_mut().filter(|last| line_end == b'\n' && last.ends_with('\r')) {
                            last.pop();
                        }
                        cells
                    };
                    let rows = reader.into_records().map(|record| without_return(record.unwrap()));
                    let want: Vec<_> = rows.filter(|cells| !cells.concat().trim().is_empty()).collect();
                    for capacity in [1, 64] {
                        let seen = read(&text, line_end, capacity).into_iter().map(|(_, cells)| cells.unwrap());
                        assert_eq!(seen.collect::<Vec<_>>(), want, "{:?}", String::from_utf8_lossy(&text));
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_too_long_is_skipped() {
        let text = format!("a\n\"{}\",2\n3\n{}\n4\n\"5\n6", "x\n".repeat(MAX_ROW), ",".repeat(MAX_CELLS));
        let seen = read(text.as_bytes(), b'\n', 65_536);
        let last = 3 + MAX_ROW as u64;
        let lines: Vec<(u64, bool)> = seen.iter().map(|(line, cells)| (*line, cells.is_some())).collect();
        assert_eq!(lines, [(1, true), (2, false), (last, true), (last + 1, false), (last + 2, true), (last + 3, true)]);
    }
}
