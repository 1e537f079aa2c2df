//! Rows of invoices.

use svc_core::resources::invoices::{Invoice, InvoiceFilter};
use svc_core::values::Amount;

use crate::sql::Param;
use crate::table::{Query, table};

table!(Invoice, "invoices", soft_delete: false, [
    id, invoice_number, contact_id, status, issue_date, due_date, total, currency, paid_at, created_at, updated_at,
    amount_paid,
] {
    fn restrict(filter: &InvoiceFilter, query: &mut Query) {
        if let Some(status) = filter.status {
            query.equals("status", status.as_str().into());
        }
        if let Some(number) = &filter.number {
            query.equals("invoice_number", Param::Text(number.to_string().into()));
        }
    }

    fn after_load(mut self) -> Self {
        self.total = Amount::from_minor(self.total.minor(), self.currency.scale());
        self.amount_paid = Amount::from_minor(self.amount_paid.minor(), self.currency.scale());
        self
    }
});
