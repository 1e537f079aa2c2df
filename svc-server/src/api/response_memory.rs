//! The memory of responses to reads, from before the records are read until the client has taken the last byte.
//!
//! All reads share it. A read reserves what its records may need at most, and gives back the rest when their JSON is
//! complete. What is left belongs to the bytes of the body and is given back with them, over every version of HTTP and in
//! every host application.
//!
//! When the memory is used up, reads wait for it, and those that need least get it first. Meanwhile clients that do not
//! take their responses lose their connections, the one that is furthest behind first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use svc_core::error::StoreError;
use svc_core::sync::lock;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

/// What the largest record may need, in bytes, while a page with it is made: its JSON of 26 KB, and room for the page to
/// grow.
const RECORD: usize = 64 * 1024;
/// The highest number of records that are read without waiting for a turn. So a client that requests many of the largest
/// pages at a time does not fill the queue of the database with them.
const MAX_WITHOUT_TURN: u32 = 50;
/// How long a read waits for memory.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often clients that are behind are looked for while a read waits.
const INTERVAL: Duration = Duration::from_millis(20);
/// How far behind the rate of a [`Reader`] a client is left alone, whatever the memory.
const TOLERANCE: Duration = Duration::from_millis(100);

/// The memory that the responses share.
pub(super) struct ResponseMemory {
    limit: usize,
    state: Mutex<State>,
    /// Held by the one waiting read that closes connections.
    closing: tokio::sync::Mutex<()>,
}

struct State {
    /// The number of bytes that nobody has.
    free: usize,
    /// The number of the last waiting read or unread response.
    last: u64,
    /// The reads that wait, by the bytes that they need and in their order. All need more than what is free.
    waiting: BTreeMap<(usize, u64), oneshot::Sender<Reservation>>,
    /// The responses whose connections can be closed.
    unread: BTreeMap<u64, UnreadResponse>,
}

struct UnreadResponse {
    bytes: usize,
    reader: Arc<Reader>,
    is_closing: bool,
}

impl ResponseMemory {
    /// Returns the memory with a limit in bytes.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let state = State { free: limit, last: 0, waiting: BTreeMap::new(), unread: BTreeMap::new() };
        Arc::new(Self { limit, state: Mutex::new(state), closing: <_>::default() })
    }

    fn needed(&self, records: u32) -> usize {
        RECORD.saturating_mul(records as usize).min(self.limit)
    }

    /// Reserves what this number of records may need. Returns `None` when the memory is used up, and for a large number of
    /// records.
    pub(super) fn try_reserve(self: &Arc<Self>, records: u32) -> Option<Reservation> {
        if records > MAX_WITHOUT_TURN {
            return None;
        }
        let bytes = self.needed(records);
        let mut state = lock(&self.state);
        state.free = state.free.checked_sub(bytes)?;
        Some(Reservation { memory: Arc::clone(self), bytes })
    }

    /// Reserves what this number of records may need, and waits until others give it back. Clients that do not take their
    /// responses are disconnected meanwhile.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the memory stays used up for ten seconds.
    pub(super) async fn reserve(self: &Arc<Self>, records: u32) -> Result<Reservation, StoreError> {
        let (sender, reserved) = oneshot::channel();
        {
            let mut state = lock(&self.state);
            let number = state.next_number();
            state.waiting.insert((self.needed(records), number), sender);
        }
        // There may be enough by now.
        self.give_back(0);
        tokio::select! {
            Ok(reserved) = reserved => Ok(reserved),
            () = self.close_readers() => Err(StoreError::Unavailable("the memory for responses is used up".to_owned())),
        }
    }

    /// Closes connections for a read that waits, for as long as it waits at most.
    async fn close_readers(&self) {
        let closing = async {
            let _closing = self.closing.lock().await;
            let mut interval = tokio::time::interval(INTERVAL);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                lock(&self.state).close_readers();
            }
        };
        let _: Result<(), _> = tokio::time::timeout(TIMEOUT, closing).await;
    }

    /// Gives bytes back, to the waiting reads that need least.
    fn give_back(self: &Arc<Self>, bytes: usize) {
        let mut state = lock(&self.state);
        state.free += bytes;
        while let Some((&(needed, number), _)) = state.waiting.first_key_value()
            && needed <= state.free
            && let Some(sender) = state.waiting.remove(&(needed, number))
        {
            match sender.send(Reservation { memory: Arc::clone(self), bytes: needed }) {
                Ok(()) => state.free -= needed,
                // The read no longer waits.
                Err(mut reserved) => reserved.bytes = 0,
            }
        }
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Closes connections whose clients are behind, the furthest behind first, until there will be enough for the first
    /// waiting read.
    fn close_readers(&mut self) {
        self.waiting.retain(|_, sender| !sender.is_closed());
        let Some((&(needed, _), _)) = self.waiting.first_key_value() else { return };
        let closing: usize = self.unread.values().filter(|response| response.is_closing).map(|r| r.bytes).sum();
        let deadline = Instant::now() - TOLERANCE;
        let mut behind: Vec<(Instant, &mut UnreadResponse)> = self
            .unread
            .values_mut()
            .filter(|response| !response.is_closing)
            .map(|response| (response.reader.behind_since(), response))
            .filter(|(since, _)| *since <= deadline)
            .collect();
        behind.sort_by_key(|(since, _)| *since);
        let mut expected = self.free + closing;
        for (_, response) in behind {
            if expected >= needed {
                return;
            }
            expected += response.bytes;
            response.is_closing = true;
            response.reader.close.notify_one();
        }
    }
}

