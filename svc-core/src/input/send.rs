//! Inputs as a client sends them: the way back of [`Input`](super::Input).

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// An input that a client can send. `#[derive(Input)]` implements it.
///
/// A field that the service takes for left out is not written, so that a service that does not know the field yet
/// accepts the rest: `None` of a create, and [`Patch::Keep`](crate::values::Patch::Keep) of an update. A patch that
/// clears a field writes null.
///
/// # Examples
///
/// ```
/// use svc_core::input::{Input, ToBody};
/// use svc_core::prelude::*;
///
/// let details = ContactDetails { city: Patch::Set(None), ..Default::default() };
/// let update = ContactUpdate { email: Patch::Set(Some("ada@example.com".parse()?)), details };
/// assert_eq!(update.to_body(), br#"{"email":"ada@example.com","city":null}"#);
/// assert_eq!(ContactUpdate::from_body(&update.to_body())?, update);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ToBody {
    /// Writes the fields into an object.
    ///
    /// # Errors
    /// Those of the serializer.
    fn write_fields<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error>;

    /// Returns the input as a JSON body.
    fn to_body(&self) -> Vec<u8>
    where
        Self: Sized,
    {
        // Plain data with text keys always serialises.
        serde_json::to_vec(&Body(self)).unwrap_or_default()
    }

    /// Returns the input as the pairs of a query string.
    fn to_query(&self) -> Vec<(String, String)>
    where
        Self: Sized,
    {
        let text = |value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match serde_json::to_value(Body(self)) {
            Ok(Value::Object(fields)) => fields.into_iter().map(|(name, value)| (name, text(value))).collect(),
            _ => Vec::new(),
        }
    }
}

/// An input that serialises as the object that a client sends.
pub(crate) struct Body<'a, I>(pub(crate) &'a I);

impl<I: ToBody> Serialize for Body<'_, I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        self.0.write_fields(&mut object)?;
        object.end()
    }
}
