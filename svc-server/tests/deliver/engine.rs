//! The whole way from a change to the receiver: wakeup by the commit, signatures, retries, pause, replay, restart.

use std::future::Future;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use svc_core::store::{DeliveryFilter, Store};
use svc_core::values::{EventKind, EventKinds, Patch};
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus, RetrySchedule};
use svc_core::webhooks::engine::{Attempt, AttemptResult, Policy};
use svc_core::webhooks::replays::ReplayCreate;
use svc_core::webhooks::samples;
use svc_core::webhooks::statistics::AttemptOutcome;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription, WebhookUpdate};
use svc_server::deliver::{self, HttpWebhookClient, WebhookClient};
use svc_server::outbound::resolver::SystemResolver;
use svc_test_support::Fixture;
use svc_test_support::fixture::local_env;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::receivers::{FAILS, OK, Received, Receiver};

/// An account whose webhooks are sent by a running engine.
pub(crate) struct Sender {
    fixture: Fixture,
    stop: oneshot::Sender<()>,
    engine: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Deref for Sender {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

fn policy(delays: &[u64]) -> Policy {
    let retry = RetrySchedule::new(delays.iter().map(|millis| Duration::from_millis(*millis)).collect());
    Policy { timeout: Duration::from_secs(5), retry, ..Policy::default() }
}

impl Sender {
    pub(crate) async fn start(delays: &[u64]) -> Self {
        Self::start_with(delays, |client| Arc::new(client)).await
    }

    /// Starts an engine whose client is made of the usual one.
    async fn start_with(delays: &[u64], client: impl FnOnce(HttpWebhookClient) -> Arc<dyn WebhookClient>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("svc.db").display());
        let fixture = Fixture::on(svc_store::open(&url, local_env()).await.unwrap()).await;
        let (stop, engine) = start(fixture.store(), policy(delays), client);
        Self { fixture, stop, engine, _folder: folder }
    }

    pub(crate) async fn subscribe(&self, url: &str) -> WebhookSubscription {
        self.webhook(url, "contact.created").await
    }

    async fn subscription(&self, id: SubscriptionId) -> WebhookSubscription {
        self.account().webhooks().get(id).await.unwrap()
    }

    async fn deliveries(&self) -> Vec<Delivery> {
        let filter = DeliveryFilter { oldest_first: true, ..DeliveryFilter::default() };
        self.account().deliveries().list(filter).await.unwrap()
    }

    /// Reads the deliveries until `wanted` accepts them.
    pub(crate) async fn until(&self, wanted: impl Fn(&[Delivery]) -> bool) -> Vec<Delivery> {
        eventually(async || Some(self.deliveries().await).filter(|deliveries| wanted(deliveries))).await
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.engine.await.unwrap();
    }
}

fn start(
    store: &Arc<dyn Store>,
    policy: Policy,
    client: impl FnOnce(HttpWebhookClient) -> Arc<dyn WebhookClient>,
) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let usual = HttpWebhookClient::new(store.env().clone(), policy.timeout, Arc::new(SystemResolver::default()));
    let stopped = async {
        let _ = stopped.await;
    };
    let run = deliver::run(Arc::clone(store), policy, client(usual), Arc::default(), stopped, Duration::from_secs(5));
    (stop, tokio::spawn(run))
}

async fn eventually<T>(find: impl AsyncFn() -> Option<T>) -> T {
    let finding = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    within(finding).await
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.unwrap()
}

