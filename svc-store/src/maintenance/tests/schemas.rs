//! The list of tables is compared with both schemas.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::column::{Kind, Row, Value};
use crate::dialect::Dialect;
use crate::maintenance::table_reader::TableReader;
use crate::maintenance::tables::TABLES;

/// Tables that describe the database itself, or are not copied. The index of searches is made anew.
const EXCLUDED: [&str; 6] =
    ["settings", "schema_migrations", "request_windows", "dashboard_links", "dashboard_sessions", "uploads"];

fn is_excluded(table: &str) -> bool {
    EXCLUDED.contains(&table) || table.starts_with("search_")
}

async fn rows(sql: &mut dyn Sql, statement: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut each = |row: &dyn Row| {
        let mut cells = Vec::new();
        while let Ok(value) = row.value(cells.len()) {
            cells.push(match value {
                Value::Text(text) => text.to_owned(),
                other => format!("{other:?}"),
            });
        }
        rows.push(cells);
        Ok(())
    };
    sql.query(statement, &[], &mut each).await.unwrap();
    rows
}

type Columns = BTreeMap<String, BTreeMap<String, String>>;

fn by_table(rows: Vec<Vec<String>>) -> Columns {
    let mut tables = Columns::new();
    for row in rows.into_iter().filter(|row| !is_excluded(&row[0])) {
        tables.entry(row[0].clone()).or_default().insert(row[1].clone(), row[2].clone());
    }
    tables
}

#[track_caller]
fn check(schema: &Columns, fits: impl Fn(Kind, &str, &str) -> bool) {
    let listed: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
    let found: BTreeSet<&str> = schema.keys().map(String::as_str).collect();
    assert_eq!(listed, found);
    for table in TABLES {
        let columns = &schema[table.name];
        let listed: BTreeSet<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let found: BTreeSet<&str> = columns.keys().map(String::as_str).collect();
        assert_eq!(listed, found, "{}", table.name);
        for (name, kind) in table.columns {
            assert!(fits(*kind, name, &columns[*name]), "{}.{name}: {kind:?} and {}", table.name, columns[*name]);
        }
        assert!(table.key.iter().all(|column| table.position(column).is_some()), "{}", table.name);
    }
}

#[tokio::test]
async fn every_table_and_column_of_sqlite_is_listed() {
    let folder = Folder::new();
    let url = folder.url("svc.db");
    drop(store(&url).await);
    let mut database = open::existing(&url, &Env::system(), Opening::Migrate).await.unwrap();
    let mut tx = database.connection.begin(Access::Read).await.unwrap();
    let columns = "SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'";
    check(&by_table(rows(&mut *tx, columns).await), |kind, _, name| match kind {
        Kind::Uuid | Kind::Bytes => name == "BLOB",
        Kind::Text | Kind::Date => name == "TEXT",
        Kind::Int | Kind::Bool | Kind::Time => name == "INTEGER",
    });
    let references = "SELECT t.name, f.\"table\" FROM sqlite_schema t, pragma_foreign_key_list(t.name) f";
    let position = |name: &str| TABLES.iter().position(|table| table.name == name).unwrap();
    let references = rows(&mut *tx, references).await;
    assert!(references.len() > 10);
    for reference in references.iter().filter(|reference| !is_excluded(&reference[0])) {
        assert!(position(&reference[0]) > position(&reference[1]), "{reference:?}");
    }
    // A batch is read from an index, without sorting.
    for sql in
        TABLES.iter().flat_map(|table| TableReader::new(table, Dialect::Sqlite, None).statements().map(str::to_owned))
    {
        let plan: Vec<String> =
            rows(&mut *tx, &format!("EXPLAIN QUERY PLAN {sql}")).await.into_iter().map(|row| row[3].clone()).collect();
        assert!(!plan.concat().contains("TEMP B-TREE"), "{sql}: {plan:?}");
        assert!(!sql.contains('>') || plan.concat().contains("SEARCH"), "{sql}: {plan:?}");
    }
}

#[tokio::test]
async fn every_table_and_column_of_postgres_is_listed() {
    let Some(server) = server() else { return };
    let folder = Folder::new();
    drop(store(&folder.url("svc.db")).await);
    let mut database = on_server(&server.database(), &folder.url("svc.db")).await;
    let mut tx = database.connection.begin(Access::Write).await.unwrap();
    let columns = "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns \
         WHERE table_schema = 'public' AND NOT (SELECT relispartition FROM pg_class WHERE oid = table_name::regclass)";
    check(&by_table(rows(&mut *tx, columns).await), |kind, column, name| match kind {
        Kind::Uuid => name == "uuid",
        Kind::Bytes => name == "bytea",
        // The response of an endpoint may contain a NUL, which PostgreSQL's text cannot.
        Kind::Text if column == "response_body" => name == "bytea",
        Kind::Text => matches!(name, "text" | "json"),
        Kind::Int => matches!(name, "bigint" | "integer"),
        // The clock of an account, and what is compared with it.
        Kind::Time if matches!(column, "clock" | "begins_at" | "lease_ends_at" | "sent_until") => name == "bigint",
        Kind::Bool => name == "boolean",
        Kind::Time => name == "timestamp with time zone",
        Kind::Date => name == "date",
    });
    for sql in
        TABLES.iter().flat_map(|table| TableReader::new(table, Dialect::Postgres, None).statements().map(str::to_owned))
    {
        let count = sql.matches('$').count();
        let asked = format!("PREPARE asked AS {sql}");
        tx.execute(&asked, &[]).await.unwrap();
        let nulls = vec!["NULL"; count].join(", ");
        let plan = rows(&mut *tx, &format!("EXPLAIN EXECUTE asked ({nulls})")).await.concat().join("\n");
        tx.execute("DEALLOCATE asked", &[]).await.unwrap();
        assert!(!plan.contains("Sort  (cost") && !plan.contains("Seq Scan"), "{sql}: {plan}");
        assert!(!sql.contains('>') || plan.contains("Index Cond"), "{sql}: {plan}");
    }
}
