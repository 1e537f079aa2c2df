//! The reference store: everything in memory, one transaction at a time, gone at the end of the process.
//! Made to be plainly right rather than fast: a write works on a copy that takes the original's place on commit.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use uuid::Uuid;

use super::{Access, DeliveryFilter, DeliveryStore, ErasedJob, KeyStore, Outbox, Rows, Store, StoreError};
use super::{TenantStore, Tx};
use crate::bookings::Booking;
use crate::contacts::Contact;
use crate::deliveries::{AttemptLog, Delivery, DeliveryState, Outgoing};
use crate::env::Env;
use crate::error::Error;
use crate::events::{Event, EventKind};
use crate::idempotency::Recorded;
use crate::invoices::{Invoice, Payment};
use crate::jobs::Job;
use crate::keys::{ApiKey, Credential, Scope};
use crate::page::{CursorKey, Listing, Order};
use crate::quotes::Quote;
use crate::replays::Replay;
use crate::resource::{Filter, Resource};
use crate::tenants::{NumberKind, Tenant};
use crate::types::{TenantId, Timestamp};
use crate::webhooks::{Match, Subscription};

/// A store in memory.
pub struct MemoryStore {
    env: Env,
    cursor_key: CursorKey,
    state: Mutex<State>,
    outgoing: Outgoing,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(env: Env) -> Self {
        let cursor_key = CursorKey::new(env.bytes());
        Self { env, cursor_key, state: Mutex::default(), outgoing: Outgoing::default() }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn run(&self, access: Access, name: &'static str, job: ErasedJob) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Self { env, cursor_key, outgoing, .. } = self;
        let mut tx = MemoryTx { env, outgoing, cursor_key, state: state.clone(), access };
        match job(&mut tx).now_or_never() {
            Some(done) => done?,
            None => return Err(StoreError::Fault(format!("{name} waits for something other than its store")).into()),
        }
        *state = tx.state;
        drop(state);
        self.outgoing.release();
        Ok(())
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }
}

type Table<R> = BTreeMap<(TenantId, Uuid), R>;

#[derive(Clone, Default)]
struct State {
    contacts: Table<Contact>,
    invoices: Table<Invoice>,
    bookings: Table<Booking>,
    quotes: Table<Quote>,
    jobs: Table<Job>,
    subscriptions: Table<Subscription>,
    tenants: BTreeMap<TenantId, (Tenant, Timestamp)>,
    numbers: BTreeMap<(TenantId, NumberKind), u64>,
    keys: BTreeMap<Uuid, (ApiKey, [u8; 32])>,
    signatures: HashMap<(Uuid, [u8; 32]), Timestamp>,
    recorded: BTreeMap<(TenantId, String), Recorded>,
    events: Vec<Event>,
    deliveries: BTreeMap<(TenantId, Uuid), Delivery>,
    attempts: BTreeMap<(TenantId, Uuid), Vec<AttemptLog>>,
    turns: BTreeMap<(TenantId, Uuid), Timestamp>,
    replays: BTreeMap<(TenantId, Uuid), Replay>,
    payments: Vec<(TenantId, Payment)>,
}

struct MemoryTx<'a> {
    env: &'a Env,
    outgoing: &'a Outgoing,
    cursor_key: &'a CursorKey,
    state: State,
    access: Access,
}

impl MemoryTx<'_> {
    fn writable(&mut self) -> Result<&mut State, StoreError> {
        match self.access {
            Access::Write => Ok(&mut self.state),
            Access::Read => Err(StoreError::Fault("a read job tried to write".to_owned())),
        }
    }
}

impl Tx for MemoryTx<'_> {
    fn env(&self) -> &Env {
        self.env
    }
    fn cursor_key(&self) -> &CursorKey {
        self.cursor_key
    }
}

macro_rules! rows {
    ($($record:ty => $table:ident,)+) => {$(
        #[async_trait]
        impl Rows<$record> for MemoryTx<'_> {
            async fn get(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<$record>, StoreError> {
                Ok(self.state.$table.get(&(tenant, id)).cloned())
            }
            async fn list(
                &mut self,
                tenant: TenantId,
                listing: &Listing<<$record as Resource>::Filter>,
            ) -> Result<Vec<$record>, StoreError> {
                Ok(select(&self.state.$table, tenant, listing))
            }
            async fn insert(&mut self, tenant: TenantId, row: &$record) -> Result<(), StoreError> {
                insert(&mut self.writable()?.$table, tenant, row)
            }
            async fn update(&mut self, tenant: TenantId, row: &$record) -> Result<(), StoreError> {
                update(&mut self.writable()?.$table, tenant, row)
            }
        }
    )+};
}

