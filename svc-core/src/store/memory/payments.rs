//! Payments.

use async_trait::async_trait;

use super::{MemoryTx, insert};
use crate::error::StoreError;
use crate::resources::invoices::Payment;
use crate::store::PaymentRepository;
use crate::values::TenantId;

#[async_trait]
impl PaymentRepository for MemoryTx<'_> {
    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> Result<(), StoreError> {
        insert(&mut self.state_mut()?.payments, (tenant, payment.id), payment)
    }
}
