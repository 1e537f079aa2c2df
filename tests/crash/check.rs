//! What clients and receivers noted down, against what is in the database.

mod sent;
mod written;

use std::collections::HashMap;
use std::fmt;

use uuid::Uuid;

use crate::found::Found;
use crate::journal::{Abandoned, Arrival, Entry};
use crate::receiver::Noted;
use crate::world::World;

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// For people.
    pub(crate) summary: String,
    /// What must not be, one sentence each.
    pub(crate) violations: Vec<String>,
}

/// Figures of the summary.
#[derive(Debug, Default)]
struct Counts {
    acknowledged: usize,
    /// Sent more than once.
    asked_again: usize,
    /// Answered with what an earlier sending had done.
    replayed: usize,
    /// Refused each time, and given up.
    refused: usize,
    unknown: usize,
    events: usize,
    deliveries: usize,
    arrivals: usize,
    under_way: usize,
    /// Accepted once more, because the outcome before was under way at a kill.
    repeats: usize,
    /// Accepted once more, because the attempt before had failed here or come too late.
    retries: usize,
    lost: usize,
}

/// Compares.
pub(crate) fn check(
    world: &World,
    entries: &[Entry],
    noted: &Noted,
    abandoned: &[Abandoned],
    found: &[Found],
) -> Verdict {
    let mut counts = Counts { under_way: abandoned.len(), arrivals: noted.arrivals.len(), ..Counts::default() };
    let mut violations: Vec<String> = noted.refused.clone();
    let mut arrivals: HashMap<Uuid, Vec<&Arrival>> = HashMap::new();
    for arrival in &noted.arrivals {
        arrivals.entry(arrival.delivery).or_default().push(arrival);
    }
    let mut under_way: HashMap<Uuid, usize> = HashMap::new();
    for (delivery, _) in abandoned {
        *under_way.entry(*delivery).or_default() += 1;
    }
    for (position, (tenant, found)) in world.tenants.iter().zip(found).enumerate() {
        let entries: Vec<&Entry> = entries.iter().filter(|entry| entry.tenant == position).collect();
        written::check(&entries, found, &mut counts, &mut violations);
        sent::check(&tenant.hooks, found, &mut arrivals, &under_way, &mut counts, &mut violations);
    }
    violations.extend(arrivals.keys().map(|id| format!("delivery {id} arrived, but is not in the database")));
    Verdict { summary: counts.to_string(), violations }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, asked_again, replayed, refused, unknown, .. } = self;
        writeln!(
            f,
            "{acknowledged} writes were acknowledged, {asked_again} of them after asking again \
             ({replayed} had been done before); {refused} were refused; of {unknown} the outcome stayed unknown"
        )?;
        let Self { events, deliveries, arrivals, under_way, repeats, retries, lost, .. } = self;
        writeln!(f, "{events} events, {deliveries} deliveries, {arrivals} arrivals, {lost} lost")?;
        write!(
            f,
            "{repeats} repeats, of {under_way} attempts that were under way at kills; \
             {retries} more after attempts that came too late"
        )
    }
}

#[cfg(test)]
mod tests;
