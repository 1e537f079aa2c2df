//! The trait of resources that can be imported, and what their implementations share.

use async_trait::async_trait;
use serde::Serialize;
use uuid::Uuid;

use super::batch::ImportRecord;
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::tenants::Tenant;
use crate::crypto::sha256;
use crate::error::Error;
use crate::input::{FieldNames, Input};
use crate::store::Tx;
use crate::values::EventKind;

/// The choices of an import.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Whether the events of a create or an update are fired, as for any other change.
    pub events: bool,
    /// Whether a record that differs from its row is updated from it. Rows of invoices never update.
    pub update: bool,
}

/// The effect of [`Import::put`] on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The row is a new record.
    Added,
    /// The record exists and agrees with the row.
    Unchanged,
    /// The record existed and was updated from the row.
    Updated,
    /// The record exists, differs from the row, and was not changed.
    Differs {
        /// The id of the record.
        id: Uuid,
        /// The names of the fields in which it differs.
        fields: Vec<&'static str>,
    },
}

/// Records in the audit log how many rows were put. For imports without events, which leave no other trace.
///
/// # Errors
/// [`Error::Store`].
pub(super) async fn record_in_audit_log<R: Import>(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    results: &[Result<Imported, Error>],
) -> Result<(), Error> {
    #[derive(Serialize)]
    struct Counts {
        added: usize,
        updated: usize,
    }
    let count = |what: Imported| results.iter().flatten().filter(|result| **result == what).count();
    let counts = Counts { added: count(Imported::Added), updated: count(Imported::Updated) };
    if counts.added + counts.updated == 0 {
        return Ok(());
    }
    let object = Object { kind: R::KIND, id: tenant.id.0 };
    audit::record(tx, tenant.id, AuditAction::Import, object, None, Some(&counts)).await
}

/// Importable records: those of a resource, or those of an account.
#[async_trait]
pub trait Import: Send + Sync + 'static {
    /// The name of the records in the audit log.
    const KIND: &'static str;

    /// The event of a record that is added. `None` if none is fired.
    const EVENT: Option<EventKind>;

    /// A row. Its fields have the types of the API, so the same rules check it.
    type Row: Input + FieldNames + Clone;

    /// The names of the fields that are numbers, for formats that know only text.
    const NUMBERS: &'static [&'static str];

    /// The names of the fields that every row must have.
    const REQUIRED: &'static [&'static str];

    /// Returns a digest of the row's content if the row can be recognised by nothing else. The caller counts the rows
    /// of a file with the same content and gives [`put`](Self::put) the number of those before. `unique_email` says whether
    /// no two contacts of the account have the same email address.
    fn content(row: &Self::Row, unique_email: bool) -> Option<[u8; 32]>;

    /// Returns the row as a client sends it.
    fn to_record(row: &Self::Row) -> ImportRecord;

    /// Creates the record of a row, or compares the row with the record it is recognised by. `before` is the number of
    /// earlier rows with the same [`content`](Self::content).
    ///
    /// # Errors
    /// The refusals of the rules, and [`Error::NotAllowed`] for a row that another record is in the way of: nothing of the
    /// row was written then, only the tenant's clock has advanced. After [`Error::Store`] the transaction must fail.
    async fn put(
        tx: &mut dyn Tx,
        tenant: &Tenant,
        row: Self::Row,
        before: u32,
        options: ImportOptions,
    ) -> Result<Imported, Error>;
}

/// Returns a digest of the values of a row: the same for the same values, whatever the format or the order of fields
/// in the file.
pub(super) fn digest(kind: &str, values: &[Option<String>]) -> [u8; 32] {
    // Plain data always serialises.
    sha256(&serde_json::to_vec(&(kind, values)).unwrap_or_default())
}

/// Returns the names of the fields in which two records differ.
pub(super) fn differing<R: FieldNames + Serialize>(a: &R, b: &R) -> Vec<&'static str> {
    let json = |record: &R| serde_json::to_value(record).unwrap_or_default();
    let (a, b) = (json(a), json(b));
    R::FIELD_NAMES.iter().copied().filter(|name| a.get(name) != b.get(name)).collect()
}
