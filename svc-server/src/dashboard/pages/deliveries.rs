//! Deliveries: where events went, and sending those that are selected again.

use std::collections::HashMap;

use svc_core::Svc;
use svc_core::error::Error;
use svc_core::pages::{Limit, ListParams, SentCursor};
use svc_core::resources::NoFilter;
use svc_core::store::DeliveryFilter;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{Delivery, DeliveryId, DeliveryStatus};
use svc_core::webhooks::events::EventId;
use svc_core::webhooks::replays;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use super::event_list::EventRecord;
use super::{event_list, filters};
use crate::dashboard::live::{self, List as _};
use crate::dashboard::prelude::*;

const PAGE: u32 = 50;
const MAX_ENDPOINTS: usize = 100;
/// How many endpoints are read at a time.
const ENDPOINTS_AT_ONCE: u32 = 5;
/// The filters in the query, apart from those that look back.
pub(super) const FILTERS: [&str; 5] = ["endpoint", "event", "status", "kind", "within"];
/// All parameters of the list in the query.
const PARAMETERS: [&str; 7] = ["endpoint", "event", "status", "kind", "within", "record", "before"];
/// The id of the form that sends selected deliveries again.
const SELECTION: &str = "selection";

/// The endpoints of the account by their ids, for the names of deliveries.
pub(super) type Endpoints = HashMap<SubscriptionId, WebhookSubscription>;

/// Returns the endpoints of the account, the newest first, without their headers, authentication and certificates: these may have
/// 220 KiB each, and no list shows them.
pub(super) async fn list_endpoints(svc: &Svc, tenant: TenantId) -> Result<Vec<WebhookSubscription>, Error> {
    let mut endpoints = Vec::new();
    let mut cursor = None;
    loop {
        let params = ListParams { limit: Limit::new(ENDPOINTS_AT_ONCE), cursor, ..ListParams::default() };
        let page = svc.account(tenant).webhooks().list(NoFilter {}, params).await?;
        endpoints.extend(page.data.into_iter().map(|endpoint| WebhookSubscription {
            headers: None,
            authentication: None,
            client_certificate: None,
            certificate_authority: None,
            ..endpoint
        }));
        cursor = page.next_cursor.map(SentCursor::from);
        if cursor.is_none() || endpoints.len() >= MAX_ENDPOINTS {
            return Ok(endpoints);
        }
    }
}

pub(super) async fn endpoints(svc: &Svc, tenant: TenantId) -> Result<Endpoints, Error> {
    Ok(list_endpoints(svc, tenant).await?.into_iter().map(|endpoint| (endpoint.id, endpoint)).collect())
}

/// The names that a list of deliveries shows: of their endpoints, and of the records of their events.
pub(crate) struct DeliveryNames {
    endpoints: Endpoints,
    records: HashMap<EventId, EventRecord>,
}

impl DeliveryNames {
    pub(super) async fn of(
        svc: &Svc,
        tenant: TenantId,
        deliveries: &[Delivery],
        endpoints: Endpoints,
    ) -> Result<Self, Error> {
        let events = svc.account(tenant).events().of_deliveries(deliveries).await?;
        let records = events.iter().map(|event| (event.id, EventRecord::of(event))).collect();
        Ok(Self { endpoints, records })
    }
}

/// Returns the status of a delivery.
pub(super) fn status(delivery: &Delivery) -> Markup {
    match delivery.status {
        DeliveryStatus::Succeeded => badge(Tone::Good, "delivered"),
        DeliveryStatus::Pending if delivery.failures > 0 => badge(Tone::Warn, "retrying"),
        DeliveryStatus::Pending => badge(Tone::Neutral, "waiting"),
        DeliveryStatus::Held => badge(Tone::Warn, "held"),
        DeliveryStatus::Failed => badge(Tone::Bad, "failed"),
    }
}

/// Returns what the last attempt came to.
pub(super) fn outcome(status: Option<i32>) -> String {
    match status {
        None => "–".to_owned(),
        Some(0) => "no response".to_owned(),
        Some(-1) => "blocked".to_owned(),
        Some(status) => status.to_string(),
    }
}

