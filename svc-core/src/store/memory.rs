//! The reference store: everything in memory, one transaction at a time, gone at the end of the process.
//! Made to be plainly right rather than fast: a write works on a copy that takes the original's place on commit.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use uuid::Uuid;

use super::{Access, ErasedJob, KeyStore, Outbox, Rows, Store, StoreError, TenantStore, Tx};
use crate::bookings::Booking;
use crate::contacts::Contact;
use crate::deliveries::Delivery;
use crate::env::Env;
use crate::error::Error;
use crate::events::{Event, EventKind};
use crate::idempotency::Recorded;
use crate::invoices::{Invoice, Payment};
use crate::jobs::Job;
use crate::keys::{ApiKey, Credential, Scope};
use crate::page::{CursorKey, Listing, Order};
use crate::quotes::Quote;
use crate::resource::{Filter, Resource};
use crate::tenants::{NumberKind, Tenant};
use crate::types::{TenantId, Timestamp};
use crate::webhooks::{Match, Subscription};

/// A store in memory.
pub struct MemoryStore {
    env: Env,
    cursor_key: CursorKey,
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(env: Env) -> Self {
        let cursor_key = CursorKey::new(env.bytes());
        Self { env, cursor_key, state: Mutex::default() }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn run(&self, access: Access, name: &'static str, job: ErasedJob) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tx = MemoryTx { env: &self.env, cursor_key: &self.cursor_key, state: state.clone(), access };
        match job(&mut tx).now_or_never() {
            Some(done) => done?,
            None => return Err(StoreError::Fault(format!("{name} waits for something other than its store")).into()),
        }
        *state = tx.state;
        Ok(())
    }

    fn env(&self) -> &Env {
        &self.env
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
    deliveries: Vec<Delivery>,
    payments: Vec<(TenantId, Payment)>,
}

struct MemoryTx<'a> {
    env: &'a Env,
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

    async fn insert_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError> {
        self.writable()?.deliveries.push(delivery.clone());
        Ok(())
    }

    async fn events(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> Result<Vec<Event>, StoreError> {
        let events = self.state.events.iter().filter(|event| event.tenant == tenant && event.created_at > after);
        Ok(events.take(limit as usize).cloned().collect())
    }

    async fn deliveries(&mut self, tenant: TenantId, event: Uuid) -> Result<Vec<Delivery>, StoreError> {
        let deliveries = self.state.deliveries.iter();
        Ok(deliveries.filter(|delivery| delivery.tenant == tenant && delivery.event == event).cloned().collect())
    }

    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> Result<(), StoreError> {
        self.writable()?.payments.push((tenant, payment.clone()));
        Ok(())
    }
}
