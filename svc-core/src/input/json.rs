//! Strict JSON (`docs/contract.md`, "Request bodies"): no duplicate key at any depth, no NUL, no more than 32 levels,
//! nothing after the value.
//!
//! serde_json parses the syntax. A number keeps the digits that the client wrote, so that money is exact.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, FieldCode, Issue, Violations};

/// The greatest depth of nested arrays and objects, with the outermost.
pub const MAX_DEPTH: usize = 32;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// A string without its escapes.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, with its members in the order they were written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Checks that every number can be read as a double, as most programs read numbers (RFC 8259 §6).
    ///
    /// # Errors
    /// `out_of_range` with the path of the first number that cannot.
    pub(crate) fn check_numbers(&self) -> Result<(), Issue> {
        let check = |name: &str, member: &Self| member.check_numbers().map_err(|issue| issue.within(name));
        match self {
            Self::Number(number) if !number.parse::<f64>().is_ok_and(f64::is_finite) => {
                Err(Issue::new(FieldCode::OutOfRange, "must be a number between -1.7e308 and 1.7e308"))
            }
            Self::Array(items) => items.iter().enumerate().try_for_each(|(at, item)| check(&at.to_string(), item)),
            Self::Object(members) => members.iter().try_for_each(|(name, member)| check(name, member)),
            _ => Ok(()),
        }
    }

    fn wrong_type(&self, wanted: &'static str) -> Issue {
        // What is a number or a word of JSON but for the quotes around it.
        let is_quoted = match self {
            Self::String(text) if wanted == "a number" => text.parse::<f64>().is_ok(),
            Self::String(text) if wanted == "true or false" => text == "true" || text == "false",
            _ => false,
        };
        match self {
            Self::Null => Issue::new(FieldCode::NotNullable, "must not be null"),
            _ if is_quoted => Issue::new(FieldCode::InvalidType, format!("must be {wanted}, without quotes")),
            _ => Issue::new(FieldCode::InvalidType, format!("must be {wanted}")),
        }
    }

    /// Returns the string.
    ///
    /// # Errors
    /// `not_nullable` for null, and `invalid_type` for any other type.
    pub fn into_string(self) -> Result<String, Issue> {
        match self {
            Self::String(text) => Ok(text),
            other => Err(other.wrong_type("a string")),
        }
    }

    /// Returns the number as it was written.
    ///
    /// # Errors
    /// As for [`Json::into_string`].
    pub fn into_number(self) -> Result<String, Issue> {
        match self {
            Self::Number(text) => Ok(text),
            other => Err(other.wrong_type("a number")),
        }
    }

    /// Returns the boolean.
    ///
    /// # Errors
    /// As for [`Json::into_string`].
    pub fn into_bool(self) -> Result<bool, Issue> {
        match self {
            Self::Bool(value) => Ok(value),
            other => Err(other.wrong_type("true or false")),
        }
    }

    /// Returns the items of the array.
    ///
    /// # Errors
    /// As for [`Json::into_string`].
    pub fn into_array(self) -> Result<Vec<Self>, Issue> {
        match self {
            Self::Array(items) => Ok(items),
            other => Err(other.wrong_type("an array")),
        }
    }
}

/// Reads one JSON value, with nothing but white space around it.
///
/// # Errors
/// [`Error::InvalidJson`] if the bytes are no JSON or nest too deep; [`Error::Validation`] with the path of every
/// duplicate key and of every string with a NUL.
///
/// ```
/// use svc_core::input::json::{Json, parse};
/// assert_eq!(parse(b" [1.50] "), Ok(Json::Array(vec![Json::Number("1.50".into())])));
/// assert_eq!(parse(b"{\"a\":1,\"a\":2}").unwrap_err().code(), "validation_failed");
/// ```
pub fn parse(bytes: &[u8]) -> Result<Json, Error> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Error::InvalidJson(format!("The body must be UTF-8; it is not at byte {}.", error.valid_up_to()).into())
    })?;
    if text.trim().is_empty() {
        return Err(Error::InvalidJson("Send a JSON object as the body.".into()));
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(syntax)?;
    let mut reader = Reader { path: Vec::new(), violations: Violations::default() };
    let json = reader.read(raw.get())?;
    if reader.violations.is_empty() { Ok(json) } else { Err(Error::Validation(reader.violations)) }
}

