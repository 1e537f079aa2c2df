//! The tasks that send streams: one for the stream of the server, and one for each stream of a subscription that has
//! something to send.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use svc_core::error::Error;
use svc_core::store::{Repository, Store};
use svc_core::values::{StreamBroker, StreamUrl};
use svc_core::webhooks::streams::{self, Broker, Lag, Next, Sender, StreamKey};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::failure_log::FailureLog;
use crate::metrics::Metrics;

/// How often a stream with nothing to send looks whether something was written.
const POLL: Duration = Duration::from_millis(500);
/// How often the streams of subscriptions are found that have something to send and no task.
const FIND: Duration = Duration::from_secs(1);
/// The number of streams of subscriptions that are found at once.
const FOUND_AT_ONCE: u32 = 1_000;
/// The task of a subscription ends when it has had nothing to send for so long, and with it the connection.
const IDLE: Duration = Duration::from_secs(60);
/// The wait after a failure of the store.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// How often it is measured how far a stream is behind.
const LAG_INTERVAL: Duration = Duration::from_secs(10);

/// The streams that a process sends.
#[derive(Clone, Default)]
pub(crate) struct Streams {
    /// The stream of the server.
    pub(crate) server: Option<(StreamBroker, Arc<dyn Broker>)>,
}

impl Streams {
    /// Sends streams until the sender of `stopping` is dropped. The steps that are under way then end, as they take a few seconds
    /// at most, and what they have published is not published again.
    pub(crate) async fn run(self, store: Arc<dyn Store>, metrics: Arc<Metrics>, mut stopping: watch::Receiver<()>) {
        let mut tasks = JoinSet::new();
        let mut running = HashSet::new();
        let of_tasks = stopping.clone();
        let task = |key, kind, broker| Task {
            store: Arc::clone(&store),
            metrics: Arc::clone(&metrics),
            stopping: of_tasks.clone(),
            key,
            kind,
            broker,
        };
        if let Some((kind, broker)) = self.server {
            tasks.spawn(task(StreamKey::SERVER, kind, broker).run());
        }
        let (mut unavailable, mut after) = (HashSet::new(), None);
        loop {
            match find(&*store, &running, after, FOUND_AT_ONCE).await {
                Ok((found, last)) => {
                    after = last;
                    for (key, url) in found {
                        match super::open(&url) {
                            Ok(broker) => {
                                running.insert(key);
                                tasks.spawn(task(key, url.broker(), broker).run());
                            }
                            Err(error) if unavailable.insert(key) => {
                                let (tenant, subscription) = (key.tenant_id, key.id);
                                tracing::error!(%tenant, %subscription, %url, %error, "cannot send the stream of a subscription");
                            }
                            Err(_) => {}
                        }
                    }
                }
                Err(error) => tracing::error!(%error, "cannot find the streams of subscriptions; trying again"),
            }
            let found_at = Instant::now();
            while found_at.elapsed() < FIND {
                tokio::select! {
                    biased;
                    _ = stopping.changed() => {
                        while tasks.join_next().await.is_some() {}
                        return;
                    }
                    Some(ended) = tasks.join_next() => {
                        match ended {
                            Ok(key) => drop(running.remove(&key)),
                            Err(error) => {
                                tracing::error!(%error, "the task of a stream failed; restart the server to send it again");
                            }
                        }
                    }
                    () = tokio::time::sleep_until(found_at + FIND) => {}
                }
            }
        }
    }
}

/// Of the next `limit` streams of subscriptions after `after` that have something to send, returns those that have no task, and
/// where they go. Returns as well after which stream the next search begins, which is `None` after the last.
async fn find(
    store: &dyn Store,
    running: &HashSet<StreamKey>,
    after: Option<StreamKey>,
    limit: u32,
) -> Result<(Vec<(StreamKey, StreamUrl)>, Option<StreamKey>), Error> {
    let read = store.read("streams.find", (running.clone(), after, limit), async |tx, (running, after, limit)| {
        let behind = tx.subscription_streams_behind(*after, *limit).await?;
        let last = behind.last().copied().filter(|_| behind.len() == *limit as usize);
        let mut found = Vec::new();
        for key in behind.into_iter().filter(|key| !running.contains(key)) {
            let subscription = Repository::<WebhookSubscription>::get(tx, key.tenant_id, key.id).await?;
            found.extend(subscription.and_then(|subscription| subscription.stream_url).map(|url| (key, url)));
        }
        Ok((found, last))
    });
    read.await
}

