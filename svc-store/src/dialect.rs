//! The differences between the databases in SQL. All other statements are written once, beside their tables.
//!
//! SQLite has one writer at a time. On PostgreSQL write transactions run concurrently, so they need locks.

use std::borrow::Cow;

use crate::sql::RowLock;

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

impl Dialect {
    /// Returns a statement that reads a row as one that also locks it until the transaction ends. If it may not wait, it finds
    /// no row while another transaction has locked it.
    pub(crate) fn lock_row(self, sql: &str, lock: RowLock) -> Cow<'_, str> {
        match (self, lock) {
            (Self::Sqlite, _) => sql.into(),
            (Self::Postgres, RowLock::MayWait) => format!("{sql}{LOCK}").into(),
            (Self::Postgres, RowLock::MayNotWait) => format!("{sql}{LOCK}{SKIP_LOCKED}").into(),
        }
    }

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

#[cfg(test)]
impl Dialect {
    /// Returns the statements that only this database gets in this form.
    pub(crate) fn own_statements(self) -> Vec<String> {
        let locks = [RowLock::MayWait, RowLock::MayNotWait];
        let locking = crate::accounts::tenants::LOCKING.iter();
        let locking = locking.flat_map(|sql| locks.map(|lock| self.lock_row(sql, lock).into_owned()));
        let merging = crate::webhooks::deliveries::lists(self, Some(svc_core::values::Id::nil())).into_iter();
        locking.chain(self.claim().map(str::to_owned)).chain(merging.map(|list| list.sql)).collect()
    }
}
