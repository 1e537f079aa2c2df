//! The service that commands work on: a database beside the command, or a server elsewhere.
//!
//! Commands are written once, over the operations of the platform API ([`svc_core::platform::operations`]). On a database,
//! an operation runs in a transaction of the store, without a key. On a server, the typed client calls it with a platform
//! key.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use svc_client::{ApiError, Platform, TransportErrorKind};
use svc_core::Svc;
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::find::{self, FindText, SearchResults};
use svc_core::input::{Input, ToBody};
use svc_core::operation::{Listing, Operation, Target};
use svc_core::pages::{Limit, MAX_LIMIT, Page};
use svc_core::platform::operations::{FIND_RECORDS, LIST_ACCOUNTS, Records};
use svc_core::platform::{Account, AccountListParams, FieldProblem, LogParams, RowProblem};
use svc_core::resources::Resource as _;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::store::Store;
use svc_core::values::{EventKind, TenantId, Timestamp};
use uuid::Uuid;

use crate::exit::{Exit, Failure};

/// The highest number of pages of a list in a row that have no record. A page of deliveries can search 10,000 of them and find
/// none.
const MAX_EMPTY_PAGES: u32 = 50;

/// The highest number of contacts of a list whose names are asked of a server.
const MAX_NAMES: usize = 50;

/// The service that a command works on.
pub(crate) struct Service {
    connection: Connection,
    env: Env,
}

/// How the service is reached.
enum Connection {
    Database(Arc<dyn Store>),
    Server(Platform),
}

impl Service {
    /// Returns the service over a database.
    pub(crate) fn of_database(store: Arc<dyn Store>) -> Self {
        let env = store.env().clone();
        Self { connection: Connection::Database(store), env }
    }

    /// Returns the service of a server.
    pub(crate) fn of_server(platform: Platform, env: Env) -> Self {
        Self { connection: Connection::Server(platform), env }
    }