/// A part of the memory, which is given back when this is dropped.
pub(super) struct Reservation {
    memory: Arc<ResponseMemory>,
    bytes: usize,
}

impl Reservation {
    /// Gives back all but the length of a body, and returns a body that holds the rest. The connection of the reader is
    /// closed when its memory is needed; without a reader the body has it until it is dropped.
    pub(super) fn hold(mut self, body: Bytes, reader: Option<&Arc<Reader>>) -> Bytes {
        let spare = self.bytes.saturating_sub(body.len());
        self.bytes -= spare;
        self.memory.give_back(spare);
        if self.bytes == 0 {
            return body;
        }
        let number = reader.map(|reader| {
            reader.begin();
            let reader = Arc::clone(reader);
            let mut state = lock(&self.memory.state);
            let number = state.next_number();
            state.unread.insert(number, UnreadResponse { bytes: self.bytes, reader, is_closing: false });
            number
        });
        Bytes::from_owner(HeldBody { body, number, reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.give_back(self.bytes);
        }
    }
}

/// The bytes of a body with their part of the memory.
struct HeldBody {
    body: Bytes,
    number: Option<u64>,
    reservation: Reservation,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            lock(&self.reservation.memory.state).unread.remove(&number);
        }
    }
}

/// The client of a request, as an extension of the request. The listener reports what the client takes of the response, and
/// closes the connection when it is notified.
pub(crate) struct Reader {
    /// The time since which the client has been behind the rate.
    behind_since: Mutex<Instant>,
    close: Arc<Notify>,
}

/// What the listener of the program calls. An application with a listener of its own has clients without a `Reader`.
#[cfg(any(feature = "standalone", test))]
impl Reader {
    /// Creates the client of a request on a connection that is closed by `close`.
    pub(crate) fn new(close: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { behind_since: Mutex::new(Instant::now()), close: Arc::clone(close) })
    }

    /// Notes that the client took bytes of its response.
    pub(crate) fn took(&self, bytes: usize) {
        /// The rate at which clients take responses at least, in bytes per second.
        const RATE: u64 = 64 * 1024;
        let time = Duration::from_micros(bytes as u64 * 1_000_000 / RATE);
        let mut since = lock(&self.behind_since);
        *since = (*since + time).min(Instant::now());
    }
}

impl Reader {
    /// Notes that the response is complete and can be taken.
    fn begin(&self) {
        *lock(&self.behind_since) = Instant::now();
    }