/// Deliveries as a live list.
pub(crate) struct Deliveries;

impl live::List for Deliveries {
    type Item = Delivery;
    type Names = DeliveryNames;
    type Filter = DeliveryFilter;
    type Scope = ();

    async fn newest(svc: &Svc, tenant: TenantId, (): &()) -> Result<Vec<Delivery>, Error> {
        svc.account(tenant).deliveries().list(DeliveryFilter { limit: PAGE, ..DeliveryFilter::default() }).await
    }

    async fn names(svc: &Svc, tenant: TenantId, deliveries: &[Delivery]) -> Result<DeliveryNames, Error> {
        DeliveryNames::of(svc, tenant, deliveries, endpoints(svc, tenant).await?).await
    }

    fn id(delivery: &Delivery) -> Uuid {
        delivery.id.uuid()
    }

    fn select(delivery: &Delivery) -> Markup {
        selection_cell(delivery, false)
    }

    fn cells(view: &View<'_>, delivery: &Delivery, names: &DeliveryNames) -> Markup {
        html! {
            th scope="row" { a href=(view.url(&format!("/deliveries/{}", delivery.id))) { (delivery.kind) } }
            td {
                @if let Some(record) = names.records.get(&delivery.event_id) {
                    (record.link(view))
                    @if record.is_test { span.soft { " (test)" } }
                }
            }
            td {
                @match names.endpoints.get(&delivery.subscription_id) {
                    Some(endpoint) => { span.clip title=(endpoint.url) { (endpoint.url) } }
                    None => { span.soft { "deleted" } }
                }
            }
            td { (status(delivery)) }
            td {
                (outcome(delivery.last_status))
                @if delivery.attempts > 1 { span.soft { ", attempt " (number(u64::from(delivery.attempts))) } }
            }
            td { (view.time(delivery.created_at)) }
        }
    }

    fn matches(filter: &DeliveryFilter, delivery: &Delivery) -> bool {
        filter.matches(delivery)
    }
}

/// Returns the cell that selects a delivery to be sent again.
fn selection_cell(delivery: &Delivery, is_selected: bool) -> Markup {
    html! {
        td.select {
            input type="checkbox" name="id" value=(delivery.id) form=(SELECTION) checked[is_selected]
                aria-label={ "Select the delivery of " (delivery.kind) " " (delivery.created_at) };
        }
    }
}

/// Returns a table of deliveries.
pub(super) fn rows(view: &View<'_>, deliveries: &[Delivery], names: &DeliveryNames) -> Markup {
    table_of(view, deliveries, names, None::<fn(&Delivery) -> bool>)
}

const HEADINGS: [&str; 7] = ["Select", "Event", "Record", "Endpoint", "Status", "Last response", "When"];

/// Returns a table of deliveries. With `is_selected` they can be selected to be sent again.
fn table_of(
    view: &View<'_>,
    deliveries: &[Delivery],
    names: &DeliveryNames,
    is_selected: Option<impl Fn(&Delivery) -> bool>,
) -> Markup {
    let headings = if is_selected.is_some() { &HEADINGS[..] } else { &HEADINGS[1..] };
    table(
        "Deliveries",
        headings,
        html! {
            @for delivery in deliveries {
                (live::row(Deliveries::id(delivery), &html! {
                    @if let Some(is_selected) = &is_selected { (selection_cell(delivery, is_selected(delivery))) }
                    (Deliveries::cells(view, delivery, names))
                }))
            }
        },
    )
}

/// Returns the filter in the query.
fn filter(cx: &Context<'_>) -> Result<DeliveryFilter, PageError> {
    Ok(DeliveryFilter {
        subscription_id: filters::value(cx, "endpoint")?,
        event_id: filters::value(cx, "event")?,
        status: filters::value(cx, "status")?,
        kind: filters::value(cx, "kind")?,
        since: filters::begins(cx, cx.query.text("within"))?,
        until: filters::value(cx, "before")?.map(Timestamp::from_micros),
        limit: PAGE,
        ..DeliveryFilter::default()
    })
}

