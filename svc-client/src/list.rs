//! Lists: pages, and all records of all pages.

use std::collections::HashSet;

use futures_util::stream::{self, Stream, TryStreamExt as _};
use svc_core::input::ToBody;
use svc_core::pages::{Limit, ListParams, MAX_LIMIT, Page, SentCursor, Since};
use svc_core::resources::Resource;
use svc_core::values::Timestamp;
use uuid::Uuid;

use crate::client::Client;
use crate::collection::Collection;
use crate::error::{Error, Result, UnexpectedResponse};
use crate::records::Record;

/// A list of records, with its filters. [`page`](Self::page) reads one page, and [`all`](Self::all) everything.
///
/// # Examples
///
/// ```no_run
/// use futures_util::TryStreamExt as _;
/// use svc_client::prelude::*;
///
/// # async fn example(client: Client) -> Result<(), Error> {
/// let open = QuoteFilter { status: Some(QuoteStatus::Sent) };
/// let quotes = client.quotes().list().filter(open).all();
/// let total: usize = quotes.try_fold(0, async |count, _quote| Ok(count + 1)).await?;
/// # let _ = total;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct List<R: Record, C = Client> {
    collection: Collection<R, C>,
    params: ListParams,
    limit: Option<u32>,
    filter: R::Filters,
}

impl<R: Record, C> List<R, C> {
    pub(crate) fn new(collection: Collection<R, C>) -> Self {
        Self { collection, params: ListParams::default(), limit: None, filter: R::Filters::default() }
    }

    /// Sets which records are listed.
    pub fn filter(self, filter: R::Filters) -> Self {
        Self { filter, ..self }
    }

    /// Sets the number of records on a page, 1 to 200. Without it, [`page`](Self::page) has 50, and the pages of
    /// [`all`](Self::all) have 200. The lists of API keys and members have one page and take no limit.
    pub fn limit(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Begins after the page that had this `next_cursor`. The filters must be the same.
    pub fn cursor(mut self, cursor: Uuid) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }

    /// Reads one page. Its `next_cursor` is for [`cursor`](Self::cursor).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the limit is not 1 to 200; `invalid_cursor`, and any other [`Error`].
    pub async fn page(&self) -> Result<Page<R>> {
        let mut params = self.params.clone();
        if let Some(limit) = self.limit {
            let refused = || Error::InvalidArgument(format!("the limit must be from 1 to {MAX_LIMIT}, not {limit}"));
            params.limit = Some(Limit::new(limit).ok_or_else(refused)?);
        }
        let pairs = [params.to_query(), self.filter.to_query()].concat();
        self.collection.client().page(&[R::PATH], pairs).await
    }

    /// Reads page after page, each when it is asked for.
    ///
    /// The stream ends after the first error. A record that exists during the whole walk is on exactly one page. A cursor that
    /// comes again is an [`Error::UnexpectedResponse`], since the stream would have no end.
    pub fn pages(self) -> impl Stream<Item = Result<Page<R>>> + Send {
        let list = Self { limit: self.limit.or(R::PAGE_LIMIT), ..self };
        let start = list.params.cursor.and_then(SentCursor::id);
        walk(start, move |cursor| {
            let list = list.clone();
            async move { cursor.map_or(list.clone(), |cursor| list.cursor(cursor)).page().await }
        })
    }

    /// Reads all records, page after page.
    ///
    /// The stream ends after the first error.
    pub fn all(self) -> impl Stream<Item = Result<R>> + Send {
        let records = |page: Page<R>| stream::iter(page.data.into_iter().map(Ok));
        self.pages().map_ok(records).try_flatten()
    }
}

impl<R: Record, C> Clone for List<R, C> {
    fn clone(&self) -> Self {
        let Self { collection, params, limit, filter } = self;
        Self { collection: collection.clone(), params: params.clone(), limit: *limit, filter: filter.clone() }
    }
}

/// Reads page after page with `read`, which takes the cursor of a page, and none for the first one. `start` is the cursor of the first
/// page, if it has one, so that its return ends the stream.
pub(crate) fn walk<T: Send, F>(
    start: Option<Uuid>,
    read: impl Fn(Option<Uuid>) -> F + Send,
) -> impl Stream<Item = Result<Page<T>>> + Send
where
    F: Future<Output = Result<Page<T>>> + Send,
{
    stream::try_unfold(Some((read, HashSet::<Uuid>::from_iter(start), Ok(None))), async |state| {
        let Some((read, mut seen, cursor)) = state else { return Ok(None) };
        let page = read(cursor?).await?;
        let next = page.next_cursor.map(|cursor| {
            let next = if seen.insert(cursor) { Ok(Some(cursor)) } else { Err(repeated(cursor)) };
            (read, seen, next)
        });
        Ok(Some((page, next)))
    })
}

fn repeated(cursor: Uuid) -> Error {
    let reason = format!("its next_cursor {cursor} was that of an earlier page");
    let (start, retry_after, request_id) = (String::new(), None, None);
    Error::UnexpectedResponse(Box::new(UnexpectedResponse {
        status: 200,
        reason,
        start,
        retry_after,
        request_id,
        attempts: 1,
    }))
}

impl<R: Record + Resource, C> List<R, C> {
    /// Lists only records that changed at or after this time, the oldest change first.
    pub fn updated_since(mut self, since: Timestamp) -> Self {
        self.params.updated_since = Some(Since(since));
        self
    }
}