    fn behind_since(&self) -> Instant {
        *lock(&self.behind_since)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    impl ResponseMemory {
        fn free(&self) -> usize {
            lock(&self.state).free
        }
    }

    /// Memory for two records, of which each has a client.
    struct Fixture {
        memory: Arc<ResponseMemory>,
        close: [Arc<Notify>; 2],
        readers: [Arc<Reader>; 2],
        bodies: [Option<Bytes>; 2],
    }

    impl Fixture {
        fn new() -> Self {
            let memory = ResponseMemory::new(2 * RECORD);
            let close = [Arc::default(), Arc::default()];
            let readers = [Reader::new(&close[0]), Reader::new(&close[1])];
            let body =
                |reader| memory.try_reserve(1).map(|memory| memory.hold(vec![b' '; RECORD].into(), Some(reader)));
            let bodies = [body(&readers[0]), body(&readers[1])];
            assert!(bodies.iter().all(Option::is_some));
            Self { memory, close, readers, bodies }
        }

        /// Waits for memory, and plays the listener that closes connections. Returns which it closed.
        async fn reserve(&mut self) -> [bool; 2] {
            let memory = Arc::clone(&self.memory);
            let reservation = memory.reserve(1);
            tokio::pin!(reservation);
            let mut closed = [false; 2];
            loop {
                tokio::select! {
                    reserved = &mut reservation => {
                        assert!(reserved.is_ok());
                        return closed;
                    }
                    () = self.close[0].notified() => (self.bodies[0], closed[0]) = (None, true),
                    () = self.close[1].notified() => (self.bodies[1], closed[1]) = (None, true),
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_holds_its_length_until_it_is_dropped() {
        let memory = ResponseMemory::new(4 * RECORD);
        let reservation = memory.try_reserve(3).unwrap();
        assert!(memory.try_reserve(2).is_none(), "reserved for three records");
        let body = reservation.hold(vec![b' '; 2 * RECORD].into(), None);
        let part = body.slice(..1);
        drop(body);
        assert!(memory.try_reserve(3).is_none(), "a part of the body keeps all of it");
        assert!(memory.try_reserve(2).is_some(), "what the body did not need was given back");
        drop(part);
        assert!(memory.try_reserve(200).is_none(), "a large page takes its turn");
        assert!(memory.reserve(200).await.is_ok(), "a page may need all of it");
        assert_eq!(memory.free(), 4 * RECORD);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_closed_before_one_that_reads() {
        let mut fixture = Fixture::new();
        assert!(fixture.memory.try_reserve(1).is_none());
        let started = Instant::now();
        let second = Arc::clone(&fixture.readers[1]);
        let reading = async {
            loop {
                second.took(1024);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let closed = tokio::select! {
            closed = fixture.reserve() => closed,
            () = reading => unreachable!(),
        };
        assert_eq!(closed, [true, false]);
        assert!((TOLERANCE..TOLERANCE + 2 * INTERVAL).contains(&started.elapsed()), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_a_byte_now_and_then_is_behind() {
        let mut fixture = Fixture::new();
        tokio::time::advance(Duration::from_secs(1)).await;
        // The first took 64 KiB at once, a second late; the second takes next to nothing, but did so last.
        fixture.readers[0].took(RECORD);
        fixture.readers[1].took(1);
        assert_eq!(fixture.reserve().await, [false, true]);
        assert_eq!(fixture.memory.free(), RECORD);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_connections_are_closed_than_needed() {
        let mut fixture = Fixture::new();
        tokio::time::advance(Duration::from_secs(1)).await;
        let closed = fixture.reserve().await;
        assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_read_that_needs_least_gets_memory_first() {
        let memory = ResponseMemory::new(4 * RECORD);
        let held = memory.try_reserve(4);
        let [mut large, mut ended, mut small] = [3, 1, 2].map(|records| Box::pin(memory.reserve(records)));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(ended.as_mut().now_or_never().is_none());
        assert!(small.as_mut().now_or_never().is_none());
        drop(ended);
        drop(held);
        let small = small.as_mut().now_or_never();
        assert!(matches!(&small, Some(Ok(reserved)) if reserved.bytes == 2 * RECORD));
        assert!(large.as_mut().now_or_never().is_none());
        drop(small);
        assert!(matches!(large.await, Ok(reserved) if reserved.bytes == 3 * RECORD));
        assert_eq!(memory.free(), 4 * RECORD);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_for_ten_seconds() {
        let memory = ResponseMemory::new(RECORD);
        let held = memory.try_reserve(1);
        let started = Instant::now();
        assert!(matches!(memory.reserve(1).await.map(drop), Err(StoreError::Unavailable(_))));
        assert_eq!(started.elapsed(), TIMEOUT);
        let mut waiting = Box::pin(memory.reserve(1));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert!(waiting.await.is_ok());
    }
}
