//! Lists that are sorted by time, mostly the newest first.

use std::ops::Range;

use serde::Serialize;

use crate::error::Error;
use crate::operation::Listing;
use crate::pages::{CursorScope, ListParams, Order, Page};
use crate::platform::{LogFilter, LogParams};
use crate::store::Tx;
use crate::values::{TenantId, Timestamp};

/// The query of a log.
pub type LogQuery = Listing<LogParams, LogFilter>;

/// The highest number of changes or deliveries of one time: an event has one delivery for each subscription.
pub(super) const MAX_OF_ONE_TIME: u32 = 1000;

/// A position in a list.
pub(super) struct Position {
    scope: CursorScope,
    pub(super) limit: u32,
    /// The time in the cursor: only what happened before it is left, or of a list with the oldest first, at or after it.
    pub(super) before: Option<Timestamp>,
}

impl Position {
    pub(super) fn of(
        tx: &mut dyn Tx,
        account: TenantId,
        list: &str,
        params: &LogParams,
        filter: &impl Serialize,
    ) -> Result<Self, Error> {
        let scope = CursorScope::new(account, list, None, filter);
        let params = ListParams { limit: params.limit, cursor: params.cursor, updated_since: None };
        let query = params.query(tx.cursor_key(), &scope, &())?;
        let before = match query.order {
            Order::NewestFirst { before } => before,
            Order::OldestChangeFirst { .. } => None,
        };
        Ok(Self { scope, limit: params.limit.unwrap_or_default().get(), before })
    }

    /// Returns the page whose cursor has the time `before`.
    pub(super) fn page<T>(&self, tx: &mut dyn Tx, data: Vec<T>, before: Option<Timestamp>) -> Page<T> {
        Page::new(data, before.map(|before| tx.cursor_key().seal(&self.scope, before)))
    }
}

/// Returns the times that a query of a log asks for, and the position of its page.
pub(super) fn times(
    tx: &mut dyn Tx,
    account: TenantId,
    list: &str,
    query: &LogQuery,
) -> Result<(Position, Range<Timestamp>), Error> {
    let since = query.filter.since.map_or(Timestamp::from_micros(0), |since| since.0);
    let position = Position::of(tx, account, list, &query.page, &since)?;
    let times = since..position.before.unwrap_or(Timestamp::MAX);
    Ok((position, times))
}
