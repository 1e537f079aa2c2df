//! The line below the heading of a record, which says what the record is about.

use serde_json::{Map, Value};
use svc_core::prelude::*;

use super::values::{is_zero, money, text};
use super::{FieldValues, short};
use crate::dashboard::prelude::*;

/// The most characters of a part that stays in one line.
const LINE: usize = 30;

/// Returns what a record is about in a line: its number where its title is the heading, the contact, the amount, and when it is due or takes
/// place. For a contact, how it is reached.
pub(super) fn summary(
    number: String,
    record: &Map<String, Value>,
    values: &FieldValues<'_>,
    zone: &TimeZone,
    now: Timestamp,
) -> Markup {
    let amount = ["outstanding", "total", "actual_total", "estimated_total"];
    let amount = amount.iter().find_map(|field| record.get(*field).filter(|amount| !is_zero(Some(amount))));
    let amount = amount.map(|amount| match record.get("total") {
        Some(total) if total != amount => format!("{} left of {}", money(record, amount), money(record, total)),
        _ => money(record, amount),
    });
    let due = || match (text(record, "status"), Date::parse(text(record, "due_date"))) {
        ("paid", _) => {
            Some(format!("paid {}", zone.date_at(Timestamp::parse(text(record, "paid_at")).ok()?).in_words()))
        }
        ("cancelled", _) | (_, Err(_)) => None,
        ("overdue", Ok(due)) => match zone.date_at(now).days() - due.days() {
            1 => Some("1 day overdue".to_owned()),
            days => Some(format!("{days} days overdue")),
        },
        (_, Ok(due)) => Some(format!("due {}", due.in_words())),
    };
    let date = |field, words: &str| Some(format!("{words} {}", Date::parse(text(record, field)).ok()?.in_words()));
    let time = |field| Some(minute_in_words(zone, Timestamp::parse(text(record, field)).ok()?));
    let words = |field| Some(short(&without_bidi_controls(text(record, field)))).filter(|words| !words.is_empty());
    let parts = [
        Some(number).filter(|number| !number.is_empty()),
        words("phone"),
        words("city"),
        values.contact(text(record, "contact_id")).map(|name| short(&without_bidi_controls(name))),
        amount,
        due().or_else(|| date("valid_until", "valid until")),
        time("start_time").or_else(|| time("scheduled_start")),
    ];
    let is_short = |part: &str| part.chars().count() <= LINE;
    html! {
        @for (at, part) in parts.iter().flatten().enumerate() {
            @if at > 0 { " · " }
            span.nowrap[is_short(part)] { (part) }
        }
    }
}
