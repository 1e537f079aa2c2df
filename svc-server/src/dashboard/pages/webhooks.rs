//! Webhooks: endpoints with their figures, and what can be done with them.

use svc_core::changes::ChangeFilter;
use svc_core::error::Error;
use svc_core::prelude::Account;
use svc_core::store::DeliveryFilter;
use svc_core::values::{EventSet, Text, TimeZone, Timestamp};
use svc_core::webhooks::options::Authentication;
use svc_core::webhooks::replays::{Replay, ReplayCreate};
use svc_core::webhooks::signatures::SigningKeys;
use svc_core::webhooks::statistics::{AttemptOutcome, Backlog, HourOfAttempts, Tally};
use svc_core::webhooks::subscriptions::{self, SubscriptionId, WebhookSubscription};

use super::apps::ConnectedApps;
use super::deliveries::DeliveryNames;
use super::endpoint_forms::{kinds_of, secret, secret_of};
use super::{deliveries, filters, replays};
use crate::dashboard::chart::{Column, Series, Span, bars, spans};
use crate::dashboard::prelude::*;

/// The number of deliveries on the page of an endpoint.
const RECENT: u32 = 10;
/// The number of changes of an endpoint in which the last pause is looked for.
const SEARCHED_CHANGES: u32 = 50;

pub(super) const ATTEMPTS: [Series; 3] = [
    Series { name: "succeeded", class: "good" },
    Series { name: "refused", class: "warn" },
    Series { name: "without a response", class: "bad" },
];

fn status(endpoint: &WebhookSubscription) -> Markup {
    if endpoint.disabled_reason.is_some() {
        badge(Tone::Bad, "paused")
    } else if !endpoint.enabled {
        badge(Tone::Neutral, "disabled")
    } else if endpoint.consecutive_failures > 0 {
        badge(Tone::Warn, "failing")
    } else {
        badge(Tone::Good, "enabled")
    }
}

/// Returns all attempts of a chart together.
pub(super) fn sum(hours: &[HourOfAttempts]) -> Tally {
    let mut day = Tally::default();
    hours.iter().for_each(|hour| day.merge(&hour.tally));
    day
}

/// Returns the share of attempts that succeeded, in percent.
pub(super) fn rate(day: &Tally) -> String {
    match day.success_rate() {
        None => "–".to_owned(),
        Some(10_000) => "100 %".to_owned(),
        Some(hundredths) => format!("{}.{} %", hundredths / 100, hundredths % 100 / 10),
    }
}

fn milliseconds(duration: Option<u32>) -> String {
    duration.map_or("–".to_owned(), |duration| format!("{} ms", number(u64::from(duration))))
}

/// Lists the endpoints.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let mut endpoints = Vec::new();
    for endpoint in deliveries::list_endpoints(&cx.svc, tenant.id).await? {
        let day = sum(&account.deliveries().attempts_by_hour(Some(endpoint.id)).await?);
        endpoints.push((endpoint, day));
    }
    let apps = ConnectedApps::of(&cx.svc, tenant.id).await?;
    let create = html! {
        @if cx.may(Role::Developer) {
            a.button.primary href=(cx.url("/webhooks/new")) { "Add endpoint" }
        }
    };
    let content = html! {
        (heading("Webhooks", "Endpoints receive the events of this account as signed requests.",
            if endpoints.is_empty() { html! {} } else { create.clone() }))
        @if endpoints.is_empty() {
            (empty("webhook", "No endpoints yet", "An endpoint is an address of your program, which receives an event whenever a \
                record changes.", create))
        } @else {
            (table("Endpoints", &["Endpoint", "Status", "Success in 24 h", "Attempts", "Events", "Last attempt"], html! {
                @for (endpoint, day) in &endpoints {
                    tr {
                        th scope="row" {
                            a.clip href=(cx.url(&format!("/webhooks/{}", endpoint.id))) { (endpoint.url) }
                            @if let Some(text) = &endpoint.description { div.soft { (text.as_str()) } }
                            @if let Some(app) = apps.owner_of(cx, endpoint) { div.soft { "of the app " (app) } }
                        }
                        td { (status(endpoint)) }
                        td { (rate(day)) }
                        td { (number(day.attempts())) }
                        td { (selection(&endpoint.events)) }
                        td { (time_or(cx.now, &tenant.time_zone, endpoint.last_delivery_at, "never")) }
                    }
                }
            }))
        }
    };
    Ok(layout::page(cx, Some(tenant), "Webhooks", &content))
}

fn selection(events: &EventSet) -> String {
    match events {
        EventSet::All => "all".to_owned(),
        EventSet::Kinds(kinds) => match kinds.as_slice() {
            [only] => only.to_string(),
            kinds => format!("{} kinds", kinds.len()),
        },
    }
}

