//! Records as JSON, for responses.
//!
//! [`WriteJson`] writes what serde_json writes for the same value, byte by byte, in about a third of the instructions: the
//! names of the fields are constants, so they are copied and not searched for characters to escape, and a text is searched
//! several bytes at a time. A list of 50 records has hundreds of both.
//!
//! # Examples
//!
//! ```
//! use serde::Serialize;
//! use svc_core::output::WriteJson;
//! use svc_core::values::Text;
//!
//! #[derive(Serialize, WriteJson)]
//! struct Room {
//!     name: Text<100>,
//!     floor: Option<i32>,
//! }
//!
//! let room = Room { name: Text::parse("The \"Harbour\" room")?, floor: None };
//! let mut json = Vec::new();
//! room.write_json(&mut json);
//! assert_eq!(json, br#"{"name":"The \"Harbour\" room","floor":null}"#);
//! assert_eq!(json, serde_json::to_vec(&room).unwrap());
//! # Ok::<(), svc_core::error::Issue>(())
//! ```

use std::io::Write as _;

pub use svc_derive::WriteJson;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// A value that is written as JSON. `#[derive(WriteJson)]` implements it for structs, beside serde's `Serialize`.
pub trait WriteJson {
    /// Appends the JSON of the value, which is what serde_json writes for it.
    fn write_json(&self, out: &mut Vec<u8>);
}

impl<T: WriteJson + ?Sized> WriteJson for &T {
    fn write_json(&self, out: &mut Vec<u8>) {
        T::write_json(self, out);
    }
}

impl<T: WriteJson> WriteJson for Option<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write_json(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl<T: WriteJson> WriteJson for Vec<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        let begin = out.len();
        for (position, element) in self.iter().enumerate() {
            if position == 1 {
                // The others are about as long as the first one. What did not fit would be copied as a whole.
                let first = out.len() - begin;
                out.reserve(first.saturating_add(first / 8).saturating_mul(self.len()));
            }
            if position > 0 {
                out.push(b',');
            }
            element.write_json(out);
        }
        out.push(b']');
    }
}

impl WriteJson for bool {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

impl WriteJson for i32 {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_display(self, out);
    }
}

impl WriteJson for u32 {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_display(self, out);
    }
}

impl WriteJson for str {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        if has_escapes(self.as_bytes()) {
            write_escaped(self, out);
        } else {
            out.extend_from_slice(self.as_bytes());
        }
        out.push(b'"');
    }
}

impl WriteJson for String {
    fn write_json(&self, out: &mut Vec<u8>) {
        self.as_str().write_json(out);
    }
}

impl WriteJson for Uuid {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut text = [b'"'; Hyphenated::LENGTH + 2];
        self.hyphenated().encode_lower(&mut text[1..=Hyphenated::LENGTH]);
        out.extend_from_slice(&text);
    }
}

/// Writes a number, whose digits are its JSON.
pub(crate) fn write_display(number: &impl std::fmt::Display, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = write!(out, "{number}");
}

/// Returns whether a byte has to be escaped: a control character, a quotation mark or a backslash.
fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns whether a text contains a byte that has to be escaped. The last chunk may overlap with those before.
fn has_escapes(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<16>() {
        text.as_chunks().0.iter().chain([last]).any(has_escapes_in_chunk)
    } else if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        has_escapes_in_chunk(first) || has_escapes_in_chunk(last)
    } else {
        text.iter().any(|byte| is_escaped(*byte))
    }
}

/// Returns whether one of a few bytes has to be escaped. It looks at all of them, which takes a few instructions of the
/// processor together.
fn has_escapes_in_chunk<const N: usize>(bytes: &[u8; N]) -> bool {
    bytes.iter().fold(false, |found, byte| found | is_escaped(*byte))
}

/// Writes a text with characters that have to be escaped, which few have.
#[cold]
fn write_escaped(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(br"\b"),
            0x0c => out.extend_from_slice(br"\f"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            control @ ..0x20 => {
                let _ = write!(out, "\\u{control:04x}");
            }
            byte => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;

    use super::*;

    fn written(value: &(impl WriteJson + ?Sized)) -> String {
        let mut out = Vec::new();
        value.write_json(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_character_is_escaped_as_serde_json_does() {
        for character in (0..=0x2ff).filter_map(char::from_u32) {
            // At every place of a group of eight bytes, and behind the last group.
            for before in 0..=17 {
                let text = format!("{}{character}{}", "x".repeat(before), "y".repeat(before % 5));
                assert_eq!(written(&text), serde_json::to_string(&text).unwrap(), "{character:?} after {before}");
            }
        }
    }

    proptest! {
        #[test]
        fn texts_and_numbers_are_written_as_serde_json_does(
            texts: Vec<Option<String>>, number: i32, count: u32, flag: bool, id: u128
        ) {
            #[derive(Serialize, WriteJson)]
            struct All {
                texts: Vec<Option<String>>,
                number: i32,
                count: u32,
                #[serde(skip_serializing_if = "Vec::is_empty")]
                flags: Vec<bool>,
                id: Uuid,
            }
            let flags = if flag { vec![flag, !flag] } else { Vec::new() };
            let all = All { texts, number, count, flags, id: Uuid::from_u128(id) };
            prop_assert_eq!(written(&all), serde_json::to_string(&all).unwrap());
        }
    }
}
