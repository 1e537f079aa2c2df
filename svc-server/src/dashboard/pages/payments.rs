//! The payments and refunds of an account, for its books.

use svc_core::resources::invoices::BookedPayment;
use svc_core::values::Timestamp;

use super::filters;
use super::kinds::{CONTACTS, INVOICES};
use super::records::{names_of, short};
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
    let contacts: Vec<String> = payments.iter().filter_map(|p| p.contact_id.map(|id| id.to_string())).collect();
    let names = names_of(&cx.svc, tenant.id, contacts.iter().map(String::as_str)).await?;
    let rows = html! {
        @for payment in &payments {
            tr {
                th scope="row" { (exact_time(&tenant.time_zone, payment.paid_at)) }
                td { a href=(cx.url(&INVOICES.path(payment.invoice_id))) { (payment.invoice_number) } }
                td {
                    @if let Some(id) = payment.contact_id {
                        a href=(cx.url(&CONTACTS.path(id))) { (short(names.get(&id.to_string()).unwrap_or("deleted"))) }
                    }
                }
                td.number { @if payment.is_refund { "−" } (payment.amount.in_currency(payment.currency)) }
                td { @if payment.is_refund { (badge(Tone::Warn, "refund")) " " } (payment.method.as_ref().map_or("", |m| m.as_str())) }
                td { (payment.reference.as_ref().map_or("", |r| r.as_str())) }
            }
        }
    };
    let is_filtered = before.is_some() || !cx.query.encoded(&FILTERS).is_empty();
    let content = html! {
        (heading("Payments", "What was paid on invoices, and what was refunded.", html! {}))
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

/// Returns the payments of a period as a CSV file, the newest first.
async fn csv_file(
    cx: &Context<'_>,
    tenant: &Tenant,
    times: std::ops::Range<Timestamp>,
) -> Result<PageResponse, PageError> {
    let headings = [
        "id",
        "paid_at",
        "invoice_number",
        "invoice_id",
        "contact",
        "is_refund",
        "currency",
        "amount",
        "method",
        "reference",
    ];
    let (svc, tenant) = (cx.svc.clone(), tenant.id);
    csv::respond("payments", &headings, MEMORY, times, move |times: std::ops::Range<Timestamp>| {
        let svc = svc.clone();
        async move {
            let (payments, next) = svc.account(tenant).invoices().booked_payments(times.clone(), PAGE).await?;
            let contacts: Vec<String> = payments.iter().filter_map(|p| p.contact_id.map(|id| id.to_string())).collect();
            let names = names_of(&svc, tenant, contacts.iter().map(String::as_str)).await?;
            let mut rows = csv::Rows::default();
            for payment in &payments {
                rows.add(cells(payment, |id| names.get(id).unwrap_or_default().to_owned()));
            }
            Ok((rows, next.map(|end| times.start..end)))
        }
    })
    .await
}

fn cells(payment: &BookedPayment, name: impl Fn(&str) -> String) -> [String; 10] {
    [
        payment.id.to_string(),
        payment.paid_at.to_string(),
        payment.invoice_number.clone(),
        payment.invoice_id.to_string(),
        payment.contact_id.map(|id| name(&id.to_string())).unwrap_or_default(),
        payment.is_refund.to_string(),
        payment.currency.to_string(),
        payment.amount.to_string(),
        payment.method.as_ref().map(ToString::to_string).unwrap_or_default(),
        payment.reference.as_ref().map(ToString::to_string).unwrap_or_default(),
    ]
}
