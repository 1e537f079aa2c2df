//! Tells the senders of other nodes that a commit brought something to send, and hears when they tell.
//!
//! This only saves time: a sender looks by itself every second. So nothing here is repeated or waited for.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use svc_core::error::StoreError;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client};

use super::Shared;
use super::connect_options::Role;

pub(super) const NOTIFY: &str = "NOTIFY svc_deliveries_due";
/// Between two notifications: commits that come faster share one.
const INTERVAL: Duration = Duration::from_millis(5);
/// The node that wrote may send first; what it takes is not looked for in vain.
const COURTESY: Duration = Duration::from_millis(10);
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: Arc<Shared>) {
    let (mut told, mut first) = (false, true);
    loop {
        let reason = match serve(&shared, std::mem::take(&mut first)).await {
            Ok(()) => "the connection ended".to_owned(),
            Err(reason) => reason.to_string(),
        };
        if !told {
            tracing::warn!(
                reason,
                "no notifications between nodes until the database is back; senders look every second"
            );
        }
        told = true;
        sleep(shared.jittered(PAUSE)).await;
    }
}

/// Rings and listens until the connection ends.
async fn serve(shared: &Shared, first: bool) -> Result<(), StoreError> {
    let (client, mut connection) = shared.connect_options.connect(Role::Volatile).await?;
    let (heard, mut hears) = mpsc::unbounded_channel();
    // What it says itself it hears, too: notifications tell which session they come from.
    let (tell_own, own) = watch::channel(None);
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message
                && Some(notification.process_id()) != *own.borrow()
            {
                let _ = heard.send(());
            }
        }
    });
    tell_own.send_replace(Some(own_session(&client).await?));
    execute(&client, "LISTEN svc_deliveries_due").await?;
    if !first {
        // Something may have been told while nobody listened.
        shared.delivery_wakeup.notify();
    }
    let ringing = Box::pin(async {
        loop {
            shared.notifications.notified().await;
            execute(&client, NOTIFY).await?;
            sleep(INTERVAL).await;
        }
    });
    let hearing = Box::pin(async {
        while hears.recv().await.is_some() {
            sleep(COURTESY).await;
            // Those that came meanwhile are answered by the same look.
            while hears.try_recv().is_ok() {}
            shared.delivery_wakeup.notify();
        }
        Ok(())
    });
    match select(ringing, hearing).await {
        Either::Left((ended, _)) | Either::Right((ended, _)) => ended,
    }
}

/// By the number that the server gives to sessions.
async fn own_session(client: &Client) -> Result<i32, StoreError> {
    let row = with_timeout(client.query_one("SELECT pg_backend_pid()", &[])).await?;
    row.try_get(0).map_err(|error| super::failure::cannot_connect(&error))
}

async fn execute(client: &Client, sql: &str) -> Result<(), StoreError> {
    with_timeout(client.batch_execute(sql)).await
}

async fn with_timeout<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, StoreError> {
    match timeout(TIMEOUT, answer).await {
        Ok(done) => done.map_err(|error| super::failure::cannot_connect(&error)),
        Err(_) => Err(StoreError::Unavailable(format!("no answer within {TIMEOUT:?}"))),
    }
}
