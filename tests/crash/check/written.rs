//! Checks writes: every acknowledged record is in the database once, with its events, and no other record is.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Counts;
use crate::journal::{Collection, Entry, Operation};
use crate::state::DatabaseState;

/// The events of a tenant by record.
struct Events<'a> {
    /// Kind and data of each event by the id of its record, oldest first.
    of_record: HashMap<&'a str, Vec<(&'a str, &'a Value)>>,
}

impl Events<'_> {
    /// Returns the number of a record's events of this kind that `suits` accepts.
    fn count(&self, id: &str, wanted: &str, suits: impl Fn(&Value) -> bool) -> usize {
        let events = self.of_record.get(id).into_iter().flatten();
        events.filter(|(kind, data)| *kind == wanted && suits(data)).count()
    }
}

/// Checks one tenant.
pub(super) fn check(entries: &[&Entry], state: &DatabaseState, counts: &mut Counts, violations: &mut Vec<String>) {
    // Parsed once and grouped by the id of the record.
    let parsed: Vec<(&str, Value)> = state
        .events
        .iter()
        .map(|event| (event.kind.as_str(), serde_json::from_str(event.data.get()).unwrap_or_default()))
        .collect();
    let mut events = Events { of_record: HashMap::new() };
    for (kind, data) in &parsed {
        events.of_record.entry(text(data, "id")).or_default().push((*kind, data));
    }
    counts.events += parsed.len();
    acknowledged(entries, state, &events, counts, violations);
    unexpected(entries, state, &parsed, violations);
    agreement(state, &events, violations);
    numbers(state, violations);
}

/// An acknowledged write is present once, with one event of each kind. A refused write is absent. A write with an
/// unknown outcome is present at most once.
fn acknowledged(
    entries: &[&Entry],
    state: &DatabaseState,
    events: &Events<'_>,
    counts: &mut Counts,
    violations: &mut Vec<String>,
) {
    let mut rows_by_value: HashMap<(Collection, String), Vec<&Value>> = HashMap::new();
    for collection in Collection::ALL {
        for row in state.rows(collection) {
            rows_by_value.entry((collection, row[collection.unique_field()].to_string())).or_default().push(row);
        }
    }
    for Entry { operation, sent, refused, acknowledged_during_outage, replayed, response, .. } in entries {
        let known = response.is_some();
        let nothing = !known && refused == sent;
        counts.acknowledged += usize::from(known);
        counts.refused += usize::from(nothing);
        counts.unknown += usize::from(!known && !nothing);
        counts.repeated += usize::from(known && *sent > 1);
        counts.replayed += usize::from(*replayed);
        if *acknowledged_during_outage {
            violations.push(format!("{operation:?} was acknowledged while nothing could be written"));
        }
        if *replayed && *refused + 1 == *sent {
            violations.push(format!("{operation:?} was refused {refused} times although it had been done"));
        }
        let mut expect = |what: &str, count: usize| {
            if count > 1 || (known && count == 0) || (nothing && count > 0) {
                let outcome = if known {
                    "was acknowledged"
                } else if nothing {
                    "was refused"
                } else {
                    "had an unknown outcome"
                };
                violations.push(format!("{operation:?} {outcome} after {sent} requests, and has {count} × {what}"));
            }
        };
        match operation {
            Operation::Create { collection, unique_value, .. } => {
                let rows = rows_by_value.get(&(*collection, unique_value.to_string())).map_or(&[][..], Vec::as_slice);
                expect("row", rows.len());
                let id = response.as_ref().or(rows.first().copied()).map_or("", |record| text(record, "id"));
                expect("row with the id of the response", rows.iter().filter(|row| text(row, "id") == id).count());
                let kind = format!("{}.created", collection.noun());
                let as_in_the_response = |data: &Value| response.as_ref().is_none_or(|response| response == data);
                expect(&kind, events.count(id, &kind, as_in_the_response));
            }
            Operation::ChangeCity { contact, city } => {
                expect("contact.updated", events.count(contact, "contact.updated", |data| data["city"] == **city));
            }
            Operation::AcceptQuote { quote } => {
                for kind in ["quote.accepted", "quote.updated"] {
                    expect(kind, events.count(quote, kind, |_| true));
                }
            }
        }
    }
}

/// Every record and every event comes from a request.
fn unexpected(entries: &[&Entry], state: &DatabaseState, events: &[(&str, Value)], violations: &mut Vec<String>) {
    let mut unique_values: HashSet<(Collection, String)> = HashSet::new();
    let mut changes: HashSet<(&str, &str, &str)> = HashSet::new();
    for Entry { operation, .. } in entries {
        match operation {
            Operation::Create { collection, unique_value, .. } => {
                unique_values.insert((*collection, unique_value.to_string()));
            }
            Operation::ChangeCity { contact, city } => {
                changes.insert(("contact.updated", contact, city));
            }
            Operation::AcceptQuote { quote } => {
                changes.extend([("quote.accepted", quote.as_str(), ""), ("quote.updated", quote.as_str(), "")]);
            }
        }
    }
    for collection in Collection::ALL {
        for row in state
            .rows(collection)
            .filter(|row| !unique_values.contains(&(collection, row[collection.unique_field()].to_string())))
        {
            violations.push(format!("no request created {row}"));
        }
    }
    for (kind, data) in events {
        let created = Collection::ALL.into_iter().find(|collection| *kind == format!("{}.created", collection.noun()));
        let asked = match created {
            Some(collection) => unique_values.contains(&(collection, data[collection.unique_field()].to_string())),
            None => changes.contains(&(*kind, text(data, "id"), data["city"].as_str().unwrap_or_default())),
        };
        if !asked {
            violations.push(format!("no request caused {kind} of {data}"));
        }
    }
}

/// Each record has one event of its creation and equals the data of its last event, and each event has a record.
fn agreement(state: &DatabaseState, events: &Events<'_>, violations: &mut Vec<String>) {
    let mut ids = HashSet::new();
    for collection in Collection::ALL {
        let created = format!("{}.created", collection.noun());
        for row in state.rows(collection) {
            let id = text(row, "id");
            ids.insert(id);
            let count = events.count(id, &created, |_| true);
            if count != 1 {
                violations.push(format!("{id} has {count} × {created}"));
            }
            let last = events.of_record.get(id).and_then(|events| events.last());
            if last.is_some_and(|(_, data)| *data != row) {
                violations.push(format!("{row} differs from its last event: {last:?}"));
            }
        }
    }
    for id in events.of_record.keys().filter(|id| !ids.contains(*id)) {
        violations.push(format!("{id} has events, but is not in the database"));
    }
}

/// The numbers of the quotes have no gap and no duplicate.
fn numbers(state: &DatabaseState, violations: &mut Vec<String>) {
    let number = |row: &Value| text(row, "quote_number").trim_start_matches("QUO-").parse::<u64>().unwrap_or(0);
    let mut numbers: Vec<u64> = state.rows(Collection::Quotes).map(number).collect();
    numbers.sort_unstable();
    if let Some((wanted, number)) = (1..).zip(numbers).find(|(wanted, number)| wanted != number) {
        violations.push(format!("quote number {wanted} is missing: the next one is {number}"));
    }
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap_or_default()
}
