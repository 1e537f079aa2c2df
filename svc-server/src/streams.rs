//! Sends streams of events to engines: drives svc-core's [`streams`](svc_core::webhooks::streams) over NATS, RabbitMQ and
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
use svc_core::values::{StreamEngine, StreamUrl};
use svc_core::webhooks::streams::Engine;

pub(crate) use self::run::Streams;

/// Why a stream cannot be sent by this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The program was built without the client of the engine.
    #[error("needs a program with the client of {0}: build svc-server with the feature `{0}`")]
    NotBuilt(StreamEngine),
    /// The path or a parameter of the URL is not one that the engine takes.
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

/// Returns the engine of a URL. It connects when it first publishes.
pub(crate) fn open(url: &StreamUrl) -> Result<Arc<dyn Engine>, StreamError> {
    match url.engine() {
        #[cfg(feature = "nats")]
        StreamEngine::Nats => Ok(Arc::new(reconnecting::Reconnecting::new(nats::Nats::parse(url)?))),
        #[cfg(not(feature = "nats"))]
        StreamEngine::Nats => Err(StreamError::NotBuilt(StreamEngine::Nats)),
        #[cfg(feature = "amqp")]
        StreamEngine::Amqp => Ok(Arc::new(reconnecting::Reconnecting::new(amqp::Amqp::parse(url)?))),
        #[cfg(not(feature = "amqp"))]
        StreamEngine::Amqp => Err(StreamError::NotBuilt(StreamEngine::Amqp)),
        #[cfg(feature = "kafka")]
        StreamEngine::Kafka => Ok(Arc::new(reconnecting::Reconnecting::new(kafka::Kafka::parse(url)?))),
        #[cfg(not(feature = "kafka"))]
        StreamEngine::Kafka => Err(StreamError::NotBuilt(StreamEngine::Kafka)),
    }
}
