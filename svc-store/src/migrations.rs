//! Migrations of the schema, and the one runner that applies them to both databases.
//!
//! Each database has a list of migrations, which are applied in its order and never edited afterwards. The table
//! `schema_migrations` has a row for each one that was applied, with the SHA-256 digest of its text. The runner refuses a
//! database that has a migration with another digest, or one that the program does not know: the program and the
//! schema do not fit together, and changing anything could destroy data.
//!
//! Missing migrations are applied in one transaction, which excludes other processes that migrate at the same time. Only
//! those that build indexes with `CONCURRENTLY`, which PostgreSQL refuses within a transaction, are applied on their own:
//! writes go on meanwhile. One that was interrupted is applied again, so its statements first drop what it left.

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

    /// Returns whether it is applied outside of a transaction.
    pub(crate) fn is_concurrent(&self) -> bool {
        self.sql.contains(" CONCURRENTLY ")
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
    "0001_init",
    "0002_test_events_and_replay_turns",
    "0003_retention",
    "0004_audit",
    "0005_rate_limits",
    "0006_fewer_pages_per_write",
    "0007_backlog",
    "0008_event_actors",
    "0009_endpoint_schedule_and_delivery_status",
    "0010_accounts",
    "0011_contacts_by_email_changed",
    "0012_endpoint_backoff",
    "0013_records_by_id",
    "0014_stopped_subscriptions",
    "0015_overdue_checks",
    "0016_dashboard_sign_in",
    "0017_request_log",
    "0018_attempt_counts",
    "0019_pending_and_ended_deliveries",
    "0020_attempts_by_delivery",
    "0021_replay_totals",
    "0022_members",
    "0023_platform_keys",
    "0024_expiring_subscriptions",
    "0025_operational_events",
    "0026_contacts_by_email_and_change",
    "0027_constraints_without_tables",
    "0028_plans_of_subscription_kinds",
    "0029_search",
    "0030_history_of_records",
    "0031_apps",
    "0032_sandboxes",
    "0033_search_by_title_and_bookings_by_status",
    "0034_webhook_options",
    "0035_more_webhook_options",
    "0036_search_forgets",
    "0037_streams",
    "0038_erasure_of_contacts",
    "0039_search_of_what_is_meant",
    "0040_search_of_letters_with_strokes",
    "0041_records_by_start",
};

/// The migrations of PostgreSQL.
pub(crate) const POSTGRES: &[Migration] = migrations! { "postgres":
    "0001_init",
    "0002_rate_limits",
    "0003_deliveries_by_time",
    "0004_backlog",
    "0005_event_actors",
    "0006_endpoint_schedule_and_delivery_status",
    "0007_accounts",
    "0008_endpoint_backoff",
    "0009_records_by_id",
    "0010_stopped_subscriptions",
    "0011_vacuum_of_queues",
    "0012_indexes_of_stopped_deliveries",
    "0013_overdue_checks",
    "0014_index_of_overdue_checks",
    "0015_dashboard_sign_in",
    "0016_request_log",
    "0017_attempt_counts",
    "0018_pending_and_ended_deliveries",
    "0019_replay_totals",
    "0020_members",
    "0021_platform_keys",
    "0022_expiring_subscriptions",
    "0023_operational_events",
    "0024_contacts_by_email_and_change",
    "0025_search",
    "0026_history_of_records",
    "0027_apps",
    "0028_sandboxes",
    "0029_search_by_title_and_bookings_by_status",
    "0030_search_by_whole_title",
    "0031_webhook_options",
    "0032_ordered_deliveries",
    "0033_more_webhook_options",
    "0034_streams",
    "0035_bounds_of_history",
    "0036_partitions_of_history",
    "0037_erasure_of_contacts",
    "0038_partitions_in_steps",
    "0039_search_of_what_is_meant",
    "0040_search_of_letters_with_strokes",
    "0041_records_by_start",
};

/// A row of `schema_migrations`.
#[derive(Clone, Debug)]
pub(crate) struct AppliedMigration {
    pub(crate) name: String,
    /// `None` when it was applied by a version that did not store checksums.
    pub(crate) checksum: Option<Vec<u8>>,
}

/// A database, as the runner sees it.
#[async_trait]
pub(crate) trait MigrationTarget: Send {
    /// Returns the applied migrations without locking anything. `None` when there is no table of migrations, or it has no
    /// checksums yet.
    async fn peek(&mut self) -> StoreResult<Option<Vec<AppliedMigration>>>;

    /// Begins a transaction that excludes other processes that migrate, and creates or completes the table of migrations.
    async fn begin(&mut self) -> StoreResult<()>;

    /// Returns the applied migrations within the transaction.
    async fn applied(&mut self) -> StoreResult<Vec<AppliedMigration>>;

    /// Runs the statements of a migration.
    async fn apply(&mut self, migration: &Migration) -> StoreResult<()>;

    /// Adds the row of a migration that was applied, or sets the checksum of the row.
    async fn record(&mut self, migration: &Migration) -> StoreResult<()>;

    /// Runs the statements of a migration outside of a transaction, and adds its row, while no other process does so. Returns
    /// false if another process has done so meanwhile.
    async fn apply_concurrently(&mut self, migration: &Migration) -> StoreResult<bool>;

    /// Commits. `is_changed` says whether a migration was applied.
    async fn commit(&mut self, is_changed: bool) -> StoreResult<()>;

    /// Rolls back.
    async fn roll_back(&mut self);
}

