//! Invoices: every step from every status, and payments.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::ContactId;
use svc_core::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceId, InvoiceStatus};
use svc_core::store::Tx;
use svc_core::values::{Decimal, Id, TenantId};

use super::{Rules, json_of, refusal, time};

pub(crate) type Step = for<'t> fn(&'t mut dyn Tx, TenantId, InvoiceId) -> BoxFuture<'t, Result<Invoice, Error>>;

pub(crate) const SEND: Step = |tx, tenant, id| Box::pin(invoices::send(tx, tenant, id));
pub(crate) const VIEW: Step = |tx, tenant, id| Box::pin(invoices::view(tx, tenant, id));
pub(crate) const VOID: Step = |tx, tenant, id| Box::pin(invoices::void(tx, tenant, id));
pub(crate) const RESEND: Step = |tx, tenant, id| Box::pin(invoices::resend(tx, tenant, id));
pub(crate) const PAY: Step =
    |tx, tenant, id| Box::pin(invoices::pay(tx, tenant, id, invoices::PaymentCreate::default()));

impl Rules {
    pub(crate) fn invoice(&self, body: Value) -> Result<Invoice, Error> {
        let tenant = self.tenant;
        self.write((body, tenant), async |tx, (body, tenant)| {
            let input = InvoiceCreate::from_body(body.to_string().as_bytes());
            invoices::create(tx, *tenant, input?).await
        })
    }

    pub(crate) fn step(&self, step: Step, id: InvoiceId) -> Result<Invoice, Error> {
        let tenant = self.tenant;
        self.write((step, tenant, id), async |tx, &(step, tenant, id)| step(tx, tenant, id).await)
    }

    pub(crate) fn pay(&self, id: InvoiceId, amount: &str) -> Result<Invoice, Error> {
        let (tenant, amount) = (self.tenant, Decimal::parse(amount).unwrap());
        self.write((tenant, id, amount), async |tx, &(tenant, id, amount)| {
            invoices::pay(tx, tenant, id, invoices::PaymentCreate::of(amount)).await
        })
    }

    /// Returns an invoice of 100 in this status.
    pub(crate) fn invoice_in(&self, status: InvoiceStatus) -> Invoice {
        let invoice = self.invoice(json!({ "total": 100 })).unwrap();
        match status {
            InvoiceStatus::Partial => self.pay(invoice.id, "30").unwrap(),
            InvoiceStatus::Paid => self.step(PAY, invoice.id).unwrap(),
            status => {
                let invoice = Invoice { status, ..invoice };
                self.replace(invoice.clone());
                invoice
            }
        }
    }
}

#[test]
fn a_new_invoice_is_a_draft_issued_today() {
    let fixture = Rules::in_zone("Australia/Sydney", "JPY");
    let contact = fixture.contact();
    let invoice = fixture.invoice(json!({ "contact_id": contact, "total": 5, "due_date": "2026-04-01" })).unwrap();
    let now = "2026-03-14T15:09:26.535899Z";
    assert_eq!(
        json_of(&invoice),
        json!({
            "id": invoice.id, "invoice_number": "INV-0001", "contact_id": contact, "status": "draft",
            "issue_date": "2026-03-15", "due_date": "2026-04-01", "total": 5, "currency": "JPY", "paid_at": null,
            "created_at": now, "updated_at": now,
        })
    );
    assert_eq!(fixture.new_kinds(), "invoice.created");
    let other = fixture.invoice(json!({ "total": 1.5, "currency": "AUD", "issue_date": "2020-01-01" })).unwrap();
    assert_eq!((&*other.invoice_number, other.currency.code()), ("INV-0002", "AUD"));
    assert_eq!((other.issue_date.unwrap().to_string(), other.due_date), ("2020-01-01".to_owned(), None));

    assert_eq!(refusal(fixture.invoice(json!({ "total": 1.5 }))), "total out_of_range", "yen have no cents");
    assert_eq!(refusal(fixture.invoice(json!({ "total": 1, "contact_id": ContactId::nil() }))), "reference_not_found");
    assert_eq!(fixture.invoice(json!({ "total": 1 })).unwrap().invoice_number, "INV-0003");
}

