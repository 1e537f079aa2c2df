//! What wants attention today: what customers owe, what was paid, who comes, and what waits.

use futures_util::FutureExt as _;
use serde_json::json;
use svc_core::prelude::*;
use svc_core::today::Today;

use super::Rules;

impl Rules {
    fn today(&self) -> Today {
        self.account().today().now_or_never().unwrap().unwrap()
    }

    fn sent_invoice(&self, total: &str, currency: &str, due: Option<&str>) -> InvoiceId {
        let invoices = self.account().invoices();
        let create = InvoiceCreate {
            currency: Currency::parse(currency).ok(),
            due_date: due.map(|due| Date::parse(due).unwrap()),
            ..InvoiceCreate::new(total.parse().unwrap())
        };
        let send = async {
            let id = invoices.create(create).await?.id;
            invoices.send(id).await
        };
        send.now_or_never().unwrap().unwrap().id
    }

    fn pay_part(&self, invoice: InvoiceId, amount: &str) {
        self.account().invoices().pay_part(invoice, amount.parse().unwrap()).now_or_never().unwrap().unwrap();
    }
}

/// Returns what was paid this month, for people.
fn paid(rules: &Rules) -> Vec<String> {
    rules.today().paid().iter().map(|(currency, amount)| amount.in_currency(*currency)).collect()
}

/// The clock of these tests shows 2026-03-14T15:09:26Z, which is 15 March, 02:09, in Sydney.
#[test]
fn what_customers_owe_is_told_by_currency_and_age() {
    let rules = Rules::in_zone("Australia/Sydney", "AUD");
    for (total, currency, due) in [
        ("1", "AUD", None),
        ("2", "AUD", Some("2026-03-15")),
        ("4", "AUD", Some("2026-03-14")),
        ("8", "AUD", Some("2026-02-13")),
        ("16", "AUD", Some("2026-02-12")),
        ("32", "AUD", Some("2026-01-14")),
        ("64", "AUD", Some("2026-01-13")),
        ("500", "JPY", Some("2026-03-01")),
    ] {
        rules.sent_invoice(total, currency, due);
    }
    let partly = rules.sent_invoice("128", "AUD", None);
    rules.pay_part(partly, "28");
    let paid = rules.sent_invoice("9", "AUD", Some("2026-01-01"));
    rules.pay_part(paid, "9");
    let _: Job = rules.create(json!({ "title": "no invoice" })).unwrap();

    let today = rules.today();
    assert_eq!(today.date.to_string(), "2026-03-15");
    let shown: Vec<String> = today
        .receivables()
        .iter()
        .map(|owed| {
            let ages = [owed.not_due, owed.overdue_to_30, owed.overdue_to_60, owed.overdue_longer, owed.total()];
            format!("{} {}", owed.currency, ages.map(|amount| amount.to_string()).join(" "))
        })
        .collect();
    assert_eq!(shown, ["AUD 103 12 48 64 227", "JPY 0 500 0 0 500"]);
    assert_eq!(today.unpaid.len(), 9, "a draft and a paid invoice are owed by nobody");
}

#[test]
fn payments_count_from_the_first_of_the_month_in_the_zone_of_the_account() {
    // 1 March, 00:30, in Sydney, is the last day of February in UTC.
    let rules = Rules::in_zone_at("Australia/Sydney", "AUD", "2026-02-28T12:30:00Z");
    let invoice = rules.sent_invoice("100", "AUD", None);
    rules.pay_part(invoice, "10");
    assert_eq!(paid(&rules), ["AUD 10.00"], "it is still February");
    rules.clock.advance(std::time::Duration::from_secs(60 * 60));
    rules.pay_part(invoice, "30");
    rules.account().invoices().refund_part(invoice, "5".parse().unwrap()).now_or_never().unwrap().unwrap();
    assert_eq!(paid(&rules), ["AUD 25.00"]);
    let payments = rules.today().payments;
    let shown: Vec<_> = payments.iter().map(|payment| (payment.is_refund, payment.amount.to_string())).collect();
    assert_eq!(shown, [(true, "5".to_owned()), (false, "30".to_owned())]);
    assert_eq!(payments[0].invoice_number, "INV-0001");
    // In April more goes back than comes in.
    rules.clock.advance(std::time::Duration::from_secs(32 * 24 * 60 * 60));
    rules.account().invoices().refund_part(invoice, "7".parse().unwrap()).now_or_never().unwrap().unwrap();
    assert_eq!(paid(&rules), ["AUD -7.00"]);
}

#[test]
fn work_that_waits_is_listed_until_it_is_done() {
    let rules = Rules::in_zone("Australia/Sydney", "AUD");
    let contact = rules.contact();
    for (start, status) in [
        ("2026-03-14T12:59:00Z", "confirmed"),
        ("2026-03-14T13:00:00Z", "confirmed"),
        ("2026-03-15T12:59:00Z", "confirmed"),
        ("2026-03-15T13:00:00Z", "confirmed"),
        ("2026-03-15T14:00:00Z", "cancelled"),
        ("2026-03-16T13:00:00Z", "confirmed"),
    ] {
        let booking: Booking =
            rules.create(json!({ "contact_id": contact, "service_name": "Visit", "start_time": start })).unwrap();
        if status == "cancelled" {
            let _: Booking = rules.update(booking.id, json!({ "status": status })).unwrap();
        }
    }
    for (valid_until, status) in [
        ("2026-03-14", "sent"),
        ("2026-03-15", "sent"),
        ("2026-03-22", "viewed"),
        ("2026-03-23", "sent"),
        ("2026-03-16", "accepted"),
        ("2026-03-16", "draft"),
    ] {
        let body = json!({ "contact_id": contact, "total": 1, "valid_until": valid_until });
        let quote: Quote = rules.create(body).unwrap();
        let _: Quote = rules.update(quote.id, json!({ "status": status })).unwrap();
    }
    let job: Job = rules.create(json!({ "title": "Gutters", "status": "completed", "estimated_total": 90 })).unwrap();
    let _: Job = rules.create(json!({ "title": "Roof" })).unwrap();

    let today = rules.today();
    let starts: Vec<String> = today.bookings.iter().map(|booking| booking.start_time.to_string()).collect();
    assert_eq!(starts, ["2026-03-14T13:00:00.000000Z", "2026-03-15T12:59:00.000000Z", "2026-03-15T13:00:00.000000Z"]);
    assert_eq!(today.bookings.iter().filter(|booking| booking.start_time < today.tomorrow).count(), 2);
    let expiring: Vec<&str> = today.expiring.iter().map(|quote| quote.quote_number.as_str()).collect();
    assert_eq!(expiring, ["QUO-0002", "QUO-0003"]);
    let accepted: Vec<&str> = today.accepted.iter().map(|quote| quote.quote_number.as_str()).collect();
    assert_eq!(accepted, ["QUO-0005"]);
    assert_eq!(today.uninvoiced.iter().map(|job| job.title.as_str()).collect::<Vec<_>>(), ["Gutters"]);
    assert!(!today.is_cut);

    rules.account().jobs().invoice(job.id, JobInvoicing::default()).now_or_never().unwrap().unwrap();
    let conversion = QuoteConversion::default();
    rules.account().quotes().convert(today.accepted[0].id, conversion).now_or_never().unwrap().unwrap();
    assert_eq!((rules.today().uninvoiced, rules.today().accepted), (vec![], vec![]));
}
