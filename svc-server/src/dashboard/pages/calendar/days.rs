//! The entries of a calendar by days and half hours, on the days on which clocks change as well.

use std::ops::Range;
use std::time::Duration;

use svc_core::calendar::Entry;
use svc_core::prelude::*;

use crate::dashboard::components::clock;

/// The time of a row in the tables of a day and a week.
const SLOT: Duration = Duration::from_secs(30 * 60);
/// The length of work from which on it takes several days.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The half hours of a day without a change of clocks.
const ROWS: usize = 48;
/// The rows that are shown if nothing takes place before or after: from 07:00 to 19:00.
const WORKING_ROWS: Range<usize> = 14..38;
/// The most entries beside each other, on a day and on a day of a week.
const LANES: usize = 3;
const LANES_OF_WEEK: usize = 2;
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

/// Returns whether work takes a day or longer. It is shown above the hours, and appointments beside it are no conflict.
pub(crate) fn takes_days(start: Timestamp, end: Option<Timestamp>) -> bool {
    end.is_some_and(|end| end.since(start) >= DAY)
}

/// Returns rows that begin and end with an hour, of all that there are.
fn whole_hours(rows: Range<usize>, all: usize) -> Range<usize> {
    rows.start - rows.start % 2..(rows.end + rows.end % 2).min(all)
}

/// Returns rows counted from the first of those that are shown, as far as they are shown.
fn within(rows: &Range<usize>, shown: &Range<usize>) -> Range<usize> {
    rows.start.max(shown.start) - shown.start..rows.end.min(shown.end) - shown.start
}

/// Returns as many columns of entries as are needed, so that none lies over another, and the entries for which there is no column.
fn in_lanes<'c>(blocks: impl Iterator<Item = Block<'c>>, most: usize) -> (Vec<Vec<Block<'c>>>, Vec<&'c Entry>) {
    let (mut lanes, mut crowded): (Vec<Vec<Block<'c>>>, _) = (Vec::new(), Vec::new());
    for block in blocks {
        let is_free = |lane: &Vec<Block<'c>>| lane.last().is_none_or(|last| last.slots.end <= block.slots.start);
        match lanes.iter().position(is_free) {
            Some(free) => lanes[free].push(block),
            None if lanes.len() < most => lanes.push(vec![block]),
            None => crowded.push(block.entry),
        }
    }
    (lanes, crowded)
}

/// The rows of a week: the half hours that its days share, by what clocks show.
pub(super) struct Hours(Range<usize>);

impl Hours {
    /// Returns the working hours, and those of the first `limit` entries of each day.
    pub(super) fn of(days: &[Day<'_>], zone: &TimeZone, limit: usize) -> Self {
        let mut rows = WORKING_ROWS;
        for day in days {
            for entry in day.in_order().take(limit).filter(|entry| day.has_hours_for(entry)) {
                rows = day.with_rows_of(entry, day.by_clock(entry, zone), rows);
            }
        }
        Self(whole_hours(rows, ROWS))
    }

    /// Returns the first hour, and how many there are.
    pub(super) fn first_and_count(&self) -> (usize, usize) {
        (self.0.start / 2, self.0.len() / 2)
    }

    /// Returns the first `limit` entries of a day: those with rows, and work of days and what has no column.
    pub(super) fn entries<'c>(&self, day: &Day<'c>, zone: &TimeZone, limit: usize) -> (Vec<Block<'c>>, Vec<&'c Entry>) {
        let (timed, mut others): (Vec<&Entry>, Vec<&Entry>) =
            day.in_order().take(limit).partition(|entry| day.has_hours_for(entry));
        let blocks = timed.into_iter().map(|entry| Block { slots: within(&day.by_clock(entry, zone), &self.0), entry });
        let (lanes, crowded) = in_lanes(blocks, LANES_OF_WEEK);
        let mut blocks: Vec<Block<'c>> = lanes.into_iter().flatten().collect();
        blocks.sort_by_key(|block| block.entry.start);
        others.extend(crowded);
        (blocks, others)
    }
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
        let [mut from, mut until] = [WORKING_ROWS.start, WORKING_ROWS.end].map(|row| {
            let at = zone.time_of(&format!("{}T{:02}:00", self.date, row / 2), "").unwrap_or(self.begins);
            slots.partition_point(|slot| slot.start < at)
        });
        if is_whole || from >= until {
            (from, until) = (0, slots.len());
        }
        let mut shown = from..until;
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
            shown = self.with_rows_of(entry, first..after, shown);
            blocks.push(Block { slots: first..after, entry });
        }
        let shown = whole_hours(shown, slots.len());
        let within = |Block { slots, entry }| Block { slots: within(&slots, &shown), entry };
        let (lanes, crowded) = in_lanes(blocks.into_iter().map(within), LANES);
        let is_whole = shown.len() == slots.len();
        Timeline { slots: slots[shown].to_vec(), lanes, all_day, crowded, is_whole }
    }

    /// Returns the rows that are shown and those that an entry needs: one that goes on from the day before that of its end alone,
    /// one into the next that of its start.
    fn with_rows_of(&self, entry: &Entry, rows: Range<usize>, shown: Range<usize>) -> Range<usize> {
        let from = if entry.start < self.begins { rows.end - 1 } else { rows.start };
        let until = if entry.end.is_some_and(|end| end > self.ends) { rows.start + 1 } else { rows.end };
        shown.start.min(from)..shown.end.max(until)
    }

    /// Returns whether an entry takes hours of the day: not all of it, and not days.
    fn has_hours_for(&self, entry: &Entry) -> bool {
        !self.is_taken_by(entry) && !takes_days(entry.start, entry.end)
    }

    /// Returns the half hours of an entry as clocks show them, which are 48 on each day. Hours that clocks show twice are one.
    fn by_clock(&self, entry: &Entry, zone: &TimeZone) -> Range<usize> {
        let half_hour = |at| {
            let shown = clock(zone, at);
            let mut parts = shown.split([':', ' ']).map(|part| part.parse().unwrap_or(0));
            let [hour, minute]: [usize; 2] = [(); 2].map(|()| parts.next().unwrap_or(0));
            2 * hour + minute / 30
        };
        let start = entry.start.max(self.begins);
        let last = entry.end.unwrap_or(start).min(self.ends).minus(Duration::from_micros(1)).max(start);
        let first = half_hour(start);
        first..half_hour(last).max(first) + 1
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
