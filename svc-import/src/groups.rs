//! Imports rows in groups, one request each, which is one transaction.

use std::collections::HashMap;
use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use svc_core::error::{Error, StoreError};
use svc_core::imports::ImportRow;
use svc_core::platform::{ImportCreate, ImportKind, ImportRows, ImportedRow, RowOutcome, RowProblem};

use crate::problems::{by_line, differs, of_rules, reported};
use crate::rows::Group;

/// How often a transaction is attempted while the database is busy.
const MAX_ATTEMPTS: u32 = 3;

/// The destination of the rows: a database, or a server elsewhere.
#[async_trait]
pub trait Service: Sync {
    /// Why a request failed.
    type Error: Debug + Send;

    /// Imports the rows of a request in one transaction, and returns what came of each.
    async fn import(&self, import: ImportCreate) -> Result<Vec<ImportedRow>, ServiceError<Self::Error>>;
}

/// Why a request with rows failed.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceError<E> {
    /// The database is busy. The request is sent again.
    Busy(E),
    /// One of the rows made the transaction fail. If it is the only one, this is its problem.
    Row(RowProblem),
    /// The import cannot go on.
    Failed(E),
}

impl ServiceError<Error> {
    /// Returns why a transaction of the rules failed.
    pub fn of_rules(error: Error) -> Self {
        use StoreError::{Conflict, Corrupt, Internal};
        match &error {
            Error::Store(Conflict { .. } | Internal(_) | Corrupt { .. }) => Self::Row(of_rules(error)),
            Error::Store(reason) if reason.is_transient() => Self::Busy(error),
            _ => Self::Failed(error),
        }
    }
}

/// The result of a group.
#[derive(Debug)]
pub struct GroupResult<E> {
    /// The results of the rows, in order. It has fewer items than the group if there is a failure.
    pub rows: Vec<RowResult>,
    /// Why the rest of the rows was not imported.
    pub failure: Option<E>,
}

/// The result of one row.
#[derive(Clone, Debug)]
pub struct RowResult {
    /// The line on which the row begins, counted from 1.
    pub line: u64,
    /// The line on which the last row of the record begins.
    pub last_line: u64,
    /// The effect of the row, or what is wrong with it.
    pub result: Result<ImportedRow, RowProblem>,
    /// In a dry run, the line of an earlier row that would add the record that this row is about. Its id is that of no record:
    /// what the row added was rolled back.
    pub added_by: Option<u64>,
}

/// How many rows there were, and what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All rows that were read.
    pub rows: u64,
    /// Rows that are new records.
    pub added: u64,
    /// Rows whose records exist and agree with them.
    #[serde(rename = "there_already")]
    pub unchanged: u64,
    /// Rows whose records were updated.
    pub updated: u64,
    /// Rows that were refused.
    pub refused: u64,
    /// Rows of empty cells, and blank lines. They are not among `rows`.
    pub blank: u64,
}

impl Counts {
    /// Counts a row. Returns its problem if it was refused. `update` follows on what differs in a contact: how to update it.
    pub fn add(&mut self, kind: ImportKind, row: RowResult, update: &str) -> Option<RowProblem> {
        self.rows += 1;
        let problem = match row.result {
            Ok(ImportedRow { result: RowOutcome::Added, .. }) => {
                self.added += 1;
                return None;
            }
            Ok(ImportedRow { result: RowOutcome::ThereAlready, .. }) => {
                self.unchanged += 1;
                return None;
            }
            Ok(ImportedRow { result: RowOutcome::Updated, .. }) => {
                self.updated += 1;
                return None;
            }
            Ok(ImportedRow { problem: Some(problem), .. }) => {
                let problem = reported(problem);
                row.added_by.map_or(problem.clone(), |line| by_line(problem, line))
            }
            Ok(ImportedRow { existing_id, fields, .. }) => {
                differs(kind, existing_id.unwrap_or_default(), row.added_by, &fields, update)
            }
            Err(problem) => problem,
        };
        self.refused += 1;
        Some(problem)
    }
}

/// The results of valid rows, and why there are fewer results than rows.
type ImportedRows<E> = (Vec<Result<ImportedRow, RowProblem>>, Option<E>);

/// Imports a group in one transaction. `import` is what all groups have in common: the import without its rows. If a row makes
/// the transaction fail, imports each row in a transaction of its own, so that only that row is refused.
pub async fn import_group<S: Service>(service: &S, import: &ImportCreate, group: Group) -> GroupResult<S::Error> {
    let is_dry = import.dry_run == Some(true);
    let (mut valid, mut lines) = (Vec::new(), Vec::with_capacity(group.rows.len()));
    for row in group.rows {
        let keys = row.parsed.as_ref().ok().filter(|_| is_dry).map(keys).unwrap_or_default();
        lines.push(([row.line, row.last_line], keys, row.parsed.map(|row| valid.push(row)).err()));
    }
    let (results, failure) = import_valid(service, import, valid).await;
    let mut imported = results.into_iter();
    let mut rows = Vec::with_capacity(lines.len());
    let mut added: HashMap<String, u64> = HashMap::new();
    for ([line, last_line], keys, problem) in lines {
        let Some(result) = problem.map(Err).or_else(|| imported.next()) else { break };
        let is_added = result.as_ref().is_ok_and(|row| row.result == RowOutcome::Added);
        let added_by = keys.iter().find_map(|key| added.get(key)).copied().filter(|_| !is_added);
        if is_added {
            added.extend(keys.into_iter().map(|key| (key, line)));
        }
        rows.push(RowResult { line, last_line, result, added_by });
    }
    GroupResult { rows, failure }
}

