//! When endpoints are due.

use async_trait::async_trait;

use super::{MemoryTx, Tables};
use crate::error::StoreError;
use crate::store::{Endpoint, EndpointSchedule};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::subscriptions::SubscriptionId;

impl Tables {
    fn set_due_at(&mut self, endpoint: Endpoint, due_at: Option<Timestamp>) {
        if let Some(before) = self.endpoint_schedule.get(&endpoint).copied() {
            self.endpoints_by_due_at.take(&(before, endpoint));
            self.endpoint_schedule.take(&endpoint);
        }
        if let Some(due_at) = due_at {
            self.endpoints_by_due_at.put((due_at, endpoint), ());
            self.endpoint_schedule.put(endpoint, due_at);
        }
    }
}

#[async_trait]
impl EndpointSchedule for MemoryTx<'_> {
    async fn due_endpoints(
        &mut self,
        now: Timestamp,
        except: &[TenantId],
        limit: u32,
    ) -> Result<Vec<Endpoint>, StoreError> {
        let due = self.state.endpoints_by_due_at.keys().take_while(|(due_at, _)| *due_at <= now);
        let due = due.filter(|(_, endpoint)| !except.contains(&endpoint.tenant_id));
        Ok(due.take(limit as usize).map(|(_, endpoint)| *endpoint).collect())
    }

    async fn scheduled_endpoints(&mut self, after: Option<Endpoint>, limit: u32) -> Result<Vec<Endpoint>, StoreError> {
        let endpoints = self.state.endpoint_schedule.keys().filter(|endpoint| Some(**endpoint) > after);
        Ok(endpoints.take(limit as usize).copied().collect())
    }

    async fn next_endpoint_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state.endpoints_by_due_at.keys().next().map(|(due_at, _)| *due_at))
    }

    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let endpoint = Endpoint { tenant_id: tenant, subscription_id: subscription };
        self.state_mut()?.set_due_at(endpoint, due_at);
        Ok(())
    }

    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Timestamp,
    ) -> Result<(), StoreError> {
        let endpoint = Endpoint { tenant_id: tenant, subscription_id: subscription };
        let state = self.state_mut()?;
        if state.endpoint_schedule.get(&endpoint).is_none_or(|scheduled| due_at < *scheduled) {
            state.set_due_at(endpoint, Some(due_at));
        }
        self.delivery_wakeup.mark();
        Ok(())
    }
}
