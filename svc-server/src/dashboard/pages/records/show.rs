//! The page of a record.

use std::time::Duration;

use serde_json::{Map, Value};
use svc_core::calendar::is_done;
use svc_core::changes::{ChangeFilter, trace_paid};
use svc_core::error::Error;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use svc_core::resources::invoices::MAX_SUMMED;
use svc_core::values::RecordKind;
use uuid::Uuid;

use super::table::record_table;
use super::values::{is_zero, money, text};
use super::{FieldValues, Selection, find, get, label, name, short, status_tone, words};
use crate::dashboard::pages::audit::ChangeTable;
use crate::dashboard::pages::customer_links;
use crate::dashboard::pages::kinds::{BOOKINGS, CONTACTS, INVOICES, JOBS, Kind, QUOTES, of_path, of_records};
use crate::dashboard::pages::record_actions;
use crate::dashboard::prelude::*;

/// The number of changes on the page of a record.
const HISTORY: u32 = 50;
/// The number of records of each kind on the page of their contact.
const OF_CONTACT: u32 = 10;
/// The length of work from which on it takes several days.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of payments on the page of their invoice.
const PAYMENTS: u32 = 100;

/// Shows one record with its history.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (kind, id): (_, Uuid) = (of_path(cx.path)?, cx.id()?);
    let account = cx.svc.account(tenant.id);
    let record = get(account, kind, id).await?;
    let mut history = account.audit_log().changes(ChangeFilter::of(id), HISTORY).await?;
    if matches!(kind.records, RecordKind::Invoice) {
        trace_paid(&mut history.data, account.invoices().get(id.into()).await?.amount_paid);
    }
    let changes = ChangeTable::new(cx, tenant, &history.data).await?;
    let values = FieldValues::of(cx, tenant, &record).await?;
    let contact = match text(&record, "contact_id").parse() {
        Ok(contact) => if_found(get(account, &CONTACTS, contact).await)?,
        Err(_) => None,
    };
    let customer = contact.as_ref().map(|contact| self::name(&CONTACTS, contact));
    let name = name(kind, &record);
    let status = text(&record, "status");
    let about = html! {
        @if !status.is_empty() { (badge(status_tone(status), &words(status))) " " }
        (summary(&record, &values, &tenant.time_zone, cx.now))
    };
    // What the customer is yet to pay or to decide is sent first of all.
    let is_open = customer_links::is_open(status);
    let link = customer_links::card(cx, tenant, kind, id, status).await?;
    let content = html! {
        p { a href=(cx.url(&kind.list_path())) { (kind.title) } }
        (heading_with(&short(&name), about, html! {
            (record_actions::buttons(cx, tenant, kind, id, customer.as_deref()).await?)
            (customer_links::print_button(cx, kind, id))
        }))
        @if matches!(kind.records, RecordKind::Booking | RecordKind::Job) { (at_the_same_time(cx, tenant, id, &record).await?) }
        @if is_open { (link) }
        (section("Details", details(kind, &record, contact.as_ref(), &values)))
        @if !is_open { (link) }
        @match kind.records {
            RecordKind::Contact => { (of_contact(cx, tenant, id.into()).await?) }
            RecordKind::Invoice => { (payments(cx, tenant, id.into()).await?) }
            RecordKind::Quote | RecordKind::Booking | RecordKind::Job => {}
        }
        @if matches!(kind.records, RecordKind::Contact) && cx.may(Role::Developer) {
            (record_actions::data_and_deletion(cx, &account.contacts().get(id.into()).await?))
        }
        details.card {
            summary { h2 { "History" } }
            @if history.data.is_empty() {
                p.soft { "Its changes are not known any more, or it was imported without any." }
            } @else {
                (changes.render_of_record(&history.data))
                @let text = if history.next.is_some() { "All changes" } else { "With requests and events" };
                p { a href=(cx.url(&format!("/audit?object={id}"))) { (text) } }
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), &short(&name), &content))
}