async fn import_valid<S: Service>(service: &S, import: &ImportCreate, rows: Vec<ImportRow>) -> ImportedRows<S::Error> {
    if rows.is_empty() {
        return (Vec::new(), None);
    }
    let mut all = with_rows(import, rows);
    match import_together(service, &all).await {
        Ok(results) => (results.into_iter().map(Ok).collect(), None),
        Err(ServiceError::Row(_)) => import_one_by_one(service, import, std::mem::take(&mut all.rows.0)).await,
        Err(ServiceError::Busy(error) | ServiceError::Failed(error)) => (Vec::new(), Some(error)),
    }
}

async fn import_one_by_one<S: Service>(
    service: &S,
    import: &ImportCreate,
    rows: Vec<ImportRow>,
) -> ImportedRows<S::Error> {
    let mut results = Vec::with_capacity(rows.len());
    for row in rows {
        match import_together(service, &with_rows(import, vec![row])).await {
            Ok(result) => results.extend(result.into_iter().map(Ok)),
            Err(ServiceError::Row(problem)) => results.push(Err(problem)),
            Err(ServiceError::Busy(error) | ServiceError::Failed(error)) => return (results, Some(error)),
        }
    }
    (results, None)
}

fn with_rows(import: &ImportCreate, rows: Vec<ImportRow>) -> ImportCreate {
    ImportCreate { rows: ImportRows(rows), ..import.clone() }
}

/// Imports rows in one transaction, and retries it while the database is busy.
async fn import_together<S: Service>(
    service: &S,
    import: &ImportCreate,
) -> Result<Vec<ImportedRow>, ServiceError<S::Error>> {
    let mut attempts = 1;
    loop {
        match service.import(import.clone()).await {
            Err(ServiceError::Busy(_)) if attempts < MAX_ATTEMPTS => attempts += 1,
            result => return result,
        }
    }
}

/// Returns what a row can be recognised by: the fields that two records cannot have in common.
fn keys(row: &ImportRow) -> Vec<String> {
    let json = serde_json::to_value(&row.record).unwrap_or_default();
    let key = |name: &str| json[name].as_str().map(|value| format!("{name} {}", value.to_lowercase()));
    ["id", "email", "invoice_number"].into_iter().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use svc_core::imports::ImportRecord;
    use svc_core::input::Input as _;
    use svc_core::resources::contacts::Contact;

    use super::*;
    use crate::problems::too_long;
    use crate::rows::Row;

    /// A service whose next requests fail with the given errors. Later requests succeed.
    struct FailingService(Mutex<VecDeque<Option<StoreError>>>);

    #[async_trait]
    impl Service for FailingService {
        type Error = Error;

        async fn import(&self, import: ImportCreate) -> Result<Vec<ImportedRow>, ServiceError<Error>> {
            let added = |_| ImportedRow::from(Ok(svc_core::imports::Imported::Added));
            match self.0.lock().unwrap().pop_front().flatten() {
                Some(error) => Err(ServiceError::of_rules(error.into())),
                None => Ok(import.rows.0.iter().map(added).collect()),
            }
        }
    }

    /// Imports four rows, the second of which was refused by the parser. Returns the results by line, and whether the import
    /// cannot go on.
    async fn import(failures: &[Option<StoreError>]) -> (String, bool) {
        let row = |line: u64| {
            let body = format!(r#"{{"email": "p{line}@example.com"}}"#);
            let input = svc_core::imports::ContactImport::from_body(body.as_bytes()).unwrap();
            let record = ImportRecord::of::<Contact>(&input);
            Row { line, last_line: line, parsed: Ok(ImportRow { record, duplicates_before: None }) }
        };
        let refused = Row { line: 2, last_line: 2, parsed: Err(too_long("x")) };
        let service = FailingService(Mutex::new(failures.iter().cloned().collect()));
        let group = Group { rows: vec![row(1), refused, row(3), row(4)], ..Group::default() };
        let done = import_group(&service, &ImportCreate::contacts([]), group).await;
        let results = done.rows.iter().map(|row| match &row.result {
            Ok(imported) if imported.result == RowOutcome::Added => format!("{}+", row.line),
            _ => format!("{}-", row.line),
        });
        (results.collect::<Vec<_>>().join(" "), done.failure.is_some())
    }

    #[tokio::test]
    async fn a_group_that_fails_is_imported_row_by_row() {
        let conflict = || Some(StoreError::Conflict { constraint: "x".to_owned() });
        let busy = || Some(StoreError::Unavailable("locked".to_owned()));
        for (failures, want, has_failed) in [
            (vec![], "1+ 2- 3+ 4+", false),
            (vec![conflict(), None, conflict()], "1+ 2- 3- 4+", false),
            (vec![busy(), busy()], "1+ 2- 3+ 4+", false),
            (vec![busy(), busy(), busy()], "", true),
            (vec![conflict(), None, busy(), busy(), busy()], "1+ 2-", true),
        ] {
            assert_eq!(import(&failures).await, (want.to_owned(), has_failed), "{failures:?}");
        }
    }
}
