//! The jobs that wait for a thread. A thread takes many at once, which is what makes groups.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use svc_core::store::StoreError;

use super::Waiting;

/// Jobs that may wait. Far more than there are connections; beyond it the service is overloaded.
const CAPACITY: usize = 16_384;

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

struct State {
    waiting: VecDeque<Waiting>,
    open: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { waiting: VecDeque::new(), open: true }), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, job: Waiting) -> Result<(), StoreError> {
        let mut state = self.lock();
        if !state.open {
            return Err(StoreError::Unavailable("the store is shutting down".to_owned()));
        }
        if state.waiting.len() >= CAPACITY {
            return Err(StoreError::Unavailable(format!("{CAPACITY} jobs are waiting already")));
        }
        state.waiting.push_back(job);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for jobs and takes up to `most`; `None` once the queue is closed and empty.
    pub(super) fn wait(&self, most: usize) -> Option<Vec<Waiting>> {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if !state.open {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(take(&mut state, most))
    }

    /// Takes up to `most` of what waits now.
    pub(super) fn poll(&self, most: usize) -> Vec<Waiting> {
        take(&mut self.lock(), most)
    }

    pub(super) fn close(&self) {
        self.lock().open = false;
        self.filled.notify_all();
    }
}

fn take(state: &mut State, most: usize) -> Vec<Waiting> {
    let count = state.waiting.len().min(most);
    state.waiting.drain(..count).collect()
}
