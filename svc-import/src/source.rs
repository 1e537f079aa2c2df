//! The source of an import: a file, its format, and the number of bytes read.

use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::check::check;
use crate::columns::delimiter;
use crate::csv::Lexer;
use crate::error::ImportError;

/// The size of the read buffer, in bytes.
const BUFFER: usize = 128 * 1024;
/// The longest line that is read to detect the format, the delimiter and the ends of lines, in bytes.
const MAX_HEADER: usize = 64 * 1024;

pub(super) type Input = Box<dyn BufRead + Send>;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

impl Format {
    /// Returns the format that the extension of a file names.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "ndjson" | "jsonl" | "json" => Some(Self::Ndjson),
            _ => None,
        }
    }
}

/// A file with its format, checked to its end.
pub struct Source {
    /// The rest of the file from the header of CSV, or from the first object of NDJSON.
    pub(super) input: Input,
    pub(crate) format: Format,
    /// The character between the cells of CSV.
    pub(super) delimiter: u8,
    /// The last byte of the end of a line: a line feed, or a carriage return in files without line feeds.
    pub(super) line_end: u8,
    /// The number of the line on which `input` begins, counted from 1.
    pub(super) line: u64,
    /// The size of the file in bytes.
    size: u64,
    /// How many rows the file can have at most: its number of lines, less the header of CSV and the lines before it.
    max_rows: u64,
    read: Arc<AtomicU64>,
}

impl Source {
    /// Detects the format of a file, if it is not given. A byte order mark and the lines to skip are skipped, as are
    /// lines before a header of CSV that mean nothing more: one such as `sep=;`, by which spreadsheets know the delimiter, and
    /// the `{}` with which the exports of MYOB begin. The rest is then checked to its end.
    ///
    /// # Errors
    /// The file cannot be read, has another format, or is not valid.
    pub fn new(
        mut file: impl Read + Seek + Send + 'static,
        format: Option<Format>,
        skip_lines: u64,
    ) -> Result<Self, ImportError> {
        let failed = ImportError::Read;
        let start = file.stream_position().map_err(failed)?;
        let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut input = BufReader::with_capacity(BUFFER, &mut file);

        let mut mark = Vec::new();
        input.by_ref().take(3).read_to_end(&mut mark).map_err(failed)?;
        let has_mark = mark == b"\xef\xbb\xbf";
        if has_mark {
            mark.clear();
        } else if mark.starts_with(b"\xff\xfe") || mark.starts_with(b"\xfe\xff") {
            return Err(ImportError::Utf16);
        } else if mark == b"PK\x03" || mark == b"\xd0\xcf\x11" {
            // The new and the old format of workbooks.
            return Err(ImportError::Workbook);
        }
        let mut head = Head::new(Cursor::new(mark).chain(input));
        if head.skip(skip_lines).map_err(failed)? < skip_lines {
            return Err(ImportError::Skipped { lines: skip_lines });
        }
        if format != Some(Format::Csv)
            && let Some(filter) = head.filter_of_json().map_err(failed)?
        {
            return Err(ImportError::Json { filter });
        }
        let Start { format, delimiter } = head.detect(format).map_err(failed)?;
        let Head { line, line_end, dropped, .. } = head;
        let lexer = (format == Format::Csv).then(|| Lexer::new(delimiter, line_end, line));
        let begins = start + dropped + if has_mark { 3 } else { 0 };
        file.seek(SeekFrom::Start(begins)).map_err(failed)?;
        let lines = check(&mut file, lexer, line_end, line).map_err(failed)?.map_err(ImportError::File)?;
        let max_rows = lines.saturating_sub(u64::from(format == Format::Csv));
        file.seek(SeekFrom::Start(begins)).map_err(failed)?;
        let read = Arc::new(AtomicU64::new(begins - start));
        let input = Box::new(BufReader::with_capacity(BUFFER, CountingReader { raw: file, read: Arc::clone(&read) }));
        Ok(Self { input, format, delimiter, line_end, line, size, max_rows, read })
    }

    /// Returns the format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns how many rows the file can have at most.
    pub fn max_rows(&self) -> u64 {
        self.max_rows
    }

    /// Returns a function that returns the number of bytes read so far.
    pub(super) fn position(&self) -> impl Fn() -> u64 + use<> {
        let read = Arc::clone(&self.read);
        move || read.load(Ordering::Relaxed)
    }
}

/// The beginning of a file, of which lines are read ahead.
struct Head<I> {
    input: I,
    /// The input that was read and is not skipped.
    read: Vec<u8>,
    /// The number of the line on which `read` begins.
    line: u64,
    line_end: u8,
    /// The number of bytes before `read`.
    dropped: u64,
}