rows! {
    Contact => contacts,
    Invoice => invoices,
    Booking => bookings,
    Quote => quotes,
    Job => jobs,
    Subscription => subscriptions,
}

fn select<R: Resource>(table: &Table<R>, tenant: TenantId, listing: &Listing<R::Filter>) -> Vec<R> {
    let (first, last) = ((tenant, Uuid::nil()), (tenant, Uuid::max()));
    let mut rows: Vec<&R> =
        table.range(first..=last).map(|(_, row)| row).filter(|row| listing.filter.matches(row)).collect();
    match listing.order {
        Order::NewestFirst { before } => {
            rows.retain(|row| before.is_none_or(|before| row.created_at() < before));
            rows.sort_by_key(|row| std::cmp::Reverse(row.created_at()));
        }
        Order::OldestChangeFirst { from } => {
            rows.retain(|row| row.updated_at() >= from);
            rows.sort_by_key(|row| row.updated_at());
        }
    }
    rows.into_iter().take(listing.limit as usize).cloned().collect()
}

fn conflict(constraint: &str) -> StoreError {
    StoreError::Conflict { constraint: constraint.to_owned() }
}

fn insert<R: Resource>(table: &mut Table<R>, tenant: TenantId, row: &R) -> Result<(), StoreError> {
    match table.entry((tenant, row.id())) {
        Entry::Vacant(place) => {
            place.insert(row.clone());
            Ok(())
        }
        Entry::Occupied(_) => Err(conflict("id")),
    }
}

fn update<R: Resource>(table: &mut Table<R>, tenant: TenantId, row: &R) -> Result<(), StoreError> {
    *table.get_mut(&(tenant, row.id())).ok_or_else(|| StoreError::Fault("an update found no row".to_owned()))? =
        row.clone();
    Ok(())
}

#[async_trait]
impl TenantStore for MemoryTx<'_> {
    async fn tenant(&mut self, id: TenantId) -> Result<Option<Tenant>, StoreError> {
        Ok(self.state.tenants.get(&id).map(|(tenant, _)| tenant.clone()))
    }

    async fn tenants(&mut self) -> Result<Vec<Tenant>, StoreError> {
        let mut tenants: Vec<Tenant> = self.state.tenants.values().map(|(tenant, _)| tenant.clone()).collect();
        tenants.sort_by_key(|tenant| (tenant.created_at, tenant.id));
        Ok(tenants)
    }

    async fn insert_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        match self.writable()?.tenants.entry(tenant.id) {
            Entry::Vacant(place) => {
                place.insert((tenant.clone(), tenant.created_at));
                Ok(())
            }
            Entry::Occupied(_) => Err(conflict("id")),
        }
    }

    async fn update_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        if let Some((stored, _)) = self.writable()?.tenants.get_mut(&tenant.id) {
            *stored = tenant.clone();
        }
        Ok(())
    }

    async fn tick(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError> {
        let wall = self.env.now();
        let clock = self.writable()?.tenants.get_mut(&tenant).map(|(_, clock)| clock);
        Ok(clock.map(|clock| {
            *clock = wall.max(clock.next());
            *clock
        }))
    }

    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> Result<u64, StoreError> {
        let last = self.writable()?.numbers.entry((tenant, kind)).or_default();
        *last += 1;
        Ok(*last)
    }
}

