//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a thread panicked while it held the lock.
///
/// Use it where every change under the lock is complete in itself, so that a panic cannot leave the data half changed.
///
/// ```
/// use std::sync::Mutex;
/// use svc_core::sync::lock;
///
/// let counter = Mutex::new(1);
/// *lock(&counter) += 1;
/// assert_eq!(*lock(&counter), 2);
/// ```
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poisoned_mutex_can_be_locked() {
        let mutex = Mutex::new(1);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _guard = lock(&mutex);
                panic!("the thread panics while it holds the lock");
            });
            assert!(panics.join().is_err());
        });
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 1);
    }
}
