//! Fields of a PATCH, which may be left out.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::error::Issue;
use crate::input::json::Json;
use crate::input::{ApplyField, FromJson};

/// A field of a body that keeps its value when it is left out (RFC 7396).
///
/// Whether it can be null depends on `T`: a `Patch<Option<Text<300>>>` can be cleared, a `Patch<Email>` cannot.
///
/// ```
/// use svc_core::values::Patch;
/// let mut city = "Perth";
/// Patch::Keep.apply(&mut city);
/// assert_eq!(city, "Perth");
/// Patch::Set("Hobart").apply(&mut city);
/// assert_eq!(city, "Hobart");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field was not sent.
    #[default]
    Keep,
    /// The field was sent with this value.
    Set(T),
}

impl<T> Patch<T> {
    /// Replaces `target` if a value was sent.
    pub fn apply(self, target: &mut T) {
        if let Self::Set(value) = self {
            *target = value;
        }
    }

    /// Returns the value that was sent, or `default`.
    pub fn unwrap_or(self, default: T) -> T {
        match self {
            Self::Keep => default,
            Self::Set(value) => value,
        }
    }

    /// Returns the value that was sent, or `None`.
    pub fn sent(self) -> Option<T> {
        match self {
            Self::Keep => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<T> ApplyField<T> for Patch<T> {
    fn apply_field(self, target: &mut T) {
        self.apply(target);
    }
}

impl<T: FromJson> FromJson for Patch<T> {
    fn from_json(json: Json) -> Result<Self, Issue> {
        T::from_json(json).map(Self::Set)
    }
    fn absent() -> Option<Self> {
        Some(Self::Keep)
    }
    fn is_absent(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

/// Writes the value. A field to keep is left out by [`ToBody`](crate::input::ToBody).
impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep => serializer.serialize_none(),
            Self::Set(value) => value.serialize(serializer),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
