//! The entries of a calendar by days and half hours, on the days on which clocks change as well.

use std::ops::Range;
use std::time::Duration;

use svc_core::calendar::Entry;
use svc_core::prelude::*;

use crate::dashboard::components::clock;

/// The time of a row in the table of a day.
const SLOT: Duration = Duration::from_secs(30 * 60);
/// From when to when a day has rows, if nothing takes place before or after.
const WORKING_HOURS: [&str; 2] = ["07:00", "19:00"];
/// The most entries beside each other.
const LANES: usize = 3;
/// When a booking starts that is made for a day.
const MORNING: &str = "09:00";

/// A day of the calendar.
pub(crate) struct Day<'c> {
    pub(crate) date: Date,
    pub(super) begins: Timestamp,
    pub(super) ends: Timestamp,
    /// The entries that take place on it, in the order of their starts.
    pub(super) entries: Vec<&'c Entry>,
}

/// The rows of a day, with the entries that take place at once beside each other.
pub(super) struct Timeline<'c> {
    /// The time of each row.
    pub(super) slots: Vec<Range<Timestamp>>,
    /// The columns of entries, each in the order of its rows.
    pub(super) lanes: Vec<Vec<Block<'c>>>,
    /// The entries that take the whole day.
    pub(super) all_day: Vec<&'c Entry>,
    /// The entries for which there is no column.
    pub(super) crowded: Vec<&'c Entry>,
    /// Whether the rows are those of the whole day.
    pub(super) is_whole: bool,
}

/// An entry with the rows that it takes.
pub(super) struct Block<'c> {
    pub(super) slots: Range<usize>,
    pub(super) entry: &'c Entry,
}

/// A time of day as clocks show it: the local date and time as a form has it, and the offset from UTC of a time that clocks show
/// twice, which is empty otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalTime {
    pub(super) local: String,
    pub(super) offset: String,
}

impl LocalTime {
    /// Returns what clocks show at a time.
    pub(super) fn at(at: Timestamp, zone: &TimeZone) -> Self {
        let shown = zone.minute_at(at);
        let mut parts = shown.splitn(3, ' ');
        let [date, time, offset] = [(); 3].map(|()| parts.next().unwrap_or_default());
        Self { local: format!("{date}T{time}"), offset: offset.to_owned() }
    }

    /// Returns the time of day, with the offset of a time that clocks show twice.
    pub(super) fn clock(&self) -> String {
        let time = self.local.split_once('T').map_or("", |(_, time)| time);
        if self.offset.is_empty() { time.to_owned() } else { format!("{time} {}", self.offset) }
    }
}

/// Returns the time at which a booking starts that is made for a date: in the morning, or where clocks skip that, when the date
/// begins.
pub(super) fn morning(date: Date, zone: &TimeZone) -> LocalTime {
    let local = format!("{date}T{MORNING}");
    match zone.time_of(&local, "") {
        Ok(at) => LocalTime::at(at, zone),
        Err(_) => LocalTime::at(zone.date_begins(date), zone),
    }
}

/// Returns the days from a date to the one before another, with their entries.
pub(crate) fn days<'c>(entries: &'c [Entry], zone: &TimeZone, first: Date, end: Date) -> Vec<Day<'c>> {
    let count = end.days() - first.days();
    let mut days: Vec<Day<'c>> = (0..count)
        .map(|number| first.plus_days(number))
        .map(|date| Day {
            date,
            begins: zone.date_begins(date),
            ends: zone.date_begins(date.plus_days(1)),
            entries: Vec::new(),
        })
        .collect();
    for entry in entries {
        let dates = entry.dates(zone);
        let from = (dates.start().days() - first.days()).clamp(0, count);
        let to = (dates.end().days() - first.days() + 1).clamp(from, count);
        for day in &mut days[from as usize..to as usize] {
            day.entries.push(entry);
        }
    }
    days
}

