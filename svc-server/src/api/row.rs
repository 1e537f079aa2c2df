//! A row of the table of operations: an operation of svc-core, with its texts and with what HTTP adds to it.
//!
//! The handler of all operations is here. It parses a request, and the [`OperationFn`] that it
//! returns runs the operation later, in a transaction.

use std::sync::Arc;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::Area;
use svc_core::error::{Error, StoreError};
use svc_core::input::Input;
use svc_core::platform::{self, Target};
use svc_core::resources::Resource;
use svc_core::store::Tx;
use svc_core::values::{TenantId, WebhookUrl};
use uuid::Uuid;

use crate::api::handlers::{Data, OperationFn, ParseFn, ParsedRequest, RequestParts};
use crate::api::routes::{Operation, Shape, inline, schema, wrapped};
use crate::kernel::problem::Problem;
use crate::kernel::response::{ApiResponse, is_unmodified, version_etag};

/// A row. The output `O` of its operation is rendered as an `S`.
pub(super) struct Row<K: 'static, I: 'static, O: 'static, S = O> {
    area: Option<Area>,
    operation: platform::Operation<K, I, O>,
    id: &'static str,
    tag: &'static str,
    status: StatusCode,
    render: fn(O) -> S,
    etag: ETag<O>,
    /// Retrieves the record, with its ETag.
    get: Option<ParseFn>,
    /// Returns the id of the created record, which a `Location` names in its collection.
    created: Option<fn(&O) -> Uuid>,
    collection: &'static str,
    /// Returns the highest number of records that a read returns.
    records: fn(&I) -> u32,
    check: fn(&I) -> Result<(), Error>,
    /// The field with the URL of a webhook, and the URL.
    webhook_url: (&'static str, fn(&I) -> Option<WebhookUrl>),
    names_event_kinds: bool,
}

/// The ETag of a response.
enum ETag<O> {
    None,
    /// That of this representation of a record.
    Own,
    /// That of the version of a record. A record without versions has that of its representation.
    Version(fn(&O) -> Option<String>),
    /// That with which the record is retrieved.
    Retrieved,
}

/// What was parsed of a request.
struct Call<I> {
    id: Uuid,
    input: I,
    if_none_match: Vec<String>,
    base: String,
}

/// Returns the row of an operation. Its scope follows from the method, and its path from the operation.
pub(super) fn row<K: Target, I: Input + Clone, O: Send + 'static>(
    operation: platform::Operation<K, I, O>,
) -> Row<K, I, O> {
    rendered(operation, |output| output)
}

/// Returns the row of an operation whose output is rendered in another form.
pub(super) fn rendered<K: Target, I: Input + Clone, O: Send + 'static, S>(
    operation: platform::Operation<K, I, O>,
    render: fn(O) -> S,
) -> Row<K, I, O, S> {
    let status = if operation.method == platform::Method::Delete { StatusCode::NO_CONTENT } else { StatusCode::OK };
    Row {
        area: None,
        operation,
        id: operation.id,
        tag: if operation.collection.is_empty() { "accounts" } else { operation.collection },
        status,
        render,
        etag: ETag::None,
        get: None,
        created: None,
        collection: operation.collection,
        records: |_| 1,
        check: |_| Ok(()),
        webhook_url: ("url", |_| None),
        names_event_kinds: false,
    }
}

impl<K: Target, I: Input + Clone, R: Resource> Row<K, I, R> {
    /// Adds the ETag of the version of the record.
    pub(super) fn with_version(self) -> Self {
        Self { etag: ETag::Version(version_etag), ..self }
    }

    /// Responds with 201, the path of the record, and the ETag of its version.
    pub(super) fn creates_version(self) -> Self {
        Self { created: Some(|record| record.id().uuid()), ..self.creates().with_version() }
    }
}

impl<K, I, O, S> Row<K, I, O, S> {
    /// Gives a generic operation the name that it has for this resource.
    pub(super) fn named(self, id: &'static str) -> Self {
        Self { id, ..self }
    }

