//! A field that may be left out.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::error::Issue;
use crate::input::json::Json;
use crate::input::{ApplyField, FromJson};

/// A body field that may be left out: absent keeps what is there (RFC 7396). `null` is for `T` to judge,
/// so `Patch<Option<Text<300>>>` can be cleared and `Patch<Email>` cannot.
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
    /// Puts a sent value in place of `target`.
    pub fn apply(self, target: &mut T) {
        if let Self::Set(value) = self {
            *target = value;
        }
    }

    /// The sent value, or `default`.
    pub fn unwrap_or(self, default: T) -> T {
        match self {
            Self::Keep => default,
            Self::Set(value) => value,
        }
    }

    /// The sent value, if any.
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
