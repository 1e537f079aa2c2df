//! The table of payments.

use async_trait::async_trait;
use svc_core::resources::invoices::Payment;
use svc_core::store::{PaymentRepository, StoreResult};
use svc_core::values::{Amount, TenantId};

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::record;

record!(Payment, "payments", key: [tenant_id, id], {
    extra: [tenant_id: TenantId],
    inserted: [id, invoice_id, amount, currency, paid_at],
    updated: [],
    after_load: set_scale,
});

/// The amount is stored in minor units of the currency.
fn set_scale(mut payment: Payment) -> Payment {
    payment.amount = Amount::from_minor(payment.amount.minor(), payment.currency.scale());
    payment
}

#[async_trait]
impl PaymentRepository for SqlTx<'_> {
    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> StoreResult<()> {
        self.insert_record(&[tenant.param()], payment).await
    }
}
