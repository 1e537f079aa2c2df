//! The permits to handle messages: how many are handled at a time, and for one account.
//!
//! A message may wait while it is handled, for the memory of its response, and keeps its permit meanwhile. Each account has a
//! share of the memory, so the messages of one whose share is used up would keep all permits. Therefore each holder has a share
//! of the permits too, and waits for its own share before it takes any that others could have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use svc_core::error::StoreError;
use svc_core::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::kernel::response_memory::Holder;

/// How many messages are handled at a time. Each takes some 60 KB while it is, and most take a millisecond.
const MESSAGES: usize = 128;
/// The size of a message, in bytes, over which it is large: its arguments take many times its size.
const LARGE_MESSAGE: usize = 16 * 1024;
/// How many large ones are handled at a time.
const LARGE_MESSAGES: usize = 4;
/// A holder gets this part of the permits at most.
const SHARES: usize = 4;
/// How long a message waits to be handled.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The permits that a message holds while it is handled.
pub(crate) struct Permits {
    _any: Shared,
    _large: Option<Shared>,
}

/// A permit out of the share of a holder.
struct Shared {
    _of_holder: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

/// The permits of all messages.
pub(super) struct Shares {
    any: Pool,
    /// Large messages wait for each other, and not in the way of small ones.
    large: Pool,
}

impl Default for Shares {
    fn default() -> Self {
        Self { any: Pool::new(MESSAGES), large: Pool::new(LARGE_MESSAGES) }
    }
}

impl Shares {
    /// Waits until a message of this size can be handled for a holder.
    pub(super) async fn admit(&self, holder: Holder, size: usize) -> Result<Permits, StoreError> {
        let permits = async {
            let large = match size > LARGE_MESSAGE {
                true => Some(self.large.acquire(holder).await),
                false => None,
            };
            Permits { _large: large, _any: self.any.acquire(holder).await }
        };
        let late = |_| StoreError::Unavailable("too many messages of assistants are handled".to_owned());
        tokio::time::timeout(MAX_WAIT, permits).await.map_err(late)
    }
}

struct Pool {
    share: usize,
    all: Arc<Semaphore>,
    /// The shares that are in use.
    by_holder: Mutex<HashMap<Holder, Weak<Semaphore>>>,
}

impl Pool {
    fn new(permits: usize) -> Self {
        Self { share: permits / SHARES, all: Arc::new(Semaphore::new(permits)), by_holder: Mutex::default() }
    }

    fn share_of(&self, holder: Holder) -> Arc<Semaphore> {
        let mut shares = lock(&self.by_holder);
        if let Some(share) = shares.get(&holder).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.share));
        shares.insert(holder, Arc::downgrade(&share));
        share
    }

    async fn acquire(&self, holder: Holder) -> Shared {
        // They are never closed.
        let of_holder = self.share_of(holder).acquire_owned().await.ok();
        Shared { _of_holder: of_holder, _of_all: Arc::clone(&self.all).acquire_owned().await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use svc_core::values::TenantId;

    use super::*;

    fn account(number: u128) -> Holder {
        Holder::of(Some(TenantId(uuid::Uuid::from_u128(number))))
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_whose_messages_wait_leaves_permits_to_the_others() {
        for size in [1, usize::MAX] {
            let shares = Shares::default();
            let admit = |holder| shares.admit(holder, size).now_or_never().and_then(Result::ok);
            let greedy: Vec<Permits> = (0..1_000).map_while(|_| admit(account(1))).collect();
            assert_eq!(greedy.len(), if size == 1 { 32 } else { 1 });
            let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(shares.admit(account(1), size))).collect();
            assert!(waiting.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
            let others: Vec<_> = [account(2), account(3), Holder::Operators].map(admit).into_iter().flatten().collect();
            assert_eq!(others.len(), 3);
            drop(greedy);
            assert!(waiting.remove(0).await.is_ok(), "the share is free again");
            drop(others);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_that_nobody_uses_is_forgotten_and_a_message_waits_for_ten_seconds() {
        let shares = Shares::default();
        for number in 0..1_000 {
            assert!(shares.admit(account(number), usize::MAX).await.is_ok());
        }
        assert_eq!(lock(&shares.any.by_holder).len(), 1);
        let held = shares.admit(account(1), usize::MAX).await;
        assert!(matches!(shares.admit(account(1), usize::MAX).await, Err(StoreError::Unavailable(_))));
        drop(held);
    }
}
