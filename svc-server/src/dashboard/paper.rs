//! An invoice or a quote as a page to print and to send: without navigation, on A4 and Letter.

use maud::{Markup, html};
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{Invoice, InvoiceStatus};
use svc_core::resources::quotes::{Quote, QuoteStatus};
use svc_core::shared_documents::{Document, SharedDocument};
use svc_core::values::{Amount, Date};

use super::components::{day, facts, isolated};
use super::layout;
use super::page_response::PageResponse;
use super::site::Site;

/// Returns the page of a document. `actions` is above it, and is not printed.
pub(super) fn page(site: &Site, shown: &SharedDocument, actions: &Markup) -> PageResponse {
    let tenant = &shown.tenant;
    let (kind, number, to) = match &shown.document {
        Document::Invoice(invoice) => ("Invoice", &invoice.invoice_number, "Bill to"),
        Document::Quote(quote) => ("Quote", &quote.quote_number, "For"),
    };
    let content = html! {
        main.paper id="main" {
            div.unprinted { (actions) }
            article.card {
                header {
                    div {
                        h1 { (kind) " " (number) }
                        (state(shown))
                    }
                    address {
                        strong { (tenant.name) }
                        @if let Some(address) = &tenant.address { span.lines { (address.as_str()) } }
                        @if let Some(tax_number) = &tenant.tax_number { span { (tax_number.as_str()) } }
                    }
                }
                @if let Some(contact) = &shown.contact { (customer(to, contact)) }
                @match &shown.document {
                    Document::Invoice(invoice) => {
                        (invoice_facts(invoice))
                        @if let Some(details) = tenant.payment_details.as_ref().filter(|_| left_to_pay(invoice) > 0) {
                            section {
                                h2 { "How to pay" }
                                p.lines { (details.as_str()) }
                                p { "Reference: " (invoice.invoice_number) }
                            }
                        }
                    }
                    Document::Quote(quote) => { (quote_facts(quote)) }
                }
            }
        }
    };
    PageResponse::page(layout::paper(site, &format!("{kind} {number} · {}", tenant.name), &content))
}

/// Returns a page with a sentence in place of a document.
pub(super) fn notice(site: &Site, title: &str, text: &str) -> PageResponse {
    let content = html! {
        main.alone id="main" { div.card { h1 { (title) } p { (text) } } }
    };
    PageResponse::page(layout::paper(site, title, &content))
}

/// Returns the customer below a heading, line by line.
fn customer(heading: &str, contact: &Contact) -> Markup {
    let name = contact.display_name();
    let line = |text: Option<&str>| text.filter(|text| *text != name).map(str::to_owned);
    let place = [&contact.city, &contact.state].into_iter().flatten().map(|text| text.as_str());
    let place = place.chain(contact.postcode.as_ref().map(|text| text.as_str())).collect::<Vec<_>>().join(" ");
    let lines = [
        line(contact.company_name.as_ref().map(|text| text.as_str())),
        line(Some(place.as_str()).filter(|place| !place.is_empty())),
        line(contact.email.as_ref().map(|email| email.as_str())),
    ];
    html! {
        section {
            h2 { (heading) }
            address {
                strong { (isolated(&name)) }
                @for text in lines.into_iter().flatten() { span { (isolated(&text)) } }
            }
        }
    }
}

fn invoice_facts(invoice: &Invoice) -> Markup {
    let money = |amount: Amount| html! { span.fixed { (amount.in_currency(invoice.currency)) } };
    let mut rows = days(&[("Issued", invoice.issue_date), ("Due", invoice.due_date)]);
    rows.push(("Total", money(invoice.total)));
    // What is missing of a paid invoice was paid and refunded.
    let refunded = match invoice.status {
        InvoiceStatus::Paid => invoice.total.minor() - invoice.amount_paid.minor(),
        _ => 0,
    };
    if refunded > 0 {
        rows.push(("Paid", money(invoice.total)));
        rows.push(("Refunded", money(Amount::from_minor(refunded, invoice.currency.scale()))));
    } else if invoice.amount_paid.minor() > 0 {
        rows.push(("Paid", money(invoice.amount_paid)));
    }
    rows.push((
        "Amount due",
        html! { strong { (money(Amount::from_minor(left_to_pay(invoice), invoice.currency.scale()))) } },
    ));
    facts(&rows)
}

/// Returns how much the customer has yet to pay, in the smallest unit of the currency.
fn left_to_pay(invoice: &Invoice) -> i64 {
    match invoice.status {
        InvoiceStatus::Cancelled | InvoiceStatus::Paid => 0,
        _ => invoice.total.minor() - invoice.amount_paid.minor(),
    }
}

fn quote_facts(quote: &Quote) -> Markup {
    let mut rows = days(&[("Issued", quote.issue_date), ("Valid until", quote.valid_until)]);
    rows.push(("Total", html! { strong { span.fixed { (quote.total.in_currency(quote.currency)) } } }));
    facts(&rows)
}

/// Returns those of the days that there are, in the calendar of the account.
fn days(days: &[(&'static str, Option<Date>)]) -> Vec<(&'static str, Markup)> {
    let known = days.iter().filter_map(|(name, date)| date.map(|date| (*name, day(date))));
    known.collect()
}

/// Says how the document stands, where the customer has to know it.
fn state(shown: &SharedDocument) -> Markup {
    let (good, bad) = ("banner good", "banner bad");
    let said = match &shown.document {
        Document::Invoice(invoice) => match invoice.status {
            InvoiceStatus::Draft => Some(("", "A draft. It was not sent yet.".to_owned())),
            InvoiceStatus::Paid => Some((good, "Paid. Thank you.".to_owned())),
            InvoiceStatus::Cancelled => Some(("", "Cancelled. Nothing is to be paid.".to_owned())),
            InvoiceStatus::Overdue => Some((bad, "Overdue.".to_owned())),
            InvoiceStatus::Sent | InvoiceStatus::Viewed | InvoiceStatus::Partial => None,
        },
        Document::Quote(quote) => match quote.status {
            QuoteStatus::Draft => Some(("", "A draft. It was not sent yet.".to_owned())),
            QuoteStatus::Accepted | QuoteStatus::Converted => Some((good, "Accepted. Thank you.".to_owned())),
            QuoteStatus::Declined => Some(("", "Declined.".to_owned())),
            QuoteStatus::Expired => Some((bad, "Expired. Ask for a new quote.".to_owned())),
            QuoteStatus::Sent | QuoteStatus::Viewed => quote
                .valid_until
                .filter(|_| shown.has_expired())
                .map(|day| (bad, format!("Expired. It was valid until {}. Ask for a new quote.", day.in_words()))),
        },
    };
    html! {
        @if let Some((class, text)) = said { p class=[(!class.is_empty()).then_some(class)] { (text) } }
        @if shown.tenant.is_sandbox() { p { "A trial from a sandbox. Nothing of it counts." } }
    }
}
