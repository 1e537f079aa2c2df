//! Work on a whole database: copying it, checking it, backing it up, measuring it.
//!
//! It goes by way of one connection of its own (`connection`) and the binding layer, over one list of all tables (`tables`),
//! which a test compares with both schemas, so that no table and no column can be forgotten.

mod backup;
mod check;
mod connection;
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
pub(crate) use self::connection::{MaintenanceConnection, Transaction};
pub use self::copy::{Comparison, CopyReport, Phase, Progress, copy};
pub use self::digest::Digest;
pub use self::stats::{DbStats, stats};
#[cfg(test)]
pub(crate) use self::tables::TABLES;
use crate::OpenError;

/// Why work on a whole database failed.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// A database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A database failed, or holds what it must not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It must not be done as things are; the sentence says what to do.
    #[error("{0}")]
    Refused(String),
    /// It cannot be done with this kind of database; the sentence says what can.
    #[error("{0}")]
    Unsupported(String),
    /// A file cannot be read or written.
    #[error("{0}")]
    File(String),
}
