//! The author of a change.
//!
//! The code that starts a transaction names the actor, either with [`Tx::act_as`](crate::store::Tx::act_as) at its beginning
//! or with [`acting`] for a whole store.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::accounts::apps::AppId;
use crate::accounts::grants::GrantId;
use crate::accounts::keys::KeyId;
use crate::accounts::platform_keys::PlatformKeyId;
use crate::error::Error;
use crate::store::{Access, Store, StoreWrapper, UnitOfWork};

/// The separator of a client and the tool that it has called, in the text of an actor.
const TOOL: char = '/';

/// The actor of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Actor {
    /// The service itself, or an application that names no actor. This is the default.
    #[default]
    System,
    /// A person at the command line, by the name of the operating system user.
    Cli(String),
    /// A client of the API, by the id of its key.
    Key(KeyId),
    /// An app, under a grant of the account.
    App {
        /// The app.
        app: AppId,
        /// The grant.
        grant: GrantId,
    },
    /// A client of the platform API, by the id of its key.
    PlatformKey(PlatformKeyId),
    /// A person in the dashboard, by the name with which they signed in.
    Dashboard(String),
    /// A customer, who has the address of a [shared link](crate::accounts::shared_links), by the id of the link.
    SharedLink(Uuid),
    /// The sender of webhook deliveries.
    Sender,
    /// A tool that an assistant has called (MCP).
    Tool {
        /// The client whose key or token the assistant has.
        client: Box<Self>,
        /// The name of the tool, such as `create_contact`.
        tool: String,
    },
}

impl Actor {
    /// Returns the grant under which an app acts.
    pub fn grant(&self) -> Option<GrantId> {
        match self {
            Self::App { grant, .. } => Some(*grant),
            Self::Tool { client, .. } => client.grant(),
            _ => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Cli(user) => write!(f, "cli:{user}"),
            Self::Key(id) => write!(f, "key:{id}"),
            Self::App { app, .. } => write!(f, "app:{app}"),
            Self::PlatformKey(id) => write!(f, "platform_key:{id}"),
            Self::Dashboard(name) => write!(f, "dashboard:{name}"),
            Self::SharedLink(id) => write!(f, "shared_link:{id}"),
            Self::Sender => f.write_str("sender"),
            Self::Tool { client, tool } => write!(f, "{client}{TOOL}{tool}"),
        }
    }
}

/// Splits the text of an actor into the client and the tool that it has called, if it has called one.
///
/// ```
/// use svc_core::accounts::actor::split_tool;
/// assert_eq!(split_tool("app:0195a3c8/create_contact"), ("app:0195a3c8", Some("create_contact")));
/// assert_eq!(split_tool("sender"), ("sender", None));
/// // The name of a person can have any character.
/// assert_eq!(split_tool("cli:ada/lovelace"), ("cli:ada/lovelace", None));
/// ```
pub fn split_tool(actor: &str) -> (&str, Option<&str>) {
    let is_client = ["key:", "app:", "platform_key:"].iter().any(|kind| actor.starts_with(kind));
    match actor.split_once(TOOL).filter(|_| is_client) {
        Some((client, tool)) => (client, Some(tool)),
        None => (actor, None),
    }
}

/// Wraps a store so that all its transactions are made by `actor`, unless they name another one.
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

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        let actor = self.actor.clone();
        let work: UnitOfWork = Box::new(move |tx| {
            tx.act_as(actor.clone());
            work(tx)
        });
        self.store.run(access, name, work).await
    }
}
