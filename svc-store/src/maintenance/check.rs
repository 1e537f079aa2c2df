//! Checks that the data of a database is valid and consistent. It reads one snapshot, and can run while servers use the
//! database.

mod references;
mod rows;

use std::collections::BTreeSet;

use svc_core::env::Env;
use svc_core::store::{Access, StoreResult};
use svc_core::values::Timestamp;
use uuid::Uuid;

use self::rows::Consistency;
use super::table_reader::Cell;
use super::tables::{TABLES, TableInfo};
use super::{MaintenanceError, open};
use crate::column::{Kind, Row, Value};
use crate::dialect::Dialect;
use crate::maintenance_connection::Opening;
use crate::maintenance_connection::Transaction;
use crate::sql::Sql;

/// The most findings of one kind that are reported.
const MAX_FINDINGS: usize = 100;

/// A problem that [`check`] found in a database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the table with the problem. It is `sqlite_schema` for damage to a SQLite file as a whole.
    pub table: &'static str,
    /// The id of the row, or its key if it has no id. `None` when the problem does not concern a single row.
    pub id: Option<String>,
    /// The problem and its consequence.
    pub problem: String,
}

/// The result of a check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// The number of rows that were read in all tables. It is 0 when a SQLite file is so damaged that its rows were not
    /// read.
    pub rows: u64,
    /// The problems that were found, at most 100 of each kind. It is empty when the database is sound.
    pub findings: Vec<Finding>,
}

/// Checks the database at `url`, and reports all problems that it finds.
///
/// It checks the integrity of a SQLite file, the references between rows, that every row can be read and every secret can be
/// decrypted, that data that is stored twice is equal, and that no account's clock is ahead of this machine's. It changes
/// nothing.
///
/// # Errors
/// [`MaintenanceError::Open`] when the database cannot be opened, is not a complete database of svc, or has the schema of
/// another version, and [`MaintenanceError::Store`] when it cannot be read.
pub async fn check(url: &str) -> Result<CheckReport, MaintenanceError> {
    let env = Env::system();
    let mut database = open::complete(url, &env, Opening::Read).await?;
    Ok(check_database(&mut database, env.now()).await?)
}

/// Checks an open database, whose clocks are compared with `now`.
pub(super) async fn check_database(database: &mut open::OpenDatabase, now: Timestamp) -> StoreResult<CheckReport> {
    let dialect = database.connection.dialect();
    let mut tx = database.connection.begin(Access::Read).await?;
    let mut findings = Vec::new();
    if dialect == Dialect::Sqlite {
        let (file_findings, row_findings) = integrity(&mut *tx).await;
        findings = row_findings;
        if !file_findings.is_empty() {
            // The rows of a damaged file cannot be trusted.
            findings.extend(file_findings);
            return Ok(CheckReport { rows: 0, findings });
        }
    }
    references::orphans(&mut *tx, dialect, &mut findings).await?;
    if dialect == Dialect::Sqlite {
        references::by_foreign_keys(&mut *tx, &mut findings).await?;
    }
    for (table, condition, problem) in RULES {
        find(&mut *tx, "", table_named(table), condition, problem, &mut findings).await?;
    }
    let mut consistency = Consistency::at(now);
    let mut rows = 0;
    for table in TABLES {
        rows += rows::read_all(&mut *tx, table, &mut consistency, &mut findings).await?;
    }
    consistency.compare(&mut findings);
    tx.commit().await?;
    Ok(CheckReport { rows, findings })
}

const LIVE_PROBLEM: &str = "the column live does not agree with deleted_at: it must be false if the row is deleted";

/// Conditions on a row `c` that must be false: table, condition, problem.
const RULES: &[(&str, &str, &str)] = &[
    (
        "deliveries",
        "(c.status = 'pending') <> (c.next_attempt_at IS NOT NULL)",
        "next_attempt_at does not agree with the status: a pending delivery must have it, and no other delivery may have it",
    ),
    (
        "subscriptions",
        "(c.stopped_at IS NOT NULL OR EXISTS (SELECT 1 FROM deliveries d WHERE d.tenant_id = c.tenant_id \
         AND d.subscription_id = c.id AND d.status = 'pending')) \
         AND NOT EXISTS (SELECT 1 FROM endpoint_schedule t WHERE t.tenant_id = c.tenant_id AND t.subscription_id = c.id)",
        "the subscription has deliveries to send, to hold or to end, but no row in endpoint_schedule, so that never happens",
    ),
    ("contacts", "c.live <> (c.deleted_at IS NULL)", LIVE_PROBLEM),
    ("subscriptions", "c.live <> (c.deleted_at IS NULL)", LIVE_PROBLEM),
];

#[expect(clippy::expect_used, reason = "the names are fixed; a test finds those that are wrong")]
fn table_named(name: &str) -> &'static TableInfo {
    TABLES.iter().find(|table| table.name == name).expect("a table of the list")
}

/// Returns the findings of SQLite's integrity check: those about the file, and those about rows that violate a constraint.
/// SQLite does not say which rows these are.
async fn integrity(tx: &mut dyn Transaction) -> (Vec<Finding>, Vec<Finding>) {
    let mut messages = BTreeSet::new();
    let mut each = |row: &dyn Row| {
        if let Value::Text(text) = row.value(0)? {
            messages.insert(text.to_owned());
        }
        Ok(())
    };
    if let Err(error) = tx.query("PRAGMA integrity_check", &[], &mut each).await {
        messages.insert(error.to_string());
    }
    let problems = messages.into_iter().filter(|text| text != "ok");
    let findings = problems.map(|problem| Finding { table: "sqlite_schema", id: None, problem });
    let is_of_rows = |finding: &Finding| finding.problem.starts_with("CHECK constraint failed in ");
    findings.partition(|finding| !is_of_rows(finding))
}

/// Returns the columns that identify a row in a finding: its id, or else its key within the tenant.
fn displayed_columns(table: &TableInfo) -> Vec<&'static str> {
    if table.position("id").is_some() {
        return vec!["id"];
    }
    table.key.iter().copied().filter(|column| *column != "tenant_id").collect()
}

fn display(row: &dyn Row, from: usize, table: &TableInfo) -> Option<String> {
    let parts = (from..).zip(displayed_columns(table)).map(|(index, column)| {
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

/// Adds a finding for each row `c` of a table for which a condition is true. The statement begins with `first`.
async fn find(
    sql: &mut dyn Sql,
    first: &str,
    table: &'static TableInfo,
    condition: &str,
    problem: &str,
    findings: &mut Vec<Finding>,
) -> StoreResult<()> {
    let columns: Vec<String> = displayed_columns(table).iter().map(|column| format!("c.{column}")).collect();
    let statement =
        format!("{first}SELECT {} FROM {} c WHERE {condition} LIMIT {MAX_FINDINGS}", columns.join(", "), table.name);
    let mut each = |row: &dyn Row| {
        findings.push(Finding { table: table.name, id: display(row, 0, table), problem: problem.to_owned() });
        Ok(())
    };
    sql.query(&statement, &[], &mut each).await
}
