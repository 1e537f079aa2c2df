//! Migrations of the schema, and the one runner that applies them to both databases.
//!
//! Each database has a list of migrations, which are applied in its order and never edited afterwards. The table
//! `schema_migrations` has a row for each one that was applied, with the SHA-256 digest of its text. The runner refuses a
//! database that has a migration with another digest, or one that the program does not know: the program and the
//! schema do not fit together, and changing anything could destroy data.
//!
//! Missing migrations are applied in one transaction, which excludes other processes that migrate at the same time.

use async_trait::async_trait;
use svc_core::crypto::sha256;
use svc_core::error::StoreError;
use svc_core::store::StoreResult;

/// A migration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    /// Its name, which starts with its number.
    pub(crate) name: &'static str,
    /// Its statements.
    pub(crate) sql: &'static str,
}

impl Migration {
    /// Returns the SHA-256 digest of its text.
    pub(crate) fn checksum(&self) -> [u8; 32] {
        sha256(self.sql.as_bytes())
    }
}

/// Lists the migrations of a folder, as `include_str!` needs a literal for each.
macro_rules! migrations {
    ($folder:literal: $($name:literal,)+) => {
        &[$($crate::migrations::Migration {
            name: $name,
            sql: include_str!(concat!("../migrations/", $folder, "/", $name, ".sql")),
        },)+]
    };
}

/// The migrations of SQLite.
pub(crate) const SQLITE: &[Migration] = migrations! { "sqlite":
    "0001_schema",
};

/// The migrations of PostgreSQL.
pub(crate) const POSTGRES: &[Migration] = migrations! { "postgres":
    "0001_schema",
};

/// The first migration of programs that were built before the release of version 0.1.0. This one cannot bring their databases up to
/// date.
const BEFORE_RELEASE: &str = "0001_init";

/// A row of `schema_migrations`.
#[derive(Clone, Debug)]
pub(crate) struct AppliedMigration {
    pub(crate) name: String,
    pub(crate) checksum: Vec<u8>,
}

/// A database, as the runner sees it.
#[async_trait]
pub(crate) trait MigrationTarget: Send {
    /// Returns the applied migrations without locking anything: none where there is no table of migrations.
    async fn peek(&mut self) -> StoreResult<Vec<AppliedMigration>>;

    /// Begins a transaction that excludes other processes that migrate, and creates the table of migrations if it is missing.
    async fn begin(&mut self) -> StoreResult<()>;

    /// Returns the applied migrations within the transaction.
    async fn applied(&mut self) -> StoreResult<Vec<AppliedMigration>>;

    /// Runs the statements of a migration.
    async fn apply(&mut self, migration: &Migration) -> StoreResult<()>;

    /// Adds the row of a migration that was applied.
    async fn record(&mut self, migration: &Migration) -> StoreResult<()>;

    /// Commits.
    async fn commit(&mut self) -> StoreResult<()>;

    /// Rolls back.
    async fn roll_back(&mut self);
}

/// Applies the missing migrations, and returns their names.
pub(crate) async fn run(target: &mut dyn MigrationTarget, migrations: &[Migration]) -> StoreResult<Vec<String>> {
    let applied = target.peek().await?;
    if missing(migrations, &applied)?.is_empty() {
        return Ok(Vec::new());
    }
    target.begin().await.map_err(taken_name)?;
    let names = match apply(target, migrations).await {
        Ok(names) => names,
        Err(error) => {
            target.roll_back().await;
            return Err(error);
        }
    };
    target.commit().await?;
    Ok(names)
}

/// The schema that a database must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedSchema {
    /// That of this version or of an earlier one.
    Any,
    /// That of this version.
    Current,
}

/// Checks, without changing or locking anything, that the database has a schema of svc.
pub(crate) async fn check(
    target: &mut dyn MigrationTarget,
    migrations: &[Migration],
    expected: ExpectedSchema,
) -> StoreResult<()> {
    let applied = target.peek().await?;
    if applied.is_empty() {
        let reason = "it has no schema of svc: it is empty, was left by a backup or a restore that did not finish, or belongs \
                      to another program. Check its path, or restore a complete backup";
        return Err(StoreError::Incomplete(reason.to_owned()));
    }
    match missing(migrations, &applied)? {
        [first, ..] if expected == ExpectedSchema::Current => Err(StoreError::SchemaMismatch(format!(
            "the database does not have the migration {}, as an older version made it. Run `svc db migrate` first, or use that \
             version",
            first.name
        ))),
        _ => Ok(()),
    }
}

