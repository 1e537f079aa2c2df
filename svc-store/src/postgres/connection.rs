//! A connection: its client, its prepared statements, and the task that drives it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use svc_core::error::StoreError;
use svc_core::sync::lock;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Error, Statement};

use super::connect_options::{ConnectOptions, Role};

pub(super) struct Connection {
    pub(super) client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    driver: AbortHandle,
    /// Closed when the driver ends.
    driver_alive: watch::Receiver<()>,
    is_aborted: AtomicBool,
}

impl Connection {
    pub(super) async fn open(connect_options: &ConnectOptions, role: Role) -> Result<Self, StoreError> {
        let (client, connection) = connect_options.connect(role).await?;
        let (alive_sender, driver_alive) = watch::channel(());
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(alive_sender);
        });
        Ok(Self {
            client,
            statements: Mutex::default(),
            driver: driver.abort_handle(),
            driver_alive,
            is_aborted: AtomicBool::new(false),
        })
    }

    /// Returns a statement if it is already prepared.
    pub(super) fn prepared(&self, sql: &str) -> Option<Statement> {
        lock(&self.statements).get(sql).cloned()
    }

    /// Prepares a statement. It stays prepared until the connection ends, as there are only a few hundred statements.
    pub(super) async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        let statement = self.client.prepare(sql).await?;
        let mut statements = lock(&self.statements);
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Waits until the connection has ended.
    pub(super) async fn closed(&self) {
        let mut driver_alive = self.driver_alive.clone();
        while driver_alive.changed().await.is_ok() {}
    }

    pub(super) fn is_closed(&self) -> bool {
        // The driver ends a moment after it was aborted.
        self.is_aborted.load(Ordering::Acquire) || self.client.is_closed()
    }

    /// Closes the connection at once. The server rolls back an open transaction.
    pub(super) fn abort(&self) {
        self.is_aborted.store(true, Ordering::Release);
        self.driver.abort();
    }
}
