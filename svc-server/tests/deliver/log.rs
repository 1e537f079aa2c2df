//! What the log says of failed attempts, and of what is left when the sender stops.

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};
use svc_core::webhooks::engine::{Attempt, AttemptResult, Policy};
use svc_server::deliver::{self, WebhookClient};
use svc_test_support::Fixture;
use svc_test_support::fixture::attempt_log;
use tokio::sync::Notify;
use tracing::subscriber::DefaultGuard;

use super::engine::{Sender, within};
use super::receivers::{FAILS, Receiver};

/// Collects the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(log.clone()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Collects what this thread logs until the guards are dropped.
    fn collect(&self) -> (tracing::Dispatch, DefaultGuard) {
        let writer = self.clone();
        let subscriber =
            tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
        // With a single subscriber, an event that another thread records first is never collected (tokio-rs/tracing#3611).
        let second = tracing::Dispatch::new(tracing_subscriber::registry());
        (second, tracing::subscriber::set_default(subscriber))
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs on one thread, whose log is collected.
#[tokio::test]
async fn failed_attempts_are_logged_without_the_path_of_the_url() {
    let log = Log::default();
    let _collecting = log.collect();

    let receiver = Receiver::with_responses(&[FAILS]).await;
    let fixture = Sender::start(&[1]).await;
    let hook = fixture.subscribe(&receiver.url("/hooks/t0ken?key=t0ken")).await;
    fixture.contact("ada@example.com").await;
    let deliveries = fixture.until(|deliveries| deliveries[0].failures == 2).await;
    let (tenant, host) = (fixture.tenant.to_string(), receiver.address.to_string());
    fixture.stop().await;

    let lines = log.lines();
    let of = |line: &Value| {
        let about = [&line["tenant"], &line["subscription"], &line["host"], &line["delivery"]];
        let about = about.map(|field| field.as_str().unwrap_or_default().to_owned());
        assert_eq!(about, [&tenant, &hook.id.to_string(), &host, &deliveries[0].id.to_string()].map(String::from));
        assert_eq!((&line["status"], &line["error"]), (&500.into(), &"status: 500 Internal Server Error".into()));
        (line["level"].clone(), line["attempt"].clone(), line["next_attempt_at"].is_string())
    };
    let lines: Vec<_> = lines.iter().map(of).collect();
    let expected = [("INFO", 1, true), ("WARN", 2, false), ("INFO", 2, false)];
    assert_eq!(lines, expected.map(|(level, attempt, retried)| (level.into(), attempt.into(), retried)));
    for hidden in ["t0ken", "hooks", "ada@example.com", "oops", hook.secret.reveal()] {
        assert!(!log.text().contains(hidden), "{hidden}: {}", log.text());
    }
}

/// What does not come to an end in a sender.
#[derive(Clone, Copy, PartialEq)]
enum Stuck {
    Attempt,
    Outcome,
}

/// A store and a client in one, with something that does not end, and says that it has begun.
struct StuckSender {
    store: MemoryStore,
    stuck: Stuck,
    batches: AtomicUsize,
    begun: Arc<Notify>,
}

#[async_trait]
impl StoreWrapper for StuckSender {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        // The first one claims the attempt, and the second one records its outcome.
        if self.stuck == Stuck::Outcome && name == "deliver.batch" && self.batches.fetch_add(1, Ordering::Relaxed) == 1
        {
            self.begun.notify_one();
            pending::<()>().await;
        }
        self.store.run(access, name, work).await
    }
}

/// A client whose attempts succeed at once, or do not end.
struct StuckClient(Arc<StuckSender>);

impl WebhookClient for StuckClient {
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, AttemptResult> {
        if self.0.stuck == Stuck::Attempt {
            self.0.begun.notify_one();
            return Box::pin(pending());
        }
        let log = attempt_log(attempt.delivery.attempts, attempt.event.created_at, 204);
        Box::pin(async { AttemptResult { delivery: attempt.delivery, log, retry_after: None } })
    }
}

/// The log says what a sender leaves when it stops: an attempt under way, or an outcome that the store has not taken.
#[tokio::test]
async fn a_sender_that_stops_says_what_it_leaves() {
    for (stuck, attempts, outcomes) in [(Stuck::Attempt, 1, 0), (Stuck::Outcome, 0, 1)] {
        let log = Log::default();
        let _collecting = log.collect();
        let begun = Arc::new(Notify::new());
        let store = MemoryStore::new(Env::system());
        let sender = StuckSender { store, stuck, batches: AtomicUsize::new(0), begun: Arc::clone(&begun) };
        let sender = Arc::new(sender);
        let store = Arc::clone(&sender) as Arc<dyn Store>;
        let fixture = Fixture::on(Arc::clone(&store)).await;
        fixture.webhook("https://example.com/hook", "*").await;
        fixture.contact("ada@example.com").await;
        let client = Arc::new(StuckClient(sender));
        let stop = async move { begun.notified().await };
        within(deliver::run(store, Policy::default(), client, Arc::default(), stop, Duration::ZERO)).await;
        let lines = log.lines();
        let said: Vec<Value> = lines
            .iter()
            .filter(|line| line["level"] == "WARN")
            .map(|line| json!([line["message"], line["attempts"], line["outcomes"]]))
            .collect();
        let message = "stopped with delivery attempts in flight, or with outcomes that could not be stored; they will be repeated";
        assert_eq!(said, [json!([message, attempts, outcomes])], "{lines:?}");
    }
}