/// The task of one stream.
struct Task {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    stopping: watch::Receiver<()>,
    key: StreamKey,
    kind: StreamBroker,
    broker: Arc<dyn Broker>,
}

impl Task {
    /// Sends the stream until the server stops. That of a subscription ends as well when it has had nothing to send for a while.
    async fn run(mut self) -> StreamKey {
        let mut sender = Sender::new(self.store.env(), self.key);
        let (mut log, mut measured_at) = (FailureLog::new(self.key, self.kind), None::<Instant>);
        let mut active_at = Instant::now();
        loop {
            let wait = match sender.step(&*self.store, &*self.broker).await {
                Ok(report) => {
                    self.metrics.stream_step(self.kind, report.sent, report.failures.len());
                    log.record(&report);
                    if report.sent > 0 || !report.failures.is_empty() {
                        active_at = Instant::now();
                    }
                    if measured_at.is_none_or(|at| at.elapsed() >= LAG_INTERVAL) {
                        measured_at = Some(Instant::now());
                        self.measure(report.is_held).await;
                    }
                    match report.next {
                        Next::Now => Duration::ZERO,
                        Next::Poll => POLL,
                        Next::Wait(wait) => wait,
                    }
                }
                Err(error) => {
                    tracing::error!(stream = %self.kind, %error, "cannot send a stream; trying again");
                    STORE_RETRY
                }
            };
            if self.key != StreamKey::SERVER && active_at.elapsed() >= IDLE {
                break;
            }
            tokio::select! {
                biased;
                _ = self.stopping.changed() => break,
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.metrics.stream_lag(self.key, self.kind, Lag::default(), self.store.env().now());
        if let Err(error) = sender.release(&*self.store).await {
            tracing::warn!(stream = %self.kind, %error, "cannot give the lease of a stream back; another node waits for its end");
        }
        self.key
    }

    /// Measures how far the stream is behind. Only the process that sends it does.
    async fn measure(&self, is_held: bool) {
        let lag = if is_held {
            self.store.read("streams.lag", self.key, async |tx, &key| streams::lag(tx, key).await).await
        } else {
            Ok(Lag::default())
        };
        match lag {
            Ok(lag) => self.metrics.stream_lag(self.key, self.kind, lag, self.store.env().now()),
            Err(error) => tracing::warn!(stream = %self.kind, %error, "cannot measure how far a stream is behind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::Env;
    use svc_core::input::Input as _;
    use svc_core::resources::contacts::{Contact, ContactCreate};
    use svc_core::resources::crud;
    use svc_core::store::memory::MemoryStore;
    use svc_core::webhooks::subscriptions::{StreamCreate, create_stream};

    use super::*;

    #[tokio::test]
    async fn streams_are_found_however_many_before_them_have_something_to_send() {
        let store: &dyn Store = &MemoryStore::new(Env::system());
        let created = store.write("test", (), async |tx, ()| {
            let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
            let input = StreamCreate::from_body(br#"{"to": "nats://nats.example.com/svc", "events": ["*"]}"#)?;
            let mut keys = Vec::new();
            for _ in 0..3 {
                keys.push(StreamKey { tenant_id: tenant, id: create_stream(tx, tenant, &input).await?.id });
            }
            let contact = ContactCreate::from_body(br#"{"email": "ada@example.com"}"#)?;
            crud::create::<Contact>(tx, tenant, contact).await?;
            Ok(keys)
        });
        let mut created = created.await.unwrap();
        created.sort_unstable();
        let running = HashSet::from([created[0]]);
        let (found, after) = find(store, &running, None, 2).await.unwrap();
        assert_eq!((found.len(), found[0].0, after), (1, created[1], Some(created[1])));
        let (found, after) = find(store, &running, after, 2).await.unwrap();
        assert_eq!((found.len(), found[0].0, after), (1, created[2], None));
    }
}
