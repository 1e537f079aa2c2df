//! The operations that move records between accounts and other programs.

use std::sync::Arc;

use http::{Method, StatusCode};
use svc_core::accounts::platform_keys::Area;
use svc_core::exports;
use svc_core::imports::{AccountRecord, Batch, Import};
use svc_core::input::Input as _;
use svc_core::platform::{ExportPage, ExportParams, ImportCreate, ImportKind, ImportReport, ImportedRow};
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;

use super::{ACCOUNT, one, operation};
use crate::api::handlers::{Data, ParsedRequest, RequestParts};
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::routes::{Operation, Shape, inline, schema, wrapped};

pub(super) fn transfers() -> Vec<Operation> {
    vec![
        operation(
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
        ),
        operation(
            Area::Import,
            "importRecords",
            (Method::POST, &format!("{ACCOUNT}/import")),
            "import",
            import,
            [
                "Import records",
                "Adds a batch of records in one transaction, and says of each row what came of it. A row that is refused does \
             not keep the others from being imported. A row is recognised by its `id`, else by its email address or number, \
             else by all of its fields: so repeating an import adds nothing, and continues one that ended early.\n\n\
             `all` takes records as an export returned them, in that order, and keeps their ids, numbers and times. They \
             fire no events. To move an account, import into one without records.",
                "What came of each row.",
            ],
            Shape { body: Some(schema::<ImportCreate>), ..one(wrapped::<ImportReport>, StatusCode::OK) },
        ),
    ]
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

/// Handles `POST /accounts/{account_id}/import`.
fn import(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    parts.no_query()?;
    let input = ImportCreate::from_body(parts.body)?;
    match input.kind {
        ImportKind::Contacts => import_of::<Contact>(input),
        ImportKind::Invoices => import_of::<Invoice>(input),
        ImportKind::All => import_of::<AccountRecord>(input),
    }
}

fn import_of<R: Import>(input: ImportCreate) -> Result<ParsedRequest, Problem> {
    let options = input.options()?;
    let is_dry_run = input.dry_run.unwrap_or_default();
    let batch = Arc::new(Batch::<R>::new(input.rows.0));
    let import = ParsedRequest::new(move |tx, tenant| {
        let batch = Arc::clone(&batch);
        Box::pin(async move {
            let webhooks = match R::EVENT.filter(|_| options.events) {
                Some(event) => tx.matching_subscriptions(tenant, event).await?.len(),
                None => 0,
            };
            let results = batch.put(tx, tenant, options).await?;
            let rows = results.into_iter().map(ImportedRow::from).collect();
            let report = ImportReport { rows, webhooks: u32::try_from(webhooks).unwrap_or(u32::MAX) };
            Ok(ApiResponse::json(StatusCode::OK, &Data { data: report })?)
        })
    });
    Ok(ParsedRequest { is_dry_run, ..import })
}
