//! Inputs that operations share: none, and that of a list.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeMap;

use crate::input::schema::{self, FieldSchema};
use crate::input::{Fields, Input, ToBody};

/// No input.
impl Input for () {
    fn take(_: &mut Fields) -> Option<Self> {
        Some(())
    }
}

impl ToBody for () {
    fn write_fields<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

/// The query of a list: its page, and its filters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Listing<P, F> {
    /// The page.
    pub page: P,
    /// The filters.
    pub filter: F,
}

impl<P: Input, F: Input> Input for Listing<P, F> {
    fn take(fields: &mut Fields) -> Option<Self> {
        let (page, filter) = (P::take(fields), F::take(fields));
        Some(Self { page: page?, filter: filter? })
    }

    fn field_schemas(generator: &mut SchemaGenerator) -> Vec<FieldSchema> {
        let mut schemas = P::field_schemas(generator);
        schemas.extend(F::field_schemas(generator));
        schemas
    }
}

impl<P: ToBody, F: ToBody> ToBody for Listing<P, F> {
    fn write_fields<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        self.page.write_fields(object)?;
        self.filter.write_fields(object)
    }
}

impl<P: Input, F: Input> JsonSchema for Listing<P, F> {
    fn schema_name() -> Cow<'static, str> {
        "Listing".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::input("The query of a list.", false, Self::field_schemas(generator))
    }
}
