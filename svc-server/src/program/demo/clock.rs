//! The clock of the demo, which can be set back to write the history of the account.

use std::sync::{Arc, Mutex, PoisonError};

use svc_core::env::{Clock, SystemClock};
use svc_core::values::Timestamp;

/// The clock of the machine, unless it was set to another time. Its clones share one time.
#[derive(Clone, Debug, Default)]
pub struct DemoClock(Arc<Mutex<Option<Timestamp>>>);

impl DemoClock {
    /// Shows `now`, until the next call.
    pub(super) fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Shows the time of the machine again.
    pub(super) fn release(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Clock for DemoClock {
    fn now(&self) -> Timestamp {
        let set = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        set.unwrap_or_else(|| SystemClock.now())
    }
}
