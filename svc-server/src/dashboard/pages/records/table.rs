//! Records as a table.

use serde_json::{Map, Value};

use super::values::{is_amount, text};
use super::{FieldValues, name, short};
use crate::dashboard::pages::kinds::Kind;
use crate::dashboard::prelude::*;

/// Returns a table of records. The column of the field `without` is left out.
pub(super) fn record_table(
    cx: &Context<'_>,
    kind: &Kind,
    records: &[Map<String, Value>],
    values: &FieldValues<'_>,
    without: &str,
) -> Markup {
    let columns: Vec<&(&str, &str)> = kind.columns.iter().filter(|(_, field)| *field != without).collect();
    let headings: Vec<&str> = std::iter::once("Name").chain(columns.iter().map(|(heading, _)| *heading)).collect();
    table(
        kind.title,
        &headings,
        html! {
            @for record in records {
                tr {
                    th scope="row" {
                        a href=(cx.url(&kind.path(text(record, "id")))) { (short(&name(kind, record))) }
                    }
                    @for (_, field) in &columns {
                        td class=[class(field)] { (values.value(record, field)) }
                    }
                }
            }
        },
    )
}

/// Returns the class of the cells of a field: those of amounts are aligned, and phone numbers stay in a line.
fn class(field: &str) -> Option<&'static str> {
    match field {
        "phone" => Some("fixed"),
        field if is_amount(field) => Some("number"),
        _ => None,
    }
}
