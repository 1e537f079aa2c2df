//! The audit log of an account.

use maud::{Markup, html};
use serde_json::Value;
use svc_core::accounts::audit::{Entry, object_word};
use svc_core::accounts::tenants::Tenant;
use svc_core::values::{TimeZone, Timestamp};

use crate::dashboard::components::{empty, heading, table, time};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};

/// The number of changes on a page.
const PAGE: u32 = 50;
/// The longest value of a field that is shown, in characters.
const MAX_VALUE: usize = 80;

/// Lists the changes, newest first.
pub(in crate::dashboard) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let until = cx.query.given("until").and_then(|at| Timestamp::parse(at).ok());
    let account = cx.svc.account(tenant.id);
    let mut entries = account.audit_log().before(until, PAGE + 1).await?;
    let older = cut(&mut entries);
    let about =
        "Who changed what. Changes of records are listed for as long as their events are kept, all others for good.";
    let content = html! {
        (heading("Audit log", about, html! {}))
        @if entries.is_empty() {
            (empty("audit", "No changes", "Every change of the account, its keys, its webhooks and its records is listed here.",
                html! {}))
        } @else {
            (entry_table(cx, &tenant.time_zone, &entries))
        }
        @if until.is_some() || older.is_some() {
            nav.pages aria-label="Pages of the log" {
                @if until.is_some() { a.button href=(cx.url("/audit")) { "Newest" } } @else { span {} }
                @if let Some(older) = older {
                    a.button href=(cx.url(&format!("/audit?{}", layout::query(&[("until", &older)])))) { "Older" }
                }
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Audit log", &content))
}

/// Leaves a page of the entries, and returns the time before which the next page begins, if there is one. Changes of the
/// same time stay on one page.
fn cut(entries: &mut Vec<Entry>) -> Option<String> {
    let next = entries.get(PAGE as usize)?.at;
    entries.truncate(PAGE as usize);
    while entries.len() > 1 && entries.last().is_some_and(|last| last.at == next) {
        entries.pop();
    }
    entries.last().map(|last| last.at.to_string())
}

/// Returns a table of changes.
pub(super) fn entry_table(cx: &Context<'_>, zone: &TimeZone, entries: &[Entry]) -> Markup {
    table(
        "Changes",
        &["Change", "What changed", "Who", "When"],
        html! {
            @for entry in entries {
                tr {
                    th scope="row" {
                        (entry.action) " " (object_word(&entry.object_kind).replace('_', " "))
                        div.soft { (object(cx, entry)) }
                    }
                    td { (difference(entry)) }
                    td { (entry.actor) }
                    td { (time(cx.now, zone, entry.at)) }
                }
            }
        },
    )
}

/// Returns the id of the object, linked to its page if it has one.
fn object(cx: &Context<'_>, entry: &Entry) -> Markup {
    let id = entry.object_id;
    let folder = match entry.object_kind.as_str() {
        kind @ ("contact" | "invoice" | "quote" | "booking" | "job") => Some(format!("/{kind}s")),
        _ => None,
    };
    html! {
        @if let Some(folder) = folder {
            a href=(cx.url(&format!("{folder}/{id}"))) { code { (id) } }
        } @else {
            code { (id) }
        }
    }
}

/// Returns the fields that an update changed, with the values before and after it.
fn difference(entry: &Entry) -> Markup {
    let object = |json: &Option<Box<serde_json::value::RawValue>>| {
        json.as_ref().and_then(|json| serde_json::from_str::<serde_json::Map<String, Value>>(json.get()).ok())
    };
    let (Some(before), Some(after)) = (object(&entry.before), object(&entry.after)) else { return html! {} };
    let changed: Vec<(&String, &Value, &Value)> = after
        .iter()
        .filter_map(|(name, value)| Some((name, before.get(name)?, value)))
        .filter(|(name, old, new)| old != new && *name != "updated_at")
        .collect();
    html! {
        @for (name, old, new) in changed {
            div { (name) ": " span.soft { (short(old)) } " → " (short(new)) }
        }
    }
}

fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
