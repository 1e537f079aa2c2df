//! Records that are known by their id alone, by a part of it, or by a text.

use svc_core::find::{FindText, SearchResults};
use svc_core::lookup::{IdPart, KindInAccount, KindOfAll, Matches, PartOfId, RecordId};
use svc_core::platform::{Account, operations};
use uuid::Uuid;

use super::{AccountClient, Platform};
use crate::error::Result;

impl Platform {
    /// Returns the accounts that have a record with this id: one or none, unless an import gave records of several accounts
    /// the same id.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn find_accounts(&self, kind: KindOfAll, id: Uuid) -> Result<Vec<Account>> {
        Ok(self.call(&operations::FIND_ACCOUNTS, (), &RecordId { kind, id }).await?.data)
    }
}

impl AccountClient {
    /// Returns the ids of the records of one kind that begin with a part, or else those that end with it.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn find_ids(&self, kind: KindInAccount, part: &IdPart) -> Result<Matches> {
        self.call(&operations::FIND_IDS, &PartOfId { kind, part: part.clone() }).await
    }

    /// Finds contacts, invoices, quotes, bookings and jobs by a text, which [`svc_core::find::parse`] reads.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn find(&self, text: &FindText) -> Result<SearchResults> {
        self.call(&operations::FIND_RECORDS, text).await
    }
}
