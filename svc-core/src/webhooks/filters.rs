//! Filters of webhook subscriptions: which events a subscription receives, by what is in them (`docs/webhook-options.md`,
//! "Filters").
//!
//! ```text
//! data.city == "Perth" and not (data.total < 100)
//! event in ["invoice.paid", "invoice.refunded"] and data.currency != "AUD"
//! ```
//!
//! A filter compares members of the event with constants. It has no functions, loops or variables, so it always ends, with
//! true or false: a member that is not there is null, and values of different types are neither equal nor ordered.
//!
//! | Operator | Is true if |
//! |---|---|
//! | `==`, `!=` | the member is that constant, or is not |
//! | `<`, `<=`, `>`, `>=` | both are numbers, or both are strings, which are compared by their Unicode code points |
//! | `in [a, b]` | the member is one of the constants |
//! | `not`, `and`, `or` | as usual; `not` binds strongest, `or` weakest |
//!
//! Times of the API are in UTC and have one form, so they are ordered as strings.

mod parser;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::values::EventKind;

/// The greatest length of a filter, in characters.
pub const MAX_LENGTH: usize = 1000;

/// A filter of events.
///
/// ```
/// use serde_json::json;
/// use svc_core::values::EventKind;
/// use svc_core::webhooks::filters::Filter;
///
/// let filter: Filter = r#"data.city == "Perth" and not (data.total < 100)"#.parse().unwrap();
/// assert!(filter.matches(EventKind::JobCreated, &json!({ "city": "Perth", "total": 250 })));
/// assert!(!filter.matches(EventKind::JobCreated, &json!({ "city": "Perth", "total": 99.5 })));
/// let error = "data.city = 1".parse::<Filter>().unwrap_err();
/// assert_eq!(error.message, "is no filter: at character 11, expected ==, !=, <, <=, >, >= or in, and not =");
/// ```
#[derive(Clone)]
pub struct Filter {
    text: Arc<str>,
    expression: Arc<Expression>,
}

/// The parts of a filter.
#[derive(Debug)]
enum Expression {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Compare { path: Path, operator: Operator, constant: Value },
    In { path: Path, constants: Vec<Value> },
}

/// The member of an event that is compared.
#[derive(Debug)]
enum Path {
    /// The kind of the event.
    Event,
    /// A member of its data, within others.
    Data(Vec<Step>),
}

/// A step of a path: to a member of an object, or to an item of an array.
#[derive(Debug)]
enum Step {
    Member(String),
    Item(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Filter {
    /// Returns the filter as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the filter lets an event pass. `data` is the record of the event.
    pub fn matches(&self, kind: EventKind, data: &Value) -> bool {
        self.expression.holds(kind, data)
    }
}

impl Expression {
    fn holds(&self, kind: EventKind, data: &Value) -> bool {
        match self {
            Self::And(all) => all.iter().all(|one| one.holds(kind, data)),
            Self::Or(any) => any.iter().any(|one| one.holds(kind, data)),
            Self::Not(other) => !other.holds(kind, data),
            Self::Compare { path, operator, constant } => {
                path.with(kind, data, |found| operator.holds(found, constant))
            }
            Self::In { path, constants } => {
                path.with(kind, data, |found| constants.iter().any(|constant| Operator::Equal.holds(found, constant)))
            }
        }
    }
}

impl Path {
    /// Calls a function with the value at the path, which is null if there is none.
    fn with(&self, kind: EventKind, data: &Value, call: impl Fn(EventValue<'_>) -> bool) -> bool {
        let found = match self {
            Self::Event => return call(EventValue::Text(kind.as_str())),
            Self::Data(steps) => steps.iter().try_fold(data, |value, step| match step {
                Step::Member(name) => member(value, name),
                Step::Item(at) => value.get(at),
            }),
        };
        call(match found {
            Some(Value::String(text)) => EventValue::Text(text),
            Some(value) => EventValue::Other(value),
            None => EventValue::Other(&Value::Null),
        })
    }
}

/// Returns a member of an object. Records have few members, among which a search by their order is faster than one by a hash.
fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    const FEW: usize = 32;
    match value.as_object()? {
        few if few.len() <= FEW => few.iter().find(|(known, _)| *known == name).map(|(_, value)| value),
        many => many.get(name),
    }
}

/// A value of an event.
#[derive(Clone, Copy)]
enum EventValue<'a> {
    Text(&'a str),
    Other(&'a Value),
}

impl Operator {
    fn holds(self, found: EventValue<'_>, constant: &Value) -> bool {
        let order = match (found, constant) {
            (EventValue::Text(found), Value::String(constant)) => Some(found.cmp(constant.as_str())),
            (EventValue::Other(Value::Number(found)), Value::Number(constant)) => {
                match (found.as_i64(), constant.as_i64()) {
                    (Some(found), Some(constant)) => Some(found.cmp(&constant)),
                    _ => {
                        found.as_f64().zip(constant.as_f64()).and_then(|(found, constant)| found.partial_cmp(&constant))
                    }
                }
            }
            _ => None,
        };
        let is_equal = match (order, found) {
            (Some(order), _) => order.is_eq(),
            (None, EventValue::Other(found)) => found == constant,
            (None, EventValue::Text(_)) => false,
        };
        match self {
            Self::Equal => is_equal,
            Self::NotEqual => !is_equal,
            Self::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Self::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        }
    }
}

impl FromStr for Filter {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        if text.chars().count() > MAX_LENGTH {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_LENGTH} characters")));
        }
        let expression = parser::parse(text).map_err(|problem| {
            let at = text[..problem.at].chars().count() + 1;
            Issue::new(FieldCode::InvalidFormat, format!("is no filter: at character {at}, {}", problem.reason))
        })?;
        Ok(Self { text: text.into(), expression: Arc::new(expression) })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

/// Filters are equal if their texts are.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl FromJson for Filter {
    fn from_json(json: Json) -> Result<Self, Issue> {
        json.into_string()?.parse()
    }
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|issue: Issue| serde::de::Error::custom(issue.message))
    }
}

impl JsonSchema for Filter {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Filter".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "maxLength": MAX_LENGTH,
            "examples": ["data.city == \"Perth\" and not (data.total < 100)"],
        })
    }
}

#[cfg(test)]
mod tests;
