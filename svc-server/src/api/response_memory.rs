//! The memory of responses to reads, from before the records are read until the client has taken the last byte.
//!
//! All reads share it. A read takes what its records may need at most, and gives back the rest when their JSON is complete.
//! What is left belongs to the bytes of the body and is given back with them, over every version of HTTP and in every host
//! application.
//!
//! When the memory is used up, reads wait for it, and those that need least get it first. Otherwise a
//! client that asks for many of the largest pages would delay the requests of all others by seconds. Meanwhile clients that do not take their responses lose
//! their connections, the one that is furthest behind first.

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
/// How long a read waits for memory.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a waiting read closes the connection of a client that is behind.
const INTERVAL: Duration = Duration::from_millis(20);
/// How far behind the rate of a [`Reader`] a client is left alone, whatever the memory.
const TOLERANCE: Duration = Duration::from_millis(100);

/// The memory that the responses share. Clones are of the same memory.
#[derive(Clone)]
pub(super) struct ResponseMemory {
    limit: usize,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    /// The number of bytes that nobody has.
    free: usize,
    /// The number of the last waiting read or unread response.
    last: u64,
    /// The reads that wait, by the bytes that they need and in their order. All need more than what is free.
    waiting: BTreeMap<(usize, u64), oneshot::Sender<MemoryPermit>>,
    /// The clients whose connections can be closed, by the number of their response.
    unread: BTreeMap<u64, Arc<Reader>>,
}

impl ResponseMemory {
    /// Returns the memory with a limit in bytes.
    pub(super) fn new(limit: usize) -> Self {
        let shared = Shared { free: limit, last: 0, waiting: BTreeMap::new(), unread: BTreeMap::new() };
        Self { limit, shared: Arc::new(Mutex::new(shared)) }
    }

    /// Returns how many records need as much as this number of bytes.
    #[cfg(any(feature = "dashboard", feature = "mcp"))]
    pub(super) fn records_of(bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(RECORD as u64)).unwrap_or(u32::MAX)
    }

    fn needed(&self, records: u32) -> usize {
        RECORD.saturating_mul(records as usize).min(self.limit)
    }

    /// Takes what this number of records may need. Returns `None` when the memory is used up.
    pub(super) fn try_acquire(&self, records: u32) -> Option<MemoryPermit> {
        let bytes = self.needed(records);
        let mut shared = lock(&self.shared);
        shared.free = shared.free.checked_sub(bytes)?;
        Some(MemoryPermit { shared: Arc::clone(&self.shared), bytes })
    }

    /// Takes what this number of records may need, and waits until others give it back. Clients that do not take their
    /// responses are disconnected meanwhile.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the memory stays used up for ten seconds.
    pub(super) async fn acquire(&self, records: u32) -> Result<MemoryPermit, StoreError> {
        self.acquire_bytes(self.needed(records)).await
    }

    /// Takes more for what has turned out to need as much as this number of records. It keeps what it has meanwhile, so that
    /// no more of them wait than there was memory for.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[cfg(any(feature = "dashboard", feature = "mcp"))]
    pub(super) async fn grow(&self, permit: &mut MemoryPermit, records: u32) -> Result<(), StoreError> {
        let more = self.needed(records).saturating_sub(permit.bytes);
        if more > 0 {
            let mut more = self.acquire_bytes(more).await?;
            permit.bytes += std::mem::take(&mut more.bytes);
        }
        Ok(())
    }

    async fn acquire_bytes(&self, bytes: usize) -> Result<MemoryPermit, StoreError> {
        let (sender, acquired) = oneshot::channel();
        {
            let mut shared = lock(&self.shared);
            let number = shared.next_number();
            shared.waiting.insert((bytes, number), sender);
        }
        // There may be enough by now.
        give_back(&self.shared, 0);
        let closing = async {
            let mut interval = tokio::time::interval(INTERVAL);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                lock(&self.shared).close_slowest();
            }
        };
        tokio::select! {
            Ok(permit) = acquired => Ok(permit),
            _ = tokio::time::timeout(TIMEOUT, closing) => {
                Err(StoreError::Unavailable("the memory for responses is used up".to_owned()))
            }
        }
    }
}

/// Gives bytes back, to the waiting reads that need least.
fn give_back(memory: &Arc<Mutex<Shared>>, bytes: usize) {
    let mut shared = lock(memory);
    shared.free += bytes;
    while let Some((&(bytes, number), _)) = shared.waiting.first_key_value()
        && bytes <= shared.free
        && let Some(sender) = shared.waiting.remove(&(bytes, number))
    {
        match sender.send(MemoryPermit { shared: Arc::clone(memory), bytes }) {
            Ok(()) => shared.free -= bytes,
            // The read no longer waits.
            Err(mut permit) => permit.bytes = 0,
        }
    }
}

