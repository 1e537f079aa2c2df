//! Records can be read back from the JSON that they are written as.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Debug;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use svc_core::accounts::audit::AuditEntry;
use svc_core::prelude::*;
use svc_core::resources::invoices::{Payment, RefundedInvoice};
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::subscriptions::WebhookSubscriptionWithSecret;

/// Checks that a body is read back, also with a field that is unknown, and is written again byte by byte.
fn read_back<T: Serialize + DeserializeOwned>(record: &T) -> T {
    let body = serde_json::to_string(record).unwrap();
    let read: T = serde_json::from_str(&body).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), body);
    let newer = body.replacen('{', r#"{"a_later_field":[1,{"x":null}],"#, 1);
    assert_eq!(serde_json::to_string(&serde_json::from_str::<T>(&newer).unwrap()).unwrap(), body);
    read
}

#[track_caller]
fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(record: &T) {
    assert_eq!(&read_back(record), record);
}

/// Reads the data of the newest event of a kind as a record.
async fn data_of<T: Serialize + DeserializeOwned>(account: Account<'_>, kind: EventKind) -> T {
    let events = account.events().since(Timestamp::from_micros(0), 1_000).await.unwrap();
    let event = events.iter().rev().find(|event| event.kind == kind).unwrap();
    let read: T = serde_json::from_str(event.data.get()).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), event.data.get());
    read
}

#[test]
fn every_record_is_read_back_from_its_body() {
    let test = async {
        let svc = Svc::in_memory();
        let settings =
            TenantCreate { time_zone: "Australia/Sydney".parse()?, ..TenantCreate::named("Harbour Plumbing") };
        let tenant = svc.accounts().create(settings).await?.id;
        let account = svc.account(tenant);
        let limits = svc_core::accounts::limits::RateLimits::from_text("all=600 quotes=5").unwrap();
        survives(&account.change_settings(move |tenant| tenant.limits = limits).await?);

        let details = ContactDetails { first_name: Patch::Set(Some("Zoë".parse()?)), ..ContactDetails::default() };
        let contact = ContactCreate { details, ..ContactCreate::new("Zoe@example.com".parse()?) };
        let contact = account.contacts().create(contact).await?;
        survives(&contact);
        survives(&account.contacts().list(ContactFilter::default(), ListParams::default()).await?);

        let start = "2026-03-16T09:00:00+11:00".parse()?;
        let notes = Some("two\nlines ".parse()?);
        let booking = BookingCreate { notes, ..BookingCreate::new(contact.id, "New tap".parse()?, start) };
        survives(&account.bookings().create(booking).await?);
        let job = JobCreate {
            contact_id: Some(contact.id),
            estimated_total: Some("0.1".parse()?),
            scheduled_start: Some(start),
            ..JobCreate::new("Fix the tap".parse()?)
        };
        survives(&account.jobs().create(job).await?);
        for (currency, total) in [("AUD", "149.50"), ("JPY", "1500"), ("BHD", "0.001"), ("CLF", "12345678901.2345")] {
            let currency = Some(currency.parse()?);
            let quote = QuoteCreate { currency, ..QuoteCreate::new(contact.id, total.parse()?) };
            survives(&account.quotes().create(quote).await?);
            let due_date = Some("2026-04-01".parse()?);
            let invoice = InvoiceCreate { currency, due_date, ..InvoiceCreate::new(total.parse()?) };
            let id = account.invoices().create(invoice).await?.id;
            survives(&account.invoices().send(id).await?);
            read_back(&account.invoices().pay(id).await?);
            account.invoices().refund(id).await?;
            survives(&data_of::<Payment>(account, EventKind::PaymentSucceeded).await);
            survives(&data_of::<RefundedInvoice>(account, EventKind::InvoiceRefunded).await);
        }

        let webhook = WebhookCreate::new(
            "https://hooks.example.com/svc".parse()?,
            "invoice.paid".parse().map(|kind| EventSet::Kinds(vec![kind]))?,
        );
        let webhook = account.webhooks().create(webhook).await?;
        assert_eq!(read_back(&webhook).id, webhook.id);
        let secret = webhook.secret.reveal().to_owned();
        assert_eq!(read_back(&WebhookSubscriptionWithSecret::from(webhook.clone())).secret, secret);
        let all = WebhookUpdate { events: Patch::Set(EventSet::All), ..WebhookUpdate::default() };
        read_back(&account.webhooks().update(webhook.id, all).await?);
        survives(&account.replays().create(ReplayCreate::new(webhook.id, webhook.created_at)).await?);

        let stay = serde_json::json!({ "id": 7, "total": 1e2, "guest": "Zoë" });
        let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
        assert_eq!(read_back(&emitted).event.data.get(), emitted.event.data.get());
        assert_eq!(emitted.deliveries.len(), 1);
        emitted.deliveries.iter().for_each(survives);
        survives(&account.webhooks().backlog(webhook.id).await?);
        survives(&AttemptLog {
            attempt: 1,
            started_at: webhook.created_at,
            duration_ms: 1_200,
            status: 503,
            error: Some("status: 503".to_owned()),
            cause: None,
            response_body: Some("{}".to_owned()),
            response_truncated: false,
            remote_addr: Some("203.0.113.7:443".to_owned()),
        });

        let expires_in = Some(Duration::from_secs(3600));
        let key = account
            .keys()
            .create(KeyCreate { name: Some("Shop".to_owned()), write: true, expires_in, signed: true })
            .await?;
        assert_eq!(read_back(&key.key).scopes, key.key.scopes);
        for entry in account.audit_log().since(Timestamp::from_micros(0), 1_000).await? {
            let read: AuditEntry = read_back(&entry);
            assert_eq!((read.id, read.object_id, read.actor), (entry.id, entry.object_id, entry.actor));
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    test.now_or_never().unwrap().unwrap();
}

#[test]
fn what_is_no_value_is_not_read() {
    for (field, value) in [("email", "ada"), ("first_name", "two\nlines"), ("created_at", "2026-03-14"), ("id", "7")] {
        let mut body = serde_json::to_value(Contact::default()).unwrap();
        body[field] = Value::from(value);
        assert!(serde_json::from_value::<Contact>(body).is_err(), "{field} {value}");
    }
    assert!(serde_json::from_str::<InvoiceStatus>(r#""paid""#).is_ok());
    assert!(serde_json::from_str::<InvoiceStatus>(r#""Paid""#).is_err());
}
