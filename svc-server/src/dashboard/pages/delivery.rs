//! A delivery: its attempts, what was sent and what came back, and sending it again.

use maud::{Markup, html};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::Tenant;
use svc_core::crypto::sha256;
use svc_core::error::Error;
use svc_core::requests::RequestFilter;
use svc_core::values::Patch;
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId};
use svc_core::webhooks::engine::Attempt;
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::{WebhookSubscription, WebhookUpdate};

use super::deliveries::{outcome, status};
use super::filters;
use crate::dashboard::components::{
    Tone, badge, empty, exact_time, facts, heading, number, post_button, section, table, time, time_or,
};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};

/// The number of bytes of a body that a page shows, so that it stays small.
const MAX_SHOWN: usize = 12 * 1024;
/// The number of attempts that a page lists.
const MAX_ATTEMPTS: usize = 50;

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
