//! Rows of quotes.

use svc_core::resources::quotes::{Quote, QuoteFilter};
use svc_core::values::Amount;

use crate::table::{Query, table};

table!(Quote, "quotes", soft_delete: false, [
    id, quote_number, contact_id, status, issue_date, valid_until, total, currency, created_at, updated_at,
] {
    fn restrict(filter: &QuoteFilter, query: &mut Query) {
        if let Some(status) = filter.status {
            query.equals("status", status.as_str().into());
        }
    }

    fn after_load(mut self) -> Self {
        self.total = Amount::from_minor(self.total.minor(), self.currency.scale());
        self
    }
});
