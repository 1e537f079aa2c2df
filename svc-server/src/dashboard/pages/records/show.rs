//! The page of a record.

use serde_json::{Map, Value};
use svc_core::changes::{ChangeFilter, trace_paid};
use svc_core::error::Error;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use svc_core::resources::invoices::MAX_SUMMED;
use svc_core::values::RecordKind;
use uuid::Uuid;

use super::table::record_table;
use super::values::{money, text};
use super::{FieldValues, Selection, find, get, label, name, short};
use crate::dashboard::pages::audit::ChangeTable;
use crate::dashboard::pages::customer_links;
use crate::dashboard::pages::kinds::{BOOKINGS, INVOICES, JOBS, Kind, QUOTES, of_path};
use crate::dashboard::pages::record_actions;
use crate::dashboard::prelude::*;

/// The number of changes on the page of a record.
const HISTORY: u32 = 50;
/// The number of records of each kind on the page of their contact.
const OF_CONTACT: u32 = 10;
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
    let name = name(kind, &record);
    let content = html! {
        p { a href=(cx.url(&kind.list_path())) { (kind.title) } }
        (heading(&short(&name), &summary(&record, &values, &tenant.time_zone), html! {
            (record_actions::buttons(cx, tenant, kind, id).await?)
            (customer_links::print_button(cx, kind, id))
        }))
        @if matches!(kind.records, RecordKind::Booking | RecordKind::Job) { (at_the_same_time(cx, tenant, id, &record).await?) }
        (section("Details", details(kind, &record, &values)))
        (customer_links::card(cx, tenant, kind, id).await?)
        @match kind.records {
            RecordKind::Contact => { (of_contact(cx, tenant, id.into()).await?) }
            RecordKind::Invoice => { (payments(cx, tenant, id.into()).await?) }
            RecordKind::Quote | RecordKind::Booking | RecordKind::Job => {}
        }
        section.card {
            h2 { "History" }
            @if history.data.is_empty() {
                p.soft { "Its changes are not known any more, or it was imported without any." }
            } @else {
                (changes.render(&history.data))
            }
            @if let Some(next) = history.next {
                @let query = layout::query(&[("object", &id.to_string()), ("before", &next.to_string())]);
                p { a href=(cx.url(&format!("/audit?{query}"))) { "Older changes" } }
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), &short(&name), &content))
}

/// Returns what a record is about in a line: the contact, the amount, and when it is due or takes place.
fn summary(record: &Map<String, Value>, values: &FieldValues<'_>, zone: &TimeZone) -> String {
    let amount = ["outstanding", "total", "actual_total", "estimated_total"];
    let amount = amount.iter().find_map(|field| record.get(*field).filter(|amount| !amount.is_null()));
    let date = |field, words: &str| Some(format!("{words} {}", Date::parse(text(record, field)).ok()?.in_words()));
    let time = |field| Some(minute_in_words(zone, Timestamp::parse(text(record, field)).ok()?));
    let parts = [
        values.contact(text(record, "contact_id")).map(|name| short(&without_bidi_controls(name))),
        amount.map(|amount| money(record, amount)),
        date("due_date", "due").or_else(|| date("valid_until", "valid until")),
        time("start_time").or_else(|| time("scheduled_start")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Returns the fields of a record with their values, and its id, which programs need. The currency is that of its amounts.
fn details(kind: &Kind, record: &Map<String, Value>, values: &FieldValues<'_>) -> Markup {
    const MORE: [&str; 2] = ["created_at", "updated_at"];
    // The number is the heading, and what is not paid in full has no day for that.
    let is_left_out = |field: &str| {
        let is_unpaid = field == "paid_at" && record.get(field) == Some(&Value::Null);
        field == "currency" || field == "id" || is_unpaid || (field.ends_with("_number") && kind.name == [field])
    };
    let fields = record.keys().map(String::as_str).filter(|field| !is_left_out(field) && !MORE.contains(field));
    let shown = |field| (capitalized(&label(field)), values.value(record, field));
    html! {
        (facts(&fields.map(shown).collect::<Vec<_>>()))
        details.more {
            summary { "More" }
            div {
                (facts(&MORE.map(shown)))
                (copyable("id", "Id, for programs", text(record, "id")))
            }
        }
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
        (section("Outstanding", html! {
            @if outstanding.sums.is_empty() {
                p.soft { "Nothing." }
            } @else {
                @for (currency, amount) in &outstanding.sums { p { strong { (amount.in_currency(*currency)) } } }
            }
            @if outstanding.is_cut { p.hint { "Of the newest " (number(u64::from(MAX_SUMMED))) " invoices." } }
        }))
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

/// Returns the bookings and jobs of a day that overlap with one, if there are any and it takes place.
async fn at_the_same_time(
    cx: &Context<'_>,
    tenant: &Tenant,
    id: Uuid,
    record: &Map<String, Value>,
) -> Result<Markup, Error> {
    let time = |names: [&str; 2]| names.iter().find_map(|name| Timestamp::parse(text(record, name)).ok());
    let (start, end) = (time(["start_time", "scheduled_start"]), time(["end_time", "scheduled_end"]));
    let (Some(start), Some(end), false) = (start, end, text(record, "status") == "cancelled") else {
        return Ok(html! {});
    };
    let mut others = cx.svc.account(tenant.id).overlapping(id, start..end).await?;
    // Work of several days goes on beside appointments.
    others.retain(|entry| {
        let dates = entry.dates(&tenant.time_zone);
        dates.start() == dates.end()
    });
    Ok(html! {
        @if !others.is_empty() {
            div.banner.warn {
                span {
                    "At the same time: "
                    @for (at, entry) in others.iter().enumerate() {
                        @let kind = if entry.kind == RecordKind::Job { &JOBS } else { &BOOKINGS };
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
