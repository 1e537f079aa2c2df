//! The steps between a request and its operation: the parts that are parsed, and what runs later in a transaction.

use std::sync::Arc;

use http::StatusCode;
use svc_core::error::{Error, StoreError};
use svc_core::operation::{AnyOperation, Call, ETag, InputError, Outside, Request, Success};
use svc_core::store::Tx;
use svc_core::values::{EventKinds, TenantId, WebhookUrl, parse_uuid};
use uuid::Uuid;

use crate::deliver::tls;
use crate::kernel::problem::Problem;
use crate::kernel::response::{ApiResponse, is_unmodified, version_etag};
use crate::streams;

/// The parts of a request that are parsed.
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
    /// The operation with what was parsed of its input.
    pub call: Arc<OperationCall>,
    /// A new webhook URL, whose host must be checked before the operation runs.
    pub webhook_url: Option<(&'static str, WebhookUrl)>,
    /// The memory that the response to a read needs, in records of 64 KiB.
    pub records: u32,
    /// Whether what the operation writes is rolled back, so that its response says only what it would have done.
    pub is_dry_run: bool,
}

/// Parses a request for an operation.
///
/// # Errors
///
/// Returns what is wrong with its id, its query or its body.
pub fn parse(operation: &'static dyn AnyOperation, parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let RequestParts { query, body, event_kinds, .. } = *parts;
    let id = match operation.has_id {
        true => parse_uuid(parts.id.unwrap_or_default()).map_err(|issue| issue.on("id"))?,
        false => Uuid::nil(),
    };
    let parsed = operation.parse(Request { query, body, event_kinds }).map_err(|error| match error {
        InputError::Refused(error) => error.into(),
        InputError::UnknownParameter { name, meant } => Problem::UnknownParameter { name, meant },
    })?;
    let Outside { webhook, certificate, authority, stream } = parsed.outside;
    tls::check(certificate.as_ref(), authority.as_ref())?;
    if let Some(url) = &stream {
        streams::check_of_subscription(url)?;
    }
    let (if_none_match, base) = (parts.if_none_match.to_vec(), parts.base.to_owned());
    let call = Arc::new(OperationCall { operation, call: parsed.call, id, if_none_match, base });
    Ok(ParsedRequest { call, webhook_url: webhook, records: parsed.memory, is_dry_run: parsed.is_dry_run })
}

/// Returns the status of a successful response.
pub(super) fn status(success: Success) -> StatusCode {
    StatusCode::from_u16(success.status()).unwrap_or_default()
}

/// An operation with what was parsed of a request.
pub struct OperationCall {
    operation: &'static dyn AnyOperation,
    call: Arc<dyn Call>,
    id: Uuid,
    if_none_match: Vec<String>,
    base: String,
}

impl OperationCall {
    /// Runs the operation for a tenant inside a transaction, and makes the response. Of the platform API, a few concern no tenant
    /// and get a nil id. The store may call it again to repeat the transaction.
    ///
    /// # Errors
    ///
    /// The refusals of the rules, and [`Error::Store`].
    pub async fn run(&self, tx: &mut dyn Tx, tenant: TenantId) -> Result<ApiResponse, Error> {
        let operation = self.operation.about();
        let done = self.call.run(tx, tenant, self.id).await?;
        let (created, version) = (done.created, done.version.map(version_etag));
        // The client has the record, so it is not written out.
        if let Some(etag) = version.as_ref().filter(|etag| is_unmodified(&self.if_none_match, etag)) {
            return Ok(ApiResponse::not_modified(etag.clone()));
        }
        if operation.success == Success::NoContent {
            return Ok(ApiResponse::no_content());
        }
        let response = ApiResponse::of_json(status(operation.success), done.into_json()?);
        let location = created.map(|id| format!("{}/{}/{id}", self.base, operation.created_in));
        let response = ApiResponse { location, etag: version, ..response };
        match (operation.etag, operation.current) {
            (ETag::Retrieved, Some(get)) => {
                // No account is in the path that creates one.
                let id = created.unwrap_or(self.id);
                let tenant = if operation.has_account { tenant } else { TenantId(id) };
                let etag = Box::pin(retrieved_etag(tx, tenant, id, get, &self.base)).await?;
                Ok(ApiResponse { etag, ..response })
            }
            (ETag::Own | ETag::Version, _) if response.etag.is_none() => Ok(response.with_etag()),
            _ => Ok(response),
        }
    }
}

/// Returns the ETag with which `get` retrieves a record.
async fn retrieved_etag(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: Uuid,
    get: &'static dyn AnyOperation,
    base: &str,
) -> Result<Option<String>, Error> {
    let (id, event_kinds) = (id.to_string(), tx.env().event_kinds.clone());
    let (query, body, if_none_match) = ("", &[][..], &[][..]);
    let parts = RequestParts { id: Some(&id), query, body, if_none_match, base, event_kinds: &event_kinds };
    let get = parse(get, &parts).map_err(|_| StoreError::Internal("the id of a record is refused".to_owned()))?;
    Ok(get.call.run(tx, tenant).await?.etag)
}

#[cfg(test)]
pub(crate) mod tests;
