//! Maintenance of whole databases: copying, checking, backing up and measuring them.
//!
//! It uses a connection of its own (`maintenance_connection`) and the binding layer. `tables` lists all tables and columns. A test
//! compares that list with both schemas, so that none is missing.

mod backup;
mod check;
mod copy;
mod copy_position;
mod digest;
mod open;
mod stats;
mod table_reader;
mod tables;
#[cfg(test)]
mod tests;

use svc_core::error::StoreError;

pub use self::backup::{Backup, backup};
pub use self::check::{CheckReport, Finding, check};
pub use self::copy::{Comparison, CopyReport, Phase, Progress, copy};
pub use self::digest::Digest;
pub use self::stats::{DbStats, stats};
#[cfg(test)]
pub(crate) use self::tables::TABLES;
use crate::OpenError;

/// The error of a maintenance operation.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// A database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A database failed, or contains an invalid value.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operation is refused in the current situation, such as when a target is not empty. The text says what to do.
    #[error("{0}")]
    Refused(String),
    /// The operation is not available for this kind of database. The text names the alternative.
    #[error("{0}")]
    Unsupported(String),
    /// A file cannot be read or written. The text has its path and the error of the operating system.
    #[error("{0}")]
    File(String),
}
