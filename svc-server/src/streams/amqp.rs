//! RabbitMQ, and others that speak AMQP 0-9-1: `amqp://USER:PASSWORD@HOST:PORT/VHOST/EXCHANGE?create=topic`, and `amqps://` over
//! TLS.
//!
//! The routing key of a message is `ACCOUNT.KIND`, such as `0195a3c8-….contact.created`. The exchange must exist; with `create` it
//! is declared, durable and of that type. A message that no queue takes is an error, so a queue must be bound to the
//! exchange before anything is lost. `message_id` is the id of the event.
//!
//! # One message at a time on a channel
//!
//! A broker returns a message that it cannot route before it confirms it, and says of neither which publication it was. So
//! each account that is published at the same time has a channel of its own.

use std::sync::Mutex;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::{AMQPValue, FieldTable};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{BasicProperties, Channel, Confirmation, ConnectionProperties, ExchangeKind};
use svc_core::sync::lock;
use svc_core::values::{Secret, StreamUrl};
use svc_core::webhooks::streams::{Message, PublishError};

use super::StreamError;
use super::reconnecting::{Connection, Connector};
use super::url::Parts;

/// The kind of message that outlives a restart of the broker.
const PERSISTENT: u8 = 2;

/// The address of a broker, and the exchange.
pub(super) struct Amqp {
    host: String,
    port: u16,
    scheme: AMQPScheme,
    user: Option<Secret>,
    password: Option<Secret>,
    vhost: String,
    /// Certificates of authorities in PEM, in place of the public ones.
    authorities: Option<String>,
    exchange: String,
    create: Option<ExchangeKind>,
}

impl Amqp {
    pub(super) fn parse(url: &StreamUrl) -> Result<Self, StreamError> {
        let parts = Parts::of(url, &["create", "ca"])?;
        let [vhost, exchange] = &parts.path[..] else {
            let error = "must have a path with the virtual host and the exchange, as in amqps://rabbit.internal/%2F/events, where \
                         %2F is the virtual host /";
            return Err(StreamError::Url(error.to_owned()));
        };
        let create = match parts.parameter("create") {
            None => None,
            Some("topic") => Some(ExchangeKind::Topic),
            Some("fanout") => Some(ExchangeKind::Fanout),
            Some(other) => return Err(StreamError::Url(format!("create must be topic or fanout, and is {other}"))),
        };
        let (scheme, port) = if url.is_tls() { (AMQPScheme::AMQPS, 5671) } else { (AMQPScheme::AMQP, 5672) };
        let authorities = parts.parameter("ca").map(|path| {
            // Checks the certificates as well.
            parts.tls()?;
            std::fs::read_to_string(path).map_err(|error| StreamError::Url(format!("ca: cannot read {path}: {error}")))
        });
        Ok(Self {
            host: parts.host.clone(),
            port: parts.port.unwrap_or(port),
            scheme,
            vhost: vhost.clone(),
            authorities: authorities.transpose()?,
            exchange: exchange.clone(),
            create,
            user: parts.user,
            password: parts.password,
        })
    }

    fn uri(&self) -> AMQPUri {
        let text = |secret: &Option<Secret>| secret.as_ref().map_or("guest", Secret::reveal).to_owned();
        let userinfo = AMQPUserInfo { username: text(&self.user), password: text(&self.password) };
        let authority = AMQPAuthority { userinfo, host: self.host.clone(), port: self.port };
        let (scheme, vhost) = (self.scheme.clone(), self.vhost.clone());
        AMQPUri { scheme, authority, vhost, query: AMQPQueryString::default() }
    }
}

/// A connection with the channels that no account uses now.
pub(super) struct AmqpConnection {
    connection: lapin::Connection,
    idle: Mutex<Vec<Channel>>,
    exchange: String,
}

impl Connector for Amqp {
    type Connection = AmqpConnection;

    async fn connect(&self) -> Result<AmqpConnection, PublishError> {
        let runtime = lapin::runtime::default_runtime().map_err(unavailable)?;
        let tls = OwnedTLSConfig { identity: None, cert_chain: self.authorities.clone() };
        let options = ConnectionProperties::default();
        let connection = lapin::Connection::connect_uri_with_config(self.uri(), options, tls, runtime);
        let connection = connection.await.map_err(unavailable)?;
        let channel = connection.create_channel().await.map_err(unavailable)?;
        let options = ExchangeDeclareOptions {
            passive: self.create.is_none(),
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        let kind = self.create.clone().unwrap_or(ExchangeKind::Topic);
        let declared = channel.exchange_declare(self.exchange.as_str().into(), kind, options, FieldTable::default());
        declared.await.map_err(|error| {
            PublishError::Unavailable(format!(
                "the exchange {} cannot be used: {error}; declare it, or let ?create=topic do so",
                self.exchange
            ))
        })?;
        Ok(AmqpConnection { connection, idle: Mutex::default(), exchange: self.exchange.clone() })
    }
}

impl AmqpConnection {
    /// Returns a channel that no other account uses.
    async fn channel(&self) -> Result<Channel, PublishError> {
        let idle = lock(&self.idle).pop();
        if let Some(channel) = idle {
            return Ok(channel);
        }
        let channel = self.connection.create_channel().await.map_err(unavailable)?;
        channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(unavailable)?;
        Ok(channel)
    }
}

impl Connection for AmqpConnection {
    /// A broker confirms messages one by one, so it is one.
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        let Some(message) = messages.first() else { return Ok(0) };
        let event = &message.event;
        let routing_key = format!("{}.{}", event.tenant_id, event.kind);
        let mut headers = FieldTable::default();
        for (name, value) in message.headers() {
            headers.insert(name.into(), AMQPValue::LongString(value.into()));
        }
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_message_id(event.id.to_string().as_str().into())
            .with_type(event.kind.as_str().into())
            .with_content_type("application/json".into())
            .with_timestamp(u64::try_from(event.created_at.as_seconds()).unwrap_or_default())
            .with_headers(headers);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let channel = self.channel().await?;
        let (exchange, body) = (self.exchange.as_str().into(), message.body());
        let published = channel.basic_publish(exchange, routing_key.as_str().into(), options, &body, properties);
        // After an error the channel is dropped, and the connection with it.
        let confirmation = published.await.map_err(unavailable)?.await.map_err(unavailable)?;
        match confirmation {
            Confirmation::Ack(None) => {
                lock(&self.idle).push(channel);
                Ok(1)
            }
            Confirmation::Ack(Some(returned)) => {
                lock(&self.idle).push(channel);
                Err(PublishError::Refused(format!(
                    "no queue takes the routing key {routing_key}: {}; bind one to the exchange {}",
                    returned.reply_text, self.exchange
                )))
            }
            Confirmation::Nack(_) => {
                Err(PublishError::Unavailable(format!("the broker did not take {routing_key}; a queue may be full")))
            }
            Confirmation::NotRequested => {
                Err(PublishError::Unavailable("the broker does not confirm messages".to_owned()))
            }
        }
    }
}

fn unavailable(error: lapin::Error) -> PublishError {
    PublishError::Unavailable(error.to_string())
}
