//! The repository of payments.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::resources::invoices::Payment;
use crate::values::TenantId;

/// Payments of invoices.
#[async_trait]
pub trait PaymentRepository: Send {
    /// Adds a payment.
    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> Result<(), StoreError>;
}
