//! The differences between the databases in SQL. All other statements are written once, beside their tables.
//!
//! SQLite has one writer at a time. On PostgreSQL write transactions run concurrently, so they need locks.

/// The SQL dialect of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// The lock that `UPDATE` takes. Rows that refer to the locked one can still be added.
const LOCK: &str = " FOR NO KEY UPDATE";
const SKIP_LOCKED: &str = " SKIP LOCKED";
/// Does not wait. The lock ends with the transaction.
const CLAIM: &str = "SELECT pg_try_advisory_xact_lock($1)";

/// Returns a query of PostgreSQL that locks the row which it finds. If it may not wait, it finds none while another transaction
/// has locked it.
pub(crate) fn locking(sql: &str, may_wait: bool) -> String {
    format!("{sql}{LOCK}{}", if may_wait { "" } else { SKIP_LOCKED })
}

impl Dialect {
    /// Returns the statement that claims a number for this transaction, which is false while another one has claimed it.
    /// `None` where there is no other transaction.
    pub(crate) fn claim(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(CLAIM),
        }
    }

    /// Merges ordered lists into one, of which `limit` takes a part. SQLite reads no more of each list than it needs, as
    /// each comes in order from its index. PostgreSQL needs a limit on each list for that: `most` rows.
    pub(crate) fn merge(self, lists: &[String], order: &str, limit: &str, most: &str) -> String {
        let merged = match (self, lists) {
            (_, [list]) => list.clone(),
            (Self::Sqlite, lists) => lists.join(" UNION ALL "),
            (Self::Postgres, lists) => {
                let part = |(n, list)| format!("SELECT * FROM ({list} ORDER BY {order} LIMIT {most}) AS list_{n}");
                (1..).zip(lists).map(part).collect::<Vec<_>>().join(" UNION ALL ")
            }
        };
        format!("{merged} ORDER BY {order} {limit}")
    }
}
