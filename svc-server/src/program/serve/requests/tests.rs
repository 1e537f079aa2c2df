use std::net::Ipv4Addr;

use futures_util::FutureExt as _;

use super::*;
use crate::api::shares::Pool;

const IDLE: Duration = Duration::from_secs(75);
const TIMEOUTS: Timeouts =
    Timeouts { head: Duration::from_secs(10), idle: IDLE, response: Some(Duration::from_secs(30)) };
const STAGE: Stage = Stage { memory: 1_000, buffers: Buffers::Received(32 * 1024), is_next_head: true };

struct Fixture {
    places: Pool,
    memory: Pool,
    open: OpenRequests,
    started: Instant,
}

impl Fixture {
    fn new() -> Self {
        let pool = |limit| Pool::new("units", limit, Arc::default());
        let (places, memory) = (pool(1), pool(STAGE.memory + 10_000));
        let address = Ipv4Addr::LOCALHOST.into();
        let open =
            OpenRequests::new(places.take(address, 1).unwrap(), memory.take(address, STAGE.memory).unwrap(), STAGE);
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

    fn is_given_up(&self) -> bool {
        self.open.given_up().now_or_never().is_some()
    }

    /// Another connection comes, and needs the only place.
    fn is_replaced(&self) -> bool {
        let other = self.places.take(Ipv4Addr::new(192, 0, 2, 1).into(), 1);
        assert_eq!(other.is_some(), self.is_given_up());
        other.is_some()
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_request_has_the_time_of_a_head() {
    let fixture = Fixture::new();
    assert_eq!(fixture.closed(async {}).await, (CloseReason::Unfinished, TIMEOUTS.head));
}

#[tokio::test(start_paused = true)]
async fn the_idle_time_starts_at_the_end_of_the_last_request() {
    let fixture = Fixture::new();
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
    let fixture = Fixture::new();
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
    let fixture = Fixture::new();
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
    let fixture = Fixture::new();
    let first = fixture.open.begin();
    let second = fixture.open.begin();
    second.set(Progress::Handled);
    assert!(!fixture.is_replaced());
    drop(second);
    assert!(fixture.is_replaced(), "the first still arrives");
    drop(first);
    assert!(Fixture::new().is_replaced(), "nothing has come yet");
    let fixture = Fixture::new();
    drop(fixture.open.begin());
    assert!(fixture.is_replaced(), "it is idle");
    let fixture = Fixture::new();
    let unread = fixture.open.begin();
    unread.set(Progress::Handled);
    unread.set(Progress::Ready(Instant::now()));
    assert!(fixture.is_replaced(), "the client has its response to read");
}

#[tokio::test(start_paused = true)]
async fn what_is_received_is_counted_until_a_request_has_taken_it() {
    let fixture = Fixture::new();
    let free = || {
        let mut free = 0;
        while fixture.memory.take(Ipv4Addr::new(192, 0, 2, 1).into(), free + 1).is_some() && free < 20_000 {
            free += 1_000;
        }
        free
    };
    fixture.open.begin().set(Progress::Handled);
    let request = fixture.open.begin();
    request.set(Progress::Handled);
    fixture.open.received(BUFFER + 5_000);
    assert_eq!(free(), 5_000);
    request.set(Progress::Handled);
    assert_eq!(free(), 10_000, "all of it belongs to a request");
    fixture.open.received(BUFFER + 10_001);
    assert!(fixture.is_given_up(), "more than there is");
    let fixture = Fixture::new();
    fixture.open.enter(Stage { buffers: Buffers::Kept(10_000), ..STAGE });
    fixture.open.received(BUFFER);
    assert!(fixture.memory.take(Ipv4Addr::LOCALHOST.into(), 10_000).is_some());
    fixture.open.received(1);
    drop(fixture.open.begin());
    let other = fixture.memory.take(Ipv4Addr::new(192, 0, 2, 1).into(), 1);
    assert!(other.is_some() && fixture.is_given_up(), "the buffer is kept");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_quiet_a_moment_after_its_last_request() {
    let fixture = Fixture::new();
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
