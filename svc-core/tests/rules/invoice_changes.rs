//! Invoices: refunds, corrections, and becoming overdue.

use serde_json::{Value, json};
use svc_core::accounts::tenants;
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::ContactId;
use svc_core::resources::invoices::{
    self, Invoice, InvoiceId, InvoiceStatus, InvoiceUpdate, OVERDUE_STEP, OverduePosition,
};
use svc_core::resources::quotes::Quote;
use svc_core::values::{Currency, Date, Decimal, Id};

use super::imports::PLAIN;
use super::invoices::{PAY, SEND, VIEW, VOID};
use super::{Rules, refusal, time};

impl Rules {
    fn refund(&self, id: InvoiceId, amount: Option<&str>) -> Result<Invoice, Error> {
        let (tenant, amount) = (self.tenant, amount.map(|amount| Decimal::parse(amount).unwrap()));
        self.write((tenant, id, amount), async |tx, &(tenant, id, amount)| {
            invoices::refund(tx, tenant, id, invoices::PaymentCreate { amount, ..invoices::PaymentCreate::default() })
                .await
        })
    }

    fn correct(&self, id: InvoiceId, body: Value) -> Result<Invoice, Error> {
        let tenant = self.tenant;
        self.write((body, tenant, id), async |tx, (body, tenant, id)| {
            let change = InvoiceUpdate::from_body(body.to_string().as_bytes());
            invoices::update(tx, *tenant, *id, change?).await
        })
    }

    /// Runs the check for overdue invoices to its end, and returns the numbers of those that became overdue.
    fn overdue(&self) -> Vec<String> {
        let (tenant, mut position, mut numbers) = (self.tenant, Some(OverduePosition::default()), Vec::new());
        while let Some(from) = position {
            let (changed, next) = self
                .write((tenant, from), async |tx, &(tenant, from)| invoices::overdue(tx, tenant, from).await)
                .unwrap();
            assert!(changed.len() <= OVERDUE_STEP as usize);
            numbers.extend(changed.into_iter().map(|invoice| invoice.invoice_number));
            position = next;
        }
        numbers
    }
}

#[test]
fn a_paid_invoice_can_be_refunded_in_parts_or_in_full() {
    let fixture = Rules::new();
    let paid = fixture.invoice_in(InvoiceStatus::Paid);
    fixture.new_events();
    let part = fixture.refund(paid.id, Some("30.5")).unwrap();
    assert_eq!(
        (part.status, part.paid_at, part.amount_paid.to_string()),
        (paid.status, paid.paid_at, "69.5".to_owned())
    );
    let refunded = |invoice: &Invoice, amount: &str| {
        let events = fixture.new_events();
        let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["invoice.refunded", "invoice.updated"]);
        let record = serde_json::to_string(invoice).unwrap();
        let (fields, at) = (record.strip_suffix('}').unwrap(), invoice.updated_at);
        let refund = format!(r#"{fields},"refunded_amount":{amount},"refunded_at":"{at}"}}"#);
        assert_eq!([events[0].data.get(), events[1].data.get()], [&refund, &record]);
    };
    refunded(&part, "30.5");

    for amount in ["0", "69.51", "100", "0.001"] {
        assert_eq!(refusal(fixture.refund(paid.id, Some(amount))), "amount out_of_range", "{amount}");
    }
    let text = fixture.refund(paid.id, Some("70")).unwrap_err().to_string();
    assert_eq!(text, "amount must be more than 0 and at most 69.5, which was paid.");
    assert_eq!((fixture.get(paid.id), fixture.new_kinds()), (Ok(part), String::new()));

    let whole = fixture.refund(paid.id, None).unwrap();
    assert_eq!((whole.status, whole.paid_at, whole.amount_paid.minor()), (InvoiceStatus::Cancelled, paid.paid_at, 0));
    refunded(&whole, "69.5");
    let text = "INV-0001 is cancelled and holds no payment; it cannot be refunded.";
    assert_eq!(fixture.refund(paid.id, None), Err(Error::NotAllowed(text.to_owned())));
}

