//! Email addresses.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::text::invisible_in;
use crate::error::{FieldCode, Issue};

/// The greatest length of an address in characters (RFC 5321 §4.5.3.1.3, without the angle brackets).
const MAX_LENGTH: usize = 254;

/// An email address: valid by the rule of HTML's `<input type=email>`, with a dot in the domain.
///
/// It is kept as it was sent and compared without regard to case.
///
/// ```
/// use svc_core::values::Email;
/// let email = Email::parse("Ada@Example.com").unwrap();
/// assert_eq!(email.as_str(), "Ada@Example.com");
/// assert_eq!(email.key(), "ada@example.com");
/// assert!(Email::parse("ada@localhost").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(Box<str>);

impl Email {
    /// Trims and checks an address.
    ///
    /// # Errors
    /// `too_short` if it is empty, `too_long` over 254 characters, and `invalid_format` if it is no address.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Issue::new(FieldCode::TooShort, "must not be empty"));
        }
        if text.chars().count() > MAX_LENGTH {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_LENGTH} characters")));
        }
        if !is_address(text) {
            return Err(Issue::new(FieldCode::InvalidFormat, refusal(text)));
        }
        Ok(Self(text.into()))
    }

    /// Returns an address from the store, which was checked before it was stored.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the address as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address in lower case. Addresses that differ only in case have the same key.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

/// Returns what is wrong with a text that is no address.
fn refusal(text: &str) -> Cow<'static, str> {
    const FORM: &str = "must be an email address such as ada@example.com";
    if let Some(invisible) = invisible_in(text) {
        return format!("{FORM}; it has the invisible character {invisible}").into();
    }
    // What remains of a + in a query that was not encoded.
    if text.contains(' ') && is_address(&text.replace(' ', "+")) {
        return format!("{FORM}, without a space; a + is written %2B in a query").into();
    }
    FORM.into()
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let local_char = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    !local.is_empty() && local.chars().all(local_char) && domain.contains('.') && domain.split('.').all(label)
}

text_value!([] Email, as_str);

impl JsonSchema for Email {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Email".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_serialize() {
            // HTML's rule takes addresses that RFC 5321 does not, such as a..b@example.com.
            return json_schema!({ "type": "string" });
        }
        json_schema!({ "type": "string", "format": "email", "maxLength": MAX_LENGTH })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_follows_the_html5_rule_and_has_a_dot_in_its_domain() {
        let long = format!("{}@example.com", "x".repeat(242));
        for good in ["a@b.co", "o'brien+tag@sub.example.com", "x@1.2", " ada@example.com ", &long] {
            assert!(Email::parse(good).is_ok(), "{good}");
        }
        let too_long = format!("x{long}");
        for bad in [
            "",
            " ",
            "ada",
            "@example.com",
            "ada@",
            "ada@example",
            "ada@.com",
            "ada@example.",
            "a b@example.com",
            "ada@-x.com",
            "ada@x-.com",
            "ada@ex_ample.com",
            "ada@@example.com",
            "adä@example.com",
            "a\n@b.co",
            &too_long,
        ] {
            assert!(Email::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_shows_what_nobody_sees() {
        for (text, want) in [
            ("cleo@example.com\u{200b}", "; it has the invisible character U+200B at the end"),
            ("\u{feff}cleo@example.com", "; it has the invisible character U+FEFF at the beginning"),
            ("cl\u{ad}eo@example.com", "; it has the invisible character U+00AD after \"cl\""),
            ("cleo\u{a0}b@example.com", "; it has the invisible character U+00A0 after \"cleo\""),
            ("cleo tag@example.com", ", without a space; a + is written %2B in a query"),
            ("cleo", ""),
        ] {
            let issue = Email::parse(text).unwrap_err();
            assert_eq!(issue.message, format!("must be an email address such as ada@example.com{want}"), "{text:?}");
        }
    }
}
