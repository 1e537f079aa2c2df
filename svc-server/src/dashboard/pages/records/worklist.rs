//! The lists that the overview leads to: they have what it counts.

use serde_json::{Map, Value};
use svc_core::prelude::*;
use svc_core::today::Today;

use super::table::record_table;
use super::values::text;
use super::{FieldValues, invoice_object, object};
use crate::dashboard::pages::kinds::{BOOKINGS, INVOICES, JOBS, Kind, QUOTES};
use crate::dashboard::prelude::*;

/// A list of what wants attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worklist {
    Unpaid,
    Overdue,
    BookingsToday,
    BookingsTomorrow,
    ExpiringQuotes,
    UninvoicedJobs,
}

/// The lists, with the kind of their records, their name in the address, and their title.
const LISTS: [(Worklist, &Kind, &str, &str); 6] = [
    (Worklist::Unpaid, &INVOICES, "outstanding", "Outstanding invoices"),
    (Worklist::Overdue, &INVOICES, "overdue", "Overdue invoices"),
    (Worklist::BookingsToday, &BOOKINGS, "today", "Bookings of today"),
    (Worklist::BookingsTomorrow, &BOOKINGS, "tomorrow", "Bookings of tomorrow"),
    (Worklist::ExpiringQuotes, &QUOTES, "expiring", "Quotes that expire within a week"),
    (Worklist::UninvoicedJobs, &JOBS, "uninvoiced", "Completed jobs without an invoice"),
];

impl Worklist {
    /// Returns the list of a kind with this name.
    pub(super) fn named(kind: &Kind, name: &str) -> Option<(Self, &'static str)> {
        let found = LISTS.iter().find(|(_, of, known, _)| of.records == kind.records && *known == name)?;
        Some((found.0, found.3))
    }

    /// Returns the path of its page.
    pub(crate) fn path(self) -> String {
        let found = LISTS.iter().find(|(list, ..)| *list == self);
        found.map(|(_, kind, name, _)| format!("{}?show={name}", kind.list_path())).unwrap_or_default()
    }

    /// Returns how many records it has.
    pub(crate) fn count(self, today: &Today) -> usize {
        match self {
            Self::Unpaid => today.unpaid.len(),
            Self::Overdue => overdue(today).count(),
            Self::BookingsToday | Self::BookingsTomorrow => self.bookings(today).count(),
            Self::ExpiringQuotes => today.expiring.len(),
            Self::UninvoicedJobs => today.uninvoiced.len(),
        }
    }

    fn bookings(self, today: &Today) -> impl Iterator<Item = &Booking> {
        let is_wanted =
            move |booking: &&Booking| (booking.start_time < today.tomorrow) == (self == Self::BookingsToday);
        today.bookings.iter().filter(is_wanted)
    }

    fn records(self, today: &Today) -> Result<Vec<Map<String, Value>>, Error> {
        match self {
            Self::Unpaid => today.unpaid.iter().map(invoice_object).collect(),
            Self::Overdue => overdue(today).map(invoice_object).collect(),
            Self::BookingsToday | Self::BookingsTomorrow => self.bookings(today).map(object).collect(),
            Self::ExpiringQuotes => today.expiring.iter().map(object).collect(),
            Self::UninvoicedJobs => today.uninvoiced.iter().map(object).collect(),
        }
    }
}

fn overdue(today: &Today) -> impl Iterator<Item = &Invoice> {
    today.unpaid.iter().filter(|invoice| today.days_overdue(invoice) > 0)
}

/// Shows the list with this name.
pub(super) async fn show(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &'static Kind,
    name: &str,
) -> Result<PageResponse, PageError> {
    let (list, title) = Worklist::named(kind, name).ok_or(PageError::NotFound)?;
    let today = cx.svc.account(tenant.id).today().await?;
    let records = list.records(&today)?;
    let values = FieldValues::new(cx, tenant, records.iter().map(|record| text(record, "contact_id"))).await?;
    let all = html! { a.button href=(cx.url(&kind.list_path())) { "All " (kind.collection) } };
    let content = html! {
        (heading(title, "", all))
        @if records.is_empty() {
            (empty(kind.icon, "None", "Nothing waits here.", html! {}))
        } @else {
            (record_table(cx, kind, &records, &values, ""))
        }
    };
    Ok(layout::page(cx, Some(tenant), title, &content))
}