/// Applies the missing migrations within the transaction, and returns their names.
async fn apply(target: &mut dyn MigrationTarget, migrations: &[Migration]) -> StoreResult<Vec<String>> {
    // Another process may have applied them since `peek`.
    let applied = target.applied().await?;
    let mut names = Vec::new();
    for migration in missing(migrations, &applied)? {
        target.apply(migration).await.map_err(|error| if applied.is_empty() { taken_name(error) } else { error })?;
        target.record(migration).await?;
        names.push(migration.name.to_owned());
    }
    Ok(names)
}

/// Returns the error of the table of migrations, or of the first one, when the database has a table that svc did not create.
fn taken_name(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(text) | StoreError::Internal(text) if text.contains("already exists") => {
            StoreError::SchemaMismatch(format!(
                "something else has created a table or an index with the name of one of svc's ({text}). Rename it, or \
                 give svc a database of its own"
            ))
        }
        error => error,
    }
}

/// Returns the migrations that are to be applied to a database that has these.
fn missing<'m>(migrations: &'m [Migration], applied: &[AppliedMigration]) -> StoreResult<&'m [Migration]> {
    if applied.iter().any(|row| row.name == BEFORE_RELEASE) {
        let reason = "the database was made by a build from before the release of version 0.1.0, whose schema this program does not \
                      know. Write each of its accounts to a file with the build that made it (`svc export all --account ID`), and \
                      read the files into a new database with this one (`svc import all`)";
        return Err(StoreError::SchemaMismatch(reason.to_owned()));
    }
    for AppliedMigration { name, checksum } in applied {
        let Some(migration) = migrations.iter().find(|migration| migration.name == name) else {
            return Err(StoreError::SchemaMismatch(format!(
                "the database has the migration {name}, which this program does not have: it was migrated by a newer version. Use \
                 that version, or restore a backup from before the upgrade"
            )));
        };
        if *checksum != migration.checksum() {
            return Err(StoreError::SchemaMismatch(format!(
                "the migration {name} of this program (SHA-256 {}) is not the one that was applied to the database (SHA-256 {}). Use \
                 the version of the program that migrated the database",
                hex::encode(migration.checksum()),
                hex::encode(checksum),
            )));
        }
    }
    let missing = migrations.get(applied.len()..).unwrap_or_default();
    if let Some(gap) = missing.iter().rev().find(|migration| applied.iter().any(|row| row.name == migration.name)) {
        return Err(StoreError::SchemaMismatch(format!(
            "the database has the migration {}, but not all migrations before it. Restore a backup of the table schema_migrations",
            gap.name
        )));
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &[Migration] = &[
        Migration { name: "0001_one", sql: "SELECT 1" },
        Migration { name: "0002_two", sql: "SELECT 2" },
        Migration { name: "0003_three", sql: "SELECT 3" },
    ];

    fn applied(migrations: &[Migration]) -> Vec<AppliedMigration> {
        let row = |migration: &Migration| AppliedMigration {
            name: migration.name.to_owned(),
            checksum: migration.checksum().to_vec(),
        };
        migrations.iter().map(row).collect()
    }

    fn refusal(rows: &[AppliedMigration]) -> String {
        missing(THREE, rows).unwrap_err().to_string()
    }

    #[test]
    fn migrations_are_listed_in_order() {
        for migrations in [SQLITE, POSTGRES] {
            for (number, migration) in (1..).zip(migrations) {
                assert!(migration.name.starts_with(&format!("{number:04}_")), "{}", migration.name);
            }
        }
    }

    #[test]
    fn those_after_the_applied_ones_are_missing() {
        for count in 0..=3 {
            let missing: Vec<_> =
                missing(THREE, &applied(&THREE[..count])).unwrap().iter().map(|migration| migration.name).collect();
            assert_eq!(missing, ["0001_one", "0002_two", "0003_three"][count..]);
        }
    }

    #[test]
    fn a_schema_that_does_not_fit_is_refused() {
        let row = |name: &str| AppliedMigration { name: name.to_owned(), checksum: vec![0; 32] };
        let mut changed = applied(THREE);
        changed[1] = row("0002_two");
        assert!(refusal(&changed).contains("the migration 0002_two of this program"), "{}", refusal(&changed));
        let mut newer = applied(THREE);
        newer.push(row("9999_later"));
        assert!(refusal(&newer).contains("9999_later, which this program does not have"), "{}", refusal(&newer));
        let mut gap = applied(THREE);
        gap.remove(1);
        assert!(refusal(&gap).contains("but not all migrations before it"), "{}", refusal(&gap));
        let before = ["0001_init", "0002_rate_limits"].map(row);
        assert!(refusal(&before).contains("`svc export all --account ID`"), "{}", refusal(&before));
    }
}
