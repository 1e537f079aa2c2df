//! The memory of responses, from before their records are read until the client has taken the last byte.
//!
//! All responses share it. A request takes what its response may need at most, in one piece, and gives back the rest when the
//! body is complete. The remaining memory belongs to the bytes of the body and is given back with them, over every version of HTTP and
//! in every host application.
//!
//! # No deadlock
//!
//! Nobody waits for memory while holding some: a request takes memory once, before it makes anything, and a response that is sent
//! in parts takes it for one part at a time. So the requests that wait never stand in the way of each other, and what is held is
//! given back as fast as clients take it. A body that turns out to be larger than was taken for it counts in full, without
//! waiting: what others can take is so much less until it is gone.
//!
//! # Shares
//!
//! A [`Holder`] gets a quarter of the memory at most, however many requests it sends, so that those of all others go on. When
//! the share or the memory is used up, requests wait, and those that need least go first: otherwise a
//! client that asks for many of the largest pages would delay the requests of all others by seconds. Meanwhile clients that do
//! not take their responses lose their connections, the one that is furthest behind first; where it is the share that is used
//! up, only clients of the same holder do.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use svc_core::error::StoreError;
use svc_core::sync::lock;
use svc_core::values::TenantId;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

/// The memory that the largest record may need, in bytes, while a page with it is made: its JSON of 26 KB, and room for the page to
/// grow.
pub(crate) const RECORD: usize = 64 * 1024;
/// A holder gets this part of the memory at most.
const SHARES: usize = 4;
/// How long a request waits for memory.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many requests of one holder wait at most, which is more than may be sent in a minute by default. Each of them has its
/// head and what it has become in memory meanwhile.
const MAX_WAITING: usize = 256;
/// How often a waiting request closes the connection of a client that is behind.
const INTERVAL: Duration = Duration::from_millis(20);
/// How far behind the rate of a [`Reader`] a client is left alone, whatever the memory.
const TOLERANCE: Duration = Duration::from_millis(100);

/// The recipient of a response. Each holder has a share of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// An account: its keys, its apps, its people, and operators who look at it.
    Account(TenantId),
    /// Operators, for what is of no account.
    Operators,
    /// Everybody who is not signed in.
    Strangers,
}

impl Holder {
    /// Returns the holder of a response about an account. Without an account it is for operators.
    pub(crate) fn of(account: Option<TenantId>) -> Self {
        account.map_or(Self::Operators, Self::Account)
    }
}

/// The memory that the responses share. Clones are of the same memory.
#[derive(Clone)]
pub(crate) struct ResponseMemory {
    /// The number of bytes that one holder gets at most.
    share: usize,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    limit: usize,
    share: usize,
    /// The number of bytes that are held. It can be more than the limit, as [`MemoryPermit::hold`] does not wait.
    held: usize,
    /// How many of them each holder has.
    by_holder: HashMap<Holder, usize>,
    /// The number of the last waiting request or unread response.
    last: u64,
    /// The requests that wait, by the bytes that they need and in their order.
    waiting: BTreeMap<(usize, u64), Waiting>,
    /// The clients whose connections can be closed, by the number of their response.
    unread: BTreeMap<u64, (Holder, Arc<Reader>)>,
}

struct Waiting {
    holder: Holder,
    sender: oneshot::Sender<MemoryPermit>,
}