fn text<'a>(received: &'a Received, name: &str) -> &'a str {
    received.headers[name].to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_delivered_with_both_kinds_of_signatures() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let fixture = Sender::start(&[]).await;
    let hook = fixture.subscribe(&receiver.url("/hook")).await;
    let contact = fixture.contact("ada@example.com").await;
    let received = within(receiver.next()).await;

    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["event", "data", "delivered_at", "tenant_id"]);
    assert_eq!(body["event"], "contact.created");
    assert_eq!(body["data"], serde_json::to_value(&contact).unwrap());
    assert_eq!(body["tenant_id"], fixture.tenant.to_string());
    assert_eq!((text(&received, "x-svc-event"), text(&received, "x-svc-attempt")), ("contact.created", "1"));
    assert_eq!(text(&received, "x-svc-delivery"), text(&received, "webhook-id"));
    let secret = hook.secret.reveal();
    svc_webhook_verify::verify(secret, text(&received, "x-svc-signature"), &received.body).unwrap();
    standardwebhooks::Webhook::new(secret).unwrap().verify(&received.body, &received.headers).unwrap();

    let done = fixture.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;
    assert_eq!((done.len(), done[0].attempts, done[0].last_status), (1, 1, Some(200)));
    assert_eq!(fixture.subscription(hook.id).await.last_delivery_status, Some(200));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_delivery_is_retried_with_the_same_id() {
    let receiver = Receiver::with_responses(&[FAILS, FAILS, OK]).await;
    let fixture = Sender::start(&[1, 1, 1]).await;
    fixture.subscribe(&receiver.url("/")).await;
    fixture.contact("ada@example.com").await;
    let (first, second, third) =
        (within(receiver.next()).await, within(receiver.next()).await, within(receiver.next()).await);
    assert_eq!(text(&first, "x-svc-delivery"), text(&third, "x-svc-delivery"));
    let numbers = [&first, &second, &third].map(|received| text(received, "x-svc-attempt").to_owned());
    assert_eq!(numbers, ["1", "2", "3"]);
    let done = fixture.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;
    let log = fixture.account().deliveries().attempts(done[0].id).await.unwrap();
    let log: Vec<(u32, i32)> = log.iter().map(|attempt| (attempt.attempt, attempt.status)).collect();
    assert_eq!(log, [(1, 500), (2, 500), (3, 200)]);
    fixture.stop().await;
}

/// Panics at the first attempt before it begins, and at the second while it is made.
struct PanickingClient {
    usual: HttpWebhookClient,
    attempts: AtomicU32,
}

