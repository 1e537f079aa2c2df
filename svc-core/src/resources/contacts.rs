//! Contacts: people and companies (`docs/contract.md`, "Contacts").

use std::ops::Range;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::accounts::clocks::WriteTime;
use crate::accounts::platform_keys::Area;
use crate::accounts::tenants::Tenant;
use crate::error::Error;
use crate::input::{Apply, Input, Record};
use crate::operation::{OperationText, Profile};
use crate::pages::{CursorScope, ListParams, ListQuery, Order, Page};
use crate::resources::{BusinessRecord, Create, Delete, Filter, NewRecord, Resource, Update, crud, text};
use crate::store::{RecordsOfContact, Repository, Tx};
use crate::values::EventKind;
use crate::values::{Email, Id, Patch, RecordKind, TenantId, Text, TextEnum, TimeZone, Timestamp};

/// The id of a contact.
pub type ContactId = Id<Contact>;

/// The texts that the operations have in common.
const PROFILE: Profile = Profile {
    area: Area::Records,
    memory: 1,
    with_article: "a contact",
    singular: "contact",
    plural: "contacts",
    list: OperationText::new(
        "listContacts",
        "Deleted contacts are left out, unless you set `include_deleted` to true.",
    ),
    get: "getContact",
    create: OperationText::new(
        "createContact",
        "Creates a contact. If another contact of the account has the email address, the request fails with 409 \
         `email_taken`, and `existing_id` in the response is the id of that contact.",
    ),
    update: OperationText::new(
        "updateContact",
        "If another contact has the new email address, the request fails with 409 `email_taken`.",
    ),
    delete: OperationText::new(
        "deleteContact",
        "Deletes a contact. Its email address can then be used by another contact. Records that refer to the contact \
         keep their `contact_id`. A deleted contact cannot be restored.",
    ),
};

/// A contact: a person or company that the business deals with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Record, Resource)]
#[resource(collection = "contacts", filter = ContactFilter, profile = PROFILE, soft_delete)]
#[record(input)]
pub struct Contact {
    /// The unique identifier of the contact, a UUID of version 7 that the service assigns.
    pub id: ContactId,
    /// The email address, as it was sent. No two contacts of an account have the same address, ignoring case, unless
    /// the operator allows it for the account. Null if an update cleared it, or if the contact was imported without
    /// one.
    pub email: Option<Email>,
    /// The given name. Null if it is not known.
    pub first_name: Option<Text<300>>,
    /// The family name. Null if it is not known.
    pub last_name: Option<Text<300>>,
    /// The telephone number, as it was sent. Null if it is not known.
    pub phone: Option<Text<50>>,
    /// The name of the company that the contact is or works for. Null if there is none.
    pub company_name: Option<Text<500>>,
    /// The town or city of the address. Null if it is not known.
    pub city: Option<Text<100>>,
    /// The state or province of the address. Null if it is not known.
    pub state: Option<Text<100>>,
    /// The postal code of the address. Null if it is not known.
    pub postcode: Option<Text<20>>,
    /// When the contact was created. Unique among the account's contacts.
    pub created_at: Timestamp,
    /// When the contact last changed. Equal to `created_at` until then, and unique among the account's contacts.
    pub updated_at: Timestamp,
    /// When the contact was deleted. The field is present on deleted contacts only. Lists contain them when
    /// `include_deleted` is `true`; GET by id does not find them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[record(schema = Timestamp)]
    pub deleted_at: Option<Timestamp>,
    /// How far the [erasure](crate::personal::erase) of the contact has come. `None` while none is under way.
    #[serde(skip)]
    pub erasure: Option<ErasurePosition>,
}

#[async_trait]
impl BusinessRecord for Contact {
    const KIND: RecordKind = RecordKind::Contact;
    const PERSONAL: &'static [&'static str] =
        &["email", "first_name", "last_name", "phone", "company_name", "city", "state", "postcode"];

    fn every() -> ContactFilter {
        ContactFilter { include_deleted: Some(true), ..ContactFilter::none() }
    }

    fn named(text: &str) -> Option<ContactFilter> {
        let email = Email::parse(text).ok()?;
        Some(ContactFilter { email: Some(email), ..ContactFilter::none() })
    }

    fn title(&self) -> String {
        self.display_name()
    }

    fn details(&self, _: &TimeZone) -> Vec<String> {
        let name = self.display_name();
        let others = [self.email.as_ref().map(Email::as_str), text(&self.company_name), text(&self.city)];
        others.into_iter().flatten().filter(|other| *other != name).map(str::to_owned).collect()
    }

    fn searched(&self) -> Vec<Option<&str>> {
        vec![text(&self.company_name), self.email.as_ref().map(Email::as_str), self.phone(), text(&self.city)]
    }

    /// Returns the name with the family name first.
    fn other_name(&self) -> Option<String> {
        let names = text(&self.last_name).zip(text(&self.first_name));
        names.map(|(last, first)| format!("{last} {first}"))
    }

    fn phone(&self) -> Option<&str> {
        text(&self.phone)
    }

    async fn check_others(&self, tx: &mut dyn Tx, tenant: &Tenant) -> Result<(), Error> {
        let must_differ = tenant.unique_contact_email && self.deleted_at.is_none();
        let Some(email) = self.email.as_ref().filter(|_| must_differ) else { return Ok(()) };
        match live_with(tx, tenant.id, email).await?.filter(|other| other.id != self.id) {
            Some(other) => Err(Error::EmailTaken { existing_id: other.id.uuid() }),
            None => Ok(()),
        }
    }
}

