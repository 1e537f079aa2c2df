//! The data of an account about a person, as the laws on privacy ask for it: [`page`] returns it, and [`erase`] empties it.
//!
//! A contact is the person. Jobs copy its name, address and number when they are made; bookings have notes about it; events
//! copy contacts, jobs and bookings as they were, and receivers may send an event back in their responses. [`erase`] empties all
//! of that, and leaves the skeletons: ids, numbers, statuses, amounts and times.
//!
//! # What is not found
//!
//! A title and the name of a service are words of the business, and stay. So does what an application put into events of its
//! own kinds. Responses that are kept for repeated requests are encrypted, and stay for as long as they are kept. The log of
//! requests has the paths that programs asked for, with whatever they put into them, for as long as it is kept.

mod data;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::clocks::advance_clock;
use crate::error::{Error, StoreError};
use crate::find;
use crate::input::{Input, Record};
use crate::resources::bookings::Booking;
use crate::resources::contacts::{Contact, ContactId, ErasurePart, ErasurePosition, OfContact};
use crate::resources::jobs::Job;
use crate::resources::{BusinessRecord, Update};
use crate::store::{self, EventFilter, Repository, Tx};
use crate::values::{EventKind, TenantId, Text, Timestamp};
use crate::webhooks::events;

pub use self::data::{ContactData, ContactDataParams, MAX_PAYMENTS, page};

/// How many records and events one step of [`erase`] looks at, at most.
pub const STEP: u32 = 100;

/// Why a contact is erased.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct ErasureCreate {
    /// Why the contact is erased, for the audit log, which keeps it: `asked by letter on 3 March`. Must be a single line. Name
    /// nobody in it.
    pub reason: Text<500>,
}

/// The rows that one step of an erasure has emptied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct Erasure {
    /// The number of contacts: 1 in the first step.
    pub contacts: u32,
    /// The number of jobs of the contact.
    pub jobs: u32,
    /// The number of bookings of the contact.
    pub bookings: u32,
    /// The number of events.
    pub events: u32,
    /// Whether nothing is left. If something is, erase the contact again.
    pub is_complete: bool,
}

impl Erasure {
    /// Returns what this step and the next one have emptied.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self {
            contacts: self.contacts + next.contacts,
            jobs: self.jobs + next.jobs,
            bookings: self.bookings + next.bookings,
            events: self.events + next.events,
            is_complete: next.is_complete,
        }
    }
}

/// Returns a record without its personal fields.
fn erased<R: BusinessRecord>(record: &R) -> Result<R, StoreError> {
    let erased = without(&to_raw_value(record).map_err(damaged)?, R::PERSONAL)?;
    erased.map_or_else(|| Ok(record.clone()), |erased| serde_json::from_str(erased.get()).map_err(damaged))
}

/// Takes a step that erases a contact, which may be deleted already. The first step deletes it and fires `contact.deleted` with
/// its id alone. A step of a contact of which nothing is left changes nothing.
///
/// A step looks at [`STEP`] records and events at most, whatever the contact has, and the contact keeps the position at which the
/// next one goes on. Once one was the last, another begins anew, so it finds what was added since.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn erase(tx: &mut dyn Tx, tenant: TenantId, id: ContactId, input: &ErasureCreate) -> Result<Erasure, Error> {
    let now = advance_clock(tx, tenant).await?;
    let before = Repository::<Contact>::get(tx, tenant, id).await?.ok_or(Error::NotFound)?;
    let position = before.erasure.unwrap_or(ErasurePosition::beginning_of(ErasurePart::Contact));
    let mut step = Step { tenant, contact: id, position, left: STEP, done: Erasure::default() };
    let mut erased = Contact { erasure: before.erasure, ..erased(&before)? };
    erased.deleted_at = erased.deleted_at.or(Some(now));
    if erased != before {
        erased.updated_at = now;
        Repository::<Contact>::update(tx, tenant, &erased).await?;
        find::index_record(tx, tenant, &erased).await?;
        let part = json!({ "id": id });
        events::emit_part(tx, tenant, now, EventKind::ContactDeleted, &before, &part).await?;
        step.done.contacts = 1;
    }
    let is_complete = step.take(tx).await?;
    let erasure = (!is_complete).then_some(step.position);
    if erasure != before.erasure {
        Repository::<Contact>::update(tx, tenant, &Contact { erasure, ..erased }).await?;
    }
    let done = Erasure { is_complete, ..step.done };
    if step.done != Erasure::default() {
        let after =
            json!({ "reason": input.reason, "jobs": done.jobs, "bookings": done.bookings, "events": done.events });
        let object = Object { kind: "contact", id: id.uuid() };
        audit::record(tx, tenant, AuditAction::Erase, object, None, Some(&after)).await?;
    }
    Ok(done)
}

