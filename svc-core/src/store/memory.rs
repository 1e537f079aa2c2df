//! The reference store: everything in memory, one transaction at a time, gone at the end of the process.
//! Made to be plainly right rather than fast.

mod deliveries;
mod keys;
mod retention;
mod table;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use uuid::Uuid;

use self::table::Table;
use super::{Access, AuditStore, Outbox, Repository, Store, TenantStore, Tx, UnitOfWork};
use crate::accounts::audit::{Actor, Entry};
use crate::accounts::idempotency::StoredResponse;
use crate::accounts::keys::ApiKey;
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::env::{Env, first_id_at};
use crate::error::{Error, StoreError};
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::crud::{Filter, Resource};
use crate::resources::invoices::{Invoice, Payment};
use crate::resources::jobs::Job;
use crate::resources::pages::{CursorKey, ListQuery, Order};
use crate::resources::quotes::Quote;
use crate::values::EventKind;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, Delivery, DeliveryWakeup, MatchedSubscription};
use crate::webhooks::events::Event;
use crate::webhooks::replays::Replay;
use crate::webhooks::subscriptions::WebhookSubscription;

/// A store in memory.
pub struct MemoryStore {
    env: Env,
    cursor_key: CursorKey,
    state: Mutex<State>,
    delivery_wakeup: DeliveryWakeup,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(env: Env) -> Self {
        let cursor_key = CursorKey::new(env.bytes());
        Self { env, cursor_key, state: Mutex::default(), delivery_wakeup: DeliveryWakeup::default() }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn run(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // What a job that panicked left behind.
        state.roll_back();
        let Self { env, cursor_key, delivery_wakeup, .. } = self;
        let mut tx = MemoryTx { env, delivery_wakeup, cursor_key, state: &mut state, access, actor: Actor::System };
        let done = job(&mut tx).now_or_never().unwrap_or_else(|| {
            Err(StoreError::Internal(format!("{name} waits for something other than its store")).into())
        });
        if done.is_ok() {
            state.commit();
        } else {
            state.roll_back();
        }
        drop(state);
        if delivery_wakeup.take_mark() && done.is_ok() {
            delivery_wakeup.notify();
        }
        done
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        &self.delivery_wakeup
    }
}

macro_rules! state {
    ($($table:ident: $key:ty => $row:ty,)+) => {
        #[derive(Default)]
        struct State {
            $($table: Table<$key, $row>,)+
        }

        impl State {
            fn commit(&mut self) {
                $(self.$table.commit();)+
            }

            fn roll_back(&mut self) {
                $(self.$table.roll_back();)+
            }
        }
    };
}

/// An id within its tenant.
type Key = (TenantId, Uuid);

state! {
    contacts: Key => Contact,
    invoices: Key => Invoice,
    bookings: Key => Booking,
    quotes: Key => Quote,
    jobs: Key => Job,
    subscriptions: Key => WebhookSubscription,
    tenants: TenantId => Tenant,
    clocks: TenantId => Timestamp,
    numbers: (TenantId, NumberKind) => u64,
    keys: Uuid => (ApiKey, [u8; 32]),
    signatures: (Uuid, [u8; 32]) => Timestamp,
    recorded: (TenantId, String) => StoredResponse,
    events: Key => Event,
    causes: Key => String,
    payments: Key => Payment,
    deliveries: Key => Delivery,
    // The pending deliveries of each endpoint by when they are due.
    due: (Key, Timestamp, Uuid) => (),
    attempts: (Key, u32) => AttemptLog,
    turns: Key => Timestamp,
    turns_by_time: (Timestamp, Key) => (),
    replays: Key => Replay,
    audit: Key => Entry,
}

struct MemoryTx<'a> {
    env: &'a Env,
    delivery_wakeup: &'a DeliveryWakeup,
    cursor_key: &'a CursorKey,
    state: &'a mut State,
    access: Access,
    actor: Actor,
}