/// How far the erasure of a contact has come. It goes through the events of the contact, then through its jobs, and then through
/// its bookings, from the newest to the oldest, each after its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasurePosition {
    /// The part that it goes through.
    pub part: ErasurePart,
    /// The records of this part that were created at this time or later are done.
    pub records_from: Timestamp,
    /// Of the events of the next record, those at this time or later are done.
    pub events_from: Timestamp,
}

/// A part of what the erasure of a contact goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum ErasurePart {
    /// The events of the contact.
    Contact,
    /// Its jobs and their events.
    Jobs,
    /// Its bookings and their events.
    Bookings,
}

impl ErasurePosition {
    /// Returns the position at the beginning of a part.
    pub(crate) fn beginning_of(part: ErasurePart) -> Self {
        Self { part, records_from: Timestamp::MAX, events_from: Timestamp::MAX }
    }
}

/// The fields of a contact that a create and an update have in common. All of them can be null.
#[derive(Clone, Debug, Default, PartialEq, Input, Apply)]
#[apply(to = Contact)]
pub struct ContactDetails {
    /// The given name. Must be a single line. Null if there is none.
    pub first_name: Patch<Option<Text<300>>>,
    /// The family name. Must be a single line. Null if there is none.
    pub last_name: Patch<Option<Text<300>>>,
    /// The telephone number, in any notation. It is stored as sent. Must be a single line. Null if there is none.
    pub phone: Patch<Option<Text<50>>>,
    /// The name of the company that the contact is or works for. Must be a single line. Null if there is none.
    pub company_name: Patch<Option<Text<500>>>,
    /// The town or city of the address. Must be a single line. Null if there is none.
    pub city: Patch<Option<Text<100>>>,
    /// The state or province of the address. Must be a single line. Null if there is none.
    pub state: Patch<Option<Text<100>>>,
    /// The postal code of the address. Must be a single line. Null if there is none.
    pub postcode: Patch<Option<Text<20>>>,
}

/// A new contact. A field that is left out is null.
#[derive(Clone, Debug, PartialEq, Input, Apply)]
#[input(record = Contact)]
#[apply(to = Contact)]
pub struct ContactCreate {
    /// The email address. It must differ from those of all other contacts of the account, ignoring case and deleted
    /// contacts, unless the operator allows several contacts with one address.
    pub email: Email,
    /// The fields that an update has as well.
    #[input(flatten)]
    #[apply(flatten)]
    pub details: ContactDetails,
}

impl ContactCreate {
    /// Returns a contact with this email address and nothing else.
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// let ada = ContactCreate {
    ///     details: ContactDetails { first_name: Patch::Set(Some("Ada".parse()?)), ..Default::default() },
    ///     ..ContactCreate::new("ada@example.com".parse()?)
    /// };
    /// # let _ = ada;
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn new(email: Email) -> Self {
        Self { email, details: ContactDetails::default() }
    }
}

/// Changes to a contact. A field that is left out keeps its value, and null clears it. Jobs keep the name, email address
/// and telephone number that the contact had when they were created.
#[derive(Clone, Debug, Default, PartialEq, Input, Apply)]
#[input(record = Contact, patch)]
#[apply(to = Contact)]
pub struct ContactUpdate {
    /// The email address. It must differ from those of all other contacts of the account, ignoring case and deleted
    /// contacts, unless the operator allows several contacts with one address. Null clears it.
    pub email: Patch<Option<Email>>,
    /// The fields that a create has as well.
    #[input(flatten)]
    #[apply(flatten)]
    pub details: ContactDetails,
}

/// The filters of the list of contacts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Input)]
pub struct ContactFilter {
    /// Returns only contacts with this email address, ignoring case.
    pub email: Option<Email>,
    /// Whether to return deleted contacts as well, which have the field `deleted_at`. Set it to true to learn about
    /// deletions when you keep a copy in sync.
    #[input(default = false)]
    pub include_deleted: Option<bool>,
}

impl Contact {
    /// Returns what people call the contact: the name, the company or the email address, whichever comes first.
    pub fn display_name(&self) -> String {
        let names = [&self.first_name, &self.last_name].into_iter().flatten().map(Text::as_str);
        let names: Vec<&str> = names.filter(|name| !name.trim().is_empty()).collect();
        let company = self.company_name.as_ref().map(Text::as_str).filter(|name| !name.trim().is_empty());
        match names.as_slice() {
            [] => company.or(self.email.as_ref().map(Email::as_str)).unwrap_or("Unnamed contact").to_owned(),
            names => names.join(" "),
        }
    }
}

