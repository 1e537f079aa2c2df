//! The jobs that wait for a connection.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use svc_core::error::{Error, StoreError};
use svc_core::store::UnitOfWork;
use svc_core::sync::lock;
use tokio::sync::{Notify, oneshot};

use crate::bounded_queue::BoundedQueue;

/// A job that waits for a connection.
pub(super) struct QueuedWork {
    name: &'static str,
    job: UnitOfWork,
    answer: oneshot::Sender<Result<(), Error>>,
    since: Instant,
    /// Whether a connection was lost under it already.
    retried: bool,
}

impl QueuedWork {
    pub(super) fn new(name: &'static str, job: UnitOfWork) -> (Self, oneshot::Receiver<Result<(), Error>>) {
        let (answer, answered) = oneshot::channel();
        (Self { name, job, answer, since: Instant::now(), retried: false }, answered)
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn job(&self) -> &UnitOfWork {
        &self.job
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    pub(super) fn answer(self, result: Result<(), Error>) {
        // Jobs hold handles of the store, which should go before those who wait go on.
        drop(self.job);
        let _ = self.answer.send(result);
    }
}

pub(super) struct Queue {
    line: Mutex<BoundedQueue<QueuedWork>>,
    filled: Notify,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { line: Mutex::new(BoundedQueue::new()), filled: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BoundedQueue<QueuedWork>> {
        lock(&self.line)
    }

    pub(super) fn push(&self, job: QueuedWork) -> Result<(), StoreError> {
        self.lock().push(job)?;
        // The task that was busy last has a connection; those that never were needed have none.
        self.filled.notify_last();
        Ok(())
    }

    /// Puts a unit of work back in front whose connection was lost, so that it runs once more. The second time it fails.
    pub(super) fn requeue(&self, mut job: QueuedWork, error: StoreError) {
        if job.retried {
            return job.answer(Err(error.into()));
        }
        job.retried = true;
        job.since = Instant::now();
        self.lock().push_front(job);
        self.filled.notify_last();
    }

    /// Waits until there is a job; `false` once the queue is closed and empty.
    pub(super) async fn filled(&self) -> bool {
        loop {
            let mut filled = pin!(self.filled.notified());
            filled.as_mut().enable();
            let (has_jobs, is_open) = {
                let line = self.lock();
                (!line.is_empty(), line.is_open())
            };
            if has_jobs || !is_open {
                return has_jobs;
            }
            filled.await;
        }
    }

    /// Takes up to `most` of what waits now; nothing when another task was faster.
    pub(super) fn take(&self, most: usize) -> Vec<QueuedWork> {
        self.lock().take(most)
    }

    /// Takes what has waited for longer than `acquire_timeout`, oldest first.
    pub(super) fn take_expired(&self, acquire_timeout: Duration) -> Vec<QueuedWork> {
        self.lock().take_while(|job| job.since.elapsed() > acquire_timeout)
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.lock().is_open()
    }

    pub(super) fn close(&self) {
        self.lock().close();
        self.filled.notify_waiters();
    }
}