/// Returns the kinds of a selection.
fn kinds(events: &EventSet) -> String {
    match events {
        EventSet::All => "all, also those of later versions".to_owned(),
        EventSet::Kinds(_) => events.names().join(", "),
    }
}

/// Shows an endpoint.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let endpoint = account.webhooks().get(cx.id::<SubscriptionId>()?).await?;
    let hours = account.deliveries().attempts_by_hour(Some(endpoint.id)).await?;
    let backlog = account.webhooks().backlog(endpoint.id).await?;
    let recent = DeliveryFilter { subscription_id: Some(endpoint.id), limit: RECENT, ..DeliveryFilter::default() };
    let recent = account.deliveries().list(recent).await?;
    let replays = account.replays().list(20).await?;
    let paused = if cx.may(Role::Developer) { paused_at(account, &endpoint, &replays).await? } else { None };
    let app = ConnectedApps::of(&cx.svc, tenant.id).await?.owner_of(cx, &endpoint);
    let endpoints = deliveries::Endpoints::from([(endpoint.id, endpoint.clone())]);
    let names = DeliveryNames::of(&cx.svc, tenant.id, &recent, endpoints).await?;
    let day = sum(&hours);
    let zone = &tenant.time_zone;
    let content = html! {
        (heading(endpoint.url.as_str(), endpoint.description.as_ref().map_or("", Text::as_str),
            html! { @if cx.may(Role::Developer) { (actions(cx, &endpoint, &backlog)) } }))
        @if endpoint.disabled_reason.is_some() {
            p.banner.bad role="status" {
                "This endpoint was paused after " (endpoint.consecutive_failures) " failed attempts in a row. What happens \
                 meanwhile is held: enable the endpoint when it works again, then recover what was missed."
            }
        }
        div.figures {
            (figure("Success rate", &rate(&day), Tone::Neutral, "of the attempts of 24 hours"))
            (figure("Attempts", &number(day.attempts()), Tone::Neutral, "in 24 hours"))
            (figure("Median response", &milliseconds(day.percentile(50)), Tone::Neutral, &format!("95 % within {}", milliseconds(day.percentile(95)))))
            (figure("Waiting", &number(backlog.pending), Tone::Neutral, "to be sent"))
            (figure("Held", &number(backlog.held), if backlog.held > 0 { Tone::Warn } else { Tone::Neutral }, "until they are recovered"))
        }
        div.columns {
            (section("Attempts per hour", bars("Attempts of the last 24 hours by hour and outcome", &ATTEMPTS, &attempts(tenant, &hours))))
            (section("Response times", spans("Response times of the last 24 hours by hour, in milliseconds", "ms", &durations(tenant, &hours))))
        }
        (section("Recent deliveries", html! {
            @if recent.is_empty() {
                p.soft { "None yet. Send a test event to see one arrive." }
            } @else {
                (deliveries::rows(&cx.view(tenant), &recent, &names))
            }
        }))
        p { a href=(cx.url(&format!("/deliveries?endpoint={}", endpoint.id))) { "All deliveries of this endpoint" } }
        (section("Endpoint", facts(&[
            ("Status", status(&endpoint)),
            ("Id", html! { code { (endpoint.id) } }),
            ("Belongs to", html! { @match &app { Some(app) => { "the app " (app) } None => { "this account" } } }),
            ("Events", html! { (kinds(&endpoint.events)) }),
            ("Last attempt", html! {
                (deliveries::outcome(endpoint.last_delivery_status)) ", "
                (time_or(cx.now, zone, endpoint.last_delivery_at, "never"))
            }),
            ("Back-off", html! {
                @match endpoint.backoff_until.filter(|until| *until > cx.now) {
                    Some(until) => { "nothing is sent until " (exact_time(zone, until)) ", since the last attempt failed" }
                    None => { "none" }
                }
            }),
            ("Created", exact_time(zone, endpoint.created_at)),
            ("Rotation", html! {
                @match endpoint.previous_until.filter(|until| *until > cx.now) {
                    Some(until) => { "the old secret signs as well until " (exact_time(zone, until)) }
                    None => { "none under way" }
                }
            }),
        ])))
        details.card {
            summary { "What it asks for" }
            (facts(&options(cx, zone, &endpoint)))
            p.soft { "Headers, authentication and certificates are set by the API or with " code { "svc webhook update" } ", the others with Edit." }
        }
        details.card {
            summary { "What it is sent, and when" }
            (kinds_of(cx, &endpoint))
        }
        @if cx.may(Role::Developer) {
            (section("Recover", html! {
                p { "Sends everything again that failed or was held since a time, in the order in which it happened." }
                form.filters method="post" action=(cx.url(&format!("/webhooks/{}/recover", endpoint.id))) {
                    (hidden(cx, &Form::default(), ""))
                    (problem(cx, &format!("/webhooks/{}/recover", endpoint.id)))
                    (filters::choice("within", "Since", html! {
                        @if let Some(at) = paused {
                            option value=(at.as_micros()) selected {
                                "It was paused, " (zone.minute_at(at))
                            }
                        }
                        (filters::spans(if paused.is_some() { "-" } else { "24h" }))
                    }))
                    label { input type="checkbox" name="missed" value="on"; " Also events that were never sent to it, such as from when it was disabled or before it was added" }
                    button type="submit" { "Recover" }
                }
            }))
        }
        @if replays.iter().any(|replay| replay.subscription_id == endpoint.id) {
            (section("Recoveries", html! {
                ul {
                    @for replay in replays.iter().filter(|replay| replay.subscription_id == endpoint.id) {
                        li { a href=(cx.url(&format!("/replays/{}", replay.id))) {
                            "Since " (exact_time(zone, replay.since)) ": " (replay.progress())
                        } }
                    }
                }
            }))
        }
    };
    Ok(layout::page(cx, Some(tenant), "Endpoint", &content))
}