#[async_trait]
impl KeyStore for MemoryTx<'_> {
    async fn credential(&mut self, key_hash: &[u8; 32]) -> Result<Option<Credential>, StoreError> {
        let found = self.state.keys.values().find(|(_, hash)| hash == key_hash).map(|(key, _)| key);
        Ok(found.and_then(|key| {
            let (tenant, _) = self.state.tenants.get(&key.tenant_id)?;
            Some(Credential {
                key: key.id,
                tenant: key.tenant_id,
                writes: key.scopes.contains(&Scope::Write),
                expires_at: key.expires_at,
                revoked: key.revoked_at.is_some(),
                signing_secret: key.signing_secret.clone(),
                developer_access: tenant.developer_access,
            })
        }))
    }

    async fn key(&mut self, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.state.keys.get(&id).map(|(key, _)| key.clone()))
    }

    async fn keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.state.keys.values().map(|(key, _)| key);
        let mut keys: Vec<ApiKey> = keys.filter(|key| key.tenant_id == tenant).cloned().collect();
        keys.sort_by_key(|key| key.created_at);
        Ok(keys)
    }

    async fn insert_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> Result<(), StoreError> {
        let keys = &mut self.writable()?.keys;
        if keys.values().any(|(known, hash)| known.id == key.id || hash == key_hash) {
            return Err(conflict("key"));
        }
        keys.insert(key.id, (key.clone(), *key_hash));
        Ok(())
    }

    async fn update_key(&mut self, key: &ApiKey) -> Result<(), StoreError> {
        if let Some((stored, _)) = self.writable()?.keys.get_mut(&key.id) {
            stored.expires_at = key.expires_at;
            stored.revoked_at = key.revoked_at;
        }
        Ok(())
    }

    async fn touch_keys(&mut self, used: &[(Uuid, Timestamp)]) -> Result<(), StoreError> {
        for (id, at) in used {
            if let Some((key, _)) = self.writable()?.keys.get_mut(id) {
                key.last_used_at = key.last_used_at.max(Some(*at));
            }
        }
        Ok(())
    }

    async fn claim_signature(&mut self, key: Uuid, mac: &[u8; 32], expires_at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.writable()?.signatures.insert((key, *mac), expires_at).is_none())
    }

    async fn recorded(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> Result<Option<Recorded>, StoreError> {
        let recorded = self.state.recorded.get(&(tenant, key.to_owned()));
        Ok(recorded.filter(|recorded| recorded.created_at > after).cloned())
    }

    async fn record(&mut self, tenant: TenantId, key: &str, recorded: &Recorded) -> Result<(), StoreError> {
        self.writable()?.recorded.insert((tenant, key.to_owned()), recorded.clone());
        Ok(())
    }

    async fn prune(&mut self, recorded_before: Timestamp, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let state = self.writable()?;
        let answers = state.recorded.iter().filter(|(_, recorded)| recorded.created_at < recorded_before);
        let answers: Vec<_> = answers.map(|(key, _)| key.clone()).take(limit as usize).collect();
        let signatures = state.signatures.iter().filter(|(_, expires_at)| **expires_at < now);
        let signatures: Vec<_> = signatures.map(|(key, _)| *key).take(limit as usize).collect();
        let pruned = answers.len() + signatures.len();
        state.recorded.retain(|key, _| !answers.contains(key));
        state.signatures.retain(|key, _| !signatures.contains(key));
        Ok(pruned as u64)
    }
}

