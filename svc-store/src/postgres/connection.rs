//! One connection: the client, the statements that are prepared on it, and the task that drives it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use svc_core::error::StoreError;
use svc_core::sync::lock;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Error, Statement};

use super::connect_options::{Role, ConnectOptions};

pub(super) struct Connection {
    pub(super) client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    driver: AbortHandle,
    alive: watch::Receiver<()>,
    aborted: AtomicBool,
}

impl Connection {
    pub(super) async fn open(connect_options: &ConnectOptions, role: Role) -> Result<Self, StoreError> {
        let (client, connection) = connect_options.connect(role).await?;
        let (lives, alive) = watch::channel(());
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(lives);
        });
        Ok(Self {
            client,
            statements: Mutex::default(),
            driver: driver.abort_handle(),
            alive,
            aborted: AtomicBool::new(false),
        })
    }

    /// The statement, if it is prepared already.
    pub(super) fn prepared(&self, sql: &str) -> Option<Statement> {
        lock(&self.statements).get(sql).cloned()
    }

    /// Prepares a statement for as long as the connection lasts. There are some hundred texts at most.
    pub(super) async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        let statement = self.client.prepare(sql).await?;
        let mut statements = lock(&self.statements);
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Ready once the connection has ended.
    pub(super) async fn closed(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    pub(super) fn is_closed(&self) -> bool {
        // The end of the task that drives it takes a moment.
        self.aborted.load(Ordering::Acquire) || self.client.is_closed()
    }

    /// Ends it at once, whatever goes on; the server rolls back what was begun.
    pub(super) fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
        self.driver.abort();
    }
}
