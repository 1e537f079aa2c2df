//! What is between a request and its operation: the parts that are parsed, and what runs later in a transaction.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::error::Error;
use svc_core::input::Fields;
use svc_core::store::Tx;
use svc_core::values::{EventKinds, TenantId, Timestamp, WebhookUrl, parse_uuid};
use uuid::Uuid;

use crate::kernel::problem::Problem;
use crate::kernel::response::ApiResponse;

/// The parts of a request that a handler parses.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The `{id}` of the path, if it has one.
    pub id: Option<&'a str>,
    /// The query string as it was sent, empty when there is none.
    pub query: &'a str,
    /// The body, on POST and PATCH; empty otherwise.
    pub body: &'a [u8],
    /// The tags of `If-None-Match`, on GET; empty otherwise.
    pub if_none_match: &'a [String],
    /// The path in front of the paths of the operations, for `Location`, such as `/api/v1`.
    pub base: &'a str,
    /// The event kinds of the service, which a new subscription can name.
    pub event_kinds: &'a EventKinds,
}

/// A parsed request.
#[derive(Clone)]
pub struct ParsedRequest {
    /// Runs the operation.
    pub operation: OperationFn,
    /// A new webhook URL, whose host must be checked before the operation runs.
    pub webhook_url: Option<(&'static str, WebhookUrl)>,
    /// The highest number of records that the operation reads for its response. A write counts none.
    pub records: u32,
    /// Whether what the operation writes is rolled back, so that its response says only what it would have done.
    pub is_dry_run: bool,
}

/// Runs an operation for a tenant inside a transaction. Of the platform API, a few concern no tenant and get a nil id. The store may call it again to repeat the transaction.
pub type OperationFn =
    Arc<dyn for<'t> Fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<ApiResponse, Error>> + Send + Sync>;

/// Parses a request for an operation.
pub type ParseFn = Arc<dyn Fn(&RequestParts<'_>) -> Result<ParsedRequest, Problem> + Send + Sync>;

/// A response body with a single record.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Response")]
pub struct Data<T> {
    /// The record that the operation returns.
    pub data: T,
}

/// The response body of `GET /ping`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ping {
    /// Always true: the API key is valid.
    pub ok: bool,
    /// The id of the account that the API key belongs to.
    pub tenant_id: TenantId,
    /// The time of the server.
    pub timestamp: Timestamp,
}

impl RequestParts<'_> {
    pub(super) fn id(&self) -> Result<Uuid, Error> {
        parse_uuid(self.id.unwrap_or_default()).map_err(|issue| issue.on("id"))
    }

    fn query_pairs(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    /// Checks that there are no query parameters, which only lists have.
    pub(super) fn no_query(&self) -> Result<(), Problem> {
        match self.query_pairs().into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::UnknownParameter { name, meant: None }),
        }
    }

    /// Parses the query parameters, all of which `take` takes.
    pub(super) fn query<T>(&self, take: impl FnOnce(&mut Fields) -> Option<T>) -> Result<T, Problem> {
        let mut fields = Fields::from_query(self.query_pairs());
        let taken = take(&mut fields);
        if let Some(name) = fields.first_unknown() {
            return Err(Problem::UnknownParameter { name: name.to_owned(), meant: fields.meant_by(name) });
        }
        Ok(fields.finish(taken)?)
    }
}

/// Parses `GET /ping`, which ignores query parameters.
pub fn ping(_parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let operation: OperationFn = Arc::new(|tx, tenant_id| {
        Box::pin(async move {
            let ping = Ping { ok: true, tenant_id, timestamp: tx.env().now() };
            Ok(ApiResponse::json(StatusCode::OK, &ping)?)
        })
    });
    Ok(ParsedRequest { operation, webhook_url: None, records: 0, is_dry_run: false })
}
