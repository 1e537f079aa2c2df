//! The check of a whole file before its first row is imported: whatever is wrong with the file itself, and not with a row.

use std::fmt;
use std::io::{self, Read};

use crate::csv::{Fault, Lexer};

/// How many bytes are checked at a time.
const CHUNK: usize = 128 * 1024;
/// The most characters of a text that an error shows.
const MAX_SHOWN: usize = 30;

/// A mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// A byte that is not UTF-8, with the text around it as Windows-1252 would have it.
    Encoding {
        /// The line of the byte.
        line: u64,
        /// The byte.
        byte: u8,
        /// The text around it.
        text: String,
    },
    /// A NUL, as in files that are UTF-16.
    Nul {
        /// The line of the NUL.
        line: u64,
    },
    /// The file is no CSV.
    Csv(Fault),
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding { line, byte, text } => write!(
                f,
                "The file is not UTF-8: line {line} has the byte 0x{byte:02X}. Save the file as CSV in UTF-8. Read as \
                 Windows-1252, as some spreadsheets write it, the text there is {text:?}."
            ),
            Self::Nul { line } => {
                write!(
                    f,
                    "The file has a NUL character on line {line}, as files in UTF-16 have. Save it as CSV in UTF-8."
                )
            }
            Self::Csv(fault) => write!(f, "The file is not valid CSV: {fault}. Correct the file."),
        }
    }
}

/// Checks a file from the header of CSV, or from the first object of NDJSON, on a line with this number. Returns the number of
/// its lines.
///
/// # Errors
/// The file cannot be read.
pub(super) fn check(
    mut input: impl Read,
    mut csv: Option<Lexer>,
    line_end: u8,
    first: u64,
) -> io::Result<Result<u64, FileFault>> {
    let (mut chunk, mut line, mut last) = (Vec::with_capacity(CHUNK + 4), first, line_end);
    // The end of the chunk before.
    let mut context = Vec::new();
    loop {
        // What is left of the last chunk is the beginning of a character.
        let before = chunk.len();
        input.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)?;
        let is_end = chunk.len() == before;
        let (valid, bad) = match std::str::from_utf8(&chunk) {
            Ok(text) => (text.len(), false),
            Err(error) => (error.valid_up_to(), error.error_len().is_some() || is_end),
        };
        let nul = chunk[..valid].iter().position(|byte| *byte == 0);
        let read = &chunk[..nul.unwrap_or(valid)];
        if let Some(Err(fault)) = csv.as_mut().map(|lexer| lexer.check(read)) {
            return Ok(Err(FileFault::Csv(fault)));
        }
        line += read.iter().filter(|byte| **byte == line_end).count() as u64;
        last = read.last().copied().unwrap_or(last);
        if nul.is_some() {
            return Ok(Err(FileFault::Nul { line }));
        }
        if bad {
            let text = around(&[&context[..], &chunk].concat(), context.len() + valid);
            return Ok(Err(FileFault::Encoding { line, byte: chunk[valid], text }));
        }
        if is_end {
            break;
        }
        context.extend(chunk.drain(..valid));
        context.drain(..context.len().saturating_sub(MAX_SHOWN));
    }
    if let Some(Err(fault)) = csv.map(|lexer| lexer.finish()) {
        return Ok(Err(FileFault::Csv(fault)));
    }
    // The last line need not end.
    Ok(Ok(line - first + u64::from(last != line_end)))
}

/// Returns the text around a byte as Windows-1252 has it.
fn around(bytes: &[u8], at: usize) -> String {
    let is_end = |byte: &u8| b",;\t|\"\r\n".contains(byte);
    let start = bytes[..at].iter().rposition(is_end).map_or(0, |end| end + 1).max(at.saturating_sub(MAX_SHOWN / 2));
    let text = bytes[start..].iter().take(MAX_SHOWN).take_while(|byte| !is_end(byte));
    text.map(|byte| windows_1252(*byte)).collect()
}

/// Returns the character of a byte in Windows-1252. Five bytes have none.
fn windows_1252(byte: u8) -> char {
    /// The characters of 0x80 to 0x9F. The others are those of Latin-1.
    const C1: &str = "€\u{fffd}‚ƒ„…†‡ˆ‰Š‹Œ\u{fffd}Ž\u{fffd}\u{fffd}‘’“”•–—˜™š›œ\u{fffd}žŸ";
    match byte {
        0x80..=0x9f => C1.chars().nth(usize::from(byte - 0x80)).unwrap_or('\u{fffd}'),
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns few bytes at a time.
    struct Slow<'t>(&'t [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let few = buffer.len().min(3);
            self.0.read(&mut buffer[..few])
        }
    }

    fn checked(text: &[u8], line_end: u8) -> Result<u64, FileFault> {
        check(Slow(text), Some(Lexer::new(b',', line_end, 1)), line_end, 1).unwrap()
    }

    #[test]
    fn a_file_is_checked_to_its_end() {
        assert_eq!(checked("a,b\nJosé,店\n\"x\ny\",2".as_bytes(), b'\n'), Ok(4));
        assert_eq!(checked(b"", b'\n'), Ok(0));
        let long = format!("a\n{}\n\"b", "é".repeat(CHUNK));
        assert_eq!(checked(long.as_bytes(), b'\n'), Err(FileFault::Csv(Fault::Unclosed { opened: 3 })));
        let long = [format!("a\n{}\nJos", "é".repeat(CHUNK)).as_bytes(), b"\xe9"].concat();
        let text = "José".to_owned();
        assert_eq!(checked(&long, b'\n'), Err(FileFault::Encoding { line: 3, byte: 0xe9, text }));
    }

    #[test]
    fn the_first_fault_of_a_file_is_told() {
        let encoding = |line, byte, text: &str| FileFault::Encoding { line, byte, text: text.to_owned() };
        for (text, want) in [
            (&b"Pr\xe9nom,email\n"[..], encoding(1, 0xe9, "Prénom")),
            (b"a\n1,O\x92Neil,2\n", encoding(2, 0x92, "O’Neil")),
            (b"a\n\x80 5", encoding(2, 0x80, "€ 5")),
            (b"a\n\xc3", encoding(2, 0xc3, "Ã")),
            (b"a\n\"x\"y\n\xe9", FileFault::Csv(Fault::AfterQuote { opened: 2, line: 2, is_escaped: false })),
            (b"a\0\n", FileFault::Nul { line: 1 }),
        ] {
            assert_eq!(checked(text, b'\n'), Err(want), "{}", text.escape_ascii());
        }
        assert_eq!(
            check(&b"{\"a\": \"\n"[..], None, b'\n', 1).unwrap(),
            Ok(1),
            "quotes of JSON are those of its lines"
        );
    }
}
