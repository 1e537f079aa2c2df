//! Deliveries: where events went, what was sent and what came back, and sending them again.

use std::collections::HashMap;

use maud::{Markup, html};
use svc_core::Svc;
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::Tenant;
use svc_core::crypto::sha256;
use svc_core::error::Error;
use svc_core::pages::{Limit, ListParams};
use svc_core::requests::RequestFilter;
use svc_core::resources::NoFilter;
use svc_core::store::DeliveryFilter;
use svc_core::values::{Patch, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus};
use svc_core::webhooks::engine::Attempt;
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription, WebhookUpdate};
use uuid::Uuid;

use super::filters;
use crate::dashboard::components::{
    Tone, View, badge, csrf, empty, exact_time, facts, heading, number, post_button, problem, section, table, time,
    time_or,
};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::live::{self, List as _};
use crate::dashboard::page_response::{PageError, PageResponse};

const PAGE: u32 = 50;
/// The number of bytes of a body that a page shows, so that it stays small.
const MAX_SHOWN: usize = 12 * 1024;
/// The number of attempts that a page lists.
const MAX_ATTEMPTS: usize = 50;
const MAX_ENDPOINTS: u32 = 100;
/// The filters in the query, apart from those that look back.
const FILTERS: [&str; 5] = ["endpoint", "event", "status", "kind", "within"];
/// The id of the form that sends selected deliveries again.
const SELECTION: &str = "selection";

/// The endpoints of the account by their ids, for the names of deliveries.
pub(super) type Endpoints = HashMap<SubscriptionId, WebhookSubscription>;

/// Returns the endpoints of the account, the newest first.
pub(super) async fn list_endpoints(svc: &Svc, tenant: TenantId) -> Result<Vec<WebhookSubscription>, Error> {
    let params = ListParams { limit: Limit::new(MAX_ENDPOINTS), ..ListParams::default() };
    Ok(svc.account(tenant).webhooks().list(NoFilter {}, params).await?.data)
}

