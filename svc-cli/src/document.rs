//! JSON of servers and files, printed with its numbers as they were written. A float would round them.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use svc_core::input::json::{self, Json};

/// A JSON value, or text that is not JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Document {
    Json(Json),
    Text(String),
}

impl Document {
    /// Parses bytes as JSON, or takes them as text if they are not JSON. Invalid UTF-8 is replaced.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        json::parse(bytes).map_or_else(|_| Self::Text(String::from_utf8_lossy(bytes).into_owned()), Self::Json)
    }

    /// Returns a member, if this is a JSON object that has it.
    pub(crate) fn member(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Json(Json::Object(members)) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.member(name) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(json) => Exact(json).serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Serializes JSON with its original numbers.
struct Exact<'a>(&'a Json);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(digits) => {
                serde_json::from_str::<&RawValue>(digits).map_err(S::Error::custom)?.serialize(serializer)
            }
            Json::String(text) => serializer.serialize_str(text),
            Json::Array(items) => serializer.collect_seq(items.iter().map(Exact)),
            Json::Object(members) => serializer.collect_map(members.iter().map(|(key, value)| (key, Exact(value)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_they_were_written() {
        let text = r#"{"b":[1.50,1e400,-0],"a":{"x":null,"y":true},"c":"é\n"}"#;
        let document = Document::parse(text.as_bytes());
        assert_eq!(serde_json::to_string(&document).unwrap(), text);
        assert_eq!(document.text("c"), Some("é\n"));
        assert_eq!((document.text("b"), document.text("x")), (None, None));
    }

    #[test]
    fn invalid_json_is_text() {
        assert_eq!(Document::parse(b"a\xff"), Document::Text("a\u{fffd}".to_owned()));
        assert_eq!(serde_json::to_string(&Document::parse(b"{")).unwrap(), r#""{""#);
    }
}
