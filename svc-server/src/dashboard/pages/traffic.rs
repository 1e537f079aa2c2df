//! How deliveries and requests go, and what to do first: the overview for developers.

use svc_core::accounts::keys::ApiKey;
use svc_core::error::Error;
use svc_core::store::DeliveryFilter;
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::statistics::HourOfAttempts;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::{deliveries, webhooks};
use crate::dashboard::chart::bars;
use crate::dashboard::prelude::*;

/// The number of deliveries up to which those that failed or are held are counted.
const MAX_COUNTED: u32 = 100;
/// The number of keys whose requests are shown.
const MAX_KEYS: usize = 8;

/// Shows how deliveries and requests go.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let hours = account.deliveries().attempts_by_hour(None).await?;
    let day = webhooks::sum(&hours);
    let of_status = |status, limit| DeliveryFilter { status, limit, ..DeliveryFilter::default() };
    let count = async |status| account.deliveries().list(of_status(Some(status), MAX_COUNTED + 1)).await;
    let held = count(DeliveryStatus::Held).await?.len();
    let failed = count(DeliveryStatus::Failed).await?.len();
    let endpoints = deliveries::list_endpoints(&cx.svc, tenant.id).await?;
    let keys = account.keys().list().await?;

    let content = html! {
        (heading("Overview", "The last 24 hours of this account.", html! {}))
        (overview_tabs(cx))
        (first_steps_if_new(cx, tenant).await?)
        div.figures {
            (linked_figure(&cx.url("/webhooks"), "Attempts", &number(day.attempts()), Tone::Neutral, "to deliver, in 24 hours"))
            (linked_figure(&cx.url("/webhooks"), "Success rate", &webhooks::rate(&day), Tone::Neutral, "of these attempts"))
            (linked_figure(&cx.url("/deliveries?status=failed"), "Failed", &counted(failed), if failed > 0 { Tone::Bad } else { Tone::Neutral }, "all retries used up"))
            (linked_figure(&cx.url("/deliveries?status=held"), "Held", &counted(held), if held > 0 { Tone::Warn } else { Tone::Neutral }, "until you replay them"))
        }
        (section("Attempts by outcome", chart(tenant, &hours)))
        @let usage = usage(cx, tenant, &keys);
        @if !usage.is_empty() {
            (section("Requests in this minute", requests(cx, &usage)))
        }
        (section("Endpoints that need attention", attention(cx, tenant, &endpoints)))
    };
    Ok(layout::page(cx, Some(tenant), "Overview", &content))
}

/// Returns a number that was counted up to a bound.
fn counted(count: usize) -> String {
    if count > MAX_COUNTED as usize { format!("{}+", number(u64::from(MAX_COUNTED))) } else { number(count as u64) }
}

fn chart(tenant: &Tenant, hours: &[HourOfAttempts]) -> Markup {
    if hours.iter().all(|hour| hour.tally.attempts() == 0) {
        return empty(
            "delivery",
            "No attempts in 24 hours",
            "When a record changes, each endpoint that wants the event gets a \
            delivery, and this chart shows how the attempts went.",
            html! {},
        );
    }
    let label = "Attempts of the last 24 hours by hour and outcome";
    bars(label, &webhooks::ATTEMPTS, &webhooks::attempts(tenant, hours))
}

/// The requests of a key in its current minute, and how many it may make.
struct Usage<'k> {
    key: &'k ApiKey,
    used: u32,
    limit: u32,
}

/// Returns the keys that work, those with most requests first.
fn usage<'k>(cx: &Context<'_>, tenant: &Tenant, keys: &'k [ApiKey]) -> Vec<Usage<'k>> {
    let works = |key: &&ApiKey| key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > cx.now);
    let usage = |key: &'k ApiKey| {
        let (used, limit) = cx.site.kernel.limits.usage(key.id, &tenant.limits, cx.now)?;
        Some(Usage { key, used, limit })
    };
    let mut usage: Vec<Usage<'k>> = keys.iter().filter(works).filter_map(usage).collect();
    usage.sort_by_key(|usage| std::cmp::Reverse((usage.used, usage.key.last_used_at)));
    usage.truncate(MAX_KEYS);
    usage
}

fn requests(cx: &Context<'_>, usage: &[Usage<'_>]) -> Markup {
    html! {
        ul.usage {
            @for Usage { key, used, limit } in usage {
                @let name = key.name.as_deref().unwrap_or(&key.prefix);
                @let count = format!("{} of {}", number(u64::from(*used)), number(u64::from(*limit)));
                li {
                    a href=(cx.url(&format!("/requests?key={}", key.id))) { (name) }
                    progress max=(limit) value=(used) aria-label={ "Requests with " (name) } { (count) }
                    span { (count) }
                }
            }
        }
        p.hint { "The limit is for 60 seconds, which begin with the first request of the key. Some writes have a limit of their own." }
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

/// Returns the links between the overview for the owner and that for developers.
pub(super) fn overview_tabs(cx: &Context<'_>) -> Markup {
    let tab = |path: &str, name: &str| {
        html! { a href=(cx.url(path)) aria-current=[(cx.path == path).then_some("page")] { (name) } }
    };
    html! { nav.tabs aria-label="Overviews" { (tab("/", "Business")) (tab("/traffic", "Webhooks and API")) } }
}

/// Returns what to do first in an account that nothing was delivered for yet. Nothing in others.
pub(super) async fn first_steps_if_new(cx: &Context<'_>, tenant: &Tenant) -> Result<Markup, Error> {
    let account = cx.svc.account(tenant.id);
    let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
    if !account.deliveries().list(newest).await?.is_empty() {
        return Ok(html! {});
    }
    let has_key = !account.keys().list().await?.is_empty();
    let has_endpoint = !deliveries::list_endpoints(&cx.svc, tenant.id).await?.is_empty();
    Ok(html! { @if !has_key || !has_endpoint { (first_steps(cx, has_key, has_endpoint)) } })
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
