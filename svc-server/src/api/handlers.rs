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
use svc_core::webhooks::subscriptions::{Subscription, WebhookCreate, WebhookUpdate, WithSecret};
use uuid::Uuid;

use crate::api::response::{Reply, etag};

/// What a request is aimed at.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
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
pub struct Prepared {
    /// Runs inside a transaction, more than once if the store has to repeat it.
    pub work: Work,
    /// A webhook target whose host is to be resolved before.
    pub url: Option<WebhookUrl>,
}

/// The job of an operation.
pub type Work = Arc<dyn for<'t> Fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<Reply, Error>> + Send + Sync>;

/// Parses a request.
pub type Prepare = fn(&Target<'_>) -> Result<Prepared, Error>;

impl Prepared {
    fn new<F>(work: F) -> Self
    where
        F: for<'t> Fn(&'t mut dyn Tx, TenantId) -> BoxFuture<'t, Result<Reply, Error>> + Send + Sync + 'static,
    {
        Self { work: Arc::new(work), url: None }
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

impl Target<'_> {
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
pub fn ping(_target: &Target<'_>) -> Result<Prepared, Error> {
    Ok(Prepared::new(|tx, tenant_id| {
        Box::pin(async move {
            let pong = Ping { ok: true, tenant_id, timestamp: tx.env().now() };
            Ok(Reply::json(StatusCode::OK, &pong)?)
        })
    }))
}

/// `GET /{collection}`.
///
/// # Errors
/// Parameters that fail.
pub fn list<R: Resource>(target: &Target<'_>) -> Result<Prepared, Error> {
    let input = Arc::new(target.list::<R::Filter>()?);
    Ok(Prepared::new(move |tx, tenant| {
        let input = Arc::clone(&input);
        Box::pin(async move {
            let page = crud::list::<R>(tx, tenant, &input.0, &input.1).await?;
            Ok(Reply::json(StatusCode::OK, &page)?)
        })
    }))
}

/// `GET /{collection}/{id}`.
///
/// # Errors
/// A malformed id, or parameters.
pub fn get<R: Resource>(target: &Target<'_>) -> Result<Prepared, Error> {
    let id = target.id()?;
    target.no_query()?;
    Ok(Prepared::new(move |tx, tenant| {
        Box::pin(async move {
            let data: R = crud::get(tx, tenant, id).await?;
            Ok(Reply::json(StatusCode::OK, &Data { data })?.tagged())
        })
    }))
}

/// `POST /{collection}`, answered with `O`, which is the record unless the answer shows more.
///
/// # Errors
/// A body that fails, or parameters.
pub fn create<R, O>(target: &Target<'_>) -> Result<Prepared, Error>
where
    R: Create<Input: Clone>,
    O: From<R> + Serialize,
{
    target.no_query()?;
    let input = R::Input::from_body(target.body)?;
    let collection = format!("{}/{}", target.base, R::COLLECTION);
    Ok(Prepared::new(move |tx, tenant| {
        let (input, collection) = (input.clone(), collection.clone());
        Box::pin(async move {
            let record: R = crud::create(tx, tenant, input).await?;
            let location = Some(format!("{collection}/{}", record.id()));
            // The tag is that of what a GET will return.
            let tag = etag(&Reply::json(StatusCode::OK, &Data { data: &record })?.body);
            let reply = Reply::json(StatusCode::CREATED, &Data { data: O::from(record) })?;
            Ok(Reply { location, etag: Some(tag), ..reply })
        })
    }))
}

/// `PATCH /{collection}/{id}`.
///
/// # Errors
/// A malformed id, a body that fails, or parameters.
pub fn update<R: Update>(target: &Target<'_>) -> Result<Prepared, Error> {
    let id = target.id()?;
    target.no_query()?;
    let input = R::Input::from_body(target.body)?;
    Ok(Prepared::new(move |tx, tenant| {
        let input = input.clone();
        Box::pin(async move {
            let data: R = crud::update(tx, tenant, id, input).await?;
            Ok(Reply::json(StatusCode::OK, &Data { data })?.tagged())
        })
    }))
}

/// `DELETE /{collection}/{id}`.
///
/// # Errors
/// A malformed id, or parameters.
pub fn delete<R: Delete>(target: &Target<'_>) -> Result<Prepared, Error> {
    let id = target.id()?;
    target.no_query()?;
    Ok(Prepared::new(move |tx, tenant| {
        Box::pin(async move {
            crud::delete::<R>(tx, tenant, id).await?;
            Ok(Reply::no_content())
        })
    }))
}

/// `POST /webhooks`: the host of the URL is resolved first.
///
/// # Errors
/// As for [`create`].
pub fn create_webhook(target: &Target<'_>) -> Result<Prepared, Error> {
    let prepared = create::<Subscription, WithSecret>(target)?;
    let url = Some(WebhookCreate::from_body(target.body)?.url);
    Ok(Prepared { url, ..prepared })
}

/// `PATCH /webhooks/{id}`: the host of a new URL is resolved first.
///
/// # Errors
/// As for [`update`].
pub fn update_webhook(target: &Target<'_>) -> Result<Prepared, Error> {
    let prepared = update::<Subscription>(target)?;
    let url = WebhookUpdate::from_body(target.body)?.url.sent();
    Ok(Prepared { url, ..prepared })
}
