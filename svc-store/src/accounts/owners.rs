//! The tenants of records, each found by an index of ids.

use async_trait::async_trait;
use svc_core::store::{OwnedKind, OwnerRepository, StoreResult};
use svc_core::values::TenantId;
use uuid::Uuid;

use crate::column::Column as _;
use crate::sql::SqlTx;

const OF_INVOICE: &str = "SELECT tenant_id FROM invoices WHERE id = $1 ORDER BY tenant_id";
const OF_QUOTE: &str = "SELECT tenant_id FROM quotes WHERE id = $1 ORDER BY tenant_id";
const OF_SUBSCRIPTION: &str = "SELECT tenant_id FROM subscriptions WHERE id = $1 ORDER BY tenant_id";
const OF_DELIVERY: &str = "SELECT tenant_id FROM deliveries WHERE id = $1 ORDER BY tenant_id";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![OF_INVOICE, OF_QUOTE, OF_SUBSCRIPTION, OF_DELIVERY]
}

#[async_trait]
impl OwnerRepository for SqlTx<'_> {
    async fn owners(&mut self, kind: OwnedKind, id: Uuid) -> StoreResult<Vec<TenantId>> {
        let (sql, table) = match kind {
            OwnedKind::Invoice => (OF_INVOICE, "invoices"),
            OwnedKind::Quote => (OF_QUOTE, "quotes"),
            OwnedKind::Subscription => (OF_SUBSCRIPTION, "subscriptions"),
            OwnedKind::Delivery => (OF_DELIVERY, "deliveries"),
        };
        self.fetch(sql, &[id.param()], |cells| cells.take(table, "tenant_id")).await
    }
}
