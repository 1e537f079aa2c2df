//! Rows of webhook subscriptions, and the kinds of events that lead to them.

use svc_core::error::StoreError;
use svc_core::resources::crud::NoFilter;
use svc_core::values::TenantId;
use svc_core::webhooks::subscriptions::{EventHandling, WebhookSubscription};

use crate::sql::{Column as _, Param, SqlTx};
use crate::table::{Query, table};

const FORGET_KINDS: &str = "DELETE FROM subscription_kinds WHERE tenant_id = $1 AND subscription_id = $2";
const ADD_KIND: &str =
    "INSERT INTO subscription_kinds (tenant_id, kind, subscription_id, paused) VALUES ($1, $2, $3, $4)";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[FORGET_KINDS, ADD_KIND];

table!(WebhookSubscription, "subscriptions", soft_delete: true, [
    id, url, events, enabled, description, created_at, last_delivery_at, last_delivery_status, disabled_reason,
    paused_at, consecutive_failures, secret, previous_secret, previous_until, updated_at, deleted_at,
] {
    fn restrict(_filter: &NoFilter, _query: &mut Query) {}

    async fn after_write(&self, tx: &mut SqlTx<'_>, tenant: TenantId) -> Result<(), StoreError> {
        tx.pipeline(FORGET_KINDS, &[tenant.param(), self.id.param()]).await?;
        let paused = match self.event_handling() {
            EventHandling::Deliver => false,
            EventHandling::Hold => true,
            EventHandling::Ignore => return Ok(()),
        };
        for name in self.events.names() {
            let params = [tenant.param(), Param::Text(name.into()), self.id.param(), paused.param()];
            tx.pipeline(ADD_KIND, &params).await?;
        }
        Ok(())
    }
});
