//! Changes as a table: what was done, which fields it set, who did it, and what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use svc_core::Svc;
use svc_core::accounts::audit::{object_word, summary};
use svc_core::changes::{Change, FieldChange};
use svc_core::error::Error;
use svc_core::requests::{ApiRequest, MAX_AGE, RequestFilter};
use svc_core::values::{Date, TimeZone, Timestamp};
use uuid::Uuid;

use super::actors::Actors;
use crate::dashboard::pages::kinds::kind_of;
use crate::dashboard::pages::records::{
    ContactNames, is_amount, is_date, is_numbered, label, money, name, names_of, number_in, short,
};
use crate::dashboard::prelude::*;

/// The longest value of a field that is shown, in characters.
const MAX_VALUE: usize = 80;

/// The context for showing changes.
pub(crate) struct ChangeTable<'a> {
    cx: &'a Context<'a>,
    tenant: &'a Tenant,
    texts: ChangeTexts,
    /// The log of requests, where they are shown and one of the changes may be in it.
    requests: Vec<ApiRequest>,
}

/// The names in the texts of changes.
pub(super) struct ChangeTexts {
    zone: TimeZone,
    actors: Actors,
    contacts: ContactNames,
    /// The numbers of the quotes and invoices that jobs name.
    numbers: BTreeMap<Uuid, String>,
}

impl ChangeTexts {
    /// Looks up the names of who made changes and of contacts.
    pub(super) async fn new(svc: &Svc, tenant: &Tenant, changes: &[Change]) -> Result<Self, Error> {
        let mut seen: Vec<String> = changes.iter().map(|change| change.entry.actor.clone()).collect();
        seen.sort_unstable();
        seen.dedup();
        let grants = changes.iter().filter(|change| change.entry.object_kind == "grant");
        let apps = grants.filter_map(|change| change.object().get("app_id")?.as_str()?.parse().ok()).collect();
        let actors = Actors::new(svc, tenant.id, seen, apps).await?;
        let contacts: Vec<String> = changes
            .iter()
            .flat_map(Change::fields)
            .filter(|field| field.name == "contact_id")
            .flat_map(|field| [field.before, field.after])
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect();
        let contacts = names_of(svc, tenant.id, contacts.iter().map(String::as_str)).await?;
        let mut numbers = BTreeMap::new();
        for FieldChange { name, before, after } in changes.iter().flat_map(Change::fields) {
            for value in [before, after] {
                numbers.extend(number_in(svc.account(tenant.id), &name, value.as_str().unwrap_or_default()).await?);
            }
        }
        for (purpose, record) in changes.iter().filter_map(shared_record) {
            numbers.extend(number_in(svc.account(tenant.id), &format!("{purpose}_id"), &record).await?);
        }
        Ok(Self { zone: tenant.time_zone.clone(), actors, contacts, numbers })
    }

    /// Returns the cells of a change in a CSV file.
    pub(super) fn cells(&self, change: &Change) -> [String; 9] {
        let entry = &change.entry;
        let changed: Vec<String> = self
            .differences(change)
            .into_iter()
            .map(|[name, before, after]| format!("{name} {before} → {after}"))
            .collect();
        let events: Vec<String> = change.events.iter().map(|(id, _)| id.to_string()).collect();
        [
            entry.at.to_string(),
            entry.actor.clone(),
            self.actors.name(&entry.actor),
            change.actions.join(", "),
            object_word(&entry.object_kind).to_owned(),
            entry.object_id.to_string(),
            self.object_name(change).unwrap_or_default(),
            changed.join(", "),
            events.join(" "),
        ]
    }

    /// Returns what people call the object, if it has a name. That of a grant is its app, and that of a shared link what it shows.
    fn object_name(&self, change: &Change) -> Option<String> {
        if let Some((purpose, record)) = shared_record(change) {
            let number = record.parse().ok().and_then(|id: Uuid| self.numbers.get(&id));
            return Some(number.cloned().unwrap_or_else(|| format!("deleted {purpose}")));
        }
        if change.entry.object_kind == "grant" {
            let grant = change.object();
            return grant.get("app_id").and_then(Value::as_str).and_then(|id| self.actors.name_of_app(id));
        }
        object_name(change)
    }

