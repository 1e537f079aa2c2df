//! The operations of the platform API: what each takes, does and returns.
//!
//! Each is written here once. The server adds its texts to its row of the table of operations, the methods of the typed
//! client and the commands of `svc` name it.

mod accounts;
mod apps;
mod events;
mod logs;
mod records;
mod requests;

pub use self::accounts::*;
pub use self::apps::*;
pub use self::events::*;
pub use self::logs::LogQuery;
pub use self::records::*;
pub use self::requests::LIST_REQUESTS;
