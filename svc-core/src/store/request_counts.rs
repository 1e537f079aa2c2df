//! Counts of requests that all processes on a database share, for rate limits.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::StoreError;
use crate::values::Timestamp;

/// Counts requests for all processes on a database together, outside of transactions.
#[async_trait]
pub trait RequestCounts: Send + Sync {
    /// Applies changes to counts in one step, and returns each count after its change, in the same order.
    ///
    /// A count covers a window of length `window`; a change after its end starts a new window. A count is never below 0.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot count now; the caller then counts in its own process.
    async fn add(&self, changes: &[CountChange], window: Duration) -> Result<Vec<RequestWindow>, StoreError>;
}

/// A change of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountChange {
    /// The client whose requests are counted: the id of an API key, or an address as 128 bits.
    pub subject: Uuid,
    /// The name of the rate limit, which must be the same in all processes.
    pub bucket: &'static str,
    /// The time of the change, at which a new window starts if there is none.
    pub at: Timestamp,
    /// The number of requests to add; negative to take back.
    pub by: i32,
}

/// The count of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestWindow {
    /// When the window started.
    pub started: Timestamp,
    /// The number of requests since then.
    pub used: u32,
}