#[test]
fn a_partial_payment_can_be_refunded() {
    let fixture = Rules::new();
    let partial = fixture.invoice_in(InvoiceStatus::Partial);
    assert_eq!(fixture.refund(partial.id, Some("10")).unwrap().status, InvoiceStatus::Partial);
    assert_eq!(fixture.pay(partial.id, "80.01").map_err(|error| error.code()), Err("validation_failed"));
    assert_eq!(fixture.pay(partial.id, "80").unwrap().status, InvoiceStatus::Paid);

    let overdue = fixture.invoice_in(InvoiceStatus::Partial);
    fixture.replace(Invoice { status: InvoiceStatus::Overdue, ..overdue.clone() });
    assert_eq!(refusal(fixture.step(VOID, overdue.id)), "not_allowed", "something was paid");
    assert_eq!(
        fixture.refund(overdue.id, Some("30")).unwrap().status,
        InvoiceStatus::Cancelled,
        "the whole payment was refunded"
    );
}

#[test]
fn an_unpaid_invoice_cannot_be_refunded() {
    use InvoiceStatus::{Cancelled, Draft, Overdue, Sent, Viewed};
    for status in [Draft, Sent, Viewed, Overdue, Cancelled] {
        let fixture = Rules::new();
        let before = fixture.invoice_in(status);
        fixture.new_events();
        let text = format!("INV-0001 is {status} and holds no payment; it cannot be refunded.");
        assert_eq!(fixture.refund(before.id, None), Err(Error::NotAllowed(text)));
        assert_eq!((fixture.get(before.id), fixture.new_kinds()), (Ok(before), String::new()));
    }
    let fixture = Rules::new();
    let free = fixture.invoice(json!({ "total": 0 })).unwrap().id;
    fixture.step(PAY, free).unwrap();
    assert_eq!(refusal(fixture.refund(free, None)), "not_allowed");
    assert_eq!(fixture.refund(Id::nil(), None), Err(Error::NotFound));
}

#[test]
fn a_correction_changes_the_given_fields_only() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let draft = fixture.invoice(json!({ "total": 100 })).unwrap();
    fixture.new_events();
    let change = json!({ "contact_id": contact, "total": 5, "currency": "JPY", "issue_date": "2026-03-01", "due_date": "2026-04-01" });
    let want = Invoice {
        contact_id: Some(contact),
        total: svc_core::values::Amount::from_minor(5, 0),
        currency: Currency::parse("JPY").unwrap(),
        issue_date: Some(Date::parse("2026-03-01").unwrap()),
        due_date: Some(Date::parse("2026-04-01").unwrap()),
        amount_paid: svc_core::values::Amount::from_minor(0, 0),
        ..draft.clone()
    };
    let changed = fixture.correct(draft.id, change.clone()).unwrap();
    assert_eq!(changed, Invoice { updated_at: changed.updated_at, ..want });
    assert!(changed.updated_at > draft.updated_at);
    assert_eq!(fixture.new_kinds(), "invoice.updated");
    assert_eq!(fixture.correct(draft.id, change), Ok(changed.clone()), "repeating the correction has no effect");
    assert_eq!((fixture.get(draft.id), fixture.new_kinds()), (Ok(changed), String::new()));
    let cleared = fixture.correct(draft.id, json!({ "contact_id": null, "due_date": null })).unwrap();
    assert_eq!((cleared.contact_id, cleared.due_date), (None, None));

    for (change, want) in [
        (json!({}), "empty_patch"),
        (json!({ "total": 0.5 }), "total out_of_range"),
        (json!({ "total": null }), "total not_nullable"),
        (json!({ "status": "paid" }), "status read_only_field"),
        (json!({ "contact_id": ContactId::nil() }), "reference_not_found"),
    ] {
        assert_eq!(refusal(fixture.correct(draft.id, change.clone())), want, "{change}");
    }
    assert_eq!(fixture.correct(Id::nil(), json!({ "total": 1 })), Err(Error::NotFound));
}

