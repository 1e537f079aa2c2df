//! The first page of an account: what its owner wants to know in the morning.

use svc_core::calendar::Entry;
use svc_core::today::{EXPIRES_WITHIN_DAYS, MAX_READ, Receivable, Today};
use svc_core::values::{Amount, Currency, Date};

use super::calendar::{self, days::days};
use super::kinds::{CONTACTS, INVOICES, of_records};
use super::record_actions::new_menu;
use super::records::{names_of, short};
use super::traffic::{first_steps_if_new, overview_tabs};
use crate::dashboard::prelude::*;

/// The memory in which the overview is made, in records, with the calendar of two days.
pub(crate) const MEMORY: u32 = 128 + calendar::MEMORY;

/// The most entries of a day and overdue invoices that are listed.
const LISTED: usize = 8;

/// Shows what wants attention today.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let today = cx.svc.account(tenant.id).today().await?;
    let (receivables, paid) = (today.receivables(), today.paid());
    let overdue: Vec<(Currency, Amount)> = amounts(&receivables, Receivable::overdue);
    let is_overdue = overdue.iter().any(|(_, amount)| amount.minor() > 0);
    let month = today.date.first_of_month();
    let content = html! {
        (heading("Overview", &format!("{}.", long_date(today.date)), new_menu(cx, "", "primary")))
        (overview_tabs(cx))
        (first_steps_if_new(cx, tenant).await?)
        div.figures.money {
            (linked_figure(&cx.url("/invoices?show=outstanding"), "Outstanding", &sums(tenant, &amounts(&receivables, Receivable::total)), Tone::Neutral,
                &count(today.unpaid.len(), "invoice", "invoices")))
            (linked_figure(&cx.url("/invoices?show=overdue"), "Overdue", &sums(tenant, &overdue), if is_overdue { Tone::Bad } else { Tone::Neutral },
                &count(today.overdue().count(), "invoice", "invoices")))
            (linked_figure(&cx.url(&format!("/payments?since={month}")), "Paid this month", &sums(tenant, &paid), Tone::Neutral,
                "less refunds"))
        }
        div.figures {
            (work_figure(cx, "/jobs?show=uninvoiced", today.uninvoiced.len(), Tone::Warn, "Jobs to invoice",
                "completed, without an invoice"))
            (work_figure(cx, "/quotes?show=accepted", today.accepted.len(), Tone::Warn, "Quotes accepted", "without a job yet"))
            (work_figure(cx, "/quotes?show=expiring", today.expiring.len(), Tone::Warn, "Quotes that expire",
                &format!("within {EXPIRES_WITHIN_DAYS} days, and not decided")))
            (work_figure(cx, "/bookings?show=today&status=confirmed", today.bookings_today().count(), Tone::Neutral,
                "Bookings today", "confirmed"))
            (work_figure(cx, "/bookings?show=tomorrow&status=confirmed", today.bookings_tomorrow().count(), Tone::Neutral,
                "Bookings tomorrow", "confirmed"))
        }
        (next_days(cx, tenant, today.date).await?)
        (overdue_invoices(cx, tenant, &today).await?)
        @if today.is_cut {
            p.hint { "Of each status, of payments and of bookings, " (number(MAX_READ as u64)) " count at most." }
        }
        @if !receivables.is_empty() { (section("Outstanding by age", ages(&receivables))) }
    };
    Ok(layout::page(cx, Some(tenant), "Overview", &content))
}

