//! A connection to a broker that is made when it is needed, and made anew after a failure.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use svc_core::sync::lock;
use svc_core::webhooks::streams::{Broker, Message, PublishError};
use tokio::time::{Instant, timeout};

/// How long a message may wait for a connection, also for one that is made for another.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// How long publishing may take. With the connection before it, it is less than the 10 seconds that a broker has.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);
/// For how long a failure to connect holds for all messages, so that those of many accounts do not wait one after another.
const FAILURE_HOLDS: Duration = Duration::from_millis(200);

/// A broker by its address.
pub(super) trait Connector: Send + Sync + 'static {
    /// An open connection. It is dropped after a failure, and must end then with what it has not sent yet.
    type Connection: Connection;

    /// Connects, and checks that messages can be published.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, PublishError>> + Send;
}

/// A connection to a broker.
pub(super) trait Connection: Send + Sync + 'static {
    /// Publishes messages as [`Broker::publish`] says, without a limit of time.
    fn publish(&self, messages: &[Message]) -> impl Future<Output = Result<usize, PublishError>> + Send;
}

/// A broker whose connection is made anew after a failure.
pub(super) struct Reconnecting<C: Connector> {
    connector: C,
    state: Mutex<State<C::Connection>>,
    /// Held while a connection is made, so that one is made at a time. Nobody who has it waits for anything else.
    connecting: tokio::sync::Mutex<()>,
}

enum State<C> {
    /// Not connected yet, or not any more.
    Closed,
    Open(Arc<C>),
    Failed {
        at: Instant,
        error: PublishError,
    },
}

impl<C: Connector> Reconnecting<C> {
    pub(super) fn new(connector: C) -> Self {
        Self { connector, state: Mutex::new(State::Closed), connecting: tokio::sync::Mutex::default() }
    }

    /// Returns the open connection, or why there is none now. `None` if one has to be made.
    fn known(&self) -> Option<Result<Arc<C::Connection>, PublishError>> {
        match &*lock(&self.state) {
            State::Open(connection) => Some(Ok(Arc::clone(connection))),
            State::Failed { at, error } if at.elapsed() < FAILURE_HOLDS => Some(Err(error.clone())),
            State::Closed | State::Failed { .. } => None,
        }
    }

    async fn connection(&self) -> Result<Arc<C::Connection>, PublishError> {
        if let Some(known) = self.known() {
            return known;
        }
        let _connecting = self.connecting.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        match self.connector.connect().await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *lock(&self.state) = State::Open(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                *lock(&self.state) = State::Failed { at: Instant::now(), error: error.clone() };
                Err(error)
            }
        }
    }

    /// Closes a connection, unless another has already taken its place.
    fn close(&self, failed: &Arc<C::Connection>) {
        let mut state = lock(&self.state);
        if matches!(&*state, State::Open(open) if Arc::ptr_eq(open, failed)) {
            *state = State::Closed;
        }
    }
}

#[async_trait]
impl<C: Connector> Broker for Reconnecting<C> {
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        let connected = timeout(CONNECT_TIMEOUT, self.connection()).await;
        let connection = connected.unwrap_or_else(|_| Err(not_within("no connection", CONNECT_TIMEOUT)))?;
        let published = timeout(PUBLISH_TIMEOUT, connection.publish(messages)).await;
        let published = published.unwrap_or_else(|_| Err(not_within("no confirmation", PUBLISH_TIMEOUT)));
        if let Err(PublishError::Unavailable(_)) = &published {
            self.close(&connection);
        }
        published
    }
}

fn not_within(what: &str, limit: Duration) -> PublishError {
    PublishError::Unavailable(format!("{what} within {} s", limit.as_secs()))
}

#[cfg(test)]
mod tests {
    use futures_util::future::{join_all, pending};
    use svc_core::webhooks::streams::MESSAGE_TIMEOUT;

    use super::*;

    /// A broker that connects after a while, and never confirms a message.
    struct Slow {
        connects_in: Duration,
    }

    struct Silent;

    impl Connector for Slow {
        type Connection = Silent;

        async fn connect(&self) -> Result<Silent, PublishError> {
            tokio::time::sleep(self.connects_in).await;
            Ok(Silent)
        }
    }

    impl Connection for Silent {
        async fn publish(&self, _: &[Message]) -> Result<usize, PublishError> {
            pending().await
        }
    }

    /// The clock of this test stands still but for what is waited for.
    #[tokio::test(start_paused = true)]
    async fn no_message_takes_longer_than_a_broker_has_whatever_others_wait_for() {
        for connects_in in [0, 3_900, 4_100, 60_000].map(Duration::from_millis) {
            let broker = Reconnecting::new(Slow { connects_in });
            // Messages of several accounts that begin one after the other.
            let messages = (0..4).map(async |number| {
                tokio::time::sleep(Duration::from_secs(2 * number)).await;
                let begun = Instant::now();
                assert!(matches!(broker.publish(&[]).await, Err(PublishError::Unavailable(_))));
                begun.elapsed()
            });
            let longest = join_all(messages).await.into_iter().max().unwrap();
            assert!(longest < MESSAGE_TIMEOUT, "{longest:?} where connecting takes {connects_in:?}");
        }
    }
}