pub(super) async fn endpoints(svc: &Svc, tenant: TenantId) -> Result<Endpoints, Error> {
    Ok(list_endpoints(svc, tenant).await?.into_iter().map(|endpoint| (endpoint.id, endpoint)).collect())
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
pub(in crate::dashboard) struct Deliveries;

impl live::List for Deliveries {
    type Item = Delivery;
    type Names = Endpoints;
    type Filter = DeliveryFilter;

    async fn newest(svc: &Svc, tenant: TenantId) -> Result<Vec<Delivery>, Error> {
        svc.account(tenant).deliveries().list(DeliveryFilter { limit: PAGE, ..DeliveryFilter::default() }).await
    }

    async fn names(svc: &Svc, tenant: TenantId) -> Result<Endpoints, Error> {
        endpoints(svc, tenant).await
    }

    fn id(delivery: &Delivery) -> Uuid {
        delivery.id.uuid()
    }

    fn select(delivery: &Delivery) -> Markup {
        html! {
            td {
                input type="checkbox" name="id" value=(delivery.id) form=(SELECTION)
                    aria-label={ "Select the delivery of " (delivery.kind) " " (delivery.created_at) };
            }
        }
    }

    fn cells(view: &View<'_>, delivery: &Delivery, endpoints: &Endpoints) -> Markup {
        html! {
            th scope="row" { a href=(view.url(&format!("/deliveries/{}", delivery.id))) { (delivery.kind) } }
            td {
                @match endpoints.get(&delivery.subscription_id) {
                    Some(endpoint) => { span.clip title=(endpoint.url) { (endpoint.url) } }
                    None => { span.soft { "deleted" } }
                }
            }
            td { (status(delivery)) }
            td { (number(u64::from(delivery.attempts))) }
            td { (outcome(delivery.last_status)) }
            td { (view.time(delivery.created_at)) }
        }
    }

    fn matches(filter: &DeliveryFilter, delivery: &Delivery) -> bool {
        filter.matches(delivery)
    }
}

/// Returns a table of deliveries. With `may_select`, they can be selected to be sent again.
pub(super) fn rows(view: &View<'_>, deliveries: &[Delivery], endpoints: &Endpoints, may_select: bool) -> Markup {
    let headings = ["Event", "Endpoint", "Status", "Attempts", "Last response", "When"];
    let headings: Vec<&str> = may_select.then_some("Select").into_iter().chain(headings).collect();
    table(
        "Deliveries",
        &headings,
        html! {
            @for delivery in deliveries {
                (live::row(Deliveries::id(delivery), &html! {
                    @if may_select { (Deliveries::select(delivery)) }
                    (Deliveries::cells(view, delivery, endpoints))
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
pub(in crate::dashboard) async fn live(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let live = &cx.dashboard.live;
    live.respond(cx, tenant, &live.deliveries, filter(cx)?)
}

/// Lists deliveries.
pub(in crate::dashboard) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
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
    let is_given = |name: &&str| cx.query.given(name).is_some();
    let is_newest = !["record", "before"].iter().any(is_given);
    let is_filtered = !is_newest || FILTERS.iter().any(is_given);
    let may_replay = cx.may(Role::Developer) && !deliveries.is_empty();
    let content = html! {
        (heading("Deliveries", "Each event goes to each endpoint that wants it. One that fails is tried again for hours.", html! {
            @if is_newest {
                (live::switch(cx, &format!("/deliveries/live?{}", cx.query.encoded(&FILTERS)), PAGE as usize))
            }
            @if may_replay {
                form id=(SELECTION) method="post" action=(cx.url("/deliveries/replay")) {
                    (csrf(cx))
                    (problem(cx, "/deliveries/replay"))
                    button type="submit" { "Send selected again" }
                }
            }
        }))
        (filters::form(cx, "/deliveries", filter_fields(cx, &endpoints)))
        @if deliveries.is_empty() && !is_filtered {
            (empty("delivery", "No deliveries yet", "Add a webhook endpoint, then change a record: its event is delivered \
                within a second.", html! { a.button.primary href=(cx.url("/webhooks")) { "Webhooks" } }))
        } @else if deliveries.is_empty() {
            (empty("delivery", "Nothing found", "No delivery of those that were searched meets all filters.", html! {}))
        } @else {
            (rows(&cx.view(tenant), &deliveries, &endpoints, may_replay))
        }
        @if let Some(next) = next {
            nav.pages aria-label="Pages of the list" {
                span {}
                a.button rel="next" href=(next_page(cx, next)) { "Older" }
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Deliveries", &content))
}

fn filter_fields(cx: &Context<'_>, endpoints: &Endpoints) -> Markup {
    let mut sorted: Vec<&WebhookSubscription> = endpoints.values().collect();
    sorted.sort_by_key(|endpoint| endpoint.url.as_str());
    let any = |text: &str| std::iter::once((String::new(), text.to_owned()));
    let endpoints = sorted.iter().map(|endpoint| (endpoint.id.to_string(), endpoint.url.as_str().to_owned()));
    let endpoints = filters::options(cx.query.text("endpoint"), any("All endpoints").chain(endpoints));
    let texts = [("pending", "Waiting"), ("succeeded", "Delivered"), ("failed", "Failed"), ("held", "Held")];
    let statuses = texts.map(|(value, text)| (value.to_owned(), text.to_owned()));
    let statuses = filters::options(cx.query.text("status"), any("All statuses").chain(statuses));
    html! {
        (filters::choice("endpoint", "Endpoint", endpoints))
        (filters::kinds(cx))
        (filters::choice("status", "Status", statuses))
        (filters::choice("within", "Time", filters::spans(cx.query.text("within"))))
        (filters::text(cx, "record", "Record id"))
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
    let events = super::events::newest(cx, tenant, filter.since, |event| {
        super::events::record_id(event) == record && filter.kind.is_none_or(|kind| event.kind == kind)
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

/// Shows a delivery with one of its attempts.
pub(in crate::dashboard) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let delivery = account.deliveries().get(cx.id::<DeliveryId>()?).await?;
    let event = account.events().get(delivery.event_id).await?;
    let mut attempts = account.deliveries().attempts(delivery.id).await?;
    attempts.reverse();
    let endpoint = match account.webhooks().get(delivery.subscription_id).await {
        Err(Error::NotFound) => None,
        result => Some(result?),
    };
    let wrote = RequestFilter { event_id: Some(event.id), ..RequestFilter::default() };
    let request = account.requests().list(wrote).await?.pop();
    let number_shown: Option<u32> = filters::value(cx, "attempt")?;
    let shown = match number_shown {
        Some(number) => attempts.iter().find(|attempt| attempt.attempt == number),
        None => attempts.first(),
    };
    let zone = &tenant.time_zone;
    let content = html! {
        (heading(delivery.kind.as_str(), "", html! {
            a.button href=(cx.url(&format!("/deliveries/{}", delivery.id))) { "Refresh" }
            @if cx.may(Role::Developer) {
                (send_again(cx, &delivery, endpoint.as_ref()))
            }
        }))
        @if let Some(endpoint) = endpoint.as_ref().filter(|endpoint| !endpoint.is_active()) {
            p.banner.warn role="status" {
                "The endpoint of this delivery is " (if endpoint.disabled_reason.is_some() { "paused" } else { "disabled" })
                ", so nothing is sent to it until it is enabled."
            }
        }
        (section("Delivery", facts(&[
            ("Status", status(&delivery)),
            ("Id", html! { code { (delivery.id) } }),
            ("Endpoint", html! {
                @match &endpoint {
                    Some(endpoint) => { a href=(cx.url(&format!("/webhooks/{}", endpoint.id))) { (endpoint.url) } }
                    None => { span.soft { "deleted" } }
                }
            }),
            ("Event", html! { a href=(cx.url(&format!("/events/{}", event.id))) { code { (event.id) } } }),
            ("Request", html! {
                @match &request {
                    Some(request) => { a href=(cx.url(&format!("/requests/{}", request.id))) { (request.method) " " (request.path) } }
                    None => { span.soft { "not in the log of the last 24 hours, or not made through the API" } }
                }
            }),
            ("Happened", exact_time(zone, delivery.created_at)),
            ("Next attempt", next_attempt(cx, tenant, &delivery)),
        ])))
        @if attempts.is_empty() {
            (empty("delivery", "No attempts yet", "Reload this page in a moment.", html! {}))
        } @else {
            (section("Attempts", attempt_rows(cx, tenant, &delivery, &attempts, shown)))
        }
        @if let Some(attempt) = shown {
            (section(&format!("Response to attempt {}", attempt.attempt), response(attempt)))
            (request_as_sent(&delivery, &event, endpoint.as_ref(), attempt))
        }
    };
    Ok(layout::page(cx, Some(tenant), "Delivery", &content))
}

/// Returns the button that sends a delivery again. An endpoint that takes nothing is enabled first.
fn send_again(cx: &Context<'_>, delivery: &Delivery, endpoint: Option<&WebhookSubscription>) -> Markup {
    let path = format!("/deliveries/{}/replay", delivery.id);
    let button = |fields, action| post_button(cx, &path, "primary", fields, action);
    match endpoint {
        Some(endpoint) if endpoint.is_active() => button(html! {}, "Send again"),
        Some(_) => button(html! { input type="hidden" name="enable" value="on"; }, "Enable it and send"),
        None => html! {},
    }
}

fn next_attempt(cx: &Context<'_>, tenant: &Tenant, delivery: &Delivery) -> Markup {
    match delivery.next_attempt_at {
        Some(at) if at <= cx.now => html! { "as soon as the endpoint takes it" },
        at => time_or(cx.now, &tenant.time_zone, at, "none"),
    }
}

fn attempt_rows(
    cx: &Context<'_>,
    tenant: &Tenant,
    delivery: &Delivery,
    attempts: &[AttemptLog],
    shown: Option<&AttemptLog>,
) -> Markup {
    table(
        "Attempts",
        &["Attempt", "Result", "Duration", "Address", "Started"],
        html! {
            @for attempt in attempts.iter().take(MAX_ATTEMPTS) {
                @let is_shown = shown.is_some_and(|shown| shown.attempt == attempt.attempt);
                tr {
                    th scope="row" {
                        a href=(cx.url(&format!("/deliveries/{}?attempt={}", delivery.id, attempt.attempt)))
                            aria-current=[is_shown.then_some("true")] { "Attempt " (attempt.attempt) }
                    }
                    td {
                        (badge(if attempt.succeeded() { Tone::Good } else { Tone::Bad }, &outcome(Some(attempt.status))))
                        @if let Some(error) = &attempt.error { div.soft { (error) } }
                    }
                    td { (number(u64::from(attempt.duration_ms))) " ms" }
                    td { @match &attempt.remote_addr { Some(address) => { code { (address) } } None => { span.soft { "–" } } } }
                    td { (time(cx.now, &tenant.time_zone, attempt.started_at)) }
                }
            }
        },
    )
}

/// Returns the beginning of a text, up to a number of bytes, and whether it is all of it.
fn beginning(text: &str, bytes: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(bytes);
    (&text[..end], end == text.len())
}

/// Returns a body, or its beginning.
pub(super) fn body(text: &str) -> Markup {
    let (shown, is_whole) = beginning(text, MAX_SHOWN);
    html! {
        pre tabindex="0" { code { (shown) } }
        @if !is_whole { p.hint { "The first " (number(shown.len() as u64)) " of " (number(text.len() as u64)) " bytes." } }
    }
}

fn response(attempt: &AttemptLog) -> Markup {
    html! {
        @match attempt.response_body.as_deref() {
            Some("") => { p.soft { "The body was empty." } }
            Some(text) => {
                (body(text))
                @if attempt.response_truncated { p.hint { "The endpoint sent more than is stored." } }
            }
            None if attempt.status > 0 => { p.soft { "The body is not stored." } }
            None => { p.soft { "There was no response." } }
        }
    }
}

/// Returns the request of an attempt and how its signatures come about. The request is made anew from what is stored, by
/// the code that sent it.
fn request_as_sent(
    delivery: &Delivery,
    event: &Event,
    endpoint: Option<&WebhookSubscription>,
    attempt: &AttemptLog,
) -> Markup {
    let Some(endpoint) = endpoint else {
        return section(
            "Request",
            html! { p.soft { "The endpoint was deleted, and the secret that signed with it." } },
        );
    };
    let mut delivery = delivery.clone();
    delivery.attempts = attempt.attempt;
    let sent = Attempt {
        delivery,
        event: event.clone(),
        url: endpoint.url.clone(),
        secrets: endpoint.signing_secrets(attempt.started_at),
    };
    let bytes = sent.body(attempt.started_at);
    let headers = sent.headers(attempt.started_at, &bytes);
    let text = String::from_utf8_lossy(&bytes);
    let of = |name| headers.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value.as_str());
    let signed = format!("{}.{}.", of("webhook-id"), of("webhook-timestamp"));
    html! {
        (section("Request", html! {
            pre tabindex="0" { code {
                "POST " (endpoint.url) "\ncontent-type: application/json\n"
                @for (name, value) in &headers { (name) ": " (value) "\n" }
            } }
            (body(&text))
            p.hint { "Made with the address and the secret that the endpoint has now. If they were changed since, this is not \
                quite what was sent." }
        }))
        (section("Verify this signature", html! {
            ol.steps {
                li { div {
                    h3 { "Take the body as it arrived" }
                    p { (number(bytes.len() as u64)) " bytes, before any program has parsed it. Its SHA-256 is:" }
                    pre tabindex="0" { code { (hex::encode(sha256(&bytes))) } }
                } }
                li { div {
                    h3 { "Put the id and the time in front of it" }
                    p { "The headers " code { "webhook-id" } " and " code { "webhook-timestamp" } ", each followed by a full stop. \
                        The signed text begins with:" }
                    pre tabindex="0" { code { (signed) (beginning(&text, 60).0) "…" } }
                } }
                li { div {
                    h3 { "Compute the HMAC-SHA256" }
                    p { "The key is what the secret of the endpoint encodes in base64 after " code { "whsec_" } ". In base64, \
                        with " code { "v1," } " in front, it is the header " code { "webhook-signature" } ". During a rotation \
                        there is one for each secret:" }
                    pre tabindex="0" { code { (of("webhook-signature")) } }
                } }
                li { div {
                    h3 { "Or check the older header" }
                    p { "The HMAC-SHA256 of the body alone, keyed with the whole text of the secret, in hex after " code { "sha256=" } ", \
                        is " code { "X-SVC-Signature" } ":" }
                    pre tabindex="0" { code { (of("x-svc-signature")) } }
                } }
            }
        }))
    }
}

/// Sends a delivery again, after its endpoint was enabled if the form says so.
pub(in crate::dashboard) async fn replay(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (account, id) = (cx.svc.account(tenant.id), cx.id::<DeliveryId>()?);
    if cx.form.text("enable") == "on" {
        let endpoint = account.deliveries().get(id).await?.subscription_id;
        let change = WebhookUpdate { enabled: Patch::Set(true), ..WebhookUpdate::default() };
        account.webhooks().update(endpoint, change).await?;
    }
    let delivery = account.deliveries().replay(id).await?;
    Ok(PageResponse::see_other(&cx.url(&format!("/deliveries/{}?notice=replayed", delivery.id))))
}

/// Sends the selected deliveries again.
pub(in crate::dashboard) async fn replay_selected(
    cx: &Context<'_>,
    tenant: &Tenant,
) -> Result<PageResponse, PageError> {
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
    for id in ids {
        cx.svc.account(tenant.id).deliveries().replay(id).await?;
    }
    Ok(PageResponse::see_other(&cx.url("/deliveries?notice=replayed")))
}
