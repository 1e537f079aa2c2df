//! The newest events, as lists show them.

use serde::Deserialize;
use serde_json::{Map, Value};
use svc_core::error::Error;
use svc_core::requests::RequestFilter;
use svc_core::values::{EventKind, Timestamp};
use svc_core::webhooks::events::{Event, EventId, PAYMENT};
use uuid::Uuid;

use super::kinds::{INVOICES, kind_of};
use super::records::{money, name, short};

use crate::dashboard::prelude::*;

/// The number of events that a page lists.
pub(super) const PAGE: usize = 50;
/// How much of the id of a record is looked at, in bytes. Those of the service have 36.
const MAX_RECORD_ID: usize = 1_000;
/// The number of events that a search reads.
pub(super) const SEARCHED: u32 = 1_000;

/// An event in a list.
pub(super) struct ListedEvent {
    pub(super) id: EventId,
    kind: EventKind,
    record: EventRecord,
    created_at: Timestamp,
}

impl From<Event> for ListedEvent {
    fn from(event: Event) -> Self {
        let Event { id, kind, created_at, .. } = event;
        Self { id, kind, record: EventRecord::of(&event), created_at }
    }
}

/// The record that an event is about.
pub(super) struct EventRecord {
    /// Its id. Empty if it has none.
    pub(super) id: String,
    pub(super) is_test: bool,
    /// Its name for people. `None` if it is not a record of the service.
    name: Option<String>,
    /// The path of its page. `None` if it has none, or is deleted.
    path: Option<String>,
}

impl EventRecord {
    /// Returns the record in the data of an event.
    pub(super) fn of(event: &Event) -> Self {
        let data: Map<String, Value> = serde_json::from_str(event.data.get()).unwrap_or_default();
        let id = data.get("id").map(id_text).unwrap_or_default();
        let (object, action) = event.kind.as_str().split_once('.').unwrap_or_default();
        let kind = kind_of(object).filter(|_| event.kind.is_built_in());
        let payment = data.get("amount").filter(|_| object == PAYMENT && event.kind.is_built_in());
        let (name, path) = match (kind, payment) {
            (Some(kind), _) => {
                let is_there = action != "deleted" && !event.is_test();
                (Some(short(&name(kind, &data))), is_there.then(|| kind.path(&id)))
            }
            (None, Some(amount)) => {
                let invoice = data.get("invoice_id").and_then(Value::as_str).filter(|_| !event.is_test());
                (Some(format!("payment of {}", money(&data, amount))), invoice.map(|id| INVOICES.path(id)))
            }
            (None, None) => (None, None),
        };
        Self { id, is_test: event.is_test(), name, path }
    }

    /// Returns what people call it, with a link to its page.
    pub(super) fn link(&self, view: &View<'_>) -> Markup {
        html! {
            @match (&self.name, &self.path) {
                (Some(name), Some(path)) => { a.nowrap[is_number(name)] href=(view.url(path)) { (name) } }
                (Some(name), None) => { (name) }
                (None, _) => { code { (short(&self.id)) } }
            }
        }
    }
}

/// Returns whether a name may be the number of a record, such as `INV-0001`, which stays in a line.
fn is_number(name: &str) -> bool {
    name.len() <= 16 && !name.contains(' ')
}

/// Returns whether an event is about the record with this id or name, such as `INV-0001`.
pub(super) fn is_about(event: &Event, text: &str) -> bool {
    #[derive(Deserialize)]
    struct RecordWithId {
        id: Value,
    }
    let record = serde_json::from_str(event.data.get());
    if record.is_ok_and(|RecordWithId { id }| id_text(&id) == text) {
        return true;
    }
    // Other events may be large, and have no name.
    event.record_id().is_some() && EventRecord::of(event).name.is_some_and(|name| name.eq_ignore_ascii_case(text))
}

/// Returns an id, or the beginning of a long one.
fn id_text(id: &Value) -> String {
    let mut text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    text.truncate(text.floor_char_boundary(MAX_RECORD_ID));
    text
}

/// Returns the newest events that meet a condition, at most [`PAGE`] of the newest [`SEARCHED`].
pub(super) async fn newest(
    cx: &Context<'_>,
    tenant: &Tenant,
    since: Option<Timestamp>,
    is_wanted: impl Fn(&Event) -> bool,
) -> Result<Vec<ListedEvent>, PageError> {
    let mut times = since.unwrap_or(Timestamp::from_micros(0))..Timestamp::MAX;
    let (mut found, mut left) = (Vec::new(), SEARCHED);
    // Of each event only what is shown is kept, as its data may be large.
    while found.len() < PAGE && left > 0 {
        let events = cx.svc.account(tenant.id).events().newest_in(times.clone(), left).await?;
        let Some(last) = events.last() else { break };
        times.end = last.created_at;
        left -= u32::try_from(events.len()).unwrap_or(left);
        let wanted = events.into_iter().filter(&is_wanted).take(PAGE - found.len());
        found.extend(wanted.map(ListedEvent::from));
    }
    Ok(found)
}

/// Returns a path in which each id has its end alone.
pub(super) fn short_path(path: &str) -> String {
    const SHOWN: usize = 12;
    let segments = path.split('/').map(|segment| match segment.parse::<Uuid>() {
        Ok(_) => format!("…{}", segment.get(segment.len() - SHOWN..).unwrap_or_default()),
        Err(_) => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Returns a link to the request that wrote an event, if the log has it.
pub(super) async fn cause(cx: &Context<'_>, tenant: &Tenant, event: &Event) -> Result<Markup, Error> {
    if event.is_test() {
        return Ok(html! { span.soft { "none: it is a test" } });
    }
    let wrote = RequestFilter { event_id: Some(event.id), ..RequestFilter::default() };
    let request = cx.svc.account(tenant.id).requests().list(wrote).await?.pop();
    Ok(html! {
        @match &request {
            Some(request) => { a href=(cx.url(&format!("/requests/{}", request.id))) { (request.method) " " (short_path(&request.path)) } }
            None => { span.soft { "not in the log of the last 24 hours, or not made through the API" } }
        }
    })
}

/// Returns the row of an event.
pub(super) fn row(cx: &Context<'_>, tenant: &Tenant, event: &ListedEvent) -> Markup {
    let view = cx.view(tenant);
    html! {
        tr {
            th scope="row" {
                a href=(cx.url(&format!("/events/{}", event.id))) { (event.kind) }
                @if event.record.is_test { span.soft { " (test)" } }
            }
            td { (event.record.link(&view)) }
            td { (view.time(event.created_at)) }
        }
    }
}
