//! The tables of a month, a week and a day.

use svc_core::calendar::{Certainty, Entry};
use svc_core::prelude::*;

use super::days::{Block, Day, Hours, LocalTime, Timeline, morning};
use super::{View, url};
use crate::dashboard::pages::kinds::{BOOKINGS, JOBS, of_records};
use crate::dashboard::pages::records::{ContactNames, short, status_tone, words};
use crate::dashboard::prelude::*;

/// A page of the calendar.
pub(super) struct Page<'p> {
    pub(super) cx: &'p Context<'p>,
    pub(super) zone: &'p TimeZone,
    pub(super) view: View,
    pub(super) date: Date,
    pub(super) today: Date,
    pub(super) names: ContactNames,
}

impl Page<'_> {
    /// Returns the table of the view.
    pub(super) fn table(&self, days: &[Day<'_>]) -> Markup {
        match (self.view, days) {
            (View::Month, days) => self.month(days),
            (View::Week, days) => self.week(days),
            (View::Day, [day, ..]) => self.day(day),
            (View::Day, []) => html! {},
        }
    }

    fn month(&self, days: &[Day<'_>]) -> Markup {
        let month = self.date.first_of_month();
        html! {
            div.calendar {
                table {
                    caption.hidden { "Bookings and jobs of " (self.view.heading(self.date)) }
                    thead {
                        tr {
                            @for day in days.iter().take(7) {
                                th scope="col" abbr=(day.date.weekday()) { (day.date.weekday()[..3]) }
                            }
                        }
                    }
                    tbody {
                        @for week in days.chunks(7) {
                            tr { @for day in week { (self.cell(day, day.date.first_of_month() == month)) } }
                        }
                    }
                }
            }
        }
    }

    /// Returns the cell of a day in a month.
    fn cell(&self, day: &Day<'_>, is_of_month: bool) -> Markup {
        let (date, limit) = (day.date, self.view.entries_of_day());
        let class = match (day.entries.is_empty(), is_of_month) {
            (true, true) => "free",
            (true, false) => "free other",
            (false, true) => "",
            (false, false) => "other",
        };
        html! {
            td class=[(!class.is_empty()).then_some(class)] aria-current=[(date == self.today).then_some("date")] {
                div.day {
                    a href=(url(self.cx, View::Day, date)) {
                        time datetime=(date) {
                            span.short { span.hidden { (date.weekday()) " " } (date.day_of_month()) }
                            span.long { (long_date(date)) }
                        }
                    }
                    (self.new_link(&morning(date, self.zone), &format!("New booking on {}", date.in_words())))
                }
                @if !day.entries.is_empty() {
                    ul.entries {
                        @for entry in day.in_order().take(limit) { li { (self.entry(day, entry)) } }
                        @if day.entries.len() > limit { (self.more(day, day.entries.len() - limit)) }
                    }
                }
            }
        }
    }

    /// Returns the days of a week with their entries. A script shows them beside each other by hours where there is room.
    fn week(&self, days: &[Day<'_>]) -> Markup {
        let caption = format!("Bookings and jobs from {}", self.view.heading(self.date));
        let hours = Hours::of(days, self.zone, self.view.entries_of_day());
        let (first, count) = hours.first_and_count();
        let rows = html! {
            @for day in days {
                tr aria-current=[(day.date == self.today).then_some("date")] {
                    th scope="row" {
                        a href=(url(self.cx, View::Day, day.date)) {
                            span.long { (long_date(day.date)) }
                            span.short { (day.date.weekday()[..3]) " " b { (day.date.day_of_month()) } }
                        }
                    }
                    td { (self.day_of_week(day, &hours)) }
                    td.end { (self.new_link(&morning(day.date, self.zone), &format!("New booking on {}", day.date.in_words()))) }
                }
            }
        };
        html! { div.agenda data-first-hour=(first) data-hours=(count) { (table(&caption, &["Day", "Bookings and jobs", ""], rows)) } }
    }

    /// Returns the entries of a day: those of some hours, with the rows that they take, and the others.
    fn day_of_week(&self, day: &Day<'_>, hours: &Hours) -> Markup {
        let limit = self.view.entries_of_day();
        let hidden = day.entries.len().saturating_sub(limit);
        let (timed, others) = hours.entries(day, self.zone, limit);
        html! {
            ul.entries.timed {
                @for Block { slots, entry } in timed {
                    li data-row=(slots.start + 1) data-rows=(slots.len()) { (self.entry(day, entry)) }
                }
            }
            ul.entries.whole {
                @for entry in others { li { (self.entry(day, entry)) } }
                @if hidden > 0 { (self.more(day, hidden)) }
            }
            @if day.entries.is_empty() { span.soft { "–" } }
        }
    }

    fn day(&self, day: &Day<'_>) -> Markup {
        let limit = self.view.entries_of_day();
        let timeline = day.timeline(self.zone, self.cx.query.text("hours") == "all", limit);
        let hidden = day.entries.len().saturating_sub(limit);
        html! {
            @if !timeline.all_day.is_empty() { (section("All day", self.some(day, &timeline.all_day))) }
            (self.rows(day, &timeline))
            @if !timeline.is_whole {
                p { a href={ (url(self.cx, View::Day, day.date)) "&hours=all" } { "All hours of the day" } }
            }
            @if !timeline.crowded.is_empty() { (section("At the same time", self.some(day, &timeline.crowded))) }
            @if hidden > 0 {
                p { "And " (number(hidden as u64)) " more. All of them: "
                    @for (at, kind) in [&BOOKINGS, &JOBS].into_iter().enumerate() {
                        @if at > 0 { ", " }
                        a href=(self.cx.url(&format!("{}?show=today&date={}", kind.list_path(), day.date))) { (kind.collection) }
                    }
                    " that start on this day."
                }
            }
        }
    }

    /// Returns the table of a day, in which an entry takes as many rows as it has half hours.
    fn rows(&self, day: &Day<'_>, timeline: &Timeline<'_>) -> Markup {
        let columns = timeline.lanes.len().max(1);
        html! {
            div.hours {
                table {
                    caption.hidden { "Bookings and jobs of " (self.view.heading(self.date)) }
                    colgroup { col.clock; col span=(columns); col.plus; }
                    thead.hidden {
                        tr { th scope="col" { "Time" } th scope="col" colspan=(columns) { "Bookings and jobs" } th scope="col" { "Actions" } }
                    }
                    tbody {
                        @for (row, slot) in timeline.slots.iter().enumerate() {
                            @let begins = LocalTime::at(slot.start, self.zone);
                            tr {
                                th scope="row" { (begins.clock()) }
                                @if timeline.lanes.is_empty() { td {} }
                                @for lane in &timeline.lanes {
                                    @match lane.iter().find(|block| block.slots.contains(&row)) {
                                        None => { td {} }
                                        Some(block) if block.slots.start == row => {
                                            td.block rowspan=(block.slots.len()) { (self.some(day, &[block.entry])) }
                                        }
                                        Some(_) => {}
                                    }
                                }
                                td.end { (self.new_link(&begins, &format!("New booking at {}", begins.clock()))) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns a list of these entries.
    fn some(&self, day: &Day<'_>, entries: &[&Entry]) -> Markup {
        html! { ul.entries { @for entry in entries { li { (self.entry(day, entry)) } } } }
    }

    /// Returns the item that leads to the entries that are left out.
    fn more(&self, day: &Day<'_>, hidden: usize) -> Markup {
        html! {
            li { a href=(url(self.cx, View::Day, day.date)) { "and " (number(hidden as u64)) " more"
                span.hidden { " on " (day.date.in_words()) } } }
        }
    }

    fn entry(&self, day: &Day<'_>, entry: &Entry) -> Markup {
        let kind = of_records(entry.kind);
        let contact = entry.contact_id.map(|id| id.to_string());
        let contact = contact.as_deref().and_then(|id| self.names.get(id));
        let (mut time, title) = (day.time_of(entry, self.zone), short(&entry.title));
        if self.view == View::Month {
            // There is no place for the end.
            time = time.split('–').next().unwrap_or_default().trim_start_matches("from ").to_owned();
        }
        let is_cancelled = entry.certainty == Certainty::Cancelled;
        html! {
            a class=(kind.one) href=(self.cx.url(&kind.path(entry.id))) {
                // A month has no place for it, and a day lists what takes all of it under a heading.
                @if self.view == View::Week || !day.is_taken_by(entry) {
                    span.time {
                        @if self.view == View::Month && entry.start < day.begins {
                            span aria-hidden="true" { "…" } span.hidden { (time) }
                        } @else { (time) }
                    }
                    " "
                }
                span { @if is_cancelled { s { (title) } span.hidden { " (cancelled)" } } @else { (title) } }
                @if let Some(contact) = contact { span.soft { " " (isolated(&short(contact))) } }
            }
            // Nearly all are confirmed.
            @if self.view != View::Month && entry.status != BookingStatus::Confirmed.as_str() { " " (badge(status_tone(entry.status), &words(entry.status))) }
        }
    }

    /// Returns the link to the form of a booking that starts at a time, for those who may create one.
    fn new_link(&self, start: &LocalTime, label: &str) -> Markup {
        html! {
            @if self.cx.may(Role::Developer) {
                a.add href=(self.new_booking(start)) aria-label=(label) title=(label) { "+" }
            }
        }
    }

    /// Returns the URL of the form of a booking that starts at a time.
    pub(super) fn new_booking(&self, start: &LocalTime) -> String {
        let query = layout::query(&[("start", &start.local), ("offset", &start.offset)]);
        self.cx.url(&format!("/bookings/new?{query}"))
    }
}