/// The facts that the beginning of a file tells.
struct Start {
    format: Format,
    delimiter: u8,
}

impl<I: BufRead> Head<I> {
    fn new(input: I) -> Self {
        Self { input, read: Vec::new(), line: 1, line_end: b'\n', dropped: 0 }
    }

    /// Reads on to the end of the line, or at most [`MAX_HEADER`] bytes. Returns whether the line ended. Where lines end with
    /// carriage returns alone, the blank lines behind it are read as well: a line feed may follow after any number of them.
    fn read_line(&mut self) -> io::Result<bool> {
        let (start, mut is_returned) = (self.read.len(), false);
        while self.read.len() - start < MAX_HEADER {
            let next = self.input.fill_buf()?.first().copied();
            let Some(byte) = next.filter(|byte| !is_returned || matches!(byte, b'\r' | b'\n')) else {
                if is_returned {
                    self.line_end = b'\r';
                }
                return Ok(true);
            };
            self.input.consume(1);
            self.read.push(byte);
            if byte == b'\n' {
                self.line_end = byte;
                return Ok(true);
            }
            is_returned = byte == b'\r';
        }
        Ok(false)
    }

    /// Drops the first line that was read.
    fn drop_line(&mut self) {
        let end = self.read.iter().position(|byte| *byte == self.line_end).map_or(self.read.len(), |at| at + 1);
        self.read.drain(..end);
        self.dropped += end as u64;
        self.line += 1;
    }

    /// Drops the first line that was read, and reads the next one that is not blank.
    fn next_text(&mut self) -> io::Result<()> {
        self.drop_line();
        while !self.read.is_empty() && self.first_line().trim_ascii().is_empty() {
            self.drop_line();
        }
        if self.read.is_empty() { self.read_text() } else { Ok(()) }
    }

    /// Returns the first line that was read, with its end.
    fn first_line(&self) -> &[u8] {
        self.read.split_inclusive(|byte| *byte == self.line_end).next().unwrap_or_default()
    }

    /// Skips lines. Returns how many there were.
    fn skip(&mut self, lines: u64) -> io::Result<u64> {
        for skipped in 0..lines {
            if self.read.is_empty() {
                let before = self.dropped;
                while !self.read_line()? {
                    self.dropped += self.read.len() as u64;
                    self.read.clear();
                }
                if self.read.is_empty() && self.dropped == before {
                    return Ok(skipped);
                }
            }
            self.drop_line();
        }
        // What is left are blank lines.
        while !self.read.is_empty() {
            self.drop_line();
        }
        Ok(lines)
    }

    /// Reads the next line that is not blank, after what was read before. Blank lines at the beginning are dropped.
    fn read_text(&mut self) -> io::Result<()> {
        loop {
            let before = self.read.len();
            self.read_line()?;
            if self.read.len() == before || !self.read[before..].trim_ascii().is_empty() {
                return Ok(());
            }
            while before == 0 && !self.read.is_empty() {
                self.drop_line();
            }
        }
    }

    /// Returns the filter of `jq` that writes one object on each line, if the file begins as an array or as an object over
    /// several lines does.
    fn filter_of_json(&mut self) -> io::Result<Option<&'static str>> {
        self.read_text()?;
        let first = self.first_line().trim_ascii();
        let is_array = first
            .strip_prefix(b"[")
            .is_some_and(|rest| matches!(rest.trim_ascii_start().first(), None | Some(b'{' | b']')));
        let is_cut = |first| {
            let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(first);
            parsed.is_err_and(|error| error.is_eof())
        };
        Ok(match first {
            _ if is_array => Some(".[]"),
            [b'{', ..] if first.len() < MAX_HEADER && is_cut(first) => {
                Some(if self.begins_list()? { ".data[]" } else { "." })
            }
            _ => None,
        })
    }

    /// Returns whether the object that begins is a list of the API, whose records are in `data`.
    fn begins_list(&mut self) -> io::Result<bool> {
        if self.read.trim_ascii() == b"{" {
            let (before, line_end) = (self.read.len(), self.line_end);
            self.read_text()?;
            self.line_end = line_end;
            return Ok(self.read[before..].trim_ascii_start().starts_with(b"\"data\""));
        }
        Ok(self
            .read
            .trim_ascii()
            .strip_prefix(b"{")
            .is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\"data\"")))
    }

    /// Detects what the options do not say.
    fn detect(&mut self, format: Option<Format>) -> io::Result<Start> {
        if self.read.is_empty() {
            self.read_text()?;
        }
        let format = match format {
            Some(format) => format,
            None => self.format()?,
        };
        if format == Format::Ndjson {
            return Ok(Start { format, delimiter: b',' });
        }
        if self.first_line().trim_ascii() == b"{}" {
            self.next_text()?;
        }
        if let Some(delimiter) = separator(self.first_line()) {
            self.next_text()?;
            return Ok(Start { format, delimiter });
        }
        // The header ends outside of quotes.
        let is_quoted = |read: &[u8]| read.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
        while is_quoted(&self.read) && self.read.len() < MAX_HEADER {
            let (before, line_end) = (self.read.len(), self.line_end);
            self.read_line()?;
            if self.read.len() == before {
                self.line_end = line_end;
                break;
            }
        }
        Ok(Start { format, delimiter: delimiter(&self.read) })
    }

    /// Detects the format by the first characters: NDJSON begins with a brace, a CSV header does not. An empty object is
    /// NDJSON only if another object or nothing follows.
    fn format(&mut self) -> io::Result<Format> {
        let first = self.read.trim_ascii();
        if !first.starts_with(b"{") {
            return Ok(Format::Csv);
        }
        if first == b"{}" {
            let (before, line_end) = (self.read.len(), self.line_end);
            self.read_text()?;
            self.line_end = line_end;
            if !matches!(self.read[before..].trim_ascii().first(), None | Some(b'{')) {
                return Ok(Format::Csv);
            }
        }
        Ok(Format::Ndjson)
    }
}