    /// Returns what contacts of an account are called. Those that there are not are left out.
    ///
    /// A database is read once. A server has no operation for several contacts, so that each takes a request: only the first
    /// [`MAX_NAMES`] are asked for, and people see the ids of the others. A server does not show deleted contacts.
    pub(crate) async fn contact_names(
        &self,
        account: TenantId,
        contacts: BTreeSet<ContactId>,
    ) -> CallResult<BTreeMap<ContactId, String>> {
        if let Connection::Database(store) = &self.connection {
            let names = store.read("contact.names", (account, contacts), async |tx, (account, contacts)| {
                let contacts: Vec<ContactId> = contacts.iter().copied().collect();
                let found = Contact::repository(tx).get_many(*account, &contacts).await?;
                Ok(found.iter().map(|contact| (contact.id, contact.display_name())).collect())
            });
            return names.await.map_err(CallError::Rules);
        }
        let mut names = BTreeMap::new();
        for id in contacts.into_iter().take(MAX_NAMES) {
            match self.call(&Records::<Contact>::GET, (account, id), ()).await {
                Ok(contact) => drop(names.insert(id, contact.display_name())),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(names)
    }

    /// Brings the index of searches up to date, beside a database, as no server may run there.
    pub(crate) async fn index(&self, account: TenantId) -> CallResult<()> {
        if let Connection::Database(store) = &self.connection {
            let index = || store.write("search.index", account, async |tx, &tenant| find::index(tx, tenant).await);
            while !index().await.map_err(CallError::Rules)? {}
        }
        Ok(())
    }

    /// Finds records of an account by a text.
    pub(crate) async fn find(&self, account: TenantId, text: FindText) -> CallResult<SearchResults> {
        self.index(account).await?;
        self.call(&FIND_RECORDS, account, text).await
    }

    /// Returns the database.
    ///
    /// # Errors
    /// The service is a server. `command` is what cannot be done there.
    pub(crate) fn database(&self, command: &str) -> Result<&dyn Store, Failure> {
        match &self.connection {
            Connection::Database(store) => Ok(&**store),
            Connection::Server(_) => Err(local_only(command)),
        }
    }

    /// Returns the client of the server.
    ///
    /// # Errors
    /// The service is a database. `command` is what cannot be done there.
    pub(crate) fn platform(&self, command: &str) -> Result<&Platform, Failure> {
        match &self.connection {
            Connection::Server(platform) => Ok(platform),
            Connection::Database(_) => {
                let reason = format!(
                    "`{command}` sends requests to a server; name one with --profile, or with --server and the platform key \
                     in SVC_PLATFORM_KEY."
                );
                Err(Failure::new(Exit::Usage, reason))
            }
        }
    }

    /// Returns whether the service is a server elsewhere, which has rate limits.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.connection, Connection::Server(_))
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.env.now()
    }

    /// Returns whether the service is known to have an event kind.
    pub(crate) fn knows(&self, kind: EventKind) -> bool {
        self.env.event_kinds.contains(kind)
    }

    /// Calls an operation.
    pub(crate) async fn call<K: Target, I, O>(
        &self,
        operation: &Operation<K, I, O>,
        target: K,
        input: I,
    ) -> CallResult<O>
    where
        I: Input + ToBody + Clone,
        O: DeserializeOwned + Send,
    {
        match &self.connection {
            Connection::Database(store) => {
                Svc::new(Arc::clone(store)).call(operation, target, input).await.map_err(|error| match error {
                    // An account is named as any record is.
                    Error::UnknownTenant(_) => CallError::Rules(Error::NotFound),
                    error => CallError::Rules(error),
                })
            }
            Connection::Server(platform) => Ok(platform.call(operation, target, &input).await?),
        }
    }

    /// Reads a list page by page, each with its `query`, until it has `wanted` records or ends, or until
    /// [`MAX_EMPTY_PAGES`] in a row had no record. Returns the records, which may be some more, and whether there may be
    /// others.
    pub(crate) async fn list<K: Target, I, T>(
        &self,
        operation: &Operation<K, I, Page<T>>,
        target: K,
        wanted: u32,
        query: impl Fn(Option<Limit>, Option<Uuid>) -> I,
    ) -> CallResult<(Vec<T>, bool)>
    where
        I: Input + ToBody + Clone,
        T: DeserializeOwned + Send + 'static,
    {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let (mut records, mut cursor, mut empty) = (Vec::new(), None, 0);
        loop {
            let limit = u32::try_from(wanted - records.len()).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
            let page = self.call(operation, target, query(Limit::new(limit), cursor)).await?;
            empty = if page.data.is_empty() { empty + 1 } else { 0 };
            records.extend(page.data);
            cursor = page.next_cursor;
            if cursor.is_none() || records.len() >= wanted || empty == MAX_EMPTY_PAGES {
                return Ok((records, cursor.is_some()));
            }
        }
    }

    /// Reads the newest entries of a log of an account that match a filter, as [`list`](Self::list) does.
    pub(crate) async fn newest<F, T>(
        &self,
        operation: &Operation<TenantId, Listing<LogParams, F>, Page<T>>,
        account: TenantId,
        filter: &F,
        wanted: u32,
    ) -> CallResult<(Vec<T>, bool)>
    where
        F: Clone,
        Listing<LogParams, F>: Input + ToBody + Clone,
        T: DeserializeOwned + Send + 'static,
    {
        let query = |limit, cursor: Option<Uuid>| {
            let page = LogParams { limit, cursor: cursor.map(Into::into) };
            Listing { page, filter: filter.clone() }
        };
        self.list(operation, account, wanted, query).await
    }

    /// Returns the accounts that follow one, the oldest first, and whether there are more. Sandboxes are left out, or among them.
    pub(crate) async fn accounts(
        &self,
        after: Option<TenantId>,
        wanted: u32,
        sandboxes: bool,
    ) -> CallResult<(Vec<Account>, bool)> {
        let (after, sandboxes) = (after.map(|after| after.0), sandboxes.then_some(true));
        let query = |limit, cursor: Option<Uuid>| AccountListParams { limit, cursor: cursor.or(after), sandboxes };
        self.list(&LIST_ACCOUNTS, (), wanted, query).await
    }
}

/// Shortens a list to its limit. Returns whether it was longer.
pub(crate) fn cut<T>(list: &mut Vec<T>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_longer = list.len() > limit;
    list.truncate(limit);
    is_longer
}

/// Returns the failure of a command that needs a database.
pub(crate) fn local_only(command: &str) -> Failure {
    let reason = format!(
        "`{command}` works on a database only; run it beside the database, without --server and --profile (SVC_SERVER, \
         SVC_PROFILE)."
    );
    Failure::new(Exit::Usage, reason)
}

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The rules refused it, or the database failed.
    Rules(Error),
    /// A refusal that only a server can give, or a server that could not be reached.
    Server(svc_client::Error),
}

