//! The reference store. It keeps everything in memory, runs one transaction at a time, and is made to be obviously
//! correct rather than fast. Its data ends with the process.

mod apps;
mod attempts;
mod audit;
mod deliveries;
mod events;
mod keys;
mod members;
mod repository;
mod requests;
mod retention;
mod sandboxes;
mod search;
mod shared_links;
mod streams;
mod subscriptions;
mod table;
mod tenants;
mod uploads;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use uuid::Uuid;

use self::table::Table;
use super::{Access, Endpoint, Store, StoreResult, Tx, UnitOfWork};
use crate::accounts::actor::Actor;
use crate::accounts::apps::{App, AppId};
use crate::accounts::audit::AuditEntry;
use crate::accounts::dashboard_links::DashboardLink;
use crate::accounts::grants::{AuthorizationCode, Grant, Token};
use crate::accounts::idempotency::StoredResponse;
use crate::accounts::keys::{ApiKey, KeyId};
use crate::accounts::members::Member;
use crate::accounts::operational::{OperationalEvent, OperationalEventId};
use crate::accounts::platform_keys::{PlatformKey, PlatformKeyId};
use crate::accounts::sessions::{Session, SessionId};
use crate::accounts::shared_links::{SharedLink, SharedLinkId};
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::accounts::uploads::Upload;
use crate::env::Env;
use crate::error::{Error, StoreError};
use crate::pages::CursorKey;
use crate::requests::ApiRequest;
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::invoices::{Invoice, Payment};
use crate::resources::jobs::Job;
use crate::resources::quotes::Quote;
use crate::sync::lock;
use crate::values::{Id, RecordKind, TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryWakeup};
use crate::webhooks::events::{Event, WrittenEvents};
use crate::webhooks::replays::Replay;
use crate::webhooks::statistics::CountKey;
use crate::webhooks::streams::{Stream, StreamKey};
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