impl ResponseMemory {
    /// Returns the memory with a limit in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self::with_share(limit, limit / SHARES)
    }

    fn with_share(limit: usize, share: usize) -> Self {
        let shared = Shared {
            limit,
            share,
            held: 0,
            by_holder: HashMap::new(),
            last: 0,
            waiting: BTreeMap::new(),
            unread: BTreeMap::new(),
        };
        Self { share, shared: Arc::new(Mutex::new(shared)) }
    }

    /// Returns the bytes that are taken for records. An eighth of the share is left, so that a few small responses that a client
    /// does not take do not stand in the way of the largest ones.
    fn needed(&self, records: u32) -> usize {
        RECORD.saturating_mul(records as usize).min(self.share - self.share / 8)
    }

    /// Takes what this number of records may need. Returns `None` when the memory or the share of the holder is used up.
    pub(crate) fn try_acquire(&self, holder: Holder, records: u32) -> Option<MemoryPermit> {
        let bytes = self.needed(records);
        let mut shared = lock(&self.shared);
        if !shared.has_room(holder, bytes) {
            return None;
        }
        shared.take(holder, bytes);
        Some(MemoryPermit { shared: Arc::clone(&self.shared), holder, bytes })
    }

    /// Takes what this number of records may need, and waits until others give it back. Clients that do not take their
    /// responses are disconnected meanwhile. The caller holds no memory.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the memory or the share stays used up for ten seconds, and at once when very many
    /// requests of the holder wait already.
    pub(crate) async fn acquire(&self, holder: Holder, records: u32) -> Result<MemoryPermit, StoreError> {
        let bytes = self.needed(records);
        let (sender, acquired) = oneshot::channel();
        {
            let mut shared = lock(&self.shared);
            if !shared.admits_waiting(holder) {
                let reason = "too many requests of the account wait for the memory for responses";
                return Err(StoreError::Unavailable(reason.to_owned()));
            }
            let number = shared.next_number();
            shared.waiting.insert((bytes, number), Waiting { holder, sender });
        }
        // There may be enough by now.
        give_back(&self.shared, holder, 0);
        let closing = async {
            let mut interval = tokio::time::interval(INTERVAL);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                lock(&self.shared).close_slowest(holder, bytes);
            }
        };
        tokio::select! {
            Ok(permit) = acquired => Ok(permit),
            _ = tokio::time::timeout(TIMEOUT, closing) => {
                Err(StoreError::Unavailable("the memory for responses is used up".to_owned()))
            }
        }
    }

    /// Returns a permit for no bytes yet, for a response that is small or was made before it was known whom it is for.
    pub(crate) fn nothing(&self, holder: Holder) -> MemoryPermit {
        MemoryPermit { shared: Arc::clone(&self.shared), holder, bytes: 0 }
    }
}

/// Gives bytes of a holder back, to the waiting requests that need least.
fn give_back(memory: &Arc<Mutex<Shared>>, holder: Holder, bytes: usize) {
    let mut shared = lock(memory);
    shared.release(holder, bytes);
    while let Some(key) = shared.next_ready()
        && let Some(Waiting { holder, sender }) = shared.waiting.remove(&key)
    {
        let (bytes, _) = key;
        match sender.send(MemoryPermit { shared: Arc::clone(memory), holder, bytes }) {
            Ok(()) => shared.take(holder, bytes),
            // The request no longer waits.
            Err(mut permit) => permit.bytes = 0,
        }
    }
}

impl Shared {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns whether one more request of a holder may wait, and forgets those that no longer do.
    fn admits_waiting(&mut self, holder: Holder) -> bool {
        let waiting = |all: &BTreeMap<_, Waiting>| all.values().filter(|waiting| waiting.holder == holder).count();
        if waiting(&self.waiting) < MAX_WAITING {
            return true;
        }
        self.waiting.retain(|_, waiting| !waiting.sender.is_closed());
        waiting(&self.waiting) < MAX_WAITING
    }

    fn held_by(&self, holder: Holder) -> usize {
        self.by_holder.get(&holder).copied().unwrap_or_default()
    }

    /// Returns whether a holder can take this many bytes of its share.
    fn has_share(&self, holder: Holder, bytes: usize) -> bool {
        bytes == 0 || self.held_by(holder) + bytes <= self.share
    }

    fn has_room(&self, holder: Holder, bytes: usize) -> bool {
        bytes == 0 || self.has_share(holder, bytes) && self.held + bytes <= self.limit
    }

