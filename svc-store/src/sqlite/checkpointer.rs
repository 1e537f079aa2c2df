//! The checkpointer thread, which copies the write-ahead log to the database file while the writer commits.
//!
//! A checkpoint beside commits does not empty the log. It copies what was committed before it began, and syncs the file only
//! if nothing was committed until it has copied all of that. So the first one copies most of the log, those after it copy
//! what was committed meanwhile, and one that is shorter than a commit syncs what all of them have copied. The writer makes
//! the last one itself, between two commits, with little left to do.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use super::connection::DurabilityError;
use super::connection_pool::ConnectionPool;

/// The writer's handle of the checkpointer thread, which ends when it is dropped.
pub(super) struct Checkpointer {
    requests: Sender<()>,
    results: Receiver<Result<(), DurabilityError>>,
    is_running: bool,
}

/// The other end of a [`Checkpointer`], for its thread.
pub(super) struct Requests {
    requests: Receiver<()>,
    results: Sender<Result<(), DurabilityError>>,
}

/// The progress of the checkpointer.
pub(super) enum Progress {
    /// It waits for a request.
    Idle,
    Running,
    /// It has failed, and waits for a request. This is returned once.
    Failed(DurabilityError),
}

impl Checkpointer {
    pub(super) fn new() -> (Self, Requests) {
        let (requests, requested) = channel();
        let (finished, results) = channel();
        (Self { requests, results, is_running: false }, Requests { requests: requested, results: finished })
    }

    pub(super) fn progress(&mut self) -> Progress {
        if self.is_running {
            match self.results.try_recv() {
                Err(TryRecvError::Empty) => return Progress::Running,
                Ok(Err(failure)) => {
                    self.is_running = false;
                    return Progress::Failed(failure);
                }
                Ok(Ok(())) | Err(TryRecvError::Disconnected) => self.is_running = false,
            }
        }
        Progress::Idle
    }

    /// Begins a checkpoint, unless one is running.
    pub(super) fn begin(&mut self) {
        self.is_running = self.is_running || self.requests.send(()).is_ok();
    }
}

pub(super) fn run(pool: &ConnectionPool, Requests { requests, results }: &Requests) {
    while requests.recv().is_ok() {
        let _ = results.send(pool.checkpoint());
    }
}