/// A step of an erasure.
struct Step {
    tenant: TenantId,
    contact: ContactId,
    position: ErasurePosition,
    /// How many records and events can yet be looked at.
    left: u32,
    done: Erasure,
}

impl Step {
    /// Goes on from the position until nothing is left or the step is full. Returns whether nothing is left.
    async fn take(&mut self, tx: &mut dyn Tx) -> Result<bool, Error> {
        loop {
            let next = match self.position.part {
                ErasurePart::Contact => {
                    let is_done = self.erase_events(tx, self.contact.uuid(), Contact::PERSONAL).await?;
                    is_done.then_some(Some(ErasurePart::Jobs))
                }
                ErasurePart::Jobs => {
                    let (jobs, is_done) = self.erase_records::<Job>(tx).await?;
                    self.done.jobs += jobs;
                    is_done.then_some(Some(ErasurePart::Bookings))
                }
                ErasurePart::Bookings => {
                    let (bookings, is_done) = self.erase_records::<Booking>(tx).await?;
                    self.done.bookings += bookings;
                    is_done.then_some(None)
                }
            };
            match next {
                Some(Some(part)) => self.position = ErasurePosition::beginning_of(part),
                Some(None) => return Ok(true),
                None => return Ok(false),
            }
        }
    }

    /// Erases the next records of the contact, each after its events. Returns how many there were, and whether none is left.
    async fn erase_records<R: OfContact + Update>(&mut self, tx: &mut dyn Tx) -> Result<(u32, bool), Error> {
        let mut count = 0;
        while self.left > 0 {
            let (before, limit) = (self.position.records_from, self.left);
            let page = R::of_contact(tx).records_of_contact(self.tenant, self.contact, before, limit).await?;
            let is_last = page.len() < limit as usize;
            for record in page {
                if !self.erase_events(tx, record.id().uuid(), R::PERSONAL).await? {
                    return Ok((count, false));
                }
                let mut erased = erased(&record)?;
                if erased != record {
                    // No two records of an account change at the same time.
                    erased.set_updated_at(advance_clock(tx, self.tenant).await?);
                    R::repository(tx).update(self.tenant, &erased).await?;
                    find::index_record(tx, self.tenant, &erased).await?;
                    count += 1;
                }
                self.left -= 1;
                self.position.records_from = record.created_at();
                self.position.events_from = Timestamp::MAX;
            }
            if is_last {
                return Ok((count, true));
            }
        }
        Ok((count, false))
    }

    /// Erases the fields in the next events of a record, and what receivers responded to them. Returns whether none is left.
    async fn erase_events(&mut self, tx: &mut dyn Tx, record: Uuid, fields: &[&str]) -> Result<bool, Error> {
        while self.left > 0 {
            let (until, limit) = (self.position.events_from, self.left);
            let page = tx.list_events(self.tenant, &EventFilter::of_record(record, until, limit)).await?;
            let is_last = !store::is_cut(page.iter().map(|found| &found.event), limit);
            for mut event in page.into_iter().map(|found| found.event) {
                self.left -= 1;
                self.position.events_from = event.created_at;
                let Some(data) = without(&event.data, fields)? else { continue };
                // An attempt that was under way may have stored a response since the event was emptied.
                let responses = tx.delete_responses_to(self.tenant, event.id).await?;
                if data.get() != event.data.get() {
                    event.data = data;
                    tx.replace_event_data(&event).await?;
                } else if responses == 0 {
                    continue;
                }
                self.done.events += 1;
            }
            if is_last {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns a record with null in place of these fields, or `None` if it has none of them.
fn without(data: &RawValue, fields: &[&str]) -> Result<Option<Box<RawValue>>, StoreError> {
    let mut record: serde_json::Map<String, Value> = serde_json::from_str(data.get()).map_err(damaged)?;
    let mut has_any = false;
    for field in fields {
        if let Some(value) = record.get_mut(*field) {
            *value = Value::Null;
            has_any = true;
        }
    }
    Ok(if has_any { Some(to_raw_value(&record).map_err(damaged)?) } else { None })
}

fn damaged(error: serde_json::Error) -> StoreError {
    StoreError::Internal(format!("the JSON of a record: {error}"))
}