#[test]
fn a_currency_that_has_ended_stays_on_its_records_and_is_on_no_new_ones() {
    let fixture = Rules::new();
    let kuna = Currency::from_stored("HRK").unwrap();
    let draft = Invoice { currency: kuna, ..fixture.invoice(json!({ "total": 100 })).unwrap() };
    fixture.replace(draft.clone());
    let changed = fixture.correct(draft.id, json!({ "total": 101, "due_date": "2026-04-01" })).unwrap();
    assert_eq!((changed.total.to_string(), changed.currency), ("101".to_owned(), kuna));
    assert_eq!(fixture.step(PAY, draft.id).unwrap().currency, kuna);

    let contact = fixture.contact();
    let named = json!({ "contact_id": contact, "total": 1, "currency": "HRK" });
    assert_eq!(refusal(fixture.correct(draft.id, json!({ "currency": "HRK" }))), "currency invalid_enum");
    assert_eq!(refusal(fixture.invoice(named.clone())), "currency invalid_enum");
    assert_eq!(refusal(fixture.create::<Quote>(named.clone())), "currency invalid_enum");
    assert_eq!(refusal(fixture.put::<Invoice>(named, 0, PLAIN)), "currency invalid_enum");

    // The currency of the account ends.
    let account = fixture.write(fixture.tenant, async |tx, &tenant| {
        tenants::update(tx, tenant.0, |account| account.currency = Currency::from_stored("HRK").unwrap()).await
    });
    assert_eq!(account.unwrap().currency, kuna);
    let unnamed = json!({ "contact_id": contact, "total": 1 });
    let refused = fixture.invoice(unnamed.clone()).unwrap_err();
    let Error::Validation(violations) = &refused else { panic!("{refused:?}") };
    assert_eq!(
        violations.as_slice()[0].message,
        "currency is required, as the currency of the account, HRK, was replaced by EUR in 2023"
    );
    assert_eq!(refusal(fixture.create::<Quote>(unnamed.clone())), "currency required");
    assert_eq!(refusal(fixture.put::<Invoice>(unnamed, 0, PLAIN)), "currency required");
    let euros = fixture.invoice(json!({ "total": 1, "currency": "EUR" })).unwrap();
    assert_eq!(euros.currency.code(), "EUR");
}

#[test]
fn the_currency_can_be_changed_for_unpaid_drafts_only() {
    let fixture = Rules::new();
    let draft = fixture.invoice(json!({ "total": 99.95 })).unwrap();
    assert_eq!(refusal(fixture.correct(draft.id, json!({ "currency": "JPY" }))), "total out_of_range", "no cents");
    let dinars = fixture.correct(draft.id, json!({ "currency": "KWD" })).unwrap();
    assert_eq!((dinars.total.to_string(), dinars.total.scale()), ("99.95".to_owned(), 3));

    use InvoiceStatus::{Overdue, Partial, Sent, Viewed};
    for status in [Sent, Viewed, Partial, Overdue] {
        let fixture = Rules::new();
        let id = fixture.invoice_in(status).id;
        let text = format!("INV-0001 is {status}; it cannot be given another currency.");
        assert_eq!(fixture.correct(id, json!({ "currency": "NZD" })), Err(Error::NotAllowed(text)));
        let same = fixture.correct(id, json!({ "currency": "AUD", "total": 101 })).unwrap();
        assert_eq!(same.total.to_string(), "101", "the present currency is not a change");
    }
    for status in [InvoiceStatus::Paid, InvoiceStatus::Cancelled] {
        let fixture = Rules::new();
        let id = fixture.invoice_in(status).id;
        let text = format!("INV-0001 is {status}; it cannot be updated.");
        assert_eq!(fixture.correct(id, json!({ "due_date": "2099-01-01" })), Err(Error::NotAllowed(text)));
    }
}

