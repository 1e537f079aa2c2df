//! Marking of invoices that were not paid in time.

use super::{Invoice, InvoiceFilter, InvoiceStatus, store_change};
use crate::accounts::tenants;
use crate::error::Error;
use crate::resources::crud::{self, advance_clock};
use crate::resources::pages::{ListQuery, Order};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{TenantId, Timestamp};

/// The greatest number of invoices that one step reads, so that each step is a short transaction.
pub const OVERDUE_STEP: u32 = 200;

/// The statuses of an invoice that can become overdue.
const UNPAID: [InvoiceStatus; 3] = [InvoiceStatus::Sent, InvoiceStatus::Viewed, InvoiceStatus::Partial];

/// The position of a walk over the invoices of a tenant. The default is the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverduePosition {
    /// Index of the status in [`UNPAID`] whose invoices are read.
    status: usize,
    /// The `created_at` of the last invoice that was read with this status.
    before: Option<Timestamp>,
}

/// Takes one step of the walk that marks invoices as overdue. Returns the invoices that changed, and the position of the
/// next step, or `None` after the last.
///
/// The step reads the next [`OVERDUE_STEP`] invoices that are sent, viewed or paid in part. Those with a due date before
/// today in the tenant's time zone become `overdue` and fire `invoice.updated`.
///
/// # Errors
/// [`Error::NotFound`] if there is no such tenant.
pub async fn overdue(
    tx: &mut dyn Tx,
    tenant: TenantId,
    from: OverduePosition,
) -> Result<(Vec<Invoice>, Option<OverduePosition>), Error> {
    let settings = tenants::get(tx, tenant).await?;
    let Some(status) = UNPAID.get(from.status).copied() else {
        return Ok((Vec::new(), None));
    };
    let filter = InvoiceFilter { status: Some(status), number: None };
    let order = Order::NewestFirst { before: from.before };
    let rows = Repository::<Invoice>::list(tx, tenant, &ListQuery { limit: OVERDUE_STEP, order, filter }).await?;
    let next = if rows.len() < OVERDUE_STEP as usize {
        OverduePosition { status: from.status + 1, before: None }
    } else {
        OverduePosition { before: rows.last().map(|last| last.created_at), ..from }
    };

    let today = settings.time_zone.date_at(tx.env().now());
    let is_due = |invoice: &Invoice| {
        UNPAID.contains(&invoice.status) && invoice.due_date.is_some_and(|due_date| due_date < today)
    };
    let mut changed = Vec::new();
    for row in rows.into_iter().filter(is_due) {
        let now = advance_clock(tx, tenant).await?;
        // Until `advance_clock` locked the tenant, another transaction may have changed the invoice. Read it again.
        let mut invoice: Invoice = crud::get(tx, tenant, row.id).await?;
        if is_due(&invoice) {
            invoice.status = InvoiceStatus::Overdue;
            store_change(tx, tenant, now, &mut invoice, &[EventKind::InvoiceUpdated]).await?;
            changed.push(invoice);
        }
    }
    Ok((changed, (next.status < UNPAID.len()).then_some(next)))
}
