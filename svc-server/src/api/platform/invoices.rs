//! The operations on invoices. The platform API returns them with the amount paid, which the public API does not have.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use svc_core::error::Issue;
use svc_core::input::Input;
use svc_core::pages::{ListParams, Page};
use svc_core::platform::{OverdueCheck, PaymentAmount};
use svc_core::resources::crud;
use svc_core::resources::invoices::{
    self, Invoice, InvoiceCreate, InvoiceFilter, InvoiceId, InvoiceUpdate, OverduePosition,
};
use svc_core::store::Tx;
use svc_core::values::{Amount, TenantId};

use crate::api::handlers::{ParsedRequest, RequestParts};
use crate::api::platform::handlers::{Work, get_with, step_as, with_record_as};
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

/// Responds to a step of an invoice that takes no input.
fn step(
    parts: &RequestParts<'_>,
    run: for<'t> fn(&'t mut dyn Tx, TenantId, InvoiceId) -> Work<'t, Invoice>,
) -> Result<ParsedRequest, Problem> {
    step_as::<Invoice, Invoice, InvoiceWithPayments>(parts, run, true)
}

/// Responds with the invoice that a request with a body makes or changes.
fn with_input<I: Input + Clone>(
    parts: &RequestParts<'_>,
    status: StatusCode,
    run: impl for<'t> Fn(&'t mut dyn Tx, TenantId, I) -> Work<'t, Invoice> + Clone + Send + Sync + 'static,
) -> Result<ParsedRequest, Problem> {
    with_record_as::<Invoice, InvoiceWithPayments, I>(parts, status, run)
}

/// Handles `POST /accounts/{account_id}/invoices`.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub(super) fn create(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    with_input(parts, StatusCode::CREATED, |tx, tenant, input: InvoiceCreate| {
        Box::pin(invoices::create(tx, tenant, input))
    })
}

/// Handles `PATCH /accounts/{account_id}/invoices/{id}`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub(super) fn update(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    with_input(parts, StatusCode::OK, move |tx, tenant, change: InvoiceUpdate| {
        Box::pin(invoices::update(tx, tenant, id, change))
    })
}

/// Handles `POST /accounts/{account_id}/invoices/{id}/send`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub(super) fn send(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    step(parts, |tx, tenant, id| Box::pin(invoices::send(tx, tenant, id)))
}

/// Handles `POST /accounts/{account_id}/invoices/{id}/view`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub(super) fn view(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    step(parts, |tx, tenant, id| Box::pin(invoices::view(tx, tenant, id)))
}

/// Handles `POST /accounts/{account_id}/invoices/{id}/resend`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub(super) fn resend(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    step(parts, |tx, tenant, id| Box::pin(invoices::resend(tx, tenant, id)))
}

/// Handles `POST /accounts/{account_id}/invoices/{id}/void`.
///
/// # Errors
///
/// Fails when the id is malformed or there is a query parameter.
pub(super) fn void(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    step(parts, |tx, tenant, id| Box::pin(invoices::void(tx, tenant, id)))
}

/// Handles `POST /accounts/{account_id}/invoices/{id}/pay`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub(super) fn pay(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    with_input(parts, StatusCode::OK, move |tx, tenant, input: PaymentAmount| {
        Box::pin(invoices::pay(tx, tenant, id, input.amount))
    })
}

/// Handles `POST /accounts/{account_id}/invoices/{id}/refund`.
///
/// # Errors
///
/// Fails when the id is malformed, the body is not valid or there is a query parameter.
pub(super) fn refund(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    let id = parts.id()?;
    with_input(parts, StatusCode::OK, move |tx, tenant, input: PaymentAmount| {
        Box::pin(invoices::refund(tx, tenant, id, input.amount))
    })
}

/// Handles `POST /accounts/{account_id}/invoices/mark-overdue`: one step of the check, so that no transaction is long.
///
/// # Errors
///
/// Fails when the body is not valid or there is a query parameter.
pub(super) fn mark_overdue(parts: &RequestParts<'_>) -> Result<ParsedRequest, Problem> {
    parts.no_query()?;
    let from = match OverdueCheck::from_body(parts.body)?.next {
        None => OverduePosition::default(),
        Some(next) => next.as_str().parse().map_err(|issue: Issue| issue.on("next"))?,
    };
    Ok(ParsedRequest::new(move |tx, tenant| {
        Box::pin(async move {
            let (data, next) = invoices::overdue(tx, tenant, from).await?;
            let data = data.into_iter().map(InvoiceWithPayments::from).collect();
            let marked = MarkedInvoices { data, next: next.map(|position| position.to_string()) };
            Ok(ApiResponse::json(StatusCode::OK, &marked)?)
        })
    }))
}
