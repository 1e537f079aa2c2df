//! An operation with what was parsed of a request, and the response that it makes in a transaction.

use http::StatusCode;
use svc_core::error::{Error, StoreError};
use svc_core::operation::{AnyOperation, ETag, InputError, Parsed, Request, Success};
use svc_core::store::Tx;
use svc_core::values::{TenantId, parse_uuid};
use uuid::Uuid;

use crate::deliver::tls;
use crate::kernel::problem::Problem;
use crate::kernel::response::{ApiResponse, is_unmodified, version_etag};
use crate::streams;

/// An operation with what was parsed of a request.
pub struct OperationCall {
    pub(super) operation: &'static dyn AnyOperation,
    pub(super) parsed: Parsed,
    /// The `{id}` of the path, nil if it has none.
    pub(super) id: Uuid,
    /// The tags of `If-None-Match`, of a read.
    pub(super) if_none_match: Vec<String>,
    /// The path in front of the paths of the operations, for `Location`, such as `/api/v1`.
    pub(super) base: String,
}

/// Returns the status of a successful response.
pub(super) fn status(success: Success) -> StatusCode {
    StatusCode::from_u16(success.status()).unwrap_or_default()
}

impl OperationCall {
    /// Parses a request for an operation, with the `{id}` of its path.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with its id, its query or its body.
    pub fn parse(
        operation: &'static dyn AnyOperation,
        id: Option<&str>,
        request: Request<'_>,
    ) -> Result<Self, Problem> {
        let id = match operation.has_id {
            true => parse_uuid(id.unwrap_or_default()).map_err(|issue| issue.on("id"))?,
            false => Uuid::nil(),
        };
        let parsed = operation.parse(request).map_err(|error| match error {
            InputError::Refused(error) => error.into(),
            InputError::UnknownParameter { name, meant } => Problem::UnknownParameter { name, meant },
        })?;
        tls::check(parsed.outside.certificate.as_ref(), parsed.outside.authority.as_ref())?;
        if let Some(url) = &parsed.outside.stream {
            streams::check_of_subscription(url)?;
        }
        Ok(Self { operation, parsed, id, if_none_match: Vec::new(), base: String::new() })
    }

    /// Runs the operation for a tenant inside a transaction, and makes the response. Of the platform API, a few concern no tenant
    /// and get a nil id. The store may call it again to repeat the transaction.
    ///
    /// # Errors
    ///
    /// The refusals of the rules, and [`Error::Store`].
    pub async fn run(&self, tx: &mut dyn Tx, tenant: TenantId) -> Result<ApiResponse, Error> {
        let operation = self.operation.about();
        let done = self.parsed.call.run(tx, tenant, self.id).await?;
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
                let etag = Box::pin(retrieved_etag(tx, tenant, id, get)).await?;
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
) -> Result<Option<String>, Error> {
    let (id, event_kinds) = (id.to_string(), tx.env().event_kinds.clone());
    let call = OperationCall::parse(get, Some(&id), Request { query: "", body: &[], event_kinds: &event_kinds })
        .map_err(|_| StoreError::Internal("the id of a record is refused".to_owned()))?;
    Ok(call.run(tx, tenant).await?.etag)
}

#[cfg(test)]
pub(crate) mod tests;
