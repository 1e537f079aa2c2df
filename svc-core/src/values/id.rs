//! The id of a tenant, and the form of UUIDs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;

/// The id of a tenant, the business account that a record belongs to.
///
/// It is a type of its own so that no other id can be passed to a store in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct TenantId(pub Uuid);

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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

impl FromJson for Uuid {
    fn from_json(json: Json) -> Result<Self, Issue> {
        parse_uuid(&json.into_string()?)
    }
}
