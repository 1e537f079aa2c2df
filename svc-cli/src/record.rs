//! Records for people: one description of a record makes the table of a list and the lines of `show`.

use std::fmt::Display;

use serde::Serialize;
use serde_json::{Value, json};
use svc_core::values::Timestamp;

use crate::output::{self, DASH};
use crate::table::Table;
use crate::times::{full, moment};

/// A property of a record: its label in `show`, its value, and its column in lists.
pub(crate) struct Property {
    /// Empty if `show` leaves it out.
    label: &'static str,
    content: Content,
    column: Option<(u8, &'static str)>,
}

enum Content {
    Nothing,
    Text(String),
    State(String),
    Time(Timestamp),
}

impl Property {
    /// Gives the property a column. A narrow terminal shows the columns with the lowest ranks.
    pub(crate) fn column(self, rank: u8, heading: &'static str) -> Self {
        Self { column: Some((rank, heading)), ..self }
    }
}

/// Describes a text.
pub(crate) fn text(label: &'static str, value: impl Display) -> Property {
    Property { label, content: Content::Text(value.to_string()), column: None }
}

/// Describes a text that there may not be.
pub(crate) fn optional(label: &'static str, value: Option<impl Display>) -> Property {
    let content = value.map_or(Content::Nothing, |value| Content::Text(value.to_string()));
    Property { label, content, column: None }
}

/// Describes a state, which has a colour in lists.
pub(crate) fn state(label: &'static str, value: impl Display) -> Property {
    Property { label, content: Content::State(value.to_string()), column: None }
}

/// Describes a time that there may not be. `show` adds how long ago it is.
pub(crate) fn time(label: &'static str, at: impl Into<Option<Timestamp>>) -> Property {
    Property { label, content: at.into().map_or(Content::Nothing, Content::Time), column: None }
}

/// Formats a record as lines.
pub(crate) fn details(fields: impl IntoIterator<Item = Property>) -> String {
    let shown = fields.into_iter().filter(|field| !field.label.is_empty());
    output::fields(shown.map(|Property { label, content, .. }| match content {
        Content::Nothing => (label, DASH.to_owned()),
        Content::Text(text) | Content::State(text) => (label, text),
        Content::Time(at) => (label, moment(at)),
    }))
}

/// Formats records as a table.
pub(crate) fn table<R>(records: &[R], describe: impl Fn(&R) -> Vec<Property>) -> Table {
    let columns = |record: &R| {
        let mut fields = describe(record);
        fields.retain(|field| field.column.is_some());
        fields.sort_by_key(|field| field.column);
        fields
    };
    let headings: Vec<_> =
        records.first().map(columns).into_iter().flatten().filter_map(|field| field.column).collect();
    Table::new(headings.into_iter().map(|(_, heading)| heading), records, |record| {
        columns(record).into_iter().map(|field| match field.content {
            Content::Nothing => DASH.to_owned(),
            Content::Text(text) => text,
            Content::State(text) => output::state(text),
            Content::Time(at) => full(at),
        })
    })
}

/// Returns a record as JSON without some of its members.
pub(crate) fn json_without(record: &impl Serialize, names: &[&str]) -> Value {
    let mut json = json!(record);
    if let Some(members) = json.as_object_mut() {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
    json
}