/// Returns what an endpoint asks for beyond the contract.
fn options(cx: &Context<'_>, zone: &TimeZone, endpoint: &WebhookSubscription) -> Vec<(&'static str, Markup)> {
    let or_none = |value: Option<String>| match value {
        Some(value) => html! { (value) },
        None => html! { span.soft { "not set" } },
    };
    let text = |value: Option<&dyn std::fmt::Display>| or_none(value.map(ToString::to_string));
    let seconds = |seconds: u32| format!("{seconds} s");
    let headers = endpoint.headers.as_ref();
    let names = headers.map(|headers| headers.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", "));
    let authentication = endpoint.authentication.as_ref().map(|authentication| match authentication {
        Authentication::Basic { username, .. } => format!("basic, as {username}"),
        Authentication::Bearer { .. } => "bearer".to_owned(),
        Authentication::OAuth2(credentials) => {
            format!("OAuth 2.0, as {} at {}", credentials.client_id, credentials.token_url)
        }
    });
    let retries = endpoint.retry_schedule.as_ref().map(|delays| match delays.seconds() {
        [] => "none".to_owned(),
        delays => delays.iter().copied().map(seconds).collect::<Vec<_>>().join(", "),
    });
    let keys = || endpoint.signing_keys.iter().flat_map(SigningKeys::iter);
    let keys = || keys().filter(|key| key.expires_at.is_none_or(|until| until > cx.now));
    let public_keys = keys().next().is_some().then(|| {
        html! {
            @for key in keys() {
                div { code { (key.public_key) } @if let Some(until) = key.expires_at { " until " (exact_time(zone, until)) } }
            }
        }
    });
    vec![
        ("Headers", or_none(names)),
        ("Authentication", or_none(authentication)),
        (
            "Filter",
            match &endpoint.filter {
                Some(filter) => html! { code { (filter) } },
                None => or_none(None),
            },
        ),
        ("Payload", text(endpoint.payload.as_ref().map(|payload| payload as _))),
        ("Most a second", or_none(endpoint.max_per_second.map(|rate| rate.get().to_string()))),
        ("Most in flight", or_none(endpoint.max_in_flight.map(|count| count.get().to_string()))),
        ("Timeout", or_none(endpoint.timeout.map(|timeout| seconds(timeout.get())))),
        ("Waits before retries", or_none(retries)),
        ("Order", text(endpoint.ordering.as_ref().map(|ordering| ordering as _))),
        ("Client certificate", or_none(endpoint.client_certificate.as_ref().map(|it| fingerprint(it.sha256())))),
        (
            "Trusted authorities",
            match &endpoint.certificate_authority {
                Some(authority) => {
                    or_none(Some(authority.sha256().iter().map(|it| fingerprint(it)).collect::<Vec<_>>().join(", ")))
                }
                None => html! { "the public ones" },
            },
        ),
        ("Signature", text(endpoint.signature.as_ref().map(|signature| signature as _))),
        ("Public keys", public_keys.unwrap_or_else(|| or_none(None))),
    ]
}

/// Returns the fingerprint of a certificate for people.
fn fingerprint(sha256: &str) -> String {
    format!("SHA-256 {sha256}")
}

