//! The service that commands work on: a database beside the command, or a server elsewhere.
//!
//! Commands are written once, over the platform API. For a database, its operations run in this process, without a
//! connection and without a key. For a server, they go over HTTP with a platform key.

use std::error::Error as _;
use std::fmt::Display;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Method, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use svc_client::{AccountClient, ApiError, Exchange, ExchangeResult, Platform, TransportErrorKind};
use svc_core::env::Env;
use svc_core::error::{Error, FieldCode, Violation, Violations};
use svc_core::input::ToBody;
use svc_core::pages::{MAX_LIMIT, Page};
use svc_core::platform::{Account, FieldProblem, RowProblem};
use svc_core::store::Store;
use svc_core::values::{EventKind, EventKinds, TenantId, Timestamp};
use svc_server::LocalPlatform;
use uuid::Uuid;

use crate::exit::{Exit, Failure, OrNotFound};

/// A query string, as pairs.
pub(crate) type Query = Vec<(String, String)>;

/// The service that a command works on.
pub(crate) struct Service {
    platform: Platform,
    /// The database. `None` if the service is a server.
    store: Option<Arc<dyn Store>>,
    env: Env,
}

/// The platform API over the store of this process.
struct Local(LocalPlatform);

impl Exchange for Local {
    fn exchange(&self, request: Request<bytes::Bytes>) -> BoxFuture<'_, ExchangeResult> {
        Box::pin(async move { self.0.call(request).await.map_err(Into::into) })
    }
}

/// A response with one record.
#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

impl Service {
    /// Returns the service over a database.
    pub(crate) fn of_database(store: Arc<dyn Store>) -> Self {
        let env = store.env().clone();
        let platform = Platform::in_process(Local(LocalPlatform::new(Arc::clone(&store))));
        Self { platform, store: Some(store), env }
    }

    /// Returns the service of a server.
    pub(crate) fn of_server(platform: Platform, event_kinds: EventKinds) -> Self {
        let mut env = Env::system();
        env.event_kinds = event_kinds;
        Self { platform, store: None, env }
    }

    /// Returns the database.
    ///
    /// # Errors
    /// The service is a server. `command` is what cannot be done there.
    pub(crate) fn database(&self, command: &str) -> Result<&dyn Store, Failure> {
        self.store.as_deref().ok_or_else(|| local_only(command))
    }

    /// Returns whether the service is a server elsewhere, which has rate limits.
    pub(crate) fn is_server(&self) -> bool {
        self.store.is_none()
    }

    /// Returns the platform API.
    pub(crate) fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Returns an account.
    pub(crate) fn account(&self, id: TenantId) -> AccountClient {
        self.platform.account(id)
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.env.now()
    }

    /// Returns whether the service is known to have an event kind.
    pub(crate) fn knows(&self, kind: EventKind) -> bool {
        self.env.event_kinds.contains(kind)
    }

    /// Reads what a path has, the whole body of the response.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str, query: &[(String, String)]) -> CallResult<T> {
        Ok(self.platform.call(Method::GET, path, query, None).await?)
    }

    /// Returns the record at a path.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> CallResult<T> {
        self.read::<Data<T>>(path, &[]).await.map(|response| response.data)
    }

    /// Posts an input, and returns the record in the response.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, input: &impl ToBody) -> CallResult<T> {
        self.post_json(path, Some(input.to_body())).await
    }

    /// Makes a step of a record that takes no input, and returns the record.
    pub(crate) async fn step<T: DeserializeOwned>(&self, path: &str) -> CallResult<T> {
        self.post_json(path, None).await
    }

    /// Posts JSON, and returns the record in the response.
    pub(crate) async fn post_json<T: DeserializeOwned>(&self, path: &str, body: Option<Vec<u8>>) -> CallResult<T> {
        Ok(self.platform.call::<Data<T>>(Method::POST, path, &[], body).await?.data)
    }

    /// Posts an input, and returns the whole body of the response.
    pub(crate) async fn post_for<T: DeserializeOwned>(&self, path: &str, input: &impl ToBody) -> CallResult<T> {
        Ok(self.platform.call(Method::POST, path, &[], Some(input.to_body())).await?)
    }

    /// Changes the record at a path.
    pub(crate) async fn patch<T: DeserializeOwned>(&self, path: &str, change: &impl ToBody) -> CallResult<T> {
        Ok(self.platform.call::<Data<T>>(Method::PATCH, path, &[], Some(change.to_body())).await?.data)
    }

    /// Deletes the record at a path.
    pub(crate) async fn delete(&self, path: &str) -> CallResult<()> {
        Ok(self.platform.call(Method::DELETE, path, &[], None).await?)
    }

    /// Reads a list page by page, until it has `wanted` records or ends. Returns them, which may be some more, and whether
    /// there are others.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        filters: &[(String, String)],
        wanted: u32,
    ) -> CallResult<(Vec<T>, bool)> {
        self.list_after(path, filters, None, wanted).await
    }

    /// Returns the accounts that follow one, the oldest first, and whether there are more.
    pub(crate) async fn accounts(&self, after: Option<TenantId>, wanted: u32) -> CallResult<(Vec<Account>, bool)> {
        self.list_after("/accounts", &[], after.map(|after| after.0), wanted).await
    }

    async fn list_after<T: DeserializeOwned>(
        &self,
        path: &str,
        filters: &[(String, String)],
        mut cursor: Option<Uuid>,
        wanted: u32,
    ) -> CallResult<(Vec<T>, bool)> {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let mut records = Vec::new();
        loop {
            let rest = u32::try_from(wanted - records.len()).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
            let mut query = filters.to_vec();
            query.push(("limit".to_owned(), rest.to_string()));
            query.extend(cursor.map(|cursor| ("cursor".to_owned(), cursor.to_string())));
            let page: Page<T> = self.read(path, &query).await?;
            records.extend(page.data);
            cursor = page.next_cursor;
            if records.len() >= wanted || cursor.is_none() {
                return Ok((records, cursor.is_some()));
            }
        }
    }
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
    /// What only a server can refuse, or it could not be reached.
    Server(Failure),
}

