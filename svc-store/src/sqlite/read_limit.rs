//! How long a read on a connection may take, and whether anybody waits for it. SQLite asks about it again and again while a
//! statement runs.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use svc_core::sync::lock;

/// How many instructions of a statement run between two questions. They take some microseconds.
const INSTRUCTIONS: i32 = 1_000;

/// The limit of the read that runs on a connection, if one does.
#[derive(Clone, Default)]
pub(super) struct ReadLimit(Arc<Mutex<Option<Limit>>>);

struct Limit {
    ends_at: Option<Instant>,
    caller: Weak<()>,
    is_reached: bool,
}

impl ReadLimit {
    /// Makes statements of a connection end at the limit.
    pub(super) fn watch(&self, connection: &rusqlite::Connection) -> rusqlite::Result<()> {
        let limit = self.clone();
        connection.progress_handler(INSTRUCTIONS, Some(move || limit.is_reached()))
    }

    /// Begins a read that may take `time`, and ends when its caller is gone.
    pub(super) fn begin(&self, time: Duration, caller: &Weak<()>) {
        let ends_at = Instant::now().checked_add(time);
        *lock(&self.0) = Some(Limit { ends_at, caller: caller.clone(), is_reached: false });
    }

    /// Ends the read, and returns whether it has reached its limit.
    pub(super) fn end(&self) -> bool {
        lock(&self.0).take().is_some_and(|limit| limit.is_reached)
    }

    /// Returns whether the read has to end.
    pub(super) fn is_reached(&self) -> bool {
        lock(&self.0).as_mut().is_some_and(|limit| {
            let is_late = limit.ends_at.is_some_and(|ends_at| Instant::now() >= ends_at);
            limit.is_reached |= is_late || limit.caller.strong_count() == 0;
            limit.is_reached
        })
    }
}
