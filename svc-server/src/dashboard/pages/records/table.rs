//! Records as a table.

use serde_json::{Map, Value};

use super::values::{is_amount, is_zero, text};
use super::{FieldValues, name, selected, short};
use crate::dashboard::pages::kinds::Kind;
use crate::dashboard::prelude::*;

/// Returns a table of records. The column of the field `without` is left out. Where something can be done with several of them,
/// they can be selected.
pub(super) fn record_table(
    cx: &Context<'_>,
    kind: &Kind,
    records: &[Map<String, Value>],
    values: &FieldValues<'_>,
    without: &str,
    is_selectable: bool,
) -> Markup {
    let columns: Vec<&(&str, &str)> = kind.columns.iter().filter(|(_, field)| *field != without).collect();
    let is_number = kind.name.first().is_some_and(|field| field.ends_with("_number"));
    let heading = if is_number { "Number" } else { "Name" };
    let first = is_selectable.then_some("Select").into_iter().chain([heading]);
    let headings: Vec<&str> = first.chain(columns.iter().map(|(heading, _)| *heading)).collect();
    table(
        kind.title,
        &headings,
        html! {
            @for record in records {
                @let name = short(&name(kind, record));
                tr {
                    @if is_selectable { (selected::cell(cx, record, &name)) }
                    th scope="row" class=[is_number.then_some("short")] {
                        a href=(cx.url(&kind.path(text(record, "id")))) { (name) }
                    }
                    @for (_, field) in &columns {
                        td class=[class(record, field)] { (values.value(record, field)) }
                    }
                }
            }
        },
    )
}

/// Returns the class of the cells of a field: those of amounts are aligned, and a card leaves out the name of a field that its
/// value tells, and the fields that matter least.
fn class(record: &Map<String, Value>, field: &str) -> Option<&'static str> {
    match field {
        "phone" => Some("plain fixed"),
        "contact_id" | "status" | "email" | "company_name" | "title" | "city" => Some("plain"),
        "created_at" | "issue_date" | "end_time" => Some("wide"),
        // All is left, or nothing.
        "outstanding" if record.get(field) == record.get("total") || is_zero(record.get(field)) => Some("number wide"),
        "outstanding" => Some("number left"),
        field if is_amount(field) => Some("number"),
        _ => None,
    }
}