/// Returns what a record is about in a line: the contact, the amount, and when it is due or takes place. For a contact, how it is
/// reached.
fn summary(record: &Map<String, Value>, values: &FieldValues<'_>, zone: &TimeZone, now: Timestamp) -> String {
    let amount = ["outstanding", "total", "actual_total", "estimated_total"];
    let amount = amount.iter().find_map(|field| record.get(*field).filter(|amount| !is_zero(Some(amount))));
    let due = || match (text(record, "status"), Date::parse(text(record, "due_date"))) {
        ("paid", _) => {
            Some(format!("paid {}", zone.date_at(Timestamp::parse(text(record, "paid_at")).ok()?).in_words()))
        }
        ("cancelled", _) | (_, Err(_)) => None,
        ("overdue", Ok(due)) => match zone.date_at(now).days() - due.days() {
            1 => Some("1 day overdue".to_owned()),
            days => Some(format!("{days} days overdue")),
        },
        (_, Ok(due)) => Some(format!("due {}", due.in_words())),
    };
    let date = |field, words: &str| Some(format!("{words} {}", Date::parse(text(record, field)).ok()?.in_words()));
    let time = |field| Some(minute_in_words(zone, Timestamp::parse(text(record, field)).ok()?));
    let words = |field| Some(short(&without_bidi_controls(text(record, field)))).filter(|words| !words.is_empty());
    let parts = [
        words("title"),
        words("phone"),
        words("city"),
        values.contact(text(record, "contact_id")).map(|name| short(&without_bidi_controls(name))),
        amount.map(|amount| money(record, amount)),
        due().or_else(|| date("valid_until", "valid until")),
        time("start_time").or_else(|| time("scheduled_start")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The fields of a job's site, which are shown as one address.
const SITE: [&str; 4] = ["site_address", "site_suburb", "site_state", "site_postcode"];

/// Returns the fields of a record with their values, how its contact is reached, and its id, which programs need. The currency is
/// that of its amounts.
fn details(
    kind: &Kind,
    record: &Map<String, Value>,
    contact: Option<&Map<String, Value>>,
    values: &FieldValues<'_>,
) -> Markup {
    const MORE: [&str; 2] = ["created_at", "updated_at"];
    // The number and the status are in the heading, and a job repeats what is known of its contact.
    let is_left_out = |field: &str| {
        let of_contact = match field {
            "customer_name" => contact.map(|contact| name(&CONTACTS, contact)),
            "customer_email" => contact.map(|contact| text(contact, "email").to_owned()),
            "customer_phone" => contact.map(|contact| text(contact, "phone").to_owned()),
            _ => None,
        };
        let is_repeated = of_contact.is_some_and(|known| known == text(record, field));
        let is_number = field.ends_with("_number") && kind.name == [field];
        let is_shown_elsewhere = matches!(field, "currency" | "id" | "status") || SITE.contains(&field);
        let is_empty = record.get(field).is_none_or(Value::is_null);
        is_empty || is_repeated || is_number || is_shown_elsewhere || MORE.contains(&field)
    };
    let shown = |field: &str| (capitalized(&label(field)), values.value(record, field));
    let mut all = Vec::new();
    for field in record.keys() {
        if !is_left_out(field) {
            all.push(shown(field));
        }
        if field == "contact_id" {
            all.extend(reached(kind, record, contact, values));
        }
    }
    html! {
        (facts(&all))
        details.more {
            summary { "More" }
            div {
                (facts(&MORE.map(shown)))
                (copyable("id", "Id, for programs", text(record, "id")))
            }
        }
    }
}

/// Returns how the contact of a record is reached, and where the work is: at the site or, without one, where the contact lives.
fn reached(
    kind: &Kind,
    record: &Map<String, Value>,
    contact: Option<&Map<String, Value>>,
    values: &FieldValues<'_>,
) -> Vec<(String, Markup)> {
    let address = |of: &Map<String, Value>, fields: &[&str]| {
        let parts = fields.iter().map(|field| text(of, field)).filter(|part| !part.is_empty());
        Some(parts.collect::<Vec<_>>().join(", ")).filter(|address| !address.is_empty())
    };
    let mut all = Vec::new();
    if let Some(contact) = contact {
        let ways = ["phone", "email"].into_iter().filter(|way| !text(contact, way).is_empty());
        all.extend(ways.map(|way| (capitalized(&label(way)), values.value(contact, way))));
    }
    if matches!(kind.records, RecordKind::Booking | RecordKind::Job) {
        let home = || address(contact?, &["city", "state", "postcode"]).map(|home| ("Address", home));
        let place = address(record, &SITE).map(|site| ("Site", site)).or_else(home);
        all.extend(place.map(|(label, address)| (label.to_owned(), on_map(&address))));
    }
    all
}

/// Returns an address with a link to a map.
fn on_map(address: &str) -> Markup {
    let query = layout::query(&[("query", address)]);
    html! {
        (short(address)) " "
        a href={ "https://www.openstreetmap.org/search?" (query) } rel="noreferrer" target="_blank" { "Map" }
    }
}

/// Returns what a contact has yet to pay, and its newest records of each kind.
async fn of_contact(cx: &Context<'_>, tenant: &Tenant, contact: ContactId) -> Result<Markup, Error> {
    let account = cx.svc.account(tenant.id);
    let outstanding = account.invoices().outstanding_of(contact).await?;
    let mut lists = Vec::new();
    for kind in [&INVOICES, &QUOTES, &JOBS, &BOOKINGS] {
        let params = ListParams { limit: Limit::new(OF_CONTACT), ..ListParams::default() };
        lists.push((kind, find(account, kind, &Selection::of(contact), params).await?));
    }
    let values = FieldValues::new(cx, tenant, std::iter::empty()).await?;
    Ok(html! {
        @if !outstanding.sums.is_empty() {
            (section("Outstanding", html! {
                @for (currency, amount) in &outstanding.sums { p { strong { (amount.in_currency(*currency)) } } }
                @if outstanding.is_cut { p.hint { "Of the newest " (number(u64::from(MAX_SUMMED))) " invoices." } }
            }))
        }
        @for (kind, (records, next)) in &lists {
            @if !records.is_empty() {
                (section(kind.title, html! {
                    @if next.is_some() {
                        p { "The newest " (OF_CONTACT) ". "
                            a href=(cx.url(&format!("/{}?contact={contact}", kind.collection))) { "All " (kind.collection) } }
                    }
                    (record_table(cx, kind, records, &values, "contact_id", false))
                }))
            }
        }
    })
}

/// Returns the bookings and jobs that overlap with one, if it is still to come and takes less than a day.
async fn at_the_same_time(
    cx: &Context<'_>,
    tenant: &Tenant,
    id: Uuid,
    record: &Map<String, Value>,
) -> Result<Markup, Error> {
    let time = |names: [&str; 2]| names.iter().find_map(|name| Timestamp::parse(text(record, name)).ok());
    let (start, end) = (time(["start_time", "scheduled_start"]), time(["end_time", "scheduled_end"]));
    // Work of several days goes on beside appointments, and what is over cannot be moved.
    let is_short = |start: Timestamp, end: Timestamp| end.since(start) < DAY;
    let (Some(start), Some(end)) = (start, end) else { return Ok(html! {}) };
    if is_done(text(record, "status")) || end <= cx.now || !is_short(start, end) {
        return Ok(html! {});
    }
    let mut others = cx.svc.account(tenant.id).overlapping(id, start..end).await?;
    others.retain(|entry| is_short(entry.start, entry.end.unwrap_or(entry.start)));
    Ok(html! {
        @if !others.is_empty() {
            div.banner.warn {
                span {
                    "At the same time: "
                    @for (at, entry) in others.iter().enumerate() {
                        @let kind = of_records(entry.kind);
                        @if at > 0 { ", " }
                        a href=(cx.url(&kind.path(entry.id))) { (short(&entry.title)) }
                        " (" (minute(&tenant.time_zone, entry.start)) ")"
                    }
                }
            }
        }
    })
}

/// Returns the payments of an invoice.
async fn payments(cx: &Context<'_>, tenant: &Tenant, invoice: InvoiceId) -> Result<Markup, Error> {
    let payments = cx.svc.account(tenant.id).invoices().payments(invoice, PAYMENTS).await?;
    Ok(section(
        "Payments",
        html! {
            @if payments.is_empty() {
                p.soft { "None yet. Payments before an import are not known." }
            } @else {
                (table("Payments", &["Received", "Amount", "Method", "Reference"], html! {
                    @for payment in &payments {
                        tr {
                            th scope="row" { (minute(&tenant.time_zone, payment.paid_at)) }
                            td.number { @if payment.is_refund { "−" } (payment.amount.in_currency(payment.currency)) }
                            td {
                                @if payment.is_refund { (badge(Tone::Warn, "refund")) " " }
                                (payment.method.as_ref().map_or("", |method| method.as_str()))
                            }
                            td { (payment.reference.as_ref().map_or("", |reference| reference.as_str())) }
                        }
                    }
                }))
                @if payments.len() == PAYMENTS as usize { p.hint { "The newest " (PAYMENTS) "." } }
            }
        },
    ))
}
