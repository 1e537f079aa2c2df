//! Sends streams of events to brokers: drives svc-core's [`streams`](svc_core::webhooks::streams) over NATS, RabbitMQ and
//! Kafka, each behind a feature of this crate.
//!
//! Each stream that this process sends has a task. It takes steps while there is something to send, waits longer and longer
//! after failures, and gives its lease back at the end. Messages of an account are published one after the other, each once
//! the one before it is confirmed, over a connection that is made anew after a failure.

#[cfg(feature = "amqp")]
mod amqp;
mod failure_log;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "nats", feature = "amqp", feature = "kafka"))]
mod reconnecting;
mod run;
#[cfg(any(feature = "nats", feature = "amqp", feature = "kafka"))]
mod url;

use std::sync::Arc;

use svc_core::error::{Error, FieldCode, Issue};
use svc_core::values::{StreamBroker, StreamUrl};
use svc_core::webhooks::streams::Broker;

pub(crate) use self::run::Streams;

/// Why a stream cannot be sent by this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The program was built without the client of the broker.
    #[error("needs a program with the client of {0}: build svc-server with the feature `{0}`")]
    NotBuilt(StreamBroker),
    /// The path or a parameter of the URL is not one that the broker takes.
    #[error("{0}")]
    Url(String),
}

/// Checks that this program can send a stream to a URL, without connecting to it.
///
/// # Errors
/// [`StreamError`]. It does not show the URL.
pub fn check(url: &StreamUrl) -> Result<(), StreamError> {
    open(url).map(drop)
}

/// Checks the URL of a new subscription, which names no file of this machine.
pub(crate) fn check_of_subscription(url: &StreamUrl) -> Result<(), Error> {
    let names_file = url.url().query_pairs().any(|(name, _)| name == "ca");
    let checked = if names_file {
        Err("must have no parameter ca, which is for --stream alone".to_owned())
    } else {
        check(url).map_err(|error| error.to_string())
    };
    checked.map_err(|reason| Issue::new(FieldCode::InvalidFormat, reason).on("to"))
}

/// Returns the broker of a URL. It connects when it first publishes.
pub(crate) fn open(url: &StreamUrl) -> Result<Arc<dyn Broker>, StreamError> {
    match url.broker() {
        #[cfg(feature = "nats")]
        StreamBroker::Nats => Ok(Arc::new(reconnecting::Reconnecting::new(nats::Nats::parse(url)?))),
        #[cfg(not(feature = "nats"))]
        StreamBroker::Nats => Err(StreamError::NotBuilt(StreamBroker::Nats)),
        #[cfg(feature = "amqp")]
        StreamBroker::Amqp => Ok(Arc::new(reconnecting::Reconnecting::new(amqp::Amqp::parse(url)?))),
        #[cfg(not(feature = "amqp"))]
        StreamBroker::Amqp => Err(StreamError::NotBuilt(StreamBroker::Amqp)),
        #[cfg(feature = "kafka")]
        StreamBroker::Kafka => Ok(Arc::new(reconnecting::Reconnecting::new(kafka::Kafka::parse(url)?))),
        #[cfg(not(feature = "kafka"))]
        StreamBroker::Kafka => Err(StreamError::NotBuilt(StreamBroker::Kafka)),
    }
}