/// A record that can belong to a contact.
pub trait OfContact: BusinessRecord {
    /// Returns the repository of this resource by contact in a transaction.
    fn of_contact(tx: &mut dyn Tx) -> &mut dyn RecordsOfContact<Self>;
}

/// Returns the contact with this email that is not deleted.
pub(crate) async fn live_with(tx: &mut dyn Tx, tenant: TenantId, email: &Email) -> Result<Option<Contact>, Error> {
    let filter = ContactFilter { email: Some(email.clone()), include_deleted: None };
    let query = ListQuery { limit: 1, order: Order::NewestFirst { before: None }, filter };
    Ok(Repository::<Contact>::list(tx, tenant, &query).await?.pop())
}

/// Returns one page of the records of a contact that were created in a range of times, newest first.
///
/// # Errors
/// [`Error::InvalidCursor`] if the cursor was not returned for this contact.
pub async fn list_of<R: OfContact>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &ListParams,
    contact: ContactId,
    created: Range<Timestamp>,
) -> Result<Page<R>, Error> {
    let key = tx.cursor_key().clone();
    let scope = CursorScope::new(tenant, R::COLLECTION, None, &("of contact", contact));
    let query = params.query(&key, &scope, &())?;
    let Order::NewestFirst { before } = query.order else { return Err(Error::InvalidCursor) };
    let before = before.unwrap_or(Timestamp::MAX).min(created.end);
    let mut rows = R::of_contact(tx).records_of_contact(tenant, contact, before, query.limit).await?;
    rows.retain(|row| row.created_at() >= created.start);
    Ok(params.page(&key, &scope, rows, R::created_at, R::updated_at))
}

/// Returns one page of the records of a contact that pass a filter, newest first whatever the parameters say. A page may have
/// fewer than the limit, and even none, although there are more: it is made of as many records of the contact.
///
/// # Errors
/// [`Error::InvalidCursor`] if the cursor was not returned for this contact with the same filters.
pub async fn list_filtered<R: OfContact>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &ListParams,
    contact: ContactId,
    filter: &R::Filter,
) -> Result<Page<R>, Error> {
    let key = tx.cursor_key().clone();
    let scope = CursorScope::new(tenant, R::COLLECTION, params.updated_since, &("of contact", contact, filter));
    let newest = ListParams { updated_since: None, ..params.clone() };
    let query = newest.query(&key, &scope, &())?;
    let Order::NewestFirst { before } = query.order else { return Err(Error::InvalidCursor) };
    let before = before.unwrap_or(Timestamp::MAX);
    let rows = R::of_contact(tx).records_of_contact(tenant, contact, before, query.limit).await?;
    let mut page = newest.page(&key, &scope, rows, R::created_at, R::updated_at);
    let has_changed = |row: &R| params.updated_since.is_none_or(|since| row.updated_at() >= since.0);
    page.data.retain(|row| filter.matches(row) && has_changed(row));
    Ok(page)
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
        let mut contact = Self { id: new.id.into(), created_at: new.now, updated_at: new.now, ..Self::default() };
        input.apply_to(&mut contact);
        Ok(contact)
    }

    fn created_events(&self) -> Vec<EventKind> {
        vec![EventKind::ContactCreated]
    }
}

#[async_trait]
impl Update for Contact {
    type Input = ContactUpdate;

    fn apply(&mut self, change: ContactUpdate, _at: WriteTime) -> Result<(), Error> {
        change.apply_to(self);
        Ok(())
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }

    async fn check(&mut self, tx: &mut dyn Tx, tenant: TenantId, before: &Self) -> Result<(), Error> {
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

/// Returns the contact that another record refers to by its `contact_id`.
///
/// # Errors
/// [`Error::ReferenceNotFound`] if the tenant has no such contact, or it is deleted.
pub async fn referenced(tx: &mut dyn Tx, tenant: TenantId, id: ContactId) -> Result<Contact, Error> {
    crud::get(tx, tenant, id).await.map_err(|error| match error {
        Error::NotFound => Error::ReferenceNotFound("contact_id"),
        other => other,
    })
}

/// Checks that no other contact has this email, unless the tenant allows that. The writes of one tenant run one after
/// the other, so an email that is free here is free until the commit.
async fn check_email_is_free(tx: &mut dyn Tx, tenant: TenantId, email: &Email) -> Result<(), Error> {
    let Some(contact) = tx.contact_with_email(tenant, email).await? else { return Ok(()) };
    let tenant = tx.tenant(tenant).await?.ok_or(Error::NotFound)?;
    if tenant.unique_contact_email { Err(Error::EmailTaken { existing_id: contact.uuid() }) } else { Ok(()) }
}
