//! Imports (decisions §6): records that were made elsewhere, row by row.
//!
//! [`Import::put`] is one function over a transaction, so any number of rows can be one. It refuses a row before it
//! has written anything of it; a job may go on with the next row then.
//!
//! Putting rows again adds nothing, so an import that was broken off is simply run again. A row is recognised by
//!
//! 1. its `id`, where it has one: a UUIDv7, as exports have it. The record is created under this id, and the time in
//!    it is its `created_at`, since lists go by either;
//! 2. else by what is unique: the email of a contact (unless the account lets several have the same), the number of
//!    an invoice;
//! 3. else by an id that is derived from the account, what the row says, and how many rows of the file said the same
//!    before it. Its time is the row's `created_at`, moved back a little where another record has it, or lies in the
//!    day before the account was created.
//!
//! What is recognised and says the same as the record, in the fields that the row has, is [`Imported::Unchanged`].

mod contacts;
mod invoices;
mod place;

use async_trait::async_trait;
use serde::Serialize;
use uuid::Uuid;

pub use self::contacts::ContactImport;
pub use self::invoices::InvoiceImport;
use crate::accounts::audit::{self, Object};
use crate::accounts::tenants::Tenant;
use crate::crypto::sha256;
use crate::error::Error;
use crate::input::{FieldNames, Input};
use crate::resources::crud::Resource;
use crate::store::Tx;

/// What rows do besides being put.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Whether events are fired, as for any other change.
    pub events: bool,
    /// Whether a record that differs takes on what the row says, where a row can do that.
    pub update: bool,
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It is a new record now.
    Added,
    /// The record is there and says the same.
    Unchanged,
    /// The record was there and says the same now.
    Updated,
    /// The record is there, says something else, and stays as it is.
    Differs {
        /// The record.
        id: Uuid,
        /// The fields in which it differs.
        fields: Vec<&'static str>,
    },
}

/// Notes rows that were put without events in the log of changes, which would not tell of them otherwise.
///
/// # Errors
/// [`Error::Store`].
pub async fn note<R: Import>(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    results: &[Result<Imported, Error>],
) -> Result<(), Error> {
    #[derive(Serialize)]
    struct Repository {
        added: usize,
        updated: usize,
    }
    let count = |what: Imported| results.iter().flatten().filter(|result| **result == what).count();
    let rows = Repository { added: count(Imported::Added), updated: count(Imported::Updated) };
    if rows.added + rows.updated == 0 {
        return Ok(());
    }
    let object = Object { kind: R::COLLECTION, id: tenant.id.0 };
    audit::record(tx, tenant.id, "import", object, None, Some(&rows)).await
}

/// A resource whose records can come from elsewhere.
#[async_trait]
pub trait Import: Resource + FieldNames {
    /// A row. Its fields have the types of the API, so it is checked by the same rules.
    type Row: Input + FieldNames + Clone;

    /// The fields that are numbers, for formats that know only text.
    const NUMBERS: &'static [&'static str];

    /// The fields that every row must have.
    const REQUIRED: &'static [&'static str];

    /// What the row says, if that is all by which it can be recognised. Rows of a file with the same content are
    /// counted, and `put` is told how many came before.
    fn content(row: &Self::Row, tenant: &Tenant) -> Option<[u8; 32]>;

    /// Puts one row.
    ///
    /// # Errors
    /// What the rules refuse, and [`Error::NotAllowed`] for what is in the way of the row; nothing was written then but
    /// the tenant's clock. After [`Error::Store`] the job must fail.
    async fn put(
        tx: &mut dyn Tx,
        tenant: &Tenant,
        row: Self::Row,
        before: u32,
        options: ImportOptions,
    ) -> Result<Imported, Error>;
}

/// A digest of what a row says: the same for the same values in whatever format or order of fields.
fn digest(kind: &str, values: &[Option<String>]) -> [u8; 32] {
    // Plain data: it always serialises.
    sha256(&serde_json::to_vec(&(kind, values)).unwrap_or_default())
}

/// The fields in which two records differ.
fn differing<R: FieldNames + Serialize>(a: &R, b: &R) -> Vec<&'static str> {
    let json = |record: &R| serde_json::to_value(record).unwrap_or_default();
    let (a, b) = (json(a), json(b));
    R::FIELD_NAMES.iter().copied().filter(|name| a.get(name) != b.get(name)).collect()
}
