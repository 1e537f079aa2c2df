//! Values that databases may change: text that looks like another type, the first and last times, and amounts.

use svc_core::accounts::tenants;
use svc_core::resources::bookings::{Booking, BookingStatus};
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{Invoice, InvoiceStatus, Payment};
use svc_core::resources::jobs::{Job, JobStatus};
use svc_core::resources::quotes::{Quote, QuoteStatus};
use svc_core::values::EventKind;
use svc_core::values::{Amount, Currency, Date, EventSet, Id, MAX_AMOUNT, Note, Text, Timestamp};
use svc_core::webhooks::subscriptions::{DisabledReason, WebhookSubscription};

use crate::Harness;
use crate::samples::Sample;

pub(super) async fn text_is_stored_unchanged(h: Harness) {
    let tenant = h.tenant().await;
    for text in [
        "007",
        "0800",
        "1e5",
        "-1",
        "NULL",
        "true",
        "2026-03-14",
        "O'Brien; DROP TABLE contacts; --",
        r#"a"b\c%d_e$1?2:x"#,
        "e\u{301} is not \u{e9}",
        "ﬁ ß İ ı Σ ς",
        "👩\u{200d}🔬 שלום العربية",
        "two  spaces",
        "\u{feff}mark",
        "\u{10ffff}",
    ] {
        let stored = h
            .insert(tenant, move |new| {
                let (first_name, phone) = (Some(Text::from_stored(text)), Some(Text::from_stored(text)));
                Contact { first_name, phone, ..Contact::bare(new) }
            })
            .await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored), "{text}");
    }
    for note in [" \tas sent\r\n\n ", "\u{1}\u{7f}\u{85}", "{\"a\": 1}"] {
        let stored =
            h.insert(tenant, move |new| Booking { notes: Some(Note::from_stored(note)), ..Booking::bare(new) }).await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored), "{note:?}");
    }
}

