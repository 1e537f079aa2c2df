//! Invoices as the platform API returns them: with the amount paid, which the public API does not have.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::input::Input as _;
use svc_core::resources::crud;
use svc_core::resources::invoices::{Invoice, InvoiceFilter};
use svc_core::resources::pages::{ListParams, Page};
use svc_core::values::Amount;

use crate::api::handlers::{ParsedRequest, RequestParts};
use crate::api::platform::handlers::get_with;
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;

/// An invoice with its payments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct InvoiceWithPayments {
    /// The invoice.
    #[serde(flatten)]
    invoice: Invoice,
    /// The amount paid so far, less refunds, in `currency`.
    amount_paid: Amount,
}

impl From<Invoice> for InvoiceWithPayments {
    fn from(invoice: Invoice) -> Self {
        Self { amount_paid: invoice.amount_paid, invoice }
    }
}

/// The invoices that became overdue in one step of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MarkedInvoices {
    /// The invoices that became overdue.
    pub(super) data: Vec<InvoiceWithPayments>,
    /// Where the check goes on: send it as `next` in the next request. Null after the last step.
    pub(super) next: Option<String>,
}

/// Handles `GET /accounts/{account_id}/invoices/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub(super) fn get(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    get_with(parts, move |tx, tenant| {
        Box::pin(async move { crud::get::<Invoice>(tx, tenant, id).await.map(InvoiceWithPayments::from) })
    })
}

/// Handles `GET /accounts/{account_id}/invoices`.
///
/// # Errors
///
/// Fails when a query parameter is unknown or not valid.
pub(super) fn list(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let (params, filter) = parts.query(|fields| {
        let (params, filter) = (ListParams::take(fields), InvoiceFilter::take(fields));
        params.zip(filter)
    })?;
    let limit = params.limit.unwrap_or_default().get();
    let list = ParsedRequest::new(move |tx, tenant| {
        let (params, filter) = (params.clone(), filter.clone());
        Box::pin(async move {
            let Page { data, next_cursor, .. } = crud::list::<Invoice>(tx, tenant, &params, &filter).await?;
            let data = data.into_iter().map(InvoiceWithPayments::from).collect();
            Ok(ApiResponse::json(StatusCode::OK, &Page::new(data, next_cursor))?)
        })
    });
    Ok(list.reading(limit))
}