impl MemoryTx<'_> {
    fn writable(&mut self) -> Result<&mut State, StoreError> {
        match self.access {
            Access::Write => Ok(self.state),
            Access::Read => Err(StoreError::Internal("a read job tried to write".to_owned())),
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
    fn actor(&self) -> &Actor {
        &self.actor
    }
    fn act_as(&mut self, actor: Actor) {
        self.actor = actor;
    }
}

macro_rules! rows {
    ($($record:ty => $table:ident,)+) => {$(
        #[async_trait]
        impl Repository<$record> for MemoryTx<'_> {
            async fn get(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<$record>, StoreError> {
                Ok(self.state.$table.get(&(tenant, id)).cloned())
            }
            async fn list(
                &mut self,
                tenant: TenantId,
                listing: &ListQuery<<$record as Resource>::Filter>,
            ) -> Result<Vec<$record>, StoreError> {
                Ok(select(&self.state.$table, tenant, listing))
            }
            async fn insert(&mut self, tenant: TenantId, row: &$record) -> Result<(), StoreError> {
                insert(&mut self.writable()?.$table, (tenant, row.id()), row)
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
    WebhookSubscription => subscriptions,
}

fn of_tenant<R>(table: &Table<Key, R>, tenant: TenantId) -> impl DoubleEndedIterator<Item = &R> {
    table.range((tenant, Uuid::nil())..=(tenant, Uuid::max())).map(|(_, row)| row)
}

fn select<R: Resource>(table: &Table<Key, R>, tenant: TenantId, listing: &ListQuery<R::Filter>) -> Vec<R> {
    let mut rows: Vec<&R> = of_tenant(table, tenant).filter(|row| listing.filter.matches(row)).collect();
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

/// Adds a row, whose id must be new.
fn insert<R: Clone>(table: &mut Table<Key, R>, key: Key, row: &R) -> Result<(), StoreError> {
    if table.add(key, row.clone()) { Ok(()) } else { Err(conflict("id")) }
}

fn update<R: Resource>(table: &mut Table<Key, R>, tenant: TenantId, row: &R) -> Result<(), StoreError> {
    let found = table.change(&(tenant, row.id()), |stored| *stored = row.clone());
    if found { Ok(()) } else { Err(StoreError::Internal("an update found no row".to_owned())) }
}

#[async_trait]
impl TenantStore for MemoryTx<'_> {
    async fn tenant(&mut self, id: TenantId) -> Result<Option<Tenant>, StoreError> {
        Ok(self.state.tenants.get(&id).cloned())
    }

    async fn tenants(&mut self) -> Result<Vec<Tenant>, StoreError> {
        let mut tenants: Vec<Tenant> = self.state.tenants.values().cloned().collect();
        tenants.sort_by_key(|tenant| (tenant.created_at, tenant.id));
        Ok(tenants)
    }

    async fn insert_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        let state = self.writable()?;
        if !state.tenants.add(tenant.id, tenant.clone()) {
            return Err(conflict("id"));
        }
        state.clocks.put(tenant.id, tenant.created_at);
        Ok(())
    }

    async fn update_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        self.writable()?.tenants.change(&tenant.id, |stored| *stored = tenant.clone());
        Ok(())
    }

    async fn advance_clock(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError> {
        let wall = self.env.now();
        let clocks = &mut self.writable()?.clocks;
        clocks.change(&tenant, |clock| *clock = wall.max(clock.next()));
        Ok(clocks.get(&tenant).copied())
    }

    async fn lock_tenant(&mut self, tenant: TenantId) -> Result<bool, StoreError> {
        Ok(self.state.tenants.contains_key(&tenant))
    }

    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> Result<u64, StoreError> {
        let numbers = &mut self.writable()?.numbers;
        let number = numbers.get(&(tenant, kind)).copied().unwrap_or_default() + 1;
        numbers.put((tenant, kind), number);
        Ok(number)
    }

    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> Result<(), StoreError> {
        let numbers = &mut self.writable()?.numbers;
        let last = numbers.get(&(tenant, kind)).copied().unwrap_or_default();
        numbers.put((tenant, kind), last.max(number));
        Ok(())
    }
}

#[async_trait]
impl Outbox for MemoryTx<'_> {
    async fn matches(&mut self, tenant: TenantId, kind: EventKind) -> Result<Vec<MatchedSubscription>, StoreError> {
        let subscriptions = of_tenant(&self.state.subscriptions, tenant);
        Ok(subscriptions.filter_map(|subscription| subscription.match_event(kind)).collect())
    }

    async fn insert_event(&mut self, event: &Event) -> Result<(), StoreError> {
        let (key, cause) = ((event.tenant_id, event.id), self.actor.to_string());
        let state = self.writable()?;
        insert(&mut state.events, key, event)?;
        insert(&mut state.causes, key, &cause)
    }

    async fn caused(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(Event, Option<String>)>, StoreError> {
        let events = of_tenant(&self.state.events, tenant).rev().filter(|event| event.created_at >= since);
        let with_cause = |event: &Event| (event.clone(), self.state.causes.get(&(tenant, event.id)).cloned());
        Ok(events.take(limit as usize).map(with_cause).collect())
    }

    async fn events(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> Result<Vec<Event>, StoreError> {
        let from = self.state.events.range((tenant, first_id_at(after))..=(tenant, Uuid::max()));
        let events = from.map(|(_, event)| event).filter(|event| event.created_at > after);
        Ok(events.take(limit as usize).cloned().collect())
    }

    async fn event(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Event>, StoreError> {
        Ok(self.state.events.get(&(tenant, id)).cloned())
    }

    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> Result<(), StoreError> {
        insert(&mut self.writable()?.payments, (tenant, payment.id), payment)
    }
}

#[async_trait]
impl AuditStore for MemoryTx<'_> {
    async fn insert_audit(&mut self, entry: &Entry) -> Result<(), StoreError> {
        insert(&mut self.writable()?.audit, (entry.tenant_id, entry.id), entry)
    }

    async fn audit(&mut self, tenant: TenantId, since: Timestamp, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let entries = of_tenant(&self.state.audit, tenant).rev().filter(|entry| entry.at >= since);
        Ok(entries.take(limit as usize).cloned().collect())
    }
}
