//! The error type of all modules.

/// The result of a step; any error ends the run.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
