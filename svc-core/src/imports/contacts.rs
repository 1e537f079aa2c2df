//! The import of contacts.

use std::borrow::Cow;

use async_trait::async_trait;
use serde_json::Value;

use super::batch::ImportRecord;
use super::identity::{self, Identity};
use super::import::{Import, ImportOptions, Imported, differing, digest};
use super::texts;
use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::accounts::tenants::Tenant;
use crate::error::{Error, FieldCode, Issue};
use crate::input::{Apply as _, Body, FieldNames as _, Input};
use crate::resources::contacts::{self, Contact, ContactFilter, ContactId, ContactUpdate};
use crate::resources::{Resource as _, Update};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{Email, Patch, TenantId, Timestamp};
use crate::webhooks::events;

/// A contact that was created elsewhere. A field that is left out is not compared with an existing contact, and is null
/// on a new one.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(record = Contact)]
pub struct ContactImport {
    /// The `id` of the contact: a UUID of version 7, as exports have it. Without it, one is assigned.
    pub id: Option<ContactId>,
    /// The fields that an update has.
    #[input(flatten)]
    pub change: ContactUpdate,
    /// When the contact was created. With an `id`, it can only be the time in it.
    pub created_at: Option<Timestamp>,
    /// Ignored, so that exports can be imported: the contact changes with its import.
    pub updated_at: Option<Timestamp>,
}

impl ContactImport {
    /// Returns the email address, if the row has one.
    fn email(&self) -> Option<&Email> {
        match &self.change.email {
            Patch::Set(email) => email.as_ref(),
            Patch::Keep => None,
        }
    }

    /// Returns the values of the row for its digest, null where the row has none.
    fn values(&self) -> Vec<Option<String>> {
        let mut contact = Contact::default();
        self.change.clone().apply_to(&mut contact);
        // A record always serialises.
        let json = serde_json::to_value(&contact).unwrap_or_default();
        let text = |name: &&str| json.get(*name).and_then(Value::as_str).map(str::to_owned);
        let mut values: Vec<_> = ContactUpdate::FIELD_NAMES.iter().map(text).collect();
        values.push(self.created_at.map(|at| at.to_string()));
        values
    }
}

#[async_trait]
impl Import for Contact {
    const KIND: &'static str = Self::COLLECTION;
    const EVENT: Option<EventKind> = Some(EventKind::ContactCreated);
    type Row = ContactImport;
    const NUMBERS: &'static [&'static str] = &[];
    const REQUIRED: &'static [&'static str] = &[];

    fn content(row: &ContactImport, unique_email: bool) -> Option<[u8; 32]> {
        let by_email = row.email().is_some() && unique_email;
        (row.id.is_none() && !by_email).then(|| digest("contact", &row.values()))
    }

    fn to_record(row: &ContactImport) -> ImportRecord {
        ImportRecord::written(&Body(row))
    }

    async fn put(
        tx: &mut dyn Tx,
        tenant: &Tenant,
        row: ContactImport,
        before: u32,
        options: ImportOptions,
    ) -> Result<Imported, Error> {
        let now = advance_clock(tx, tenant.id).await?;
        let values = row.values().into_iter().map(|text| text.map(Cow::Owned));
        texts::check(ContactUpdate::FIELD_NAMES.iter().copied().zip(values))?;
        if row.id.is_none() && row.values().iter().all(Option::is_none) {
            return Err(Issue::new(FieldCode::Required, "is required, or another field that is not empty").on("email"));
        }
        let unfiltered = || ContactFilter { email: None, include_deleted: Some(true) };
        let by_email = match row.email().filter(|_| tenant.unique_contact_email) {
            Some(email) => contacts::live_with(tx, tenant.id, email).await?,
            None => None,
        };
        let identity = match (row.id, by_email) {
            (Some(id), by_email) => {
                let identity = identity::by_id(tx, tenant.id, (id, row.created_at), unfiltered(), now).await?;
                match (&identity, by_email) {
                    (Identity::New(..), Some(other)) => return Err(Error::EmailTaken { existing_id: other.id.uuid() }),
                    // `check` refuses an update to the email of another contact.
                    _ => identity,
                }
            }
            (None, Some(contact)) => Identity::Existing(contact),
            (None, None) if row.email().is_some() && tenant.unique_contact_email && row.created_at.is_none() => {
                Identity::New(tx.env().id(now), now)
            }
            (None, None) => {
                let content = digest("contact", &row.values());
                identity::by_content(tx, tenant, (content, before), row.created_at, unfiltered(), now).await?
            }
        };
        match identity {
            Identity::Existing(contact) => compare_or_update(tx, tenant.id, contact, row, options, now).await,
            Identity::New(id, created_at) => {
                // No other contact has its email, or the row would have been recognised by it; and `advance_clock` has
                // locked the tenant since.
                let mut contact = Contact { id, created_at, updated_at: now, ..Contact::default() };
                contact.apply(row.change, WriteTime::new(tx, now))?;
                Repository::<Contact>::insert(tx, tenant.id, &contact).await?;
                if options.events {
                    events::emit(tx, tenant.id, now, &[EventKind::ContactCreated], &contact).await?;
                }
                Ok(Imported::Added)
            }
        }
    }
}

/// Compares a row with its contact, and updates the contact if the options say so.
async fn compare_or_update(
    tx: &mut dyn Tx,
    tenant: TenantId,
    contact: Contact,
    row: ContactImport,
    options: ImportOptions,
    now: Timestamp,
) -> Result<Imported, Error> {
    let id = contact.id;
    if contact.deleted_at.is_some() {
        return Err(Error::NotAllowed(format!("The contact {id} of this row was deleted; it stays so.")));
    }
    let mut changed = contact.clone();
    changed.apply(row.change, WriteTime::new(tx, now))?;
    let key = |contact: &Contact| contact.email.as_ref().map(Email::key);
    if !options.update && key(&changed) == key(&contact) {
        // An address that differs in case only is no difference. An update takes it as it is written in the row.
        changed.email.clone_from(&contact.email);
    }
    if changed == contact {
        return Ok(Imported::Unchanged);
    }
    if !options.update {
        return Ok(Imported::Differs { id: id.uuid(), fields: differing(&contact, &changed) });
    }
    changed.check(tx, tenant, &contact).await?;
    changed.set_updated_at(now);
    Repository::<Contact>::update(tx, tenant, &changed).await?;
    if options.events {
        events::emit(tx, tenant, now, &changed.changed_events(&contact), &changed).await?;
    }
    Ok(Imported::Updated)
}