impl WebhookClient for PanickingClient {
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, AttemptResult> {
        match self.attempts.fetch_add(1, Ordering::Relaxed) {
            0 => resume_unwind(Box::new("at once")),
            1 => Box::pin(async { resume_unwind(Box::new("later")) }),
            _ => self.usual.attempt(attempt),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_fails_if_its_client_panics() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let client = |usual| Arc::new(PanickingClient { usual, attempts: AtomicU32::new(0) }) as Arc<dyn WebhookClient>;
    let fixture = Sender::start_with(&[1, 1], client).await;
    fixture.subscribe(&receiver.url("/hook")).await;
    fixture.contact("ada@example.com").await;
    let delivery = fixture.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await.remove(0);
    let logs = fixture.account().deliveries().attempts(delivery.id).await.unwrap();
    let errors: Vec<Option<String>> = logs.into_iter().map(|log| log.error).collect();
    let panicked = |message| Some(format!("reset: the client panicked: {message}"));
    assert_eq!(errors, [panicked("at once"), panicked("later"), None]);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_counted_for_charts() {
    let receiver = Receiver::with_responses(&[FAILS, OK]).await;
    let fixture = Sender::start(&[1]).await;
    let hook = fixture.subscribe(&receiver.url("/")).await;
    fixture.contact("ada@example.com").await;
    fixture.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;
    let account = fixture.fixture.clone();
    fixture.stop().await;
    for endpoint in [Some(hook.id), None] {
        let hours = account.account().deliveries().attempts_by_hour(endpoint).await.unwrap();
        let sums = hours.iter().map(|hour| {
            (
                hour.tally.attempts(),
                hour.tally.count(AttemptOutcome::Succeeded),
                hour.tally.count(AttemptOutcome::Refused),
            )
        });
        let sum = sums.fold((0, 0, 0), |sum, hour| (sum.0 + hour.0, sum.1 + hour.1, sum.2 + hour.2));
        assert_eq!(sum, (2, 1, 1), "{endpoint:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_failures_pause_a_subscription_and_a_replay_sends_its_held_deliveries() {
    let ten_failures: Vec<&str> = std::iter::repeat_n(FAILS, 10).chain([OK]).collect();
    let receiver = Receiver::with_responses(&ten_failures).await;
    let fixture = Sender::start(&[1]).await;
    let hook = fixture.subscribe(&receiver.url("/")).await;
    fixture.contact("first@example.com").await;
    // From the first failure on there is one attempt at a time, so each further one counts.
    fixture.until(|deliveries| deliveries[0].failures > 0).await;
    for n in 1..12 {
        fixture.contact(&format!("{n}@example.com")).await;
    }
    let paused = eventually(async || Some(fixture.subscription(hook.id).await).filter(|hook| !hook.enabled)).await;
    assert_eq!(paused.consecutive_failures, 10);
    assert!(paused.disabled_reason.is_some() && paused.paused_at.is_some());
    let settled = |deliveries: &[Delivery]| deliveries.iter().all(|delivery| delivery.lease.is_none());
    let deliveries = fixture.until(settled).await;
    let stopped = |delivery: &Delivery| matches!(delivery.status, DeliveryStatus::Failed | DeliveryStatus::Held);
    assert!(deliveries.iter().all(stopped), "{deliveries:?}");
    assert_eq!(deliveries.iter().map(|delivery| delivery.failures).sum::<u32>(), 10);
    let before: Vec<u32> = deliveries.iter().map(|delivery| delivery.attempts).collect();

    let enable = WebhookUpdate { enabled: Patch::Set(true), ..WebhookUpdate::default() };
    fixture.account().webhooks().update(hook.id, enable).await.unwrap();
    let replay = fixture.account().replays().create(ReplayCreate::new(hook.id, hook.created_at)).await.unwrap();
    let done = |deliveries: &[Delivery]| deliveries.iter().all(|delivery| delivery.status == DeliveryStatus::Succeeded);
    let deliveries = fixture.until(done).await;
    let after: Vec<u32> = deliveries.iter().map(|delivery| delivery.attempts - 1).collect();
    assert_eq!(after, before, "a replay does not reset the count of attempts");
    let replay = fixture.account().replays().get(replay.id).await.unwrap();
    assert_eq!((replay.replayed, replay.finished_at.is_some()), (12, true));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_can_send_events_from_before_the_subscription() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let fixture = Sender::start(&[]).await;
    let early = fixture.contact("early@example.com").await;
    let hook = fixture.subscribe(&receiver.url("/")).await;
    let missed = ReplayCreate { missed: true, ..ReplayCreate::new(hook.id, early.created_at) };
    fixture.account().replays().create(missed).await.unwrap();
    let body: Value = serde_json::from_slice(&within(receiver.next()).await.body).unwrap();
    assert_eq!(body["data"]["email"], "early@example.com");
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_delivery_of_a_sandbox_says_so() {
    let (receiver, real) = (Receiver::with_responses(&[FAILS, OK]).await, Receiver::with_responses(&[OK]).await);
    let mut fixture = Sender::start(&[20]).await;
    fixture.subscribe(&real.url("/")).await;
    let account = fixture.tenant;
    fixture.fixture.tenant = fixture.account().sandbox().create().await.unwrap().sandbox.id;
    let hook = fixture.subscribe(&receiver.url("/")).await;
    fixture.contact("lin@example.com").await;
    for attempt in ["1", "2"] {
        let received = within(receiver.next()).await;
        assert_eq!((text(&received, "x-svc-attempt"), text(&received, "x-svc-test")), (attempt, "true"));
        svc_webhook_verify::verify(hook.secret.reveal(), text(&received, "x-svc-signature"), &received.body).unwrap();
        let body: Value = serde_json::from_slice(&received.body).unwrap();
        assert_eq!(
            body.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["event", "data", "delivered_at", "tenant_id"]
        );
        assert_eq!(body["tenant_id"], fixture.tenant.to_string());
    }
    fixture.fixture.tenant = account;
    fixture.contact("ada@example.com").await;
    let received = within(real.next()).await;
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!((&body["data"]["email"], &body["tenant_id"]), (&"ada@example.com".into(), &account.to_string().into()));
    assert!(!received.headers.contains_key("x-svc-test"), "the account's deliveries are real");
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_is_delivered_to_its_subscription_only() {
    let (receiver, other) = (Receiver::with_responses(&[FAILS, OK]).await, Receiver::with_responses(&[OK]).await);
    let fixture = Sender::start(&[20]).await;
    let hook = fixture.subscribe(&receiver.url("/")).await;
    fixture.subscribe(&other.url("/")).await;
    let sent = fixture.account().webhooks().send_test(hook.id, None).await.unwrap();
    let failed = within(receiver.next()).await;
    assert_eq!((text(&failed, "x-svc-attempt"), text(&failed, "x-svc-test")), ("1", "true"));
    let received = within(receiver.next()).await;
    assert_eq!((text(&received, "x-svc-attempt"), text(&received, "x-svc-test")), ("2", "true"));
    assert_eq!(text(&received, "x-svc-delivery"), sent.id.to_string());
    svc_webhook_verify::verify(hook.secret.reveal(), text(&received, "x-svc-signature"), &received.body).unwrap();
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(
        (&body["event"], &body["data"]),
        (&"contact.created".into(), &samples::data(&EventKinds::default(), EventKind::ContactCreated).unwrap())
    );
    // The next event goes to both, and is the first that the other receives.
    fixture.contact("lin@example.com").await;
    for received in [within(receiver.next()).await, within(other.next()).await] {
        let body: Value = serde_json::from_slice(&received.body).unwrap();
        assert_eq!(body["data"]["email"], "lin@example.com");
        assert!(!received.headers.contains_key("x-svc-test"));
    }
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_sign_during_the_overlap_of_a_rotation() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let fixture = Sender::start(&[]).await;
    let hook = fixture.subscribe(&receiver.url("/")).await;
    let webhooks = fixture.account().webhooks();
    let rotated = webhooks.rotate_secret(hook.id, Duration::from_secs(3600)).await.unwrap();
    fixture.contact("ada@example.com").await;
    let received = within(receiver.next()).await;
    for secret in [hook.secret.reveal(), rotated.secret.reveal()] {
        standardwebhooks::Webhook::new(secret).unwrap().verify(&received.body, &received.headers).unwrap();
    }
    let own = text(&received, "x-svc-signature");
    svc_webhook_verify::verify(hook.secret.reveal(), own, &received.body).unwrap();
    svc_webhook_verify::verify(rotated.secret.reveal(), own, &received.body).unwrap_err();

    assert_eq!(webhooks.finish_rotation(hook.id).await.unwrap().secret, rotated.secret);
    fixture.contact("bob@example.com").await;
    let received = within(receiver.next()).await;
    let own = text(&received, "x-svc-signature");
    svc_webhook_verify::verify(rotated.secret.reveal(), own, &received.body).unwrap();
    let old = standardwebhooks::Webhook::new(hook.secret.reveal()).unwrap();
    old.verify(&received.body, &received.headers).unwrap_err();
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_delivery_is_sent_after_a_restart() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let fixture = Sender::start(&[]).await;
    fixture.subscribe(&receiver.url("/")).await;
    let Sender { fixture, stop, engine, _folder } = fixture;
    let _ = stop.send(());
    engine.await.unwrap();
    fixture.contact("ada@example.com").await;
    let (stop, engine) = start(fixture.store(), policy(&[]), |client| Arc::new(client));
    let fixture = Sender { fixture, stop, engine, _folder };
    within(receiver.next()).await;
    fixture.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;
    fixture.stop().await;
}