impl Shared {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Closes the connection whose client is furthest behind, if it is behind for too long.
    fn close_slowest(&mut self) {
        let slowest = self.unread.iter().min_by_key(|(_, reader)| lock(&reader.pace).behind_since);
        if let Some((&number, reader)) = slowest
            && lock(&reader.pace).behind_since.elapsed() >= TOLERANCE
        {
            reader.close.notify_one();
            self.unread.remove(&number);
        }
    }
}

/// A part of the memory, which is given back when this is dropped.
pub(super) struct MemoryPermit {
    shared: Arc<Mutex<Shared>>,
    bytes: usize,
}

impl MemoryPermit {
    /// Gives back all but the length of a body, and returns a body that holds the rest. The connection of the reader is
    /// closed when its memory is needed; without a reader the body has it until it is dropped.
    pub(super) fn hold(mut self, body: Bytes, reader: Option<&Arc<Reader>>) -> Bytes {
        let spare = self.bytes.saturating_sub(body.len());
        self.bytes -= spare;
        give_back(&self.shared, spare);
        if self.bytes == 0 {
            return body;
        }
        let unread = reader.map(|reader| {
            reader.begin_response();
            let mut shared = lock(&self.shared);
            let number = shared.next_number();
            shared.unread.insert(number, Arc::clone(reader));
            (number, Arc::clone(reader))
        });
        Bytes::from_owner(HeldBody { body, unread, memory: self })
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            give_back(&self.shared, self.bytes);
        }
    }
}

/// The bytes of a body with their part of the memory.
struct HeldBody {
    body: Bytes,
    unread: Option<(u64, Arc<Reader>)>,
    memory: MemoryPermit,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        if let Some((number, reader)) = &self.unread {
            lock(&self.memory.shared).unread.remove(number);
            lock(&reader.pace).unread -= 1;
        }
    }
}

/// The client of a connection, as an extension of its requests. The listener reports what the client takes, and closes the
/// connection when it is notified. An application with a listener of its own has clients without a `Reader`.
pub(crate) struct Reader {
    pace: Mutex<Pace>,
    close: Notify,
}

struct Pace {
    /// The time since which the client has been behind the rate.
    behind_since: Instant,
    /// The number of responses that the client has not taken.
    unread: usize,
}

impl Reader {
    /// Notes that a response is complete and can be taken. The client may still have earlier ones to take.
    fn begin_response(&self) {
        let mut pace = lock(&self.pace);
        if pace.unread == 0 {
            pace.behind_since = Instant::now();
        }
        pace.unread += 1;
    }
}

/// What the listener of the program calls.
#[cfg(any(feature = "standalone", test))]
impl Reader {
    /// Creates the client of a connection.
    pub(crate) fn new() -> Arc<Self> {
        let pace = Pace { behind_since: Instant::now(), unread: 0 };
        Arc::new(Self { pace: Mutex::new(pace), close: Notify::new() })
    }

    /// Notes that the client took bytes.
    pub(crate) fn took(&self, bytes: usize) {
        /// The rate at which clients take responses at least, in bytes per second.
        const RATE: u64 = 64 * 1024;
        let time = Duration::from_micros(bytes as u64 * 1_000_000 / RATE);
        let mut pace = lock(&self.pace);
        pace.behind_since = (pace.behind_since + time).min(Instant::now());
    }

