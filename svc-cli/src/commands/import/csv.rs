//! CSV (RFC 4180): a header row, then rows with as many cells.
//!
//! `csv` would keep a record in memory whole, and one in which a closing quote is missing reaches to the end of the
//! file. So its parser is driven by hand, and what goes beyond the longest row is read over.

use std::io::{self, BufRead};

use csv_core::ReadRecordResult;

use super::rows::MAX_ROW;

/// Most cells of a row.
const MAX_CELLS: usize = 256;

/// A row, and the number of the line on which it begins, from 1.
pub(super) struct Record<'r> {
    pub(super) line: u64,
    /// Its cells; `None` when they are too long or too many.
    pub(super) cells: Option<Cells<'r>>,
}

/// The cells of a row, as bytes.
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

/// The rows of a file, its header row first.
pub(super) struct Records<I> {
    input: I,
    parser: csv_core::Reader,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    line: u64,
}

impl<I: BufRead> Records<I> {
    pub(super) fn new(input: I) -> Self {
        Self { input, parser: csv_core::Reader::new(), bytes: vec![0; MAX_ROW], ends: vec![0; MAX_CELLS], line: 1 }
    }

    /// The next row; blank lines are skipped.
    pub(super) fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        self.skip_blank()?;
        let line = self.line;
        let (mut length, mut count, mut too_long) = (0, 0, false);
        loop {
            // The end of the file is an empty piece, which ends the record.
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

    /// What is left of the line before, and blank lines: the parser would skip them too, without telling where the
    /// record begins.
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
        let mut records = Records::new(BufReader::with_capacity(capacity, text));
        let mut seen = Vec::new();
        while let Some(record) = records.next().unwrap() {
            let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
            seen.push((record.line, record.cells.map(|cells| cells.iter().map(text).collect())));
        }
        seen
    }

    #[test]
    fn quotes_line_ends_and_lines() {
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
    fn it_reads_as_csv_does() {
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
    fn a_row_too_long_is_read_over() {
        let text = format!("a\n\"{}\",2\n3\n{}\n4\n\"5\n6", "x\n".repeat(MAX_ROW), ",".repeat(MAX_CELLS));
        let seen = read(text.as_bytes(), 65_536);
        let last = 3 + MAX_ROW as u64;
        let lines: Vec<(u64, bool)> = seen.iter().map(|(line, cells)| (*line, cells.is_some())).collect();
        assert_eq!(lines, [(1, true), (2, false), (last, true), (last + 1, false), (last + 2, true), (last + 3, true)]);
    }
}
