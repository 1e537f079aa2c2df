//! A connection to an engine that is made when it is needed, and made anew after a failure.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use svc_core::webhooks::streams::{Engine, Message, PublishError};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// How long publishing may take. With the connection before it, it is less than the 10 seconds that an engine has.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);
/// For how long a failure to connect holds for all messages, so that those of many accounts do not wait one after another.
const FAILURE_HOLDS: Duration = Duration::from_millis(200);

/// An engine by its address.
pub(super) trait Connector: Send + Sync + 'static {
    /// An open connection. It is dropped after a failure, and must end then with what it has not sent yet.
    type Connection: Connection;

    /// Connects, and checks that messages can be published.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, PublishError>> + Send;
}

/// A connection to an engine.
pub(super) trait Connection: Send + Sync + 'static {
    /// Publishes messages as [`Engine::publish`] says, without a limit of time.
    fn publish(&self, messages: &[Message]) -> impl Future<Output = Result<usize, PublishError>> + Send;
}

/// An engine whose connection is made anew after a failure.
pub(super) struct Reconnecting<C: Connector> {
    connector: C,
    state: Mutex<State<C::Connection>>,
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
        Self { connector, state: Mutex::new(State::Closed) }
    }

    async fn connection(&self) -> Result<Arc<C::Connection>, PublishError> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Open(connection) => return Ok(Arc::clone(connection)),
            State::Failed { at, error } if at.elapsed() < FAILURE_HOLDS => return Err(error.clone()),
            State::Closed | State::Failed { .. } => {}
        }
        let connected = timeout(CONNECT_TIMEOUT, self.connector.connect()).await;
        let connected = connected.unwrap_or_else(|_| Err(not_within("no connection", CONNECT_TIMEOUT)));
        match connected {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State::Open(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                *state = State::Failed { at: Instant::now(), error: error.clone() };
                Err(error)
            }
        }
    }

    /// Closes a connection, unless another has already taken its place.
    async fn close(&self, failed: &Arc<C::Connection>) {
        let mut state = self.state.lock().await;
        if matches!(&*state, State::Open(open) if Arc::ptr_eq(open, failed)) {
            *state = State::Closed;
        }
    }
}

#[async_trait]
impl<C: Connector> Engine for Reconnecting<C> {
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        let connection = self.connection().await?;
        let published = timeout(PUBLISH_TIMEOUT, connection.publish(messages)).await;
        let published = published.unwrap_or_else(|_| Err(not_within("no confirmation", PUBLISH_TIMEOUT)));
        if let Err(PublishError::Unavailable(_)) = &published {
            self.close(&connection).await;
        }
        published
    }
}

fn not_within(what: &str, limit: Duration) -> PublishError {
    PublishError::Unavailable(format!("{what} within {} s", limit.as_secs()))
}
