//! The actions on the records that were ticked in a list: one change of all of them, or a CSV file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value};
use svc_core::error::Error;
use svc_core::prelude::*;
use uuid::Uuid;

use super::values::{text, words};
use super::{PAGE, file, get, name, short};
use crate::dashboard::pages::kinds::{BulkChange, Kind, of_path};
use crate::dashboard::prelude::*;

/// The id of the form of a list.
pub(super) const FORM: &str = "selection";
/// The field with the version of each record that the question showed.
const SHOWN: &str = "shown";
/// The action that returns a file.
const CSV: &str = "csv";

/// Returns the form that does something with the ticked records.
pub(super) fn form(cx: &Context<'_>, kind: &Kind) -> Markup {
    let query = cx.query.encoded_without(&["select"]);
    let changes = if cx.may(Role::Developer) { kind.bulk } else { &[] };
    html! {
        div.actions.selection {
            span.hidden { "Tick records of the list to change or export them." }
            a.button href=(cx.url(&format!("{}?{query}&select=all", kind.list_path()))) data-select-all=(FORM) { "Select all" }
            form id=(FORM) method="get" action=(cx.url(&kind.path("selected"))) data-repeat {
                select name="action" aria-label="What to do with the selected" {
                    option value=(CSV) { "Export as CSV" }
                    @for change in changes { option value=(change.name) { (change.label) } }
                }
                button type="submit" { "Apply to the selected" }
            }
        }
    }
}

/// Returns the cell that selects a record.
pub(super) fn cell(cx: &Context<'_>, record: &Map<String, Value>, named: &str) -> Markup {
    html! {
        td.select {
            input type="checkbox" name="id" value=(text(record, "id")) form=(FORM) checked[cx.query.text("select") == "all"]
                aria-label={ "Select " (named) };
        }
    }
}

/// The ids of the records that were ticked, and the change that was chosen. `None` for a file.
struct Ticked {
    kind: &'static Kind,
    change: Option<&'static BulkChange>,
    ids: Vec<Uuid>,
}

impl Ticked {
    /// Reads it from the form of a list, or from that of the question, which is shown again when it was refused.
    fn of(cx: &Context<'_>) -> Result<Self, PageError> {
        let kind = of_path(cx.path)?;
        let form = if cx.form.given("action").is_some() { &cx.form } else { &cx.query };
        let change = match form.text("action") {
            CSV => None,
            action => {
                let known = kind.bulk.iter().find(|change| change.name == action);
                Some(known.ok_or_else(|| PageError::Invalid("Choose one of the actions of the list.".to_owned()))?)
            }
        };
        let ids: Result<Vec<Uuid>, _> = form.all("id").map(str::parse).collect();
        let ids = ids.map_err(|_| PageError::Invalid(format!("Select {} of the list.", kind.collection)))?;
        if ids.is_empty() || ids.len() > PAGE as usize {
            return Err(PageError::Invalid(format!("Select at least one {}, and at most {PAGE}.", kind.one)));
        }
        Ok(Self { kind, change, ids })
    }
}

/// Asks whether the chosen change is meant, or returns the file.
pub(crate) async fn confirm(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let Ticked { kind, change, ids } = Ticked::of(cx)?;
    let mut records = Vec::with_capacity(ids.len());
    for id in ids {
        records.push(get(cx.svc.account(tenant.id), kind, id).await?);
    }
    let Some(change) = change else { return file::of_records(cx, tenant, kind, records).await };
    if !cx.may(Role::Developer) {
        return Err(PageError::Forbidden("Owners and developers change records.".to_owned()));
    }
    let is_fit = |record: &&Map<String, Value>| change.from.contains(&text(record, "status"));
    if let Some(unfit) = records.iter().find(|record| !change.from.is_empty() && !is_fit(record)) {
        let (name, status) = (short(&name(kind, unfit)), words(text(unfit, "status")));
        return Err(PageError::Refused(format!("{name} is {status}. Take it out of the selection.")));
    }
    let many = records.len();
    let title = match many {
        1 => format!("{}: 1 {}", change.label, kind.one),
        many => format!("{}: {many} {}", change.label, kind.collection),
    };
    let path = kind.path("selected");
    let content = html! {
        (heading(&title, "Either all of them are changed or none.", html! {}))
        div.card {
            (problem(cx, &path))
            ul.hits {
                @for record in &records {
                    li {
                        a href=(cx.url(&kind.path(text(record, "id")))) { (short(&name(kind, record))) }
                        " " span.soft { (words(text(record, "status"))) }
                    }
                }
            }
            form.actions method="post" action=(cx.url(&path)) {
                (hidden(cx, &cx.form, ""))
                input type="hidden" name="action" value=(change.name);
                @for record in &records {
                    input type="hidden" name="id" value=(text(record, "id"));
                    input type="hidden" name=(SHOWN) value=(text(record, "updated_at"));
                }
                button.danger type="submit" { (change.label) }
                a.button href=(cx.url(&kind.list_path())) { "Cancel" }
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), &title, &content))
}

/// Makes the chosen change of all records, in one transaction.
pub(crate) async fn change(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let Ticked { kind, change, ids } = Ticked::of(cx)?;
    let Some(change) = change else { return Err(PageError::Invalid("Choose a change of the list.".to_owned())) };
    let shown: Vec<String> = cx.form.all(SHOWN).map(str::to_owned).collect();
    if shown.len() != ids.len() {
        return Err(PageError::Invalid("The list asks for this change on a page of its own.".to_owned()));
    }
    let selected: Vec<(Uuid, String)> = ids.iter().copied().zip(shown).collect();
    let call = parse(cx, change.operation, change.body)?;
    let current = parse(cx, kind.update.current.ok_or(PageError::NotFound)?, "")?;
    // The place of the record that is changed, to name it if it is refused.
    let at = Arc::new(AtomicUsize::new(0));
    let input = (call, current, selected, Arc::clone(&at));
    let changed = submit(cx, tenant.id, "svc.dashboard.bulk", input, async |tx, form| {
        let (call, current, selected, at) = &form.input;
        for (place, (id, shown)) in selected.iter().enumerate() {
            at.store(place, Ordering::Relaxed);
            match version(tx, &**current, form.tenant, *id).await {
                Ok(version) if version == *shown => {}
                Ok(_) | Err(Error::NotFound) => return Err(Error::PreconditionFailed),
                Err(error) => return Err(error),
            }
            call.run(tx, form.tenant, *id).await?;
        }
        Ok(())
    });
    match changed.await {
        Ok(()) => Ok(cx.see_other(&format!("{}?notice=selected-changed", kind.list_path()))),
        Err(Error::Store(error)) => Err(PageError::Internal(error)),
        Err(error @ (Error::IdempotencyKeyReused | Error::PreconditionFailed)) => Err(refusal(error)),
        Err(error) => {
            let refused = ids.get(at.load(Ordering::Relaxed)).copied().unwrap_or_default();
            let record = get(cx.svc.account(tenant.id), kind, refused).await.unwrap_or_default();
            let (name, reason) = (short(&name(kind, &record)), error.to_string());
            let reason = reason.trim_end_matches('.');
            let reason = if reason.starts_with(&name) { reason.to_owned() } else { format!("{name}: {reason}") };
            Err(PageError::Refused(format!("{reason}. Nothing was changed: take it out of the selection.")))
        }
    }
}
