//! A bounded queue of units of work, which both databases use.

use std::collections::VecDeque;

use svc_core::error::StoreError;

/// The most units of work that can wait. It is far more than there are connections: beyond it the service is overloaded.
const CAPACITY: usize = 16_384;

/// A first-in, first-out queue that refuses units of work when it is full or closed. It has no lock and never waits: its
/// owner adds both.
pub(crate) struct BoundedQueue<T> {
    units: VecDeque<T>,
    is_open: bool,
}

impl<T> BoundedQueue<T> {
    pub(crate) fn new() -> Self {
        Self { units: VecDeque::new(), is_open: true }
    }

    /// Adds a unit of work at the end, unless too many wait here and in other places of the owner.
    pub(crate) fn push(&mut self, work: T, elsewhere: usize) -> Result<(), StoreError> {
        if !self.is_open {
            return Err(StoreError::Closed);
        }
        if self.units.len() + elsewhere >= CAPACITY {
            return Err(StoreError::Unavailable(format!("the queue is full: {CAPACITY} transactions are waiting")));
        }
        self.units.push_back(work);
        Ok(())
    }

    /// Puts a unit of work that has to run again back at the front.
    pub(crate) fn push_front(&mut self, work: T) {
        self.units.push_front(work);
    }

    /// Removes and returns up to `max` units of work from the front.
    pub(crate) fn take(&mut self, max: usize) -> Vec<T> {
        let count = self.units.len().min(max);
        self.units.drain(..count).collect()
    }

    /// Removes and returns the unit of work at the front, if `predicate` is true.
    pub(crate) fn take_first_if(&mut self, predicate: impl Fn(&T) -> bool) -> Option<T> {
        self.units.pop_front_if(|work| predicate(work))
    }

    /// Removes and returns units of work from the front while `predicate` is true.
    pub(crate) fn take_while(&mut self, predicate: impl Fn(&T) -> bool) -> Vec<T> {
        let count = self.units.iter().take_while(|work| predicate(work)).count();
        self.take(count)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Closes the queue. The units of work in it can still be taken.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_elsewhere_counts_towards_the_capacity() {
        let mut queue = BoundedQueue::new();
        assert!(queue.push(1, CAPACITY - 1).is_ok());
        assert!(matches!(queue.push(2, CAPACITY - 1), Err(StoreError::Unavailable(_))));
        assert!(queue.push(2, CAPACITY - 2).is_ok());
        assert_eq!(queue.take(usize::MAX), [1, 2]);
    }
}
