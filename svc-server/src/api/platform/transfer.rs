//! The operations that move records between accounts and other programs.

use http::{Method, StatusCode};
use svc_core::accounts::platform_keys::Area;
use svc_core::exports;
use svc_core::input::Input as _;
use svc_core::platform::{ExportPage, ExportParams};

use super::{ACCOUNT, one, operation};
use crate::api::handlers::{ParsedRequest, RequestParts};
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::routes::{Operation, Shape, inline, schema};

pub(super) fn transfers() -> Vec<Operation> {
    vec![operation(
        Area::Export,
        "exportRecords",
        (Method::GET, &format!("{ACCOUNT}/export")),
        "export",
        export,
        [
            "Export all records",
            "Returns a page of all records of the account: contacts, deleted ones included, then invoices, quotes, bookings \
             and jobs, each type in the order of its changes. A record comes after the contact that it refers to, also if \
             records change while you read the pages; what changes after its page was read is not returned again. To get \
             it, export once more with the time at which you began as `since`.",
            "A page of records.",
        ],
        Shape { query: const { &[inline::<ExportParams>] }, ..one(schema::<ExportPage>, StatusCode::OK) },
    )]
}

/// Handles `GET /accounts/{account_id}/export`.
fn export(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let params = parts.query(ExportParams::take)?;
    let limit = params.limit.unwrap_or_default().get();
    let export = ParsedRequest::new(move |tx, tenant| {
        let params = params.clone();
        Box::pin(async move { Ok(ApiResponse::json(StatusCode::OK, &exports::page(tx, tenant, &params).await?)?) })
    });
    Ok(export.reading(limit))
}
