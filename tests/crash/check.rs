//! Compares the journals of clients and receivers with the content of the database.

mod sent;
mod written;

use std::collections::HashMap;
use std::fmt;

use svc_core::webhooks::deliveries::DeliveryId;

use crate::fixture::Tenants;
use crate::journal::{Arrival, Entry, InterruptedAttempt};
use crate::receiver::ReceiverJournal;
use crate::state::DatabaseState;

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct CheckResult {
    /// Numbers of the run, as text.
    pub(crate) summary: String,
    /// Violations, one sentence each. Empty if everything holds.
    pub(crate) violations: Vec<String>,
}

/// The numbers of the summary.
#[derive(Debug, Default)]
struct Counts {
    acknowledged: usize,
    /// Acknowledged after more than one request.
    repeated: usize,
    /// Acknowledged with the stored response of an earlier request.
    replayed: usize,
    /// Refused until the client gave up.
    refused: usize,
    unknown: usize,
    events: usize,
    deliveries: usize,
    arrivals: usize,
    interruptions: usize,
    /// Accepted again because the outcome of an earlier attempt was lost in a kill.
    repeats: usize,
    /// Accepted again because the earlier attempt failed at the sender or came too late.
    retries: usize,
    lost: usize,
}

/// Checks all tenants and returns the violations.
pub(crate) fn check(
    fixture: &Tenants,
    entries: &[Entry],
    journal: &ReceiverJournal,
    interrupted: &[InterruptedAttempt],
    state: &[DatabaseState],
) -> CheckResult {
    let mut counts = Counts { interruptions: interrupted.len(), arrivals: journal.arrivals.len(), ..Counts::default() };
    let mut violations: Vec<String> = journal.refused.clone();
    let mut arrivals: HashMap<DeliveryId, Vec<&Arrival>> = HashMap::new();
    for arrival in &journal.arrivals {
        arrivals.entry(arrival.delivery).or_default().push(arrival);
    }
    let mut interruptions: HashMap<DeliveryId, usize> = HashMap::new();
    for (delivery, _) in interrupted {
        *interruptions.entry(*delivery).or_default() += 1;
    }
    for (position, (tenant, state)) in fixture.tenants.iter().zip(state).enumerate() {
        let entries: Vec<&Entry> = entries.iter().filter(|entry| entry.tenant == position).collect();
        written::check(&entries, state, &mut counts, &mut violations);
        sent::check(&tenant.subscriptions, state, &mut arrivals, &interruptions, &mut counts, &mut violations);
    }
    violations.extend(arrivals.keys().map(|id| format!("delivery {id} arrived, but is not in the database")));
    CheckResult { summary: counts.to_string(), violations }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, repeated, replayed, refused, unknown, .. } = self;
        writeln!(
            f,
            "{acknowledged} writes were acknowledged, {repeated} of them after a repeat \
             ({replayed} with a stored response); {refused} were refused; {unknown} have an unknown outcome"
        )?;
        let Self { events, deliveries, arrivals, interruptions, repeats, retries, lost, .. } = self;
        writeln!(f, "{events} events, {deliveries} deliveries, {arrivals} arrivals, {lost} lost")?;
        write!(
            f,
            "{repeats} repeats, of {interruptions} attempts that were in progress at kills; \
             {retries} more after attempts that came too late"
        )
    }
}

#[cfg(test)]
mod tests;
