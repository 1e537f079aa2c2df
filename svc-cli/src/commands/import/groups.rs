//! Imports rows in groups, one request each, which is one transaction.

use std::collections::HashMap;

use svc_core::error::{Error, StoreError};
use svc_core::imports::ImportRow;
use svc_core::platform::operations::IMPORT_RECORDS;
use svc_core::platform::{ImportCreate, ImportRows, ImportedRow, RowOutcome, RowProblem};
use svc_core::values::TenantId;

use super::refusals::by_call;
use super::rows::Group;
use crate::exit::Failure;
use crate::service::{CallError, CallResult, Service};

/// How often a transaction is attempted while the database is busy. Each attempt waits as long as any command does.
const MAX_ATTEMPTS: u32 = 3;

/// The destination of the rows.
pub(super) struct Groups<'s> {
    pub(super) service: &'s Service,
    pub(super) account: TenantId,
    /// The part that all groups have in common: the import without its rows.
    pub(super) import: ImportCreate,
}

/// The result of a group.
pub(super) struct GroupResult {
    /// The results of the rows, in order. It has fewer items than the group if there is a failure.
    pub(super) rows: Vec<RowResult>,
    /// Why the rest of the rows was not imported.
    pub(super) failure: Option<Failure>,
}

/// The result of one row.
pub(super) struct RowResult {
    /// The line on which the row begins, counted from 1.
    pub(super) line: u64,
    pub(super) result: Result<ImportedRow, RowProblem>,
    /// In a dry run, the line of an earlier row that would add the record that this row is about. Its id is that of no record:
    /// what the row added was rolled back.
    pub(super) added_by: Option<u64>,
}

/// The results of valid rows, and why there are fewer results than rows.
type ImportedRows = (Vec<Result<ImportedRow, RowProblem>>, Option<Failure>);

impl Groups<'_> {
    /// Imports a group in one transaction. If a row makes the transaction fail, imports each row in a transaction of
    /// its own, so that only that row is refused.
    pub(super) async fn import(&self, group: Group) -> GroupResult {
        let is_dry = self.import.dry_run == Some(true);
        let (mut valid, mut lines) = (Vec::new(), Vec::with_capacity(group.rows.len()));
        for row in group.rows {
            let keys = row.parsed.as_ref().ok().filter(|_| is_dry).map(keys).unwrap_or_default();
            lines.push((row.line, keys, row.parsed.map(|row| valid.push(row)).err()));
        }
        let (results, failure) = self.import_valid(valid).await;
        let mut imported = results.into_iter();
        let mut rows = Vec::with_capacity(lines.len());
        let mut added: HashMap<String, u64> = HashMap::new();
        for (line, keys, problem) in lines {
            let Some(result) = problem.map(Err).or_else(|| imported.next()) else { break };
            let is_added = result.as_ref().is_ok_and(|row| row.result == RowOutcome::Added);
            let added_by = keys.iter().find_map(|key| added.get(key)).copied().filter(|_| !is_added);
            if is_added {
                added.extend(keys.into_iter().map(|key| (key, line)));
            }
            rows.push(RowResult { line, result, added_by });
        }
        GroupResult { rows, failure }
    }

    async fn import_valid(&self, rows: Vec<ImportRow>) -> ImportedRows {
        if rows.is_empty() {
            return (Vec::new(), None);
        }
        let mut import = self.with(rows);
        match self.import_together(&import).await {
            Ok(results) => (results.into_iter().map(Ok).collect(), None),
            Err(error) if is_caused_by_a_row(&error) => {
                self.import_one_by_one(std::mem::take(&mut import.rows.0)).await
            }
            Err(error) => (Vec::new(), Some(interrupted(error))),
        }
    }

    async fn import_one_by_one(&self, rows: Vec<ImportRow>) -> ImportedRows {
        let mut results = Vec::with_capacity(rows.len());
        for row in rows {
            match self.import_together(&self.with(vec![row])).await {
                Ok(result) => results.extend(result.into_iter().map(Ok)),
                Err(error) if is_caused_by_a_row(&error) => results.push(Err(by_call(error))),
                Err(error) => return (results, Some(interrupted(error))),
            }
        }
        (results, None)
    }

    fn with(&self, rows: Vec<ImportRow>) -> ImportCreate {
        ImportCreate { rows: ImportRows(rows), ..self.import.clone() }
    }

    /// Imports rows in one transaction, and retries it while the database is busy. The client has retried what a server
    /// refused for now.
    async fn import_together(&self, import: &ImportCreate) -> CallResult<Vec<ImportedRow>> {
        let mut attempts = 1;
        loop {
            match self.service.call(&IMPORT_RECORDS, self.account, import.clone()).await {
                Err(error) if is_busy(&error) && attempts < MAX_ATTEMPTS => attempts += 1,
                result => return result.map(|report| report.rows),
            }
        }
    }
}

