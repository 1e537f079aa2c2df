//! Imports rows in groups, one transaction each.

use std::sync::{Arc, Mutex};

use svc_core::accounts::tenants;
use svc_core::error::{Error, StoreError};
use svc_core::imports::{self, Import, ImportOptions, Imported};
use svc_core::store::Store;
use svc_core::sync::lock;
use svc_core::values::TenantId;

use super::refusals::Refusal;
use super::rows::{Group, ParsedRow};
use crate::exit::Failure;

/// How often a transaction is attempted while the database is busy. Each attempt waits as long as any command does.
const MAX_ATTEMPTS: u32 = 3;

/// The destination of the rows.
pub(super) struct Groups<'s> {
    pub(super) store: &'s dyn Store,
    pub(super) tenant: TenantId,
    pub(super) options: ImportOptions,
    pub(super) dry_run: bool,
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
    pub(super) result: Result<Imported, Refusal>,
}

/// The results of the valid rows of a group.
struct ImportedRows {
    results: Vec<Result<Imported, Error>>,
    /// Why there are fewer results than rows.
    failure: Option<Failure>,
}

impl Groups<'_> {
    /// Imports a group in one transaction. If a row makes the transaction fail, imports each row in a transaction of
    /// its own, so that only that row is refused.
    pub(super) async fn import<R: Import>(&self, group: Group<R>) -> GroupResult {
        let valid: Vec<ParsedRow<R>> = group.rows.iter().filter_map(|row| row.parsed.clone().ok()).collect();
        let count = valid.len();
        let ImportedRows { results, failure } = match self.import_together::<R>(valid.clone()).await {
            Ok(results) => ImportedRows { results, failure: None },
            Err(error) if is_caused_by_a_row(&error) => self.import_one_by_one::<R>(valid).await,
            Err(error) => ImportedRows { results: Vec::new(), failure: Some(interrupted(error)) },
        };
        let is_incomplete = results.len() < count;
        let mut imported = results.into_iter();
        let mut rows = Vec::with_capacity(group.rows.len());
        for row in group.rows {
            match row.parsed {
                Err(refusal) => rows.push(RowResult { line: row.line, result: Err(refusal) }),
                Ok(_) => match imported.next() {
                    Some(result) => rows.push(RowResult { line: row.line, result: result.map_err(Refusal::from) }),
                    None if is_incomplete => break,
                    None => {}
                },
            }
        }
        GroupResult { rows, failure }
    }

    async fn import_one_by_one<R: Import>(&self, rows: Vec<ParsedRow<R>>) -> ImportedRows {
        let mut results = Vec::with_capacity(rows.len());
        for row in rows {
            match self.import_together::<R>(vec![row]).await {
                Ok(mut result) => results.extend(result.pop()),
                Err(error) if is_caused_by_a_row(&error) => results.push(Err(error)),
                Err(error) => return ImportedRows { results, failure: Some(interrupted(error)) },
            }
        }
        ImportedRows { results, failure: None }
    }

    /// Imports rows in one transaction, and retries it while the database is busy.
    async fn import_together<R: Import>(&self, rows: Vec<ParsedRow<R>>) -> Result<Vec<Result<Imported, Error>>, Error> {
        let rows = Arc::new(rows);
        let mut attempts = 1;
        loop {
            match self.import_once::<R>(Arc::clone(&rows)).await {
                Err(Error::Store(error)) if error.is_transient() && attempts < MAX_ATTEMPTS => attempts += 1,
                result => return result,
            }
        }
    }

    async fn import_once<R: Import>(
        &self,
        rows: Arc<Vec<ParsedRow<R>>>,
    ) -> Result<Vec<Result<Imported, Error>>, Error> {
        let Self { store, tenant, options, dry_run } = *self;
        // The transaction of a dry run fails at its end, so that nothing is committed. Only these results remain.
        let dry_run_results = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&dry_run_results);
        let transaction = store.write("import", move |tx| {
            let (rows, slot) = (Arc::clone(&rows), Arc::clone(&slot));
            Box::pin(async move {
                let tenant = tenants::get(tx, tenant).await?;
                let mut results = Vec::with_capacity(rows.len());
                for row in rows.iter() {
                    match R::put(tx, &tenant, row.input.clone(), row.duplicates_before, options).await {
                        Err(Error::Store(error)) => return Err(error.into()),
                        result => results.push(result),
                    }
                }
                if dry_run {
                    *lock(&slot) = Some(results);
                    return Err(Error::NotAllowed("This is a dry run.".to_owned()));
                }
                if !options.events {
                    imports::record_in_audit_log::<R>(tx, &tenant, &results).await?;
                }
                Ok(results)
            })
        });
        let result = transaction.await;
        let dry_run_results = lock(&dry_run_results).take();
        match (result, dry_run_results) {
            (Err(Error::NotAllowed(_)), Some(results)) => Ok(results),
            (result, _) => result,
        }
    }
}

/// Returns whether a transaction failed because of a row in it, and not because of the database.
fn is_caused_by_a_row(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::Conflict { .. } | StoreError::Internal(_) | StoreError::Corrupt { .. }))
}

/// Returns the failure of an import that cannot continue.
fn interrupted(error: Error) -> Failure {
    let failure = Failure::from(error);
    let again = "Run the same command again to continue; rows that were added are not added twice.";
    Failure::new(failure.exit(), format!("{}. {again}", failure.message().trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use async_trait::async_trait;
    use svc_core::accounts::tenants::TenantCreate;
    use svc_core::env::Env;
    use svc_core::input::Input as _;
    use svc_core::resources::contacts::Contact;
    use svc_core::store::memory::MemoryStore;
    use svc_core::store::{Access, StoreWrapper, UnitOfWork};

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
        let store = FailingStore { inner: MemoryStore::new(Env::system()), errors: Mutex::default() };
        let store_dyn: &dyn Store = &store;
        let tenant =
            store_dyn.write("test", |tx| Box::pin(tenants::create(tx, TenantCreate::named("X")))).await.unwrap();
        store.errors.lock().unwrap().extend(failures.iter().cloned());
        let row = |line: u64| {
            let body = format!(r#"{{"email": "p{line}@example.com"}}"#);
            let input = <Contact as Import>::Row::from_body(body.as_bytes()).unwrap();
            Row { line, parsed: Ok(ParsedRow { input, duplicates_before: 0 }) }
        };
        let refused = Row { line: 2, parsed: Err(Refusal::too_long("x")) };
        let options = ImportOptions { events: true, update: false };
        let groups = Groups { store: store_dyn, tenant: tenant.id, options, dry_run: false };
        let done = groups.import::<Contact>(Group { rows: vec![row(1), refused, row(3), row(4)], end: 0 }).await;
        let results = done.rows.iter().map(|row| match row.result {
            Ok(_) => format!("{}+", row.line),
            Err(_) => format!("{}-", row.line),
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
