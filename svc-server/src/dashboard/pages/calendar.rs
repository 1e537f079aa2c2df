//! The calendar: the bookings and planned jobs of a month, a week or a day, in the time zone of the account.

pub(super) mod days;
pub(crate) mod feed;
mod views;

use http::StatusCode;
use svc_core::calendar::MAX_ENTRIES;
use svc_core::prelude::*;

use self::days::{days, morning};
use crate::dashboard::pages::filters;
use crate::dashboard::pages::records::names_of;
use crate::dashboard::prelude::*;

/// The memory in which a page is made, in records: with all bookings and jobs of a month, most of which it counts.
pub(crate) const MEMORY: u32 = 160;

/// The first and the last date that the calendar shows.
const DATES: [&str; 2] = ["1900-01-01", "2199-12-31"];

/// The days that a page of the calendar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Month,
    Week,
    Day,
}

impl View {
    const ALL: [Self; 3] = [Self::Month, Self::Week, Self::Day];

    /// Returns its name in the address.
    fn name(self) -> &'static str {
        match self {
            Self::Month => "month",
            Self::Week => "week",
            Self::Day => "day",
        }
    }

    /// Returns the first date of the view with this date, and the one after its last.
    fn dates(self, date: Date) -> (Date, Date) {
        match self {
            Self::Month => {
                let last = date.first_of_next_month().unwrap_or(date).plus_days(-1);
                (date.first_of_month().monday(), last.monday().plus_days(7))
            }
            Self::Week => (date.monday(), date.monday().plus_days(7)),
            Self::Day => (date, date.plus_days(1)),
        }
    }

    /// Returns a date of the view before and of that after.
    fn neighbours(self, date: Date) -> (Date, Date) {
        match self {
            Self::Month => {
                let before = date.first_of_previous_month().unwrap_or(date);
                (before, date.first_of_next_month().unwrap_or(date))
            }
            Self::Week => (date.plus_days(-7), date.plus_days(7)),
            Self::Day => (date.plus_days(-1), date.plus_days(1)),
        }
    }

    /// Returns the heading of the view with this date.
    fn heading(self, date: Date) -> String {
        match self {
            Self::Month => date.month_and_year(),
            Self::Week => format!("{} to {}", date.monday().in_words(), date.monday().plus_days(6).in_words()),
            Self::Day => long_date(date),
        }
    }

    /// Returns the highest number of entries that a day has.
    fn entries_of_day(self) -> usize {
        match self {
            Self::Month => 4,
            Self::Week => 20,
            Self::Day => 100,
        }
    }
}

/// Returns the URL of a view.
fn url(cx: &Context<'_>, view: View, date: Date) -> String {
    cx.url(&format!("/calendar?view={}&date={date}", view.name()))
}

/// Returns the view and the date of the query, and what is wrong with them. The month and today take the place of those that cannot be read.
fn asked(cx: &Context<'_>, today: Date) -> (View, Date, Option<String>) {
    let (view, date) = (cx.query.text("view"), cx.query.text("date"));
    let [first, last] = DATES;
    let known = View::ALL.into_iter().find(|known| view.is_empty() && *known == View::Month || known.name() == view);
    let in_range = |date: &Date| (first..=last).contains(&date.to_string().as_str());
    let read = if date.is_empty() { Some(today) } else { Date::parse(date).ok().filter(in_range) };
    let problem = match (known, read) {
        (_, None) => Some(format!(
            "“{}” is no date of the calendar, such as {today}, from {first} to {last}. This is today's view.",
            without_bidi_controls(date)
        )),
        (None, _) => Some(format!(
            "“{}” is no view of the calendar: choose day, week or month. This is the month.",
            without_bidi_controls(view)
        )),
        _ => None,
    };
    (known.unwrap_or(View::Month), read.unwrap_or(today), problem)
}

/// Shows the calendar.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let zone = &tenant.time_zone;
    let today = zone.date_at(cx.now);
    let (view, date, problem) = asked(cx, today);
    let (first, end) = view.dates(date);
    let calendar = cx.svc.account(tenant.id).calendar(zone.date_begins(first)..zone.date_begins(end)).await?;
    let days = days(&calendar.entries, zone, first, end);
    let shown = days.iter().flat_map(|day| day.in_order().take(view.entries_of_day()));
    let ids: Vec<String> = shown.filter_map(|entry| entry.contact_id).map(|id| id.to_string()).collect();
    let names = names_of(&cx.svc, tenant.id, ids.iter().map(String::as_str)).await?;
    let page = views::Page { cx, zone, view, date, today, names };
    let about = html! { span.head-only { "In the time zone " (zone) ". Cancelled entries are crossed out." } };
    let content = html! {
        (heading_with("Calendar", about, new_button(cx, &page, date)))
        (tabs(cx, view, date))
        @if let Some(problem) = &problem { p.banner.bad role="alert" { (problem) } }
        div.between {
            h2 { (view.heading(date)) }
            (steps(cx, view, date))
        }
        @if calendar.is_cut {
            p.banner.warn { "There are more than " (number(MAX_ENTRIES as u64)) " entries, and the latest are left out: choose a day." }
        }
        @if calendar.entries.is_empty() {
            p.soft { "Nothing is booked or planned in this " (view.name()) ". Entries that began more than 31 days earlier are not shown." }
        }
        (page.table(&days))
        (feed::card(cx, tenant).await?)
    };
    let response = layout::page(cx, Some(tenant), "Calendar", &content);
    Ok(if problem.is_some() { response.status(StatusCode::UNPROCESSABLE_ENTITY) } else { response })
}

/// Returns the button that creates a booking on a date, for those who may.
fn new_button(cx: &Context<'_>, page: &views::Page<'_>, date: Date) -> Markup {
    html! {
        @if cx.may(Role::Developer) { a.button.primary href=(page.new_booking(&morning(date, page.zone))) { "New booking" } }
    }
}

fn tabs(cx: &Context<'_>, shown: View, date: Date) -> Markup {
    html! {
        nav.tabs aria-label="Views of the calendar" {
            @for view in View::ALL {
                a href=(url(cx, view, date)) aria-current=[(view == shown).then_some("page")] { (capitalized(view.name())) }
            }
        }
    }
}

/// Returns the links to the views before and after, and the choice of a date.
fn steps(cx: &Context<'_>, view: View, date: Date) -> Markup {
    let (before, after) = view.neighbours(date);
    html! {
        nav.actions aria-label="Dates" {
            a.button href=(url(cx, view, before)) aria-label={ "Previous " (view.name()) } { "‹" }
            a.button href=(cx.url(&format!("/calendar?view={}", view.name()))) { "Today" }
            a.button href=(url(cx, view, after)) aria-label={ "Next " (view.name()) } { "›" }
        }
        form.filters method="get" action=(cx.url("/calendar")) {
            (filters::fold("Another date", false))
            input type="hidden" name="view" value=(view.name());
            label { "Date" input type="date" name="date" value=(date) min=(DATES[0]) max=(DATES[1]); }
            button type="submit" { "Show" }
        }
    }
}
