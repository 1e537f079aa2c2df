//! The filters of lists. They are in the query, so that a list can be linked to.

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use svc_core::values::{Date, Timestamp};

use super::kinds::Kind;
use super::records::words;
use crate::dashboard::prelude::*;

/// The time spans of lists: the values in the query, their texts, and their hours.
const SPANS: [(&str, &str, u32); 6] = [
    ("", "Any time", 0),
    ("1h", "Last hour", 1),
    ("6h", "Last 6 hours", 6),
    ("24h", "Last 24 hours", 24),
    ("7d", "Last 7 days", 7 * 24),
    ("30d", "Last 30 days", 30 * 24),
];
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Returns a value of the query, if it is given.
pub(super) fn value<T: FromStr>(cx: &Context<'_>, name: &str) -> Result<Option<T>, PageError> {
    value_of(&cx.query, name)
}

/// Returns a value of a query or of a form, if it is given.
pub(super) fn value_of<T: FromStr>(fields: &Form, name: &str) -> Result<Option<T>, PageError> {
    let refused = |text: &str| PageError::Invalid(format!("“{text}” is no value of the filter “{name}”."));
    fields.given(name).map(|text| text.parse().map_err(|_| refused(text))).transpose()
}

/// Returns the time at which a span of the query or of a form begins. `None` for any time.
pub(super) fn begins(cx: &Context<'_>, span: &str) -> Result<Option<Timestamp>, PageError> {
    let known = SPANS.iter().find(|(value, ..)| *value == span);
    let (_, _, hours) = known.ok_or_else(|| PageError::Invalid(format!("“{span}” is no time span.")))?;
    Ok((*hours > 0).then(|| cx.now.minus(HOUR * *hours)))
}

/// Returns the options of time spans.
pub(super) fn spans(chosen: &str) -> Markup {
    let values = SPANS.map(|(value, text, _)| (value.to_owned(), text.to_owned()));
    options(chosen, values)
}

/// Returns the options of time spans of a list that keeps one day.
pub(super) fn spans_of_day(chosen: &str) -> Markup {
    let is_shorter = |(_, _, hours): &&(&str, &str, u32)| *hours < 24;
    let text = |value: &str, text: &str| if value.is_empty() { "Last 24 hours".to_owned() } else { text.to_owned() };
    let values = SPANS.iter().filter(is_shorter).map(|(value, name, _)| ((*value).to_owned(), text(value, name)));
    options(chosen, values)
}

/// Returns the period of the query: one of the spans of days, or from one date to another, both included, in the zone of the
/// account.
pub(super) fn period(cx: &Context<'_>, tenant: &Tenant) -> Result<Range<Timestamp>, PageError> {
    let date = |name| value::<Date>(cx, name);
    let zone = &tenant.time_zone;
    let span = begins(cx, cx.query.text("within"))?;
    let since = date("since")?.map(|date| zone.date_begins(date));
    let until = date("until")?.map(|date| zone.date_begins(date.plus_days(1)));
    let since = span.into_iter().chain(since).max().unwrap_or(Timestamp::from_micros(0));
    Ok(since..until.unwrap_or(Timestamp::MAX))
}

/// Returns the filters that [`period`] reads. `label` says what happened then.
pub(super) fn period_fields(cx: &Context<'_>, label: &str) -> Markup {
    let is_of_days = |(_, _, hours): &&(&str, &str, u32)| *hours == 0 || *hours >= 24;
    let spans = SPANS.iter().filter(is_of_days).map(|(value, text, _)| ((*value).to_owned(), (*text).to_owned()));
    let date = |name: &str, label: &str| {
        html! { label { (label) input type="date" name=(name) value=(cx.query.text(name)); } }
    };
    html! {
        (choice("within", label, options(cx.query.text("within"), spans)))
        (date("since", "From"))
        (date("until", "Until"))
    }
}

/// Returns options, of which one is chosen.
pub(super) fn options(chosen: &str, options: impl IntoIterator<Item = (String, String)>) -> Markup {
    html! {
        @for (value, text) in options {
            option value=(value) selected[value == chosen] { (text) }
        }
    }
}

/// Returns a filter with one of a few values.
pub(super) fn choice(name: &str, label: &str, options: Markup) -> Markup {
    html! { label { (label) select name=(name) { (options) } } }
}

