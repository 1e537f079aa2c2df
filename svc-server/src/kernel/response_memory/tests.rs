use futures_util::FutureExt as _;

use super::*;

/// The holder of tests that are not about shares.
const SOMEONE: Holder = Holder::Operators;

fn account(number: u128) -> Holder {
    Holder::of(Some(TenantId(uuid::Uuid::from_u128(number))))
}

impl ResponseMemory {
    /// Returns memory for this number of records, which one holder may have alone.
    fn for_records(records: usize) -> Self {
        Self::with_share(records * RECORD, records * RECORD)
    }

    /// Returns for how many records there is memory.
    fn free(&self) -> usize {
        let shared = lock(&self.shared);
        shared.limit.saturating_sub(shared.held) / RECORD
    }
}

/// Memory for two records, of which each has a client.
struct FullMemory {
    memory: ResponseMemory,
    readers: [Arc<Reader>; 2],
    bodies: [Option<Bytes>; 2],
}

impl FullMemory {
    fn new() -> Self {
        Self::with(ResponseMemory::for_records(2), [SOMEONE; 2])
    }

    /// Lets each of two holders have a body of one record.
    fn with(memory: ResponseMemory, holders: [Holder; 2]) -> Self {
        let readers = [Reader::new(), Reader::new()];
        let body = |at: usize| {
            let permit = memory.try_acquire(holders[at], 1)?;
            Some(permit.hold(vec![b' '; RECORD].into(), Some(&readers[at])))
        };
        let bodies = [body(0), body(1)];
        assert!(bodies.iter().all(Option::is_some));
        Self { memory, readers, bodies }
    }