fn actions(cx: &Context<'_>, endpoint: &WebhookSubscription, backlog: &Backlog) -> Markup {
    let path = |action: &str| format!("/webhooks/{}/{action}", endpoint.id);
    let button = |action: &str, text: &str, class: &str| post_button(cx, &path(action), class, html! {}, text);
    let overlap = overlap_choice("How long the old secret signs as well");
    // That of an app is changed by the app alone, which alone knows its secret.
    let is_own = endpoint.grant_id.is_none();
    let url = &endpoint.url;
    let waiting = match backlog.pending + backlog.held {
        0 => "Nothing is waiting for it.".to_owned(),
        count => format!("Deliveries that wait or are held ({}) are never sent: they fail for good.", number(count)),
    };
    html! {
        @if endpoint.enabled {
            (button("test", "Send test event", "primary"))
        } @else {
            (button("enable", "Enable", "primary"))
        }
        @if cx.site.trials.is_some() { (button("try", "Try it", "")) }
        @if is_own { a.button href=(cx.url(&path("edit"))) { "Edit" } }
        @if !is_own {
        } @else if endpoint.previous_until.is_some_and(|until| until > cx.now) {
            (button("finish-rotation", "Finish rotation", ""))
        } @else {
            (confirmed(cx, "Rotate secret", &format!("{url} gets a new secret. The old one signs as well meanwhile for:"),
                &path("rotate"), overlap, "Create new secret"))
        }
        @if endpoint.enabled {
            (confirmed(cx, "Disable", &format!("Nothing is sent to {url} from now on. What is waiting is held."),
                &path("disable"), html! {}, "Disable endpoint"))
        }
        (confirmed(cx, "Delete", &format!("{url} is deleted with its secret, for good. {waiting} Deliveries that were sent stay in the \
            list until they are too old."), &path("delete"), html! {}, "Delete endpoint"))
    }
}

/// Returns the time of day at which an hour begins.
fn hour(tenant: &Tenant, hour: &HourOfAttempts) -> String {
    tenant.time_zone.date_and_time_at(hour.begins_at).get(11..16).unwrap_or_default().to_owned()
}

pub(super) fn attempts(tenant: &Tenant, hours: &[HourOfAttempts]) -> Vec<Column> {
    let values = |hour: &HourOfAttempts| AttemptOutcome::ALL.iter().map(|outcome| hour.tally.count(*outcome)).collect();
    hours.iter().map(|at| Column { label: hour(tenant, at), values: values(at) }).collect()
}

fn durations(tenant: &Tenant, hours: &[HourOfAttempts]) -> Vec<Span> {
    let percentiles =
        |hour: &HourOfAttempts| Some((hour.tally.percentile(50)?.into(), hour.tally.percentile(95)?.into()));
    hours.iter().map(|at| Span { label: hour(tenant, at), values: percentiles(at) }).collect()
}

/// Sends a test event, and shows its delivery.
pub(crate) async fn test(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let endpoint = cx.id::<SubscriptionId>()?;
    let delivery = submit(cx, tenant.id, "svc.webhooks.send_test", endpoint, async |tx, form| {
        Ok(subscriptions::send_test(tx, form.tenant, form.input, None).await?.id.uuid())
    });
    let delivery = delivery.await.map_err(refusal)?;
    Ok(cx.see_other(&format!("/deliveries/{delivery}?notice=test-sent")))
}

/// Replaces the secret, which signs as well for a while.
pub(crate) async fn rotate(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let overlap = chosen_overlap(&cx.form, "Choose how long the old secret signs as well.")?;
    let input = (cx.id::<SubscriptionId>()?, overlap);
    let new = submit(cx, tenant.id, "dashboard.rotate_endpoint", input, async |tx, form| {
        let (id, overlap) = form.input;
        Ok(secret_of(&subscriptions::rotate_secret(tx, form.tenant, id, overlap).await?))
    });
    Ok(secret(cx, tenant, &new.await.map_err(refusal)?, "Secret rotated"))
}

/// Returns when an endpoint was last paused, if no recovery has begun since then.
async fn paused_at(
    account: Account<'_>,
    endpoint: &WebhookSubscription,
    replays: &[Replay],
) -> Result<Option<Timestamp>, Error> {
    let changes = account.audit_log().changes(ChangeFilter::of(endpoint.id.uuid()), SEARCHED_CHANGES).await?;
    let paused = changes.data.iter().find(|change| change.entry.action == "pause").map(|change| change.entry.at);
    let is_recovery = |replay: &&Replay| replay.subscription_id == endpoint.id;
    let recovered = replays.iter().filter(is_recovery).map(|replay| replay.created_at).max();
    Ok(paused.filter(|at| recovered.is_none_or(|recovered| recovered < *at)))
}

/// Starts a recovery, and shows its progress.
pub(crate) async fn recover(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let endpoint = cx.svc.account(tenant.id).webhooks().get(cx.id::<SubscriptionId>()?).await?;
    let since = match cx.form.text("within").parse().ok().map(Timestamp::from_micros) {
        Some(paused_at) => paused_at,
        None => filters::begins(cx, cx.form.text("within"))?.unwrap_or(endpoint.created_at),
    };
    let input = ReplayCreate { missed: cx.form.text("missed") == "on", ..ReplayCreate::new(endpoint.id, since) };
    replays::begin(cx, tenant.id, "svc.replays.create", input).await
}
