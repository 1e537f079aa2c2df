//! The table of invoices.

use svc_core::resources::invoices::{Invoice, InvoiceFilter};
use svc_core::values::{Amount, TenantId};

use crate::column::Param;
use crate::table::{Query, ResourceTable, StartTable, record};

record!(Invoice, "invoices", key: [tenant_id, id], {
    extra: [tenant_id: TenantId],
    inserted: [id, created_at],
    updated: [
        invoice_number, contact_id, status, issue_date, due_date, total, currency, paid_at, updated_at, amount_paid,
    ],
    after_load: set_scale,
});

/// Amounts are stored in minor units of the currency.
fn set_scale(mut invoice: Invoice) -> Invoice {
    let scale = invoice.currency.scale();
    invoice.total = Amount::from_minor(invoice.total.minor(), scale);
    invoice.amount_paid = Amount::from_minor(invoice.amount_paid.minor(), scale);
    invoice
}

impl ResourceTable for Invoice {
    fn restrict(filter: &InvoiceFilter, query: &mut Query) {
        if let Some(status) = filter.status {
            query.equals("status", status.as_str().into());
        }
        if let Some(number) = &filter.number {
            query.equals("invoice_number", Param::Text(number.to_string().into()));
        }
    }
}

impl StartTable for Invoice {
    const START: &'static str = "due_date";
    const CONDITION: &'static str = " AND status <> 'draft' AND status <> 'paid' AND status <> 'cancelled'";
}
