//! What differs between the databases in SQL; everything else is written once, in the rooms.
//!
//! SQLite has one writer, so what a write job has read stays as it is by itself. On PostgreSQL write jobs run side by
//! side: rows that are read by their id are held, and work that several senders look for is taken by one of them.

use std::borrow::Cow;

/// A database, and what a job may do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    PostgresRead,
    PostgresWrite,
}

impl Dialect {
    /// Reads a row that stays as it is until the job ends, as the seam promises to write jobs. Rows that refer to it
    /// can be added meanwhile.
    pub(crate) fn hold(self, sql: &str) -> Cow<'_, str> {
        self.lock(sql, " FOR NO KEY UPDATE")
    }

    /// Reads rows of work that no other node is busy with, and keeps them until the job ends.
    pub(crate) fn take(self, sql: &str) -> Cow<'_, str> {
        self.lock(sql, " FOR UPDATE SKIP LOCKED")
    }

    fn lock<'a>(self, sql: &'a str, clause: &str) -> Cow<'a, str> {
        match self {
            Self::PostgresWrite => format!("{sql}{clause}").into(),
            Self::PostgresRead | Self::Sqlite => sql.into(),
        }
    }

    /// Merges two ordered lists into one. SQLite sees by itself that each comes in order from its index, and reads no
    /// more of them than it needs; PostgreSQL must be told how much of each is enough.
    pub(crate) fn merge(self, [one, other]: [String; 2], order: &str, limit: usize) -> String {
        let end = format!("ORDER BY {order} LIMIT ${limit}");
        match self {
            Self::Sqlite => format!("{one} UNION ALL {other} {end}"),
            Self::PostgresRead | Self::PostgresWrite => {
                format!("SELECT * FROM ({one} {end}) AS one UNION ALL SELECT * FROM ({other} {end}) AS other {end}")
            }
        }
    }

    /// Whether other write jobs run meanwhile.
    pub(crate) fn is_shared(self) -> bool {
        self == Self::PostgresWrite
    }

    /// Asks whether the transaction may handle what this number stands for; no, while another one does. It does not
    /// wait, and ends with the transaction. `None` where there is one writer anyway.
    pub(crate) fn claim(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::PostgresRead | Self::PostgresWrite => Some(CLAIM),
        }
    }
}

const CLAIM: &str = "SELECT pg_try_advisory_xact_lock($1)";

#[cfg(test)]
impl Dialect {
    /// The forms of statements that only this database gets.
    pub(crate) fn own_statements(self) -> Vec<String> {
        let mut all: Vec<String> = self.claim().map(str::to_owned).into_iter().collect();
        let held = [crate::tenants::HELD, crate::keys::HELD, crate::deliveries::HELD].concat();
        all.extend(held.into_iter().map(|sql| self.hold(sql).into_owned()));
        all.extend(crate::deliveries::TAKEN.iter().map(|sql| self.take(sql).into_owned()));
        all
    }
}
