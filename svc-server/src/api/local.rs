//! The platform API for a trusted caller in the same process, such as `svc` beside the database.
//!
//! It has the same table of operations and the same handlers, and no key: the caller may do everything. What protects a
//! service from its clients is left out: keys, rate limits, idempotency keys and the request log.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ETAG, IF_MATCH};
use http::{HeaderValue, Method, Request, Response};
use svc_core::accounts::limits::WriteRateLimits;
use svc_core::error::{Error, Issue};
use svc_core::store::{Store, Tx};
use svc_core::values::TenantId;
use uuid::Uuid;

use crate::api::change::Condition;
use crate::api::handlers::{OperationFn, ParsedRequest, RequestParts};
use crate::api::message;
use crate::api::platform;
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::router::{Route, Router};
use crate::api::routes::Version;

const VERSIONS: [Version; 1] = [Version::Platform];

/// The platform API over a store, for a caller in this process that may do everything.
///
/// Changes are recorded in the audit log as made by whoever the store names, see
/// [`acting`](svc_core::accounts::actor::acting).
pub struct LocalPlatform {
    store: Arc<dyn Store>,
    router: Router,
}

impl LocalPlatform {
    /// Creates the platform API over a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, router: Router::new(platform::operations(), &VERSIONS, &WriteRateLimits::default(), "") }
    }

    /// Responds to a request, whose path begins with `/platform/v1`.
    ///
    /// # Errors
    ///
    /// Returns the [`Error`] of the rules or of the store. What only a request over HTTP can do wrong, such as an unknown
    /// path, is a response.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        match self.respond(request).await {
            Ok(response) => Ok(rendered(response)),
            Err(Problem::Core(error)) => Err(error),
            Err(problem) => Ok(rendered(ApiResponse {
                status: problem.status(),
                body: problem.body(),
                ..ApiResponse::no_content()
            })),
        }
    }

    async fn respond(&self, request: Request<Bytes>) -> Result<ApiResponse, Problem> {
        let (parts, body) = request.into_parts();
        let Route::Operation { routed, account, id, version } = self.router.route(&parts)? else {
            return Err(self.router.not_found());
        };
        let account = account.map(str::parse::<TenantId>).transpose().map_err(|issue: Issue| issue.on("account_id"))?;
        let base = account.map_or_else(String::new, |account| format!("/accounts/{account}"));
        let query = parts.uri.query().unwrap_or_default();
        let event_kinds = &self.store.env().event_kinds;
        let request = RequestParts { id, query, body: &body, base: &format!("{}{base}", version.path()), event_kinds };
        let operation = &routed.operation;
        let ParsedRequest { operation: run, is_dry_run, .. } = (operation.parse)(&request)?;
        if parts.method == Method::GET {
            let read = self.store.read(operation.id, move |tx| Box::pin(in_account(tx, account, Arc::clone(&run))));
            return Ok(read.await?);
        }
        let condition = match operation.current {
            Some(parse) if parts.headers.contains_key(IF_MATCH) => {
                let current = parse(&RequestParts { body: &[], ..request })?.operation;
                Some(Condition { tags: message::tags(&parts.headers, IF_MATCH), current })
            }
            _ => None,
        };
        let change = LocalChange { account, run, condition: condition.map(Arc::new) };
        if is_dry_run {
            return Ok(self.store.dry_run(operation.id, move |tx| Box::pin(change.clone().run(tx))).await?);
        }
        Ok(self.store.write(operation.id, move |tx| Box::pin(change.clone().run(tx))).await?)
    }
}

/// A write with its `If-Match` condition.
#[derive(Clone)]
struct LocalChange {
    account: Option<TenantId>,
    run: OperationFn,
    condition: Option<Arc<Condition>>,
}

impl LocalChange {
    async fn run(self, tx: &mut dyn Tx) -> Result<ApiResponse, Error> {
        let Self { account, run, condition } = self;
        if let Some(account) = account {
            tx.lock_tenant(account).await?;
        }
        let Some(condition) = condition else { return in_account(tx, account, run).await };
        let current = in_account(tx, account, Arc::clone(&condition.current)).await?.etag;
        let response = in_account(tx, account, run).await?;
        let holds = current.is_none_or(|tag| condition.tags.iter().any(|it| it == "*" || *it == tag));
        if holds { Ok(response) } else { Err(Error::PreconditionFailed) }
    }
}

