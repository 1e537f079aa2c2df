//! The lists of what wants attention: by the days on which records start or are due, and those that the overview counts.

use http::StatusCode;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use svc_core::resources::starts::{HasStart, StartListParams};
use svc_core::service::Records;
use svc_core::today::Days;
use svc_core::values::RecordKind;

use super::table::record_table;
use super::values::text;
use super::{FieldValues, PAGE, RecordPage, invoice_object, object, objects, selected, status_of};
use crate::dashboard::pages::filters;
use crate::dashboard::pages::kinds::{BOOKINGS, INVOICES, JOBS, Kind, QUOTES};
use crate::dashboard::pages::record_actions::new_button;
use crate::dashboard::prelude::*;

/// The parameters of a list by days.
const PARAMETERS: [&str; 3] = ["show", "date", "status"];

/// The contents of a list of what wants attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// The records that start or are due on some days, in the order of the times.
    Days(Days),
    Unpaid,
    ExpiringQuotes,
    AcceptedQuotes,
    UninvoicedJobs,
}

/// A list of what wants attention.
pub(super) struct Worklist {
    kind: &'static Kind,
    /// The name in the address.
    name: &'static str,
    /// The name in the list of lists.
    tab: &'static str,
    title: &'static str,
    contents: Contents,
}

const fn list(
    kind: &'static Kind,
    name: &'static str,
    contents: Contents,
    tab: &'static str,
    title: &'static str,
) -> Worklist {
    Worklist { kind, name, tab, title, contents }
}

const LISTS: [Worklist; 18] = [
    list(&INVOICES, "outstanding", Contents::Unpaid, "Outstanding", "Outstanding invoices"),
    list(&INVOICES, "overdue", Contents::Days(Days::Past), "Overdue", "Overdue invoices"),
    list(&INVOICES, "today", Contents::Days(Days::Today), "Due today", "Invoices due today"),
    list(&INVOICES, "week", Contents::Days(Days::Week), "Due this week", "Invoices due this week"),
    list(&INVOICES, "upcoming", Contents::Days(Days::Upcoming), "Due later", "Invoices due today or later"),
    list(&QUOTES, "expiring", Contents::ExpiringQuotes, "Expiring", "Quotes that expire within a week"),
    list(&QUOTES, "accepted", Contents::AcceptedQuotes, "Accepted", "Accepted quotes without a job"),
    list(&BOOKINGS, "today", Contents::Days(Days::Today), "Today", "Bookings today"),
    list(&BOOKINGS, "tomorrow", Contents::Days(Days::Tomorrow), "Tomorrow", "Bookings tomorrow"),
    list(&BOOKINGS, "week", Contents::Days(Days::Week), "This week", "Bookings this week"),
    list(&BOOKINGS, "upcoming", Contents::Days(Days::Upcoming), "Upcoming", "Upcoming bookings"),
    list(&BOOKINGS, "past", Contents::Days(Days::Past), "Past", "Past bookings"),
    list(&JOBS, "today", Contents::Days(Days::Today), "Today", "Jobs that start today"),
    list(&JOBS, "tomorrow", Contents::Days(Days::Tomorrow), "Tomorrow", "Jobs that start tomorrow"),
    list(&JOBS, "week", Contents::Days(Days::Week), "This week", "Jobs that start this week"),
    list(&JOBS, "upcoming", Contents::Days(Days::Upcoming), "Upcoming", "Jobs that start today or later"),
    list(&JOBS, "past", Contents::Days(Days::Past), "Past", "Jobs planned to start before today"),
    list(&JOBS, "uninvoiced", Contents::UninvoicedJobs, "To invoice", "Completed jobs without an invoice"),
];

/// Returns the lists of a kind.
fn of_kind(kind: &Kind) -> impl Iterator<Item = &'static Worklist> {
    LISTS.iter().filter(move |list| list.kind.records == kind.records)
}

