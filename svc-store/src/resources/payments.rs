//! The table of payments.

use std::ops::Range;
use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::resources::invoices::{InvoiceId, Payment, PaymentId};
use svc_core::store::{PaymentRepository, StoreResult};
use svc_core::values::{Amount, TenantId};

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow as _, record, select};

record!(Payment, "payments", key: [tenant_id, id], {
    extra: [tenant_id: TenantId],
    inserted: [id, invoice_id, amount, currency, paid_at, is_refund, method, reference],
    updated: [],
    after_load: set_scale,
});

/// The amount is stored in minor units of the currency.
fn set_scale(mut payment: Payment) -> Payment {
    payment.amount = Amount::from_minor(payment.amount.minor(), payment.currency.scale());
    payment
}

static OF_INVOICE: LazyLock<String> =
    LazyLock::new(|| select::<Payment>("WHERE tenant_id = $1 AND invoice_id = $2 ORDER BY id DESC LIMIT $3"));

/// Ids begin with their time, so that those of a range of times are a range of ids.
static IN_RANGE: LazyLock<String> =
    LazyLock::new(|| select::<Payment>("WHERE tenant_id = $1 AND id >= $2 AND id < $3 ORDER BY id DESC LIMIT $4"));

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&OF_INVOICE, &IN_RANGE]
}

#[async_trait]
impl PaymentRepository for SqlTx<'_> {
    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> StoreResult<()> {
        self.insert_record(&[tenant.param()], payment).await
    }

    async fn payments(&mut self, tenant: TenantId, invoice: InvoiceId, limit: u32) -> StoreResult<Vec<Payment>> {
        self.fetch(&OF_INVOICE, &[tenant.param(), invoice.param(), limit.param()], Payment::read).await
    }

    async fn payments_in(&mut self, tenant: TenantId, ids: Range<PaymentId>, limit: u32) -> StoreResult<Vec<Payment>> {
        let range = [tenant.param(), ids.start.param(), ids.end.param(), limit.param()];
        self.fetch(&IN_RANGE, &range, Payment::read).await
    }
}
