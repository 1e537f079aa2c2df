//! Notifications between nodes: a commit that adds due deliveries wakes the webhook senders of the other nodes.
//!
//! The notifications only save time, as each sender polls the database every second anyway. So they are never retried, and
//! no transaction waits for them.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client};

use super::Shared;
use super::connect_options::Role;

pub(crate) const NOTIFY: &str = "NOTIFY svc_deliveries_due";
const LISTEN: &str = "LISTEN svc_deliveries_due";
/// The shortest time between two notifications. Commits within it share one notification.
const INTERVAL: Duration = Duration::from_millis(5);
/// How long a node waits after a notification before it polls. The node that wrote the deliveries polls first, so the others
/// do not compete for the same deliveries.
const WRITER_HEAD_START: Duration = Duration::from_millis(10);
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: Arc<Shared>) {
    let (mut is_logged, mut is_first) = (false, true);
    loop {
        let error = match serve(&shared, std::mem::take(&mut is_first)).await {
            Ok(()) => "the connection ended".to_owned(),
            Err(error) => error.to_string(),
        };
        if !is_logged {
            tracing::warn!(
                error,
                "no notifications between nodes until the database is available; senders poll every second"
            );
        }
        is_logged = true;
        sleep(shared.jittered(PAUSE)).await;
    }
}

/// Sends and receives notifications until the connection ends.
async fn serve(shared: &Shared, is_first: bool) -> StoreResult<()> {
    let (client, mut connection) = shared.connect_options.connect(Role::Volatile).await?;
    let (received_sender, mut received) = mpsc::unbounded_channel();
    // A session receives its own notifications as well. They are recognized by its process id.
    let (own_process_id_sender, own_process_id) = watch::channel(None);
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message
                && Some(notification.process_id()) != *own_process_id.borrow()
            {
                let _ = received_sender.send(());
            }
        }
    });
    own_process_id_sender.send_replace(Some(process_id(&client).await?));
    execute(&client, LISTEN).await?;
    if !is_first {
        // Notifications may have been missed while there was no connection.
        shared.context.delivery_wakeup.notify();
    }
    let send = async {
        loop {
            shared.notifications.notified().await;
            execute(&client, NOTIFY).await?;
            sleep(INTERVAL).await;
        }
    };
    let receive = async {
        while received.recv().await.is_some() {
            sleep(WRITER_HEAD_START).await;
            // One poll serves all notifications that have arrived by now.
            while received.try_recv().is_ok() {}
            shared.context.delivery_wakeup.notify();
        }
        Ok(())
    };
    // The connection is open all the time, so it serves the comparison of the clocks as well.
    let compare_clocks = shared.clock_watch.run(&client);
    tokio::select! {
        ended = send => ended,
        ended = receive => ended,
        ended = compare_clocks => ended,
    }
}

/// Returns the id of the server process of this session.
async fn process_id(client: &Client) -> StoreResult<i32> {
    let row = with_timeout(client.query_one("SELECT pg_backend_pid()", &[])).await?;
    row.try_get(0).map_err(|error| super::failure::cannot_connect(&error))
}

async fn execute(client: &Client, sql: &str) -> StoreResult<()> {
    with_timeout(client.batch_execute(sql)).await
}

async fn with_timeout<T>(request: impl Future<Output = Result<T, tokio_postgres::Error>>) -> StoreResult<T> {
    match timeout(TIMEOUT, request).await {
        Ok(response) => response.map_err(|error| super::failure::cannot_connect(&error)),
        Err(_) => Err(StoreError::Unavailable(format!("no response within {TIMEOUT:?}"))),
    }
}