    /// Waits for memory, and plays the listener that closes connections. Returns which it closed.
    async fn acquire(&mut self, holder: Holder) -> [bool; 2] {
        let acquired = self.memory.acquire(holder, 1);
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

/// Pages that turn out to be larger than was taken for them would wait for each other for ever, if they waited.
#[tokio::test(start_paused = true)]
async fn what_is_larger_than_was_taken_for_it_waits_for_nobody() {
    let memory = ResponseMemory::for_records(4);
    let pages: Vec<_> = (0..4).filter_map(|_| memory.try_acquire(SOMEONE, 1)).collect();
    assert_eq!((pages.len(), memory.free()), (4, 0));
    let page = |permit: MemoryPermit| permit.hold(vec![b' '; 3 * RECORD].into(), None);
    let mut pages: Vec<Bytes> = pages.into_iter().map(page).collect();
    assert_eq!(lock(&memory.shared).held, 12 * RECORD, "each byte counts");
    let mut next = Box::pin(memory.acquire(SOMEONE, 1));
    while pages.len() > 1 {
        assert!(next.as_mut().now_or_never().is_none());
        pages.pop();
    }
    assert!(next.await.is_ok(), "there is memory for one record beside a page of three");
    drop(pages);
    assert_eq!(memory.free(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_holder_gets_a_quarter_and_the_others_go_on() {
    let memory = ResponseMemory::new(16 * RECORD);
    let greedy: Vec<_> = (0..100).filter_map(|_| memory.try_acquire(account(1), 1)).collect();
    assert_eq!((greedy.len(), memory.free()), (4, 12));
    let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(memory.acquire(account(1), 1))).collect();
    assert!(waiting.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    for other in [account(2), Holder::Operators, Holder::Strangers] {
        assert!(memory.acquire(other, 4).now_or_never().is_some_and(|permit| permit.is_ok()), "{other:?}");
    }
    drop(greedy);
    let ready = waiting.iter_mut().filter_map(|waiting| waiting.as_mut().now_or_never());
    let ready: Vec<_> = ready.filter_map(Result::ok).collect();
    assert_eq!((ready.len(), memory.free()), (4, 12), "those that waited have the same share");
    drop((ready, waiting));
    assert_eq!(memory.free(), 16);
    assert!(lock(&memory.shared).by_holder.is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_one_holder_only_so_many_requests_wait() {
    let memory = ResponseMemory::new(16 * RECORD);
    let held = memory.try_acquire(account(1), 3);
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(memory.acquire(account(1), 2))).collect();
    assert!(waiting.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    let refused = memory.acquire(account(1), 2).now_or_never().map(|result| result.map(drop));
    assert!(matches!(refused, Some(Err(StoreError::Unavailable(_)))), "{refused:?}");
    assert!(memory.try_acquire(account(2), 4).is_some());
    // A client that has gone leaves its place.
    waiting.pop();
    let mut next = Box::pin(memory.acquire(account(1), 2));
    assert!(next.as_mut().now_or_never().is_none());
    drop(held);
    assert!(waiting.remove(0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_holder_whose_share_is_used_up_does_not_stand_before_the_others() {
    let memory = ResponseMemory::with_share(4 * RECORD, 2 * RECORD);
    let own = memory.try_acquire(account(1), 2);
    let others = memory.try_acquire(account(2), 2);
    let mut small = Box::pin(memory.acquire(account(1), 1));
    let mut large = Box::pin(memory.acquire(account(3), 2));
    assert!(small.as_mut().now_or_never().is_none());
    assert!(large.as_mut().now_or_never().is_none());
    drop(others);
    assert!(large.now_or_never().is_some(), "the smaller one waits for its own share");
    assert!(small.as_mut().now_or_never().is_none());
    drop(own);
    assert!(small.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_client_loses_its_connection_for_its_own_account_first() {
    let memory = ResponseMemory::with_share(4 * RECORD, RECORD);
    let mut fixture = FullMemory::with(memory, [account(1), account(2)]);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(fixture.acquire(account(2)).await, [false, true], "the other was behind first");
}

#[tokio::test(start_paused = true)]
async fn a_body_holds_its_length_until_it_is_dropped() {
    let memory = ResponseMemory::for_records(4);
    let permit = memory.try_acquire(SOMEONE, 3).unwrap();
    assert!(memory.try_acquire(SOMEONE, 2).is_none(), "taken for three records");
    let body = permit.hold(vec![b' '; 2 * RECORD].into(), None);
    let part = body.slice(..1);
    drop(body);
    assert!(memory.try_acquire(SOMEONE, 3).is_none(), "a part of the body keeps all of it");
    assert!(memory.try_acquire(SOMEONE, 2).is_some(), "what the body did not need was given back");
    drop(part);
    assert!(memory.acquire(SOMEONE, 200).await.is_ok(), "a page may need nearly all of it");
    assert_eq!(memory.free(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_closed_before_one_that_reads() {
    let mut fixture = FullMemory::new();
    assert!(fixture.memory.try_acquire(SOMEONE, 1).is_none());
    let started = Instant::now();
    let second = Arc::clone(&fixture.readers[1]);
    let reading = async {
        loop {
            second.took(1024);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let closed = tokio::select! {
        closed = fixture.acquire(SOMEONE) => closed,
        () = reading => unreachable!(),
    };
    assert_eq!(closed, [true, false]);
    assert!((TOLERANCE..TOLERANCE + 2 * INTERVAL).contains(&started.elapsed()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_a_byte_now_and_then_is_behind() {
    let mut fixture = FullMemory::new();
    tokio::time::advance(Duration::from_secs(1)).await;
    // The first took 64 KiB at once, a second late; the second takes next to nothing, but did so last.
    fixture.readers[0].took(RECORD);
    fixture.readers[1].took(1);
    assert_eq!(fixture.acquire(SOMEONE).await, [false, true]);
    assert_eq!(fixture.memory.free(), 1);
}

/// A client could otherwise keep its memory with a small request now and then.
#[tokio::test(start_paused = true)]
async fn a_client_with_a_response_to_take_stays_behind_when_it_gets_another() {
    let fixture = FullMemory::new();
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
    let mut fixture = FullMemory::new();
    tokio::time::advance(Duration::from_secs(1)).await;
    let closed = fixture.acquire(SOMEONE).await;
    assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_read_that_needs_least_gets_memory_first() {
    let memory = ResponseMemory::for_records(4);
    let held = memory.try_acquire(SOMEONE, 4);
    let [mut large, mut ended, mut small] = [3, 1, 2].map(|records| Box::pin(memory.acquire(SOMEONE, records)));
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
    let held = memory.try_acquire(SOMEONE, 1);
    let started = Instant::now();
    assert!(matches!(memory.acquire(SOMEONE, 1).await.map(drop), Err(StoreError::Unavailable(_))));
    assert_eq!(started.elapsed(), TIMEOUT);
    let mut waiting = Box::pin(memory.acquire(SOMEONE, 1));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(held);
    assert!(waiting.await.is_ok());
}
