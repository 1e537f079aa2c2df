//! The reference store. It keeps everything in memory, runs one transaction at a time, and is made to be obviously
//! correct rather than fast. Its data ends with the process.

mod api_keys;
mod attempt_counts;
mod attempts;
mod audit;
mod deliveries;
mod events;
mod idempotency;
mod owners;
mod payments;
mod replays;
mod repository;
mod request_log;
mod retention;
mod schedule;
mod sign_in;
mod signatures;
mod subscriptions;
mod table;
mod tenants;

use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::FutureExt as _;

use self::table::Table;
use super::{Access, Endpoint, Store, Tx, UnitOfWork};
use crate::accounts::audit::{Actor, Entry};
use crate::accounts::dashboard_links::DashboardLink;
use crate::accounts::idempotency::StoredResponse;
use crate::accounts::keys::{ApiKey, KeyId};
use crate::accounts::requests::LoggedRequest;
use crate::accounts::sessions::{Session, SessionId};
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::env::Env;
use crate::error::{Error, StoreError};
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::invoices::{Invoice, Payment};
use crate::resources::jobs::Job;
use crate::resources::pages::CursorKey;
use crate::resources::quotes::Quote;
use crate::sync::lock;
use crate::values::{Id, TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryWakeup};
use crate::webhooks::events::{Event, WrittenEvents};
use crate::webhooks::replays::Replay;
use crate::webhooks::statistics::AttemptOutcome;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

/// A store in memory.
pub struct MemoryStore {
    env: Env,
    cursor_key: CursorKey,
    state: Mutex<State>,
    delivery_wakeup: DeliveryWakeup,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(env: Env) -> Self {
        let cursor_key = CursorKey::new(env.bytes());
        Self { env, cursor_key, state: Mutex::default(), delivery_wakeup: DeliveryWakeup::default() }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        let mut state = lock(&self.state);
        // Undo the changes of a unit of work that panicked.
        state.roll_back();
        let Self { env, cursor_key, delivery_wakeup, .. } = self;
        let mut tx = MemoryTx {
            env,
            delivery_wakeup,
            cursor_key,
            state: &mut state,
            access,
            actor: Actor::System,
            written_events: WrittenEvents::default(),
        };
        let done = work(&mut tx).now_or_never().unwrap_or_else(|| {
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

/// Declares the tables, so that `commit` and `roll_back` cover each of them.
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

/// The id of a record within its tenant.
type Key<R> = (TenantId, Id<R>);

state! {
    contacts: Key<Contact> => Contact,
    invoices: Key<Invoice> => Invoice,
    bookings: Key<Booking> => Booking,
    quotes: Key<Quote> => Quote,
    jobs: Key<Job> => Job,
    subscriptions: Key<WebhookSubscription> => WebhookSubscription,
    tenants: TenantId => Tenant,
    clocks: TenantId => Timestamp,
    overdue_checks: TenantId => Timestamp,
    numbers: (TenantId, NumberKind) => u64,
    api_keys: KeyId => (ApiKey, [u8; 32]),
    used_signatures: (KeyId, [u8; 32]) => Timestamp,
    signatures_deleted_until: KeyId => Timestamp,
    // By the digest of the token.
    dashboard_links: [u8; 32] => DashboardLink,
    sessions: SessionId => (Session, [u8; 32]),
    responses: (TenantId, String) => StoredResponse,
    events: Key<Event> => Event,
    event_actors: Key<Event> => String,
    payments: Key<Payment> => Payment,
    deliveries: Key<Delivery> => Delivery,
    // The pending deliveries of each endpoint, by when they are due.
    pending_deliveries: (Endpoint, Timestamp, DeliveryId) => (),
    attempts: (Key<Delivery>, u32) => AttemptLog,
    attempt_counts: (Timestamp, TenantId, SubscriptionId, AttemptOutcome, u32) => u64,
    endpoint_schedule: Endpoint => Timestamp,
    endpoints_by_due_at: (Timestamp, Endpoint) => (),
    replays: Key<Replay> => Replay,
    audit_log: Key<Entry> => Entry,
    request_log: Key<LoggedRequest> => LoggedRequest,
}

struct MemoryTx<'a> {
    env: &'a Env,
    delivery_wakeup: &'a DeliveryWakeup,
    cursor_key: &'a CursorKey,
    state: &'a mut State,
    access: Access,
    actor: Actor,
    written_events: WrittenEvents,
}

impl MemoryTx<'_> {
    /// Returns the state for a change, which a read transaction must not make.
    fn state_mut(&mut self) -> Result<&mut State, StoreError> {
        match self.access {
            Access::Write => Ok(self.state),
            Access::Read => Err(StoreError::Internal("a read transaction tried to write".to_owned())),
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
    fn written_events(&self) -> WrittenEvents {
        self.written_events
    }
}

/// The rows of a tenant, oldest first.
fn of_tenant<R>(table: &Table<Key<R>, R>, tenant: TenantId) -> impl DoubleEndedIterator<Item = &R> {
    table.range((tenant, Id::nil())..=(tenant, Id::max())).map(|(_, row)| row)
}

fn conflict(constraint: &str) -> StoreError {
    StoreError::Conflict { constraint: constraint.to_owned() }
}

/// Adds a row, whose id must be new.
fn insert<K: Ord + Clone, R: Clone>(table: &mut Table<K, R>, key: K, row: &R) -> Result<(), StoreError> {
    if table.add(key, row.clone()) { Ok(()) } else { Err(conflict("id")) }
}
