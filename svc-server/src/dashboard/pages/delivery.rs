//! A delivery: its attempts, what was sent and what came back, and sending it again.

use svc_core::values::Patch;
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId};
use svc_core::webhooks::replays;
use svc_core::webhooks::subscriptions::{WebhookSubscription, WebhookUpdate};

use super::attempt_request::AttemptRequest;
use super::deliveries::outcome;
use super::event_list::EventRecord;
use super::{attempts, event_list, filters};
use crate::dashboard::json;
use crate::dashboard::prelude::*;

/// Shows a delivery with one of its attempts.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let delivery = account.deliveries().get(cx.id::<DeliveryId>()?).await?;
    let event = account.events().get(delivery.event_id).await?;
    let compared = compared(cx)?;
    let number_shown: Option<u32> = filters::value(cx, "attempt")?;
    let mut logs = account.deliveries().attempts(delivery.id).await?;
    let newest = logs.len();
    // Those that are asked for may be older than the newest ones.
    for number in compared.iter().copied().take(2).chain(number_shown) {
        if !logs.iter().any(|log| log.attempt == number) {
            let before = number.saturating_add(1);
            let found = account.deliveries().attempts_before(delivery.id, before, 1).await?;
            logs.extend(found.into_iter().filter(|log| log.attempt == number));
        }
    }
    let endpoint = if_found(account.webhooks().get(delivery.subscription_id).await)?;
    let cause = event_list::cause(cx, tenant, &event).await?;
    let shown = match number_shown {
        Some(number) => logs.iter().find(|log| log.attempt == number),
        None => logs.last(),
    };
    let request = |log: &AttemptLog| {
        endpoint.as_ref().map(|endpoint| AttemptRequest::new(&delivery, &event, endpoint, log, tenant.is_sandbox()))
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
        (section("Attempts", attempts::timeline(cx, tenant, &delivery, endpoint.as_ref(), &logs[..newest], &compared)))
        (section("Delivery", facts(&[
            ("Id", html! { code { (delivery.id) } }),
            ("Endpoint", html! {
                @match &endpoint {
                    Some(endpoint) => { a href=(cx.url(&format!("/webhooks/{}", endpoint.id))) { (endpoint.url) } }
                    None => { span.soft { "deleted" } }
                }
            }),
            ("Record", EventRecord::of(&event).link(&cx.view(tenant))),
            ("Event", html! { a href=(cx.url(&format!("/events/{}", event.id))) { code { (event.id) } } }),
            ("Request", cause),
            ("Happened", exact_time(zone, delivery.created_at)),
        ])))
        @if !compared.is_empty() {
            (section("Comparison", comparison(cx, tenant, &logs, &compared, |log| request(log))))
        } @else if let Some(attempt) = shown {
            (section(&format!("Response to attempt {}", attempt.attempt), response("response-body", attempt)))
            @match request(attempt) {
                Some(request) => { (request.cards()) }
                None => { (section("Request", html! { p.soft { "The endpoint was deleted, and the secret that signed with it." } })) }
            }
        } @else {
            (section("Payload", json::body("payload", event.data.get())))
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

/// Returns the numbers of the attempts to compare, from `compare=1,2` or `compare=1&compare=2`. None if there are none.
fn compared(cx: &Context<'_>) -> Result<Vec<u32>, PageError> {
    let numbers = cx.query.all("compare").flat_map(|list| list.split(','));
    let numbers: Result<Vec<u32>, _> = numbers.map(|number| number.trim().parse()).collect();
    numbers.map_err(|_| PageError::Invalid("Attempts are compared by their numbers, as in compare=1,2.".to_owned()))
}

/// Returns two attempts side by side, with a mark at what differs.
fn comparison(
    cx: &Context<'_>,
    tenant: &Tenant,
    logs: &[AttemptLog],
    numbers: &[u32],
    request: impl Fn(&AttemptLog) -> Option<AttemptRequest>,
) -> Markup {
    let find = |number: &u32| logs.iter().find(|log| log.attempt == *number);
    let (one, other) = match numbers {
        [one, other] if one != other => (find(one), find(other)),
        _ => (None, None),
    };
    let (Some(one), Some(other)) = (one, other) else {
        return html! { p.error role="alert" { "Tick two attempts of this delivery." } };
    };
    let headings = [one, other].map(|log| format!("Attempt {}", log.attempt));
    let texts = [one, other].map(|log| {
        let error = log.error.clone().unwrap_or_else(|| "none".to_owned());
        let address = log.remote_addr.clone().unwrap_or_else(|| "–".to_owned());
        let duration = format!("{} ms", number(u64::from(log.duration_ms)));
        [outcome(Some(log.status)), error, duration, address, tenant.time_zone.date_and_time_at(log.started_at)]
    });
    let names = ["Result", "Error", "Duration", "Address", "Started"];
    let rows = |name: &str, one: &str, other: &str| {
        html! {
            tr {
                th scope="row" { (name) @if one != other { " " (badge(Tone::Neutral, "differs")) } }
                td { (one) }
                td { (other) }
            }
        }
    };
    let requests = [request(one), request(other)];
    html! {
        (table("Comparison", &["Value", &headings[0], &headings[1]], html! {
            @for (at, name) in names.iter().enumerate() { (rows(name, &texts[0][at], &texts[1][at])) }
            @if let [Some(one), Some(other)] = &requests {
                @for ((name, one), (_, other)) in one.headers.iter().zip(&other.headers) { (rows(name, one, other)) }
            }
        }))
        div.columns {
            @for (id, log) in [("response-one", one), ("response-other", other)] {
                div {
                    h3 { "Response to attempt " (log.attempt) }
                    (response(id, log))
                }
            }
        }
        p { a href=(cx.url(cx.path)) { "Back to one attempt" } }
    }
}

/// Returns the body of a response. `id` is that of its element.
fn response(id: &str, attempt: &AttemptLog) -> Markup {
    html! {
        @match attempt.response_body.as_deref() {
            Some("") => { p.soft { "The body was empty." } }
            Some(text) => {
                (json::body(id, text))
                @if attempt.response_truncated { p.hint { "The endpoint sent more than is stored." } }
            }
            None if attempt.status > 0 => { p.soft { "The body is not stored." } }
            None => { p.soft { "There was no response." } }
        }
    }
}

/// Sends a delivery again, after its endpoint was enabled if the form says so.
pub(crate) async fn replay(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (account, id) = (cx.svc.account(tenant.id), cx.id::<DeliveryId>()?);
    if cx.form.text("enable") == "on" {
        let endpoint = account.deliveries().get(id).await?.subscription_id;
        let change = WebhookUpdate { enabled: Patch::Set(true), ..WebhookUpdate::default() };
        account.webhooks().update(endpoint, change).await?;
    }
    let replayed = submit(cx, tenant.id, "svc.deliveries.replay", id, async |tx, form| {
        replays::replay_delivery(tx, form.tenant, form.input).await.map(drop)
    });
    replayed.await.map_err(refusal)?;
    Ok(cx.see_other(&format!("/deliveries/{id}?notice=replayed")))
}