#[test]
fn the_total_cannot_be_less_than_the_amount_paid() {
    let fixture = Rules::new();
    let id = fixture.invoice_in(InvoiceStatus::Partial).id;
    fixture.new_events();
    let refused = fixture.correct(id, json!({ "total": 29.99 }));
    assert_eq!(refused.unwrap_err().to_string(), "total must be at least 30, which was paid.");
    assert_eq!(fixture.correct(id, json!({ "total": 30.01 })).unwrap().status, InvoiceStatus::Partial);
    assert_eq!(fixture.new_kinds(), "invoice.updated");
    let paid = fixture.correct(id, json!({ "total": 30 })).unwrap();
    assert_eq!((paid.status, paid.paid_at), (InvoiceStatus::Paid, Some(paid.updated_at)));
    assert_eq!(fixture.new_kinds(), "invoice.paid invoice.updated");
}

#[test]
fn an_invoice_due_before_today_becomes_overdue() {
    // In Sydney it is 2026-03-15.
    let fixture = Rules::in_zone("Australia/Sydney", "AUD");
    let due = |due: &str| fixture.invoice(json!({ "total": 100, "due_date": due })).unwrap().id;
    let ids: Vec<_> =
        ["2026-03-14", "2026-03-14", "2026-03-14", "2026-03-15", "2026-03-14", "2026-03-14"].map(due).into();
    let [sent, viewed, partial, today, draft, paid] = ids[..] else { unreachable!() };
    let never = fixture.invoice(json!({ "total": 100 })).unwrap().id;
    for id in [sent, viewed, today, never] {
        fixture.step(SEND, id).unwrap();
    }
    fixture.step(VIEW, viewed).unwrap();
    fixture.pay(partial, "40").unwrap();
    fixture.step(PAY, paid).unwrap();
    fixture.new_events();

    assert_eq!(fixture.overdue(), ["INV-0001", "INV-0002", "INV-0003"]);
    assert_eq!(fixture.new_kinds(), "invoice.updated invoice.updated invoice.updated");
    for (id, status) in [(today, "sent"), (draft, "draft"), (paid, "paid"), (never, "sent"), (partial, "overdue")] {
        assert_eq!(fixture.get::<Invoice>(id).unwrap().status.as_str(), status);
    }
    assert_eq!(
        (fixture.overdue(), fixture.new_kinds()),
        (Vec::new(), String::new()),
        "an invoice becomes overdue once"
    );
    fixture.clock.set(time("2026-03-15T12:59:59Z"));
    assert!(fixture.overdue().is_empty(), "it is not midnight in Sydney");
    fixture.clock.set(time("2026-03-15T13:00:00Z"));
    assert_eq!(fixture.overdue(), ["INV-0004"]);

    let later = fixture.correct(sent, json!({ "due_date": "2026-03-16" })).unwrap();
    assert_eq!(later.status, InvoiceStatus::Sent, "a later due date ends the overdue status");
    assert_eq!(fixture.correct(partial, json!({ "due_date": null })).unwrap().status, InvoiceStatus::Partial);
    assert_eq!(fixture.correct(viewed, json!({ "due_date": "2026-03-15" })).unwrap().status, InvoiceStatus::Overdue);
    assert_eq!(fixture.pay(viewed, "1").unwrap().status, InvoiceStatus::Partial);
    assert_eq!(fixture.overdue(), ["INV-0002"], "it becomes overdue again");
}

#[test]
fn many_invoices_become_overdue_in_batches() {
    let fixture = Rules::new();
    for day in 0..OVERDUE_STEP + 50 {
        let due = if day % 2 == 0 { "2026-03-01" } else { "2026-04-01" };
        let id = fixture.invoice(json!({ "total": 1, "due_date": due })).unwrap().id;
        fixture.step(SEND, id).unwrap();
    }
    assert_eq!(fixture.overdue().len(), 125);
    assert!(fixture.overdue().is_empty());
}
