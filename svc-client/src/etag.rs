//! Versions of records (`docs/contract.md`, "Conditional requests").

use std::fmt;
use std::ops::Deref;

use http::HeaderValue;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The version of a record, from the header `ETag`. It changes whenever the record does.
///
/// It can be stored beside a copy of the record, as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ETag(String);

impl ETag {
    /// Returns the tag with this text, as the header has it with its quotes.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn header(&self) -> Result<HeaderValue> {
        self.0.parse().map_err(|_| Error::InvalidArgument(format!("{:?} is no ETag of the service", self.0)))
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A record with its version. It dereferences to the record.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Versioned<R> {
    /// The record.
    pub record: R,
    /// Its version, for [`update_if`](crate::Collection::update_if) and its like.
    pub etag: ETag,
}

impl<R> Versioned<R> {
    /// Returns the record without its version.
    pub fn into_record(self) -> R {
        self.record
    }
}

impl<R> Deref for Versioned<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}