    /// Returns the names of the fields that were set, and their values before and after.
    fn differences(&self, change: &Change) -> Vec<[String; 3]> {
        let object = change.object();
        let value = |field: &str, value: &Value| match value {
            Value::Null => "none".to_owned(),
            Value::String(id) if field == "contact_id" => self.contacts.get(id).unwrap_or(id).to_owned(),
            Value::String(id) if is_numbered(field) => {
                let number = id.parse().ok().and_then(|id: Uuid| self.numbers.get(&id));
                number.cloned().unwrap_or_else(|| "deleted".to_owned())
            }
            Value::String(text) if field == "status" => text.replace('_', " "),
            Value::String(date) if is_date(field) => Date::parse(date).map_or_else(|_| date.clone(), Date::in_words),
            Value::String(text) => match Timestamp::parse(text) {
                Ok(at) => minute_in_words(&self.zone, at),
                Err(_) => text.clone(),
            },
            amount if is_amount(field) => money(&object, amount),
            other => other.to_string(),
        };
        let mut all: Vec<[String; 3]> = change
            .fields()
            .into_iter()
            .map(|FieldChange { name, before, after }| {
                [label(&name), cut(&value(&name, &before)), cut(&value(&name, &after))]
            })
            .collect();
        all.extend(change.paid.map(|(before, after)| ["paid".to_owned(), before.grouped(), after.grouped()]));
        all
    }
}

impl<'a> ChangeTable<'a> {
    /// Looks up the names of who made changes and of contacts.
    pub(crate) async fn new(cx: &'a Context<'a>, tenant: &'a Tenant, changes: &[Change]) -> Result<Self, Error> {
        Ok(Self { cx, tenant, texts: ChangeTexts::new(&cx.svc, tenant, changes).await?, requests: Vec::new() })
    }

    /// Looks up the requests that made changes.
    pub(super) async fn with_requests(self, changes: &[Change]) -> Result<Self, Error> {
        let Self { cx, tenant, .. } = self;
        let may_be_logged = |change: &Change| {
            let is_request = ["key:", "app:"].iter().any(|prefix| change.entry.actor.starts_with(prefix));
            is_request && cx.now.since(change.entry.at) < MAX_AGE + Duration::from_secs(60)
        };
        if !changes.iter().any(may_be_logged) {
            return Ok(self);
        }
        Ok(Self { requests: cx.svc.account(tenant.id).requests().list(RequestFilter::default()).await?, ..self })
    }

    /// Returns who made the changes.
    pub(super) fn actors(&self) -> &Actors {
        &self.texts.actors
    }

    /// Returns the changes of one record for its page, without what only programs see of them.
    pub(crate) fn render_of_record(&self, changes: &[Change]) -> Markup {
        table(
            "Changes",
            &["Change", "What changed", "Who", "When"],
            html! {
                @for change in changes {
                    tr {
                        th.short scope="row" { (capitalized(&done(change))) }
                        td { (self.difference(change)) }
                        td { (self.texts.actors.render(self.cx, &change.entry.actor)) }
                        td { (minute(&self.tenant.time_zone, change.entry.at)) }
                    }
                }
            },
        )
    }

    /// Returns the table.
    pub(crate) fn render(&self, changes: &[Change]) -> Markup {
        table(
            "Changes",
            &["Change", "What changed", "Who", "What came of it", "When"],
            html! {
                @for change in changes {
                    tr {
                        th scope="row" {
                            (done(change)) " "
                            div.soft { (self.object(change)) }
                        }
                        td { (self.difference(change)) }
                        td { (self.texts.actors.render(self.cx, &change.entry.actor)) }
                        td.traces { (self.traces(change)) }
                        td { (time(self.cx.now, &self.tenant.time_zone, change.entry.at)) }
                    }
                }
            },
        )
    }

