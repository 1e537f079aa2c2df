//! Emails of contacts: unique among the live contacts of a tenant, without regard to case.

use futures_util::future::join_all;
use serde_json::json;
use svc_core::accounts::tenants;
use svc_core::error::Error;
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::contacts::{Contact, ContactFilter};
use svc_core::values::{Email, TenantId};

use crate::Harness;

impl Harness {
    async fn try_contact(&self, tenant: TenantId, email: &str) -> Result<Contact, Error> {
        self.create(tenant, json!({ "email": email })).await
    }

    async fn set_unique(&self, tenant: TenantId, unique: bool) {
        self.write((tenant, unique), async |tx, &(tenant, unique)| {
            tenants::update(tx, tenant.0, move |tenant| tenant.unique_contact_email = unique).await
        })
        .await
        .unwrap();
    }
}

pub(super) async fn one_of_concurrent_creates_succeeds(h: Harness) {
    let tenant = h.tenant().await;
    let spellings = ["ada@example.com", "Ada@example.com", "ADA@EXAMPLE.COM", "ada@Example.Com"];
    let creates = (0..32).map(|at| h.try_contact(tenant, spellings[at % spellings.len()]));
    let (created, refused): (Vec<_>, Vec<_>) = join_all(creates).await.into_iter().partition(Result::is_ok);
    let created: Vec<Contact> = created.into_iter().map(Result::unwrap).collect();
    assert_eq!((created.len(), refused.len()), (1, 31));
    for result in refused {
        assert_eq!(result, Err(Error::EmailTaken { existing_id: created[0].id.uuid() }));
    }
    assert_eq!(h.all::<Contact>(tenant).await, created);
    assert_eq!(h.events(tenant).await.len(), 1);
}

pub(super) async fn emails_are_compared_without_case(h: Harness) {
    let tenant = h.tenant().await;
    let ada = h.contact(tenant, "Ada.O'Brien+x@Example.com").await;
    assert_eq!(
        ada.email.as_ref().map(|email| email.as_str()),
        Some("Ada.O'Brien+x@Example.com"),
        "the email is stored as sent"
    );
    let taken = Err(Error::EmailTaken { existing_id: ada.id.uuid() });
    assert_eq!(h.try_contact(tenant, "ada.o'brien+X@eXAMPLE.COM").await, taken);
    // `_` is a wildcard of SQL and `[` is next to `{` in ASCII; neither is a letter.
    for other in ["ada_o'brien+x@example.com", "a%@example.com", "{@example.com"] {
        assert!(h.try_contact(tenant, other).await.is_ok(), "{other}");
    }
}

pub(super) async fn a_deleted_contact_frees_its_email(h: Harness) {
    let tenant = h.tenant().await;
    for _ in 0..3 {
        let ada = h.contact(tenant, "ada@example.com").await;
        let taken = Err(Error::EmailTaken { existing_id: ada.id.uuid() });
        assert_eq!(h.try_contact(tenant, "ADA@example.com").await, taken);
        h.delete::<Contact>(tenant, ada.id).await.unwrap();
    }
    assert!(h.try_contact(tenant, "ada@example.com").await.is_ok());
}

pub(super) async fn an_update_is_checked_too(h: Harness) {
    let tenant = h.tenant().await;
    let ada = h.contact(tenant, "ada@example.com").await;
    let bob = h.contact(tenant, "bob@example.com").await;
    let refused = h.update::<Contact>(tenant, bob.id, json!({ "email": "ADA@example.com" })).await;
    assert_eq!(refused, Err(Error::EmailTaken { existing_id: ada.id.uuid() }));
    assert_eq!(h.row(tenant, bob.id).await, Some(bob.clone()));
    let respelled: Contact = h.update(tenant, ada.id, json!({ "email": "Ada@example.com" })).await.unwrap();
    assert_eq!(respelled.email.unwrap().as_str(), "Ada@example.com", "a contact may change the case of its own email");
    let cleared: Contact = h.update(tenant, ada.id, json!({ "email": null })).await.unwrap();
    assert_eq!(cleared.email, None);
    assert!(h.update::<Contact>(tenant, bob.id, json!({ "email": "ada@example.com" })).await.is_ok());
}