/// Returns a value as JSON. Numbers stay as they were written.
pub(crate) fn to_text(json: &Json) -> String {
    let mut text = String::new();
    write_json(json, &mut text);
    text
}

fn write_json(json: &Json, text: &mut String) {
    let write_string = |string: &str, text: &mut String| {
        text.push_str(&serde_json::Value::from(string).to_string());
    };
    match json {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => text.push_str(number),
        Json::String(string) => write_string(string, text),
        Json::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_json(item, text);
            }
            text.push(']');
        }
        Json::Object(members) => {
            text.push('{');
            for (position, (name, member)) in members.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_string(name, text);
                text.push(':');
                write_json(member, text);
            }
            text.push('}');
        }
    }
}

fn syntax(error: serde_json::Error) -> Error {
    Error::InvalidJson(format!("The body must be valid JSON: {error}.").into())
}

/// Reads level by level. Each level is scanned again by the next, so at most [`MAX_DEPTH`] times.
struct Reader {
    path: Vec<String>,
    violations: Violations,
}

impl Reader {
    fn read(&mut self, raw: &str) -> Result<Json, Error> {
        let raw = raw.trim_matches([' ', '\n', '\r', '\t']);
        Ok(match raw.as_bytes().first() {
            Some(b'{') => Json::Object(self.read_object(raw)?),
            Some(b'[') => Json::Array(self.read_array(raw)?),
            Some(b'"') => {
                let text: String = serde_json::from_str(raw).map_err(|_| self.half_pair("text"))?;
                if text.contains('\0') {
                    self.refuse("must not contain a NUL character");
                }
                Json::String(text)
            }
            Some(b't') => Json::Bool(true),
            Some(b'f') => Json::Bool(false),
            Some(b'n') => Json::Null,
            _ => Json::Number(raw.to_owned()),
        })
    }

    fn descend(&mut self, key: String, raw: &str) -> Result<Json, Error> {
        // `path` has the levels above the parent. The parent is one more, and the child another.
        if self.path.len() + 2 > MAX_DEPTH && raw.starts_with(['{', '[']) {
            return Err(Error::InvalidJson(format!("The body must not nest deeper than {MAX_DEPTH} levels.").into()));
        }
        self.path.push(key);
        let json = self.read(raw);
        self.path.pop();
        json
    }

    fn read_array(&mut self, raw: &str) -> Result<Vec<Json>, Error> {
        let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(syntax)?;
        let read = |(i, item): (usize, &RawValue)| self.descend(i.to_string(), item.get());
        items.into_iter().enumerate().map(read).collect()
    }

    fn read_object(&mut self, raw: &str) -> Result<Vec<(String, Json)>, Error> {
        let Members(members) = serde_json::from_str(raw).map_err(|_| self.half_pair("a name"))?;
        let mut object: Vec<(String, Json)> = Vec::with_capacity(members.len());
        let mut seen = std::collections::HashSet::with_capacity(members.len());
        for (key, raw) in members {
            if key.contains('\0') {
                self.refuse("must not contain a NUL character");
            }
            if !seen.insert(key.clone()) {
                self.violate(&key, Issue::new(FieldCode::DuplicateKey, "must be sent only once"));
            }
            let value = self.descend(key.clone(), raw.get())?;
            object.push((key, value));
        }
        Ok(object)
    }

    /// Returns the error of an escape, which is all that the check of the syntax leaves to fail. It names the place, as its
    /// column would be that inside the text.
    fn half_pair(&self, what: &str) -> Error {
        let place = if self.path.is_empty() { "The body".to_owned() } else { self.path.join(".") };
        let reason =
            format!("{place} has {what} with half of a surrogate pair, such as \\ud83e; send both halves or neither.");
        Error::InvalidJson(reason.into())
    }

