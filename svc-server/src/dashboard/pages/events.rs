//! Events: what happened to the records of the account, and where it went.

use svc_core::store::DeliveryFilter;
use svc_core::values::EventKind;
use svc_core::webhooks::events::{Event, EventId};

use super::deliveries::DeliveryNames;
use super::event_list::{EventRecord, PAGE, SEARCHED, cause, is_about, newest, row};
use super::{deliveries, filters};
use crate::dashboard::json;
use crate::dashboard::layout::query;
use crate::dashboard::prelude::*;

/// The number of deliveries that the page of an event lists.
const MAX_DELIVERIES: u32 = 100;

/// Lists events.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let kind: Option<EventKind> = filters::value(cx, "kind")?;
    let record = cx.query.given("record");
    let since = filters::begins(cx, cx.query.text("within"))?;
    let is_wanted = |event: &Event| {
        kind.is_none_or(|kind| event.kind == kind) && record.is_none_or(|record| is_about(event, record))
    };
    let events = newest(cx, tenant, since, is_wanted).await?;
    let content = html! {
        (heading("Events", "The changes of the records of this account.", html! {}))
        (filters::list(cx, filters::List {
            path: "/events",
            filters: html! {
                (filters::kinds(cx))
                (filters::text(cx, "record", "Record"))
                (filters::choice("within", "Time", filters::spans(cx.query.text("within"))))
            },
            is_filtered: kind.is_some() || record.is_some() || since.is_some(),
            icon: "event",
            none: ("No events yet", "Each change of a record is an event: create a contact through the API.", html! {}),
            nothing: &format!("None of the newest {} events meets all filters.", number(u64::from(SEARCHED))),
            rows: (!events.is_empty()).then(|| html! {
                (table("Events", &["Event", "Record", "When"], html! {
                    @for event in &events { (row(cx, tenant, event)) }
                }))
                @if events.len() == PAGE { p.hint { "The newest " (PAGE) ". Filter to find others." } }
            }),
        }))
    };
    Ok(layout::page(cx, Some(tenant), "Events", &content))
}

/// Shows an event.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let event = account.events().get(cx.id::<EventId>()?).await?;
    let filter = DeliveryFilter { limit: MAX_DELIVERIES, ..DeliveryFilter::of_event(event.id) };
    let sent = account.deliveries().list(filter).await?;
    let endpoints = deliveries::endpoints(&cx.svc, tenant.id).await?;
    let names = DeliveryNames::of(&cx.svc, tenant.id, &sent, endpoints).await?;
    let record = EventRecord::of(&event);
    let content = html! {
        (heading(event.kind.as_str(), "", html! {}))
        (section("Event", facts(&[
            ("Id", html! { code { (event.id) } }),
            ("Happened", exact_time(&tenant.time_zone, event.created_at)),
            ("Record", html! {
                (record.link(&cx.view(tenant)))
                " · " a href=(cx.url(&format!("/events?{}", query(&[("record", &record.id)])))) { "its events" }
            }),
            ("Request", cause(cx, tenant, &event).await?),
        ])))
        (section("Where it went", html! {
            @if sent.is_empty() {
                p.soft { "No endpoint wanted it." }
            } @else {
                (deliveries::rows(&cx.view(tenant), &sent, &names))
            }
        }))
        (section("Payload", json::body("payload", event.data.get())))
    };
    Ok(layout::page(cx, Some(tenant), "Event", &content))
}
