//! The payments and refunds of an account, for its books.

use std::collections::BTreeMap;
use std::ops::Range;

use svc_core::Svc;
use svc_core::error::Error;
use svc_core::resources::contacts::ContactId;
use svc_core::resources::invoices::BookedPayment;
use svc_core::values::{TenantId, TimeZone, Timestamp};

use super::filters;
use super::kinds::{CONTACTS, INVOICES};
use super::records::short;
use crate::dashboard::csv;
use crate::dashboard::prelude::*;

/// The number of payments on a page, and in a piece of a CSV file.
const PAGE: u32 = 50;
/// The memory in which a page is made, in records.
pub(crate) const MEMORY: u32 = 50;
/// The filters in the query.
const FILTERS: [&str; 3] = ["within", "since", "until"];

/// Lists payments and refunds, newest first.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let mut times = filters::period(cx, tenant)?;
    if cx.query.text("format") == "csv" {
        return csv_file(cx, tenant, times).await;
    }
    let before = cx.query.given("before").and_then(|at| Timestamp::parse(at).ok());
    times.end = times.end.min(before.unwrap_or(Timestamp::MAX));
    let (payments, next) = cx.svc.account(tenant.id).invoices().booked_payments(times, PAGE).await?;
    let names = names_of_contacts(&cx.svc, tenant.id, &payments).await?;
    let rows = html! {
        @for payment in &payments {
            tr {
                th scope="row" { (minute(&tenant.time_zone, payment.paid_at)) }
                td.plain.fixed { a href=(cx.url(&INVOICES.path(payment.invoice_id))) { (payment.invoice_number) } }
                td.plain {
                    @if let Some(id) = payment.contact_id {
                        a href=(cx.url(&CONTACTS.path(id))) { (short(names.get(&id).map_or("deleted", String::as_str))) }
                    }
                }
                td.number { span.fixed { @if payment.is_refund { "−" } (payment.amount.in_currency(payment.currency)) } }
                td.plain { @if payment.is_refund { (badge(Tone::Warn, "refund")) " " } (payment.method.as_ref().map_or("", |m| m.as_str())) }
                td { (payment.reference.as_ref().map_or("", |r| r.as_str())) }
            }
        }
    };
    let is_filtered = before.is_some() || !cx.query.encoded(&FILTERS).is_empty();
    let content = html! {
        (heading("Payments", "Payments of invoices, and their refunds.", html! {}))
        (filters::list(cx, filters::List {
            path: "/payments",
            filters: filters::period_fields(cx, "Received"),
            is_filtered,
            icon: "payment",
            none: ("No payments yet", "Record one on the page of its invoice.",
                html! { a.button.primary href=(cx.url("/invoices")) { "Invoices" } }),
            nothing: "No payment was received then.",
            rows: (!payments.is_empty())
                .then(|| table("Payments", &["Received", "Invoice", "Contact", "Amount", "Method", "Reference"], rows)),
        }))
        @let older = next.map(|next| next.to_string());
        @let older = older.as_deref().map(|next| ("before", next));
        (filters::pages(cx, "/payments", &FILTERS, before.is_some(), older))
    };
    Ok(layout::page(cx, Some(tenant), "Payments", &content))
}

/// Looks up the names of the contacts of payments.
async fn names_of_contacts(
    svc: &Svc,
    tenant: TenantId,
    payments: &[BookedPayment],
) -> Result<BTreeMap<ContactId, String>, Error> {
    svc.account(tenant).contacts().names(payments.iter().filter_map(|payment| payment.contact_id).collect()).await
}

/// Returns the payments of a period as a CSV file, the newest first.
async fn csv_file(cx: &Context<'_>, tenant: &Tenant, times: Range<Timestamp>) -> Result<PageResponse, PageError> {
    let headings = [
        "id",
        "paid_at",
        "date",
        "invoice_number",
        "invoice_id",
        "contact",
        "is_refund",
        "currency",
        "amount",
        "method",
        "reference",
    ];
    let (svc, zone, tenant) = (cx.svc.clone(), tenant.time_zone.clone(), tenant.id);
    csv::respond("payments", &headings, MEMORY, times, move |times: Range<Timestamp>| {
        let (svc, zone) = (svc.clone(), zone.clone());
        async move {
            let (payments, next) = svc.account(tenant).invoices().booked_payments(times.clone(), PAGE).await?;
            let names = names_of_contacts(&svc, tenant, &payments).await?;
            let mut rows = csv::Rows::default();
            for payment in &payments {
                rows.add(cells(payment, &zone, &names));
            }
            Ok((rows, next.map(|end| times.start..end)))
        }
    })
    .await
}

/// Returns the cells of a payment. The amount of a refund is negative, so that a sum of the column is what came in.
fn cells(payment: &BookedPayment, zone: &TimeZone, names: &BTreeMap<ContactId, String>) -> [String; 11] {
    let sign = if payment.is_refund { "-" } else { "" };
    [
        payment.id.to_string(),
        payment.paid_at.to_string(),
        zone.date_at(payment.paid_at).to_string(),
        payment.invoice_number.clone(),
        payment.invoice_id.to_string(),
        payment.contact_id.and_then(|id| names.get(&id).cloned()).unwrap_or_default(),
        payment.is_refund.to_string(),
        payment.currency.to_string(),
        format!("{sign}{}", payment.amount),
        payment.method.as_ref().map(ToString::to_string).unwrap_or_default(),
        payment.reference.as_ref().map(ToString::to_string).unwrap_or_default(),
    ]
}
