//! From a quote to its job, and from a job to its invoice.

use futures_util::FutureExt as _;
use serde_json::json;
use svc_core::prelude::*;
use svc_core::resources::conversions::{JobInvoicing, QuoteConversion};

use super::{Rules, refusal};

impl Rules {
    fn convert(&self, quote: QuoteId) -> Result<Job, Error> {
        let conversion = QuoteConversion::default();
        self.account().quotes().convert(quote, conversion).now_or_never().unwrap()
    }

    fn invoice_job(&self, job: JobId, total: Option<&str>) -> Result<Invoice, Error> {
        let total = total.map(|total| total.parse().unwrap());
        let invoicing = JobInvoicing { total, ..JobInvoicing::default() };
        self.account().jobs().invoice(job, invoicing).now_or_never().unwrap()
    }

    fn quote_in(&self, status: &str, total: &str, currency: &str) -> Quote {
        let contact = self.fixture.contact(&format!("{status}{total}@example.com")).now_or_never().unwrap().id;
        let body = json!({ "contact_id": contact, "total": total.parse::<f64>().unwrap(), "currency": currency });
        let quote: Quote = self.create(body).unwrap();
        let quote = self.update(quote.id, json!({ "status": status })).unwrap();
        self.new_events();
        quote
    }
}

#[test]
fn a_quote_becomes_a_job_and_the_job_an_invoice() {
    let rules = Rules::new();
    let quote = rules.quote_in("sent", "480", "NZD");
    let job = rules.convert(quote.id).unwrap();
    assert_eq!(rules.new_kinds(), "quote.accepted quote.updated job.created quote.updated");
    assert_eq!((job.title.as_str(), job.status), ("Work for QUO-0001", JobStatus::Quoted));
    assert_eq!((job.contact_id, job.quote_id, job.invoice_id), (quote.contact_id, Some(quote.id), None));
    assert_eq!(job.estimated_total.unwrap().to_string(), "480");
    assert_eq!(rules.get(job.id), Ok(job.clone()));
    assert_eq!(rules.get(quote.id).unwrap().status, QuoteStatus::Converted);

    let priced: Job = rules.update(job.id, json!({ "actual_total": 512.5 })).unwrap();
    rules.new_events();
    let invoice = rules.invoice_job(job.id, None).unwrap();
    assert_eq!(rules.new_kinds(), "invoice.created job.updated");
    let shown = (invoice.total.in_currency(invoice.currency), invoice.contact_id, invoice.status);
    assert_eq!(shown, ("NZD 512.50".to_owned(), quote.contact_id, InvoiceStatus::Draft), "the currency of the quote");
    let job = rules.get(job.id).unwrap();
    assert_eq!((job.status, job.invoice_id), (JobStatus::Invoiced, Some(invoice.id)));
    assert!(job.updated_at > priced.updated_at);
}

#[test]
fn the_settings_of_the_account_say_when_an_invoice_without_a_due_date_is_due() {
    let rules = Rules::new();
    let due = |invoice: &Invoice| invoice.due_date.map(|date| date.to_string());
    let contact = rules.contact();
    let job = || -> Job {
        let job: Job = rules.create(json!({ "title": "New pump", "contact_id": contact })).unwrap();
        rules.update(job.id, json!({ "actual_total": 512.5 })).unwrap()
    };
    assert_eq!(due(&rules.invoice_job(job().id, None).unwrap()), None);
    let set = |days| {
        let change = move |tenant: &mut Tenant| tenant.days_until_due = days;
        rules.account().change_settings(change).now_or_never().unwrap().unwrap();
    };
    set(Some(14));
    assert_eq!(due(&rules.invoice_job(job().id, None).unwrap()).as_deref(), Some("2026-03-28"));
    let issued = json!({ "total": 1, "issue_date": "2026-02-20" });
    assert_eq!(due(&rules.invoice(issued).unwrap()).as_deref(), Some("2026-03-06"));
    let given = json!({ "total": 1, "due_date": "2026-05-01" });
    assert_eq!(due(&rules.invoice(given).unwrap()).as_deref(), Some("2026-05-01"));
    set(Some(0));
    assert_eq!(due(&rules.invoice(json!({ "total": 1, "due_date": null })).unwrap()).as_deref(), Some("2026-03-14"));
    let last = json!({ "total": 1, "issue_date": "9999-12-31" });
    set(Some(365));
    assert_eq!(due(&rules.invoice(last).unwrap()).as_deref(), Some("9999-12-31"));
}

#[test]
fn a_record_is_converted_once() {
    let rules = Rules::new();
    let quote = rules.quote_in("accepted", "480", "AUD");
    let job = rules.convert(quote.id).unwrap();
    assert_eq!(rules.new_kinds(), "job.created quote.updated", "it was accepted before");
    let again = Error::AlreadyConverted {
        reason: "QUO-0001 has the job JOB-0001 already.".to_owned(),
        existing_id: job.id.uuid(),
    };
    assert_eq!(rules.convert(quote.id), Err(again.clone()));
    // Neither another status nor many newer jobs of the contact hide the first one.
    let _: Quote = rules.update(quote.id, json!({ "status": "sent" })).unwrap();
    for n in 0..205 {
        let _: Job = rules.create(json!({ "title": format!("Job {n}"), "contact_id": quote.contact_id })).unwrap();
    }
    rules.new_events();
    assert_eq!(rules.convert(quote.id), Err(again.clone()));
    assert_eq!((again.code(), again.existing_id()), ("not_allowed", Some(job.id.uuid())));

    let invoice = rules.invoice_job(job.id, None).unwrap();
    let again = Error::AlreadyConverted {
        reason: "JOB-0001 has the invoice INV-0001 already.".to_owned(),
        existing_id: invoice.id.uuid(),
    };
    rules.new_events();
    assert_eq!(rules.invoice_job(job.id, Some("5")), Err(again));
    assert_eq!(rules.new_kinds(), "", "what is refused fires nothing");
}

#[test]
fn what_cannot_be_converted_is_refused() {
    let rules = Rules::new();
    for status in ["draft", "declined", "expired", "converted"] {
        let quote = rules.quote_in(status, "20", "AUD");
        let reason = format!("{} is {status}; only an accepted quote becomes a job.", quote.quote_number);
        assert_eq!(rules.convert(quote.id), Err(Error::NotAllowed(reason)));
    }
    let job: Job = rules.create(json!({ "title": "Gutters" })).unwrap();
    assert_eq!(refusal(rules.invoice_job(job.id, None)), "total required");
    let _: Job = rules.update(job.id, json!({ "status": "cancelled" })).unwrap();
    let reason = format!("{} is cancelled; it cannot be invoiced.", job.job_number);
    assert_eq!(rules.invoice_job(job.id, Some("5")), Err(Error::NotAllowed(reason)));
    assert_eq!(rules.convert(QuoteId::new(job.id.uuid())), Err(Error::NotFound));
}

/// A job has two decimals: of a dinar, whose thousandths are too fine, it has no estimate. The invoice has to be given one.
#[test]
fn a_total_that_a_job_cannot_hold_is_no_estimate() {
    let rules = Rules::new();
    let quote = rules.quote_in("accepted", "12.345", "KWD");
    let job = rules.convert(quote.id).unwrap();
    assert_eq!(job.estimated_total, None);
    let invoice = rules.invoice_job(job.id, Some("12.345")).unwrap();
    assert_eq!(invoice.total.in_currency(invoice.currency), "KWD 12.345");
}
