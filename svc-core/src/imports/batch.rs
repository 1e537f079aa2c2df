//! Batches: rows that are put in one transaction.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::import::{Import, ImportOptions, Imported, record_in_audit_log};
use crate::accounts::tenants;
use crate::error::Error;
use crate::input::Input as _;
use crate::input::json::{self, Json};
use crate::store::Tx;
use crate::values::TenantId;

/// The most rows of a batch: enough to amortise the commit, few enough not to delay other writes.
pub const MAX_ROWS: usize = 500;

/// The record of a row: an object with its fields.
#[derive(Clone, Debug)]
pub struct ImportRecord(Object);

#[derive(Clone, Debug)]
enum Object {
    /// As it was read from a request.
    Read(Vec<(String, Json)>),
    /// As a client sends it.
    Written(Box<RawValue>),
}

impl ImportRecord {
    /// Returns the record of a row.
    pub fn of<R: Import>(row: &R::Row) -> Self {
        R::to_record(row)
    }

    pub(super) fn written(fields: &impl Serialize) -> Self {
        // Plain data with text keys always serialises.
        Self(Object::Written(to_raw_value(fields).unwrap_or_default()))
    }

    pub(crate) fn read(members: Vec<(String, Json)>) -> Self {
        Self(Object::Read(members))
    }

    /// Returns the length of the object in bytes, as a client sends it.
    pub fn json_len(&self) -> usize {
        match &self.0 {
            Object::Read(members) => json::to_text(&Json::Object(members.clone())).len(),
            Object::Written(text) => text.get().len(),
        }
    }

    fn into_row<R: Import>(self) -> Result<R::Row, Error> {
        match self.0 {
            Object::Read(members) => R::Row::from_members(members),
            Object::Written(text) => R::Row::from_body(text.get().as_bytes()),
        }
    }
}

impl Serialize for ImportRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Object::Read(members) => {
                let text = json::to_text(&Json::Object(members.clone()));
                RawValue::from_string(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            Object::Written(text) => text.serialize(serializer),
        }
    }
}

/// Counts the rows of an import that have the same content and that nothing else identifies. It keeps a number for each such
/// row, and nothing of the others.
#[derive(Default)]
pub struct Duplicates(HashMap<u64, u32>);

impl Duplicates {
    /// Counts a row, and returns how many rows with the same content came before it. `unique_email` says whether no two
    /// contacts of the account have the same email address.
    pub fn count_before<R: Import>(&mut self, row: &R::Row, unique_email: bool) -> u32 {
        let Some(content) = R::content(row, unique_email) else { return 0 };
        // Eight bytes of the digest are enough.
        let key = content.iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte));
        let count = self.0.entry(key).or_default();
        *count += 1;
        *count - 1
    }
}

/// A row of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct ImportRow {
    /// The fields of the row.
    pub record: ImportRecord,
    /// How many earlier rows of the import have the same content, if nothing but its content identifies the row. `None`
    /// stands for those of its batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates_before: Option<u32>,
}

/// The rows of a batch as they were read: those that are not valid are refused by themselves.
pub struct Batch<R: Import>(Vec<BatchRow<R>>);

struct BatchRow<R: Import> {
    input: Result<R::Row, Error>,
    duplicates_before: Option<u32>,
}

impl<R: Import> Batch<R> {
    /// Reads the rows.
    pub fn new(rows: Vec<ImportRow>) -> Self {
        let read = |row: ImportRow| {
            let ImportRow { record, duplicates_before } = row;
            BatchRow { input: record.into_row::<R>(), duplicates_before }
        };
        Self(rows.into_iter().map(read).collect())
    }

    /// Puts the rows, one after the other. Returns what came of each. An import without events is recorded in the audit
    /// log.
    ///
    /// # Errors
    /// [`Error::Store`], with which the transaction must fail. A row that the rules refuse is no error of the batch.
    pub async fn put(
        &self,
        tx: &mut dyn Tx,
        tenant: TenantId,
        options: ImportOptions,
    ) -> Result<Vec<Result<Imported, Error>>, Error> {
        let tenant = tenants::get(tx, tenant).await?;
        let mut duplicates = Duplicates::default();
        let mut results = Vec::with_capacity(self.0.len());
        for BatchRow { input, duplicates_before } in &self.0 {
            let input = match input {
                Ok(input) => input,
                Err(error) => {
                    results.push(Err(error.clone()));
                    continue;
                }
            };
            let before =
                duplicates_before.unwrap_or_else(|| duplicates.count_before::<R>(input, tenant.unique_contact_email));
            match R::put(tx, &tenant, input.clone(), before, options).await {
                Err(Error::Store(error)) => return Err(error.into()),
                result => results.push(result),
            }
        }
        if !options.events {
            record_in_audit_log::<R>(tx, &tenant, &results).await?;
        }
        Ok(results)
    }
}