    fn take(&mut self, holder: Holder, bytes: usize) {
        if bytes > 0 {
            self.held += bytes;
            *self.by_holder.entry(holder).or_default() += bytes;
        }
    }

    fn release(&mut self, holder: Holder, bytes: usize) {
        self.held -= bytes;
        if let Some(held) = self.by_holder.get_mut(&holder) {
            *held -= bytes;
            if *held == 0 {
                self.by_holder.remove(&holder);
            }
        }
    }

    /// Returns the first of the waiting requests that there is memory for.
    fn next_ready(&self) -> Option<(usize, u64)> {
        let free = self.limit.saturating_sub(self.held);
        let small = self.waiting.iter().take_while(|((bytes, _), _)| *bytes <= free);
        let mut ready = small.filter(|((bytes, _), waiting)| self.has_share(waiting.holder, *bytes));
        ready.next().map(|(key, _)| *key)
    }

    /// Closes the connection whose client is furthest behind, if it is behind for too long. Where the share of a holder is used
    /// up that needs this many bytes, it is one of its own.
    fn close_slowest(&mut self, holder: Holder, bytes: usize) {
        let is_of_share = !self.has_share(holder, bytes);
        let candidates = self.unread.iter().filter(|(_, (of, _))| !is_of_share || *of == holder);
        let slowest = candidates.min_by_key(|(_, (_, reader))| lock(&reader.pace).behind_since);
        if let Some((&number, (_, reader))) = slowest
            && lock(&reader.pace).behind_since.elapsed() >= TOLERANCE
        {
            reader.close.notify_one();
            self.unread.remove(&number);
        }
    }
}

/// A part of the memory, which is given back when this is dropped.
pub(crate) struct MemoryPermit {
    shared: Arc<Mutex<Shared>>,
    holder: Holder,
    bytes: usize,
}

impl MemoryPermit {
    /// Returns whom the memory is for.
    pub(crate) fn holder(&self) -> Holder {
        self.holder
    }

    /// Returns a body that holds the memory for its length: the rest is given back, and what is missing is taken without
    /// waiting. The connection of the reader is closed when its memory is needed; without a reader the body has it until it is
    /// dropped.
    pub(crate) fn hold(mut self, body: Bytes, reader: Option<&Arc<Reader>>) -> Bytes {
        if body.len() > self.bytes {
            let missing = body.len() - self.bytes;
            lock(&self.shared).take(self.holder, missing);
        } else {
            give_back(&self.shared, self.holder, self.bytes - body.len());
        }
        self.bytes = body.len();
        if self.bytes == 0 {
            return body;
        }
        let unread = reader.map(|reader| {
            reader.begin_response();
            let mut shared = lock(&self.shared);
            let number = shared.next_number();
            shared.unread.insert(number, (self.holder, Arc::clone(reader)));
            (number, Arc::clone(reader))
        });
        Bytes::from_owner(HeldBody { body, unread, memory: self })
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            give_back(&self.shared, self.holder, self.bytes);
        }
    }
}

/// The memory of a response that the call of a tool becomes, taken for the request that the call stands for.
#[derive(Clone, Default)]
pub(crate) struct ToolMemory(Arc<Mutex<Option<MemoryPermit>>>);

impl ToolMemory {
    /// Returns whether an earlier call of the same message has memory. The next one must not wait for more then.
    pub(crate) fn is_taken(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Keeps memory for the response, together with that of an earlier call.
    pub(crate) fn put(&self, mut permit: MemoryPermit) {
        let mut kept = lock(&self.0);
        if let Some(earlier) = &mut *kept {
            earlier.bytes += std::mem::take(&mut permit.bytes);
        } else {
            *kept = Some(permit);
        }
    }

    /// Takes the memory for the response that was made.
    pub(crate) fn take(&self) -> Option<MemoryPermit> {
        lock(&self.0).take()
    }
}

impl std::fmt::Debug for ToolMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolMemory").finish_non_exhaustive()
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

/// The interface for the listener of the program.
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
mod tests;
