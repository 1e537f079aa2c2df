//! NATS with JetStream, as Debian's `nats-server` has it.

use std::path::PathBuf;
use std::sync::Arc;

use async_nats::jetstream::{self, Context, stream};
use futures_util::StreamExt as _;
use svc_core::input::Input as _;
use svc_core::webhooks::subscriptions::{self, StreamCreate};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::support::{self, Broker, Certificates, Received, Service, free_port, installed, started, until};

/// The name of the stream of JetStream.
const STREAM: &str = "EVENTS";

struct Nats {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    child: Option<Child>,
    /// Beyond `nats://user:secret@HOST/svc`.
    parameters: &'static str,
    /// Those of a server that wants TLS.
    certificates: Option<Arc<Certificates>>,
}

impl Nats {
    /// Returns a server that is not started yet, or `None` if it is not installed.
    fn new(parameters: &'static str) -> Option<Self> {
        let program = installed("nats-server")?;
        let folder = tempfile::tempdir().unwrap();
        Some(Self { program, folder, port: free_port(), child: None, parameters, certificates: None })
    }

    fn scheme(&self) -> &'static str {
        if self.certificates.is_some() { "tls" } else { "nats" }
    }

    async fn jetstream(&self) -> Option<Context> {
        let mut options = async_nats::ConnectOptions::with_user_and_password("user".to_owned(), "secret".to_owned());
        if let Some(certificates) = &self.certificates {
            options = options.add_root_certificates(certificates.path("authority").into());
        }
        let client = options.connect(format!("{}://127.0.0.1:{}", self.scheme(), self.port)).await.ok()?;
        client.request("$JS.API.INFO", "".into()).await.ok()?;
        Some(jetstream::new(client))
    }

    async fn create_stream(&self) {
        let config =
            stream::Config { name: STREAM.to_owned(), subjects: vec!["svc.>".to_owned()], ..Default::default() };
        self.jetstream().await.unwrap().create_stream(config).await.unwrap();
    }
}

impl Broker for Nats {
    async fn start(&mut self) {
        let mut program = Command::new(&self.program);
        program.args(["--addr", "127.0.0.1", "--port", &self.port.to_string(), "--jetstream", "--store_dir"]);
        program.arg(self.folder.path()).args(["--user", "user", "--pass", "secret"]);
        if let Some(certificates) = &self.certificates {
            program.args(["--tls", "--tlscert", &certificates.path("certificate")]);
            program.args(["--tlskey", &certificates.path("key")]);
        }
        program.kill_on_drop(true);
        let log = self.folder.path().join("output");
        self.child = Some(started(&mut program, &log, async || self.jetstream().await.is_some()).await);
    }

    async fn kill(&mut self) {
        self.child.take().unwrap().kill().await.unwrap();
    }

    fn stream_url(&self) -> String {
        format!("{}://user:secret@127.0.0.1:{}/svc{}", self.scheme(), self.port, self.parameters)
    }

    async fn count(&self) -> u64 {
        let jetstream = self.jetstream().await.unwrap();
        match jetstream.get_stream(STREAM).await {
            Ok(stream) => stream.cached_info().state.messages,
            Err(_) => 0,
        }
    }

    async fn received(&self) -> Vec<Received> {
        let stream = self.jetstream().await.unwrap().get_stream(STREAM).await.unwrap();
        let messages = usize::try_from(stream.cached_info().state.messages).unwrap();
        let config = jetstream::consumer::pull::OrderedConfig::default();
        let consumer = stream.create_consumer(config).await.unwrap();
        let mut received = Vec::with_capacity(messages);
        let mut messages = consumer.messages().await.unwrap().take(messages);
        while let Some(message) = messages.next().await {
            let message = message.unwrap();
            let headers = message.headers.as_ref().unwrap();
            let header = |name: &str| headers.get(name).unwrap().as_str().to_owned();
            assert_eq!(header("Nats-Msg-Id"), header("x-svc-event-id"));
            let (account, kind) = (header("x-svc-account"), header("x-svc-event"));
            assert_eq!(message.subject.as_str(), format!("svc.{account}.{kind}"));
            let body: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
            assert_eq!((body["event"].as_str(), body["tenant_id"].as_str()), (Some(&*kind), Some(&*account)));
            received.push(Received { account, event_id: header("x-svc-event-id"), kind });
        }
        received
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_nats_or_the_server_is_killed() {
    let Some(mut nats) = Nats::new("?create=EVENTS") else { return };
    support::nothing_is_lost_when_anything_is_killed(&mut nats).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_goes_on_when_the_one_that_sends_is_killed() {
    let (Some(mut nats), Some(server)) = (Nats::new("?create=EVENTS"), svc_test_support::postgres::server()) else {
        return;
    };
    support::another_node_goes_on(&mut nats, &server.database()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_nats_is_checked() {
    let Some(mut nats) = Nats::new("?create=EVENTS") else { return };
    let certificates = Arc::new(Certificates::new());
    nats.certificates = Some(Arc::clone(&certificates));
    support::certificates_are_checked(&mut nats, &certificates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_until_nats_has_a_stream_for_them() {
    let Some(mut nats) = Nats::new("") else { return };
    nats.start().await;
    let service = Service::start(&nats.stream_url()).await;
    for number in 0..10 {
        service.write(number).await;
    }
    nats.create_stream().await;
    service.until_sent().await;
    assert_eq!(service.check(&nats.received().await).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_subscription_go_to_its_own_broker() {
    let Some(mut nats) = Nats::new("?create=EVENTS") else { return };
    nats.start().await;
    let service = Service::start_without_stream().await;
    let account = service.accounts[0];
    let body = format!(r#"{{"to": "{}", "events": ["contact.created"]}}"#, nats.stream_url());
    let input = StreamCreate::from_body(body.as_bytes()).unwrap();
    let created = service.store.write("test", (account, input), async |tx, (account, input)| {
        subscriptions::create_stream(tx, *account, input).await
    });
    created.await.unwrap();
    for number in 0..50 {
        service.write(number).await;
    }
    let own = 50 / service.accounts.len();
    until(async || (nats.count().await == own as u64).then_some(())).await;
    let received = nats.received().await;
    assert!(received.iter().all(|message| message.account == account.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn how_fast_a_backlog_is_sent_to_nats() {
    let Some(mut nats) = Nats::new("?create=EVENTS") else { return };
    support::measure_a_backlog(&mut nats).await;
}