/// Returns what a row can be recognised by: the fields that two records cannot have in common.
fn keys(row: &ImportRow) -> Vec<String> {
    let json = serde_json::to_value(&row.record).unwrap_or_default();
    let key = |name: &str| json[name].as_str().map(|value| format!("{name} {}", value.to_lowercase()));
    ["id", "email", "invoice_number"].into_iter().filter_map(key).collect()
}

/// Returns whether the database is busy.
fn is_busy(error: &CallError) -> bool {
    matches!(error, CallError::Rules(Error::Store(error)) if error.is_transient())
}

/// Returns whether a transaction failed because of a row in it, and not because of the database. A server does not say why
/// it failed.
fn is_caused_by_a_row(error: &CallError) -> bool {
    use StoreError::{Conflict, Corrupt, Internal};
    match error {
        CallError::Rules(Error::Store(error)) => matches!(error, Conflict { .. } | Internal(_) | Corrupt { .. }),
        CallError::Rules(_) => false,
        CallError::Server(error) => error.status() == Some(500),
    }
}

/// Returns the failure of an import that cannot continue.
fn interrupted(error: CallError) -> Failure {
    let failure = Failure::from(error);
    let again = "Run the same command again to continue; rows that were added are not added twice.";
    Failure::new(failure.exit(), format!("{}. {again}", failure.message().trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::Env;
    use svc_core::imports::ImportRecord;
    use svc_core::input::Input as _;
    use svc_core::resources::contacts::Contact;
    use svc_core::store::memory::MemoryStore;
    use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};

    use super::super::refusals::too_long;
    use super::super::rows::Row;
    use super::*;
    use crate::exit::Exit;

    /// A store whose next transactions fail with the given errors. Later transactions succeed.
    struct FailingStore {
        inner: MemoryStore,
        errors: Mutex<VecDeque<Option<StoreError>>>,
    }

    #[async_trait]
    impl StoreWrapper for FailingStore {
        fn inner(&self) -> &dyn Store {
            &self.inner
        }

        async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
            let error = self.errors.lock().unwrap().pop_front().flatten();
            match error {
                Some(error) => Err(error.into()),
                None => self.inner.run(access, name, work).await,
            }
        }
    }

    /// Imports four rows, the second of which was refused by the parser. Returns the results by line, and the exit
    /// code.
    async fn import(failures: &[Option<StoreError>]) -> (String, Option<Exit>) {
        let store = Arc::new(FailingStore { inner: MemoryStore::new(Env::system()), errors: Mutex::default() });
        let service_store: Arc<dyn Store> = Arc::<FailingStore>::clone(&store);
        let created = service_store
            .write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("X")).await)
            .await
            .unwrap();
        store.errors.lock().unwrap().extend(failures.iter().cloned());
        let row = |line: u64| {
            let body = format!(r#"{{"email": "p{line}@example.com"}}"#);
            let input = svc_core::imports::ContactImport::from_body(body.as_bytes()).unwrap();
            let record = ImportRecord::of::<Contact>(&input);
            Row { line, parsed: Ok(ImportRow { record, duplicates_before: None }) }
        };
        let refused = Row { line: 2, parsed: Err(too_long("x")) };
        let service = Service::of_database(service_store);
        let groups = Groups { service: &service, account: created.id, import: ImportCreate::contacts([]) };
        let done = groups.import(Group { rows: vec![row(1), refused, row(3), row(4)], ..Group::default() }).await;
        let results = done.rows.iter().map(|row| match &row.result {
            Ok(imported) if imported.result == RowOutcome::Added => format!("{}+", row.line),
            _ => format!("{}-", row.line),
        });
        (results.collect::<Vec<_>>().join(" "), done.failure.map(|failure| failure.exit()))
    }

    #[tokio::test]
    async fn a_group_that_fails_is_imported_row_by_row() {
        let conflict = || Some(StoreError::Conflict { constraint: "x".to_owned() });
        let busy = || Some(StoreError::Unavailable("locked".to_owned()));
        for (failures, want, exit) in [
            (vec![], "1+ 2- 3+ 4+", None),
            (vec![conflict(), None, conflict()], "1+ 2- 3- 4+", None),
            (vec![busy(), busy()], "1+ 2- 3+ 4+", None),
            (vec![busy(), busy(), busy()], "", Some(Exit::Unreachable)),
            (vec![conflict(), None, busy(), busy(), busy()], "1+ 2-", Some(Exit::Unreachable)),
        ] {
            assert_eq!(import(&failures).await, (want.to_owned(), exit), "{failures:?}");
        }
    }
}