impl CallError {
    /// Returns whether there is no such record or account.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Rules(Error::NotFound))
    }

    /// Returns whether the platform key may not do it.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Server(error) if error.status() == Some(403))
    }
}

/// The result of a call.
pub(crate) type CallResult<T> = Result<T, CallError>;

impl From<svc_client::Error> for CallError {
    fn from(error: svc_client::Error) -> Self {
        match error.api().and_then(of_api) {
            Some(error) => Self::Rules(error),
            None => Self::Server(error),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        use svc_client::Error;
        match error {
            CallError::Rules(error) => error.into(),
            CallError::Server(Error::Api(error)) => of_server(&error),
            CallError::Server(Error::Transport(error)) => unreachable(&error),
            CallError::Server(Error::UnexpectedResponse(error)) => {
                let reason = format!("This is not the platform API of a server: {error}. Check the URL of --server.");
                Self::new(Exit::Failed, reason)
            }
            CallError::Server(Error::InvalidArgument(reason)) => Self::new(Exit::Usage, format!("{reason}.")),
            CallError::Server(error) => Self::new(Exit::Failed, error.to_string()),
        }
    }
}

/// Returns the error of the rules that a server reports, so that it is worded as beside the database.
fn of_api(error: &ApiError) -> Option<Error> {
    let errors = error.errors.iter().map(|failing| FieldProblem {
        field: failing.field.clone(),
        code: failing.code.clone(),
        message: failing.message.clone(),
    });
    let problem = RowProblem {
        error: error.message.clone(),
        code: error.code.clone(),
        field: error.field.clone(),
        errors: errors.collect(),
        existing_id: error.existing_id,
    };
    problem.to_error()
}

/// Returns the failure of a request that the server did not take.
fn of_server(error: &ApiError) -> Failure {
    let id = error.request_id.as_ref().map(|id| format!(" The id of the request is {id}.")).unwrap_or_default();
    match (error.status, error.code.as_str()) {
        (404 | 405, _) => {
            let reason = "The server has no such operation of the platform API. Give the URL of its platform listener \
                          (`svc-server --platform-listen`), and check that it is not older than this program.";
            Failure::new(Exit::Usage, reason)
        }
        (401, _) => {
            let reason = format!("The server does not take the platform key of SVC_PLATFORM_KEY: {}", error.message);
            Failure::new(Exit::Refused, reason)
        }
        (403, _) => Failure::new(Exit::Refused, error.message.clone()),
        (503, _) => Failure::new(Exit::Unreachable, format!("{}{id}", error.message)),
        _ => Failure::new(Exit::Failed, format!("{}{id}", error.message)),
    }
}

/// Returns the failure of a request without a response.
fn unreachable(error: &svc_client::TransportError) -> Failure {
    let mut reason = error.kind.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason.push_str(": ");
        reason.push_str(&cause.to_string());
        source = cause.source();
    }
    let hint = match error.kind {
        // The signature is bad if another authority has the name of the one that signed.
        TransportErrorKind::NotConnected if ["UnknownIssuer", "BadSignature"].iter().any(|it| reason.contains(it)) => {
            "Name the file with the certificate of its authority with --ca-file (SVC_CA_FILE)."
        }
        TransportErrorKind::NotConnected if reason.contains("certificate") => {
            "Check the URL, and the certificate that the server has there."
        }
        TransportErrorKind::NotConnected => "Check the URL, and that the server listens there with --platform-listen.",
        _ => "Whether a change was made is not known; look before you repeat the command.",
    };
    Failure::new(Exit::Unreachable, format!("The server cannot be reached: {reason}. {hint}"))
}
