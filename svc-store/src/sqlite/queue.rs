//! The queue of units of work that wait for a thread. A thread takes many of them at once, as one group.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use svc_core::error::StoreError;
use svc_core::sync::lock;

use super::QueuedWork;
use crate::bounded_queue::BoundedQueue;

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

struct State {
    units: BoundedQueue<QueuedWork>,
    /// How many threads wait and were not woken yet, or more: one that wakes up by itself stays counted. To wake a thread is a
    /// system call, so that is done only while one waits.
    idle: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { units: BoundedQueue::new(), idle: 0 }), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn push(&self, work: QueuedWork) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.units.push(work, 0)?;
        let is_one_idle = state.idle > 0;
        state.idle -= usize::from(is_one_idle);
        drop(state);
        if is_one_idle {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for units of work, and takes up to `max`. Returns `None` once the queue is closed and empty.
    pub(super) fn wait(&self, max: usize) -> Option<Vec<QueuedWork>> {
        let mut state = self.lock();
        while state.units.is_empty() {
            if !state.units.is_open() {
                return None;
            }
            state.idle += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(state.units.take(max))
    }

    /// Takes up to `max` units of work without waiting.
    pub(super) fn try_take(&self, max: usize) -> Vec<QueuedWork> {
        self.lock().units.take(max)
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.lock().units.is_open()
    }

    pub(super) fn close(&self) {
        self.lock().units.close();
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    fn unit(name: &'static str) -> QueuedWork {
        QueuedWork { name, work: Box::new(|_| Box::pin(async { Ok(()) })), result_sender: oneshot::channel().0 }
    }

    #[test]
    fn each_unit_of_work_wakes_a_thread_of_its_own_while_one_waits() {
        let queue = Arc::new(Queue::new());
        let (sender, receiver) = mpsc::channel();
        for _ in 0..2 {
            let (queue, sender) = (Arc::clone(&queue), sender.clone());
            // It takes one unit and waits for no other.
            thread::spawn(move || sender.send(queue.wait(1).unwrap()[0].name));
        }
        while queue.lock().idle < 2 {
            thread::yield_now();
        }
        queue.push(unit("first")).unwrap();
        queue.push(unit("second")).unwrap();
        // Nobody waits.
        queue.push(unit("third")).unwrap();
        let taken = [(); 2].map(|()| receiver.recv_timeout(Duration::from_secs(10)).unwrap());
        assert!(taken.contains(&"first") && taken.contains(&"second"), "{taken:?}");
        assert_eq!(queue.lock().idle, 0);
        assert_eq!(queue.wait(9).unwrap().len(), 1);
    }
}