pub(super) async fn the_email_of_a_changed_contact_is_taken(h: Harness) {
    let (tenant, other, third) = (h.tenant().await, h.tenant().await, h.tenant().await);
    let ada = h.contact(tenant, "ada@example.com").await;
    h.contact(other, "ada@example.com").await;
    h.update::<Contact>(tenant, ada.id, json!({ "city": "Perth" })).await.unwrap();
    let taken = Err(Error::EmailTaken { existing_id: ada.id.uuid() });
    assert_eq!(h.try_contact(tenant, "Ada@example.com").await, taken);
    assert!(h.try_contact(third, "ada@example.com").await.is_ok(), "those of other tenants leave it free");
    h.update::<Contact>(tenant, ada.id, json!({ "email": "lovelace@example.com" })).await.unwrap();
    assert_eq!(h.try_contact(tenant, "LOVELACE@example.com").await, taken);
    assert!(h.try_contact(tenant, "ada@example.com").await.is_ok(), "the address that it had before is free");
}

pub(super) async fn uniqueness_can_be_turned_off(h: Harness) {
    let tenant = h.tenant().await;
    h.set_unique(tenant, false).await;
    for _ in 0..3 {
        h.contact(tenant, "ada@example.com").await;
    }
    let bob = h.contact(tenant, "bob@example.com").await;
    assert!(h.update::<Contact>(tenant, bob.id, json!({ "email": "Ada@example.com" })).await.is_ok());
    h.set_unique(tenant, true).await;
    let refused = h.try_contact(tenant, "ada@example.com").await;
    assert!(matches!(refused, Err(Error::EmailTaken { .. })), "{refused:?}");
    // Contacts that share an email already can still be changed and deleted.
    for contact in h.all::<Contact>(tenant).await {
        assert!(h.update::<Contact>(tenant, contact.id, json!({ "city": "Perth" })).await.is_ok());
        assert_eq!(h.delete::<Contact>(tenant, contact.id).await, Ok(()));
    }
    assert!(h.try_contact(tenant, "ada@example.com").await.is_ok());
}

pub(super) async fn contacts_that_share_an_email_are_listed_by_change(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    for tenant in [tenant, other] {
        h.set_unique(tenant, false).await;
        h.contact(tenant, "bob@example.com").await;
    }
    let add = async |email: &str| {
        h.contact(other, email).await;
        h.contact(tenant, email).await.id
    };
    let (a, b) = (add("ada@example.com").await, add("Ada@example.com").await);
    let (c, d, e) = (add("ADA@example.com").await, add("ada@Example.com").await, add("ada@example.COM").await);
    h.update::<Contact>(tenant, b, json!({ "city": "Perth" })).await.unwrap();
    h.delete::<Contact>(tenant, d).await.unwrap();
    h.update::<Contact>(tenant, a, json!({ "city": "Perth" })).await.unwrap();
    h.delete::<Contact>(tenant, c).await.unwrap();
    for (include_deleted, expected) in [(None, vec![e, b, a]), (Some(true), vec![e, b, d, a, c])] {
        let filter = ContactFilter { email: Some(Email::parse("ada@example.com").unwrap()), include_deleted };
        let mut rows = Vec::new();
        for id in expected {
            rows.push(h.row::<Contact>(tenant, id).await.unwrap());
        }
        for (position, first) in rows.iter().enumerate() {
            for limit in [1, 2, 200] {
                let order = Order::OldestChangeFirst { from: first.updated_at };
                let page = h.list::<Contact>(tenant, ListQuery { limit, order, filter: filter.clone() }).await;
                assert_eq!(page, rows[position..rows.len().min(position + limit as usize)], "{position} {limit}");
            }
        }
    }
}

pub(super) async fn another_tenant_may_use_the_same_email(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    h.contact(tenant, "ada@example.com").await;
    assert!(h.try_contact(other, "ada@example.com").await.is_ok());
}