#[test]
fn every_step_is_allowed_or_refused_in_every_status() {
    use InvoiceStatus::{Cancelled, Draft, Overdue, Paid, Partial, Sent, Viewed};
    let steps: [(Step, &str, &str); 5] = [
        (SEND, "sent", "invoice.sent invoice.updated"),
        (VIEW, "viewed", "invoice.updated"),
        (VOID, "voided", "invoice.voided invoice.updated"),
        (RESEND, "sent again", "invoice.resent"),
        (PAY, "paid", "invoice.paid invoice.updated payment.succeeded"),
    ];
    for (from, after) in [
        (Draft, [Some(Sent), None, Some(Cancelled), None, Some(Paid)]),
        (Sent, [None, Some(Viewed), Some(Cancelled), Some(Sent), Some(Paid)]),
        (Viewed, [None, None, Some(Cancelled), Some(Viewed), Some(Paid)]),
        (Partial, [None, None, None, Some(Partial), Some(Paid)]),
        (Paid, [None, None, None, Some(Paid), None]),
        (Overdue, [None, None, Some(Cancelled), Some(Overdue), Some(Paid)]),
        (Cancelled, [None; 5]),
    ] {
        for ((step, word, events), after) in steps.into_iter().zip(after) {
            let fixture = Rules::new();
            let before = fixture.invoice_in(from);
            assert_eq!(before.status, from);
            fixture.new_events();
            let result = fixture.step(step, before.id);
            let stored = fixture.get::<Invoice>(before.id).unwrap();
            let Some(after) = after else {
                let text = format!("INV-0001 is {from}; it cannot be {word}.");
                assert_eq!(result, Err(Error::NotAllowed(text)));
                assert_eq!((stored, fixture.new_kinds()), (before, String::new()));
                continue;
            };
            assert_eq!(result.unwrap(), stored, "{from} {word}");
            assert_eq!(stored.status, after, "{from} {word}");
            assert_eq!(fixture.new_kinds(), events, "{from} {word}");
            if word == "sent again" {
                assert_eq!(stored, before, "sending again changes nothing");
            } else {
                assert!(stored.updated_at > before.updated_at);
            }
        }
    }
}

#[test]
fn an_unknown_invoice_is_not_found() {
    let fixture = Rules::new();
    for step in [SEND, VIEW, VOID, RESEND, PAY] {
        assert_eq!(fixture.step(step, Id::nil()), Err(Error::NotFound));
    }
}

#[test]
fn an_invoice_can_be_paid_in_parts() {
    let fixture = Rules::new();
    let id = fixture.invoice(json!({ "total": 100 })).unwrap().id;
    fixture.step(SEND, id).unwrap();
    fixture.new_events();
    let part = fixture.pay(id, "30.30").unwrap();
    assert_eq!((part.status, part.paid_at), (InvoiceStatus::Partial, None));
    assert_eq!(part.amount_paid.to_string(), "30.3");
    assert_eq!(fixture.new_kinds(), "invoice.updated payment.succeeded");
    let part = fixture.pay(id, "0.01").unwrap();
    assert_eq!(part.amount_paid.to_string(), "30.31");
    fixture.new_events();

    for amount in ["0", "69.70", "100", "0.001", "1000000000000"] {
        assert_eq!(refusal(fixture.pay(id, amount)), "amount out_of_range", "{amount}");
    }
    let text = fixture.pay(id, "69.70").unwrap_err().to_string();
    assert_eq!(text, "amount must be more than 0 and at most 69.69, which is left to pay.");
    assert_eq!(fixture.get(id), Ok(part));
    assert_eq!(fixture.new_kinds(), "");

    fixture.clock.set(time("2026-04-01T00:00:00Z"));
    let paid = fixture.step(PAY, id).unwrap();
    assert_eq!((paid.status, paid.amount_paid), (InvoiceStatus::Paid, paid.total));
    assert_eq!((paid.paid_at, paid.updated_at), (Some(time("2026-04-01T00:00:00Z")), time("2026-04-01T00:00:00Z")));
    let events = fixture.new_events();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["invoice.paid", "invoice.updated", "payment.succeeded"]);
    assert_eq!(events[0].data.get(), serde_json::to_string(&paid).unwrap());
    assert_eq!(events[1].data.get(), events[0].data.get());
    let payment: Value = serde_json::from_str(events[2].data.get()).unwrap();
    let want = json!({
        "id": payment["id"], "invoice_id": id, "amount": 69.69, "currency": "AUD",
        "paid_at": "2026-04-01T00:00:00.000000Z",
    });
    assert_eq!(payment, want);
    assert_ne!(payment["id"], json!(id));
    assert_eq!(refusal(fixture.pay(id, "0.01")), "not_allowed");
}

#[test]
fn a_payment_of_the_exact_rest_completes_an_invoice() {
    let fixture = Rules::in_zone("UTC", "KWD");
    let id = fixture.invoice(json!({ "total": 0.005 })).unwrap().id;
    assert_eq!(fixture.pay(id, "0.002").unwrap().status, InvoiceStatus::Partial);
    let paid = fixture.pay(id, "0.003").unwrap();
    assert_eq!((paid.status, paid.amount_paid.to_string()), (InvoiceStatus::Paid, "0.005".to_owned()));
}

#[test]
fn an_invoice_of_zero_can_be_paid() {
    let fixture = Rules::new();
    let id = fixture.invoice(json!({ "total": 0 })).unwrap().id;
    assert_eq!(refusal(fixture.pay(id, "0.01")), "amount out_of_range");
    assert_eq!(fixture.step(PAY, id).unwrap().status, InvoiceStatus::Paid);
}
