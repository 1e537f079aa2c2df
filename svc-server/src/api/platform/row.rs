//! A row of the table of operations: an operation of svc-core, with its texts and with what HTTP adds to it.

use std::sync::Arc;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::Area;
use svc_core::error::{Error, StoreError};
use svc_core::input::Input;
use svc_core::platform::{self, Target};
use svc_core::store::Tx;
use svc_core::values::{TenantId, WebhookUrl};
use uuid::Uuid;

use crate::api::handlers::{Data, ParseFn, ParsedRequest, RequestParts};
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::routes::{Operation, Shape, inline, schema, wrapped};

/// A row. The output `O` of its operation is rendered as an `S`.
pub(super) struct Row<K: 'static, I: 'static, O: 'static, S = O> {
    area: Area,
    operation: platform::Operation<K, I, O>,
    tag: &'static str,
    status: StatusCode,
    render: fn(O) -> S,
    etag: ETag,
    /// Returns the id of the created record, which a `Location` names.
    created: Option<fn(&O) -> Uuid>,
    /// Returns the highest number of records that a read returns.
    records: fn(&I) -> u32,
    check: fn(&I) -> Result<(), Error>,
    webhook_url: Option<fn(&I) -> WebhookUrl>,
}

/// The ETag of a response.
enum ETag {
    None,
    /// That of this representation of a record.
    Own,
    /// That with which this operation retrieves the record.
    Of(ParseFn),
}

/// Returns the row of an operation. Its scope follows from the method, and its path from the operation.
pub(super) fn row<K: Target, I: Input + Clone, O: Send + 'static>(
    area: Area,
    operation: platform::Operation<K, I, O>,
) -> Row<K, I, O> {
    let status = if operation.method == platform::Method::Delete { StatusCode::NO_CONTENT } else { StatusCode::OK };
    Row {
        area,
        operation,
        tag: if operation.collection.is_empty() { "accounts" } else { operation.collection },
        status,
        render: |output| output,
        etag: ETag::None,
        created: None,
        records: |_| 1,
        check: |_| Ok(()),
        webhook_url: None,
    }
}

