//! The page of a record.

use serde_json::{Map, Value};
use svc_core::calendar::is_done;
use svc_core::changes::{ChangeFilter, trace_paid};
use svc_core::error::Error;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use svc_core::resources::invoices::MAX_SUMMED;
use svc_core::values::RecordKind;
use uuid::Uuid;

use super::summary::summary;
use super::table::record_table;
use super::values::text;
use super::{FieldValues, PAGE, Selection, find, get, label, name, short, status_tone, words};
use crate::dashboard::pages::audit::ChangeTable;
use crate::dashboard::pages::calendar::days::takes_days;
use crate::dashboard::pages::customer_links;
use crate::dashboard::pages::kinds::{BOOKINGS, CONTACTS, INVOICES, JOBS, Kind, QUOTES, of_path, of_records};
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
    let contact = match text(&record, "contact_id").parse() {
        Ok(contact) => if_found(get(account, &CONTACTS, contact).await)?,
        Err(_) => None,
    };
    let job = job_of(cx, tenant, kind, &record).await?;
    let customer = contact.as_ref().map(|contact| self::name(&CONTACTS, contact));
    // A job is known by its title, and then by its number.
    let (named, title) = (name(kind, &record), text(&record, "title"));
    let (name, number) = if title.is_empty() { (named, String::new()) } else { (title.to_owned(), named) };
    let status = text(&record, "status");
    let about = html! {
        @if !status.is_empty() { (badge(status_tone(status), &words(status))) " " }
        (summary(number, &record, &values, &tenant.time_zone, cx.now))
    };
    let link = customer_links::card(cx, tenant, kind, id, &record).await?;
    let content = html! {
        p { a href=(cx.url(&kind.list_path())) { (kind.title) } }
        (heading_with(&short(&name), about, html! {
            (record_actions::buttons(cx, tenant, kind, id, customer.as_deref()).await?)
            (customer_links::print_button(cx, kind, id))
        }))
        @if matches!(kind.records, RecordKind::Booking | RecordKind::Job) { (at_the_same_time(cx, tenant, id, &record).await?) }
        div.record {
            div {
                // What the customer is yet to pay or to decide is sent first of all.
                (link)
                @if let Some(contact) = &contact { (section("Contact", reached(cx, contact, &values))) }
                @if matches!(kind.records, RecordKind::Contact) { (outstanding_of(cx, tenant, id.into()).await?) }
            }
            div {
                (section("Details", html! {
                    @if let Some(job) = &job { (facts(&[("Job".to_owned(), job_link(cx, job))])) }
                    (details(kind, &record, contact.as_ref(), &values))
                }))
                @if matches!(kind.records, RecordKind::Invoice) { (payments(cx, tenant, id.into()).await?) }
            }
        }
        @if matches!(kind.records, RecordKind::Contact) { (of_contact(cx, tenant, id.into()).await?) }
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
        @if matches!(kind.records, RecordKind::Contact) && cx.may(Role::Developer) {
            (record_actions::data_and_deletion(cx, &account.contacts().get(id.into()).await?))
        }
    };
    Ok(layout::page(cx, Some(tenant), &short(&name), &content))
}

