//! Ids of records and tenants, and the form of UUIDs.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::error::{FieldCode, Issue};

/// The id of the account that a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct TenantId(pub Uuid);

impl From<Uuid> for TenantId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl FromStr for TenantId {
    type Err = Issue;

    /// Reads an id as [`parse_uuid`] does.
    fn from_str(text: &str) -> Result<Self, Issue> {
        parse_uuid(text).map(Self)
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a record of type `T`, a UUID. The id of a contact cannot be passed where that of an invoice is wanted.
///
/// Each kind of record has an alias, such as [`ContactId`](crate::resources::contacts::ContactId).
///
/// # Examples
///
/// ```
/// use svc_core::resources::contacts::ContactId;
///
/// let id: ContactId = "0195a3c8-0000-7000-8000-000000000001".parse()?;
/// assert_eq!(id.to_string(), "0195a3c8-0000-7000-8000-000000000001");
/// assert_eq!(ContactId::new(id.uuid()), id);
/// # Ok::<(), svc_core::error::Issue>(())
/// ```
pub struct Id<T>(Uuid, PhantomData<fn() -> T>);

impl<T> Id<T> {
    /// Returns the id with this UUID.
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }

    /// Returns the id with all bits zero, which is before all others and never that of a record.
    pub const fn nil() -> Self {
        Self::new(Uuid::nil())
    }

    /// Returns the id with all bits set, which is after all others and never that of a record.
    pub const fn max() -> Self {
        Self::new(Uuid::max())
    }

    /// Returns the UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

// The derives would ask the same of `T`, which is a record.
impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> Default for Id<T> {
    fn default() -> Self {
        Self::nil()
    }
}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> fmt::Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> From<Uuid> for Id<T> {
    fn from(uuid: Uuid) -> Self {
        Self::new(uuid)
    }
}

impl<T> From<Id<T>> for Uuid {
    fn from(id: Id<T>) -> Self {
        id.0
    }
}

impl<T> FromStr for Id<T> {
    type Err = Issue;

    /// Reads an id as [`parse_uuid`] does.
    fn from_str(text: &str) -> Result<Self, Issue> {
        parse_uuid(text).map(Self::new)
    }
}

impl<T> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Uuid::deserialize(deserializer).map(Self::new)
    }
}

impl<T> JsonSchema for Id<T> {
    fn inline_schema() -> bool {
        Uuid::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Uuid::schema_name()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        Uuid::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Uuid::json_schema(generator)
    }
}

/// Reads a UUID in the form that the API writes: 36 characters with hyphens, in either case.
///
/// # Errors
/// `invalid_format` for anything else, also for other spellings of a UUID.
///
/// ```
/// assert!(svc_core::values::parse_uuid("0195a3c8-0000-7000-8000-000000000001").is_ok());
/// assert!(svc_core::values::parse_uuid("{0195a3c8-0000-7000-8000-000000000001}").is_err());
/// ```
pub fn parse_uuid(text: &str) -> Result<Uuid, Issue> {
    Some(text).filter(|text| text.len() == 36).and_then(|text| Uuid::try_parse(text).ok()).ok_or_else(|| {
        Issue::new(FieldCode::InvalidFormat, "must be a UUID such as 0195a3c8-0000-7000-8000-000000000001")
    })
}
