//! The fields of forms and of queries.

use bytes::Bytes;
use svc_core::crypto::sha256;
use svc_core::error::StoreError;

use super::page_response::PageError;

/// The number of fields of the largest form.
const MAX_FIELDS: usize = 500;
/// The size of the largest form that is read in place, in bytes. It takes 0.1 ms.
const SMALL_FORM: usize = 32 * 1024;

/// The fields of a form or of a query.
#[derive(Debug, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the fields of a form that was sent. A large one is read on a thread of its own.
    ///
    /// # Errors
    ///
    /// Returns [`PageError::Invalid`] when the form has more fields than a page can have.
    pub(super) async fn read(body: Bytes) -> Result<Self, PageError> {
        if body.iter().filter(|byte| **byte == b'&').count() >= MAX_FIELDS {
            return Err(PageError::Invalid(format!("A form has at most {MAX_FIELDS} fields.")));
        }
        if body.len() <= SMALL_FORM {
            return Ok(Self::of(&body));
        }
        let read = tokio::task::spawn_blocking(move || Self::of(&body));
        read.await.map_err(|error| PageError::Internal(StoreError::Internal(error.to_string())))
    }

    /// Reads fields that are encoded as `application/x-www-form-urlencoded`.
    pub(super) fn of(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns a form with these fields.
    pub(super) fn from_fields(fields: Vec<(&str, String)>) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns the value of a field without the spaces around it. A field that was not sent is empty.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim())
    }

    /// Returns all values of a field, in their order.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns those of these fields that are not empty, encoded as a query.
    pub(super) fn encoded(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some((name, self.given(name)?)));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
    }

    /// Returns all fields but these in the encoding of forms.
    pub(super) fn encoded_without(&self, names: &[&str]) -> String {
        let others = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish()
    }

    /// Returns a digest of all fields: the version of what a form shows that has no version of its own.
    pub(super) fn digest(&self) -> String {
        hex::encode(sha256(self.encoded_without(&[]).as_bytes()))
    }

    /// Returns the value of a field that was sent and is not empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }
}
