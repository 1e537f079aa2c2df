//! The table of quotes.

use svc_core::resources::quotes::{Quote, QuoteFilter};
use svc_core::values::{Amount, TenantId};

use crate::table::{Query, ResourceTable, record};

record!(Quote, "quotes", key: [tenant_id, id], {
    extra: [tenant_id: TenantId],
    inserted: [id, created_at],
    updated: [quote_number, contact_id, status, issue_date, valid_until, total, currency, updated_at],
    after_load: set_scale,
});

/// The total is stored in minor units of the currency.
fn set_scale(mut quote: Quote) -> Quote {
    quote.total = Amount::from_minor(quote.total.minor(), quote.currency.scale());
    quote
}

impl ResourceTable for Quote {
    fn restrict(filter: &QuoteFilter, query: &mut Query) {
        if let Some(status) = filter.status {
            query.equals("status", status.as_str().into());
        }
    }
}
