//! The records of the API: contacts, invoices, quotes, bookings and jobs.
//!
//! The module of a resource has what is particular to it: its fields, its rules and its events. It implements [`Resource`],
//! and [`Create`], [`Update`] and [`Delete`] as far as clients may do that. The code that all of them share is in [`crud`]
//! (get, list, create, update, delete). Those that a business keeps are a [`BusinessRecord`], and [`kinds`] does something for
//! every kind of them. CONTRIBUTING.md describes how to add a field or a resource.

pub mod bookings;
pub mod contacts;
pub mod conversions;
pub mod crud;
pub mod invoices;
pub mod jobs;
pub mod kinds;
pub mod quotes;
pub mod starts;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
pub use svc_derive::Resource;
use uuid::Uuid;

use crate::accounts::clocks::WriteTime;
use crate::accounts::grants::GrantId;
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::error::{Error, Issue};
use crate::input::{Fields, Input, ToBody};
use crate::operation::{Operation, Outside, Profile, Target};
use crate::store::{Repository, Tx};
use crate::values::{Amount, EventKind, Id, RecordKind, TenantId, Text, TimeZone, Timestamp};

/// A record with a collection of its own. `#[derive(Resource)]` implements it.
pub trait Resource: Serialize + JsonSchema + Clone + PartialEq + Send + Sync + 'static {
    /// The segment in the path, such as `contacts`.
    const COLLECTION: &'static str;

    /// The texts that its operations have in common.
    const PROFILE: &'static Profile;

    /// The query parameters of its list, besides those that every list has.
    type Filter: Filter<Self>;

    /// The kind of object in the audit log. `None` if changes are not recorded there, as their events tell of them.
    const AUDITED: Option<&'static str> = None;

    /// Whether an app sees only the records that it made.
    const OWN_ONLY: bool = false;

    /// Whether every change of a record changes its `updated_at`, so that the two name a version of it.
    const VERSIONED: bool = true;

    /// Returns the id.
    fn id(&self) -> Id<Self>;
    /// Returns when the record was created: its position in lists, unique within the tenant.
    fn created_at(&self) -> Timestamp;
    /// Returns when the record last changed: its position in lists with `updated_since`, unique within the tenant.
    fn updated_at(&self) -> Timestamp;
    /// Returns when the record was deleted. Always `None` for a resource without soft deletion.
    fn deleted_at(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the grant of the app that the record belongs to, which sees no others of this resource. Always `None` for a
    /// resource whose records all belong to the account.
    fn grant_id(&self) -> Option<GrantId> {
        None
    }

    /// Returns the repository of this resource in a transaction.
    fn repository(tx: &mut dyn Tx) -> &mut dyn Repository<Self>;
}

impl<K, I, R> Operation<K, I, R>
where
    K: Target,
    I: Input + Clone,
    R: Resource,
{
    /// Adds the ETag of the version of the record.
    #[must_use]
    pub(crate) const fn with_version(self) -> Self {
        self.with_version_of(|record| R::VERSIONED.then(|| (record.id().uuid(), record.updated_at())))
    }

    /// Responds with 201, the path of the record, and the ETag of its version.
    #[must_use]
    pub(crate) const fn creates_version(self) -> Self {
        self.creating(|record| record.id().uuid()).with_version()
    }
}

/// A resource of a [`RecordKind`]: what searches, exports, imports and erasures need to know of it.
#[async_trait]
pub trait BusinessRecord: Resource + Input + DeserializeOwned {
    /// The kind of the records.
    const KIND: RecordKind;

    /// The fields with personal data, which an erasure empties. Each can be null.
    const PERSONAL: &'static [&'static str] = &[];

    /// Returns the filter that every record passes, deleted ones included.
    fn every() -> Self::Filter {
        Self::Filter::none()
    }

    /// Returns the id of the contact that the record belongs to.
    fn contact(&self) -> Option<Uuid> {
        None
    }

    /// Returns the series of the record's number, the name of the field, and the number.
    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        None
    }

    /// Returns the filter of the records that a text names as a whole, by a number or an email address.
    fn named(text: &str) -> Option<Self::Filter> {
        let _ = text;
        None
    }

    /// Returns what people call the record.
    fn title(&self) -> String;

    /// Returns what tells the record from others with this title, with times in the time zone of the account. The contact that
    /// it belongs to is not among it.
    fn details(&self, zone: &TimeZone) -> Vec<String>;

    /// Returns the fields that a search reads.
    fn searched(&self) -> Vec<Option<&str>>;

    /// Returns another name of the record that a search finds.
    fn other_name(&self) -> Option<String> {
        None
    }

    /// Returns the phone number, which a search finds by its digits as well.
    fn phone(&self) -> Option<&str> {
        None
    }

    /// Gives the amounts of a record that an export wrote the decimals of their currency, and checks the rules that need no other
    /// record.
    ///
    /// # Errors
    /// The rules that the record breaks.
    fn check(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks the rules that need other records of the same kind.
    ///
    /// # Errors
    /// The rules that the record breaks.
    async fn check_others(&self, _tx: &mut dyn Tx, _tenant: &Tenant) -> Result<(), Error> {
        Ok(())
    }
}

