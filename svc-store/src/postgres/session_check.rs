//! Refuses a pooler that does not keep sessions: between two transactions it hands the connection of this process to others.
//!
//! Prepared statements, settings and `LISTEN` belong to a session. Behind such a pooler, the statement of another connection runs
//! under the same name, with nothing but its parameters to tell the two apart.

use futures_util::future::try_join_all;
use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use tokio_postgres::SimpleQueryMessage;

use super::connect_options::{ConnectOptions, Role, in_time};
use super::connection::PostgresConnection;
use super::failure::keeps_no_sessions;

/// How often the two sessions are compared. Poolers choose connections by whatever else goes on.
const ROUNDS: usize = 4;
/// How often the first connection asks in a round.
const ASKED: usize = 4;

const SHARED: &str = "it gives the session of one connection to another";
const NAME: &str = "SELECT current_setting('svc.session', true)";

/// Checks that a connection has a session of its own: it keeps a setting, and another connection has not got it.
///
/// A pooler in the mode `transaction` gives the other connection what this one has just used, or gives this one something else
/// while the other one is in a transaction. Where many others use it, neither may happen; then the first prepared statement fails.
pub(super) async fn check(connection: &PostgresConnection, connect_options: &ConnectOptions) -> StoreResult<()> {
    let other = match PostgresConnection::open(connect_options, Role::Write).await {
        Ok(other) => other,
        Err(error) => {
            tracing::debug!(%error, "no second connection; not checked whether a pooler keeps sessions");
            return Ok(());
        }
    };
    let name = hex::encode(Env::system().bytes::<16>());
    ask(connection, &format!("SELECT set_config('svc.session', '{name}', false)")).await?;
    for _ in 0..ROUNDS {
        let of_other = ask(&other, &format!("BEGIN; {NAME}")).await?;
        if of_other.as_ref() == Some(&name) {
            return Err(keeps_no_sessions(SHARED));
        }
        let own = try_join_all((0..ASKED).map(|_| ask(connection, NAME))).await?;
        if own.iter().any(|own| own.as_ref() != Some(&name)) {
            return Err(keeps_no_sessions(SHARED));
        }
        ask(&other, "ROLLBACK").await?;
    }
    Ok(())
}

/// Returns the first value that a query returns. It prepares no statement.
async fn ask(connection: &PostgresConnection, sql: &str) -> StoreResult<Option<String>> {
    let messages = match in_time(connection.client.simple_query(sql)).await {
        // Poolers in the mode `statement` take no transactions.
        Err(StoreError::Unavailable(reason)) if reason.contains("pooling") => return Err(keeps_no_sessions(&reason)),
        messages => messages?,
    };
    Ok(messages.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}