/// Returns a filter with one of these values and their texts, or any of them.
pub(super) fn one_of(
    cx: &Context<'_>,
    name: &str,
    label: &str,
    any: &str,
    values: impl IntoIterator<Item = (String, String)>,
) -> Markup {
    let any = std::iter::once((String::new(), any.to_owned()));
    choice(name, label, options(cx.query.text(name), any.chain(values)))
}

/// Returns the filter of the statuses of a kind of record, if it has any.
pub(super) fn statuses(cx: &Context<'_>, kind: &Kind) -> Markup {
    let statuses = (kind.statuses)();
    let statuses = statuses.iter().map(|status| ((*status).to_owned(), capitalized(&words(status))));
    html! { @if statuses.len() > 0 { (one_of(cx, "status", "Status", "All statuses", statuses)) } }
}

/// Returns a filter that is typed in.
pub(super) fn text(cx: &Context<'_>, name: &str, label: &str) -> Markup {
    html! { label { (label) input type="text" name=(name) value=(cx.query.text(name)) autocomplete="off"; } }
}

/// Returns the filter of event kinds.
pub(super) fn kinds(cx: &Context<'_>) -> Markup {
    let kinds = cx.svc.store().env().event_kinds.all().map(|kind| (kind.to_string(), kind.to_string()));
    one_of(cx, "kind", "Event", "All kinds", kinds)
}

/// Returns the URL of the list at `path` with those filters of the query that have these names, and with more parameters.
pub(super) fn url(cx: &Context<'_>, path: &str, names: &[&str], more: &[(&str, &str)]) -> String {
    let queries = [cx.query.encoded(names), layout::query(more)];
    let queries: Vec<&str> = queries.iter().map(String::as_str).filter(|query| !query.is_empty()).collect();
    if queries.is_empty() { cx.url(path) } else { cx.url(&format!("{path}?{}", queries.join("&"))) }
}

/// Returns the links to the other pages of a list, and to its CSV file.
pub(super) fn pages(
    cx: &Context<'_>,
    path: &str,
    names: &[&str],
    is_later: bool,
    older: Option<(&str, &str)>,
) -> Markup {
    let newest = is_later.then(|| url(cx, path, names, &[]));
    page_links(
        "Pages of the list",
        newest,
        html! {
            @if let Some(older) = older { a.button href=(url(cx, path, names, &[older])) { "Older" } }
            a.button href=(url(cx, path, names, &[("format", "csv")])) download { "Download CSV" }
        },
    )
}

/// A list with filters.
pub(super) struct List<'a> {
    pub(super) path: &'a str,
    pub(super) filters: Markup,
    pub(super) is_filtered: bool,
    pub(super) icon: &'a str,
    /// The title, the text and the first step that an empty list shows when no filter is set.
    pub(super) none: (&'a str, &'a str, Markup),
    /// The text that it shows when nothing meets the filters.
    pub(super) nothing: &'a str,
    /// `None` if there are none.
    pub(super) rows: Option<Markup>,
}

/// Returns the filters of a list and its rows, or why there are none.
pub(super) fn list(cx: &Context<'_>, list: List<'_>) -> Markup {
    let List { path, filters, is_filtered, icon, none: (title, text, action), nothing, rows } = list;
    html! {
        (form(cx, path, filters, is_filtered))
        @match rows {
            Some(rows) => { (rows) }
            None if is_filtered => { (empty(icon, "Nothing found", nothing, html! {})) }
            None => { (empty(icon, title, text, action)) }
        }
    }
}

/// Returns the checkbox that shows the fields of a form on a phone.
pub(super) fn fold(label: &str, is_open: bool) -> Markup {
    html! { label.fold { input type="checkbox" checked[is_open]; (label) } }
}

/// Returns the form of the filters of the list at `path`.
pub(super) fn form(cx: &Context<'_>, path: &str, filters: Markup, is_filtered: bool) -> Markup {
    html! {
        form.filters method="get" action=(cx.url(path)) {
            (fold("Filters", is_filtered))
            (filters)
            button type="submit" { "Filter" }
            @if is_filtered { a.button href=(cx.url(path)) { "Clear" } }
        }
    }
}