/// Returns the bookings and jobs of today and tomorrow that are not over, if there are any.
async fn next_days(cx: &Context<'_>, tenant: &Tenant, today: Date) -> Result<Markup, PageError> {
    let (zone, end) = (&tenant.time_zone, today.plus_days(2));
    let read = cx.svc.account(tenant.id).calendar(zone.date_begins(today)..zone.date_begins(end)).await?;
    let ahead: Vec<Entry> = read.entries.into_iter().filter(|entry| !entry.is_over(zone, cx.now)).collect();
    let mut days = days(&ahead, zone, today, end);
    days.retain(|day| day.in_order().next().is_some());
    let listed = days.iter().flat_map(|day| day.in_order().take(LISTED));
    let contacts: Vec<String> = listed.filter_map(|entry| entry.contact_id).map(|id| id.to_string()).collect();
    let names = names_of(&cx.svc, tenant.id, contacts.iter().map(String::as_str)).await?;
    Ok(html! {
        @if !days.is_empty() {
            div.today { (section("Today and tomorrow", html! {
                @for day in &days {
                    @let more = day.in_order().count().saturating_sub(LISTED);
                    h3 { a href=(cx.url(&format!("/calendar?view=day&date={}", day.date))) { (long_date(day.date)) } }
                    ul.entries {
                        @for entry in day.in_order().take(LISTED) {
                            @let kind = of_records(entry.kind);
                            @let contact = entry.contact_id.map(|id| id.to_string());
                            li {
                                a class=(kind.one) href=(cx.url(&kind.path(entry.id))) {
                                    span.time { (day.time_of(entry, zone)) } " " span { (short(&entry.title)) }
                                }
                                @if let Some(name) = contact.as_deref().and_then(|id| names.get(id)) {
                                    span.soft { (isolated(&short(name))) }
                                }
                            }
                        }
                        @if more > 0 { li { "And " (number(more as u64)) " more." } }
                    }
                }
                @if read.is_cut { p.hint { "There are more entries than are read." } }
            })) }
        }
    })
}

/// Returns the invoices that have been overdue for longest, if there are any.
async fn overdue_invoices(cx: &Context<'_>, tenant: &Tenant, today: &Today) -> Result<Markup, PageError> {
    let mut overdue: Vec<_> = today.overdue().collect();
    overdue.sort_by_key(|invoice| invoice.due_date);
    overdue.truncate(LISTED);
    let contacts: Vec<String> = overdue.iter().filter_map(|i| i.contact_id).map(|id| id.to_string()).collect();
    let names = names_of(&cx.svc, tenant.id, contacts.iter().map(String::as_str)).await?;
    Ok(html! {
        @if !overdue.is_empty() {
            (section("Overdue", table("Overdue invoices", &["Invoice", "Contact", "Left to pay", "Days overdue"], html! {
                @for invoice in overdue {
                    @let contact = invoice.contact_id.map(|id| id.to_string());
                    tr {
                        th scope="row" { a href=(cx.url(&INVOICES.path(invoice.id))) { (invoice.invoice_number) } }
                        td.plain {
                            @if let Some((id, name)) = contact.as_deref().and_then(|id| Some((id, names.get(id)?))) {
                                a href=(cx.url(&CONTACTS.path(id))) { (isolated(&short(name))) }
                            }
                        }
                        td.number { span.fixed { (invoice.outstanding().in_currency(invoice.currency)) } }
                        td.number.left { (number(today.days_overdue(invoice).unsigned_abs())) }
                    }
                }
            })))
        }
    })
}

/// Returns a number of things to do, in this tone if there are any.
fn work_figure(cx: &Context<'_>, list: &str, count: usize, tone: Tone, name: &str, note: &str) -> Markup {
    let tone = if count > 0 { tone } else { Tone::Neutral };
    linked_figure(&cx.url(list), name, &number(count as u64), tone, note)
}

fn amounts(receivables: &[Receivable], of: fn(&Receivable) -> Amount) -> Vec<(Currency, Amount)> {
    receivables.iter().map(|receivable| (receivable.currency, of(receivable))).collect()
}

/// Returns amounts in different currencies.
fn sums(tenant: &Tenant, amounts: &[(Currency, Amount)]) -> String {
    match amounts {
        [] => Amount::from_minor(0, tenant.currency.scale()).in_currency(tenant.currency),
        amounts => {
            let shown: Vec<String> = amounts.iter().map(|(currency, amount)| amount.in_currency(*currency)).collect();
            shown.join(" + ")
        }
    }
}

fn count(count: usize, one: &str, several: &str) -> String {
    format!("{} {}", number(count as u64), if count == 1 { one } else { several })
}

fn ages(receivables: &[Receivable]) -> Markup {
    let headings = ["Currency", "Not due", "Overdue to 30 days", "31 to 60 days", "Over 60 days", "All"];
    table(
        "Outstanding by age",
        &headings,
        html! {
            @for owed in receivables {
                tr {
                    th scope="row" { (owed.currency) }
                    @for amount in [owed.not_due, owed.overdue_to_30, owed.overdue_to_60, owed.overdue_longer, owed.total()] {
                        td.number { (amount.grouped()) }
                    }
                }
            }
        },
    )
}
