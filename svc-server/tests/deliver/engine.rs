//! From the change to the receiver: wake on commit, signatures, retries, pause, restart.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::input::Input as _;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud;
use svc_core::store::{DeliveryFilter, Store};
use svc_core::values::{HostPolicy, TenantId};
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus, RetrySchedule};
use svc_core::webhooks::engine::Policy;
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::subscriptions::{self, WebhookSubscription};
use svc_server::deliver::resolver::SystemResolver;
use svc_server::deliver::{self, HttpWebhookClient};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::receivers::{FAILS, OK, Received, Receiver};

pub(crate) struct Running {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tenant: TenantId,
    stop: oneshot::Sender<()>,
    sender: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

fn policy(waits: &[u64]) -> Policy {
    let retry = RetrySchedule::new(waits.iter().map(|millis| Duration::from_millis(*millis)).collect());
    Policy { timeout: Duration::from_secs(5), retry, ..Policy::default() }
}

impl Running {
    pub(crate) async fn start(waits: &[u64]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut env = Env::system();
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let url = format!("sqlite://{}", folder.path().join("svc.db").display());
        let store = svc_store::open(&url, env).await.unwrap();
        let tenant = store.write("test", |tx| Box::pin(tenants::create(tx, TenantCreate::named("Test"))));
        let tenant = tenant.await.unwrap().id;
        let (stop, sender) = start(&store, policy(waits));
        Self { store, tenant, stop, sender, _folder: folder }
    }

    pub(crate) async fn subscribe(&self, url: &str) -> WebhookSubscription {
        let (tenant, body) = (self.tenant, format!(r#"{{"url": "{url}", "events": ["contact.created"]}}"#));
        let create = self.store.write("test", move |tx| {
            let input = subscriptions::WebhookCreate::from_body(body.as_bytes());
            Box::pin(async move { crud::create::<WebhookSubscription>(tx, tenant, input?).await })
        });
        create.await.unwrap()
    }

    pub(crate) async fn contact(&self, email: &str) -> Contact {
        let (tenant, body) = (self.tenant, format!(r#"{{"email": "{email}"}}"#));
        let create = self.store.write("test", move |tx| {
            let input = svc_core::resources::contacts::ContactCreate::from_body(body.as_bytes());
            Box::pin(async move { crud::create::<Contact>(tx, tenant, input?).await })
        });
        create.await.unwrap()
    }

    async fn subscription(&self, id: Uuid) -> WebhookSubscription {
        let tenant = self.tenant;
        self.store.read("test", move |tx| Box::pin(crud::get(tx, tenant, id))).await.unwrap()
    }

    async fn deliveries(&self) -> Vec<Delivery> {
        let tenant = self.tenant;
        let filter = DeliveryFilter { oldest_first: true, ..DeliveryFilter::default() };
        let read = self.store.read("test", move |tx| {
            let filter = filter.clone();
            Box::pin(async move { Ok(tx.list_deliveries(tenant, &filter).await?) })
        });
        read.await.unwrap()
    }

    /// Looks again until the deliveries are as wanted. The sender's own test time-out ends a wait in vain.
    pub(crate) async fn until(&self, wanted: impl Fn(&[Delivery]) -> bool) -> Vec<Delivery> {
        eventually(async || Some(self.deliveries().await).filter(|deliveries| wanted(deliveries))).await
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.sender.await.unwrap();
    }
}

fn start(store: &Arc<dyn Store>, policy: Policy) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let client = HttpWebhookClient::new(store.env().clone(), policy.timeout, Arc::new(SystemResolver::default()));
    let stopped = async {
        let _ = stopped.await;
    };
    let run =
        deliver::run(Arc::clone(store), policy, Arc::new(client), Arc::default(), stopped, Duration::from_secs(5));
    (stop, tokio::spawn(run))
}

async fn eventually<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    within(looking).await
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.unwrap()
}

fn text<'a>(received: &'a Received, name: &str) -> &'a str {
    received.headers[name].to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_arrives_signed_for_every_kind_of_verifier() {
    let receiver = Receiver::answering(&[OK]).await;
    let running = Running::start(&[]).await;
    let hook = running.subscribe(&receiver.url("/hook")).await;
    let contact = running.contact("ada@example.com").await;
    let received = within(receiver.next()).await;

    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["event", "data", "delivered_at", "tenant_id"]);
    assert_eq!(body["event"], "contact.created");
    assert_eq!(body["data"], serde_json::to_value(&contact).unwrap());
    assert_eq!(body["tenant_id"], running.tenant.to_string());
    assert_eq!((text(&received, "x-svc-event"), text(&received, "x-svc-attempt")), ("contact.created", "1"));
    assert_eq!(text(&received, "x-svc-delivery"), text(&received, "webhook-id"));
    let secret = hook.secret.reveal();
    svc_webhook_verify::verify(secret, text(&received, "x-svc-signature"), &received.body).unwrap();
    standardwebhooks::Webhook::new(secret).unwrap().verify(&received.body, &received.headers).unwrap();