/// Sends the newest deliveries as they come and change.
pub(crate) async fn live(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    cx.stream::<Deliveries>(tenant, (), filter(cx)?)
}

/// Lists deliveries.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let endpoints = endpoints(&cx.svc, tenant.id).await?;
    let filter = filter(cx)?;
    let mut next = None;
    let deliveries = match cx.query.given("record") {
        Some(record) => of_record(cx, tenant, record, &filter).await?,
        None => {
            let found = account.deliveries().search(filter).await?;
            next = match found.deliveries.last() {
                Some(last) if found.deliveries.len() == PAGE as usize => Some(last.created_at),
                _ => found.next_until,
            };
            found.deliveries
        }
    };
    let names = DeliveryNames::of(&cx.svc, tenant.id, &deliveries, endpoints).await?;
    let is_given = |name: &&str| cx.query.given(name).is_some();
    let is_newest = !["record", "before"].iter().any(is_given);
    let may_replay = cx.may(Role::Developer) && !deliveries.is_empty();
    // A selection that was refused stays.
    let (is_all, selected) = (cx.query.text("select") == "all", cx.form.all("id").collect::<Vec<_>>());
    let is_selected = |delivery: &Delivery| is_all || selected.contains(&delivery.id.to_string().as_str());
    let content = html! {
        (heading("Deliveries", "Each event goes to each endpoint that wants it. One that fails is tried again for hours.", html! {
            @if is_newest {
                (live::switch(&cx.url(&format!("/deliveries/live?{}", cx.query.encoded(&FILTERS))), PAGE as usize, None))
            }
            @if may_replay { (replay_actions(cx)) }
        }))
        (filters::list(cx, filters::List {
            path: "/deliveries",
            filters: filter_fields(cx, &names.endpoints),
            is_filtered: !is_newest || FILTERS.iter().any(is_given),
            icon: "delivery",
            none: ("No deliveries yet", "Add a webhook endpoint, then change a record: its event is delivered within a second.",
                html! { a.button.primary href=(cx.url("/webhooks")) { "Webhooks" } }),
            nothing: "No delivery of those that were searched meets all filters.",
            rows: (!deliveries.is_empty())
                .then(|| table_of(&cx.view(tenant), &deliveries, &names, may_replay.then_some(is_selected))),
        }))
        @if let Some(next) = next {
            (page_links("Pages of the list", None, html! { a.button rel="next" href=(next_page(cx, next)) { "Older" } }))
        }
    };
    Ok(layout::page(cx, Some(tenant), "Deliveries", &content))
}

/// Returns what sends the selected deliveries again, or all that match the filter.
fn replay_actions(cx: &Context<'_>) -> Markup {
    let query = cx.query.encoded(&PARAMETERS);
    html! {
        a.button href=(cx.url(&format!("/deliveries?{query}&select=all"))) data-select-all=(SELECTION) { "Select all" }
        form id=(SELECTION) method="post" action=(cx.url(&format!("/deliveries/replay?{query}"))) {
            (hidden(cx, &Form::default(), ""))
            (problem(cx, "/deliveries/replay"))
            button type="submit" { "Send selected again" }
        }
        a.button href=(cx.url(&format!("/deliveries/replay-matching?{query}"))) { "Replay all that match…" }
    }
}

fn filter_fields(cx: &Context<'_>, endpoints: &Endpoints) -> Markup {
    let mut sorted: Vec<&WebhookSubscription> = endpoints.values().collect();
    sorted.sort_by_key(|endpoint| endpoint.url.as_str());
    let endpoints = sorted.iter().map(|endpoint| (endpoint.id.to_string(), endpoint.url.as_str().to_owned()));
    let texts = [("pending", "Waiting"), ("succeeded", "Delivered"), ("failed", "Failed"), ("held", "Held")];
    let statuses = texts.map(|(value, text)| (value.to_owned(), text.to_owned()));
    html! {
        (filters::one_of(cx, "endpoint", "Endpoint", "All endpoints", endpoints))
        (filters::kinds(cx))
        (filters::one_of(cx, "status", "Status", "All statuses", statuses))
        (filters::choice("within", "Time", filters::spans(cx.query.text("within"))))
        (filters::text(cx, "record", "Record"))
    }
}

