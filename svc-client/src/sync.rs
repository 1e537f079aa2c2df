//! Copies of collections that stay exact (`docs/sync.md`).

use futures_util::stream::{Stream, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use svc_core::values::Timestamp;

use crate::collection::Collection;
use crate::error::Result;
use crate::records::Syncable;

/// How far a copy of a collection goes. Its `Default` is that of an empty copy.
///
/// Store it with the records of the page that it came with, in one transaction, so that neither is ever ahead of the
/// other. It is a small JSON object, and belongs to one account and one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncPosition {
    /// The `updated_at` of the last record in the copy.
    updated_at: Option<Timestamp>,
}

/// Records to store in a copy, and how far it goes then.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SyncPage<R> {
    /// Records that changed, the oldest change first. Each replaces the one that the copy has under the same `id`. A
    /// contact that was deleted has `deleted_at`.
    pub records: Vec<R>,
    /// How far the copy goes once these records are stored.
    pub position: SyncPosition,
}

impl SyncPosition {
    /// Returns the position of a copy whose last record has this `updated_at`. It must be one that a list returned: no
    /// other clock is right.
    ///
    /// For [events](crate::Client::sync_events) it is the `created_at` of the last one.
    pub fn after(updated_at: Timestamp) -> Self {
        Self { updated_at: Some(updated_at) }
    }

    /// Returns the time of the last record in the copy.
    pub(crate) fn last(self) -> Option<Timestamp> {
        self.updated_at
    }
}

impl<R: Syncable, C> Collection<R, C> {
    /// Reads what changed since a position, page by page: everything, if the copy is empty. The stream ends when the
    /// copy is up to date.
    ///
    /// # Exactness
    ///
    /// Store each page before you ask for the next one. A program that stops in between, for whatever reason, goes on
    /// from the position that it stored, and misses nothing. Records that change during the run are returned again, at
    /// their new place at the end.
    ///
    /// The first record after a stored position is the last one before it, so a run that finds nothing new returns one
    /// record.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt as _;
    /// use svc_client::prelude::*;
    ///
    /// # async fn example(client: Client, stored: SyncPosition) -> Result<(), Error> {
    /// # fn store(_: &[Contact], _: SyncPosition) {}
    /// let mut pages = std::pin::pin!(client.contacts().sync_since(stored));
    /// while let Some(page) = pages.try_next().await? {
    ///     store(&page.records, page.position); // in one transaction
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn sync_since(&self, position: SyncPosition) -> impl Stream<Item = Result<SyncPage<R>>> + Send + use<R, C> {
        let since = position.updated_at.unwrap_or(Timestamp::from_micros(0));
        let pages = self.list().filter(R::everything()).updated_since(since).pages();
        pages.try_filter_map(async |page| {
            let last = page.data.last().map(R::updated_at);
            Ok(last.map(|last| SyncPage { records: page.data, position: SyncPosition::after(last) }))
        })
    }
}
