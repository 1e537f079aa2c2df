//! Puts rows in, group by group.

use std::sync::{Arc, Mutex};

use svc_core::accounts::tenants;
use svc_core::error::{Error, StoreError};
use svc_core::imports::{self, Import, ImportOptions, Imported};
use svc_core::store::Store;
use svc_core::sync::lock;
use svc_core::values::TenantId;

use super::refusals::Refusal;
use super::rows::Group;
use crate::exit::Failure;

/// How often a group is tried while the database is busy; each time waits as long as any command does.
const TRIES: u32 = 3;

/// What a row says, and how many said the same before it.
type Said<R> = (<R as Import>::Row, u32);

/// Where groups of rows go.
pub(super) struct Groups<'s> {
    pub(super) store: &'s dyn Store,
    pub(super) tenant: TenantId,
    pub(super) options: ImportOptions,
    pub(super) dry_run: bool,
}

/// What came of a group.
pub(super) struct Done {
    /// Of each row, with its line.
    pub(super) results: Vec<(u64, Result<Imported, Refusal>)>,
    /// Why there are not as many as there were rows.
    pub(super) failure: Option<Failure>,
}

impl Groups<'_> {
    /// Puts a group in as one transaction; if that fails, each row as one of its own, so that the one which is to
    /// blame is found and the others go in.
    pub(super) async fn put<R: Import>(&self, group: Group<R>) -> Done {
        let said: Vec<Said<R>> = group.rows.iter().filter_map(|row| row.row.clone().ok()).collect();
        let count = said.len();
        let (mut results, failure) = match self.put_together::<R>(said.clone()).await {
            Ok(results) => (results, None),
            Err(error) if is_about_a_row(&error) => self.put_singly::<R>(said).await,
            Err(error) => (Vec::new(), Some(ended(error))),
        };
        let failed = results.len() < count;
        let mut puts = results.drain(..);
        let mut each = Vec::with_capacity(group.rows.len());
        for row in group.rows {
            match row.row {
                Err(refusal) => each.push((row.line, Err(refusal))),
                Ok(_) => match puts.next() {
                    Some(result) => each.push((row.line, result.map_err(Refusal::from))),
                    None if failed => break,
                    None => {}
                },
            }
        }
        Done { results: each, failure }
    }

    async fn put_singly<R: Import>(&self, said: Vec<Said<R>>) -> (Vec<Result<Imported, Error>>, Option<Failure>) {
        let mut results = Vec::with_capacity(said.len());
        for row in said {
            match self.put_together::<R>(vec![row]).await {
                Ok(mut result) => results.extend(result.pop()),
                Err(error) if is_about_a_row(&error) => results.push(Err(error)),
                Err(error) => return (results, Some(ended(error))),
            }
        }
        (results, None)
    }

    async fn put_together<R: Import>(&self, said: Vec<Said<R>>) -> Result<Vec<Result<Imported, Error>>, Error> {
        let said = Arc::new(said);
        let mut tries = 1;
        loop {
            match self.put_once::<R>(Arc::clone(&said)).await {
                Err(Error::Store(error)) if error.is_transient() && tries < TRIES => tries += 1,
                done => return done,
            }
        }
    }

    async fn put_once<R: Import>(&self, said: Arc<Vec<Said<R>>>) -> Result<Vec<Result<Imported, Error>>, Error> {
        let Self { store, tenant, options, dry_run } = *self;
        // Of a dry run only this stays: its transaction fails at its end, and so leaves nothing.
        let tried = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&tried);
        let done = store.write("import", move |tx| {
            let (said, slot) = (Arc::clone(&said), Arc::clone(&slot));
            Box::pin(async move {
                let tenant = tenants::get(tx, tenant).await?;
                let mut results = Vec::with_capacity(said.len());
                for (row, before) in said.iter() {
                    match R::put(tx, &tenant, row.clone(), *before, options).await {
                        Err(Error::Store(error)) => return Err(error.into()),
                        result => results.push(result),
                    }
                }
                if dry_run {
                    *lock(&slot) = Some(results);
                    return Err(Error::NotAllowed("It was a dry run.".to_owned()));
                }
                if !options.events {
                    imports::note::<R>(tx, &tenant, &results).await?;
                }
                Ok(results)
            })
        });
        let done = done.await;
        let tried = lock(&tried).take();
        match (done, tried) {
            (Err(Error::NotAllowed(_)), Some(results)) => Ok(results),
            (done, _) => done,
        }
    }
}

/// Whether a transaction failed for what its rows are, not for the state of the database.
fn is_about_a_row(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::Conflict { .. } | StoreError::Internal(_) | StoreError::Corrupt { .. }))
}

fn ended(error: Error) -> Failure {
    let failure = Failure::from(error);
    let again = "Run the same command again to go on: what is there is not added twice.";
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

    /// A store whose transactions fail as it is told, one after the other, and then no more.
    struct Failing(MemoryStore, Mutex<VecDeque<Option<StoreError>>>);

    #[async_trait]
    impl StoreWrapper for Failing {
        fn inner(&self) -> &dyn Store {
            &self.0
        }

        async fn run_wrapped(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
            let reason = self.1.lock().unwrap().pop_front().flatten();
            match reason {
                Some(reason) => Err(reason.into()),
                None => self.0.run(access, name, job).await,
            }
        }
    }

    /// What came of three rows, the second of which was refused before, and the exit code.
    async fn put(failures: &[Option<StoreError>]) -> (String, Option<Exit>) {
        let store = Failing(MemoryStore::new(Env::system()), Mutex::default());
        let store_dyn: &dyn Store = &store;
        let tenant =
            store_dyn.write("test", |tx| Box::pin(tenants::create(tx, TenantCreate::named("X")))).await.unwrap();
        store.1.lock().unwrap().extend(failures.iter().cloned());
        let row = |line: u64| {
            let body = format!(r#"{{"email": "p{line}@example.com"}}"#);
            let row = <Contact as Import>::Row::from_body(body.as_bytes()).unwrap();
            Row { line, row: Ok((row, 0)) }
        };
        let refused = Row { line: 2, row: Err(Refusal::too_long("x")) };
        let options = ImportOptions { events: true, update: false };
        let groups = Groups { store: store_dyn, tenant: tenant.id, options, dry_run: false };
        let done = groups.put::<Contact>(Group { rows: vec![row(1), refused, row(3), row(4)], end: 0 }).await;
        let results = done.results.iter().map(|(line, result)| match result {
            Ok(_) => format!("{line}+"),
            Err(_) => format!("{line}-"),
        });
        (results.collect::<Vec<_>>().join(" "), done.failure.map(|failure| failure.exit()))
    }

    #[tokio::test]
    async fn a_group_that_fails_is_put_in_row_by_row() {
        let conflict = || Some(StoreError::Conflict { constraint: "x".to_owned() });
        let away = || Some(StoreError::Unavailable("locked".to_owned()));
        for (failures, want, exit) in [
            (vec![], "1+ 2- 3+ 4+", None),
            (vec![conflict(), None, conflict()], "1+ 2- 3- 4+", None),
            (vec![away(), away()], "1+ 2- 3+ 4+", None),
            (vec![away(), away(), away()], "", Some(Exit::Unreachable)),
            (vec![conflict(), None, away(), away(), away()], "1+ 2-", Some(Exit::Unreachable)),
        ] {
            assert_eq!(put(&failures).await, (want.to_owned(), exit), "{failures:?}");
        }
    }
}
