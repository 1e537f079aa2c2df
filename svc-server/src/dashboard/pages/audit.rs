//! The audit log of an account.

mod actors;
mod change_table;

use std::sync::Arc;

use svc_core::accounts::audit::object_word;
use svc_core::changes::{ChangeFilter, Changes, MAX_SEARCHED};
use svc_core::values::Timestamp;

pub(super) use self::change_table::ChangeTable;
use self::change_table::ChangeTexts;
use super::filters;
use crate::dashboard::csv;
use crate::dashboard::prelude::*;

/// The number of changes on a page.
const PAGE: u32 = 50;
/// The number of changes in a piece of a CSV file.
const CSV_PIECE: u32 = 100;
/// The memory in which changes are found and listed, in records: events with the record after each change, and with the one
/// before.
pub(crate) const MEMORY: u32 = 128;
/// The filters in the query.
const FILTERS: [&str; 6] = ["actor", "kind", "object", "within", "since", "until"];
/// The kinds of objects that the log names, besides those of events.
const KINDS: [&str; 10] =
    ["webhook", "delivery", "key", "grant", "app", "member", "session", "dashboard_link", "shared_link", "tenant"];

/// Those that are there with apps alone.
const KINDS_OF_APPS: [&str; 2] = ["grant", "app"];

/// Lists the changes, newest first.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let mut filter = filter(cx, tenant)?;
    if cx.query.text("format") == "csv" {
        return csv_file(cx, tenant, filter).await;
    }
    let before = cx.query.given("before").and_then(|at| Timestamp::parse(at).ok());
    filter.until = filter.until.into_iter().chain(before).min();
    let changes = cx.svc.account(tenant.id).audit_log().changes(filter, PAGE).await?;
    let rows = ChangeTable::new(cx, tenant, &changes.data).await?.with_requests(&changes.data).await?;
    let about = "The changes in this account, and who made them. Changes of records are listed for as long as their events are kept, all others for good.";
    let content = html! {
        (heading("Audit log", about, html! {}))
        (filters::list(cx, filters::List {
            path: "/audit",
            filters: html! {
                (rows.actors().filter(cx, tenant.id).await?)
                (kinds(cx))
                (filters::text(cx, "object", "Id of the object"))
                (filters::period_fields(cx, "When"))
            },
            is_filtered: before.is_some() || !cx.query.encoded(&FILTERS).is_empty(),
            icon: "audit",
            none: ("No changes", "Every change of the account, its keys, its webhooks and its records is listed here.", html! {}),
            nothing: "No change meets all filters.",
            rows: match &changes {
                Changes { data, .. } if !data.is_empty() => Some(rows.render(data)),
                Changes { next: Some(_), .. } => {
                    Some(empty("audit", "Nothing found so far", "Older changes may meet all filters.", html! {}))
                }
                _ => None,
            },
        }))
        @if changes.is_cut && let Some(next) = changes.next {
            p.hint {
                "These are from the newest " (number(u64::from(MAX_SEARCHED))) " changes, back to "
                (exact_time(&tenant.time_zone, next)) "."
            }
        }
        @let older = changes.next.map(|next| next.to_string());
        @let older = older.as_deref().map(|next| ("before", next));
        (filters::pages(cx, "/audit", &FILTERS, before.is_some(), older))
    };
    Ok(layout::page(cx, Some(tenant), "Audit log", &content))
}

/// Returns the filter in the query.
fn filter(cx: &Context<'_>, tenant: &Tenant) -> Result<ChangeFilter, PageError> {
    let period = filters::period(cx, tenant)?;
    Ok(ChangeFilter {
        actor: cx.query.given("actor").map(str::to_owned),
        object_kind: cx.query.given("kind").map(str::to_owned),
        object_id: filters::value(cx, "object")?,
        since: Some(period.start),
        until: Some(period.end),
    })
}

/// Returns the filter of what was changed.
fn kinds(cx: &Context<'_>) -> Markup {
    let mut kinds: Vec<String> = Vec::new();
    for kind in cx.svc.store().env().event_kinds.all() {
        let record = kind.as_str().split('.').next().unwrap_or_default();
        if !kinds.iter().any(|known| known == record) {
            kinds.push(record.to_owned());
        }
    }
    let is_there = |kind: &&str| cx.site.has_apps() || !KINDS_OF_APPS.contains(kind);
    let kinds = kinds.into_iter().chain(KINDS.into_iter().filter(is_there).map(str::to_owned));
    let named = kinds.map(|kind| (object_word(&kind).replace('_', " "), kind)).map(|(name, kind)| (kind, name));
    filters::one_of(cx, "kind", "What", "Everything", named)
}

/// Returns the changes that the filters select as a CSV file, the newest first.
async fn csv_file(cx: &Context<'_>, tenant: &Tenant, filter: ChangeFilter) -> Result<PageResponse, PageError> {
    let headings = ["at", "actor", "who", "action", "object_kind", "object_id", "object", "changes", "events"];
    let (svc, tenant) = (cx.svc.clone(), Arc::new(tenant.clone()));
    csv::respond("audit-log", &headings, MEMORY, filter, move |filter: ChangeFilter| {
        let (svc, tenant) = (svc.clone(), Arc::clone(&tenant));
        async move {
            let changes = svc.account(tenant.id).audit_log().changes(filter.clone(), CSV_PIECE).await?;
            let texts = ChangeTexts::new(&svc, &tenant, &changes.data).await?;
            let mut rows = csv::Rows::default();
            for change in &changes.data {
                rows.add(texts.cells(change));
            }
            Ok((rows, changes.next.map(|next| ChangeFilter { until: Some(next), ..filter })))
        }
    })
    .await
}
