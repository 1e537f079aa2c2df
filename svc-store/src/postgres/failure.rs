//! Classifies the errors of the driver: which error the caller gets, and how the store recovers.

use std::error::Error as _;
use std::io;

use svc_core::error::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// The failure of a transaction, which can no longer be committed.
#[derive(Clone, Debug)]
pub(super) struct TransactionFailure {
    pub(super) error: StoreError,
    pub(super) recovery: Recovery,
}

/// How the store recovers from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// It does not: the unit of work would fail again.
    None,
    /// It runs the unit of work again, because the failure is a serialization failure or a deadlock.
    RunAgain,
    /// It runs the unit of work on another connection, because the server ended this one and rolled back.
    Reconnect,
    /// It does the same as for `Reconnect`, but the connection ended without an error of the server. The last statements
    /// that were sent may have been executed.
    ConnectionLost,
}

impl TransactionFailure {
    pub(super) fn of(error: &Error) -> Self {
        match error.as_db_error() {
            Some(error) => Self::from_server(error),
            None => Self::from_driver(error),
        }
    }

    fn from_server(error: &DbError) -> Self {
        let code = error.code();
        let text = format!("{} ({})", error.message(), code.code());
        let ends_session = matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
        let recovery = if ends_session {
            Recovery::Reconnect
        } else if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
            Recovery::RunAgain
        } else {
            Recovery::None
        };
        let error = if ends_session {
            StoreError::Unavailable(text)
        } else {
            error_of_code(code.code(), text, error.constraint().or(error.column()).unwrap_or(error.message()))
        };
        Self { error, recovery }
    }

    fn from_driver(error: &Error) -> Self {
        let text = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        let is_io = error.source().is_some_and(|source| source.is::<io::Error>());
        if error.is_closed() || is_io {
            Self { error: StoreError::Unavailable(text), recovery: Recovery::ConnectionLost }
        } else {
            Self { error: StoreError::Internal(text), recovery: Recovery::None }
        }
    }

    pub(super) fn permanent(error: StoreError) -> Self {
        Self { error, recovery: Recovery::None }
    }

    /// Returns whether the connection can no longer be used.
    pub(super) fn is_connection_lost(&self) -> bool {
        matches!(self.recovery, Recovery::Reconnect | Recovery::ConnectionLost)
    }
}

/// Returns the error for a code of the server, with this text, and the name of the constraint that may be violated.
pub(crate) fn error_of_code(code: &str, text: String, constraint: &str) -> StoreError {
    match code.get(..2) {
        _ if code == SqlState::QUERY_CANCELED.code() => StoreError::TooSlow(text),
        Some("23") => StoreError::Conflict { constraint: constraint.to_owned() },
        // The classes for connections, authorization, rollbacks, resources, operator intervention and system errors.
        Some("08" | "28" | "3D" | "40" | "53" | "54" | "55" | "57" | "58") => StoreError::Unavailable(text),
        // The server is a standby, which cannot be written to.
        _ if code == SqlState::READ_ONLY_SQL_TRANSACTION.code() => StoreError::Unavailable(text),
        _ => StoreError::Internal(text),
    }
}

/// Returns the error for a connection that could not be opened.
pub(super) fn cannot_connect(error: &Error) -> StoreError {
    match error.as_db_error() {
        Some(error) if is_of_another_session(error) => keeps_no_sessions(error.message()),
        Some(error) => StoreError::Unavailable(format!("{} ({})", error.message(), error.code().code())),
        None => match TransactionFailure::from_driver(error).error {
            StoreError::Internal(text) => StoreError::Unavailable(text),
            other => other,
        },
    }
}

/// Returns whether a prepared statement is not the one that this connection prepared.
fn is_of_another_session(error: &DbError) -> bool {
    match error.code() {
        &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT => true,
        // The other statement has other parameters.
        code => *code == SqlState::PROTOCOL_VIOLATION && error.message().contains("prepared statement"),
    }
}

/// Returns the error of a pooler that gives the session of one connection to another.
pub(super) fn keeps_no_sessions(reason: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "the pooler between svc and PostgreSQL does not keep sessions ({reason}), so statements of other connections would \
         be run. Set pool_mode = session, or connect to PostgreSQL itself"
    ))
}
