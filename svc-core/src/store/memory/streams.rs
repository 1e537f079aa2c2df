//! Streams, their leases, and how far each of them has come in each account.

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, Tables};
use crate::store::{StoreResult, StreamRepository};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::streams::{AccountBehind, Stream, StreamKey};

impl Tables {
    fn position(&self, stream: &Stream, tenant: TenantId) -> Timestamp {
        self.stream_positions.get(&(tenant, stream.id)).copied().unwrap_or(stream.begins_at)
    }

    /// Sets the positions of streams in a tenant back to `at`, where they are later.
    pub(super) fn set_back_streams(&mut self, tenant: TenantId, at: Timestamp) {
        let of_tenant = self.streams.range(..).map(|(_, stream)| stream.clone());
        let later = of_tenant.filter(|stream| stream.key() == StreamKey::SERVER || stream.tenant_id == tenant);
        let later: Vec<_> = later.filter(|stream| self.position(stream, tenant) > at).map(|stream| stream.id).collect();
        later.into_iter().for_each(|stream| self.stream_positions.put((tenant, stream), at));
    }

    fn is_behind(&self, stream: &Stream, tenant: TenantId) -> bool {
        self.clocks.get(&tenant).is_some_and(|clock| *clock > self.position(stream, tenant))
    }
}

#[async_trait]
impl StreamRepository for MemoryTx<'_> {
    async fn insert_stream(&mut self, stream: &Stream) -> StoreResult<()> {
        self.state_mut()?.streams.add(stream.key(), stream.clone());
        Ok(())
    }

    async fn stream(&mut self, key: StreamKey) -> StoreResult<Option<Stream>> {
        Ok(self.state.streams.get(&key).cloned())
    }

    async fn delete_stream(&mut self, key: StreamKey) -> StoreResult<()> {
        let state = self.state_mut()?;
        state.streams.take(&key);
        state.stream_positions.take_first(u32::MAX, |(_, stream), _| *stream == key.id);
        Ok(())
    }

    async fn claim_stream(
        &mut self,
        key: StreamKey,
        lease: Uuid,
        now: Timestamp,
        ends_at: Timestamp,
    ) -> StoreResult<bool> {
        let streams = &mut self.state_mut()?.streams;
        let is_free = |stream: &Stream| stream.lease == Some(lease) || stream.lease_ends_at <= Some(now);
        if !streams.get(&key).is_some_and(is_free) {
            return Ok(false);
        }
        streams.change(&key, |stream| (stream.lease, stream.lease_ends_at) = (Some(lease), Some(ends_at)));
        Ok(true)
    }

    async fn renew_stream(&mut self, key: StreamKey, lease: Uuid, ends_at: Timestamp) -> StoreResult<bool> {
        let streams = &mut self.state_mut()?.streams;
        if streams.get(&key).is_none_or(|stream| stream.lease != Some(lease)) {
            return Ok(false);
        }
        streams.change(&key, |stream| stream.lease_ends_at = Some(ends_at));
        Ok(true)
    }

    async fn accounts_behind(
        &mut self,
        stream: &Stream,
        after: Option<TenantId>,
        limit: u32,
    ) -> StoreResult<Vec<AccountBehind>> {
        let tenants = self.state.clocks.range(..).filter(|(tenant, _)| {
            after.is_none_or(|after| **tenant > after)
                && (stream.key() == StreamKey::SERVER || **tenant == stream.tenant_id)
                && self.state.is_behind(stream, **tenant)
        });
        let behind = tenants.map(|(tenant, clock)| AccountBehind {
            tenant_id: *tenant,
            sent_until: self.state.position(stream, *tenant),
            clock: *clock,
            is_sandbox: self.state.is_sandbox(*tenant),
        });
        Ok(behind.take(limit as usize).collect())
    }

    async fn subscription_streams_behind(
        &mut self,
        after: Option<StreamKey>,
        limit: u32,
    ) -> StoreResult<Vec<StreamKey>> {
        let streams = self.state.streams.range(..).filter(|(key, stream)| {
            after.is_none_or(|after| **key > after)
                && **key != StreamKey::SERVER
                && self.state.is_behind(stream, key.tenant_id)
        });
        Ok(streams.take(limit as usize).map(|(key, _)| *key).collect())
    }

    async fn advance_stream(&mut self, key: StreamKey, tenant: TenantId, sent_until: Timestamp) -> StoreResult<()> {
        if self.state.clocks.get(&tenant).is_none_or(|clock| *clock < sent_until) {
            return Ok(());
        }
        let positions = &mut self.state_mut()?.stream_positions;
        if positions.get(&(tenant, key.id)).is_none_or(|before| *before < sent_until) {
            positions.put((tenant, key.id), sent_until);
        }
        Ok(())
    }

    async fn sent_by_all_until(&mut self, tenant: TenantId, used_since: Timestamp) -> StoreResult<Option<Timestamp>> {
        let streams = self.state.streams.range(..).map(|(_, stream)| stream).filter(|stream| {
            (stream.key() == StreamKey::SERVER || stream.tenant_id == tenant) && stream.is_used_since(used_since)
        });
        Ok(streams.map(|stream| self.state.position(stream, tenant)).min())
    }

    async fn delete_positions_without_account(
        &mut self,
        after: TenantId,
        until: TenantId,
        limit: u32,
    ) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let tenants = &state.tenants;
        let is_unwanted =
            |(tenant, _): &(TenantId, _), _: &_| after < *tenant && *tenant <= until && tenants.get(tenant).is_none();
        Ok(state.stream_positions.take_first(limit, is_unwanted))
    }
}
