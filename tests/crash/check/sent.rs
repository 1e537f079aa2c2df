//! Checks deliveries: there is one for each event and matching subscription, each is accepted at least once, and more
//! than once only where a kill or a failed attempt explains it.

use std::collections::HashMap;
use svc_core::webhooks::subscriptions::SubscriptionId;

use serde_json::Value;
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus};
use svc_core::webhooks::events::{Event, EventId};

use super::Counts;
use crate::fixture::Subscription;
use crate::journal::Arrival;
use crate::state::DatabaseState;

/// Checks one tenant, and removes its deliveries from `arrivals`.
pub(super) fn check(
    subscriptions: &[Subscription],
    state: &DatabaseState,
    arrivals: &mut HashMap<DeliveryId, Vec<&Arrival>>,
    interruptions: &HashMap<DeliveryId, usize>,
    counts: &mut Counts,
    violations: &mut Vec<String>,
) {
    let mut by_event: HashMap<EventId, Vec<SubscriptionId>> = HashMap::new();
    let events: HashMap<EventId, &Event> = state.events.iter().map(|event| (event.id, event)).collect();
    for (delivery, log) in &state.deliveries {
        by_event.entry(delivery.event_id).or_default().push(delivery.subscription_id);
        let Some(event) = events.get(&delivery.event_id) else {
            violations.push(format!("delivery {} has no event", delivery.id));
            continue;
        };
        let arrived = arrivals.remove(&delivery.id).unwrap_or_default();
        let interruptions = interruptions.get(&delivery.id).copied().unwrap_or_default();
        let mut fail = |reason: String| violations.push(format!("delivery {} {reason}", delivery.id));
        attempted(delivery, log, interruptions, &mut fail);
        received(delivery, log, event, &arrived, counts, &mut fail);
    }
    counts.deliveries += state.deliveries.len();
    for event in &state.events {
        let matching = subscriptions.iter().filter(|subscription| subscription.events.contains(event.kind));
        let mut wanted: Vec<SubscriptionId> = matching.map(|subscription| subscription.id).collect();
        let mut written = by_event.remove(&event.id).unwrap_or_default();
        wanted.sort_unstable();
        written.sort_unstable();
        if wanted != written {
            let (id, kind) = (event.id, event.kind);
            counts.lost += wanted.iter().filter(|subscription| !written.contains(subscription)).count();
            violations.push(format!("{kind} {id} has deliveries to {written:?} instead of {wanted:?}"));
        }
    }
}

/// The delivery succeeded with its last attempt only, and an outcome is missing only for attempts that were in
/// progress at a kill.
fn attempted(delivery: &Delivery, log: &[AttemptLog], interruptions: usize, fail: &mut impl FnMut(String)) {
    let Delivery { status: state, attempts, .. } = delivery;
    let successes: Vec<u32> = log.iter().filter(|log| log.succeeded()).map(|log| log.attempt).collect();
    if *state != DeliveryStatus::Succeeded || successes != [*attempts] {
        fail(format!("is {state} after {attempts} attempts, of which {successes:?} succeeded"));
    }
    let unknown = (*attempts as usize).saturating_sub(log.len());
    if unknown != interruptions {
        fail(format!("has {unknown} attempts without an outcome, but {interruptions} were in progress at kills"));
    }
}

/// The delivery was accepted with the content of its event, each attempt arrived at most once and in order, and none
/// arrived after an attempt that is logged as a success.
fn received(
    delivery: &Delivery,
    log: &[AttemptLog],
    event: &Event,
    arrived: &[&Arrival],
    counts: &mut Counts,
    fail: &mut impl FnMut(String),
) {
    let data: Value = serde_json::from_str(event.data.get()).unwrap_or_default();
    for arrival in arrived {
        if arrival.subscription != delivery.subscription_id
            || arrival.kind != event.kind.as_str()
            || arrival.data != data
        {
            fail(format!("arrived as {arrival:?} instead of {} of {data}", event.kind));
        }
    }
    if !arrived.is_sorted_by_key(|arrival| arrival.attempt)
        || arrived.windows(2).any(|two| two[0].attempt == two[1].attempt)
        || arrived.last().is_some_and(|last| last.attempt > delivery.attempts)
    {
        let attempts: Vec<u32> = arrived.iter().map(|arrival| arrival.attempt).collect();
        fail(format!("arrived as the attempts {attempts:?} of {}", delivery.attempts));
    }
    let accepted: Vec<u32> = arrived.iter().filter(|arrival| arrival.accepted).map(|arrival| arrival.attempt).collect();
    let Some((last, before)) = accepted.split_last() else {
        counts.lost += 1;
        return fail(format!("of {} was never accepted: the delivery is lost", event.kind));
    };
    if *last != delivery.attempts {
        fail(format!("was accepted at attempt {last}, but logged as a success at {}", delivery.attempts));
    }
    for attempt in before {
        match log.iter().find(|log| log.attempt == *attempt) {
            None => counts.repeats += 1,
            Some(log) if !log.succeeded() => counts.retries += 1,
            Some(_) => fail(format!("arrived again after attempt {attempt} had succeeded")),
        }
    }
}