impl CallError {
    /// Returns whether there is no such record or tenant.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Rules(Error::NotFound))
    }
}

/// The result of a call.
pub(crate) type CallResult<T> = Result<T, CallError>;

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rules(error) => error.into(),
            CallError::Server(failure) => failure,
        }
    }
}

impl<T> OrNotFound<T> for CallResult<T> {
    fn or_not_found(self, what: &str, id: impl Display, hint: &str) -> Result<T, Failure> {
        match self {
            Err(CallError::Rules(error)) => Err(error).or_not_found(what, id, hint),
            other => Ok(other?),
        }
    }
}

impl From<svc_client::Error> for CallError {
    fn from(error: svc_client::Error) -> Self {
        match error {
            svc_client::Error::Exchange(error) => match error.downcast::<Error>() {
                // An account is named as any record is.
                Ok(error) if matches!(*error, Error::UnknownTenant(_)) => Self::Rules(Error::NotFound),
                Ok(error) => Self::Rules(*error),
                Err(error) => Self::Server(Failure::new(Exit::Failed, error.to_string())),
            },
            svc_client::Error::Api(error) => of_api(*error),
            svc_client::Error::Transport(error) => Self::Server(unreachable(&error)),
            svc_client::Error::UnexpectedResponse(error) => {
                let reason = format!("This is not the platform API of a server: {error}. Check the URL of --server.");
                Self::Server(Failure::new(Exit::Failed, reason))
            }
            svc_client::Error::InvalidArgument(reason) => Self::Server(Failure::new(Exit::Usage, format!("{reason}."))),
            error => Self::Server(Failure::new(Exit::Failed, error.to_string())),
        }
    }
}

/// Returns the error of the rules that a server reports, so that it is worded as beside the database.
fn of_api(error: ApiError) -> CallError {
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
    rules_error(problem).map_or_else(|| CallError::Server(of_server(&error)), CallError::Rules)
}

/// Returns the error of the rules that a problem reports. `None` if it is none of the rules.
pub(crate) fn rules_error(problem: RowProblem) -> Option<Error> {
    let RowProblem { error: message, code, errors, existing_id, .. } = problem;
    Some(match code.as_str() {
        "not_found" => Error::NotFound,
        "empty_patch" => Error::EmptyPatch,
        "invalid_cursor" => Error::InvalidCursor,
        "precondition_failed" => Error::PreconditionFailed,
        "invalid_json" => Error::InvalidJson(message.into()),
        "not_allowed" | "limit_reached" => Error::NotAllowed(message),
        // Contacts are all that records refer to.
        "reference_not_found" => Error::ReferenceNotFound("contact_id"),
        "email_taken" => Error::EmailTaken { existing_id: existing_id? },
        "validation_failed" if !errors.is_empty() => {
            let violation = |failing: FieldProblem| {
                let code = FieldCode::from_text(&failing.code).unwrap_or(FieldCode::InvalidFormat);
                Violation::reported(failing.field, code, failing.message)
            };
            Error::Validation(errors.into_iter().map(violation).collect::<Violations>())
        }
        _ => return None,
    })
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
