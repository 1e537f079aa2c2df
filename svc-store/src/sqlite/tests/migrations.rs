//! The migrations of a file, and what its schema refuses.

use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::resources::bookings::BookingStatus;
use svc_core::resources::invoices::InvoiceStatus;
use svc_core::resources::jobs::JobStatus;
use svc_core::resources::quotes::QuoteStatus;
use svc_core::webhooks::deliveries::DeliveryStatus;

use super::*;
use crate::migrations::{Migration, SQLITE};

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

/// A migration that recreates a table keeps its rows and the rows that refer to them.
#[test]
fn migrations_keep_all_rows_of_an_older_schema() {
    const TABLES: [&str; 5] = ["tenants", "subscriptions", "events", "deliveries", "delivery_attempts"];
    let scratch = Scratch::new();
    let mut connection = with_old_schema(&scratch, 4);
    let rows = "
        INSERT INTO tenants VALUES (zeroblob(16), 'Ada', 'approved', 'UTC', 'AUD', 1, 1, 1);
        INSERT INTO subscriptions VALUES (zeroblob(16), 1, randomblob(16), 'https://example.com/', '*', 1, NULL, 1, NULL,
            NULL, NULL, NULL, 0, x'00', NULL, NULL, 1, NULL);
        INSERT INTO events WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
            SELECT zeroblob(16), randomblob(16), 'contact.created', '{}', i, NULL FROM n;
        INSERT INTO deliveries SELECT tenant_id, randomblob(16), id, kind, (SELECT id FROM subscriptions), 'pending', 1, 1,
            500, created_at, NULL, created_at FROM events;
        INSERT INTO delivery_attempts SELECT tenant_id, id, 1, 1, 1, 500, 'odd', NULL, 0, NULL FROM deliveries;";
    connection.raw().execute_batch(rows).unwrap();
    let content = |connection: &SqliteConnection| {
        TABLES.map(|table| {
            // Columns that a later migration added are not compared.
            let columns = match table {
                "tenants" => "id, name, clock",
                "subscriptions" => "tenant_id, live, id, url, enabled, secret, updated_at, deleted_at",
                "events" => "tenant_id, id, kind, data, created_at, only_for",
                "deliveries" => "tenant_id, id, event_id, kind, subscription_id, attempts, next_attempt_at, created_at",
                _ => "*",
            };
            let sql = format!("SELECT {columns} FROM {table} ORDER BY 1, 2, 3");
            let mut select = connection.raw().prepare(&sql).unwrap();
            let width = select.column_count();
            let row = |row: &rusqlite::Row<'_>| (0..width).map(|cell| row.get(cell)).collect();
            let rows: Result<Vec<Vec<rusqlite::types::Value>>, _> = select.query_map([], row).unwrap().collect();
            rows.unwrap()
        })
    };
    let before = content(&connection);
    assert_eq!(before.each_ref().map(Vec::len), [1, 1, 50, 50, 50]);
    let applied = connection.migrate(Timestamp::from_micros(0)).unwrap();
    assert_eq!(applied.len(), SQLITE.len() - 4);
    assert!(content(&connection) == before);
    let refused = connection.raw().execute("DELETE FROM deliveries", []).unwrap_err();
    assert!(refused.to_string().contains("FOREIGN KEY"), "attempts still refer to them: {refused}");
}

