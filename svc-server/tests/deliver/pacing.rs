//! How many attempts start at once.

use std::collections::HashSet;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::engine::{Attempt, AttemptResult, Policy};
use svc_core::webhooks::subscriptions::SubscriptionId;
use svc_server::deliver::{self, WebhookClient};
use svc_test_support::Fixture;
use svc_test_support::fixture::{START, account, attempt_log};
use tokio::time::Instant;

/// The places of the sender for attempts that have just started.
const PLACES: usize = 64;
/// How many endpoints are known to succeed: some more than there are places.
const KNOWN: usize = 100;

/// A client whose first attempt at each endpoint succeeds at once, and whose others never end.
#[derive(Default)]
struct Client {
    known: Mutex<HashSet<SubscriptionId>>,
    /// The attempts that never end, with the time of their start.
    started: Mutex<Vec<(SubscriptionId, Instant)>>,
}

impl WebhookClient for Client {
    fn attempt(&self, Attempt { delivery, .. }: Attempt) -> BoxFuture<'static, AttemptResult> {
        let is_first = self.known.lock().unwrap().insert(delivery.subscription_id);
        if !is_first || self.known.lock().unwrap().len() > KNOWN {
            self.started.lock().unwrap().push((delivery.subscription_id, Instant::now()));
            return Box::pin(pending());
        }
        let log = AttemptLog { duration_ms: 0, ..attempt_log(delivery.attempts, delivery.created_at, 204) };
        Box::pin(async { AttemptResult { delivery, log, retry_after: None } })
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_start_a_few_at_a_time_and_those_at_an_unknown_endpoint_at_once() {
    let fixture = Fixture::at(START, account(), |env| env.max_webhooks = 200);
    let subscribe = async || fixture.webhook("https://example.com", "contact.created").await.id;
    for _ in 0..KNOWN {
        subscribe().await;
    }
    let client = Arc::new(Client::default());
    let sender: Arc<dyn WebhookClient> = client.clone();
    let run =
        deliver::run(Arc::clone(fixture.store()), Policy::default(), sender, Arc::default(), pending(), Duration::ZERO);
    let sender = tokio::spawn(run);
    // Later than the timestamps of what there is, so that deliveries are due at once.
    fixture.clock.advance(Duration::from_secs(1));
    fixture.contact("ada@example.com").await;
    // The clock of tokio goes on when nothing else is left to do: all endpoints have succeeded then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.known.lock().unwrap().len(), KNOWN);

    let unknown = subscribe().await;
    fixture.clock.advance(Duration::from_secs(1));
    fixture.contact("grace@example.com").await;
    let begin = Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = std::mem::take(&mut *client.started.lock().unwrap());
    let at_once: Vec<_> = started.iter().filter(|(_, at)| *at == begin).map(|(endpoint, _)| *endpoint).collect();
    assert_eq!((at_once.len(), started.len()), (PLACES + 1, KNOWN + 1));
    assert!(at_once.contains(&unknown));
    let after = started.iter().map(|(_, at)| at.duration_since(begin)).max().unwrap();
    assert!(after <= Duration::from_millis(2), "{after:?}");
    sender.abort();
}
