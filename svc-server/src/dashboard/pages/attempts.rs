//! The attempts at a delivery as a timeline, which is live: where the delivery stands, and below it each attempt, the newest
//! first.

use svc_core::Svc;
use svc_core::error::Error;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus, FailureReason};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use super::deliveries::{outcome, status};
use crate::dashboard::failures;
use crate::dashboard::live::{self, List as _};
use crate::dashboard::prelude::*;

/// The number of attempts that a page lists: those that [`Deliveries::attempts`](svc_core::service::Deliveries::attempts) returns.
const MAX_ATTEMPTS: usize = svc_core::service::MAX_ATTEMPTS as usize;
/// The id of the timeline.
const TIMELINE: &str = "attempts";

/// The attempts at a delivery as a live list.
pub(crate) struct Attempts;

/// An entry of the timeline.
#[derive(PartialEq)]
pub(crate) enum Entry {
    /// Where the delivery stands, and until when its endpoint gets nothing after a failure.
    State(Delivery, Option<Timestamp>),
    /// An attempt, without the body of its response.
    Attempt(DeliveryId, AttemptLog),
}

impl live::List for Attempts {
    type Item = Entry;
    type Names = ();
    type Filter = ();
    type Scope = DeliveryId;

    async fn newest(svc: &Svc, tenant: TenantId, id: &DeliveryId) -> Result<Vec<Entry>, Error> {
        let account = svc.account(tenant);
        let delivery = account.deliveries().get(*id).await?;
        let endpoint = if_found(account.webhooks().get(delivery.subscription_id).await)?;
        Ok(entries(delivery, endpoint.as_ref(), &account.deliveries().attempts(*id).await?))
    }

    async fn names(_: &Svc, _: TenantId, _: &[Entry]) -> Result<(), Error> {
        Ok(())
    }

    fn id(entry: &Entry) -> Uuid {
        match entry {
            Entry::State(..) => Uuid::max(),
            Entry::Attempt(_, log) => Uuid::from_u128(log.attempt.into()),
        }
    }

    fn select(_: &Entry) -> Markup {
        html! {}
    }

    fn cells(view: &View<'_>, entry: &Entry, (): &()) -> Markup {
        cells(view, entry, &[])
    }

    fn matches((): &(), _: &Entry) -> bool {
        true
    }

    fn row(id: Uuid, cells: &Markup) -> Markup {
        html! { li data-row=(id) { (cells) } }
    }
}

/// Returns the entries of a timeline, of which `attempts` are the oldest first.
fn entries(delivery: Delivery, endpoint: Option<&WebhookSubscription>, attempts: &[AttemptLog]) -> Vec<Entry> {
    let id = delivery.id;
    let backoff_until = endpoint.and_then(|endpoint| endpoint.backoff_until);
    let attempts =
        attempts.iter().rev().map(|log| Entry::Attempt(id, AttemptLog { response_body: None, ..log.clone() }));
    std::iter::once(Entry::State(delivery, backoff_until)).chain(attempts).collect()
}

fn cells(view: &View<'_>, entry: &Entry, compared: &[u32]) -> Markup {
    match entry {
        Entry::State(delivery, backoff_until) => {
            html! { div.line { (status(delivery)) span { (state(view, delivery, *backoff_until)) } } }
        }
        Entry::Attempt(delivery, log) => html! {
            div.line {
                input type="checkbox" name="compare" value=(log.attempt) checked[compared.contains(&log.attempt)]
                    aria-label={ "Compare attempt " (log.attempt) };
                a href=(view.url(&format!("/deliveries/{delivery}?attempt={}", log.attempt))) { "Attempt " (log.attempt) }
                (badge(if log.succeeded() { Tone::Good } else { Tone::Bad }, &outcome(Some(log.status))))
                span { (number(u64::from(log.duration_ms))) " ms" }
                @if let Some(address) = &log.remote_addr { code { (address) } }
                span.soft { (view.time(log.started_at)) }
            }
            @if let Some(text) = failures::explain(log) { p { (text) } }
            @if let Some(error) = &log.error { p.soft { "Logged as: " (error) } }
        },
    }
}

/// Says where a delivery stands, and what happens next.
fn state(view: &View<'_>, delivery: &Delivery, backoff_until: Option<Timestamp>) -> Markup {
    let next_attempt_at = delivery.next_attempt_at;
    match delivery.status {
        DeliveryStatus::Pending if delivery.leased_until(view.now).is_some() => {
            html! { "Attempt " (delivery.attempts) " is under way." }
        }
        DeliveryStatus::Pending => match next_attempt_at.max(backoff_until) {
            Some(at) if at > view.now && next_attempt_at < Some(at) => {
                html! { "The endpoint failed, so nothing is sent to it until " (view.time(at)) ". This is sent then." }
            }
            Some(at) if at > view.now => html! { "The next attempt is " (view.time(at)) "." },
            _ => html! { "It is sent as soon as the endpoint takes it." },
        },
        DeliveryStatus::Succeeded => html! { "The endpoint took it." },
        DeliveryStatus::Held => html! { "It waits until the endpoint is enabled and this delivery is sent again." },
        DeliveryStatus::Failed => match delivery.failure_reason {
            Some(FailureReason::SubscriptionDeleted) => {
                html! { "It was not sent any more, since its endpoint was deleted." }
            }
            _ => {
                let is_gone = delivery.last_status == Some(410);
                let reason = if is_gone {
                    "the endpoint responded 410, so it wants no more of it"
                } else {
                    "its retries are used up"
                };
                html! { "It is not tried again by itself: " (reason) "." }
            }
        },
    }
}

/// Returns the timeline with what makes it live and the button that compares two attempts, of which `compared` are ticked.
pub(super) fn timeline(
    cx: &Context<'_>,
    tenant: &Tenant,
    delivery: &Delivery,
    endpoint: Option<&WebhookSubscription>,
    attempts: &[AttemptLog],
    compared: &[u32],
) -> Markup {
    let (view, path) = (cx.view(tenant), format!("/deliveries/{}", delivery.id));
    html! {
        (live::switch(&cx.url(&format!("{path}/live")), MAX_ATTEMPTS + 1, Some(TIMELINE)))
        form.timeline method="get" action=(cx.url(&path)) {
            ol id=(TIMELINE) {
                @for entry in entries(delivery.clone(), endpoint, attempts) {
                    (Attempts::row(Attempts::id(&entry), &cells(&view, &entry, compared)))
                }
            }
            // The style shows it where there are two attempts, of which one may have come meanwhile.
            div.actions { button type="submit" { "Compare the two ticked attempts" } }
        }
    }
}

/// Sends the attempts of a delivery as they come and change.
pub(crate) async fn live(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let id: DeliveryId = cx.id()?;
    // Nobody looks at the deliveries of another account.
    cx.svc.account(tenant.id).deliveries().get(id).await?;
    cx.stream::<Attempts>(tenant, id, ())
}
