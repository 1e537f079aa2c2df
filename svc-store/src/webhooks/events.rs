//! Events, who wants them, and payments.

use async_trait::async_trait;
use serde_json::value::RawValue;
use svc_core::env;
use svc_core::error::StoreError;
use svc_core::resources::invoices::Payment;
use svc_core::store::Outbox;
use svc_core::values::EventKind;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::MatchedSubscription;
use svc_core::webhooks::events::Event;
use uuid::Uuid;

use crate::sql::{Cells, Column as _, Param, SqlTx};

const MATCHES: &str = "SELECT subscription_id, paused FROM subscription_kinds \
     WHERE tenant_id = $1 AND kind IN ($2, '*') ORDER BY subscription_id";
const INSERT_EVENT: &str = "INSERT INTO events (tenant_id, id, kind, data, created_at, only_for, actor) \
     VALUES ($1, $2, $3, $4, $5, $6, $7)";
const EVENTS: &str = "SELECT id, tenant_id, kind, data, created_at, only_for FROM events \
     WHERE tenant_id = $1 AND id >= $2 ORDER BY id LIMIT $3";
const EVENT: &str = "SELECT id, tenant_id, kind, data, created_at, only_for FROM events \
     WHERE tenant_id = $1 AND id = $2";
const CAUSED: &str = "SELECT id, tenant_id, kind, data, created_at, only_for, actor FROM events \
     WHERE tenant_id = $1 AND id >= $2 ORDER BY id DESC LIMIT $3";
const INSERT_PAYMENT: &str = "INSERT INTO payments (tenant_id, id, invoice_id, amount, currency, paid_at) \
     VALUES ($1, $2, $3, $4, $5, $6)";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[MATCHES, INSERT_EVENT, EVENTS, EVENT, CAUSED, INSERT_PAYMENT];

pub(crate) fn read_event(cells: &mut Cells<'_>) -> Result<Event, StoreError> {
    Ok(Event {
        id: cells.take()?,
        tenant_id: cells.take()?,
        kind: cells.take()?,
        data: RawValue::from_string(cells.take()?).map_err(|error| StoreError::Corrupt {
            table: "events",
            column: "data",
            reason: error.to_string(),
        })?,
        created_at: cells.take()?,
        only_for: cells.take()?,
    })
}

/// An event, and who caused it.
pub(crate) fn read_caused(cells: &mut Cells<'_>) -> Result<(Event, Option<String>), StoreError> {
    Ok((read_event(cells)?, cells.take()?))
}

#[async_trait]
impl Outbox for SqlTx<'_> {
    async fn matches(&mut self, tenant: TenantId, kind: EventKind) -> Result<Vec<MatchedSubscription>, StoreError> {
        let read =
            |cells: &mut Cells<'_>| Ok(MatchedSubscription { subscription_id: cells.take()?, paused: cells.take()? });
        self.fetch(MATCHES, &[tenant.param(), kind.param()], "subscription_kinds", read).await
    }

    async fn insert_event(&mut self, event: &Event) -> Result<(), StoreError> {
        let params = [
            event.tenant_id.param(),
            event.id.param(),
            event.kind.param(),
            Param::Text(event.data.get().into()),
            event.created_at.param(),
            event.only_for.param(),
            Param::Text(self.actor.to_string().into()),
        ];
        self.pipeline(INSERT_EVENT, &params).await
    }

    async fn caused(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(Event, Option<String>)>, StoreError> {
        let first: Uuid = env::first_id_at(since);
        self.fetch(CAUSED, &[tenant.param(), first.param(), limit.param()], "events", read_caused).await
    }

    async fn events(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> Result<Vec<Event>, StoreError> {
        let first: Uuid = env::first_id_at(after.next());
        self.fetch(EVENTS, &[tenant.param(), first.param(), limit.param()], "events", read_event).await
    }

    async fn event(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Event>, StoreError> {
        self.fetch_one(EVENT, &[tenant.param(), id.param()], "events", read_event).await
    }

    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> Result<(), StoreError> {
        let params = [
            tenant.param(),
            payment.id.param(),
            payment.invoice_id.param(),
            payment.amount.param(),
            payment.currency.param(),
            payment.paid_at.param(),
        ];
        self.pipeline(INSERT_PAYMENT, &params).await
    }
}
