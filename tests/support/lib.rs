//! What the programs of the tests share (`crash`, `hostile`, `load`, `nodes`): a database, disks that fail, the server as
//! processes on it, and a client.

pub mod database;
pub mod disk;
pub mod endpoint;
pub mod frames;
pub mod http;
pub mod node;
pub mod tenant;

/// Whatever goes wrong ends a run.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