/// Returns the links to the lists of a kind, of which one is shown. Nothing for a kind that has none.
pub(super) fn tabs(cx: &Context<'_>, kind: &Kind, shown: Option<&str>) -> Markup {
    let path = kind.list_path();
    let tab = |url: String, name: &str, is_shown: bool| {
        html! { a href=(url) aria-current=[is_shown.then_some("page")] { (name) } }
    };
    html! {
        @if of_kind(kind).next().is_some() {
            nav.tabs aria-label={ "Lists of " (kind.collection) } {
                (tab(cx.url(&path), "All", shown.is_none()))
                @for list in of_kind(kind) {
                    (tab(cx.url(&format!("{path}?show={}", list.name)), list.tab, shown == Some(list.name)))
                }
            }
        }
    }
}

/// Shows the list with this name.
pub(super) async fn show(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &'static Kind,
    name: &str,
) -> Result<PageResponse, PageError> {
    let list = of_kind(kind).find(|list| list.name == name).ok_or(PageError::NotFound)?;
    if let Contents::Days(days) = list.contents {
        return show_days(cx, tenant, list, days).await;
    }
    let mut today = cx.svc.account(tenant.id).today().await?;
    today.unpaid.sort_by_key(|invoice| (invoice.due_date.is_none(), invoice.due_date));
    let records = match list.contents {
        Contents::ExpiringQuotes => today.expiring.iter().map(object).collect::<Result<Vec<_>, _>>()?,
        Contents::AcceptedQuotes => today.accepted.iter().map(object).collect::<Result<_, _>>()?,
        Contents::UninvoicedJobs => today.uninvoiced.iter().map(object).collect::<Result<_, _>>()?,
        Contents::Unpaid | Contents::Days(_) => today.unpaid.iter().map(invoice_object).collect::<Result<_, _>>()?,
    };
    let values = FieldValues::new(cx, tenant, records.iter().map(|record| text(record, "contact_id"))).await?;
    let content = html! {
        (heading(list.title, "", new_button(cx, kind)))
        (tabs(cx, kind, Some(name)))
        @if records.is_empty() {
            (empty(kind.icon, "None", "Nothing waits here.", html! {}))
        } @else {
            (record_table(cx, kind, &records, &values, "", false))
        }
    };
    Ok(layout::page(cx, Some(tenant), list.title, &content))
}

/// Shows what starts or is due on some days. `?date=` is the day from which they are counted, today if it is missing: so the pages
/// of a list go on after midnight, and the calendar leads to the list of any day.
async fn show_days(cx: &Context<'_>, tenant: &Tenant, list: &Worklist, days: Days) -> Result<PageResponse, PageError> {
    let kind = list.kind;
    let today = tenant.time_zone.date_at(cx.now);
    let date = filters::value::<Date>(cx, "date")?.unwrap_or(today);
    let (page, error) = match read(cx, tenant, kind, days, date).await {
        Ok(page) => (page, None),
        Err(Error::NotAllowed(reason)) => ((Vec::new(), None), Some(reason)),
        Err(Error::InvalidCursor) => ((Vec::new(), None), Some(Error::InvalidCursor.to_string())),
        Err(other) => return Err(other.into()),
    };
    let (records, next) = page;
    let values = FieldValues::new(cx, tenant, records.iter().map(|record| text(record, "contact_id"))).await?;
    let is_of_today = date == today || days != Days::Today;
    let title = if is_of_today { list.title.to_owned() } else { format!("{} of {}", kind.title, date.in_words()) };
    let about = format!("{}, in the time zone {}.", dates(days, date), tenant.time_zone);
    let content = html! {
        (heading(&title, &about, new_button(cx, kind)))
        (tabs(cx, kind, Some(if is_of_today { list.name } else { "" })))
        div.toolbar {
            // Unpaid invoices have several statuses, which say little more.
            @if kind.records != RecordKind::Invoice { (filter_form(cx, list, date)) }
            @if !records.is_empty() { (selected::form(cx, kind)) }
        }
        @if let Some(reason) = &error {
            p.banner.bad role="alert" { (reason) }
        } @else if records.is_empty() {
            @let condition = if kind.records == RecordKind::Invoice { "is unpaid and due" } else { "has this status" };
            (empty(kind.icon, "None", &format!("No {} {condition} on these days.", kind.one), html! {}))
        } @else {
            (record_table(cx, kind, &records, &values, "", true))
        }
        (page_links_of(cx, list, date, next.as_deref()))
    };
    let response = layout::page(cx, Some(tenant), &title, &content);
    Ok(if error.is_some() { response.status(StatusCode::UNPROCESSABLE_ENTITY) } else { response })
}