/// Returns the text of a field that may be null.
pub(crate) fn text<const MAX: usize>(text: &Option<Text<MAX>>) -> Option<&str> {
    text.as_ref().map(Text::as_str)
}

/// Gives the amount of a field this many decimals.
pub(crate) fn set_scale(field: &str, amount: &mut Amount, scale: u8) -> Result<(), Error> {
    *amount = amount.with_scale(scale).map_err(|error| Issue::from(error).on(field))?;
    Ok(())
}

/// The filters of a list.
pub trait Filter<R>: Input + Clone + Serialize {
    /// Returns the filter of a list without parameters: every record that is not deleted.
    fn none() -> Self;

    /// Returns whether a row passes. Stores with a query language express the same condition in it.
    fn matches(&self, row: &R) -> bool;
}

/// The filter of a list without query parameters of its own. Records that are not deleted pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NoFilter {}

impl Input for NoFilter {
    fn take(_fields: &mut Fields) -> Option<Self> {
        Some(Self {})
    }
}

impl ToBody for NoFilter {
    fn write_fields<M: SerializeMap>(&self, _object: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<R: Resource> Filter<R> for NoFilter {
    fn none() -> Self {
        Self {}
    }
    fn matches(&self, row: &R) -> bool {
        row.deleted_at().is_none()
    }
}

/// The tenant, the id and the time of a new record.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord {
    /// The tenant that the record belongs to.
    pub tenant_id: TenantId,
    /// The id of the record.
    pub id: Uuid,
    /// The `created_at` and `updated_at` of the record.
    pub now: Timestamp,
}

/// A resource that clients can create.
#[async_trait]
pub trait Create: Resource {
    /// The body of the request.
    type Input: Input;

    /// Builds the record from the body.
    ///
    /// # Errors
    /// The refusals of the rules of the resource.
    async fn build(tx: &mut dyn Tx, new: NewRecord, input: Self::Input) -> Result<Self, Error>;

    /// Returns the events of the creation, in order.
    fn created_events(&self) -> Vec<EventKind>;
}

/// A resource that clients can change.
#[async_trait]
pub trait Update: Resource {
    /// The body of the request.
    type Input: Input + Clone;

    /// Returns what of a change must be checked before it is made.
    fn outside(_change: &Self::Input) -> Outside {
        Outside::default()
    }

    /// Applies a change to the record and checks the rules that need no other record.
    ///
    /// # Errors
    /// The rules that the changed record breaks.
    fn apply(&mut self, change: Self::Input, at: WriteTime) -> Result<(), Error>;

    /// Sets the time of the change.
    fn set_updated_at(&mut self, now: Timestamp);

    /// Checks the rules that need other records, and changes those that depend on this one. It may change the record as well.
    ///
    /// # Errors
    /// The rules that the changed record breaks.
    async fn check(&mut self, _tx: &mut dyn Tx, _tenant: TenantId, _before: &Self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the events of a change, in order: the more particular kind before the general one.
    fn changed_events(&self, before: &Self) -> Vec<EventKind>;
}

/// A resource that clients can delete. Its row stays, for the records that refer to it.
#[async_trait]
pub trait Delete: Resource {
    /// Marks the record as deleted.
    fn mark_deleted(&mut self, now: Timestamp);

    /// Ends what depends on the record, such as its pending deliveries. It may change the record as well.
    async fn on_delete(&mut self, _tx: &mut dyn Tx, _tenant: TenantId) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the events of the deletion, in order.
    fn deleted_events(&self) -> Vec<EventKind>;
}
