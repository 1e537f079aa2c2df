//! Handlers: parse, call the core, wrap. One function per verb serves every resource.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::error::Error;
use svc_core::input::{Fields, Input};
use svc_core::resources::crud::{self, Create, Delete, Resource, Update};
use svc_core::resources::pages::ListParams;
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp, WebhookUrl, parse_uuid};
use svc_core::webhooks::subscriptions::{
    WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};
use uuid::Uuid;

use crate::api::response::{ApiResponse, etag};

/// What a request is aimed at.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The `{id}` of the path, if it has one.
    pub id: Option<&'a str>,
    /// The query string as sent.
    pub query: &'a str,
    /// The body, on POST and PATCH.
    pub body: &'a [u8],
    /// The address of the version, for `Location`: `/api/v1`.
    pub base: &'a str,
}

/// A parsed request: the job that answers it for a tenant.
pub struct ParsedRequest {
    /// Runs inside a transaction, more than once if the store has to repeat it.
    pub run: OperationFn,
    /// A webhook target whose host is to be resolved before.
    pub url: Option<WebhookUrl>,
}

/// The job of an operation.
pub type OperationFn =
    Arc<dyn for<'t> Fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<ApiResponse, Error>> + Send + Sync>;

/// Parses a request.
pub type ParseFn = fn(&RequestParts<'_>) -> Result<ParsedRequest, Error>;

impl ParsedRequest {
    fn new<F>(run: F) -> Self
    where
        F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<ApiResponse, Error>> + Send + Sync + 'static,
    {
        Self { run: Arc::new(run), url: None }
    }
}

/// Single records are wrapped in `data`.
#[derive(Serialize, JsonSchema)]
pub struct Data<T> {
    /// The record.
    pub data: T,
}

/// The answer of `GET /ping`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ping {
    /// Always true.
    pub ok: bool,
    /// The tenant that the key belongs to.
    pub tenant_id: TenantId,
    /// The time on the server.
    pub timestamp: Timestamp,
}

impl RequestParts<'_> {
    fn id(&self) -> Result<Uuid, Error> {
        parse_uuid(self.id.unwrap_or_default()).map_err(|issue| issue.on("id"))
    }

    fn pairs(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    /// Operations without parameters refuse every one.
    fn no_query(&self) -> Result<(), Error> {
        match self.pairs().into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Error::UnknownParameter(name)),
        }
    }

    fn list<F: Input>(&self) -> Result<(ListParams, F), Error> {
        let mut fields = Fields::from_query(self.pairs());
        let (params, filter) = (ListParams::take(&mut fields), F::take(&mut fields));
        if let Some(name) = fields.first_unknown() {
            return Err(Error::UnknownParameter(name.to_owned()));
        }
        fields.finish(params.zip(filter))
    }
}

/// `GET /ping`. Query parameters are not looked at.
///
/// # Errors
/// None.
pub fn ping(_target: &RequestParts<'_>) -> Result<ParsedRequest, Error> {
    Ok(ParsedRequest::new(|tx, tenant_id| {
        Box::pin(async move {
            let pong = Ping { ok: true, tenant_id, timestamp: tx.env().now() };
            Ok(ApiResponse::json(StatusCode::OK, &pong)?)
        })
    }))
}

/// `GET /{collection}`.
///
/// # Errors
/// Parameters that fail.
pub fn list<R: Resource>(target: &RequestParts<'_>) -> Result<ParsedRequest, Error> {
    let input = Arc::new(target.list::<R::Filter>()?);
    Ok(ParsedRequest::new(move |tx, tenant| {
        let input = Arc::clone(&input);
        Box::pin(async move {
            let page = crud::list::<R>(tx, tenant, &input.0, &input.1).await?;
            Ok(ApiResponse::json(StatusCode::OK, &page)?)
        })
    }))
}

/// `GET /{collection}/{id}`.
///
/// # Errors
/// A malformed id, or parameters.
pub fn get<R: Resource>(target: &RequestParts<'_>) -> Result<ParsedRequest, Error> {
    let id = target.id()?;
    target.no_query()?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            let data: R = crud::get(tx, tenant, id).await?;
            Ok(ApiResponse::json(StatusCode::OK, &Data { data })?.tagged())
        })
    }))
}

/// `POST /{collection}`, answered with `O`, which is the record unless the answer shows more.
///
/// # Errors
/// A body that fails, or parameters.
pub fn create<R, O>(target: &RequestParts<'_>) -> Result<ParsedRequest, Error>
where
    R: Create<Input: Clone>,
    O: From<R> + Serialize,
{
    target.no_query()?;
    let input = R::Input::from_body(target.body)?;
    let collection = format!("{}/{}", target.base, R::COLLECTION);
    Ok(ParsedRequest::new(move |tx, tenant| {
        let (input, collection) = (input.clone(), collection.clone());
        Box::pin(async move {
            let record: R = crud::create(tx, tenant, input).await?;
            let location = Some(format!("{collection}/{}", record.id()));
            // The tag is that of what a GET will return.
            let tag = etag(&ApiResponse::json(StatusCode::OK, &Data { data: &record })?.body);
            let response = ApiResponse::json(StatusCode::CREATED, &Data { data: O::from(record) })?;
            Ok(ApiResponse { location, etag: Some(tag), ..response })
        })
    }))
}

/// `PATCH /{collection}/{id}`.
///
/// # Errors
/// A malformed id, a body that fails, or parameters.
pub fn update<R: Update>(target: &RequestParts<'_>) -> Result<ParsedRequest, Error> {
    let id = target.id()?;
    target.no_query()?;
    let input = R::Input::from_body(target.body)?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        let input = input.clone();
        Box::pin(async move {
            let data: R = crud::update(tx, tenant, id, input).await?;
            Ok(ApiResponse::json(StatusCode::OK, &Data { data })?.tagged())
        })
    }))
}

/// `DELETE /{collection}/{id}`.
///
/// # Errors
/// A malformed id, or parameters.
pub fn delete<R: Delete>(target: &RequestParts<'_>) -> Result<ParsedRequest, Error> {
    let id = target.id()?;
    target.no_query()?;
    Ok(ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            crud::delete::<R>(tx, tenant, id).await?;
            Ok(ApiResponse::no_content())
        })
    }))
}

/// `POST /webhooks`: the host of the URL is resolved first.
///
/// # Errors
/// As for [`create`].
pub fn create_webhook(target: &RequestParts<'_>) -> Result<ParsedRequest, Error> {
    let parsed = create::<WebhookSubscription, WebhookSubscriptionWithSecret>(target)?;
    let url = Some(WebhookCreate::from_body(target.body)?.url);
    Ok(ParsedRequest { url, ..parsed })
}

/// `PATCH /webhooks/{id}`: the host of a new URL is resolved first.
///
/// # Errors
/// As for [`update`].
pub fn update_webhook(target: &RequestParts<'_>) -> Result<ParsedRequest, Error> {
    let parsed = update::<WebhookSubscription>(target)?;
    let url = WebhookUpdate::from_body(target.body)?.url.sent();
    Ok(ParsedRequest { url, ..parsed })
}
