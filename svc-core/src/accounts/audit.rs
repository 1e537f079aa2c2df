//! Who changed what. Every change of a tenant, a key or a subscription, every replay and every import without events is
//! noted in its own transaction, and stays. Every change of a record is told by its event, which keeps who caused it and
//! is there as long as events are kept ([`retention`](crate::webhooks::retention)). [`list`] gives both.
//!
//! Who acts is said by whoever runs the job: at its beginning by [`Tx::act_as`], or for all jobs by [`acting`]. What was
//! before and what came after are kept as JSON without secrets.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use crate::error::{Error, StoreError};
use crate::store::{Access, EventWithActor, Store, StoreWrapper, Tx, UnitOfWork};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::events::Event;

/// Who acts in a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Actor {
    /// The service itself, or an application that does not say.
    #[default]
    System,
    /// Somebody at the command line: the name of the user.
    Cli(String),
    /// The bearer of a key.
    Key(Uuid),
    /// The sender of deliveries.
    Sender,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Cli(user) => write!(f, "cli:{user}"),
            Self::Key(id) => write!(f, "key:{id}"),
            Self::Sender => f.write_str("sender"),
        }
    }
}

/// A change that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Identifier; sorts like `at`.
    pub id: Uuid,
    /// Whose.
    pub tenant_id: TenantId,
    /// When.
    pub at: Timestamp,
    /// By whom: `system`, `cli:<user>`, `key:<id>` or `sender`; `unknown` where an older version did not note it.
    pub actor: String,
    /// What was done: `create`, `update`, `delete`, `revoke`, `rotate`, `pause`, `replay`, `import`, `test`; of records
    /// what their events say, such as `paid`.
    pub action: String,
    /// To what: `tenant`, `key`, `webhook`, `delivery`; or to a kind of record, such as `invoice`.
    pub object_kind: String,
    /// To which. Of what happens outside this service and has no such id, the event.
    pub object_id: Uuid,
    /// As it was, without its secrets; `None` for what is new, and of records.
    pub before: Option<Box<RawValue>>,
    /// As it is since; `None` for what is gone.
    pub after: Option<Box<RawValue>>,
}

impl Entry {
    fn of_event(event: Event, actor: Option<String>) -> Self {
        #[derive(Deserialize)]
        struct Named {
            id: Uuid,
        }
        let (kind, action) = event.kind.as_str().split_once('.').unwrap_or(("event", event.kind.as_str()));
        let record = serde_json::from_str(event.data.get()).map_or(event.id, |Named { id }| id);
        let (kind, action, object_id) = match event.only_for {
            Some(subscription) => ("webhook", "test", subscription),
            None => (kind, action, record),
        };
        Self {
            id: event.id,
            tenant_id: event.tenant_id,
            at: event.created_at,
            actor: actor.unwrap_or_else(|| "unknown".to_owned()),
            action: action.to_owned(),
            object_kind: kind.to_owned(),
            object_id,
            before: None,
            after: Some(event.data),
        }
    }
}

/// The newest changes of a tenant at or after `since`, newest first.
///
/// # Errors
/// [`Error::Store`].
pub async fn list(tx: &mut dyn Tx, tenant: TenantId, since: Timestamp, limit: u32) -> Result<Vec<Entry>, Error> {
    let mut entries = tx.audit_entries(tenant, since, limit).await?;
    let events = tx.events_with_actor(tenant, since, limit).await?;
    entries.extend(events.into_iter().map(|EventWithActor { event, actor }| Entry::of_event(event, actor)));
    entries.sort_unstable_by_key(|entry| Reverse((entry.at, entry.id)));
    entries.truncate(limit as usize);
    Ok(entries)
}

/// What is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) kind: &'static str,
    pub(crate) id: Uuid,
}

/// Notes a change, in its transaction.
pub(crate) async fn record<T: Serialize + Sync>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    action: &'static str,
    object: Object,
    before: Option<&T>,
    after: Option<&T>,
) -> Result<(), Error> {
    let at = tx.env().now();
    let entry = Entry {
        id: tx.env().id(at),
        tenant_id: tenant,
        at,
        actor: tx.actor().to_string(),
        action: action.to_owned(),
        object_kind: object.kind.to_owned(),
        object_id: object.id,
        before: before.map(json).transpose()?,
        after: after.map(json).transpose()?,
    };
    Ok(tx.insert_audit_entry(&entry).await?)
}

fn json(value: &impl Serialize) -> Result<Box<RawValue>, StoreError> {
    to_raw_value(value).map_err(|error| StoreError::Internal(error.to_string()))
}

/// A store whose jobs are all run by `actor`, unless they say otherwise.
pub fn acting(store: Arc<dyn Store>, actor: Actor) -> Arc<dyn Store> {
    Arc::new(Acting { store, actor })
}

struct Acting {
    store: Arc<dyn Store>,
    actor: Actor,
}

#[async_trait]
impl StoreWrapper for Acting {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        let actor = self.actor.clone();
        let job: UnitOfWork = Box::new(move |tx| {
            tx.act_as(actor.clone());
            job(tx)
        });
        self.store.run(access, name, job).await
    }
}