/// Applies the missing migrations, and returns their names.
pub(crate) async fn run(target: &mut dyn MigrationTarget, migrations: &[Migration]) -> StoreResult<Vec<String>> {
    if let Some(applied) = target.peek().await?
        && Plan::of(migrations, &applied)?.is_empty()
    {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    loop {
        target.begin().await?;
        let concurrent = match apply(target, migrations, &mut names).await {
            Ok((is_changed, concurrent)) => {
                target.commit(is_changed).await?;
                concurrent
            }
            Err(error) => {
                target.roll_back().await;
                return Err(error);
            }
        };
        let Some(migration) = concurrent else { return Ok(names) };
        if target.apply_concurrently(migration).await? {
            names.push(migration.name.to_owned());
        }
    }
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
    let applied = target.peek().await?.unwrap_or_default();
    if applied.is_empty() {
        let reason = "it has no schema of svc: it is empty, was left by a backup or a restore that did not finish, or belongs \
                      to another program. Check its path, or restore a complete backup";
        return Err(StoreError::Incomplete(reason.to_owned()));
    }
    let plan = Plan::of(migrations, &applied)?;
    match plan.missing.first() {
        Some(missing) if expected == ExpectedSchema::Current => Err(StoreError::SchemaMismatch(format!(
            "the database does not have the migration {}, as an older version made it. Run `svc db migrate` first, or use that \
             version",
            missing.name
        ))),
        _ => Ok(()),
    }
}

/// Applies the missing migrations up to the first concurrent one. Returns whether it applied any, and the concurrent one.
async fn apply<'m>(
    target: &mut dyn MigrationTarget,
    migrations: &'m [Migration],
    names: &mut Vec<String>,
) -> StoreResult<(bool, Option<&'m Migration>)> {
    // Another process may have applied them since `peek`.
    let applied = target.applied().await?;
    let plan = Plan::of(migrations, &applied)?;
    for migration in plan.without_checksum {
        target.record(migration).await?;
    }
    let before = names.len();
    for migration in plan.missing {
        if migration.is_concurrent() {
            return Ok((names.len() > before, Some(migration)));
        }
        target.apply(migration).await.map_err(|error| if applied.is_empty() { taken_name(error) } else { error })?;
        target.record(migration).await?;
        names.push(migration.name.to_owned());
    }
    Ok((names.len() > before, None))
}

/// Returns the error of the first migration when the database has a table that svc did not create.
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

/// What is to be done.
#[derive(Debug)]
struct Plan<'a> {
    /// Migrations to apply, in order.
    missing: &'a [Migration],
    /// Applied migrations whose checksum is not stored yet.
    without_checksum: Vec<&'a Migration>,
}

impl<'a> Plan<'a> {
    fn of(migrations: &'a [Migration], applied: &[AppliedMigration]) -> StoreResult<Self> {
        let mut without_checksum = Vec::new();
        for AppliedMigration { name, checksum } in applied {
            let Some(migration) = migrations.iter().find(|migration| migration.name == name) else {
                return Err(StoreError::SchemaMismatch(format!(
                    "the database has the migration {name}, which this program does not have: it was migrated by a newer \
                     version. Use that version, or restore a backup from before the upgrade"
                )));
            };
            match checksum {
                None => without_checksum.push(migration),
                Some(stored) if *stored == migration.checksum() => {}
                Some(stored) => {
                    return Err(StoreError::SchemaMismatch(format!(
                        "the migration {name} of this program (SHA-256 {}) is not the one that was applied to the \
                         database (SHA-256 {}). Use the version of the program that migrated the database",
                        hex::encode(migration.checksum()),
                        hex::encode(stored),
                    )));
                }
            }
        }
        let missing = migrations.get(applied.len()..).unwrap_or_default();
        if let Some(gap) = missing.iter().rev().find(|migration| applied.iter().any(|row| row.name == migration.name)) {
            return Err(StoreError::SchemaMismatch(format!(
                "the database has the migration {}, but not all migrations before it. Restore a backup of the table \
                 schema_migrations",
                gap.name
            )));
        }
        Ok(Self { missing, without_checksum })
    }

    fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.without_checksum.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(migrations: &[Migration]) -> Vec<AppliedMigration> {
        let row = |migration: &Migration| AppliedMigration {
            name: migration.name.to_owned(),
            checksum: Some(migration.checksum().to_vec()),
        };
        migrations.iter().map(row).collect()
    }

    fn refusal(rows: &[AppliedMigration]) -> String {
        Plan::of(SQLITE, rows).unwrap_err().to_string()
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
    fn missing_migrations_and_checksums_are_planned() {
        assert_eq!(Plan::of(SQLITE, &[]).unwrap().missing.len(), SQLITE.len());
        let mut rows = applied(&SQLITE[..3]);
        rows[1].checksum = None;
        let plan = Plan::of(SQLITE, &rows).unwrap();
        assert_eq!(plan.missing[0].name, SQLITE[3].name);
        assert_eq!(plan.without_checksum.iter().map(|migration| migration.name).collect::<Vec<_>>(), [SQLITE[1].name]);
        assert!(Plan::of(SQLITE, &applied(SQLITE)).unwrap().is_empty());
    }

    #[test]
    fn a_schema_that_does_not_fit_is_refused() {
        let mut changed = applied(SQLITE);
        changed[2].checksum = Some(vec![0; 32]);
        assert!(refusal(&changed).contains("the migration 0003_retention of this program"), "{}", refusal(&changed));
        let mut newer = applied(SQLITE);
        newer.push(AppliedMigration { name: "9999_later".to_owned(), checksum: Some(vec![0; 32]) });
        assert!(refusal(&newer).contains("9999_later, which this program does not have"), "{}", refusal(&newer));
        let mut gap = applied(SQLITE);
        gap.remove(2);
        assert!(refusal(&gap).contains("but not all migrations before it"), "{}", refusal(&gap));
    }
}
