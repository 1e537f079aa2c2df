use std::net::{IpAddr, Ipv4Addr};

use futures_util::FutureExt as _;

use super::*;
use crate::kernel::shares::Pool;

const IDLE: Duration = Duration::from_secs(75);
const TIMEOUTS: Timeouts =
    Timeouts { head: Duration::from_secs(10), idle: IDLE, response: Some(Duration::from_secs(30)) };
const STAGE: Stage = Stage { memory: 1_000, buffers: Buffers::Received(32 * 1024), is_next_head: true };

const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

struct OpenConnection {
    places: Pool,
    memory: Pool,
    open: OpenRequests,
    started: Instant,
}

impl OpenConnection {
    fn new() -> Self {
        let places = Pool::of_places("places", 1, Arc::default());
        let memory = Pool::of_memory("bytes", STAGE.memory + 3 * BUFFER, Arc::default());
        let address = Ipv4Addr::LOCALHOST.into();
        let place = places.try_take(address, 1, 0).unwrap();
        let open = OpenRequests::new(place, memory.try_take(address, STAGE.memory, 0).unwrap(), STAGE);
        open.waits();
        Self { places, memory, open, started: Instant::now() }
    }

    /// Returns why the connection is closed, and after how long, while `requests` come.
    async fn closed(&self, requests: impl Future<Output = ()>) -> (CloseReason, Duration) {
        let requests = async {
            requests.await;
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = requests => unreachable!(),
            reason = self.open.expired(TIMEOUTS) => (reason, self.started.elapsed()),
        }
    }

    /// Returns the memory that is free, in bytes.
    fn free(&self) -> usize {
        self.memory.free()
    }

    fn is_given_up(&self) -> bool {
        self.open.given_up().now_or_never().is_some()
    }

    /// Another connection comes, and needs the only place.
    fn is_replaced(&self) -> bool {
        assert!(self.places.try_take(OTHER, 1, 0).is_none(), "it is free when the connection has ended");
        self.is_given_up()
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_request_has_the_time_of_a_head() {
    let fixture = OpenConnection::new();
    assert_eq!(fixture.closed(async {}).await, (CloseReason::Unfinished, TIMEOUTS.head));
}

#[tokio::test(start_paused = true)]
async fn the_idle_time_starts_at_the_end_of_the_last_request() {
    let fixture = OpenConnection::new();
    let requests = async {
        let request = fixture.open.begin();
        request.set(Progress::Handled);
        seconds(1_000).await;
        drop(request);
        seconds(40).await;
        drop(fixture.open.begin());
    };
    assert_eq!(fixture.closed(requests).await, (CloseReason::Idle, Duration::from_secs(1_040) + IDLE));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_has_begun_has_the_time_of_a_head() {
    let fixture = OpenConnection::new();
    let requests = async {
        drop(fixture.open.begin());
        seconds(60).await;
        for _ in 0..20 {
            fixture.open.received(1);
            seconds(1).await;
        }
    };
    assert_eq!(fixture.closed(requests).await, (CloseReason::Unfinished, Duration::from_secs(70)));
}

#[tokio::test(start_paused = true)]
async fn an_unread_response_stalls_the_connection_despite_later_requests() {
    let fixture = OpenConnection::new();
    let requests = async {
        let first = fixture.open.begin();
        seconds(10).await;
        first.set(Progress::Ready(Instant::now()));
        loop {
            fixture.open.begin().set(Progress::Ready(Instant::now()));
            seconds(1).await;
        }
    };
    assert_eq!(fixture.closed(requests).await, (CloseReason::Stalled, Duration::from_secs(40)));
}

#[tokio::test(start_paused = true)]
async fn a_place_is_given_up_unless_a_request_is_handled() {
    let fixture = OpenConnection::new();
    let first = fixture.open.begin();
    let second = fixture.open.begin();
    second.set(Progress::Handled);
    assert!(!fixture.is_replaced());
    drop(second);
    assert!(fixture.is_replaced(), "the first still arrives");
    drop(first);
    assert!(OpenConnection::new().is_replaced(), "nothing has come yet");
    let fixture = OpenConnection::new();
    drop(fixture.open.begin());
    assert!(fixture.is_replaced(), "it is idle");
    let fixture = OpenConnection::new();
    let unread = fixture.open.begin();
    unread.set(Progress::Handled);
    unread.set(Progress::Ready(Instant::now()));
    assert!(fixture.is_replaced(), "the client has its response to read");
}

#[tokio::test(start_paused = true)]
async fn what_is_received_has_memory_until_a_request_has_taken_it() {
    let fixture = OpenConnection::new();
    let request = fixture.open.begin();
    request.set(Progress::Handled);
    let arriving = fixture.open.begin();
    for (received, free) in [(BUFFER - 1, 3), (1, 3), (1, 2), (BUFFER - 1, 2), (BUFFER, 1)] {
        assert!(fixture.open.room().ok().unwrap() >= received);
        fixture.open.received(received);
        assert_eq!(fixture.free(), free * BUFFER);
    }
    let _other = fixture.memory.try_take(OTHER, BUFFER, 0).unwrap();
    assert!(fixture.open.room().is_err() && !fixture.is_given_up());
    drop(arriving);
    assert_eq!(fixture.free(), 2 * BUFFER, "all of it belongs to a request");
}

#[tokio::test(start_paused = true)]
async fn a_buffer_is_kept_until_the_next_state() {
    let fixture = OpenConnection::new();
    let stage = Stage { buffers: Buffers::Kept(2 * BUFFER), ..STAGE };
    assert!(fixture.open.enter(stage).await);
    fixture.open.received(fixture.open.room().ok().unwrap());
    assert_eq!(fixture.free(), 3 * BUFFER);
    assert_eq!(fixture.open.room().ok().unwrap(), usize::MAX, "hyper has bounds of its own");
    fixture.open.received(1);
    drop(fixture.open.begin());
    assert_eq!(fixture.free(), BUFFER);
    assert!(fixture.open.enter(stage).await);
    assert_eq!(fixture.free(), 3 * BUFFER);
}

#[tokio::test(start_paused = true)]
async fn a_connection_waits_for_the_memory_of_its_next_state() {
    let fixture = OpenConnection::new();
    let used = fixture.memory.try_take(OTHER, 3 * BUFFER, 0).unwrap();
    let larger = Stage { memory: STAGE.memory + BUFFER, ..STAGE };
    let mut entering = std::pin::pin!(fixture.open.enter(larger));
    assert!((&mut entering).now_or_never().is_none());
    drop(used);
    assert!((&mut entering).await);
    let _used = fixture.memory.try_take(OTHER, 2 * BUFFER, 0).unwrap();
    let much_larger = Stage { memory: STAGE.memory + 2 * BUFFER, ..STAGE };
    let mut entering = std::pin::pin!(fixture.open.enter(much_larger));
    assert!((&mut entering).now_or_never().is_none());
    let other = fixture.memory.take(OTHER, 1, 0);
    tokio::select! {
        is_entered = entering => assert!(!is_entered, "others needed what it has"),
        _ = other => unreachable!("nothing was given back"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_quiet_a_moment_after_its_last_request() {
    let fixture = OpenConnection::new();
    let requests = async {
        seconds(5).await;
        let request = fixture.open.begin();
        seconds(5).await;
        drop(request);
        std::future::pending().await
    };
    let count = tokio::select! {
        () = requests => unreachable!(),
        count = fixture.open.quiet() => count,
    };
    assert_eq!((count, fixture.started.elapsed()), (1, Duration::from_secs(10) + QUIET));
}