/// A store in memory.
pub struct MemoryStore {
    env: Env,
    cursor_key: CursorKey,
    tables: Mutex<Tables>,
    is_closed: AtomicBool,
    delivery_wakeup: DeliveryWakeup,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(env: Env) -> Self {
        let cursor_key = CursorKey::new(env.bytes());
        Self {
            env,
            cursor_key,
            tables: Mutex::default(),
            is_closed: AtomicBool::new(false),
            delivery_wakeup: DeliveryWakeup::default(),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        let mut tables = lock(&self.tables);
        self.check_writable()?;
        // Undo the changes of a unit of work that panicked.
        tables.roll_back();
        let Self { env, cursor_key, delivery_wakeup, .. } = self;
        let done = match access {
            Access::Read => work(&mut tables.read(env, cursor_key, delivery_wakeup)).now_or_never(),
            Access::Write => work(&mut tables.write(env, cursor_key, delivery_wakeup)).now_or_never(),
        };
        let done = done.unwrap_or_else(|| {
            Err(StoreError::Internal(format!("{name} waits for something other than its store")).into())
        });
        if done.is_ok() {
            tables.commit();
        } else {
            tables.roll_back();
        }
        drop(tables);
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

    fn check_writable(&self) -> StoreResult<()> {
        if self.is_closed.load(Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(()) }
    }

    async fn close(&self) {
        // Whoever holds the lock runs the last unit of work.
        let _tables = lock(&self.tables);
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// Declares the tables, so that `commit` and `roll_back` cover each of them.
macro_rules! tables {
    ($($table:ident: $key:ty => $row:ty,)+) => {
        /// All tables of a store in memory, with their repositories: for a store that keeps its rows in memory and runs
        /// transactions on them in its own way, as the example of svc-store-tests does.
        #[derive(Clone, Default)]
        pub struct Tables {
            $($table: Table<$key, $row>,)+
        }

        impl Tables {
            /// Keeps the changes since the last call of this or of [`roll_back`](Self::roll_back).
            pub fn commit(&mut self) {
                $(self.$table.commit();)+
            }

            /// Undoes these changes.
            pub fn roll_back(&mut self) {
                $(self.$table.roll_back();)+
            }
        }
    };
}

/// The id of a record within its tenant.
type Key<R> = (TenantId, Id<R>);

tables! {
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
    platform_keys: PlatformKeyId => (PlatformKey, [u8; 32]),
    apps: AppId => App,
    grants: Key<Grant> => Grant,
    // By the digest of the code or the token.
    codes: [u8; 32] => AuthorizationCode,
    tokens: [u8; 32] => Token,
    used_signatures: (KeyId, [u8; 32]) => Timestamp,
    signatures_deleted_until: KeyId => Timestamp,
    // The keys whose expiry was reported.
    reported_keys: KeyId => (),
    // By the digest of the token.
    dashboard_links: [u8; 32] => DashboardLink,
    sessions: SessionId => (Session, [u8; 32]),
    members: Key<Member> => Member,
    shared_links: SharedLinkId => (SharedLink, [u8; 32]),
    uploads: Key<Upload> => (Upload, Arc<[u8]>),
    responses: (TenantId, String) => StoredResponse,
    events: Key<Event> => Event,
    event_actors: Key<Event> => String,
    operational_events: OperationalEventId => OperationalEvent,
    payments: Key<Payment> => Payment,
    deliveries: Key<Delivery> => Delivery,
    // The pending deliveries of each endpoint, by when they are due.
    pending_deliveries: (Endpoint, Timestamp, DeliveryId) => (),
    attempts: (Key<Delivery>, u32) => AttemptLog,
    attempt_counts: CountKey => u64,
    endpoint_schedule: Endpoint => Timestamp,
    endpoints_by_due_at: (Timestamp, Endpoint) => (),
    replays: Key<Replay> => Replay,
    audit_log: Key<AuditEntry> => AuditEntry,
    request_log: Key<ApiRequest> => ApiRequest,
    // The text of each record, and when it entered the index in the order of all.
    search_texts: (TenantId, RecordKind, Uuid) => (u64, String),
    search_progress: TenantId => Timestamp,
    streams: StreamKey => Stream,
    // Until when the events of an account were sent.
    stream_positions: (TenantId, SubscriptionId) => Timestamp,
}

impl Tables {
    /// Returns a transaction that reads. `cursor_key` is a value that the store has made once, for as long as it exists.
    pub fn read<'t>(
        &'t self,
        env: &'t Env,
        cursor_key: &'t CursorKey,
        delivery_wakeup: &'t DeliveryWakeup,
    ) -> impl Tx + 't {
        MemoryTx::new(env, cursor_key, delivery_wakeup, TablesRef::Read(self))
    }

    /// Returns a transaction that reads and writes. It marks `delivery_wakeup` when it makes deliveries due.
    pub fn write<'t>(
        &'t mut self,
        env: &'t Env,
        cursor_key: &'t CursorKey,
        delivery_wakeup: &'t DeliveryWakeup,
    ) -> impl Tx + 't {
        MemoryTx::new(env, cursor_key, delivery_wakeup, TablesRef::Write(self))
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

struct MemoryTx<'a> {
    env: &'a Env,
    delivery_wakeup: &'a DeliveryWakeup,
    cursor_key: &'a CursorKey,
    state: TablesRef<'a>,
    actor: Actor,
    written_events: WrittenEvents,
}

enum TablesRef<'a> {
    Read(&'a Tables),
    Write(&'a mut Tables),
}

impl Deref for TablesRef<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        match self {
            Self::Read(tables) => tables,
            Self::Write(tables) => tables,
        }
    }
}

impl<'a> MemoryTx<'a> {
    fn new(env: &'a Env, cursor_key: &'a CursorKey, delivery_wakeup: &'a DeliveryWakeup, state: TablesRef<'a>) -> Self {
        let (actor, written_events) = (Actor::System, WrittenEvents::default());
        Self { env, cursor_key, delivery_wakeup, state, actor, written_events }
    }

    /// Returns the tables for a change, which a read transaction must not make.
    fn state_mut(&mut self) -> StoreResult<&mut Tables> {
        match &mut self.state {
            TablesRef::Write(tables) => Ok(tables),
            TablesRef::Read(_) => Err(StoreError::Internal("a read transaction tried to write".to_owned())),
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

/// Rows that are also found by a hash of their secret.
type HashedTable<R> = Table<Id<R>, (R, [u8; 32])>;

fn by_hash<'t, R: Clone>(table: &'t HashedTable<R>, hash: &[u8; 32]) -> Option<&'t R> {
    table.values().find(|(_, known)| known == hash).map(|(row, _)| row)
}

/// Adds a row, whose id and hash must be new.
fn insert_hashed<R: Clone>(table: &mut HashedTable<R>, id: Id<R>, row: &R, hash: &[u8; 32]) -> StoreResult<()> {
    if by_hash(table, hash).is_none() && table.add(id, (row.clone(), *hash)) {
        Ok(())
    } else {
        Err(conflict("id or hash"))
    }
}

/// Adds a row, whose id must be new.
fn insert<K: Ord + Clone, R: Clone>(table: &mut Table<K, R>, key: K, row: &R) -> StoreResult<()> {
    if table.add(key, row.clone()) { Ok(()) } else { Err(conflict("id")) }
}
