//! NATS with JetStream: `nats://USER:PASSWORD@HOST:PORT/PREFIX?create=STREAM`, and `tls://` over TLS.
//!
//! The subject of a message is `PREFIX.ACCOUNT.KIND`, such as `svc.0195a3c8-….contact.created`. A stream of JetStream must take
//! these subjects; with `create` it is created if it does not exist. `Nats-Msg-Id` is the id of the event, by which JetStream
//! drops duplicates within the window of the stream.

use async_nats::jetstream::context::{Context, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Config;
use async_nats::{Client, ConnectOptions, ServerAddr};
use std::str::FromStr as _;
use svc_core::values::{Secret, StreamUrl};
use svc_core::webhooks::streams::{Message, PublishError};
use tokio_rustls::rustls::ClientConfig;

use super::StreamError;
use super::reconnecting::{Connection, Connector};
use super::url::Parts;

/// The first token of subjects, where the URL names none.
const DEFAULT_PREFIX: &str = "svc";
const DEFAULT_PORT: u16 = 4222;
/// The codes of errors of JetStream about the message alone: it is larger than the stream takes.
const MESSAGE_TOO_LARGE: u64 = 10_054;

/// The address of a server, and the subjects.
pub(super) struct Nats {
    address: ServerAddr,
    user: Option<Secret>,
    password: Option<Secret>,
    tls: Option<ClientConfig>,
    prefix: String,
    create: Option<String>,
}

impl Nats {
    pub(super) fn parse(url: &StreamUrl) -> Result<Self, StreamError> {
        let parts = Parts::of(url, &["create", "ca"])?;
        let prefix = match &parts.path[..] {
            [] => DEFAULT_PREFIX.to_owned(),
            [prefix] if is_subject(prefix) => prefix.clone(),
            _ => {
                let error = "must have one path segment, the beginning of the subjects, with letters, digits, -, _ and . \
                             alone, as in nats://nats.internal/svc";
                return Err(StreamError::Url(error.to_owned()));
            }
        };
        let create = parts.parameter("create").map(str::to_owned);
        if create.as_ref().is_some_and(|name| !is_subject(name) || name.contains('.')) {
            let error = "create must be the name of a stream, with letters, digits, - and _ alone";
            return Err(StreamError::Url(error.to_owned()));
        }
        let scheme = if url.is_tls() { "tls" } else { "nats" };
        let address = format!("{scheme}://{}:{}", parts.host, parts.port.unwrap_or(DEFAULT_PORT));
        let address = ServerAddr::from_str(&address).map_err(|error| StreamError::Url(error.to_string()))?;
        let tls = url.is_tls().then(|| parts.tls()).transpose()?;
        let Parts { user, password, .. } = parts;
        Ok(Self { address, user, password, tls, prefix, create })
    }
}

/// Returns whether a text can begin a subject.
fn is_subject(text: &str) -> bool {
    let is_token = |token: &str| {
        !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.split('.').all(is_token)
}

/// A connection with its context of JetStream.
pub(super) struct NatsConnection {
    jetstream: Context,
    prefix: String,
}

impl Connector for Nats {
    type Connection = NatsConnection;

    async fn connect(&self) -> Result<NatsConnection, PublishError> {
        let mut options = ConnectOptions::new().name("svc").max_reconnects(1).ignore_discovered_servers();
        options = match (&self.user, &self.password) {
            (Some(user), Some(password)) => {
                options.user_and_password(user.reveal().to_owned(), password.reveal().to_owned())
            }
            (Some(token), None) => options.token(token.reveal().to_owned()),
            (None, _) => options,
        };
        if let Some(tls) = &self.tls {
            options = options.tls_client_config(tls.clone()).require_tls(true);
        }
        let client: Client = options.connect(self.address.clone()).await.map_err(|error| unavailable(&error))?;
        let jetstream = async_nats::jetstream::new(client);
        if let Some(name) = &self.create {
            let subjects = vec![format!("{}.>", self.prefix)];
            let config = Config { name: name.clone(), subjects, ..Config::default() };
            let created = jetstream.get_or_create_stream(config).await;
            created.map_err(|error| PublishError::Unavailable(format!("cannot create the stream {name}: {error}")))?;
        }
        Ok(NatsConnection { jetstream, prefix: self.prefix.clone() })
    }
}

impl Connection for NatsConnection {
    /// JetStream stores messages one by one, so it is one.
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        let Some(message) = messages.first() else { return Ok(0) };
        let event = &message.event;
        let subject = format!("{}.{}.{}", self.prefix, event.tenant_id, event.kind);
        let publish = message
            .headers()
            .into_iter()
            .fold(PublishMessage::build(), |publish, (name, value)| publish.header(name, value));
        let publish = publish.message_id(event.id.to_string()).payload(message.body().into());
        let stored = match self.jetstream.send_publish(subject.clone(), publish).await {
            Ok(stored) => stored.await,
            Err(error) => Err(error),
        };
        stored.map(|_| 1).map_err(|error| match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => PublishError::Refused(error.to_string()),
            PublishErrorKind::StreamNotFound => PublishError::Unavailable(format!(
                "no stream of JetStream takes the subject {subject}; create one for {}.>, or let ?create=NAME do so",
                self.prefix
            )),
            _ if is_too_large(&error) => PublishError::Refused(error.to_string()),
            _ => unavailable(&error),
        })
    }
}

/// Returns whether the stream takes no message as large as this one.
fn is_too_large(error: &async_nats::jetstream::context::PublishError) -> bool {
    let source = std::error::Error::source(error);
    let error = source.and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>());
    error.is_some_and(|error| error.error_code().0 == MESSAGE_TOO_LARGE)
}

fn unavailable(error: &(dyn std::error::Error + 'static)) -> PublishError {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    PublishError::Unavailable(text)
}
