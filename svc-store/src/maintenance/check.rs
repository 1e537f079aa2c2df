//! Checks that a database holds what it must, in one snapshot, beside a running server.

mod references;
mod rows;

use std::collections::BTreeSet;

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::Access;
use uuid::Uuid;

use self::rows::Notes;
use super::connection::Transaction;
use super::tables::{Kind, TABLES, TableInfo};
use super::walk::Cell;
use super::{MaintenanceError, open};
use crate::dialect::Dialect;
use crate::sql::{Row, Sql, Value};

/// Findings of one kind that are told; what is wrong a million times is wrong.
const MOST: usize = 100;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// In which table.
    pub table: &'static str,
    /// In which row, where it is one.
    pub id: Option<String>,
    /// What is wrong.
    pub problem: String,
}

/// What came of a check.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Rows that were read, in all tables.
    pub rows: u64,
    /// What is wrong, at most a hundred of each kind.
    pub findings: Vec<Finding>,
}

/// Checks a database: its file, what refers to what, that every row can be read and every secret be opened, and that
/// what is written down twice agrees.
///
/// # Errors
/// When it cannot be opened or read at all.
pub async fn check(url: &str) -> Result<CheckReport, MaintenanceError> {
    let env = Env::system();
    let mut end = open::existing(url, &env).await?;
    Ok(check_database(&mut end).await?)
}

pub(super) async fn check_database(end: &mut open::OpenDatabase) -> Result<CheckReport, StoreError> {
    let dialect = end.connection.dialect();
    let mut tx = end.connection.begin(Access::Read).await?;
    let mut findings = Vec::new();
    if dialect == Dialect::Sqlite {
        let (of_file, of_rows) = integrity(&mut *tx).await;
        findings = of_rows;
        if !of_file.is_empty() {
            // What cannot be trusted need not be read.
            findings.extend(of_file);
            return Ok(CheckReport { rows: 0, findings });
        }
    }
    references::orphans(&mut *tx, &mut findings).await?;
    if dialect == Dialect::Sqlite {
        references::as_sqlite_sees_them(&mut *tx, &mut findings).await?;
    }
    for (table, condition, problem) in RULES {
        find(&mut *tx, table_named(table), condition, problem, &mut findings).await?;
    }
    let mut notes = Notes::default();
    let mut rows = 0;
    for table in TABLES {
        rows += rows::read_all(&mut *tx, table, &mut notes, &mut findings).await?;
    }
    notes.compare(&mut findings);
    tx.commit().await?;
    Ok(CheckReport { rows, findings })
}

/// What a row must not be, as a condition on `c`.
const RULES: &[(&str, &str, &str)] = &[
    (
        "deliveries",
        "(c.state = 'pending') <> (c.next_attempt_at IS NOT NULL)",
        "a delivery is due at some time if it is pending, and only then",
    ),
    (
        "subscriptions",
        "EXISTS (SELECT 1 FROM deliveries d WHERE d.tenant_id = c.tenant_id AND d.subscription_id = c.id \
         AND d.state = 'pending') \
         AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.tenant_id = c.tenant_id AND t.subscription_id = c.id)",
        "it has pending deliveries and no turn, so they are not sent",
    ),
    ("contacts", "c.live <> (c.deleted_at IS NULL)", "it is live and deleted, or neither"),
    ("subscriptions", "c.live <> (c.deleted_at IS NULL)", "it is live and deleted, or neither"),
];

#[expect(clippy::expect_used, reason = "the names are fixed; a test finds those that are wrong")]
fn table_named(name: &str) -> &'static TableInfo {
    TABLES.iter().find(|table| table.name == name).expect("a table of the list")
}

/// What SQLite itself says of its file, and of rows that break the schema's own rules, which it does not name.
async fn integrity(tx: &mut dyn Transaction) -> (Vec<Finding>, Vec<Finding>) {
    let mut said = BTreeSet::new();
    let mut each = |row: &dyn Row| {
        if let Value::Text(text) = row.value(0)? {
            said.insert(text.to_owned());
        }
        Ok(())
    };
    if let Err(error) = tx.query("PRAGMA integrity_check", &[], &mut each).await {
        said.insert(error.to_string());
    }
    let problems = said.into_iter().filter(|text| text != "ok");
    let findings = problems.map(|problem| Finding { table: "sqlite_schema", id: None, problem });
    let is_of_rows = |finding: &Finding| finding.problem.starts_with("CHECK constraint failed in ");
    findings.partition(|finding| !is_of_rows(finding))
}

/// What tells people which row is meant: its id, or else its key within the tenant.
fn shown(table: &TableInfo) -> Vec<&'static str> {
    if table.position("id").is_some() {
        return vec!["id"];
    }
    table.key.iter().copied().filter(|column| *column != "tenant_id").collect()
}

fn show(row: &dyn Row, from: usize, table: &TableInfo) -> Option<String> {
    let parts = (from..).zip(shown(table)).map(|(index, column)| {
        let kind = table.columns[table.position(column)?].1;
        Some(match Cell::read(row.value(index).ok()?, kind)? {
            Cell::Bytes(bytes) if kind == Kind::Uuid => Uuid::from_slice(&bytes).ok()?.to_string(),
            Cell::Bytes(bytes) => hex::encode(&bytes),
            Cell::Int(value) => value.to_string(),
            Cell::Text(text) => text,
            Cell::Null => "-".to_owned(),
        })
    });
    parts.collect::<Option<Vec<_>>>().map(|parts| parts.join(" "))
}

/// Adds a finding for each row of a table, which is `c`, that a condition holds for.
async fn find(
    sql: &mut dyn Sql,
    table: &'static TableInfo,
    condition: &str,
    problem: &str,
    findings: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let columns: Vec<String> = shown(table).iter().map(|column| format!("c.{column}")).collect();
    let statement = format!("SELECT {} FROM {} c WHERE {condition} LIMIT {MOST}", columns.join(", "), table.name);
    let mut each = |row: &dyn Row| {
        findings.push(Finding { table: table.name, id: show(row, 0, table), problem: problem.to_owned() });
        Ok(())
    };
    sql.query(&statement, &[], &mut each).await
}
