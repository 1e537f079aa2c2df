//! What differs between the databases in SQL; everything else is written once, in the rooms.
//!
//! SQLite has one writer, who never meets another. On PostgreSQL write jobs run side by side, so it must be said what
//! one of them keeps the others from.

use std::borrow::Cow;

/// A database, as far as its SQL is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// As `UPDATE` does: rows that refer to the one that is held can be added meanwhile.
const HOLD: &str = " FOR NO KEY UPDATE";
/// Does not wait, and ends with the transaction.
const CLAIM: &str = "SELECT pg_try_advisory_xact_lock($1)";

impl Dialect {
    /// Reads a row and holds it until the transaction ends.
    pub(crate) fn lock_row(self, sql: &str) -> Cow<'_, str> {
        match self {
            Self::Sqlite => sql.into(),
            Self::Postgres => format!("{sql}{HOLD}").into(),
        }
    }

    /// Asks whether the transaction may handle what a number stands for; no, while another one does. `None` where
    /// there is no other.
    pub(crate) fn claim(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(CLAIM),
        }
    }

    /// Merges two ordered lists into one. SQLite sees by itself that each comes in order from its index, and reads no
    /// more of them than it needs; PostgreSQL must be told how much of each is enough.
    pub(crate) fn merge(self, [one, other]: [String; 2], order: &str, limit: usize) -> String {
        let end = format!("ORDER BY {order} LIMIT ${limit}");
        match self {
            Self::Sqlite => format!("{one} UNION ALL {other} {end}"),
            Self::Postgres => {
                format!("SELECT * FROM ({one} {end}) AS one UNION ALL SELECT * FROM ({other} {end}) AS other {end}")
            }
        }
    }
}

#[cfg(test)]
impl Dialect {
    /// The statements that only this database gets in this form.
    pub(crate) fn own_statements(self) -> Vec<String> {
        let held = crate::accounts::tenants::HELD.iter().map(|sql| self.lock_row(sql).into_owned());
        held.chain(self.claim().map(str::to_owned)).collect()
    }
}
