//! The newest events, as lists show them.

use serde::Deserialize;
use svc_core::error::Error;
use svc_core::requests::RequestFilter;
use svc_core::values::{EventKind, Timestamp};
use svc_core::webhooks::events::{Event, EventId};

use super::records::short;

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
    pub(super) kind: EventKind,
    is_test: bool,
    pub(super) record: String,
    created_at: Timestamp,
}

impl From<Event> for ListedEvent {
    fn from(event: Event) -> Self {
        let Event { id, kind, created_at, .. } = event;
        let mut record = record_id(&event);
        record.truncate(record.floor_char_boundary(MAX_RECORD_ID));
        Self { id, kind, is_test: event.is_test(), record, created_at }
    }
}

/// Returns the newest events that meet a condition, at most [`PAGE`] of the newest [`SEARCHED`].
pub(super) async fn newest(
    cx: &Context<'_>,
    tenant: &Tenant,
    since: Option<Timestamp>,
    is_wanted: impl Fn(&ListedEvent) -> bool,
) -> Result<Vec<ListedEvent>, PageError> {
    let mut times = since.unwrap_or(Timestamp::from_micros(0))..Timestamp::MAX;
    let (mut found, mut left) = (Vec::new(), SEARCHED);
    // Of each event only what is shown is kept, as its data may be large.
    while found.len() < PAGE && left > 0 {
        let events = cx.svc.account(tenant.id).events().newest_in(times.clone(), left).await?;
        let Some(last) = events.last() else { break };
        times.end = last.created_at;
        left -= u32::try_from(events.len()).unwrap_or(left);
        found.extend(events.into_iter().map(ListedEvent::from).filter(&is_wanted));
    }
    found.truncate(PAGE);
    Ok(found)
}

/// Returns the id of the record that an event is about. Empty if it has none.
pub(super) fn record_id(event: &Event) -> String {
    #[derive(Deserialize)]
    struct RecordWithId {
        id: serde_json::Value,
    }
    match serde_json::from_str(event.data.get()) {
        Ok(RecordWithId { id: serde_json::Value::String(id) }) => id,
        Ok(RecordWithId { id }) => id.to_string(),
        Err(_) => String::new(),
    }
}

/// Returns a link to the request that wrote an event, if the log has it.
pub(super) async fn cause(cx: &Context<'_>, tenant: &Tenant, event: EventId) -> Result<Markup, Error> {
    let wrote = RequestFilter { event_id: Some(event), ..RequestFilter::default() };
    let request = cx.svc.account(tenant.id).requests().list(wrote).await?.pop();
    Ok(html! {
        @match &request {
            Some(request) => { a href=(cx.url(&format!("/requests/{}", request.id))) { (request.method) " " (request.path) } }
            None => { span.soft { "not in the log of the last 24 hours, or not made through the API" } }
        }
    })
}

/// Returns the row of an event.
pub(super) fn row(cx: &Context<'_>, tenant: &Tenant, event: &ListedEvent) -> Markup {
    html! {
        tr {
            th scope="row" {
                a href=(cx.url(&format!("/events/{}", event.id))) { (event.kind) }
                @if event.is_test { span.soft { " (test)" } }
            }
            td { code { (short(&event.record)) } }
            td { (time(cx.now, &tenant.time_zone, event.created_at)) }
        }
    }
}
