//! The clock of the demo, which can be set back to write the history of the account.

use std::sync::{Arc, Mutex, PoisonError};

use svc_core::env::{Clock, SystemClock};
use svc_core::values::Timestamp;

/// The clock of the machine, unless it was set to another time. Its clones share one time.
#[derive(Clone)]
pub struct DemoClock {
    base: Arc<dyn Clock>,
    set: Arc<Mutex<Option<Timestamp>>>,
}

impl Default for DemoClock {
    fn default() -> Self {
        Self::over(SystemClock)
    }
}

impl DemoClock {
    /// Returns a clock that shows the time of `base`, unless it is set.
    pub(super) fn over(base: impl Clock + 'static) -> Self {
        Self { base: Arc::new(base), set: Arc::default() }
    }

    /// Shows `now`, until the next call.
    pub(super) fn set(&self, now: Timestamp) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Shows the time of the clock below again.
    pub(super) fn release(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Clock for DemoClock {
    fn now(&self) -> Timestamp {
        let set = *self.set.lock().unwrap_or_else(PoisonError::into_inner);
        set.unwrap_or_else(|| self.base.now())
    }
}
