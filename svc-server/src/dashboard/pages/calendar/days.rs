//! The entries of a calendar by days and hours, on the days on which clocks change as well.

use std::ops::Range;
use std::time::Duration;

use svc_core::calendar::Entry;
use svc_core::prelude::*;

const HOUR: Duration = Duration::from_secs(60 * 60);
/// When a booking starts that is made for a day.
const MORNING: &str = "09:00";

/// A day of the calendar.
pub(super) struct Day<'c> {
    pub(super) date: Date,
    pub(super) begins: Timestamp,
    pub(super) ends: Timestamp,
    /// The entries that take place on it, in the order of their starts.
    pub(super) entries: Vec<&'c Entry>,
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
pub(super) fn days<'c>(entries: &'c [Entry], zone: &TimeZone, first: Date, end: Date) -> Vec<Day<'c>> {
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
    /// Returns the hours of the day: 23 or 25 of them if clocks change.
    pub(super) fn hours(&self) -> Vec<Range<Timestamp>> {
        let mut hours = Vec::with_capacity(25);
        let mut at = self.begins;
        while at < self.ends {
            let next = at.checked_add(HOUR).unwrap_or(self.ends).min(self.ends);
            hours.push(at..next);
            at = next;
        }
        hours
    }

    /// Returns the entries that began before the day.
    pub(super) fn continued(&self) -> impl Iterator<Item = &'c Entry> {
        self.entries.iter().copied().filter(|entry| entry.start < self.begins)
    }

    /// Returns the entries that begin in an hour.
    pub(super) fn starting_in(&self, hour: &Range<Timestamp>) -> impl Iterator<Item = &'c Entry> {
        self.entries.iter().copied().filter(move |entry| hour.contains(&entry.start))
    }

    /// Returns when an entry takes place on the day: from when to when, as far as that is on the day.
    pub(super) fn time_of(&self, entry: &Entry, zone: &TimeZone) -> String {
        let clock = |at| LocalTime::at(at, zone).clock();
        let begins_before = entry.start <= self.begins && entry.end.is_some_and(|end| end > self.begins);
        match entry.end {
            Some(end) if begins_before && end >= self.ends => "all day".to_owned(),
            Some(end) if entry.start < self.begins => format!("until {}", clock(end)),
            Some(end) if end > self.ends => format!("from {}", clock(entry.start)),
            Some(end) if end == self.ends => format!("{}–24:00", clock(entry.start)),
            Some(end) if end > entry.start => format!("{}–{}", clock(entry.start), clock(end)),
            _ => clock(entry.start),
        }
    }
}
