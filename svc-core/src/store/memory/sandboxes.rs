//! Deletion of what a sandbox has.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{MemoryTx, Table, Tables};
use crate::accounts::keys::KeyId;
use crate::accounts::tenants::Tenant;
use crate::store::{SandboxRepository, SandboxRows, StoreResult};
use crate::values::TenantId;

/// The rows that a step may still delete.
struct Step {
    left: u32,
}

impl Step {
    fn delete<K: Ord + Clone, V: Clone>(&mut self, table: &mut Table<K, V>, is_unwanted: impl Fn(&K, &V) -> bool) {
        let deleted = table.take_first(self.left, is_unwanted);
        self.left = self.left.saturating_sub(u32::try_from(deleted).unwrap_or(u32::MAX));
    }

    fn delete_data(&mut self, state: &mut Tables, of: TenantId) {
        self.delete(&mut state.attempts, |((tenant, _), _), _| *tenant == of);
        self.delete(&mut state.pending_deliveries, |(endpoint, ..), _| endpoint.tenant_id == of);
        self.delete(&mut state.deliveries, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.endpoint_schedule, |endpoint, _| endpoint.tenant_id == of);
        self.delete(&mut state.endpoints_by_due_at, |(_, endpoint), _| endpoint.tenant_id == of);
        self.delete(&mut state.replays, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.event_actors, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.events, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.jobs, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.payments, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.invoices, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.quotes, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.bookings, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.contacts, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.numbers, |(tenant, _), _| *tenant == of);
        let grants = state.grants.keys().filter(|(tenant, _)| *tenant == of).map(|(_, id)| TenantId(id.uuid()));
        let grants: BTreeSet<TenantId> = grants.collect();
        self.delete(&mut state.responses, |(tenant, _), _| *tenant == of || grants.contains(tenant));
        self.delete(&mut state.request_log, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.search_texts, |(tenant, ..), _| *tenant == of);
        self.delete(&mut state.search_progress, |tenant, _| *tenant == of);
        self.delete(&mut state.shared_links, |_, (link, _)| link.tenant_id == of);
        self.delete(&mut state.uploads, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.stream_positions, |(tenant, _), _| *tenant == of);
    }

    fn delete_account(&mut self, state: &mut Tables, of: TenantId) {
        let keys = state.api_keys.iter().filter(|(_, (key, _))| key.tenant_id == of).map(|(id, _)| *id);
        let keys: BTreeSet<KeyId> = keys.collect();
        self.delete(&mut state.used_signatures, |(key, _), _| keys.contains(key));
        self.delete(&mut state.signatures_deleted_until, |key, _| keys.contains(key));
        self.delete(&mut state.reported_keys, |key, _| keys.contains(key));
        self.delete(&mut state.api_keys, |key, _| keys.contains(key));
        self.delete(&mut state.tokens, |_, token| token.tenant_id == of);
        self.delete(&mut state.codes, |_, code| code.tenant_id == of);
        self.delete(&mut state.grants, |(tenant, _), _| *tenant == of);
        self.delete_data(state, of);
        self.delete(&mut state.subscriptions, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.streams, |stream, _| stream.tenant_id == of);
        self.delete(&mut state.members, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.dashboard_links, |_, link| link.tenant_id == Some(of));
        self.delete(&mut state.sessions, |_, (session, _)| session.tenant_id == Some(of));
        self.delete(&mut state.audit_log, |(tenant, _), _| *tenant == of);
        self.delete(&mut state.overdue_checks, |tenant, _| *tenant == of);
        if self.left == 0 {
            return;
        }
        let viewing = state.sessions.iter().filter(|(_, (session, _))| session.viewed_tenant_id == Some(of));
        for id in viewing.map(|(id, _)| *id).collect::<Vec<_>>() {
            state.sessions.change(&id, |(session, _)| session.viewed_tenant_id = None);
        }
        state.clocks.take(&of);
        state.tenants.take(&of);
    }
}

impl Tables {
    /// Returns whether a tenant is the sandbox of an account.
    pub(super) fn is_sandbox(&self, tenant: TenantId) -> bool {
        self.tenants.get(&tenant).is_some_and(Tenant::is_sandbox)
    }
}

#[async_trait]
impl SandboxRepository for MemoryTx<'_> {
    async fn delete_sandbox_rows(&mut self, sandbox: TenantId, rows: SandboxRows, limit: u32) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let mut step = Step { left: limit };
        match rows {
            _ if !state.is_sandbox(sandbox) => {}
            SandboxRows::Data => step.delete_data(state, sandbox),
            SandboxRows::All => step.delete_account(state, sandbox),
        }
        Ok(u64::from(limit - step.left))
    }
}
