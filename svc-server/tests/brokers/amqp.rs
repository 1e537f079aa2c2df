//! RabbitMQ, as Debian's `rabbitmq-server` has it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::support::{self, Broker, Certificates, Received, Service, free_port, installed, started};

const EXCHANGE: &str = "events";
const QUEUE: &str = "all";

struct RabbitMq {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    distribution_port: u16,
    epmd_port: u16,
    /// What Erlang's nodes find each other with. Without one of its own, a node would start one that outlives the test.
    _epmd: Child,
    child: Option<Child>,
    /// Whether a queue is bound to the exchange when the broker has started.
    has_queue: bool,
    /// Those of a broker over TLS.
    certificates: Option<Arc<Certificates>>,
}

impl RabbitMq {
    /// Returns a broker that is not started yet, or `None` if it is not installed.
    fn new(has_queue: bool, certificates: Option<Arc<Certificates>>) -> Option<Self> {
        // Debian's own script asks for root and changes to another user. This one is what it runs.
        let program = installed("rabbitmq-server")?;
        let own = std::fs::read_dir("/usr/lib/rabbitmq/lib").ok()?.filter_map(Result::ok).next();
        let program = own.map_or(program, |folder| folder.path().join("sbin/rabbitmq-server"));
        let (folder, epmd_port) = (tempfile::tempdir().unwrap(), free_port());
        let epmd = Command::new(installed("epmd")?)
            .args(["-address", "127.0.0.1", "-port", &epmd_port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (port, distribution_port) = (free_port(), free_port());
        let listener = match &certificates {
            None => format!("listeners.tcp.1 = 127.0.0.1:{port}\n"),
            Some(files) => format!(
                "listeners.tcp = none\nlisteners.ssl.1 = 127.0.0.1:{port}\nssl_options.certfile = {}\n\
                 ssl_options.keyfile = {}\n",
                files.path("certificate"),
                files.path("key")
            ),
        };
        let config = format!("{listener}default_user = user\ndefault_pass = secret\n");
        std::fs::write(folder.path().join("rabbitmq.conf"), config).unwrap();
        let child = None;
        Some(Self { program, folder, port, distribution_port, epmd_port, _epmd: epmd, child, has_queue, certificates })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn scheme(&self) -> &'static str {
        if self.certificates.is_some() { "amqps" } else { "amqp" }
    }

    async fn channel(&self) -> Option<(Connection, Channel)> {
        let url = format!("{}://user:secret@127.0.0.1:{}/%2f", self.scheme(), self.port);
        let authority = |files: &Arc<Certificates>| std::fs::read_to_string(files.path("authority")).unwrap();
        let tls = OwnedTLSConfig { identity: None, cert_chain: self.certificates.as_ref().map(authority) };
        let (options, runtime) = (ConnectionProperties::default(), lapin::runtime::default_runtime().unwrap());
        let connection = Connection::connect_with_config(&url, options, tls, runtime).await.ok()?;
        let channel = connection.create_channel().await.ok()?;
        Some((connection, channel))
    }

    /// Declares the exchange, and a queue with everything that is published to it.
    async fn bind_queue(&self) {
        let (_connection, channel) = self.channel().await.unwrap();
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        channel.exchange_declare(EXCHANGE.into(), ExchangeKind::Topic, options, FieldTable::default()).await.unwrap();
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(QUEUE.into(), options, FieldTable::default()).await.unwrap();
        let options = QueueBindOptions::default();
        channel.queue_bind(QUEUE.into(), EXCHANGE.into(), "#".into(), options, FieldTable::default()).await.unwrap();
    }
}

/// Ends a process and those that it has started.
fn kill_group(child: &Child) {
    if let Some(id) = child.id() {
        let killed = std::process::Command::new("kill").args(["-KILL", "--", &format!("-{id}")]).status();
        assert!(killed.unwrap().success());
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        self.child.iter().for_each(kill_group);
    }
}

impl Broker for RabbitMq {
    async fn start(&mut self) {
        let mut program = Command::new(&self.program);
        program
            .env("HOME", self.folder.path())
            .env("ERL_EPMD_PORT", self.epmd_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODENAME", format!("svc{}@localhost", self.port))
            .env("RABBITMQ_MNESIA_BASE", self.path("data"))
            .env("RABBITMQ_LOG_BASE", self.path("log"))
            .env("RABBITMQ_DIST_PORT", self.distribution_port.to_string())
            .env("RABBITMQ_CONFIG_FILE", self.path("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", self.path("plugins"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .process_group(0);
        let log = self.path("output");
        self.child = Some(started(&mut program, &log, async || self.channel().await.is_some()).await);
        if self.has_queue {
            self.bind_queue().await;
        }
    }

    async fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        kill_group(&child);
        child.wait().await.unwrap();
    }

    fn stream_url(&self) -> String {
        format!("{}://user:secret@127.0.0.1:{}/%2F/{EXCHANGE}?create=topic", self.scheme(), self.port)
    }

    async fn count(&self) -> u64 {
        let (_connection, channel) = self.channel().await.unwrap();
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = channel.queue_declare(QUEUE.into(), options, FieldTable::default()).await.unwrap();
        queue.message_count().into()
    }

    async fn received(&self) -> Vec<Received> {
        let count = usize::try_from(self.count().await).unwrap();
        let (_connection, channel) = self.channel().await.unwrap();
        let options = BasicConsumeOptions::default();
        let consumer = channel.basic_consume(QUEUE.into(), "test".into(), options, FieldTable::default());
        let mut messages = consumer.await.unwrap().take(count);
        let mut received = Vec::with_capacity(count);
        while let Some(message) = messages.next().await {
            let message = message.unwrap();
            let headers = message.properties.headers().as_ref().unwrap();
            let header = |name: &str| match headers.inner().get(name) {
                Some(AMQPValue::LongString(text)) => String::from_utf8(text.as_bytes().to_vec()).unwrap(),
                other => unreachable!("{name}: {other:?}"),
            };
            let (account, kind, event_id) = (header("x-svc-account"), header("x-svc-event"), header("x-svc-event-id"));
            assert_eq!(message.routing_key.as_str(), format!("{account}.{kind}"));
            assert_eq!(message.properties.message_id().as_ref().unwrap().as_str(), event_id);
            assert_eq!(message.properties.delivery_mode(), &Some(2));
            let body: serde_json::Value = serde_json::from_slice(&message.data).unwrap();
            assert_eq!((body["event"].as_str(), body["tenant_id"].as_str()), (Some(&*kind), Some(&*account)));
            received.push(Received { account, event_id, kind });
            message.acker.ack(BasicAckOptions::default()).await.unwrap();
        }
        received
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_rabbitmq_or_the_server_is_killed() {
    let Some(mut rabbitmq) = RabbitMq::new(true, None) else { return };
    support::nothing_is_lost_when_anything_is_killed(&mut rabbitmq).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_rabbitmq_is_checked() {
    let certificates = Arc::new(Certificates::new());
    let Some(mut rabbitmq) = RabbitMq::new(true, Some(Arc::clone(&certificates))) else { return };
    support::certificates_are_checked(&mut rabbitmq, &certificates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_until_a_queue_of_rabbitmq_takes_them() {
    let Some(mut rabbitmq) = RabbitMq::new(false, None) else { return };
    rabbitmq.start().await;
    let service = Service::start(&rabbitmq.stream_url()).await;
    for number in 0..10 {
        service.write(number).await;
    }
    rabbitmq.bind_queue().await;
    service.until_sent().await;
    assert_eq!(service.check(&rabbitmq.received().await).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn how_fast_a_backlog_is_sent_to_rabbitmq() {
    let Some(mut rabbitmq) = RabbitMq::new(true, None) else { return };
    support::measure_a_backlog(&mut rabbitmq).await;
}