fn next_page(cx: &Context<'_>, before: Timestamp) -> String {
    cx.url(&format!("/deliveries?{}&before={}", cx.query.encoded(&FILTERS), before.as_micros()))
}

/// Returns the deliveries of the newest events of a record.
async fn of_record(
    cx: &Context<'_>,
    tenant: &Tenant,
    record: &str,
    filter: &DeliveryFilter,
) -> Result<Vec<Delivery>, PageError> {
    let events = event_list::newest(cx, tenant, filter.since, |event| {
        filter.kind.is_none_or(|kind| event.kind == kind) && event_list::is_about(event, record)
    });
    let mut found = Vec::new();
    for event in events.await?.iter().take(PAGE as usize) {
        let of_event = DeliveryFilter { event_id: Some(event.id), ..filter.clone() };
        found.extend(cx.svc.account(tenant.id).deliveries().list(of_event).await?);
        if found.len() >= PAGE as usize {
            break;
        }
    }
    Ok(found)
}

/// Sends the selected deliveries again.
pub(crate) async fn replay_selected(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let ids: Result<Vec<DeliveryId>, _> = cx.form.all("id").map(str::parse).collect();
    let ids = ids.map_err(|_| PageError::Invalid("Select deliveries of the list.".to_owned()))?;
    if ids.is_empty() || ids.len() > PAGE as usize {
        return Err(PageError::Invalid(format!("Select at least one delivery, and at most {PAGE}.")));
    }
    // Either all of them are sent or none, so that the selection can be sent again.
    let endpoints = endpoints(&cx.svc, tenant.id).await?;
    for id in &ids {
        let endpoint = cx.svc.account(tenant.id).deliveries().get(*id).await?.subscription_id;
        if let Some(endpoint) = endpoints.get(&endpoint).filter(|endpoint| !endpoint.is_active()) {
            return Err(PageError::Refused(format!(
                "Nothing was sent, since {} takes nothing. Enable it on its page, or open its delivery to enable it and send.",
                endpoint.url
            )));
        }
    }
    let replayed = submit(cx, tenant.id, "svc.deliveries.replay", ids, async |tx, form| {
        for id in &form.input {
            replays::replay_delivery(tx, form.tenant, *id).await?;
        }
        Ok(())
    });
    replayed.await.map_err(refusal)?;
    let query = cx.query.encoded(&PARAMETERS);
    Ok(cx.see_other(&format!("/deliveries?{query}&notice=replayed")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use svc_core::env::Env;
    use svc_core::input::Input as _;
    use svc_core::prelude::{TenantCreate, WebhookCreate};
    use svc_core::store::memory::MemoryStore;

    use super::*;

    /// Fields of a hundred endpoints that no page shows are not in memory for all of them.
    #[tokio::test]
    async fn endpoints_are_listed_without_their_headers_and_certificates() {
        let svc = Svc::new(Arc::new(MemoryStore::new(Env::system())));
        let tenant = svc.accounts().create(TenantCreate::named("Test")).await.unwrap().id;
        for number in 0..12 {
            let url = format!("https://example.com/{number}");
            let body = serde_json::json!({
                "url": url, "events": ["*"], "headers": { "x-key": "k".repeat(4_000) },
                "authentication": { "type": "bearer", "token": "secret-token" },
            });
            let input = WebhookCreate::from_body(body.to_string().as_bytes()).unwrap();
            svc.account(tenant).webhooks().create(input).await.unwrap();
        }
        let listed = list_endpoints(&svc, tenant).await.unwrap();
        let urls: Vec<&str> = listed.iter().map(|endpoint| endpoint.url.as_str()).collect();
        let newest_first: Vec<String> = (0..12).rev().map(|number| format!("https://example.com/{number}")).collect();
        assert_eq!(urls, newest_first);
        assert!(listed.iter().all(|endpoint| endpoint.headers.is_none() && endpoint.authentication.is_none()));
    }
}
