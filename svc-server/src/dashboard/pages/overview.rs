//! The first page of an account: how deliveries go, and what to do first.

use std::time::Duration;

use maud::{Markup, html};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::Tenant;
use svc_core::resources::pages::{Limit, ListParams};
use svc_core::store::DeliveryFilter;
use svc_core::values::Timestamp;
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::dashboard::chart::{Column, Series, bars};
use crate::dashboard::components::{Tone, badge, empty, figure, heading, icon, number, section, table, time_or};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::reply::{Failure, Reply};

const HOUR: Duration = Duration::from_secs(60 * 60);
const HOURS: usize = 24;
/// The number of deliveries that the chart reads at most.
const MAX_DELIVERIES: u32 = 1_000;
/// The number of deliveries up to which those that failed or are held are counted.
const MAX_COUNTED: u32 = 100;
const MAX_ENDPOINTS: u32 = 100;

const SERIES: [Series; 4] = [
    Series { name: "delivered", class: "good" },
    Series { name: "waiting", class: "accent" },
    Series { name: "held", class: "warn" },
    Series { name: "failed", class: "bad" },
];

/// Shows the overview.
pub(in crate::dashboard) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<Reply, Failure> {
    let account = cx.svc.tenant(tenant.id);
    let since = cx.now.minus(HOUR * 24);
    let recent = DeliveryFilter { since: Some(since), limit: MAX_DELIVERIES, ..DeliveryFilter::default() };
    let recent = account.deliveries().list(recent).await?;
    let of_status =
        |status| DeliveryFilter { status: Some(status), limit: MAX_COUNTED + 1, ..DeliveryFilter::default() };
    let held = account.deliveries().list(of_status(DeliveryStatus::Held)).await?.len();
    let failed = account.deliveries().list(of_status(DeliveryStatus::Failed)).await?.len();
    let params = ListParams { limit: Limit::new(MAX_ENDPOINTS), ..ListParams::default() };
    let endpoints = account.webhooks().list(params).await?.data;
    let keys = account.keys().list().await?;

    let is_new = recent.is_empty() && (keys.is_empty() || endpoints.is_empty());
    let content = html! {
        (heading("Overview", "The last 24 hours of this account.", html! {}))
        @if is_new {
            (first_steps(cx, !keys.is_empty(), !endpoints.is_empty()))
        }
        div.figures {
            (figure("Deliveries", &counted(recent.len(), MAX_DELIVERIES), Tone::Neutral, "in 24 hours"))
            (figure("Success rate", &success_rate(&recent), Tone::Neutral, "of those that ended"))
            (figure("Failed", &counted(failed, MAX_COUNTED), if failed > 0 { Tone::Bad } else { Tone::Neutral }, "all retries used up"))
            (figure("Held", &counted(held, MAX_COUNTED), if held > 0 { Tone::Warn } else { Tone::Neutral }, "until you replay them"))
        }
        (section("Deliveries by outcome", chart(cx, tenant, since, &recent)))
        (section("Endpoints that need attention", attention(cx, tenant, &endpoints)))
    };
    Ok(layout::page(cx, Some(tenant), "Overview", &content))
}

/// Returns a number that was counted up to a bound.
fn counted(count: usize, bound: u32) -> String {
    if count >= bound as usize { format!("{}+", number(u64::from(bound))) } else { number(count as u64) }
}

fn success_rate(deliveries: &[Delivery]) -> String {
    let of = |status| deliveries.iter().filter(|delivery| delivery.status == status).count();
    let (succeeded, failed) = (of(DeliveryStatus::Succeeded), of(DeliveryStatus::Failed));
    match (succeeded * 1_000).checked_div(succeeded + failed) {
        Some(1_000) => "100 %".to_owned(),
        Some(tenths) => format!("{}.{} %", tenths / 10, tenths % 10),
        None => "–".to_owned(),
    }
}

