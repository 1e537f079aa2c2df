//! The generic repository: records are stored unchanged, and only their own tenant can access them.

use serde_json::json;
use svc_core::accounts::clocks::advance_clock;
use svc_core::error::{Error, StoreError};
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::{Contact, ContactFilter};
use svc_core::resources::invoices::{self, Invoice, InvoiceCreate};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::resources::{Filter, NewRecord, Update, crud};
use svc_core::values::{Decimal, Email, Id, TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::samples::{Links, Sample};
use crate::{Harness, every_resource};

pub(super) async fn every_field_is_stored(h: Harness) {
    async fn check<R: Sample>(h: &Harness, tenant: TenantId, links: Links) {
        let bare = h.insert(tenant, R::bare).await;
        let full = h.insert(tenant, move |new| R::full(new, links)).await;
        for row in [bare, full] {
            assert_eq!(h.row(tenant, row.id()).await, Some(row.clone()));
            assert!(h.all::<R>(tenant).await.contains(&row), "{} in a list", R::COLLECTION);
        }
    }
    let tenant = h.tenant().await;
    let links = Links::of(&h, tenant).await;
    every_resource!(check(&h, tenant, links));
}

pub(super) async fn an_update_replaces_every_field(h: Harness) {
    async fn check<R: Sample>(h: &Harness, tenant: TenantId, links: Links) {
        let bystander = h.insert(tenant, R::bare).await;
        let bare = h.insert(tenant, R::bare).await;
        let new = NewRecord { tenant_id: tenant, id: bare.id().uuid(), now: bare.created_at() };
        let full = h.replace(tenant, &R::full(new, links)).await;
        assert_eq!(h.row(tenant, bare.id()).await, Some(full.clone()));
        assert!(full.updated_at() > bare.updated_at());
        let bare = h.replace(tenant, &bare).await;
        assert_eq!(h.row(tenant, bare.id()).await, Some(bare.clone()));
        assert_eq!(h.row(tenant, bystander.id()).await, Some(bystander), "another row of {}", R::COLLECTION);
    }
    let tenant = h.tenant().await;
    let links = Links::of(&h, tenant).await;
    every_resource!(check(&h, tenant, links));
}

pub(super) async fn a_record_of_another_tenant_is_not_found(h: Harness) {
    async fn check<R: Sample>(h: &Harness, owner: TenantId, links: Links, other: TenantId) {
        let row = h.insert(owner, move |new| R::full(new, links)).await;
        assert_eq!(h.row::<R>(other, row.id()).await, None);
        assert_eq!(h.all::<R>(other).await, []);
        let changes = Order::OldestChangeFirst { from: Timestamp::from_micros(0) };
        assert_eq!(h.list::<R>(other, ListQuery { limit: 10, order: changes, filter: R::Filter::none() }).await, []);
        let id = row.id();
        let got = h.read((other, id), async |tx, &(other, id)| crud::get::<R>(tx, other, id).await).await;
        assert_eq!(got, Err(Error::NotFound));
        let got = h.read(owner, async |tx, &owner| crud::get::<R>(tx, owner, Id::nil()).await).await;
        assert_eq!(got, Err(Error::NotFound), "an id of no record");
    }
    let (owner, other) = (h.tenant().await, h.tenant().await);
    let links = Links::of(&h, owner).await;
    every_resource!(check(&h, owner, links, other));
    let contact = h.insert(owner, |new| Contact { deleted_at: Some(new.now), ..Contact::bare(new) }).await;
    assert_eq!(h.row::<Contact>(other, contact.id).await, None, "a deleted one");
    let deleted = |new: NewRecord| WebhookSubscription { deleted_at: Some(new.now), ..WebhookSubscription::bare(new) };
    let subscription = h.insert(owner, deleted).await;
    assert_eq!(h.row::<WebhookSubscription>(other, subscription.id).await, None, "a deleted one");
    let filter = ContactFilter { email: Some(full_email(&h, owner).await), include_deleted: Some(true) };
    let order = Order::NewestFirst { before: None };
    assert_eq!(h.list::<Contact>(other, ListQuery { limit: 10, order, filter }).await, []);
}

async fn full_email(h: &Harness, tenant: TenantId) -> Email {
    h.all::<Contact>(tenant).await.into_iter().find_map(|contact| contact.email).unwrap()
}

pub(super) async fn a_record_of_another_tenant_cannot_be_updated(h: Harness) {
    async fn check_repository<R: Sample>(h: &Harness, owner: TenantId, other: TenantId) {
        let row = h.insert(owner, R::bare).await;
        let mut changed = row.clone();
        changed.set_updated_at(h.advance_clock(other).await);
        let written = h.write((other, changed), async |tx, (other, changed)| {
            Ok(R::repository(tx).update(*other, changed).await?)
        });
        assert!(written.await.is_err(), "{}", R::COLLECTION);
        assert_eq!(h.row(owner, row.id()).await, Some(row));
    }
    async fn check_rules<R: Sample + Update>(h: &Harness, owner: TenantId, other: TenantId, body: &str) {
        let row = h.insert(owner, R::bare).await;
        assert_eq!(h.update::<R>(other, row.id(), body).await, Err(Error::NotFound));
        assert_eq!(h.row(owner, row.id()).await, Some(row));
    }
    let (owner, other) = (h.tenant().await, h.tenant().await);
    every_resource!(check_repository(&h, owner, other));
    check_rules::<Contact>(&h, owner, other, r#"{"city": "Perth"}"#).await;
    check_rules::<Booking>(&h, owner, other, r#"{"notes": "x"}"#).await;
    check_rules::<Quote>(&h, owner, other, r#"{"status": "sent"}"#).await;
    check_rules::<Job>(&h, owner, other, r#"{"status": "on_hold"}"#).await;
    check_rules::<WebhookSubscription>(&h, owner, other, r#"{"enabled": true}"#).await;

    let contact = h.insert(owner, Contact::bare).await;
    assert_eq!(h.delete::<Contact>(other, contact.id).await, Err(Error::NotFound));
    assert_eq!(h.row(owner, contact.id).await, Some(contact));
    let subscription = h.insert(owner, WebhookSubscription::bare).await;
    assert_eq!(h.delete::<WebhookSubscription>(other, subscription.id).await, Err(Error::NotFound));
    assert_eq!(h.row(owner, subscription.id).await, Some(subscription));
    let invoice = h.insert(owner, Invoice::bare).await;
    let id = invoice.id;
    let sent = h.write((other, id), async |tx, &(other, id)| invoices::send(tx, other, id).await).await;
    assert_eq!(sent, Err(Error::NotFound));
    assert_eq!(h.row(owner, id).await, Some(invoice));
}

pub(super) async fn a_deleted_record_can_be_read(h: Harness) {
    let tenant = h.tenant().await;
    let contact = h.contact(tenant, "ada@example.com").await;
    h.delete::<Contact>(tenant, contact.id).await.unwrap();
    let stored: Contact = h.row(tenant, contact.id).await.unwrap();
    assert_eq!(stored.deleted_at, Some(stored.updated_at));
    assert!(stored.updated_at > contact.updated_at);
    assert_eq!(stored, Contact { updated_at: stored.updated_at, deleted_at: stored.deleted_at, ..contact });
    assert_eq!(h.delete::<Contact>(tenant, stored.id).await, Err(Error::NotFound));

    let subscription: WebhookSubscription =
        h.create(tenant, json!({ "url": "https://example.com", "events": ["*"] })).await.unwrap();
    h.delete::<WebhookSubscription>(tenant, subscription.id).await.unwrap();
    let stored: WebhookSubscription = h.row(tenant, subscription.id).await.unwrap();
    assert_eq!(
        stored,
        WebhookSubscription { updated_at: stored.updated_at, deleted_at: stored.deleted_at, ..subscription }
    );
    assert_eq!(stored.deleted_at, Some(stored.updated_at));
}

pub(super) async fn an_id_is_unique(h: Harness) {
    async fn check<R: Sample>(h: &Harness, tenant: TenantId, links: Links) {
        let first = h.insert(tenant, R::bare).await;
        let id = first.id();
        let second = h.write((tenant, id, links), async |tx, &(tenant, id, links)| {
            let now = advance_clock(tx, tenant).await?;
            Ok(R::repository(tx)
                .insert(tenant, &R::full(NewRecord { tenant_id: tenant, id: id.uuid(), now }, links))
                .await?)
        });
        assert!(matches!(second.await, Err(Error::Store(StoreError::Conflict { .. }))), "{}", R::COLLECTION);
        assert_eq!(h.row(tenant, id).await, Some(first));
    }
    let tenant = h.tenant().await;
    let links = Links::of(&h, tenant).await;
    every_resource!(check(&h, tenant, links));
}

pub(super) async fn an_update_of_a_missing_record_fails(h: Harness) {
    async fn check<R: Sample>(h: &Harness, tenant: TenantId) {
        let updated = h.write(tenant, async |tx, &tenant| {
            let now = advance_clock(tx, tenant).await?;
            let row = R::bare(NewRecord { tenant_id: tenant, id: tx.env().id(now), now });
            Ok(R::repository(tx).update(tenant, &row).await?)
        });
        assert!(matches!(updated.await, Err(Error::Store(_))), "{}", R::COLLECTION);
        assert_eq!(h.all::<R>(tenant).await, []);
    }
    let tenant = h.tenant().await;
    every_resource!(check(&h, tenant));
}

pub(super) async fn a_reference_to_another_tenant_is_refused(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let foreign = h.contact(other, "ada@example.com").await.id;
    let deleted = h.contact(tenant, "bob@example.com").await.id;
    h.delete::<Contact>(tenant, deleted).await.unwrap();
    for id in [foreign, deleted, Id::nil()] {
        let refused = Error::ReferenceNotFound("contact_id");
        let start = "2026-03-14T15:00:00Z";
        let booking = json!({ "contact_id": id, "service_name": "x", "start_time": start });
        assert_eq!(h.create::<Booking>(tenant, booking).await, Err(refused.clone()));
        let quote = json!({ "contact_id": id, "total": 1 });
        assert_eq!(h.create::<Quote>(tenant, quote).await, Err(refused.clone()));
        let job = json!({ "contact_id": id, "title": "x" });
        assert_eq!(h.create::<Job>(tenant, job).await, Err(refused.clone()));
        let total = Decimal::parse("1").unwrap();
        let input = InvoiceCreate { contact_id: Some(id), total, currency: None, issue_date: None, due_date: None };
        let invoice = h
            .write((tenant, input), async |tx, (tenant, input)| invoices::create(tx, *tenant, input.clone()).await)
            .await;
        assert_eq!(invoice, Err(refused));
    }
    assert_eq!(h.all::<Booking>(tenant).await, []);
    assert_eq!(h.all::<Quote>(tenant).await, []);
    assert_eq!(h.all::<Job>(tenant).await, []);
    assert_eq!(h.all::<Invoice>(tenant).await, []);
}