/// Runs an operation, if the account that it concerns exists.
async fn in_account(tx: &mut dyn Tx, account: Option<TenantId>, run: OperationFn) -> Result<ApiResponse, Error> {
    if let Some(id) = account
        && tx.tenant(id).await?.is_none()
    {
        return Err(Error::UnknownTenant(id));
    }
    run(tx, account.unwrap_or(TenantId(Uuid::nil()))).await
}

fn rendered(response: ApiResponse) -> Response<Bytes> {
    let mut rendered = Response::new(response.body);
    *rendered.status_mut() = response.status;
    if let Some(etag) = response.etag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        rendered.headers_mut().insert(ETAG, etag);
    }
    rendered
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::{Value, json};
    use svc_core::accounts::actor::{Actor, acting};
    use svc_core::env::Env;
    use svc_core::store::memory::MemoryStore;

    use super::*;

    async fn call(local: &LocalPlatform, method: &str, path: &str, body: Value) -> Result<(StatusCode, Value), Error> {
        let request = Request::builder().method(method).uri(format!("/platform/v1{path}"));
        let response = local.call(request.body(body.to_string().into()).unwrap()).await?;
        Ok((response.status(), serde_json::from_slice(response.body()).unwrap_or_default()))
    }

    #[tokio::test]
    async fn a_trusted_caller_does_everything_without_a_key() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::system()));
        let local = LocalPlatform::new(acting(store, Actor::Cli("ada".to_owned())));
        let (status, account) = call(&local, "POST", "/accounts", json!({ "name": "Harbour" })).await.unwrap();
        let path = format!("/accounts/{}", account["data"]["id"].as_str().unwrap());
        assert_eq!(status, StatusCode::CREATED);

        let contacts = format!("{path}/contacts");
        let contact = json!({ "email": "ada@example.com" });
        let (_, made) = call(&local, "POST", &contacts, contact.clone()).await.unwrap();
        let again = call(&local, "POST", &contacts, contact).await;
        let existing_id = serde_json::from_value(made["data"]["id"].clone()).unwrap();
        assert_eq!(again, Err(Error::EmailTaken { existing_id }), "the error of the rules comes back as it is");

        let (_, log) = call(&local, "GET", &format!("{path}/audit-log"), Value::Null).await.unwrap();
        let actors: Vec<&Value> = log["data"].as_array().unwrap().iter().map(|entry| &entry["actor"]).collect();
        assert_eq!(actors, ["cli:ada", "cli:ada"]);

        let unknown = call(&local, "GET", "/accounts/0195a3c8-8a00-7000-8000-0000000000ff/contacts", Value::Null).await;
        assert!(matches!(unknown, Err(Error::UnknownTenant(_))), "{unknown:?}");
        let (status, problem) = call(&local, "GET", "/nothing", Value::Null).await.unwrap();
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("route_not_found")));
    }

    #[tokio::test]
    async fn a_change_can_depend_on_the_version() {
        let local = LocalPlatform::new(Arc::new(MemoryStore::new(Env::system())));
        let (_, account) = call(&local, "POST", "/accounts", json!({ "name": "Harbour" })).await.unwrap();
        let path = format!("/platform/v1/accounts/{}", account["data"]["id"].as_str().unwrap());
        let got = local.call(Request::get(&path).body(Bytes::new()).unwrap()).await.unwrap();
        let rename = async |tag: &HeaderValue| {
            let request = Request::patch(&path).header(IF_MATCH, tag);
            local.call(request.body(r#"{"name": "Bay"}"#.into()).unwrap()).await.map(|response| response.status())
        };
        let etag = &got.headers()[ETAG];
        assert_eq!(rename(etag).await, Ok(StatusCode::OK));
        assert_eq!(rename(etag).await, Err(Error::PreconditionFailed));
    }
}
