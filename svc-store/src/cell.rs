//! Parameters of statements and cells of rows, the same for each database.

use std::borrow::Cow;

use svc_core::error::StoreError;
use svc_core::values::{Date, Timestamp};
use uuid::Uuid;

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Param<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    Uuid(Uuid),
    Time(Timestamp),
    Date(Date),
    /// Encrypted by the vault when it is bound.
    Secret(Cow<'a, [u8]>),
}

impl From<&'static str> for Param<'_> {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

/// A cell of a row, borrowed from the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The fault of a cell. It is boxed so that the result of reading one, of which a list has hundreds, is small.
#[derive(Debug)]
pub(crate) struct CellError(Box<StoreError>);

impl From<StoreError> for CellError {
    #[cold]
    fn from(error: StoreError) -> Self {
        Self(Box::new(error))
    }
}

impl From<CellError> for StoreError {
    #[cold]
    fn from(error: CellError) -> Self {
        *error.0
    }
}

impl CellError {
    #[cold]
    pub(crate) fn corrupt(table: &'static str, column: &'static str, wanted: &str) -> Self {
        StoreError::Corrupt { table, column, reason: format!("the value is not a valid {wanted}") }.into()
    }
}

/// A row, borrowed from the driver.
pub(crate) trait Row {
    /// Returns the value of a cell.
    fn value(&self, index: usize) -> Result<Value<'_>, CellError>;

    /// Decrypts the value of a cell. `None` when it cannot be decrypted.
    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>>;
}
