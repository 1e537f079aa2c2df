//! The context of every command: the global options, and the service or database that they name, opened when a command asks
//! for it.

use std::sync::Arc;

use svc_core::accounts::actor::acting;
use svc_core::env::Env;
use svc_core::store::Store;
use svc_store::{OpenError, Options};

use crate::backend::{Backend, BackendArgs};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};
use crate::service::{Service, local_only};
use crate::{clock_guard, confirm, user};

/// The global options.
pub(crate) struct Session {
    pub(crate) backend: BackendArgs,
    /// Has the event kinds, and the hosts that webhooks may have.
    pub(crate) env: Env,
    pub(crate) output: Output,
    /// Whether commands that cannot be undone ask first.
    pub(crate) asks_first: bool,
    /// Whether to write under a clock that is far ahead.
    pub(crate) allow_clock_jump: bool,
}

impl Session {
    /// Opens the service that the command works on: the database, or the way to the server.
    pub(crate) async fn service(&self) -> Result<Service, Failure> {
        self.service_in(self.env.clone()).await
    }

    /// Opens the service in an environment of the command's own.
    pub(crate) async fn service_in(&self, env: Env) -> Result<Service, Failure> {
        match self.platform_backend()? {
            Backend::Server(server) => Ok(Service::of_server(server.client(self.backend.ca_file.as_deref())?, env)),
            Backend::Database(url) => Ok(Service::of_database(self.database_at(url, env).open(false).await?)),
        }
    }

    /// Returns the database that the command works on.
    ///
    /// # Errors
    /// The options name a server, where there is no such command.
    pub(crate) fn database(&self, command: &str) -> Result<Database, Failure> {
        match self.platform_backend()? {
            Backend::Server(_) => Err(local_only(command)),
            Backend::Database(url) => Ok(self.database_at(url, self.env.clone())),
        }
    }

    fn platform_backend(&self) -> Result<Backend, Failure> {
        let backend = self.backend.backend(false)?;
        if let Backend::Server(server) = &backend {
            server.require_platform_key()?;
        }
        Ok(backend)
    }

    fn database_at(&self, url: String, env: Env) -> Database {
        if let Some(path) = svc_store::exposed_key_file(&url) {
            let path = path.display();
            output::warning(&format!(
                "Other users may read or change the secret key in {path}; run `chmod 600 {path}`."
            ));
        }
        Database { url, env, allow_clock_jump: self.allow_clock_jump }
    }

    /// Returns whether results are texts for people, who see names in place of ids.
    pub(crate) fn is_for_people(&self) -> bool {
        self.output == Output::Text
    }

    /// Returns whether results are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Refuses `--output csv`, which commands that print line by line do not have.
    pub(crate) fn refuse_csv(&self, reason: &str) -> Result<(), Failure> {
        match self.output {
            Output::Csv => Err(Failure::new(Exit::Usage, format!("--output csv does not apply to {reason}."))),
            _ => Ok(()),
        }
    }

    /// Asks for confirmation of what cannot be undone.
    ///
    /// # Errors
    /// The person declined, or the response could not be read.
    pub(crate) fn confirm(&self, question: &str) -> Result<(), Failure> {
        if self.asks_first { confirm::ask(question) } else { Ok(()) }
    }
}

/// A database as the options describe it.
pub(crate) struct Database {
    pub(crate) url: String,
    env: Env,
    allow_clock_jump: bool,
}

impl Database {
    /// Opens the database. The audit log records changes as made by the current user. With `create_missing`, a SQLite file
    /// that is missing is created.
    pub(crate) async fn open(&self, create_missing: bool) -> Result<Arc<dyn Store>, OpenError> {
        // A command runs its transactions one after the other, and servers need the connections of PostgreSQL.
        let options = Options {
            create_missing,
            read_connections: 1,
            write_connections: 1,
            is_short_lived: true,
            ..Options::default()
        };
        let store = acting(svc_store::open_with(&self.url, self.env.clone(), options).await?, user::actor());
        Ok(match svc_store::sqlite_file(&self.url) {
            Some(file) if !self.allow_clock_jump => clock_guard::guarded(store, file),
            _ => store,
        })
    }
}
