//! The rows that belong to a record: the records of a contact, the payments of an invoice, and the history of a record.

use serde_json::json;
use svc_core::accounts::audit;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::{Contact, ContactId, OfContact};
use svc_core::resources::crud;
use svc_core::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceId};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::store::EventFilter;
use svc_core::values::{Decimal, Id, TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::Harness;
use crate::samples::{Links, Sample};

/// The newest event is before this time.
const NEWEST: Timestamp = Timestamp::MAX;

impl Harness {
    async fn of_contact<R: OfContact>(
        &self,
        tenant: TenantId,
        contact: ContactId,
        before: Timestamp,
        limit: u32,
    ) -> Vec<Id<R>> {
        let read = self.read((tenant, contact, before, limit), async |tx, &(tenant, contact, before, limit)| {
            let rows = R::of_contact(tx).records_of_contact(tenant, contact, before, limit).await?;
            Ok(rows.iter().map(R::id).collect())
        });
        read.await.unwrap()
    }

    async fn invoice(&self, tenant: TenantId, total: u32) -> InvoiceId {
        let create = self.write((tenant, total), async |tx, &(tenant, total)| {
            invoices::create(tx, tenant, InvoiceCreate::new(Decimal::from(total))).await
        });
        create.await.unwrap().id
    }

    async fn pay(&self, tenant: TenantId, id: InvoiceId, amount: Option<Decimal>) {
        let pay = self.write((tenant, id, amount), async |tx, &(tenant, id, amount)| {
            let payment = invoices::PaymentCreate { amount, ..Default::default() };
            invoices::pay(tx, tenant, id, payment).await
        });
        pay.await.unwrap();
    }

    /// Returns the kinds of the events of a record, newest first, each with its actor.
    async fn history(&self, tenant: TenantId, record: Uuid, until: Timestamp, limit: u32) -> Vec<(String, String)> {
        let read = self.read((tenant, record, until, limit), async |tx, &(tenant, record, until, limit)| {
            let events = tx.list_events(tenant, &EventFilter::of_record(record, until, limit)).await?;
            Ok(events.into_iter().map(|of| (of.event.kind.to_string(), of.actor.unwrap_or_default())).collect())
        });
        read.await.unwrap()
    }
}

pub(super) async fn the_records_of_a_contact_are_listed(h: Harness) {
    async fn check<R: Sample + OfContact>(h: &Harness, tenant: TenantId, links: Links, other: TenantId) {
        let contact = h.insert(tenant, move |new| R::full(new, links)).await.contact().unwrap().into();
        let second = h.insert(tenant, move |new| R::full(new, links)).await;
        let third = h.insert(tenant, move |new| R::full(new, links)).await;
        h.insert(tenant, R::bare).await;
        let all = h.of_contact::<R>(tenant, contact, Timestamp::MAX, 10).await;
        assert_eq!((all.len(), &all[..2]), (3, &[third.id(), second.id()][..]), "{}", R::COLLECTION);
        assert_eq!(h.of_contact::<R>(tenant, contact, Timestamp::MAX, 2).await, all[..2]);
        assert_eq!(h.of_contact::<R>(tenant, contact, third.created_at(), 1).await, all[1..2], "strictly before");
        assert_eq!(h.of_contact::<R>(tenant, Id::nil(), Timestamp::MAX, 10).await, [], "of no contact");
        assert_eq!(h.of_contact::<R>(other, contact, Timestamp::MAX, 10).await, [], "of another tenant");
    }
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let links = Links::of(&h, tenant).await;
    check::<Invoice>(&h, tenant, links, other).await;
    check::<Quote>(&h, tenant, links, other).await;
    check::<Booking>(&h, tenant, links, other).await;
    check::<Job>(&h, tenant, links, other).await;
}

pub(super) async fn many_records_are_found_by_their_ids(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mut ids = Vec::new();
    for at in 0..60 {
        ids.push(h.contact(tenant, &format!("c{at}@example.com")).await.id);
    }
    let deleted = ids[7];
    h.write((tenant, deleted), async |tx, &(tenant, id)| crud::delete::<Contact>(tx, tenant, id).await).await.unwrap();
    let find = |tenant, ids: Vec<ContactId>| {
        let read = h.read((tenant, ids), async |tx, (tenant, ids)| {
            let repository: &mut dyn svc_core::store::Repository<Contact> = tx;
            let mut found: Vec<ContactId> =
                repository.get_many(*tenant, ids).await?.iter().map(|contact| contact.id).collect();
            found.sort_unstable();
            found.dedup();
            Ok(found)
        });
        async { read.await.unwrap() }
    };
    assert_eq!(find(tenant, ids.clone()).await, ids, "deleted ones too");
    assert_eq!(find(tenant, vec![ids[3], Id::nil()]).await, [ids[3]]);
    assert_eq!(find(tenant, Vec::new()).await, []);
    assert_eq!(find(other, ids).await, [], "of another tenant");
}

pub(super) async fn the_payments_of_an_invoice_are_listed(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (invoice, second) = (h.invoice(tenant, 100).await, h.invoice(tenant, 50).await);
    h.pay(tenant, invoice, Some(Decimal::from(30))).await;
    h.pay(tenant, second, None).await;
    h.pay(tenant, invoice, None).await;
    let payments = |tenant, invoice, limit| {
        let read = h.read((tenant, invoice, limit), async |tx, &(tenant, invoice, limit)| {
            let payments = tx.payments(tenant, invoice, limit).await?;
            Ok(payments.iter().map(|payment| payment.amount.to_string()).collect::<Vec<_>>())
        });
        async { read.await.unwrap() }
    };
    assert_eq!(payments(tenant, invoice, 10).await, ["70", "30"]);
    assert_eq!(payments(tenant, invoice, 1).await, ["70"]);
    assert_eq!(payments(tenant, second, 10).await, ["50"]);
    assert!(payments(other, invoice, 10).await.is_empty());
}

pub(super) async fn the_events_of_a_record_are_its_history(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (invoice, bystander) = (h.invoice(tenant, 100).await, h.invoice(tenant, 50).await);
    h.pay(tenant, invoice, None).await;
    h.pay(tenant, bystander, None).await;
    let history = h.history(tenant, invoice.uuid(), NEWEST, 10).await;
    let want = ["payment.succeeded", "invoice.updated", "invoice.paid", "invoice.created"];
    assert_eq!(history, want.map(|kind| (kind.to_owned(), "system".to_owned())));
    assert_eq!(h.history(tenant, invoice.uuid(), NEWEST, 2).await, history[..2]);
    let read = h.read((tenant, invoice), async |tx, &(tenant, id)| {
        Ok(tx
            .list_events(tenant, &EventFilter::of_record(id.uuid(), Timestamp::MAX, 10))
            .await?
            .remove(1)
            .event
            .created_at)
    });
    let updated_at = read.await.unwrap();
    assert_eq!(h.history(tenant, invoice.uuid(), updated_at, 10).await, history[2..], "strictly before");
    assert_eq!(h.history(other, invoice.uuid(), NEWEST, 10).await, [], "of another tenant");
    let external = h.write(tenant, async |tx, &tenant| {
        let kind = svc_core::values::EventKind::StayCreated;
        svc_core::webhooks::events::record_external(tx, tenant, kind, &json!({ "id": Uuid::max() })).await
    });
    external.await.unwrap();
    assert_eq!(h.history(tenant, Uuid::max(), NEWEST, 10).await, [], "of a record that the service does not store");
}

pub(super) async fn the_entries_about_an_object_are_found(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let body = json!({ "url": "https://example.com/", "events": ["*"] });
    let webhook: WebhookSubscription = h.create(tenant, body.clone()).await.unwrap();
    h.create::<WebhookSubscription>(tenant, body).await.unwrap();
    h.clock.advance(std::time::Duration::from_millis(1));
    let delete = h.write((tenant, webhook.id), async |tx, &(tenant, id)| {
        crud::delete::<WebhookSubscription>(tx, tenant, id).await
    });
    delete.await.unwrap();
    let entries = |tenant, until, limit| {
        let read = h.read((tenant, webhook.id, until, limit), async |tx, &(tenant, id, until, limit)| {
            Ok(tx.audit_entries_of(tenant, id.uuid(), until, limit).await?)
        });
        async { read.await.unwrap() }
    };
    let actions = |entries: &[audit::AuditEntry]| entries.iter().map(|entry| entry.action.clone()).collect::<Vec<_>>();
    let all = entries(tenant, Timestamp::MAX, 10).await;
    assert_eq!(actions(&all), ["delete", "create"]);
    assert_eq!(actions(&entries(tenant, Timestamp::MAX, 1).await), ["delete"]);
    assert_eq!(actions(&entries(tenant, all[0].at, 10).await), ["create"], "strictly before");
    assert!(entries(other, Timestamp::MAX, 10).await.is_empty());
}
