//! The view that a client has of an output.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// Writes an output as a client sees it.
pub(super) trait View<O>: Send + Sync {
    fn write(&self, output: O, is_wrapped: bool) -> Result<Vec<u8>, serde_json::Error>;

    fn schema(&self, is_wrapped: bool, generator: &mut SchemaGenerator) -> Schema;
}

/// An output in another form.
pub(crate) struct Viewed<O, S>(pub(crate) fn(O) -> S);

impl<O, S: Serialize + JsonSchema> View<O> for Viewed<O, S> {
    fn write(&self, output: O, is_wrapped: bool) -> Result<Vec<u8>, serde_json::Error> {
        let data = self.0(output);
        if is_wrapped { serde_json::to_vec(&Data { data }) } else { serde_json::to_vec(&data) }
    }

    fn schema(&self, is_wrapped: bool, generator: &mut SchemaGenerator) -> Schema {
        if is_wrapped { generator.subschema_for::<Data<S>>() } else { generator.subschema_for::<S>() }
    }
}

/// A response body with a single record.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Response")]
struct Data<T> {
    /// The record that the operation returns.
    data: T,
}
