//! NDJSON: the lines of a file, of bounded length.

use std::io::{self, BufRead, Read as _};

use crate::csv::MAX_ROW;

/// A line with its number, counted from 1.
pub(super) struct Line {
    pub(super) number: u64,
    /// The bytes of the line. `None` if it is longer than [`MAX_ROW`].
    pub(super) bytes: Option<Vec<u8>>,
}

/// The lines of a file.
pub(super) struct Lines<I> {
    input: I,
    /// The last byte of the end of a line.
    line_end: u8,
    number: u64,
    blank: u64,
}

impl<I: BufRead> Lines<I> {
    /// Reads the lines from the one with this number on.
    pub(super) fn new(input: I, line_end: u8, first: u64) -> Self {
        Self { input, line_end, number: first - 1, blank: 0 }
    }

    /// Returns the number of blank lines so far, which were skipped.
    pub(super) fn blank(&self) -> u64 {
        self.blank
    }

    /// Reads the next line that is not blank.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let mut bytes = Vec::new();
            self.input.by_ref().take(MAX_ROW as u64 + 1).read_until(self.line_end, &mut bytes)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            self.number += 1;
            bytes.pop_if(|last| *last == self.line_end);
            if bytes.len() > MAX_ROW {
                self.input.skip_until(self.line_end)?;
                return Ok(Some(Line { number: self.number, bytes: None }));
            }
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(Line { number: self.number, bytes: Some(bytes) }));
            }
            self.blank += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_end_with_the_file_or_before() {
        let long = "x".repeat(MAX_ROW + 1);
        let text = format!("a\r\n\n  \nb\n{long}\n{}\n\nc", &long[1..]);
        for capacity in [1, 7, 1 << 20] {
            let mut lines = Lines::new(BufReader::with_capacity(capacity, text.as_bytes()), b'\n', 1);
            let mut seen = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                seen.push((line.number, line.bytes.map(|bytes| bytes.len())));
            }
            assert_eq!(seen, [(1, Some(2)), (4, Some(1)), (5, None), (6, Some(MAX_ROW)), (8, Some(1))]);
            assert_eq!(lines.blank(), 3);
        }
    }
}