    /// Makes it an operation of the platform API, in this area.
    pub(super) fn in_area(self, area: Area) -> Self {
        Self { area: Some(area), ..self }
    }

    /// Lists the operation under another collection than the first segment of its path.
    pub(super) fn tagged(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Responds with 201.
    pub(super) fn creates(self) -> Self {
        Self { status: StatusCode::CREATED, ..self }
    }

    /// Adds the ETag of the response.
    pub(super) fn with_etag(self) -> Self {
        Self { etag: ETag::Own, ..self }
    }

    /// Takes the ETag with which this operation retrieves the record as `If-Match`.
    pub(super) fn if_match(self, get: ParseFn) -> Self {
        Self { get: Some(get), ..self }
    }

    /// Adds the ETag of the record, as this operation retrieves it. A PATCH and a DELETE take it as `If-Match`.
    pub(super) fn retrieved_by(self, get: ParseFn) -> Self {
        Self { etag: ETag::Retrieved, ..self.if_match(get) }
    }

    /// Responds with 201, the path of the record with this id, and the ETag with which this operation retrieves it.
    pub(super) fn creates_record(self, id: fn(&O) -> Uuid, get: ParseFn) -> Self {
        Self { created: Some(id), ..self.creates().retrieved_by(get) }
    }

    /// Responds as [`creates_record`](Self::creates_record) with a record of another collection than that of the path.
    pub(super) fn creates_in(self, collection: &'static str, id: fn(&O) -> Uuid, get: ParseFn) -> Self {
        Self { collection, ..self.creates_record(id, get) }
    }

    /// Sets how many records a page has at most.
    pub(super) fn reading(self, records: fn(&I) -> u32) -> Self {
        Self { records, ..self }
    }

    /// Sets a check of the input that its fields do not make.
    pub(super) fn checking(self, check: fn(&I) -> Result<(), Error>) -> Self {
        Self { check, ..self }
    }

    /// Names the field of the input with a webhook URL, whose host must be checked before the operation runs.
    pub(super) fn with_webhook_url(self, field: &'static str, url: fn(&I) -> Option<WebhookUrl>) -> Self {
        Self { webhook_url: (field, url), ..self }
    }

    /// Lets the input name the event kinds of the service.
    pub(super) fn with_event_kinds(self) -> Self {
        Self { names_event_kinds: true, ..self }
    }
}

impl<K, I, O, S> Row<K, I, O, S>
where
    K: Target,
    I: Input + Clone,
    O: Send + 'static,
    S: Serialize + JsonSchema + Send + 'static,
{
    /// Returns what parses a request for the operation.
    pub(super) fn parser(self) -> ParseFn {
        let row = Arc::new(self);
        Arc::new(move |parts| row.parse(parts))
    }

    /// Returns the operation with its title, its description, and the description of its response.
    pub(super) fn described(self, summary: &str, description: &str, success: &str) -> Operation {
        let operation = self.operation;
        let method = match operation.method {
            platform::Method::Get => Method::GET,
            platform::Method::Post => Method::POST,
            platform::Method::Patch => Method::PATCH,
            platform::Method::Delete => Method::DELETE,
        };
        let (is_read, has_input) = (method == Method::GET, operation.has_input());
        let has_body = self.status != StatusCode::NO_CONTENT;
        let response = if operation.is_wrapped { wrapped::<S> } else { schema::<S> };
        Operation {
            id: self.id,
            path: operation.path(),
            collection: self.tag,
            area: self.area,
            summary: summary.to_owned(),
            description: description.to_owned(),
            success: success.to_owned(),
            scope: if is_read { Scope::Read } else { Scope::Write },
            current: self.get.clone().filter(|_| method != Method::POST),
            shape: Shape {
                query: if is_read && has_input { const { &[inline::<I>] } } else { &[] },
                body: (!is_read && has_input).then_some(schema::<I> as fn(&mut _) -> _),
                status: self.status,
                response: has_body.then_some(response),
                has_etag: has_body && !matches!(self.etag, ETag::None),
            },
            method,
            parse: self.parser(),
        }
    }

    fn parse(self: &Arc<Self>, parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
        let id = if K::HAS_ID { parts.id()? } else { Uuid::nil() };
        let input = self.input(parts)?;
        (self.check)(&input)?;
        let (field, url) = self.webhook_url;
        let webhook_url = url(&input).map(|url| (field, url));
        let is_dry_run = self.operation.is_dry_run(&input);
        let is_read = self.operation.method == platform::Method::Get;
        let records = if is_read { (self.records)(&input) } else { 0 };
        let (if_none_match, base) = (parts.if_none_match.to_vec(), parts.base.to_owned());
        let call = Arc::new((Arc::clone(self), Call { id, input, if_none_match, base }));
        let operation: OperationFn = Arc::new(move |tx, tenant| {
            let call = Arc::clone(&call);
            Box::pin(async move {
                let (row, call) = &*call;
                row.respond(tx, tenant, call).await
            })
        });
        Ok(ParsedRequest { operation, webhook_url, records, is_dry_run })
    }

    fn input(&self, parts: &RequestParts<'_>) -> Result<I, Problem> {
        if self.operation.has_input() && self.operation.method == platform::Method::Get {
            return parts.query(I::take);
        }
        parts.no_query()?;
        Ok(match (self.operation.has_input(), self.names_event_kinds) {
            (false, _) => I::from_members(Vec::new())?,
            (true, false) => I::from_body(parts.body)?,
            (true, true) => I::from_body_with_kinds(parts.body, parts.event_kinds)?,
        })
    }

    async fn respond(&self, tx: &mut dyn Tx, tenant: TenantId, call: &Call<I>) -> Result<ApiResponse, Error> {
        let Self { operation, status, render, .. } = self;
        let output = operation.run(tx, K::new(tenant, call.id), &call.input).await?;
        let created = self.created.map(|id| id(&output));
        let version = if let ETag::Version(version) = self.etag { version(&output) } else { None };
        // The client has the record, so it is not written out.
        if let Some(etag) = version.as_ref().filter(|etag| is_unmodified(&call.if_none_match, etag)) {
            return Ok(ApiResponse::not_modified(etag.clone()));
        }
        let response = match (*status, operation.is_wrapped) {
            (StatusCode::NO_CONTENT, _) => return Ok(ApiResponse::no_content()),
            (status, true) => ApiResponse::json(status, &Data { data: render(output) })?,
            (status, false) => ApiResponse::json(status, &render(output))?,
        };
        let location = created.map(|id| format!("{}/{}/{id}", call.base, self.collection));
        let response = ApiResponse { location, etag: version, ..response };
        match (&self.etag, &self.get) {
            (ETag::Retrieved, Some(get)) => {
                // No account is in the path that creates one.
                let id = created.unwrap_or(call.id);
                let tenant = if K::HAS_ACCOUNT { tenant } else { TenantId(id) };
                let etag = retrieved_etag(tx, tenant, id, get, &call.base).await?;
                Ok(ApiResponse { etag, ..response })
            }
            (ETag::Own | ETag::Version(_), _) if response.etag.is_none() => Ok(response.with_etag()),
            _ => Ok(response),
        }
    }
}

/// Returns the ETag with which `get` retrieves a record.
async fn retrieved_etag(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: Uuid,
    get: &ParseFn,
    base: &str,
) -> Result<Option<String>, Error> {
    let (id, event_kinds) = (id.to_string(), tx.env().event_kinds.clone());
    let (query, body, if_none_match) = ("", &[][..], &[][..]);
    let parts = RequestParts { id: Some(&id), query, body, if_none_match, base, event_kinds: &event_kinds };
    let get = get(&parts).map_err(|_| StoreError::Internal("the id of a record is refused".to_owned()))?;
    Ok((get.operation)(tx, tenant).await?.etag)
}

/// Returns what retrieves a record, with its ETag.
pub(super) fn retrieve<K: Target, O: Serialize + JsonSchema + Send + 'static>(
    get: platform::Operation<K, (), O>,
) -> ParseFn {
    row(get).with_etag().parser()
}