    /// Reports the value that is being read.
    fn refuse(&mut self, reason: &'static str) {
        if self.violations.is_full() {
            return;
        }
        let issue = Issue::new(FieldCode::InvalidFormat, reason);
        match self.path.join(".") {
            path if path.is_empty() => self.violations.push("body", issue),
            path => self.violations.push(&path, issue),
        }
    }

    fn violate(&mut self, key: &str, issue: Issue) {
        if self.violations.is_full() {
            return;
        }
        let mut path = self.path.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        self.violations.push(&path, issue);
    }
}

/// The members of an object as they were written, with duplicates.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8]) -> Result<(), String> {
        match parse(bytes) {
            Ok(_) => Ok(()),
            Err(Error::Validation(v)) => {
                Err(v.as_slice().iter().map(|v| format!("{} {}", v.field, v.code)).collect::<Vec<_>>().join(", "))
            }
            Err(other) => Err(other.code().to_owned()),
        }
    }

    fn nested(levels: usize) -> Vec<u8> {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels)).into_bytes()
    }

    #[test]
    fn only_one_strict_json_value_is_read() {
        for good in ["{}", " {\"a\" : [1, -0.5e+3, null, true, \"\\u00e9\"]}\n", "\"\\ud83d\\ude00\"", "1e400"] {
            assert_eq!(code(good.as_bytes()), Ok(()), "{good}");
        }
        for bad in [
            "",
            "  ",
            "{",
            "{}{}",
            "{} x",
            "{\"a\":1,}",
            "{'a':1}",
            "[01]",
            "[1.]",
            "[.5]",
            "[+1]",
            "[NaN]",
            "nul",
            "\"\\x41\"",
            "\"a\nb\"",
            "\u{feff}{}",
            "// no\n{}",
            "[1 2]",
        ] {
            assert_eq!(code(bad.as_bytes()), Err("invalid_json".into()), "{bad}");
        }
        assert_eq!(code(b"\"\xff\""), Err("invalid_json".into()));
    }

    #[test]
    fn duplicate_keys_and_nuls_are_reported_with_their_path() {
        assert_eq!(code(br#"{"a":1,"b":2,"a":3}"#), Err("a duplicate_key".into()));
        assert_eq!(code(br#"{"a":[{},{"x":1,"\u0078":2}]}"#), Err("a.1.x duplicate_key".into()));
        assert_eq!(code(br#"{"a":{"b":"x\u0000y"}}"#), Err("a.b invalid_format".into()));
        let half = |place: &str, what: &str| {
            format!("{place} has {what} with half of a surrogate pair, such as \\ud83e; send both halves or neither.")
        };
        for (body, want) in [
            (br#"{"a":{"b":["Mia \ud83e"]}}"#.as_slice(), half("a.b.0", "text")),
            (br#""\ud800""#, half("The body", "text")),
            (br#"{"a":{"\ud800":1}}"#, half("a", "a name")),
        ] {
            assert_eq!(parse(body), Err(Error::InvalidJson(want.into())));
        }
    }

    #[test]
    fn nesting_deeper_than_the_limit_is_refused() {
        assert_eq!(code(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(code(&nested(MAX_DEPTH + 1)), Err("invalid_json".into()));
        assert_eq!(code(&nested(100_000)), Err("invalid_json".into()));
    }

    #[test]
    fn at_most_100_failures_are_reported() {
        let long = "k".repeat(10_000);
        let body = format!(r#"{{"{long}":{{{}"a":1}}}}"#, r#""a":1,"#.repeat(5_000));
        let Err(Error::Validation(violations)) = parse(body.as_bytes()) else { panic!("it was accepted") };
        assert_eq!(violations.as_slice().len(), 100);
        assert!(violations.as_slice().iter().all(|violation| violation.message.len() < 300));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_json_like_text_panics(text in r#"[\[\]{}":,0-9a-z\\ ]{0,40}"#) {
            let _ = parse(text.as_bytes());
        }
    }
}
