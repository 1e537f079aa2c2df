//! Tenants, and to which of them a record belongs.

use async_trait::async_trait;
use uuid::Uuid;

use super::{Key, MemoryTx, conflict, of_tenant};
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::store::{OwnedKind, OwnerRepository, StoreResult, TenantRepository};
use crate::values::{TenantId, Timestamp};

#[async_trait]
impl TenantRepository for MemoryTx<'_> {
    async fn tenant(&mut self, id: TenantId) -> StoreResult<Option<Tenant>> {
        Ok(self.state.tenants.get(&id).cloned())
    }

    async fn tenants(&mut self, after: Option<TenantId>, limit: u32, sandboxes: bool) -> StoreResult<Vec<Tenant>> {
        let following = self.state.tenants.values().filter(|tenant| Some(tenant.id) > after);
        let following = following.filter(|tenant| sandboxes || !tenant.is_sandbox());
        Ok(following.take(limit as usize).cloned().collect())
    }

    async fn insert_tenant(&mut self, tenant: &Tenant) -> StoreResult<()> {
        let state = self.state_mut()?;
        if !state.tenants.add(tenant.id, tenant.clone()) {
            return Err(conflict("id"));
        }
        state.clocks.put(tenant.id, tenant.created_at);
        state.overdue_checks.put(tenant.id, tenant.created_at);
        Ok(())
    }

    async fn update_tenant(&mut self, tenant: &Tenant) -> StoreResult<()> {
        self.state_mut()?.tenants.change(&tenant.id, |stored| *stored = tenant.clone());
        Ok(())
    }

    async fn advance_clock(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        let wall = self.env.now();
        let clocks = &mut self.state_mut()?.clocks;
        clocks.change(&tenant, |clock| *clock = wall.max(clock.next()));
        Ok(clocks.get(&tenant).copied())
    }

    async fn lock_tenant(&mut self, tenant: TenantId) -> StoreResult<bool> {
        Ok(self.state.tenants.contains_key(&tenant))
    }

    async fn clock(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        Ok(self.state.clocks.get(&tenant).copied())
    }

    async fn tenants_ahead(
        &mut self,
        latest: Timestamp,
        after: Option<TenantId>,
        limit: u32,
    ) -> StoreResult<Vec<TenantId>> {
        let following = self.state.tenants.keys().filter(|id| Some(**id) > after);
        let ahead = following.filter(|id| self.state.clocks.get(id).is_some_and(|clock| *clock > latest));
        Ok(ahead.take(limit as usize).copied().collect())
    }

    async fn latest_time(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        let state = &*self.state;
        let mut times: Vec<Timestamp> = Vec::new();
        times.extend(of_tenant(&state.contacts, tenant).map(|row| row.updated_at));
        times.extend(of_tenant(&state.invoices, tenant).map(|row| row.updated_at));
        times.extend(of_tenant(&state.bookings, tenant).map(|row| row.updated_at));
        times.extend(of_tenant(&state.quotes, tenant).map(|row| row.updated_at));
        times.extend(of_tenant(&state.jobs, tenant).map(|row| row.updated_at));
        for row in of_tenant(&state.subscriptions, tenant) {
            times.extend([Some(row.updated_at), row.stopped_at, row.deleted_at].into_iter().flatten());
        }
        times.extend(of_tenant(&state.events, tenant).map(|row| row.created_at));
        times.extend(of_tenant(&state.replays, tenant).map(|row| row.created_at));
        times.extend(state.api_keys.values().filter(|(key, _)| key.tenant_id == tenant).map(|(key, _)| key.created_at));
        Ok(times.into_iter().max())
    }

    async fn set_clock(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()> {
        let state = self.state_mut()?;
        state.clocks.change(&tenant, |clock| *clock = at);
        state.search_progress.change(&tenant, |until| *until = at.min(*until));
        state.set_back_streams(tenant, at);
        Ok(())
    }

    async fn tenants_to_check_overdue(
        &mut self,
        now: Timestamp,
        latest: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<TenantId>> {
        let checks = self.state.tenants.keys().filter_map(|id| Some((*self.state.overdue_checks.get(id)?, *id)));
        let mut due: Vec<_> = checks.filter(|(at, _)| *at <= now || *at > latest).collect();
        due.sort_unstable();
        Ok(due.into_iter().take(limit as usize).map(|(_, id)| id).collect())
    }

    async fn overdue_check_at(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        Ok(self.state.overdue_checks.get(&tenant).copied())
    }

    async fn set_overdue_check_at(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()> {
        self.state_mut()?.overdue_checks.change(&tenant, |check_at| *check_at = at);
        Ok(())
    }

    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> StoreResult<u64> {
        let numbers = &mut self.state_mut()?.numbers;
        let number = numbers.get(&(tenant, kind)).copied().unwrap_or_default() + 1;
        numbers.put((tenant, kind), number);
        Ok(number)
    }

    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> StoreResult<()> {
        let numbers = &mut self.state_mut()?.numbers;
        let last = numbers.get(&(tenant, kind)).copied().unwrap_or_default();
        numbers.put((tenant, kind), last.max(number));
        Ok(())
    }
}

#[async_trait]
impl OwnerRepository for MemoryTx<'_> {
    async fn owners(&mut self, kind: OwnedKind, id: Uuid) -> StoreResult<Vec<TenantId>> {
        let state = &self.state;
        let keys: Vec<(TenantId, Uuid)> = match kind {
            OwnedKind::Invoice => plain(state.invoices.keys()),
            OwnedKind::Quote => plain(state.quotes.keys()),
            OwnedKind::Subscription => plain(state.subscriptions.keys()),
            OwnedKind::Delivery => plain(state.deliveries.keys()),
        };
        Ok(keys.into_iter().filter(|(_, other)| *other == id).map(|(tenant, _)| tenant).collect())
    }
}

/// Returns the keys of a table without the types of their ids.
fn plain<'k, R: 'k>(keys: impl Iterator<Item = &'k Key<R>>) -> Vec<(TenantId, Uuid)> {
    keys.map(|(tenant, id)| (*tenant, id.uuid())).collect()
}