    /// Waits until the connection is to be closed, as the memory of its responses is needed.
    pub(crate) async fn must_close(&self) {
        self.close.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    impl ResponseMemory {
        /// Returns memory for this number of records.
        fn for_records(records: usize) -> Self {
            Self::new(records * RECORD)
        }

        /// Returns for how many records there is memory.
        fn free(&self) -> usize {
            lock(&self.shared).free / RECORD
        }
    }

    /// Memory for two records, of which each has a client.
    struct Fixture {
        memory: ResponseMemory,
        readers: [Arc<Reader>; 2],
        bodies: [Option<Bytes>; 2],
    }

    impl Fixture {
        fn new() -> Self {
            let memory = ResponseMemory::for_records(2);
            let readers = [Reader::new(), Reader::new()];
            let body =
                |reader| memory.try_acquire(1).map(|memory| memory.hold(vec![b' '; RECORD].into(), Some(reader)));
            let bodies = [body(&readers[0]), body(&readers[1])];
            assert!(bodies.iter().all(Option::is_some));
            Self { memory, readers, bodies }
        }

        /// Waits for memory, and plays the listener that closes connections. Returns which it closed.
        async fn acquire(&mut self) -> [bool; 2] {
            let acquired = self.memory.acquire(1);
            tokio::pin!(acquired);
            let mut closed = [false; 2];
            loop {
                tokio::select! {
                    acquired = &mut acquired => {
                        assert!(acquired.is_ok());
                        return closed;
                    }
                    () = self.readers[0].must_close() => (self.bodies[0], closed[0]) = (None, true),
                    () = self.readers[1].must_close() => (self.bodies[1], closed[1]) = (None, true),
                }
            }
        }
    }

    #[cfg(feature = "dashboard")]
    #[tokio::test(start_paused = true)]
    async fn what_needs_more_keeps_what_it_has_while_it_waits() {
        let memory = ResponseMemory::for_records(4);
        let (mut first, second) = (memory.try_acquire(2).unwrap(), memory.try_acquire(2).unwrap());
        assert!(memory.grow(&mut first, 2).await.is_ok(), "it has as much");
        {
            let mut more = std::pin::pin!(memory.grow(&mut first, 3));
            assert!((&mut more).now_or_never().is_none());
            assert!(memory.try_acquire(1).is_none(), "it keeps its two records");
            drop(second);
            assert!(more.await.is_ok());
        }
        assert_eq!(memory.free(), 1);
        assert!(memory.grow(&mut first, 1_000).await.is_ok(), "nothing needs more than there is");
        assert_eq!(memory.free(), 0);
        drop(first);
        assert_eq!(memory.free(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_holds_its_length_until_it_is_dropped() {
        let memory = ResponseMemory::for_records(4);
        let permit = memory.try_acquire(3).unwrap();
        assert!(memory.try_acquire(2).is_none(), "taken for three records");
        let body = permit.hold(vec![b' '; 2 * RECORD].into(), None);
        let part = body.slice(..1);
        drop(body);
        assert!(memory.try_acquire(3).is_none(), "a part of the body keeps all of it");
        assert!(memory.try_acquire(2).is_some(), "what the body did not need was given back");
        drop(part);
        assert!(memory.acquire(200).await.is_ok(), "a page may need all of it");
        assert_eq!(memory.free(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_closed_before_one_that_reads() {
        let mut fixture = Fixture::new();
        assert!(fixture.memory.try_acquire(1).is_none());
        let started = Instant::now();
        let second = Arc::clone(&fixture.readers[1]);
        let reading = async {
            loop {
                second.took(1024);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let closed = tokio::select! {
            closed = fixture.acquire() => closed,
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
        assert_eq!(fixture.acquire().await, [false, true]);
        assert_eq!(fixture.memory.free(), 1);
    }

    /// A client could otherwise keep its memory with a small request now and then.
    #[tokio::test(start_paused = true)]
    async fn a_client_with_a_response_to_take_stays_behind_when_it_gets_another() {
        let fixture = Fixture::new();
        let [reader, _] = &fixture.readers;
        let before = lock(&reader.pace).behind_since;
        tokio::time::advance(Duration::from_secs(1)).await;
        reader.begin_response();
        assert_eq!(lock(&reader.pace).behind_since, before);
        let other = Reader::new();
        tokio::time::advance(Duration::from_secs(1)).await;
        other.begin_response();
        assert_eq!(lock(&other.pace).behind_since, Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_connections_are_closed_than_needed() {
        let mut fixture = Fixture::new();
        tokio::time::advance(Duration::from_secs(1)).await;
        let closed = fixture.acquire().await;
        assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_read_that_needs_least_gets_memory_first() {
        let memory = ResponseMemory::for_records(4);
        let held = memory.try_acquire(4);
        let [mut large, mut ended, mut small] = [3, 1, 2].map(|records| Box::pin(memory.acquire(records)));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(ended.as_mut().now_or_never().is_none());
        assert!(small.as_mut().now_or_never().is_none());
        drop(ended);
        drop(held);
        let small = small.as_mut().now_or_never();
        assert!(matches!(&small, Some(Ok(permit)) if permit.bytes == 2 * RECORD));
        assert!(large.as_mut().now_or_never().is_none());
        drop(small);
        assert!(matches!(large.await, Ok(permit) if permit.bytes == 3 * RECORD));
        assert_eq!(memory.free(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_for_ten_seconds() {
        let memory = ResponseMemory::for_records(1);
        let held = memory.try_acquire(1);
        let started = Instant::now();
        assert!(matches!(memory.acquire(1).await.map(drop), Err(StoreError::Unavailable(_))));
        assert_eq!(started.elapsed(), TIMEOUT);
        let mut waiting = Box::pin(memory.acquire(1));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert!(waiting.await.is_ok());
    }
}
