//! Contacts: people and companies (contract, "Contact").

use async_trait::async_trait;
use serde::Serialize;
use uuid::Uuid;

use crate::error::Error;
use crate::input::{input, record};
use crate::resources::crud::{self, Create, Delete, Filter, NewRecord, Update, resource};
use crate::resources::pages::{ListQuery, Order};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{Email, Patch, TenantId, Text, Timestamp};

record! {
    /// A person or company that the business deals with.
    pub struct Contact {
        /// Identifier.
        pub id: Uuid,
        /// Email address as given; unique among live contacts without regard to case.
        pub email: Option<Email>,
        /// Given name.
        pub first_name: Option<Text<300>>,
        /// Family name.
        pub last_name: Option<Text<300>>,
        /// Telephone number as given.
        pub phone: Option<Text<50>>,
        /// Company.
        pub company_name: Option<Text<500>>,
        /// Town or city.
        pub city: Option<Text<100>>,
        /// State or province.
        pub state: Option<Text<100>>,
        /// Postal code.
        pub postcode: Option<Text<20>>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
        /// When it was deleted; present only on deleted contacts, which lists leave out unless `include_deleted=true`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Timestamp")]
        pub deleted_at: Option<Timestamp>,
    }
}

resource!(Contact, "contacts", ContactFilter, deleted: deleted_at);

input! {
    /// A new contact.
    pub struct ContactCreate for Contact {
        /// Email address; no other live contact may have it.
        email: Email,
        /// Given name.
        first_name: Option<Text<300>>,
        /// Family name.
        last_name: Option<Text<300>>,
        /// Telephone number.
        phone: Option<Text<50>>,
        /// Company.
        company_name: Option<Text<500>>,
        /// Town or city.
        city: Option<Text<100>>,
        /// State or province.
        state: Option<Text<100>>,
        /// Postal code.
        postcode: Option<Text<20>>,
    }
}

input! {
    /// Changes to a contact: what is left out stays, null clears.
    pub struct ContactUpdate for Contact, patch true {
        /// Email address; no other live contact may have it.
        email: Patch<Option<Email>>,
        /// Given name.
        first_name: Patch<Option<Text<300>>>,
        /// Family name.
        last_name: Patch<Option<Text<300>>>,
        /// Telephone number.
        phone: Patch<Option<Text<50>>>,
        /// Company.
        company_name: Patch<Option<Text<500>>>,
        /// Town or city.
        city: Patch<Option<Text<100>>>,
        /// State or province.
        state: Patch<Option<Text<100>>>,
        /// Postal code.
        postcode: Patch<Option<Text<20>>>,
    }
}

input! {
    /// Filters of the list of contacts.
    pub struct ContactFilter, derive Serialize {
        /// Exactly this email address, without regard to case.
        email: Option<Email>,
        /// Also deleted contacts, with `deleted_at`.
        include_deleted: Option<bool> = false,
    }
}

impl Filter<Contact> for ContactFilter {
    fn none() -> Self {
        Self { email: None, include_deleted: None }
    }

    fn matches(&self, row: &Contact) -> bool {
        let key = |email: &Email| email.key();
        (self.email.is_none() || self.email.as_ref().map(key) == row.email.as_ref().map(key))
            && (self.include_deleted == Some(true) || row.deleted_at.is_none())
    }
}

#[async_trait]
impl Create for Contact {
    type Input = ContactCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: ContactCreate) -> Result<Self, Error> {
        check_email_is_free(tx, new.tenant_id, &input.email).await?;
        Ok(Self {
            id: new.id,
            email: Some(input.email),
            first_name: input.first_name,
            last_name: input.last_name,
            phone: input.phone,
            company_name: input.company_name,
            city: input.city,
            state: input.state,
            postcode: input.postcode,
            created_at: new.now,
            updated_at: new.now,
            deleted_at: None,
        })
    }

    fn created_events(&self) -> Vec<EventKind> {
        vec![EventKind::ContactCreated]
    }
}

#[async_trait]
impl Update for Contact {
    type Input = ContactUpdate;

    fn apply(&mut self, change: ContactUpdate, _now: Timestamp) -> Result<(), Error> {
        change.email.apply(&mut self.email);
        change.first_name.apply(&mut self.first_name);
        change.last_name.apply(&mut self.last_name);
        change.phone.apply(&mut self.phone);
        change.company_name.apply(&mut self.company_name);
        change.city.apply(&mut self.city);
        change.state.apply(&mut self.state);
        change.postcode.apply(&mut self.postcode);
        Ok(())
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }

    async fn check(&self, tx: &mut dyn Tx, tenant: TenantId, before: &Self) -> Result<(), Error> {
        let key = |contact: &Self| contact.email.as_ref().map(Email::key);
        match &self.email {
            Some(email) if key(self) != key(before) => check_email_is_free(tx, tenant, email).await,
            _ => Ok(()),
        }
    }

    fn changed_events(&self, _before: &Self) -> Vec<EventKind> {
        vec![EventKind::ContactUpdated]
    }
}

#[async_trait]
impl Delete for Contact {
    fn mark_deleted(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.deleted_at = Some(now);
    }

    fn deleted_events(&self) -> Vec<EventKind> {
        vec![EventKind::ContactDeleted]
    }
}

/// The live contact that another record is to refer to.
///
/// # Errors
/// [`Error::ReferenceNotFound`] on `contact_id`.
pub async fn referenced(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Contact, Error> {
    crud::get(tx, tenant, id).await.map_err(|error| match error {
        Error::NotFound => Error::ReferenceNotFound("contact_id"),
        other => other,
    })
}

/// Writes of one tenant happen one after the other, so what is free here stays free until the commit.
async fn check_email_is_free(tx: &mut dyn Tx, tenant: TenantId, email: &Email) -> Result<(), Error> {
    let filter = ContactFilter { email: Some(email.clone()), include_deleted: None };
    let listing = ListQuery { limit: 1, order: Order::NewestFirst { before: None }, filter };
    let taken = Repository::<Contact>::list(tx, tenant, &listing).await?;
    let Some(contact) = taken.first() else { return Ok(()) };
    let tenant = tx.tenant(tenant).await?.ok_or(Error::NotFound)?;
    if tenant.unique_contact_email { Err(Error::EmailTaken { existing_id: contact.id }) } else { Ok(()) }
}