    let done = running.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;
    assert_eq!((done.len(), done[0].attempts, done[0].last_status), (1, 1, Some(200)));
    assert_eq!(running.subscription(hook.id).await.last_delivery_status, Some(200));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_delivery_is_sent_again_under_the_same_id() {
    let receiver = Receiver::answering(&[FAILS, FAILS, OK]).await;
    let running = Running::start(&[1, 1, 1]).await;
    running.subscribe(&receiver.url("/")).await;
    running.contact("ada@example.com").await;
    let (first, second, third) =
        (within(receiver.next()).await, within(receiver.next()).await, within(receiver.next()).await);
    assert_eq!(text(&first, "x-svc-delivery"), text(&third, "x-svc-delivery"));
    let numbers = [&first, &second, &third].map(|received| text(received, "x-svc-attempt").to_owned());
    assert_eq!(numbers, ["1", "2", "3"]);
    let done = running.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;
    let (tenant, id) = (running.tenant, done[0].id);
    let log = running.store.read("test", move |tx| Box::pin(async move { Ok(tx.attempts(tenant, id).await?) }));
    let log: Vec<(u32, i32)> = log.await.unwrap().iter().map(|attempt| (attempt.attempt, attempt.status)).collect();
    assert_eq!(log, [(1, 500), (2, 500), (3, 200)]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_failures_pause_and_a_replay_sends_what_was_held() {
    let fails_ten_times: Vec<&str> = std::iter::repeat_n(FAILS, 10).chain([OK]).collect();
    let receiver = Receiver::answering(&fails_ten_times).await;
    let running = Running::start(&[]).await;
    let hook = running.subscribe(&receiver.url("/")).await;
    for n in 0..12 {
        running.contact(&format!("{n}@example.com")).await;
    }
    let paused = eventually(async || Some(running.subscription(hook.id).await).filter(|hook| !hook.enabled)).await;
    assert_eq!(paused.consecutive_failures, 10);
    assert!(paused.disabled_reason.is_some() && paused.paused_at.is_some());
    let settled = |deliveries: &[Delivery]| deliveries.iter().all(|delivery| delivery.lease.is_none());
    let deliveries = running.until(settled).await;
    let of = |state| deliveries.iter().filter(|delivery| delivery.status == state).count();
    assert_eq!((of(DeliveryStatus::Failed), of(DeliveryStatus::Held)), (10, 2), "no retries were left to hold");

    let (tenant, id, since) = (running.tenant, hook.id, hook.created_at);
    let resume = running.store.write("test", move |tx| {
        Box::pin(async move {
            let input = subscriptions::WebhookUpdate::from_body(br#"{"enabled": true}"#)?;
            crud::update::<WebhookSubscription>(tx, tenant, id, input).await?;
            let input = ReplayCreate { subscription: id, since, until: None, statuses: Vec::new(), missed: false };
            replays::create(tx, tenant, input).await
        })
    });
    let replay = resume.await.unwrap();
    let done = |deliveries: &[Delivery]| deliveries.iter().all(|delivery| delivery.status == DeliveryStatus::Succeeded);
    let deliveries = running.until(done).await;
    assert_eq!(deliveries.iter().map(|delivery| delivery.attempts).max(), Some(2), "attempts go on counting");
    let read = running.store.read("test", move |tx| Box::pin(async move { Ok(tx.replay(tenant, replay.id).await?) }));
    let replay = read.await.unwrap().unwrap();
    assert_eq!((replay.replayed, replay.finished_at.is_some()), (12, true));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_can_be_sent_later() {
    let receiver = Receiver::answering(&[OK]).await;
    let running = Running::start(&[]).await;
    let early = running.contact("early@example.com").await;
    let hook = running.subscribe(&receiver.url("/")).await;
    let (tenant, id, since) = (running.tenant, hook.id, early.created_at);
    let ask = running.store.write("test", move |tx| {
        let input = ReplayCreate { subscription: id, since, until: None, statuses: Vec::new(), missed: true };
        Box::pin(replays::create(tx, tenant, input))
    });
    ask.await.unwrap();
    let body: Value = serde_json::from_slice(&within(receiver.next()).await.body).unwrap();
    assert_eq!(body["data"]["email"], "early@example.com");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_arrives_at_its_own_subscription_alone() {
    let (receiver, other) = (Receiver::answering(&[OK]).await, Receiver::answering(&[OK]).await);
    let running = Running::start(&[]).await;
    let hook = running.subscribe(&receiver.url("/")).await;
    running.subscribe(&other.url("/")).await;
    let (tenant, id) = (running.tenant, hook.id);
    let test = running.store.write("test", move |tx| Box::pin(subscriptions::send_test(tx, tenant, id, None)));
    let sent = test.await.unwrap();
    let received = within(receiver.next()).await;
    assert_eq!(text(&received, "x-svc-delivery"), sent.id.to_string());
    svc_webhook_verify::verify(hook.secret.reveal(), text(&received, "x-svc-signature"), &received.body).unwrap();
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!((&body["event"], &body["data"]["test"]), (&"contact.created".into(), &true.into()));
    // What both get comes after it, and is the first that the other gets.
    running.contact("ada@example.com").await;
    for received in [within(receiver.next()).await, within(other.next()).await] {
        let body: Value = serde_json::from_slice(&received.body).unwrap();
        assert_eq!(body["data"]["email"], "ada@example.com");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_secrets_overlap_both_sign() {
    let receiver = Receiver::answering(&[OK]).await;
    let running = Running::start(&[]).await;
    let hook = running.subscribe(&receiver.url("/")).await;
    let (tenant, id) = (running.tenant, hook.id);
    let rotate = running
        .store
        .write("test", move |tx| Box::pin(subscriptions::rotate_secret(tx, tenant, id, Duration::from_secs(3600))));
    let rotated = rotate.await.unwrap();
    running.contact("ada@example.com").await;
    let received = within(receiver.next()).await;
    for secret in [hook.secret.reveal(), rotated.secret.reveal()] {
        standardwebhooks::Webhook::new(secret).unwrap().verify(&received.body, &received.headers).unwrap();
    }
    let own = text(&received, "x-svc-signature");
    svc_webhook_verify::verify(rotated.secret.reveal(), own, &received.body).unwrap();
    svc_webhook_verify::verify(hook.secret.reveal(), own, &received.body).unwrap_err();
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_survives_a_restart() {
    let receiver = Receiver::answering(&[OK]).await;
    let running = Running::start(&[]).await;
    running.subscribe(&receiver.url("/")).await;
    let Running { store, tenant, stop, sender, _folder } = running;
    let _ = stop.send(());
    sender.await.unwrap();
    let running = Running { stop: oneshot::channel().0, sender: tokio::spawn(async {}), store, tenant, _folder };
    running.contact("ada@example.com").await;
    let (stop, sender) = start(&running.store, policy(&[]));
    within(receiver.next()).await;
    running.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;
    let _ = stop.send(());
    sender.await.unwrap();
}
