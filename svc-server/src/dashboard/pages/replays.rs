//! Replays: what matches a filter of deliveries is sent again, after its number was shown; and how far replays have come.

use svc_core::error::Error;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::replays::{self, MAX_TOTAL, Replay, ReplayCreate, ReplayId};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

use super::{deliveries, filters};

use crate::dashboard::prelude::*;

/// The page that replays what matches a filter, below `/dashboard`.
const MATCHING: &str = "/deliveries/replay-matching";

/// Why a filter cannot be replayed as it is.
enum NotReplayed {
    /// It is of several endpoints, of which the person has to choose one.
    ManyEndpoints,
    /// It selects what no replay can go through.
    Refused(&'static str),
}

/// Returns the replay of all deliveries that match the filter in the query or in the form, or why there is none.
fn matching(
    cx: &Context<'_>,
    endpoints: &[WebhookSubscription],
) -> Result<Result<(WebhookSubscription, ReplayCreate), NotReplayed>, PageError> {
    let filter = if cx.form.given("endpoint").is_some() { &cx.form } else { &cx.query };
    let chosen: Option<SubscriptionId> = filters::value_of(filter, "endpoint")?;
    let endpoint = match (chosen, endpoints) {
        (Some(id), _) => endpoints.iter().find(|endpoint| endpoint.id == id),
        (None, [only]) => Some(only),
        (None, []) => return Ok(Err(NotReplayed::Refused("There is no endpoint to which anything could be sent."))),
        (None, _) => return Ok(Err(NotReplayed::ManyEndpoints)),
    };
    let Some(endpoint) = endpoint else {
        return Ok(Err(NotReplayed::Refused("The endpoint was deleted, so nothing can be sent to it.")));
    };
    if ["kind", "record", "event"].iter().any(|name| filter.given(name).is_some()) {
        return Ok(Err(NotReplayed::Refused(
            "A replay goes through an endpoint by status and time, so it cannot be of one kind of event, one event or \
             one record. Clear these filters, or tick the deliveries in the list.",
        )));
    }
    let statuses = match filters::value_of(filter, "status")? {
        Some(DeliveryStatus::Pending) => {
            return Ok(Err(NotReplayed::Refused("Waiting deliveries are sent by themselves. Choose another status.")));
        }
        Some(status) => vec![status],
        None => vec![DeliveryStatus::Succeeded, DeliveryStatus::Failed, DeliveryStatus::Held],
    };
    let time = |name| Ok::<_, PageError>(filters::value_of(filter, name)?.map(Timestamp::from_micros));
    let since = match time("since")? {
        Some(since) => since,
        None => filters::begins(cx, filter.text("within"))?.unwrap_or(endpoint.created_at),
    };
    let until = Some(time("until")?.unwrap_or(cx.now));
    let input = ReplayCreate { until, statuses, ..ReplayCreate::new(endpoint.id, since) };
    Ok(Ok((endpoint.clone(), input)))
}

/// Shows how much matches the filter in the query, and asks whether to send it again.
pub(crate) async fn confirm(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let endpoints = deliveries::list_endpoints(&cx.svc, tenant.id).await?;
    let planned = match matching(cx, &endpoints)? {
        Ok((endpoint, input)) => match cx.svc.account(tenant.id).replays().preview(input).await {
            Ok(replay) => Ok((endpoint, replay)),
            Err(Error::NotAllowed(_)) => {
                let url = &endpoint.url;
                Err(refused(&format!(
                    "{url} takes nothing, since it is paused or disabled. Enable it on its page first."
                )))
            }
            Err(error) => return Err(error.into()),
        },
        Err(NotReplayed::Refused(reason)) => Err(refused(reason)),
        Err(NotReplayed::ManyEndpoints) => Err(endpoint_choice(cx, &endpoints)),
    };
    let back = cx.url(&format!("/deliveries?{}", cx.query.encoded(&deliveries::FILTERS)));
    let content = html! {
        (heading("Replay what matches", "", html! { a.button href=(back) { "Back to the list" } }))
        @match &planned {
            Ok((endpoint, replay)) => { (question(cx, tenant, endpoint, replay)) }
            Err(refusal) => { (refusal) }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Replay what matches", &content))
}

fn refused(reason: &str) -> Markup {
    section("This filter cannot be replayed", html! { p { (reason) } })
}

/// Asks to which endpoint what matches is sent again.
fn endpoint_choice(cx: &Context<'_>, endpoints: &[WebhookSubscription]) -> Markup {
    let others = deliveries::FILTERS.iter().filter_map(|name| Some((*name, cx.query.given(name)?)));
    section(
        "To which endpoint?",
        html! {
            p { "A replay is of one endpoint." }
            form.filters method="get" action=(cx.url(MATCHING)) {
                @for (name, value) in others { input type="hidden" name=(name) value=(value); }
                (filters::choice("endpoint", "Endpoint", html! {
                    @for endpoint in endpoints { option value=(endpoint.id) { (endpoint.url) } }
                }))
                button.primary type="submit" { "Go on" }
            }
        },
    )
}

fn question(cx: &Context<'_>, tenant: &Tenant, endpoint: &WebhookSubscription, replay: &Replay) -> Markup {
    let more = if replay.total == MAX_TOTAL { " or more" } else { "" };
    // Those that succeeded are not counted by themselves.
    let is_exact = !replay.statuses.contains(&DeliveryStatus::Succeeded);
    let status = if let [only] = replay.statuses.as_slice() { only.as_str() } else { "" };
    // What was counted is what is sent, however long the page is open.
    let fields = [
        ("endpoint", endpoint.id.to_string()),
        ("status", status.to_owned()),
        ("since", replay.since.as_micros().to_string()),
        ("until", replay.until.as_micros().to_string()),
    ];
    let count = format!("{}{more}", number(replay.total));
    let deliveries = format!("{count} {}", if replay.total == 1 { "delivery" } else { "deliveries" });
    section(
        &deliveries,
        html! {
            p {
                @if replay.total == 0 {
                    "None matches, so there is nothing to send again."
                } @else if is_exact {
                    "All of them are sent to " b { (endpoint.url) } " again, the oldest first, each with all its retries ahead."
                } @else {
                    "So many were made for " b { (endpoint.url) } " in this time. Those of them with the status below are sent again, \
                     the oldest first, each with all its retries ahead."
                }
            }
            (facts(&[
                ("With the status", html! { (names(&replay.statuses)) }),
                ("Since", exact_time(&tenant.time_zone, replay.since)),
                ("Until", exact_time(&tenant.time_zone, replay.until)),
            ]))
            form method="post" action=(cx.url(MATCHING)) {
                (csrf(cx))
                @for (name, value) in &fields { input type="hidden" name=(name) value=(value); }
                (key_field(cx))
                (problem(cx, MATCHING))
                @if replay.total > 0 {
                    button.danger type="submit" {
                        @if is_exact { "Send " (deliveries) " again" } @else { "Send those with this status again" }
                    }
                }
            }
        },
    )
}

/// Returns the names of statuses, as the list of deliveries has them.
fn names(statuses: &[DeliveryStatus]) -> String {
    let name = |status: &DeliveryStatus| match status {
        DeliveryStatus::Pending => "waiting",
        DeliveryStatus::Succeeded => "delivered",
        DeliveryStatus::Failed => "failed",
        DeliveryStatus::Held => "held",
    };
    statuses.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Starts the replay of all that matches, and shows its progress. A form that is sent twice starts one.
pub(crate) async fn start(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let endpoints = deliveries::list_endpoints(&cx.svc, tenant.id).await?;
    let planned = matching(cx, &endpoints)?.map_err(|refused| match refused {
        NotReplayed::ManyEndpoints => PageError::Invalid("Choose the endpoint of the replay.".to_owned()),
        NotReplayed::Refused(reason) => PageError::Refused(reason.to_owned()),
    });
    let (_, input) = planned?;
    begin(cx, tenant.id, "dashboard.replay_matching", input).await
}

/// Starts a replay, and shows its progress.
pub(super) async fn begin(
    cx: &Context<'_>,
    tenant: TenantId,
    name: &'static str,
    input: ReplayCreate,
) -> Result<PageResponse, PageError> {
    let replay = submit(cx, tenant, name, input, async |tx, form| {
        Ok(replays::create(tx, form.tenant, form.input.clone()).await?.id.uuid())
    });
    let replay = replay.await.map_err(refusal)?;
    Ok(cx.see_other(&format!("/replays/{replay}")))
}

/// Shows how far a replay has come.
pub(crate) async fn progress(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let replay = cx.svc.account(tenant.id).replays().get(cx.id::<ReplayId>()?).await?;
    let endpoint = if_found(cx.svc.account(tenant.id).webhooks().get(replay.subscription_id).await)?;
    let zone = &tenant.time_zone;
    let state = if replay.broken_off() {
        badge(Tone::Bad, "broken off")
    } else if replay.finished_at.is_some() {
        badge(Tone::Good, "finished")
    } else {
        badge(Tone::Neutral, "running")
    };
    let content = html! {
        (heading("Replay", "Deliveries are sent again in the order in which they happened.", html! {
            a.button href=(cx.url(&format!("/replays/{}", replay.id))) { "Refresh" }
        }))
        section.card id="progress" data-refresh[replay.finished_at.is_none()] {
            h2 { "Progress" }
            progress max="100" value=(replay.percent()) aria-label="Progress" { (replay.progress()) }
            (facts(&[
                ("Status", html! { (state) " " (replay.progress()) }),
                ("Deliveries", html! { (number(replay.replayed)) @if replay.finished_at.is_some() { " sent again" } @else { " sent again so far" } }),
                ("Endpoint", html! {
                    @match &endpoint {
                        Some(endpoint) => { a href=(cx.url(&format!("/webhooks/{}", endpoint.id))) { (endpoint.url) } }
                        None => { span.soft { "deleted" } }
                    }
                }),
                ("With the status", html! { (names(&replay.statuses)) @if replay.missed { ", and what was missed" } }),
                ("Since", exact_time(zone, replay.since)),
                ("Until", exact_time(zone, replay.until)),
                ("Started", exact_time(zone, replay.created_at)),
                ("Ended", time_or(cx.now, zone, replay.finished_at, "not yet")),
            ]))
        }
    };
    Ok(layout::page(cx, Some(tenant), "Replay", &content))
}