fn chart(cx: &Context<'_>, tenant: &Tenant, since: Timestamp, deliveries: &[Delivery]) -> Markup {
    if deliveries.is_empty() {
        return empty(
            "delivery",
            "No deliveries yet",
            "When a record changes, each endpoint that wants the event gets a \
            delivery, and this chart shows how they went.",
            html! {},
        );
    }
    let mut counts = vec![vec![0; SERIES.len()]; HOURS];
    for delivery in deliveries {
        let hour = delivery.created_at.since(since).as_secs() / HOUR.as_secs();
        let series = match delivery.status {
            DeliveryStatus::Succeeded => 0,
            DeliveryStatus::Pending => 1,
            DeliveryStatus::Held => 2,
            DeliveryStatus::Failed => 3,
        };
        if let Some(count) = usize::try_from(hour).ok().and_then(|hour| counts.get_mut(hour)) {
            count[series] += 1;
        }
    }
    let begins = (0..).map(|hours| since.checked_add(HOUR * hours).unwrap_or(cx.now));
    let columns: Vec<Column> = counts
        .into_iter()
        .zip(begins)
        .map(|(values, begins)| {
            let text = tenant.time_zone.date_and_time_at(begins);
            Column { label: text.get(11..16).unwrap_or_default().to_owned(), values }
        })
        .collect();
    html! {
        (bars("Deliveries of the last 24 hours by hour and outcome", &SERIES, &columns))
        @if deliveries.len() >= MAX_DELIVERIES as usize {
            p.hint { "The chart has the newest " (number(u64::from(MAX_DELIVERIES))) " deliveries." }
        }
    }
}

fn attention(cx: &Context<'_>, tenant: &Tenant, endpoints: &[WebhookSubscription]) -> Markup {
    let failing: Vec<&WebhookSubscription> =
        endpoints.iter().filter(|e| e.consecutive_failures > 0 || e.disabled_reason.is_some()).collect();
    html! {
        @if endpoints.is_empty() {
            p.soft { "There are no endpoints yet." }
        } @else if failing.is_empty() {
            p.soft.line { (icon("done")) "All endpoints took their last delivery." }
        } @else {
            (table("Endpoints that need attention", &["Endpoint", "Status", "Failures in a row", "Last delivery"], html! {
                @for endpoint in failing {
                    tr {
                        th scope="row" {
                            a.clip href=(cx.url(&format!("/webhooks/{}", endpoint.id))) { (endpoint.url) }
                            @if let Some(description) = &endpoint.description { div.soft { (description) } }
                        }
                        td {
                            @if endpoint.disabled_reason.is_some() { (badge(Tone::Bad, "paused")) }
                            @else { (badge(Tone::Warn, "failing")) }
                        }
                        td { (number(u64::from(endpoint.consecutive_failures))) }
                        td { (time_or(cx.now, &tenant.time_zone, endpoint.last_delivery_at, "never")) }
                    }
                }
            }))
        }
    }
}

/// Returns what to do first. Steps that are done are marked.
fn first_steps(cx: &Context<'_>, has_key: bool, has_endpoint: bool) -> Markup {
    let step = |is_done: bool, title: &str, text: &str, action: Markup| {
        html! {
            li.done[is_done] {
                span.mark { (icon(if is_done { "done" } else { "" })) }
                div {
                    h3 { (title) @if is_done { span.hidden { " (done)" } } }
                    p { (text) }
                    @if !is_done { (action) }
                }
            }
        }
    };
    section(
        "First steps",
        html! {
            ol.steps {
                (step(has_key, "Create an API key", "Your program sends it with each request.", html! {
                    @if cx.may(Role::Owner) { a.button.primary href=(cx.url("/keys/new")) { "Create key" } }
                }))
                (step(has_endpoint, "Add a webhook endpoint", "It receives an event whenever a record changes.", html! {
                    @if cx.may(Role::Developer) { a.button href=(cx.url("/webhooks/new")) { "Add endpoint" } }
                }))
                (step(false, "Change a record", "Create a contact through the API, and watch its event arrive here.", html! {
                    p.hint { "With the API: " code { "POST /api/v1/contacts" } }
                }))
            }
        },
    )
}