    /// Returns the name of the object, linked to its page if it has one.
    fn object(&self, change: &Change) -> Markup {
        let (entry, id) = (&change.entry, change.entry.object_id);
        let path = match (entry.object_kind.as_str(), &change.payment) {
            ("payment", Some(payment)) => Some(format!("/invoices/{}", payment.invoice_id)),
            ("webhook", _) => Some(format!("/webhooks/{id}")),
            ("delivery", _) => Some(format!("/deliveries/{id}")),
            ("key", _) => Some(format!("/keys#key-{id}")),
            ("grant", _) if self.cx.site.has_apps() => Some(format!("/apps#grant-{id}")),
            ("app", _) if self.cx.site.has_apps() => Some(format!("/developer-apps/{id}")),
            ("shared_link", _) => {
                shared_record(change).and_then(|(purpose, record)| Some(kind_of(&purpose)?.path(record)))
            }
            (kind, _) => kind_of(kind).map(|kind| kind.path(id)),
        };
        let name = html! {
            @match self.texts.object_name(change) { Some(name) => { (short(&name)) } None => { code { (id) } } }
        };
        match path {
            Some(path) => html! { a href=(self.cx.url(&path)) { (name) } },
            None => name,
        }
    }

    /// Returns the fields that were set, with the values before and after.
    fn difference(&self, change: &Change) -> Markup {
        html! {
            @for [name, before, after] in self.texts.differences(change) {
                div { (name) " " span.soft { (before) } " → " (after) }
            }
            @if let (Some(amount), None) = (moved(change), change.paid) { div { (amount) } }
            @if let Some(reason) = reason(change) { div { (reason) } }
            @if change.is_before_lost {
                span.soft { "The value before it is not known any more." }
            }
        }
    }

    /// Returns links to the request that made the change, and to its events with their deliveries.
    fn traces(&self, change: &Change) -> Markup {
        let wrote = |request: &&ApiRequest| change.events.iter().any(|(event, _)| request.wrote(*event));
        html! {
            @if let Some(request) = self.requests.iter().find(wrote) {
                div { a href=(self.cx.url(&format!("/requests/{}", request.id))) { "Request" } }
            }
            @for (event, kind) in &change.events {
                div {
                    a href=(self.cx.url(&format!("/events/{event}"))) { (kind) }
                    " " a href=(self.cx.url(&format!("/deliveries?event={event}"))) { "deliveries" }
                }
            }
        }
    }
}

/// Returns the purpose of a shared link and the id of the record that it shows. `None` for other objects, and a link without a record.
fn shared_record(change: &Change) -> Option<(String, String)> {
    if change.entry.object_kind != "shared_link" {
        return None;
    }
    let link = change.object();
    let text = |field: &str| link.get(field).and_then(Value::as_str).map(str::to_owned);
    text("purpose").zip(text("record_id"))
}

/// Returns the amount of a payment or a refund.
fn moved(change: &Change) -> Option<String> {
    if let Some(payment) = &change.payment {
        return Some(format!("payment {}", payment.amount.in_currency(payment.currency)));
    }
    let object = change.object();
    let refunded = change.refunded.and_then(|amount| serde_json::to_value(amount).ok())?;
    Some(format!("refund {}", money(&object, &refunded)))
}

/// Returns why a contact was erased.
fn reason(change: &Change) -> Option<String> {
    if change.entry.action != "erase" {
        return None;
    }
    change.object().get("reason").and_then(Value::as_str).map(str::to_owned)
}

/// Returns what was done, in the past, and to what.
fn done(change: &Change) -> String {
    let action = change.actions.first().unwrap_or(&change.entry.action);
    summary(&change.entry.object_kind, action)
}

/// Returns what people call the object, if it has a name.
fn object_name(change: &Change) -> Option<String> {
    let object: Map<String, Value> = change.object();
    let text =
        |field: &str| object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    match kind_of(&change.entry.object_kind) {
        // An erasure has a reason in place of the record.
        Some(_) if object.is_empty() || change.entry.action == "erase" => None,
        Some(kind) => Some(name(kind, &object)),
        None => ["name", "email", "url", "identity", "purpose"].into_iter().find_map(text),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
