//! JSON that others wrote: printed with its own numbers, which a float would round.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use svc_core::input::json::{self, Json};

use crate::output::plain;

/// A JSON value, or text that is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Document {
    Json(Json),
    Text(String),
}

impl Document {
    /// Whatever it is.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        json::parse(bytes).map_or_else(|_| Self::Text(String::from_utf8_lossy(bytes).into_owned()), Self::Json)
    }

    /// The member of an object.
    pub(crate) fn member(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Json(Json::Object(members)) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.member(name) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// JSON for people, indented; text as it is.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    plain(&serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string()))
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(json) => Exact(json).serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

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
    fn numbers_stay_as_they_are() {
        let text = r#"{"b":[1.50,1e400,-0],"a":{"x":null,"y":true},"c":"é\n"}"#;
        let document = Document::read(text.as_bytes());
        assert_eq!(serde_json::to_string(&document).unwrap(), text);
        assert_eq!(document.text("c"), Some("é\n"));
        assert_eq!((document.text("b"), document.text("x")), (None, None));
    }

    #[test]
    fn what_is_no_json_is_text() {
        assert_eq!(Document::read(b"a\xff"), Document::Text("a\u{fffd}".to_owned()));
        assert_eq!(serde_json::to_string(&Document::read(b"{")).unwrap(), r#""{""#);
    }
}
