//! Invoices that were not paid in time.

use super::{Invoice, InvoiceFilter, InvoiceStatus, store_change};
use crate::accounts::tenants;
use crate::error::Error;
use crate::resources::crud::{self, advance_clock};
use crate::resources::pages::{ListQuery, Order};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{TenantId, Timestamp};

/// Most invoices that one step looks at, so that each is a short transaction.
pub const OVERDUE_STEP: u32 = 200;

/// The states of an invoice that waits for its money.
const WAITING: [InvoiceStatus; 3] = [InvoiceStatus::Sent, InvoiceStatus::Viewed, InvoiceStatus::Partial];

/// How far a walk over the invoices of a tenant has come. The default is its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverduePosition {
    state: usize,
    before: Option<Timestamp>,
}

/// One step of the walk: of the next [`OVERDUE_STEP`] invoices that are sent, viewed or paid in part, those whose
/// due date lies before today in the tenant's time zone become `overdue` and fire `invoice.updated`. Returns them, and
/// where to go on; `None` at the end.
///
/// # Errors
/// [`Error::NotFound`] without such a tenant.
pub async fn overdue(
    tx: &mut dyn Tx,
    tenant: TenantId,
    from: OverduePosition,
) -> Result<(Vec<Invoice>, Option<OverduePosition>), Error> {
    let settings = tenants::get(tx, tenant).await?;
    let Some(status) = WAITING.get(from.state).copied() else {
        return Ok((Vec::new(), None));
    };
    let filter = InvoiceFilter { status: Some(status), number: None };
    let order = Order::NewestFirst { before: from.before };
    let rows = Repository::<Invoice>::list(tx, tenant, &ListQuery { limit: OVERDUE_STEP, order, filter }).await?;
    let next = if rows.len() < OVERDUE_STEP as usize {
        OverduePosition { state: from.state + 1, before: None }
    } else {
        OverduePosition { before: rows.last().map(|last| last.created_at), ..from }
    };

    let today = settings.time_zone.date_at(tx.env().now());
    let is_due = |invoice: &Invoice| {
        WAITING.contains(&invoice.status) && invoice.due_date.is_some_and(|due_date| due_date < today)
    };
    let mut changed = Vec::new();
    for row in rows.into_iter().filter(is_due) {
        let now = advance_clock(tx, tenant).await?;
        // The tick holds the tenant: another transaction may have changed the invoice until then.
        let mut invoice: Invoice = crud::get(tx, tenant, row.id).await?;
        if is_due(&invoice) {
            invoice.status = InvoiceStatus::Overdue;
            store_change(tx, tenant, now, &mut invoice, &[EventKind::InvoiceUpdated]).await?;
            changed.push(invoice);
        }
    }
    Ok((changed, (next.state < WAITING.len()).then_some(next)))
}
