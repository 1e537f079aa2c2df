//! Slow reads, which run apart from the others, so that no account holds all readers.
//!
//! A read begins on a reader that all accounts share, and has a short time there. Nearly every read ends within it. One that does
//! not is interrupted, and runs again among the slow reads: one of each account at a time, and the accounts take turns. While an
//! account has a slow read, its further reads of that name come here at once. So an account that asks for much waits for itself.
//!
//! A slow read has a deadline as well, and so has the wait for its turn.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use svc_core::error::StoreError;
use svc_core::sync::lock;
use svc_core::values::TenantId;
use tokio::sync::Notify;

/// The most slow reads of an account that wait.
const MAX_WAITING: usize = 64;

/// How long reads may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadTimes {
    /// The time on a shared reader.
    pub(crate) shared: Duration,
    /// The time of a slow read of an account.
    pub(crate) slow: Duration,
    /// The time of a slow read of the system, such as one of its upkeep.
    pub(crate) system: Duration,
    /// The time that a slow read waits for its turn.
    pub(crate) wait: Duration,
}

impl Default for ReadTimes {
    fn default() -> Self {
        Self {
            shared: Duration::from_millis(100),
            slow: Duration::from_secs(5),
            system: Duration::from_secs(30),
            wait: Duration::from_secs(10),
        }
    }
}

impl ReadTimes {
    /// Returns the time of a slow read of an account, or of the system.
    pub(crate) fn of(&self, account: Option<TenantId>) -> Duration {
        if account.is_some() { self.slow } else { self.system }
    }
}

/// The slow reads that wait and run.
pub(crate) struct SlowReads<W> {
    state: Mutex<State<W>>,
    filled: Condvar,
    notify: Notify,
}

struct State<W> {
    /// Those that have something slow, in the order of their turns.
    accounts: VecDeque<Slow<W>>,
    /// How many shared readers there are, which may send more.
    readers: usize,
}

/// The slow reads of an account, or of the system.
struct Slow<W> {
    account: Option<TenantId>,
    /// The name of the read that runs.
    running: Option<&'static str>,
    waiting: VecDeque<Waiting<W>>,
}

/// A slow read.
pub(crate) struct Waiting<W> {
    /// Its account. `None` for a read of the system.
    pub(crate) account: Option<TenantId>,
    /// Its name.
    pub(crate) name: &'static str,
    /// The work that it runs.
    pub(crate) work: W,
    since: Instant,
}

impl<W> Waiting<W> {
    /// Returns whether the read has waited longer than it may.
    pub(crate) fn is_late(&self, times: &ReadTimes) -> bool {
        self.since.elapsed() > times.wait
    }
}

impl<W> SlowReads<W> {
    /// Returns the slow reads of so many shared readers.
    pub(crate) fn new(readers: usize) -> Self {
        let state = Mutex::new(State { accounts: VecDeque::new(), readers });
        Self { state, filled: Condvar::new(), notify: Notify::new() }
    }

    /// Returns whether an account has a slow read of this name, so that another one is slow as well.
    pub(crate) fn has(&self, account: TenantId, name: &'static str) -> bool {
        let state = lock(&self.state);
        let of_account = state.accounts.iter().find(|slow| slow.account == Some(account));
        of_account.is_some_and(|slow| slow.running == Some(name) || slow.waiting.iter().any(|read| read.name == name))
    }

    /// Adds a read. Returns it if too many of its account wait already.
    pub(crate) fn add(&self, account: Option<TenantId>, name: &'static str, work: W) -> Result<(), W> {
        let mut state = lock(&self.state);
        let at = state.accounts.iter().position(|slow| slow.account == account).unwrap_or_else(|| {
            state.accounts.push_back(Slow { account, running: None, waiting: VecDeque::new() });
            state.accounts.len() - 1
        });
        let Some(slow) = state.accounts.get_mut(at).filter(|slow| slow.waiting.len() < MAX_WAITING) else {
            return Err(work);
        };
        slow.waiting.push_back(Waiting { account, name, work, since: Instant::now() });
        drop(state);
        self.wake();
        Ok(())
    }

    /// Is called after a read has ended, so that the next one of its account can run.
    pub(crate) fn end(&self, account: Option<TenantId>) {
        let mut state = lock(&self.state);
        if let Some(slow) = state.accounts.iter_mut().find(|slow| slow.account == account) {
            slow.running = None;
        }
        state.accounts.retain(|slow| slow.running.is_some() || !slow.waiting.is_empty());
        drop(state);
        self.wake();
    }