/// Returns the delimiter that a line such as `sep=;` names.
fn separator(line: &[u8]) -> Option<u8> {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    let line = &line[..end];
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    match line.split_at_checked(4)? {
        (name, [delimiter]) if name.eq_ignore_ascii_case(b"sep=") && delimiter.is_ascii() => Some(*delimiter),
        _ => None,
    }
}

/// A reader that counts the bytes read through it.
struct CountingReader<R> {
    raw: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_detected() {
        for (name, want) in
            [("a.csv", Some(Format::Csv)), ("a.JSONL", Some(Format::Ndjson)), ("a.txt", None), ("-", None)]
        {
            assert_eq!(Format::of_path(Path::new(name)), want, "{name}");
        }
        for (text, want) in [
            ("{}", Format::Ndjson),
            ("\r\n\n  {", Format::Ndjson),
            ("{}\n\n{\"email\": null}", Format::Ndjson),
            ("{}\nemail,first_name\n", Format::Csv),
            ("email\n", Format::Csv),
            ("", Format::Csv),
        ] {
            assert_eq!(Head::new(text.as_bytes()).detect(None).unwrap().format, want, "{text}");
        }
    }

    #[test]
    fn the_header_tells_how_lines_end_and_cells_are_delimited() {
        for (text, skip, want) in [
            ("a,b;c,d\n1", 0, (b',', b'\n', 1)),
            ("a;b\r\n1,2,3", 0, (b';', b'\n', 1)),
            ("a;b\r1,2,3\r", 0, (b';', b'\r', 1)),
            ("\r\r\"a\nb\";c\r", 0, (b';', b'\r', 3)),
            ("sep=;\r\na,b,c\r\n", 0, (b';', b'\n', 2)),
            ("\"SEP=\t\"\n\na,b\n", 0, (b'\t', b'\n', 3)),
            ("sep=;a\n", 0, (b';', b'\n', 1)),
            ("Report;;;\n\na,b\n", 2, (b',', b'\n', 3)),
            ("Report\rof May\ra,b\r1", 2, (b',', b'\r', 3)),
            ("Report\nsep=|\na,b\n", 1, (b'|', b'\n', 3)),
            ("{}\r\n\r\na;b\r\n", 0, (b';', b'\n', 3)),
            ("{}\ra\tb\r", 0, (b'\t', b'\r', 2)),
            ("a,b", 0, (b',', b'\n', 1)),
            ("a;b\r\r\n1,2,3\r\r\n", 0, (b';', b'\n', 1)),
            ("\r\r\n\r\r\na;b\r\r\n", 0, (b';', b'\n', 3)),
            ("sep=;\r\r\na,b,c\r\r\n", 0, (b';', b'\n', 2)),
            ("Report\r\r\na,b\r\r\n", 1, (b',', b'\n', 2)),
            ("Report\r\r\rof May\ra,b\r1", 3, (b',', b'\r', 4)),
            ("Report\r\r\ra,b\r1", 2, (b',', b'\r', 4)),
        ] {
            let mut head = Head::new(text.as_bytes());
            assert_eq!(head.skip(skip).unwrap(), skip);
            let start = head.detect(None).unwrap();
            assert_eq!((start.delimiter, head.line_end, head.line), want, "{text:?}");
        }
        assert_eq!(Head::new(&b"a\nb\n"[..]).skip(3).unwrap(), 2);
    }
}
