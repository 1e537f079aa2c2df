//! The URL of a stream: the broker that events go to.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use url::Url;

use super::Secret;
use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;

const EXAMPLE: &str = "as in nats://nats.internal:4222/svc, amqps://user:password@rabbit.internal/%2F/svc or kafka://kafka.internal:9092/svc";

/// A broker of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamBroker {
    /// NATS with JetStream.
    Nats,
    /// RabbitMQ, and others that speak AMQP 0-9-1.
    Amqp,
    /// Kafka, and others that speak its protocol.
    Kafka,
}

impl StreamBroker {
    /// All brokers.
    pub const ALL: [Self; 3] = [Self::Nats, Self::Amqp, Self::Kafka];

    /// Returns the name, which is also that of the feature of svc-server that has its client.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nats => "nats",
            Self::Amqp => "amqp",
            Self::Kafka => "kafka",
        }
    }

    /// Returns the schemes of its URLs, without and with TLS.
    pub fn schemes(self) -> [&'static str; 2] {
        match self {
            Self::Nats => ["nats", "tls"],
            Self::Amqp => ["amqp", "amqps"],
            Self::Kafka => ["kafka", "kafka+ssl"],
        }
    }
}

impl fmt::Display for StreamBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The URL of a stream. It may have a user name and a password, so its `Debug` and `Display` show it without them and
/// without its parameters.
///
/// Parsing checks what all brokers have in common. The broker checks the meaning of the path and the parameters.
///
/// ```
/// use svc_core::values::StreamUrl;
/// let url = StreamUrl::parse("amqps://svc:secret@rabbit.internal/%2F/events")?;
/// assert_eq!(url.to_string(), "amqps://rabbit.internal/%2F/events");
/// assert!(StreamUrl::parse("https://example.com/").is_err());
/// # Ok::<(), svc_core::error::Issue>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StreamUrl {
    broker: StreamBroker,
    url: Url,
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Issue {
    Issue::new(FieldCode::InvalidFormat, message)
}

impl StreamUrl {
    /// The greatest number of characters.
    pub const MAX_LENGTH: usize = 2048;

    /// Trims and parses a URL.
    ///
    /// # Errors
    /// `too_short`, `too_long` over 2048 characters, and `invalid_format` if it has another scheme, no host or a fragment. No
    /// error shows the URL.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Issue::new(FieldCode::TooShort, "must not be empty"));
        }
        if text.chars().count() > Self::MAX_LENGTH {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {} characters", Self::MAX_LENGTH)));
        }
        let url = Url::parse(text).map_err(|error| invalid(format!("must be a URL, {EXAMPLE}: {error}")))?;
        let broker = StreamBroker::ALL.into_iter().find(|broker| broker.schemes().contains(&url.scheme()));
        let broker = broker.ok_or_else(|| {
            let schemes: Vec<&str> = StreamBroker::ALL.iter().flat_map(|broker| broker.schemes()).collect();
            invalid(format!("must begin with one of {}, {EXAMPLE}", schemes.join(", ")))
        })?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid(format!("must name a host, {EXAMPLE}")));
        }
        if url.fragment().is_some() {
            return Err(invalid("must not have a fragment; write # as %23"));
        }
        Ok(Self { broker, url })
    }

    /// Returns the broker.
    pub fn broker(&self) -> StreamBroker {
        self.broker
    }

    /// Returns whether the connection is over TLS.
    pub fn is_tls(&self) -> bool {
        self.broker.schemes()[1] == self.url.scheme()
    }

    /// Returns the whole URL.
    pub fn secret(&self) -> Secret {
        Secret::new(self.url.as_str())
    }

    /// Returns the parsed URL, with all its secrets. Never print it.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl FromJson for StreamUrl {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::parse(&json.into_string()?)
    }
}

impl FromStr for StreamUrl {
    type Err = Issue;

    /// Reads a URL as [`parse`](Self::parse) does.
    fn from_str(text: &str) -> Result<Self, Issue> {
        Self::parse(text)
    }
}

impl fmt::Display for StreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.url[url::Position::BeforeHost..url::Position::AfterPort];
        write!(f, "{}://{host}{}", self.url.scheme(), self.url.path())
    }
}

impl fmt::Debug for StreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_parameters_are_never_shown() {
        let url = StreamUrl::parse(" nats://user:pass@nats.internal:4222/svc?token=hidden ").unwrap();
        assert_eq!(url.to_string(), "nats://nats.internal:4222/svc");
        assert_eq!(format!("{url:?}"), "StreamUrl(nats://nats.internal:4222/svc)");
        assert_eq!(url.secret().reveal(), "nats://user:pass@nats.internal:4222/svc?token=hidden");
    }

    #[test]
    fn what_is_no_stream_is_refused_without_showing_it() {
        for bad in
            ["", "nats", "https://user:hidden@example.com", "nats:///svc", "amqp://h/x#hidden", "kafka://h:99999"]
        {
            let issue = StreamUrl::parse(bad).unwrap_err();
            assert!(!issue.message.contains("hidden"), "{issue}");
        }
    }

    #[test]
    fn the_scheme_says_the_engine_and_whether_there_is_tls() {
        for (text, broker, is_tls) in [
            ("nats://h", StreamBroker::Nats, false),
            ("tls://h", StreamBroker::Nats, true),
            ("amqp://h", StreamBroker::Amqp, false),
            ("amqps://h", StreamBroker::Amqp, true),
            ("kafka://h/t", StreamBroker::Kafka, false),
            ("kafka+ssl://h/t", StreamBroker::Kafka, true),
        ] {
            let url = StreamUrl::parse(text).unwrap();
            assert_eq!((url.broker(), url.is_tls()), (broker, is_tls), "{text}");
        }
    }
}