#[async_trait]
impl Outbox for MemoryTx<'_> {
    async fn matches(&mut self, tenant: TenantId, kind: EventKind) -> Result<Vec<Match>, StoreError> {
        let (first, last) = ((tenant, Uuid::nil()), (tenant, Uuid::max()));
        let subscriptions = self.state.subscriptions.range(first..=last);
        Ok(subscriptions.filter_map(|(_, subscription)| subscription.matches(kind)).collect())
    }

    async fn insert_event(&mut self, event: &Event) -> Result<(), StoreError> {
        self.writable()?.events.push(event.clone());
        Ok(())
    }

    async fn events(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> Result<Vec<Event>, StoreError> {
        let events = self.state.events.iter().filter(|event| event.tenant == tenant && event.created_at > after);
        Ok(events.take(limit as usize).cloned().collect())
    }

    async fn event(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Event>, StoreError> {
        Ok(self.state.events.iter().find(|event| event.tenant == tenant && event.id == id).cloned())
    }

    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> Result<(), StoreError> {
        self.writable()?.payments.push((tenant, payment.clone()));
        Ok(())
    }
}

impl State {
    fn pending(&self, tenant: TenantId, subscription: Uuid) -> Vec<&Delivery> {
        let (first, last) = ((tenant, Uuid::nil()), (tenant, Uuid::max()));
        let of_tenant = self.deliveries.range(first..=last).map(|(_, delivery)| delivery);
        let mut pending: Vec<&Delivery> = of_tenant
            .filter(|delivery| delivery.subscription == subscription && delivery.state == DeliveryState::Pending)
            .collect();
        pending.sort_by_key(|delivery| (delivery.next_attempt_at, delivery.id));
        pending
    }
}

#[async_trait]
impl DeliveryStore for MemoryTx<'_> {
    async fn insert_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError> {
        self.writable()?.deliveries.insert((delivery.tenant, delivery.id), delivery.clone());
        match delivery.next_attempt_at {
            Some(due) => self.bring_turn_forward(delivery.tenant, delivery.subscription, due).await,
            None => Ok(()),
        }
    }

    async fn delivery(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Delivery>, StoreError> {
        Ok(self.state.deliveries.get(&(tenant, id)).cloned())
    }

    async fn update_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> Result<bool, StoreError> {
        let stored = self.writable()?.deliveries.get_mut(&(delivery.tenant, delivery.id));
        Ok(stored.filter(|stored| stored.lease == lease).map(|stored| *stored = delivery.clone()).is_some())
    }

    async fn list_deliveries(
        &mut self,
        tenant: TenantId,
        filter: &DeliveryFilter,
    ) -> Result<Vec<Delivery>, StoreError> {
        let (first, last) = ((tenant, Uuid::nil()), (tenant, Uuid::max()));
        let wanted = |delivery: &&Delivery| {
            filter.subscription.is_none_or(|wanted| delivery.subscription == wanted)
                && filter.event.is_none_or(|wanted| delivery.event == wanted)
                && filter.state.is_none_or(|wanted| delivery.state == wanted)
                && filter.kind.is_none_or(|wanted| delivery.kind == wanted)
                && filter.since.is_none_or(|since| delivery.created_at >= since)
                && filter.until.is_none_or(|until| delivery.created_at < until)
        };
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit as usize };
        let mut rows: Vec<&Delivery> =
            self.state.deliveries.range(first..=last).map(|(_, delivery)| delivery).filter(wanted).collect();
        if !filter.oldest_first {
            rows.reverse();
        }
        Ok(rows.into_iter().take(limit).cloned().collect())
    }

    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let pending = self.state.pending(tenant, subscription).into_iter();
        let due = pending.filter(|delivery| delivery.next_attempt_at <= Some(now));
        Ok(due.take(limit as usize).cloned().collect())
    }

    async fn next_due(&mut self, tenant: TenantId, subscription: Uuid) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state.pending(tenant, subscription).first().and_then(|delivery| delivery.next_attempt_at))
    }

    async fn hold_deliveries(&mut self, tenant: TenantId, subscription: Uuid) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = self.state.pending(tenant, subscription).into_iter().map(|delivery| delivery.id).collect();
        let state = self.writable()?;
        for id in ids {
            if let Some(delivery) = state.deliveries.get_mut(&(tenant, id)) {
                delivery.state = DeliveryState::Held;
                delivery.next_attempt_at = None;
            }
        }
        Ok(())
    }

    async fn turns(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, Uuid)>, StoreError> {
        let mut turns: Vec<_> = self.state.turns.iter().filter(|(_, at)| **at <= now).collect();
        turns.sort_by_key(|(endpoint, at)| (**at, **endpoint));
        Ok(turns.into_iter().map(|(endpoint, _)| *endpoint).take(limit as usize).collect())
    }

    async fn first_turn(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state.turns.values().min().copied())
    }

    async fn set_turn(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let turns = &mut self.writable()?.turns;
        match at {
            Some(at) => turns.insert((tenant, subscription), at),
            None => turns.remove(&(tenant, subscription)),
        };
        Ok(())
    }

    async fn bring_turn_forward(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.outgoing.mark();
        let turn = self.writable()?.turns.entry((tenant, subscription)).or_insert(at);
        *turn = at.min(*turn);
        Ok(())
    }

    async fn insert_attempt(&mut self, tenant: TenantId, delivery: Uuid, log: &AttemptLog) -> Result<(), StoreError> {
        self.writable()?.attempts.entry((tenant, delivery)).or_default().push(log.clone());
        Ok(())
    }

    async fn attempts(&mut self, tenant: TenantId, delivery: Uuid) -> Result<Vec<AttemptLog>, StoreError> {
        Ok(self.state.attempts.get(&(tenant, delivery)).cloned().unwrap_or_default())
    }

    async fn insert_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        self.outgoing.mark();
        self.writable()?.replays.insert((replay.tenant_id, replay.id), replay.clone());
        Ok(())
    }

    async fn replay(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Replay>, StoreError> {
        Ok(self.state.replays.get(&(tenant, id)).cloned())
    }

    async fn unfinished_replay(&mut self) -> Result<Option<Replay>, StoreError> {
        let unfinished = self.state.replays.values().filter(|replay| replay.finished_at.is_none());
        Ok(unfinished.min_by_key(|replay| replay.id).cloned())
    }

    async fn update_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        self.writable()?.replays.insert((replay.tenant_id, replay.id), replay.clone());
        Ok(())
    }

    async fn note_outcome(&mut self, tenant: TenantId, subscription: &Subscription) -> Result<(), StoreError> {
        if let Some(stored) = self.writable()?.subscriptions.get_mut(&(tenant, subscription.id)) {
            stored.last_delivery_at = subscription.last_delivery_at;
            stored.last_delivery_status = subscription.last_delivery_status;
            stored.consecutive_failures = subscription.consecutive_failures;
        }
        Ok(())
    }
}
