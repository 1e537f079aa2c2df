//! Attempts at endpoints whose attempts succeed start a few at a time.
//!
//! A batch claims up to 64 attempts for an endpoint. If they all started at once, each would need a connection of its own,
//! before the first response arrives. Hundreds of connections take memory and processor time, and a few that are kept alive
//! send as much. So an attempt starts when one of a few places is free. It leaves its place when it ends, or after a
//! millisecond, so that endpoints that take longer have as many attempts in flight as their windows allow.

use std::future::Future;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The number of places. Attempts that take longer than [`MAX_HOLD`] start at 32,000 to 64,000 a second with it, as a timer
/// is up to a millisecond late. That is about what two cores deliver.
const PLACES: usize = 64;
/// The longest time for which an attempt holds its place.
const MAX_HOLD: Duration = Duration::from_millis(1);

/// The places of the attempts that have just started.
pub(super) struct Pacer(Semaphore);

impl Pacer {
    pub(super) fn new() -> Self {
        Self(Semaphore::new(PLACES))
    }

    /// Starts an attempt once a place is free, and waits for its end. Attempts get a place in the order in which they wait.
    pub(super) async fn run<A: Future>(&self, start: impl FnOnce() -> A) -> A::Output {
        // The semaphore is never closed.
        let place = self.0.acquire().await;
        let attempt = start();
        tokio::pin!(attempt);
        if let Ok(outcome) = timeout(MAX_HOLD, &mut attempt).await {
            return outcome;
        }
        drop(place);
        attempt.await
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_attempt_starts_when_another_ends_or_has_held_its_place_for_long_enough() {
        let pacer = Arc::new(Pacer::new());
        let (started, began) = (Arc::new(AtomicUsize::new(0)), Instant::now());
        for number in 0..2 * PLACES + 1 {
            let (pacer, started) = (Arc::clone(&pacer), Arc::clone(&started));
            tokio::spawn(async move {
                let attempt = async || {
                    started.fetch_add(1, Ordering::Relaxed);
                    // The first one ends at once, and the others never.
                    if number > 0 {
                        pending::<()>().await;
                    }
                };
                pacer.run(attempt).await;
            });
        }
        while started.load(Ordering::Relaxed) < PLACES + 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        while started.load(Ordering::Relaxed) < 2 * PLACES + 1 {
            assert_eq!(started.load(Ordering::Relaxed), PLACES + 1);
            assert!(began.elapsed() < 10 * MAX_HOLD);
            tokio::time::sleep(MAX_HOLD / 4).await;
        }
        assert!(began.elapsed() >= MAX_HOLD, "{:?}", began.elapsed());
    }
}