pub(super) async fn the_first_and_the_last_time_are_stored(h: Harness) {
    let tenant = h.tenant().await;
    for (start, end) in [
        ("0000-01-01T00:00:00.000000Z", "0000-01-01T00:00:00.000001Z"),
        ("0001-01-01T00:00:00.000000Z", "1582-10-15T00:00:00.000000Z"),
        ("1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00.000000Z"),
        ("2000-02-29T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ] {
        let (start_time, end_time) = (Timestamp::parse(start).unwrap(), Timestamp::parse(end).unwrap());
        let stored = h.insert(tenant, move |new| Booking { start_time, end_time, ..Booking::bare(new) }).await;
        let back: Booking = h.row(tenant, stored.id).await.unwrap();
        assert_eq!((back.start_time.to_string(), back.end_time.to_string()), (start.to_owned(), end.to_owned()));
    }
    for date in ["0000-01-01", "0000-02-29", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31"] {
        let day = Some(Date::parse(date).unwrap());
        let stored = h.insert(tenant, move |new| Quote { issue_date: day, ..Quote::bare(new) }).await;
        let back: Quote = h.row(tenant, stored.id).await.unwrap();
        assert_eq!(back.issue_date.map(|date| date.to_string()).as_deref(), Some(date));
        assert_eq!(back.valid_until, None);
    }
}

pub(super) async fn amounts_are_exact(h: Harness) {
    let tenant = h.tenant().await;
    for (code, scale) in [("JPY", 0), ("AUD", 2), ("KWD", 3), ("CLF", 4)] {
        let currency = Currency::parse(code).unwrap();
        let largest = MAX_AMOUNT * 10_i64.pow(scale);
        for minor in [0, 1, 5, 10, 9_995, (1 << 53) + 1, largest - 1, largest] {
            let minor = minor.min(largest);
            let total = Amount::from_minor(minor, currency.scale());
            let part = Amount::from_minor(minor / 3, currency.scale());
            let quote = h.insert(tenant, move |new| Quote { total, currency, ..Quote::bare(new) }).await;
            assert_eq!(h.row(tenant, quote.id).await, Some(quote));
            let invoice =
                h.insert(tenant, move |new| Invoice { total, currency, amount_paid: part, ..Invoice::bare(new) }).await;
            assert_eq!(h.row(tenant, invoice.id).await, Some(invoice));
        }
    }
    for minor in [0, 1, 30, 9_995, MAX_AMOUNT * 100] {
        let amount = Some(Amount::from_minor(minor, 2));
        let estimate = h.insert(tenant, move |new| Job { estimated_total: amount, ..Job::bare(new) }).await;
        assert_eq!(h.row(tenant, estimate.id).await, Some(estimate));
        let price = h.insert(tenant, move |new| Job { actual_total: amount, ..Job::bare(new) }).await;
        assert_eq!(h.row(tenant, price.id).await, Some(price));
    }
    let quote: Quote = {
        let contact = h.contact(tenant, "ada@example.com").await.id;
        let body = format!(r#"{{"contact_id": "{contact}", "total": 999999999999.9999, "currency": "UYW"}}"#);
        h.create(tenant, body).await.unwrap()
    };
    let back: Quote = h.row(tenant, quote.id).await.unwrap();
    assert_eq!(serde_json::to_string(&back.total).unwrap(), "999999999999.9999");
}

/// A code can leave the list of ISO 4217 while there are records in it.
pub(super) async fn a_currency_that_has_ended_is_read(h: Harness) {
    let tenant = h.tenant().await;
    for (code, scale) in [("HRK", 2), ("ITL", 0)] {
        let currency = Currency::from_stored(code).unwrap();
        let total = Amount::from_minor(1_234, scale);
        let part = Amount::from_minor(34, scale);
        let quote = h.insert(tenant, move |new| Quote { total, currency, ..Quote::bare(new) }).await;
        assert_eq!(h.row(tenant, quote.id).await.as_ref(), Some(&quote));
        assert_eq!(h.all::<Quote>(tenant).await[0], quote);
        let invoice =
            h.insert(tenant, move |new| Invoice { total, currency, amount_paid: part, ..Invoice::bare(new) }).await;
        assert_eq!(h.row(tenant, invoice.id).await.as_ref(), Some(&invoice));
        assert_eq!(h.all::<Invoice>(tenant).await[0], invoice);
        let payment = Payment {
            id: Id::new(invoice.id.uuid()),
            invoice_id: invoice.id,
            amount: part,
            currency,
            paid_at: invoice.created_at,
            is_refund: true,
            method: Text::parse("bank transfer").ok(),
            reference: Text::parse("Ü-17").ok(),
        };
        let payments = h.write((tenant, payment.clone()), async |tx, (tenant, payment)| {
            tx.insert_payment(*tenant, payment).await?;
            Ok(tx.payments(*tenant, payment.invoice_id, 10).await?)
        });
        assert_eq!(payments.await, Ok(vec![payment]));
        let account = h.write((tenant, currency), async |tx, &(tenant, currency)| {
            tenants::update(tx, tenant.0, |account| account.currency = currency).await
        });
        let account = account.await.unwrap();
        assert_eq!(account.currency, currency);
        let stored = h.read(tenant, async |tx, &tenant| tenants::get(tx, tenant).await);
        assert_eq!(stored.await, Ok(account));
    }
}

pub(super) async fn every_enum_value_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    for status in BookingStatus::ALL.iter().copied() {
        let stored = h.insert(tenant, move |new| Booking { status, ..Booking::bare(new) }).await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored));
    }
    for status in QuoteStatus::ALL.iter().copied() {
        let stored = h.insert(tenant, move |new| Quote { status, ..Quote::bare(new) }).await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored));
    }
    for status in JobStatus::ALL.iter().copied() {
        let stored = h.insert(tenant, move |new| Job { status, ..Job::bare(new) }).await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored));
    }
    for status in InvoiceStatus::ALL.iter().copied() {
        let stored = h.insert(tenant, move |new| Invoice { status, ..Invoice::bare(new) }).await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored));
    }
    for reason in DisabledReason::ALL.iter().copied() {
        let disabled_reason = Some(reason);
        let stored = h
            .insert(tenant, move |new| WebhookSubscription { disabled_reason, ..WebhookSubscription::bare(new) })
            .await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored));
    }
    for status in [-1, 0, 100, 204, 599] {
        let last_delivery_status = Some(status);
        let stored = h
            .insert(tenant, move |new| WebhookSubscription { last_delivery_status, ..WebhookSubscription::bare(new) })
            .await;
        assert_eq!(h.row(tenant, stored.id).await, Some(stored));
    }
}

pub(super) async fn the_order_of_an_event_set_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    let mut backwards = EventKind::BUILT_IN.to_vec();
    backwards.reverse();
    let sets = EventKind::BUILT_IN.iter().map(|kind| EventSet::Kinds(vec![*kind]));
    for events in sets.chain([EventSet::All, EventSet::Kinds(backwards)]) {
        let stored = {
            let events = events.clone();
            h.insert(tenant, move |new| WebhookSubscription {
                events: events.clone(),
                ..WebhookSubscription::bare(new)
            })
            .await
        };
        let back: WebhookSubscription = h.row(tenant, stored.id).await.unwrap();
        assert_eq!(back.events, events);
    }
}