impl<K, I, O, S> Row<K, I, O, S>
where
    K: Target,
    I: Input + Clone,
    O: Send + 'static,
    S: Serialize + JsonSchema + Send + 'static,
{
    /// Lists the operation under another collection than the first segment of its path.
    pub(super) fn tagged(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Renders the output in another form.
    pub(super) fn rendered_as<T>(self, render: fn(O) -> T) -> Row<K, I, O, T> {
        let Self { area, operation, tag, status, etag, created, records, check, webhook_url, .. } = self;
        Row { area, operation, tag, status, render, etag, created, records, check, webhook_url }
    }

    /// Responds with 201.
    pub(super) fn creates(self) -> Self {
        Self { status: StatusCode::CREATED, ..self }
    }

    /// Adds the ETag of the response.
    pub(super) fn with_etag(self) -> Self {
        Self { etag: ETag::Own, ..self }
    }

    /// Adds the ETag of the record, as this operation retrieves it. A PATCH and a DELETE take it as `If-Match`.
    pub(super) fn retrieved_by(self, get: ParseFn) -> Self {
        Self { etag: ETag::Of(get), ..self }
    }

    /// Responds with 201, the path of the record with this id, and the ETag with which this operation retrieves it.
    pub(super) fn creates_record(self, id: fn(&O) -> Uuid, get: ParseFn) -> Self {
        Self { created: Some(id), ..self.creates().retrieved_by(get) }
    }

    /// Sets how many records a page has at most.
    pub(super) fn reading(self, records: fn(&I) -> u32) -> Self {
        Self { records, ..self }
    }

    /// Sets a check of the input that its fields do not make.
    pub(super) fn checking(self, check: fn(&I) -> Result<(), Error>) -> Self {
        Self { check, ..self }
    }

    /// Names the webhook URL of the input, whose host must be checked before the operation runs.
    pub(super) fn with_webhook_url(self, webhook_url: fn(&I) -> WebhookUrl) -> Self {
        Self { webhook_url: Some(webhook_url), ..self }
    }

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
        let current = match &self.etag {
            ETag::Of(get) if method != Method::POST => Some(Arc::clone(get)),
            _ => None,
        };
        let (is_read, has_input) = (method == Method::GET, operation.has_input());
        let has_body = self.status != StatusCode::NO_CONTENT;
        let response = if operation.is_wrapped { wrapped::<S> } else { schema::<S> };
        Operation {
            id: operation.id,
            method,
            path: operation.path(),
            collection: self.tag,
            area: Some(self.area),
            summary: summary.to_owned(),
            description: description.to_owned(),
            success: success.to_owned(),
            scope: if is_read { Scope::Read } else { Scope::Write },
            current,
            shape: Shape {
                query: if is_read && has_input { const { &[inline::<I>] } } else { &[] },
                body: (!is_read && has_input).then_some(schema::<I> as fn(&mut _) -> _),
                status: self.status,
                response: has_body.then_some(response),
                has_etag: has_body && !matches!(self.etag, ETag::None),
            },
            parse: self.parser(),
        }
    }

    fn parse(self: &Arc<Self>, parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
        let id = if K::HAS_ID { parts.id::<Self>()?.uuid() } else { Uuid::nil() };
        let input = self.input(parts)?;
        (self.check)(&input)?;
        let webhook_url = self.webhook_url.map(|url| url(&input));
        let is_dry_run = self.operation.is_dry_run(&input);
        let is_read = self.operation.method == platform::Method::Get;
        let records = if is_read { (self.records)(&input) } else { 0 };
        let call = Arc::new((Arc::clone(self), input, parts.base.to_owned()));
        let parsed = ParsedRequest::new(move |tx, tenant| {
            let call = Arc::clone(&call);
            Box::pin(async move {
                let (row, input, base) = &*call;
                row.respond(tx, tenant, id, input, base).await
            })
        });
        Ok(ParsedRequest { webhook_url, records, is_dry_run, ..parsed })
    }

    fn input(&self, parts: &RequestParts<'_>) -> Result<I, Problem> {
        if self.operation.has_input() && self.operation.method == platform::Method::Get {
            return parts.query(I::take);
        }
        parts.no_query()?;
        Ok(match (self.operation.has_input(), self.webhook_url) {
            (false, _) => I::from_members(Vec::new())?,
            (true, None) => I::from_body(parts.body)?,
            (true, Some(_)) => I::from_body_with_kinds(parts.body, parts.event_kinds)?,
        })
    }

    async fn respond(
        &self,
        tx: &mut dyn Tx,
        tenant: TenantId,
        id: Uuid,
        input: &I,
        base: &str,
    ) -> Result<ApiResponse, Error> {
        let output = self.operation.run(tx, K::new(tenant, id), input).await?;
        let created = self.created.map(|id| id(&output));
        let output = (self.render)(output);
        let response = match (self.status, self.operation.is_wrapped) {
            (StatusCode::NO_CONTENT, _) => return Ok(ApiResponse::no_content()),
            (status, true) => ApiResponse::json(status, &Data { data: output })?,
            (status, false) => ApiResponse::json(status, &output)?,
        };
        let location = created.map(|id| format!("{base}/{}/{id}", self.operation.collection));
        let response = ApiResponse { location, ..response };
        match &self.etag {
            ETag::None => Ok(response),
            ETag::Own => Ok(response.with_etag()),
            ETag::Of(get) => {
                let id = created.unwrap_or(id);
                // No account is in the path that creates one.
                let tenant = if K::HAS_ACCOUNT { tenant } else { TenantId(id) };
                let event_kinds = tx.env().event_kinds.clone();
                let (query, body, event_kinds) = ("", &[][..], &event_kinds);
                let (id, if_none_match) = (id.to_string(), &[][..]);
                let parts = RequestParts { id: Some(&id), query, body, if_none_match, base, event_kinds };
                let get = get(&parts).map_err(|_| StoreError::Internal("the id of a record is refused".to_owned()))?;
                Ok(ApiResponse { etag: (get.operation)(tx, tenant).await?.etag, ..response })
            }
        }
    }
}

/// Returns what retrieves a record, with its ETag.
pub(super) fn retrieve<K: Target, O: Serialize + JsonSchema + Send + 'static>(
    get: platform::Operation<K, (), O>,
) -> ParseFn {
    row(Area::Records, get).with_etag().parser()
}
