//! Texts with a greatest length in Unicode code points (`docs/contract.md`, "Text fields").

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::error::{FieldCode, Issue};

/// One line of text: 1 to `MAX` characters, trimmed, without control characters and the line and paragraph separators of
/// Unicode (U+2028 and U+2029).
///
/// ```
/// use svc_core::values::Text;
/// assert_eq!(Text::<10>::parse("  Ada ").unwrap().as_str(), "Ada");
/// assert!(Text::<2>::parse("Ada").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<const MAX: usize>(Box<str>);

/// Text of at most `MAX` characters that may have several lines. It is kept exactly as it was sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Note<const MAX: usize>(Box<str>);

/// Returns whether a text has no control characters and no line breaks.
///
/// ```
/// use svc_core::values::is_one_line;
/// assert!(is_one_line("Zoë's 店"));
/// assert!(!is_one_line("a\nb") && !is_one_line("a\u{2028}b"));
/// ```
pub fn is_one_line(text: &str) -> bool {
    !text.chars().any(breaks_line)
}

/// Returns whether a character is no part of a line. Lines also end at the separators of Unicode, which are no control
/// characters.
fn breaks_line(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

/// Names the first character of a text that nobody sees, and where it is, such as `U+200B at the end`. Spaces other than the
/// common one count, as they look like it.
///
/// ```
/// use svc_core::values::invisible_in;
/// assert_eq!(invisible_in("cleo@example.com\u{200b}").as_deref(), Some("U+200B at the end"));
/// assert_eq!(invisible_in("cleo\u{ad}@example.com").as_deref(), Some("U+00AD after \"cleo\""));
/// assert_eq!(invisible_in("cleo@example.com"), None);
/// ```
pub fn invisible_in(text: &str) -> Option<String> {
    shown(text, is_invisible)
}

/// Names the first of these characters in a text, and where it is.
fn shown(text: &str, is_meant: impl Fn(char) -> bool) -> Option<String> {
    let (at, found) = text.char_indices().find(|(_, char)| is_meant(*char))?;
    let (before, after) = (&text[..at], &text[at + found.len_utf8()..]);
    let place = match before {
        "" => "at the beginning".to_owned(),
        _ if after.chars().all(is_meant) => "at the end".to_owned(),
        _ => {
            let start = before.char_indices().rev().nth(19).map_or(0, |(start, _)| start);
            format!("after {:?}", &before[start..])
        }
    };
    Some(format!("U+{:04X} {place}", u32::from(found)))
}

/// Returns whether a character shows nothing: a control or format character, or a space other than the common one.
fn is_invisible(char: char) -> bool {
    char.is_control()
        || char.is_whitespace() && char != ' '
        || matches!(
            char,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn check_length(text: &str, max: usize) -> Result<(), Issue> {
    // A text has no more code points than bytes, and bytes need no counting.
    if text.len() > max && text.chars().count() > max {
        return Err(Issue::new(FieldCode::TooLong, format!("must have at most {max} characters")));
    }
    Ok(())
}

impl<const MAX: usize> Text<MAX> {
    /// Trims and checks a text.
    ///
    /// # Errors
    /// `too_short` if nothing is left, `too_long`, and `invalid_format` for a control character or a line break.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Issue::new(FieldCode::TooShort, "must not be empty"));
        }
        if let Some(shown) = shown(text, breaks_line) {
            let reason = format!("must be one line without control characters; it has {shown}");
            return Err(Issue::new(FieldCode::InvalidFormat, reason));
        }
        check_length(text, MAX)?;
        Ok(Self(text.into()))
    }

    /// Returns a text from the store, which was checked before it was stored.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> Note<MAX> {
    /// Checks the length of a text, which is taken as it is.
    ///
    /// # Errors
    /// `too_long` if the text has more than `MAX` characters.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        check_length(text, MAX)?;
        Ok(Self(text.into()))
    }

    /// Returns a text from the store, which was checked before it was stored.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! string_impls {
    ($name:ident, least $least:literal) => {
        impl<const MAX: usize> fmt::Debug for $name<MAX> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        text_value!([const MAX: usize] $name<MAX>, as_str);

        impl<const MAX: usize> JsonSchema for $name<MAX> {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                format!("{}{MAX}", stringify!($name)).into()
            }
            /// Only schemas of input have the lengths. Responses promise none.
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                if generator.contract().is_serialize() {
                    return json_schema!({ "type": "string" });
                }
                json_schema!({ "type": "string", "minLength": $least, "maxLength": MAX })
            }
        }
    };
}

string_impls!(Text, least 1);
string_impls!(Note, least 0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::FromJson as _;
    use crate::input::json::Json;

    fn code(text: &str) -> Result<String, FieldCode> {
        Text::<5>::parse(text).map(|t| t.to_string()).map_err(|i| i.code)
    }

    #[test]
    fn a_text_is_trimmed_and_checked() {
        assert_eq!(code(" Zoë \u{a0}"), Ok("Zoë".into()));
        assert_eq!(code("ééééé"), Ok("ééééé".into()));
        assert_eq!(code("éééééé"), Err(FieldCode::TooLong));
        assert_eq!(code(" \t\n "), Err(FieldCode::TooShort));
        assert_eq!(code("a\nb"), Err(FieldCode::InvalidFormat));
        assert_eq!(code("a\u{85}b"), Err(FieldCode::InvalidFormat));
        assert_eq!(code("a\u{2028}b"), Err(FieldCode::InvalidFormat));
        assert_eq!(code("a\u{2029}b"), Err(FieldCode::InvalidFormat));
        let message = Text::<50>::parse("Ada\nKing").unwrap_err().message;
        assert_eq!(message, "must be one line without control characters; it has U+000A after \"Ada\"");
    }

    #[test]
    fn blank_text_is_null_on_a_nullable_field() {
        let read = |text: &str| Option::<Text<5>>::from_json(Json::String(text.into()));
        assert_eq!(read("   "), Ok(None));
        assert_eq!(read("a"), Ok(Some(Text("a".into()))));
        assert_eq!(Option::<Note<5>>::from_json(Json::String(String::new())), Ok(None));
    }

    #[test]
    fn a_note_is_kept_as_it_was_sent() {
        let note = Note::<9>::from_json(Json::String(" a\nb\t ".into())).unwrap();
        assert_eq!(note.as_str(), " a\nb\t ");
        assert!(Note::<2>::from_json(Json::String("abc".into())).is_err());
    }
}
