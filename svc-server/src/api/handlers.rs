//! The handlers of the operations: they parse a request, call the rules and wrap the result.
//!
//! One generic handler per verb serves every resource. A handler only parses; the [`OperationFn`] that it returns runs
//! later in a transaction.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::error::{Error, Issue};
use svc_core::input::{Fields, Input};
use svc_core::pages::ListParams;
use svc_core::resources::{Create, Delete, Resource, Update, crud};
use svc_core::store::Tx;
use svc_core::values::{EventKinds, Id, TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::subscriptions::{
    WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use crate::api::problem::Problem;
use crate::api::response::{ApiResponse, is_unmodified, record_etag, version_etag};

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
    pub webhook_url: Option<WebhookUrl>,
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

impl ParsedRequest {
    pub(super) fn new<F>(operation: F) -> Self
    where
        F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<ApiResponse, Error>> + Send + Sync + 'static,
    {
        Self { operation: Arc::new(operation), webhook_url: None, records: 0, is_dry_run: false }
    }

    pub(super) fn reading(self, records: u32) -> Self {
        Self { records, ..self }
    }
}

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
    pub(super) fn id<R>(&self) -> Result<Id<R>, Error> {
        self.id.unwrap_or_default().parse().map_err(|issue: Issue| issue.on("id"))
    }

    fn query_pairs(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    /// Checks that there are no query parameters, which only lists have.
    pub(super) fn no_query(&self) -> Result<(), Problem> {
        match self.query_pairs().into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::UnknownParameter(name)),
        }
    }

    /// Parses the parameters of a list and its filters `F`.
    fn list<F: Input>(&self) -> Result<(ListParams, F), Problem> {
        self.query(|fields| {
            let (params, filter) = (ListParams::take(fields), F::take(fields));
            params.zip(filter)
        })
    }

    /// Parses the query parameters, all of which `take` takes.
    pub(super) fn query<T>(&self, take: impl FnOnce(&mut Fields) -> Option<T>) -> Result<T, Problem> {
        let mut fields = Fields::from_query(self.query_pairs());
        let taken = take(&mut fields);
        if let Some(name) = fields.first_unknown() {
            return Err(Problem::UnknownParameter(name.to_owned()));
        }
        Ok(fields.finish(taken)?)
    }
}

/// Handles `GET /ping`, which ignores query parameters.
///
/// # Errors
///
/// None.
pub fn ping(_parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    Ok(ParsedRequest::new(|tx, tenant_id| {
        Box::pin(async move {
            let ping = Ping { ok: true, tenant_id, timestamp: tx.env().now() };
            Ok(ApiResponse::json(StatusCode::OK, &ping)?)
        })
    }))
}

/// Handles `GET /{collection}`.
///
/// # Errors
///
/// Fails when a query parameter is unknown or not valid.
pub fn list<R: Resource>(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let input = Arc::new(parts.list::<R::Filter>()?);
    let records = input.0.limit.unwrap_or_default().get();
    let list = ParsedRequest::new(move |tx, tenant| {
        let input = Arc::clone(&input);
        Box::pin(async move {
            let (params, filter) = &*input;
            let page = crud::list::<R>(tx, tenant, params, filter).await?;
            Ok(ApiResponse::json(StatusCode::OK, &page)?)
        })
    });
    Ok(list.reading(records))
}

/// Handles `GET /{collection}/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn get<R: Resource>(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    parts.no_query()?;
    let if_none_match: Arc<[String]> = parts.if_none_match.into();
    let get = ParsedRequest::new(move |tx, tenant| {
        let if_none_match = Arc::clone(&if_none_match);
        Box::pin(async move {
            let record: R = crud::get(tx, tenant, id).await?;
            // The client has the record, so it is not written out.
            match version_etag(&record).filter(|etag| is_unmodified(&if_none_match, etag)) {
                Some(etag) => Ok(ApiResponse::not_modified(etag)),
                None => Ok(ApiResponse::record(StatusCode::OK, &record)?),
            }
        })
    });
    Ok(get.reading(1))
}

/// Handles `POST /{collection}`. The response has an `O`, which is the record itself or the record with a secret.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub fn create<R, O>(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem>
where
    R: Create<Input: Clone>,
    O: From<R> + Serialize,
{
    parts.no_query()?;
    let input = R::Input::from_body(parts.body)?;
    Ok(create_from::<R, O>(parts, input))
}

fn create_from<R, O>(parts: &RequestParts<'_>, input: R::Input) -> ParsedRequest
where
    R: Create<Input: Clone>,
    O: From<R> + Serialize,
{
    let collection = format!("{}/{}", parts.base, R::COLLECTION);
    ParsedRequest::new(move |tx, tenant| {
        let (input, collection) = (input.clone(), collection.clone());
        Box::pin(async move {
            let record: R = crud::create(tx, tenant, input).await?;
            let location = Some(format!("{collection}/{}", record.id()));
            // The tag of the response that a GET of the record will get.
            let etag = Some(record_etag(&record)?);
            let response = ApiResponse::json(StatusCode::CREATED, &Data { data: O::from(record) })?;
            Ok(ApiResponse { location, etag, ..response })
        })
    })
}

/// Handles `PATCH /{collection}/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub fn update<R: Update>(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    parts.no_query()?;
    let input = R::Input::from_body(parts.body)?;
    Ok(update_from::<R>(id, input))
}

fn update_from<R: Update>(id: Id<R>, input: R::Input) -> ParsedRequest {
    ParsedRequest::new(move |tx, tenant| {
        let input = input.clone();
        Box::pin(async move {
            let record: R = crud::update(tx, tenant, id, input).await?;
            Ok(ApiResponse::record(StatusCode::OK, &record)?)
        })
    })
}

/// Handles `DELETE /{collection}/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub fn delete<R: Delete>(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    parts.no_query()?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            crud::delete::<R>(tx, tenant, id).await?;
            Ok(ApiResponse::no_content())
        })
    }))
}

/// Handles `POST /webhooks`: as [`create`], with a webhook URL to check.
///
/// # Errors
///
/// As [`create`].
pub fn create_webhook(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    parts.no_query()?;
    let input = WebhookCreate::from_body_with_kinds(parts.body, parts.event_kinds)?;
    let webhook_url = Some(input.url.clone());
    let parsed = create_from::<WebhookSubscription, WebhookSubscriptionWithSecret>(parts, input);
    Ok(ParsedRequest { webhook_url, ..parsed })
}

/// Handles `PATCH /webhooks/{id}`: as [`update`], with a webhook URL to check if the request has one.
///
/// # Errors
///
/// As [`update`].
pub fn update_webhook(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    parts.no_query()?;
    let input = WebhookUpdate::from_body(parts.body)?;
    let webhook_url = input.url.clone().sent();
    Ok(ParsedRequest { webhook_url, ..update_from::<WebhookSubscription>(id, input) })
}