impl<'c> Day<'c> {
    /// Returns the half hours of the day: 46 or 50 of them if clocks change by an hour.
    fn slots(&self) -> Vec<Range<Timestamp>> {
        let mut slots = Vec::with_capacity(50);
        let mut at = self.begins;
        while at < self.ends {
            let next = at.checked_add(SLOT).unwrap_or(self.ends).min(self.ends);
            slots.push(at..next);
            at = next;
        }
        slots
    }

    /// Returns the rows of the day with the first `limit` entries: all of them, or those of working hours and of entries.
    pub(super) fn timeline(&self, zone: &TimeZone, is_whole: bool, limit: usize) -> Timeline<'c> {
        let slots = self.slots();
        let [mut from, mut until] = WORKING_HOURS.map(|clock| {
            let at = zone.time_of(&format!("{}T{clock}", self.date), "").unwrap_or(self.begins);
            slots.partition_point(|slot| slot.start < at)
        });
        if is_whole || from >= until {
            (from, until) = (0, slots.len());
        }
        let (mut blocks, mut all_day) = (Vec::new(), Vec::new());
        for entry in self.in_order().take(limit) {
            if self.is_taken_by(entry) {
                all_day.push(entry);
                continue;
            }
            let start = entry.start.max(self.begins);
            let end = entry.end.unwrap_or(start).clamp(start, self.ends);
            let first = slots.partition_point(|slot| slot.end <= start);
            let after = slots.partition_point(|slot| slot.start < end).max(first + 1);
            // One that goes on from the day before needs the row of its end alone, and one into the next that of its start.
            from = from.min(if entry.start < self.begins { after - 1 } else { first });
            until = until.max(if entry.end.is_some_and(|end| end > self.ends) { first + 1 } else { after });
            blocks.push(Block { slots: first..after, entry });
        }
        // Rows begin and end with an hour.
        let shown = from - from % 2..(until + until % 2).min(slots.len());
        let (mut lanes, mut crowded): (Vec<Vec<Block<'c>>>, _) = (Vec::new(), Vec::new());
        for Block { slots, entry } in blocks {
            let slots = slots.start.max(shown.start) - shown.start..slots.end.min(shown.end) - shown.start;
            let block = Block { slots, entry };
            let is_free = |lane: &Vec<Block<'c>>| lane.last().is_none_or(|last| last.slots.end <= block.slots.start);
            match lanes.iter().position(is_free) {
                Some(free) => lanes[free].push(block),
                None if lanes.len() < LANES => lanes.push(vec![block]),
                None => crowded.push(entry),
            }
        }
        let is_whole = shown.len() == slots.len();
        Timeline { slots: slots[shown].to_vec(), lanes, all_day, crowded, is_whole }
    }

    /// Returns the entries, those that take the whole day after the others.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &'c Entry> {
        let (whole, others): (Vec<&Entry>, Vec<&Entry>) =
            self.entries.iter().copied().partition(|entry| self.is_taken_by(entry));
        others.into_iter().chain(whole)
    }

    /// Returns whether an entry takes the whole day.
    pub(super) fn is_taken_by(&self, entry: &Entry) -> bool {
        entry.start <= self.begins && entry.end.is_some_and(|end| end >= self.ends)
    }

    /// Returns when an entry takes place on the day: from when to when, as far as that is on the day.
    pub(crate) fn time_of(&self, entry: &Entry, zone: &TimeZone) -> String {
        let clock = |at| clock(zone, at);
        match entry.end {
            _ if self.is_taken_by(entry) => "all day".to_owned(),
            Some(end) if entry.start < self.begins => format!("until {}", clock(end)),
            Some(end) if end > self.ends => format!("from {}", clock(entry.start)),
            Some(end) if end == self.ends => format!("{}–24:00", clock(entry.start)),
            Some(end) if end > entry.start => format!("{}–{}", clock(entry.start), clock(end)),
            _ => clock(entry.start),
        }
    }
}
