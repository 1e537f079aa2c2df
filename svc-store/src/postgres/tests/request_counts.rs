//! Request counts that several nodes share.

use svc_core::store::CountChange;
use uuid::Uuid;

use super::clocks::moved;
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn change(subject: u128, bucket: &'static str, seconds: i64, by: i32) -> CountChange {
    let at = Timestamp::from_micros(1_773_500_966_000_000 + seconds * 1_000_000);
    CountChange { subject: Uuid::from_u128(subject), bucket, at, by }
}

/// Opens two stores on one database, and returns them with the clock that they share.
async fn nodes(server: &svc_test_support::postgres::Server) -> ([Arc<dyn Store>; 2], ManualClock) {
    let (url, clock) = (server.database(), ManualClock::at(change(0, "", 0, 0).at));
    let open = |seed| open_with(&url, Env::new(clock.clone(), SeededEntropy::new(seed)), options());
    ([open(1).await.unwrap(), open(2).await.unwrap()], clock.clone())
}

async fn add(store: &dyn Store, changes: &[CountChange]) -> Vec<u32> {
    let windows = store.request_counts().unwrap().add(changes, MINUTE).await.unwrap();
    windows.iter().map(|window| window.used).collect()
}

#[tokio::test]
async fn each_request_of_all_nodes_counts_once() {
    let Some(server) = server() else { return };
    let (nodes, _) = nodes(server).await;
    let one = [change(1, "general", 0, 1), change(1, "quotes.create", 0, 1)];
    // The calls run concurrently, so that one statement adds many of them, and each gets its own count.
    let mut counts: Vec<u32> = join_all((0..200).map(|n| add(&*nodes[n % 2], &one)))
        .await
        .into_iter()
        .map(|used| {
            assert_eq!(used[0], used[1]);
            used[0]
        })
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=200).collect::<Vec<_>>());
    assert_eq!(add(&*nodes[0], &[change(2, "general", 0, 1)]).await, [1], "another key");
    assert_eq!(add(&*nodes[0], &[change(1, "general", 0, -3), change(1, "jobs.create", 0, 1)]).await, [197, 1]);
    assert_eq!(add(&*nodes[1], &[change(1, "general", 0, -1000)]).await, [0], "never below zero");
}

/// Each node counts at its own time, which is that of the database.
#[tokio::test]
async fn nodes_whose_clocks_are_an_hour_apart_share_a_window() {
    let Some(server) = server() else { return };
    let url = server.database();
    let nodes = join_all([1800, -1800].map(|seconds| open_with(&url, moved(seconds).1, options()))).await;
    let nodes: Vec<Arc<dyn Store>> = nodes.into_iter().map(Result::unwrap).collect();
    let mut windows = Vec::new();
    for node in nodes.iter().cycle().take(6) {
        let change = CountChange { at: node.env().now(), ..change(1, "general", 0, 1) };
        windows.extend(node.request_counts().unwrap().add(&[change], 10 * MINUTE).await.unwrap());
    }
    assert_eq!(windows.iter().map(|window| window.used).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(windows.iter().all(|window| window.started == windows[0].started), "{windows:?}");
}

#[tokio::test]
async fn a_window_ends_after_its_length_and_when_it_lies_in_the_future() {
    let Some(server) = server() else { return };
    let ([node, _], clock) = nodes(server).await;
    let counts = node.request_counts().unwrap();
    for (seconds, want) in [(0, (0, 1)), (59, (0, 2)), (60, (60, 1)), (100, (60, 2)), (-1000, (-1000, 1))] {
        let change = change(1, "general", seconds, 1);
        clock.set(change.at);
        let window = counts.add(&[change], MINUTE).await.unwrap()[0];
        let started = (window.started.as_micros() - 1_773_500_966_000_000) / 1_000_000;
        assert_eq!((started, window.used), want, "at {seconds}");
    }
}

/// A refund that ends in another window than its request takes nothing from that one, so no request too many is allowed.
#[tokio::test]
async fn a_window_never_begins_below_zero() {
    let Some(server) = server() else { return };
    let ([node, _], clock) = nodes(server).await;
    assert_eq!(add(&*node, &[change(1, "general", 0, -1)]).await, [0], "a window that did not exist");
    assert_eq!(add(&*node, &[change(1, "general", 0, 1)]).await, [1]);
    clock.set(change(1, "general", 60, 0).at);
    assert_eq!(add(&*node, &[change(1, "general", 60, -2)]).await, [0], "a window that has ended");
    assert_eq!(add(&*node, &[change(1, "general", 60, 1)]).await, [1]);
}

#[tokio::test]
async fn calls_fail_at_once_while_the_server_is_stopped() {
    let Some(server) = svc_test_support::postgres::another() else { return };
    let store = store(&server.database()).await;
    let one = [change(1, "general", 0, 1)];
    add(&*store, &one).await;
    server.stop();
    let counts = store.request_counts().unwrap();
    for _ in 0..3 {
        let refused = timeout(2 * SECOND, counts.add(&one, MINUTE)).await.unwrap();
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
    server.start();
    let reconnect = async {
        while counts.add(&one, MINUTE).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(10 * SECOND, reconnect).await.unwrap();
}
