//! The migrations of a file, and what its schema refuses.

use svc_core::accounts::sessions::Role;
use svc_core::accounts::shared_links::SharedLinkPurpose;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::resources::bookings::BookingStatus;
use svc_core::resources::invoices::InvoiceStatus;
use svc_core::resources::jobs::JobStatus;
use svc_core::resources::quotes::QuoteStatus;
use svc_core::webhooks::deliveries::DeliveryStatus;

use super::super::migrate::Migrator;
use super::*;
use crate::migrations::{self, ExpectedSchema, Migration, SQLITE};

#[test]
fn migrations_run_once_also_when_many_start_together() {
    let scratch = Scratch::new();
    let applied: Vec<usize> = std::thread::scope(|scope| {
        let open = || super::migrate(&scratch.path).unwrap().len();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(applied.iter().sum::<usize>(), SQLITE.len(), "{applied:?}");
}

/// A column of an enumeration takes the texts of its values, and no other.
#[test]
fn columns_of_enumerations_take_no_other_text() {
    fn texts<T: ToString>(values: &[T]) -> Vec<String> {
        values.iter().map(T::to_string).collect()
    }
    let scratch = Scratch::new();
    let connection = scratch.connection();
    connection.batch("PRAGMA foreign_keys = OFF").unwrap();
    let columns = [
        ("bookings", "status", texts(BookingStatus::ALL)),
        ("dashboard_links", "role", texts(Role::ALL)),
        ("dashboard_sessions", "role", texts(Role::ALL)),
        ("deliveries", "status", texts(DeliveryStatus::ALL)),
        ("invoices", "status", texts(InvoiceStatus::ALL)),
        ("jobs", "status", texts(JobStatus::ALL)),
        ("members", "role", texts(Role::ALL)),
        ("quotes", "status", texts(QuoteStatus::ALL)),
        ("shared_links", "purpose", texts(SharedLinkPurpose::ALL)),
        ("tenants", "developer_access", texts(DeveloperAccess::ALL)),
    ];
    for (table, column, texts) in columns {
        for text in texts.iter().map(String::as_str).chain(["other"]) {
            // A row with values that the other constraints allow.
            let next_attempt_at = format!("CASE '{text}' WHEN 'pending' THEN 1 END");
            let sql = format!("SELECT name, type, \"notnull\" FROM pragma_table_info('{table}')");
            let mut columns = connection.raw().prepare(&sql).unwrap();
            let value = |row: &rusqlite::Row<'_>| {
                let (name, kind, is_required): (String, String, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(match (name.as_str(), kind.as_str()) {
                    (name, _) if name == column => format!("'{text}'"),
                    ("next_attempt_at", _) => next_attempt_at.clone(),
                    ("end_time", _) => "2".to_owned(),
                    ("token_hash" | "secret_hash", _) => "randomblob(32)".to_owned(),
                    (_, "BLOB") => "randomblob(16)".to_owned(),
                    (_, "TEXT") => "hex(randomblob(1)) || 'x'".to_owned(),
                    _ if is_required => "1".to_owned(),
                    _ => "NULL".to_owned(),
                })
            };
            let values: Vec<String> = columns.query_map([], value).unwrap().collect::<Result<_, _>>().unwrap();
            let inserted = connection.raw().execute(&format!("INSERT INTO {table} VALUES ({})", values.join(", ")), []);
            match inserted {
                Ok(_) => assert_ne!(text, "other", "{table}"),
                Err(error) => {
                    let refused = format!("CHECK constraint failed: {column} = ");
                    assert!(text == "other" && error.to_string().starts_with(&refused), "{table} {text}: {error}");
                }
            }
        }
    }
}

/// Applies the migrations of this program, and one more.
fn migrate_further(connection: &mut SqliteConnection, sql: &'static str) -> StoreResult<Vec<String>> {
    let longer = [SQLITE, &[Migration { name: "0002_more", sql }]].concat();
    let mut migrator = Migrator { connection, now: Timestamp::from_micros(0) };
    migrations::run(&mut migrator, &longer).now_or_never().unwrap()
}

#[test]
fn migrations_are_rolled_back_when_rows_refer_to_missing_rows() {
    let scratch = Scratch::new();
    let mut connection = scratch.connection();
    let orphan = "INSERT INTO payments VALUES (zeroblob(16), zeroblob(16), zeroblob(16), 1, 'AUD', 1, 0, NULL, NULL)";
    let refused = migrate_further(&mut connection, orphan).unwrap_err();
    assert!(refused.to_string().contains("rows of payments refer to missing rows"), "{refused}");
    let count = |table| {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.raw().query_row(&sql, [], |row| row.get::<_, u32>(0)).unwrap()
    };
    assert_eq!((count("schema_migrations") as usize, count("payments")), (SQLITE.len(), 0));
}

#[test]
fn what_needs_the_schema_of_this_version_says_how_to_get_it() {
    let scratch = Scratch::new();
    let mut connection = scratch.connection();
    let longer = [SQLITE, &[Migration { name: "0002_more", sql: "" }]].concat();
    let mut check = |expected| {
        let mut migrator = Migrator { connection: &mut connection, now: Timestamp::from_micros(0) };
        migrations::check(&mut migrator, &longer, expected).now_or_never().unwrap()
    };
    assert_eq!(check(ExpectedSchema::Any), Ok(()));
    let refused = check(ExpectedSchema::Current).unwrap_err();
    assert!(refused.to_string().contains("does not have the migration 0002_more"), "{refused}");
    assert!(refused.to_string().contains("Run `svc db migrate` first"), "{refused}");
}

#[test]
fn a_database_that_does_not_fit_is_refused() {
    for (change, expected) in [
        (
            "UPDATE schema_migrations SET checksum = zeroblob(32) WHERE name = '0001_schema'",
            "the migration 0001_schema of this program",
        ),
        (
            "INSERT INTO schema_migrations VALUES ('9999_later', 0, zeroblob(32))",
            "the migration 9999_later, which this program does not have",
        ),
        ("UPDATE schema_migrations SET name = '0001_init'", "a build from before the release of version 0.1.0"),
    ] {
        let scratch = Scratch::new();
        scratch.connection().raw().execute_batch(change).unwrap();
        let refused = SqliteStore::open(&scratch.path, env()).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::SchemaMismatch(_)), "{refused:?}");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

#[test]
fn a_file_with_tables_of_something_else_is_refused() {
    for table in ["contacts (name TEXT)", "schema_migrations (version TEXT)"] {
        let scratch = Scratch::new();
        let connection = SqliteConnection::open(&scratch.path).unwrap();
        connection.raw().execute_batch(&format!("CREATE TABLE {table}")).unwrap();
        let refused = SqliteStore::open(&scratch.path, env()).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::SchemaMismatch(_)), "{refused:?}");
        assert!(refused.to_string().contains("something else has created"), "{refused}");
    }
}
