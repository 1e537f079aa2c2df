//! The name of an event kind of the application that embeds the service.

use std::fmt;

/// The name of an event kind that is not one of the service itself, such as `order.shipped`.
///
/// It consists of two or more words of lower-case letters, digits and underscores, separated by dots, and begins with a
/// letter. It has at most 64 characters, and is held in place, so that a kind is `Copy`, also one of an application.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindName {
    /// Filled up with zeros.
    bytes: [u8; KindName::MAX_LENGTH],
}

impl KindName {
    /// The greatest length of a name, in characters.
    pub const MAX_LENGTH: usize = 64;
    /// The regular expression that every name matches.
    pub const PATTERN: &str = r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$";

    /// Returns the name, or `None` if the text is none.
    ///
    /// ```
    /// use svc_core::values::KindName;
    /// assert!(KindName::from_text("order.shipped").is_some());
    /// assert!(KindName::from_text("Order.Shipped").is_none() && KindName::from_text("shipped").is_none());
    /// ```
    pub fn from_text(text: &str) -> Option<Self> {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_word_byte);
        let begins_with_letter = text.starts_with(|first: char| first.is_ascii_lowercase());
        if !begins_with_letter || !text.contains('.') || !text.split('.').all(is_word) {
            return None;
        }
        let mut bytes = [0; Self::MAX_LENGTH];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { bytes })
    }

    /// Returns the text of the name.
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX_LENGTH);
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

fn is_word_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')
}

impl fmt::Debug for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_separated_by_dots() {
        let longest = format!("a.{}", "b".repeat(62));
        for good in ["order.shipped", "a.b", "a1_.2_", "order.line.added", &longest] {
            assert_eq!(KindName::from_text(good).map(|name| name.to_string()).as_deref(), Some(good));
        }
        let too_long = format!("{longest}b");
        for bad in [
            "",
            "*",
            "order",
            "order.",
            ".shipped",
            "1order.shipped",
            "_a.b",
            "a..b",
            "a.b c",
            "a-b.c",
            "Ä.b",
            &too_long,
        ] {
            assert_eq!(KindName::from_text(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_sort_as_their_texts() {
        let mut names = ["b.a", "a.b", "a.ba", "a.b.c"].map(|name| KindName::from_text(name).unwrap());
        names.sort();
        assert_eq!(names.map(|name| name.to_string()), ["a.b", "a.b.c", "a.ba", "b.a"]);
    }
}