/// Returns the job that a quote has become or an invoice is for, among the newest of its contact.
async fn job_of(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
    record: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, Error> {
    let field = match kind.records {
        RecordKind::Invoice => "invoice_id",
        RecordKind::Quote if text(record, "status") == QuoteStatus::Converted.as_str() => "quote_id",
        _ => return Ok(None),
    };
    let Ok(contact) = text(record, "contact_id").parse() else { return Ok(None) };
    let params = ListParams { limit: Limit::new(PAGE), ..ListParams::default() };
    let (jobs, _) = find(cx.svc.account(tenant.id), &JOBS, &Selection::of(contact), params).await?;
    Ok(jobs.into_iter().find(|job| text(job, field) == text(record, "id")))
}

/// Returns the link to a job, with its title and its number.
fn job_link(cx: &Context<'_>, job: &Map<String, Value>) -> Markup {
    let title = format!("{} ({})", short(&without_bidi_controls(text(job, "title"))), text(job, "job_number"));
    html! { a href=(cx.url(&JOBS.path(text(job, "id")))) { (title) } }
}

/// The fields of the address of a contact, and of the site of a job: each is shown as one.
const HOME: [&str; 3] = ["city", "state", "postcode"];
const SITE: [&str; 4] = ["site_address", "site_suburb", "site_state", "site_postcode"];

/// Returns the fields of a record with their values, and its id, which programs need. The currency is that of its amounts.
fn details(
    kind: &Kind,
    record: &Map<String, Value>,
    contact: Option<&Map<String, Value>>,
    values: &FieldValues<'_>,
) -> Markup {
    const MORE: [&str; 2] = ["created_at", "updated_at"];
    // Name, title and status are in the heading. The contact stands beside it, and a job repeats what is known of it.
    let is_left_out = |field: &str| {
        let of_contact = match field {
            "contact_id" => contact.map(|contact| text(contact, "id").to_owned()),
            "customer_name" => contact.map(|contact| name(&CONTACTS, contact)),
            "customer_email" => contact.map(|contact| text(contact, "email").to_owned()),
            "customer_phone" => contact.map(|contact| text(contact, "phone").to_owned()),
            _ => None,
        };
        let is_repeated = of_contact.is_some_and(|known| known == text(record, field));
        let is_name = kind.name.contains(&field);
        let is_of_place = HOME.contains(&field) || SITE.contains(&field);
        let is_shown_elsewhere = matches!(field, "currency" | "id" | "status" | "title") || is_of_place;
        let is_empty = record.get(field).is_none_or(Value::is_null);
        is_empty || is_repeated || is_name || is_shown_elsewhere || MORE.contains(&field)
    };
    let shown = |field: &str| (capitalized(&label(field)), values.value(record, field));
    let fields = record.keys().filter(|field| !is_left_out(field)).map(|field| shown(field));
    let site = address("Site", record, &SITE).into_iter();
    let all: Vec<_> = site.chain(fields).chain(address("Address", record, &HOME)).collect();
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

/// Returns the name of a contact, and how and where it is reached.
fn reached(cx: &Context<'_>, contact: &Map<String, Value>, values: &FieldValues<'_>) -> Markup {
    let ways = ["phone", "email"].into_iter().filter(|way| !text(contact, way).is_empty());
    let text_message = |way| {
        html! { @if way == "phone" { " · " a href=(sms(text(contact, "phone"), "")) { "Text" } } }
    };
    let ways = ways.map(|way| (capitalized(&label(way)), html! { (values.value(contact, way)) (text_message(way)) }));
    html! {
        p { a href=(cx.url(&CONTACTS.path(text(contact, "id")))) { (isolated(&short(&name(&CONTACTS, contact)))) } }
        (facts(&ways.chain(address("Address", contact, &HOME)).collect::<Vec<_>>()))
    }
}

/// Returns the address that these fields make, if they are not empty, with a link to a map.
fn address(label: &str, of: &Map<String, Value>, fields: &[&str]) -> Option<(String, Markup)> {
    let parts: Vec<&str> = fields.iter().map(|field| text(of, field)).filter(|part| !part.is_empty()).collect();
    let address = parts.join(", ");
    let query = layout::query(&[("query", &address)]);
    let shown = html! {
        (short(&address)) " "
        a href={ "https://www.openstreetmap.org/search?" (query) } rel="noreferrer" target="_blank" { "Map" }
    };
    (!parts.is_empty()).then(|| (label.to_owned(), shown))
}

/// Returns what a contact has yet to pay, if that is anything.
async fn outstanding_of(cx: &Context<'_>, tenant: &Tenant, contact: ContactId) -> Result<Markup, Error> {
    let outstanding = cx.svc.account(tenant.id).invoices().outstanding_of(contact).await?;
    Ok(html! {
        @if !outstanding.sums.is_empty() {
            (section("Outstanding", html! {
                @for (currency, amount) in &outstanding.sums {
                    p { a href=(cx.url(&format!("{}?contact={contact}", INVOICES.list_path()))) { strong { (amount.in_currency(*currency)) } } }
                }
                @if outstanding.is_cut { p.hint { "Of the newest " (number(u64::from(MAX_SUMMED))) " invoices." } }
            }))
        }
    })
}

/// Returns the newest records of each kind of a contact.
async fn of_contact(cx: &Context<'_>, tenant: &Tenant, contact: ContactId) -> Result<Markup, Error> {
    let account = cx.svc.account(tenant.id);
    let mut lists = Vec::new();
    for kind in [&INVOICES, &QUOTES, &JOBS, &BOOKINGS] {
        let params = ListParams { limit: Limit::new(OF_CONTACT), ..ListParams::default() };
        lists.push((kind, find(account, kind, &Selection::of(contact), params).await?));
    }
    let values = FieldValues::new(cx, tenant, std::iter::empty()).await?;
    Ok(html! {
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
    let (Some(start), Some(end)) = (start, end) else { return Ok(html! {}) };
    if is_done(text(record, "status")) || end <= cx.now || takes_days(start, Some(end)) {
        return Ok(html! {});
    }
    let mut others = cx.svc.account(tenant.id).overlapping(id, start..end).await?;
    others.retain(|entry| !takes_days(entry.start, entry.end));
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
                p.soft { "No payments recorded." }
            } @else {
                (table("Payments", &["Received", "Amount", "Method", "Reference"], html! {
                    @for payment in &payments {
                        tr {
                            th scope="row" { (minute(&tenant.time_zone, payment.paid_at)) }
                            td.number { span.fixed { @if payment.is_refund { "−" } (payment.amount.in_currency(payment.currency)) } }
                            td.plain {
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