/// Events from before there was a history of records are part of it.
#[test]
fn older_events_get_the_record_whose_history_they_belong_to() {
    let scratch = Scratch::new();
    let count = SQLITE.iter().position(|migration| migration.name.ends_with("_history_of_records")).unwrap();
    let mut connection = with_old_schema(&scratch, count);
    let (record, invoice) = ("0195a3c8-0000-7000-8000-0000000000ab", "0195a3c8-0000-7000-8000-0000000000cd");
    let rows = format!(
        r#"INSERT INTO tenants (id, name, developer_access, time_zone, currency, unique_contact_email, created_at, clock)
            VALUES (zeroblob(16), 'Ada', 'approved', 'UTC', 'AUD', 1, 1, 1);
        INSERT INTO events (tenant_id, id, kind, data, created_at, only_for) VALUES
            (zeroblob(16), x'01', 'invoice.paid', '{{"id":"{record}"}}', 1, NULL),
            (zeroblob(16), x'02', 'payment.succeeded', '{{"id":"{record}","invoice_id":"{invoice}"}}', 2, NULL),
            (zeroblob(16), x'03', 'invoice.paid', '{{"id":"{record}"}}', 3, zeroblob(16)),
            (zeroblob(16), x'04', 'stay.created', '{{"id":"{record}"}}', 4, NULL),
            (zeroblob(16), x'05', 'invoice.shipped', '{{"id":"A-17"}}', 5, NULL),
            (zeroblob(16), x'06', 'invoice.shipped', '{{"id":17}}', 6, NULL);"#
    )
    .replace("x'0", "x'0000000000000000000000000000000");
    connection.raw().execute_batch(&rows).unwrap();
    connection.migrate(Timestamp::from_micros(0)).unwrap();
    let mut select = connection.raw().prepare("SELECT lower(hex(record_id)) FROM events ORDER BY created_at").unwrap();
    let found: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, [&record.replace('-', ""), &invoice.replace('-', ""), "", "", "", ""]);
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
                    ("token_hash", _) => "randomblob(32)".to_owned(),
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

/// Opens a file with the schema that the first `count` migrations made, from before checksums were stored.
fn with_old_schema(scratch: &Scratch, count: usize) -> SqliteConnection {
    let connection = SqliteConnection::open(&scratch.path).unwrap();
    let table = "CREATE TABLE schema_migrations (name TEXT NOT NULL PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT";
    connection.raw().execute_batch(table).unwrap();
    for Migration { name, sql } in &SQLITE[..count] {
        connection.raw().execute_batch(sql).unwrap();
        connection.raw().execute("INSERT INTO schema_migrations VALUES (?1, 0)", [name]).unwrap();
    }
    connection
}

#[test]
fn migrations_are_rolled_back_when_rows_refer_to_missing_rows() {
    let scratch = Scratch::new();
    let mut connection = with_old_schema(&scratch, 5);
    let orphan = "PRAGMA foreign_keys = OFF;
        INSERT INTO turns VALUES (zeroblob(16), zeroblob(16), 1);
        INSERT INTO payments VALUES (zeroblob(16), zeroblob(16), zeroblob(16), 1, 'AUD', 1);";
    connection.raw().execute_batch(orphan).unwrap();
    let refused = connection.migrate(Timestamp::from_micros(0)).unwrap_err();
    assert!(refused.to_string().contains("rows of payments refer to missing rows"), "{refused}");
    let applied: u32 =
        connection.raw().query_row("SELECT count(*) FROM schema_migrations", [], |row| row.get(0)).unwrap();
    assert_eq!(applied, 5);
}

#[test]
fn checksums_of_applied_migrations_are_stored_once() {
    let scratch = Scratch::new();
    let mut connection = with_old_schema(&scratch, SQLITE.len());
    assert_eq!(connection.migrate(Timestamp::from_micros(0)).unwrap(), Vec::<String>::new());
    let sql = "SELECT count(*) FROM schema_migrations WHERE length(checksum) = 32 AND applied_at = 0";
    let stored: u32 = connection.raw().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(stored as usize, SQLITE.len());
}

#[test]
fn a_changed_or_unknown_migration_is_refused() {
    for (change, expected) in [
        (
            "UPDATE schema_migrations SET checksum = zeroblob(32) WHERE name = '0003_retention'",
            "the migration 0003_retention of this program",
        ),
        (
            "INSERT INTO schema_migrations VALUES ('9999_later', 0, zeroblob(32))",
            "the migration 9999_later, which this program does not have",
        ),
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
    let scratch = Scratch::new();
    SqliteConnection::open(&scratch.path).unwrap().raw().execute_batch("CREATE TABLE contacts (name TEXT)").unwrap();
    let refused = SqliteStore::open(&scratch.path, env()).map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::SchemaMismatch(_)), "{refused:?}");
    assert!(refused.to_string().contains("something else has created"), "{refused}");
}