    /// Is called when a shared reader has ended, which sends no more.
    pub(crate) fn reader_ended(&self) {
        lock(&self.state).readers -= 1;
        self.wake();
    }

    fn wake(&self) {
        self.filled.notify_all();
        self.notify.notify_waiters();
    }

    /// Waits for the next read on this thread. Returns `None` when there will be none.
    #[cfg(feature = "sqlite")]
    pub(crate) fn next(&self) -> Option<Waiting<W>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(read) = state.take() {
                return Some(read);
            }
            if state.is_over() {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the next read. Returns `None` when there will be none.
    #[cfg(feature = "postgres")]
    pub(crate) async fn wait_for_next(&self) -> Option<Waiting<W>> {
        loop {
            let mut filled = std::pin::pin!(self.notify.notified());
            filled.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if let Some(read) = state.take() {
                    return Some(read);
                }
                if state.is_over() {
                    return None;
                }
            }
            filled.await;
        }
    }
}

impl<W> State<W> {
    /// Takes the first read of the first account that has none running. Then it is the turn of the others.
    fn take(&mut self) -> Option<Waiting<W>> {
        let at = self.accounts.iter().position(|slow| slow.running.is_none() && !slow.waiting.is_empty())?;
        let mut slow = self.accounts.remove(at)?;
        let read = slow.waiting.pop_front()?;
        slow.running = Some(read.name);
        self.accounts.push_back(slow);
        Some(read)
    }

    fn is_over(&self) -> bool {
        self.readers == 0 && self.accounts.iter().all(|slow| slow.waiting.is_empty())
    }
}

/// A read that runs on a shared reader or among the slow ones, as its transaction sees it.
pub(crate) struct RunningRead<'s, W> {
    /// The name of the read.
    pub(crate) name: &'static str,
    /// The account that it has named.
    pub(crate) account: Option<TenantId>,
    /// The slow reads that it may join. `None` if it is one.
    pub(crate) slow: Option<&'s SlowReads<W>>,
    /// Whether it has ended, as it runs again among the slow ones.
    pub(crate) is_postponed: bool,
}

impl<'s, W> RunningRead<'s, W> {
    pub(crate) fn new(name: &'static str, slow: Option<&'s SlowReads<W>>) -> Self {
        Self { name, account: None, slow, is_postponed: false }
    }

    /// Names the account. Fails if the read has to run among the slow ones.
    pub(crate) fn read_as(&mut self, account: TenantId) -> Result<(), StoreError> {
        // Requests of the operator about no account are the system's.
        if account.0.is_nil() {
            return Ok(());
        }
        self.account = Some(account);
        self.is_postponed |= self.slow.is_some_and(|slow| slow.has(account, self.name));
        if self.is_postponed { Err(too_slow(self.name)) } else { Ok(()) }
    }
}

/// The error of a read that took longer than it may, or waited longer for its turn.
pub(crate) fn too_slow(name: &str) -> StoreError {
    StoreError::TooSlow(format!("{name} was ended at its deadline"))
}

/// The error of a read that would be one more of its account.
pub(crate) fn too_many(name: &str) -> StoreError {
    StoreError::TooSlow(format!("{name} is not begun, as {MAX_WAITING} slow reads of the account wait"))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn accounts_take_turns_with_one_slow_read_each() {
        let [one, other] = [1, 2].map(|number| TenantId(Uuid::from_u128(number)));
        let slow = SlowReads::new(1);
        for (account, work) in [(Some(one), 1), (Some(one), 2), (Some(other), 3), (None, 4), (Some(one), 5)] {
            assert!(slow.add(account, "find", work).is_ok());
        }
        let take = || lock(&slow.state).take().map(|read| read.work);
        assert_eq!([take(), take(), take(), take()], [Some(1), Some(3), Some(4), None]);
        assert!(slow.has(one, "find") && slow.has(other, "find") && !slow.has(one, "get"));
        slow.end(Some(one));
        slow.end(Some(other));
        assert!(slow.has(one, "find") && !slow.has(other, "find"));
        assert!(slow.add(Some(other), "find", 6).is_ok());
        assert_eq!([take(), take(), take()], [Some(2), Some(6), None]);
        slow.end(Some(one));
        assert_eq!(take(), Some(5));
        slow.end(Some(one));
        assert!(!slow.has(one, "find"));
    }

    #[test]
    fn an_account_has_a_bounded_number_of_slow_reads() {
        let slow = SlowReads::new(1);
        let add = |account: u128| slow.add(Some(TenantId(Uuid::from_u128(account))), "find", ()).is_ok();
        assert!((0..MAX_WAITING).all(|_| add(1)));
        assert!(!add(1) && add(2));
    }
}