/// Returns the page of records that the query asks for.
async fn read(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
    days: Days,
    date: Date,
) -> Result<RecordPage<String>, Error> {
    async fn page<R: HasStart>(
        records: Records<'_, R>,
        params: StartListParams,
        days: Days,
        filter: R::Filter,
    ) -> Result<Page<R, String>, Error> {
        records.by_start(params, days.order::<R>(), filter).await
    }
    let (account, zone) = (cx.svc.account(tenant.id), &tenant.time_zone);
    let cursor = cx.query.given("cursor").map(str::to_owned);
    let on_page = |params| StartListParams { limit: Limit::new(PAGE), cursor, ..params };
    let status = cx.query.text("status");
    match kind.records {
        RecordKind::Booking => {
            let filter = BookingFilter { status: status_of(status, BookingStatus::from_text)? };
            let params = on_page(days.params::<Booking>(date, zone));
            objects(page(account.bookings(), params, days, filter).await?, object)
        }
        RecordKind::Job => {
            let filter = JobFilter { status: status_of(status, JobStatus::from_text)?, job_number: None };
            let params = on_page(days.params::<Job>(date, zone));
            objects(page(account.jobs(), params, days, filter).await?, object)
        }
        RecordKind::Invoice => {
            let params = on_page(days.params::<Invoice>(date, zone));
            objects(page(account.invoices(), params, days, InvoiceFilter::default()).await?, invoice_object)
        }
        RecordKind::Contact | RecordKind::Quote => Ok((Vec::new(), None)),
    }
}

/// Returns the dates of some days.
fn dates(days: Days, date: Date) -> String {
    match days {
        Days::Today => long_date(date),
        Days::Tomorrow => long_date(date.plus_days(1)),
        Days::Week => format!("{} to {}", date.monday().in_words(), date.monday().plus_days(6).in_words()),
        Days::Upcoming => format!("From {} on", date.in_words()),
        Days::Past => format!("Before {}", date.in_words()),
    }
}

fn filter_form(cx: &Context<'_>, list: &Worklist, date: Date) -> Markup {
    html! {
        form.filters method="get" action=(cx.url(&list.kind.list_path())) role="search" aria-label=(list.kind.title) {
            input type="hidden" name="show" value=(list.name);
            input type="hidden" name="date" value=(date);
            (filters::statuses(cx, list.kind))
            button type="submit" { "Filter" }
        }
    }
}

/// Returns the links to the other pages of a list by days.
fn page_links_of(cx: &Context<'_>, list: &Worklist, date: Date, next: Option<&str>) -> Markup {
    let (path, date) = (list.kind.list_path(), date.to_string());
    let url = |cursor: &str| {
        let own = cx.query.encoded(&PARAMETERS[2..]);
        let rest = layout::query(&[("show", list.name), ("date", &date), ("cursor", cursor)]);
        cx.url(&format!("{path}?{rest}{}{own}", if own.is_empty() { "" } else { "&" }))
    };
    let is_later = cx.query.given("cursor").is_some();
    html! {
        @if is_later || next.is_some() {
            nav.pages aria-label="Pages of the list" {
                @if is_later { a.button href=(url("")) { "First page" } } @else { span {} }
                @if let Some(next) = next { a.button href=(url(next)) { "Next page" } }
            }
        }
    }
}
