//! The source of an import: a file or stdin, its format, and the number of bytes read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::columns::delimiter;
use crate::cli::Format;
use crate::exit::{Exit, Failure};
use crate::output::plain;

/// The maximum length of a row in bytes, which is also the limit of the API.
pub(super) const MAX_ROW: usize = 1 << 20;
/// The size of the read buffer, in bytes.
const BUFFER: usize = 128 * 1024;
/// The maximum white space before the first row, in bytes, that is searched to detect the format.
const MAX_BLANK: u64 = 4096;
/// The part of a header that is searched for its delimiter, in bytes.
const MAX_HEADER: u64 = 64 * 1024;

pub(super) type Input = Box<dyn BufRead + Send>;

/// An open file or stdin, with its format.
pub(super) struct Source {
    pub(super) input: Input,
    pub(super) format: Format,
    /// The character between the cells of CSV.
    pub(super) delimiter: u8,
    pub(super) name: String,
    /// The size of the file in bytes, if it is known.
    pub(super) size: Option<u64>,
    read: Arc<AtomicU64>,
}

impl Source {
    /// Opens a file, or stdin for `-`, and detects its format. A byte order mark is skipped.
    pub(super) fn open(path: &Path, format: Option<Format>) -> Result<Self, Failure> {
        let stdin = path.as_os_str() == "-";
        let name = if stdin { "stdin".to_owned() } else { plain(&path.to_string_lossy()) };
        let failed = |error: io::Error| Failure::new(Exit::Failed, format!("Cannot read {name}: {error}."));
        let (raw, size): (Box<dyn Read + Send>, _) = if stdin {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(failed)?;
            let size = file.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
            (Box::new(file), size)
        };
        let read = Arc::new(AtomicU64::new(0));
        let mut input = BufReader::with_capacity(BUFFER, Counted { raw, read: Arc::clone(&read) });

        let mut head = Vec::new();
        input.by_ref().take(3).read_to_end(&mut head).map_err(failed)?;
        if head == b"\xef\xbb\xbf" {
            head.clear();
        } else if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return Err(Failure::new(Exit::Failed, format!("{name} is encoded in UTF-16; save it as UTF-8.")));
        }
        let format = format.or_else(|| by_name(path));
        let format = match format {
            Some(format) => format,
            None => by_content(&mut head, &mut input).map_err(failed)?,
        };
        // The header says how the cells are delimited.
        if format == Format::Csv {
            input.by_ref().take(MAX_HEADER).read_until(b'\n', &mut head).map_err(failed)?;
        }
        let delimiter = delimiter(&head);
        Ok(Self { input: Box::new(Cursor::new(head).chain(input)), format, delimiter, name, size, read })
    }

    /// Returns a function that returns the number of bytes read so far.
    pub(super) fn position(&self) -> impl Fn() -> u64 + use<> {
        let read = Arc::clone(&self.read);
        move || read.load(Ordering::Relaxed)
    }
}

/// Returns how many rows a file can have at most, which is its number of lines, less that of the header of a CSV file.
/// `None` for what can be read only once.
pub(super) fn max_rows(path: &Path, format: Format) -> Option<u64> {
    let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
    let mut input = BufReader::with_capacity(BUFFER, File::open(path).ok().filter(|_| is_file)?);
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let buffer = input.fill_buf().ok()?;
        let Some(end) = buffer.last() else { break };
        last = *end;
        lines += buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = buffer.len();
        input.consume(length);
    }
    // The last line need not end.
    lines += u64::from(last != b'\n');
    Some(lines.saturating_sub(u64::from(format == Format::Csv)))
}

/// Detects the format by the extension.
fn by_name(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Some(Format::Csv),
        "ndjson" | "jsonl" | "json" => Some(Format::Ndjson),
        _ => None,
    }
}

/// Detects the format by the first character: NDJSON begins with a brace, a CSV header does not.
fn by_content(head: &mut Vec<u8>, input: &mut impl BufRead) -> io::Result<Format> {
    let mut more = input.by_ref().take(MAX_BLANK).bytes();
    while head.iter().all(u8::is_ascii_whitespace) {
        match more.next() {
            Some(byte) => head.push(byte?),
            None => break,
        }
    }
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(if first == Some(&b'{') { Format::Ndjson } else { Format::Csv })
}

/// A reader that counts the bytes read through it.
struct Counted<R> {
    raw: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
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
            assert_eq!(by_name(Path::new(name)), want, "{name}");
        }
        for (text, want) in
            [("{}", Format::Ndjson), ("\r\n\n  {", Format::Ndjson), ("email\n", Format::Csv), ("", Format::Csv)]
        {
            let (mut head, mut rest) =
                (text.as_bytes()[..text.len().min(3)].to_vec(), &text.as_bytes()[text.len().min(3)..]);
            assert_eq!(by_content(&mut head, &mut rest).unwrap(), want, "{text}");
        }
    }
}
