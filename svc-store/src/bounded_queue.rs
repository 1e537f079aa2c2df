//! The jobs that wait for a database, the same for each: how many may, and what is said to those who may not.

use std::collections::VecDeque;

use svc_core::error::StoreError;

/// Jobs that may wait. Far more than there are connections; beyond it the service is overloaded.
const CAPACITY: usize = 16_384;

/// Jobs in the order in which they came, until the store is closed. Whoever keeps it says how it is waited for.
pub(crate) struct BoundedQueue<T> {
    waiting: VecDeque<T>,
    open: bool,
}

impl<T> BoundedQueue<T> {
    pub(crate) fn new() -> Self {
        Self { waiting: VecDeque::new(), open: true }
    }

    pub(crate) fn push(&mut self, job: T) -> Result<(), StoreError> {
        if !self.open {
            return Err(StoreError::Unavailable("the store is shutting down".to_owned()));
        }
        if self.waiting.len() >= CAPACITY {
            return Err(StoreError::Unavailable(format!("{CAPACITY} jobs are waiting already")));
        }
        self.waiting.push_back(job);
        Ok(())
    }

    /// Puts a job back that has had its turn.
    pub(crate) fn push_front(&mut self, job: T) {
        self.waiting.push_front(job);
    }

    /// Takes up to `most` of what waits.
    pub(crate) fn take(&mut self, most: usize) -> Vec<T> {
        let count = self.waiting.len().min(most);
        self.waiting.drain(..count).collect()
    }

    /// Takes from the front as long as `wanted`.
    pub(crate) fn take_while(&mut self, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let count = self.waiting.iter().take_while(|job| wanted(job)).count();
        self.take(count)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    pub(crate) fn close(&mut self) {
        self.open = false;
    }
}
