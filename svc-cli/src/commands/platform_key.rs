//! `svc platform-key`.

use std::fmt::Display;

use clap::Subcommand;
use serde::Serialize;
use svc_core::accounts::platform_keys::{self, PlatformKey, PlatformKeyCreate, PlatformScope};
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::Text;

use super::key::{expiry, lifetime_until, status};
use super::lookup;
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::Outcome;
use crate::record::{Property, details, optional, state, table, text, time};
use crate::session::Session;
use crate::times;
use crate::values::{self, Expiry};

/// Manage the keys of the platform API, with which programs of the operator work on all accounts
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc platform-key create --scopes accounts:read,records:write")]
pub(crate) enum PlatformKeyCommand {
    /// Create a key of the platform API.
    ///
    /// The key is printed once and cannot be shown again: the database stores only a hash of it. It works with the data of
    /// all accounts as far as its scopes allow: `*`, or a list of AREA:read and AREA:write. The areas are accounts, keys,
    /// members, apps, records, events, webhooks and deliveries; audit and export, which are only read; and import and operators,
    /// which only write. AREA:write includes AREA:read. members:write also makes links that sign in to the dashboard of each
    /// account, with any role: a program with the key can do all that an owner can. `*` is all but operators:write, which makes
    /// links that sign operators in to the dashboard.
    #[command(after_help = "Examples:\n  svc platform-key create --name Backend\n  \
                      svc platform-key create --scopes accounts:read,records:write --expires 90d")]
    Create {
        /// The scopes of the key, separated by commas.
        #[arg(long, value_delimiter = ',', default_value = "*", hide_possible_values = true, value_name = "SCOPE,…")]
        scopes: Vec<PlatformScope>,
        /// Name that tells what the key is for: one line of at most 300 characters.
        #[arg(long, value_parser = Text::<300>::parse, value_name = "TEXT")]
        name: Option<Text<300>>,
        /// When the key expires: a duration such as 90d, a time, or a date, which is its start in UTC. The default is never.
        #[arg(long, value_parser = values::expiry, allow_hyphen_values = true, value_name = "DURATION|TIME")]
        expires: Option<Expiry>,
    },
    /// List the keys of the platform API, oldest first, with who created and who revoked them.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc platform-key list")]
    List,
    /// Revoke a key of the platform API, so that requests with it are rejected from now on.
    ///
    /// A revocation cannot be undone. Revoking a revoked key changes nothing.
    #[command(after_help = "Example:\n  svc platform-key revoke 27c9e60b13fa")]
    Revoke {
        /// Id of the key.
        id: IdArg,
    },
}

/// A new key in the JSON output, with its text, which is never shown again.
#[derive(Serialize)]
struct NewView<'a> {
    #[serde(flatten)]
    key: &'a PlatformKey,
    #[serde(rename = "key")]
    text: &'a str,
}

pub(crate) async fn run(session: &Session, command: PlatformKeyCommand) -> Result<Outcome, Failure> {
    let store = &*session.database("svc platform-key")?.open(false).await?;
    match command {
        PlatformKeyCommand::Create { scopes, name, expires } => {
            let name = name.map(|name| name.as_str().to_owned());
            let now = store.env().now();
            let expires_in = match expires {
                Some(Expiry::In(duration)) => Some(duration),
                // Without an account, the time zone is UTC.
                Some(Expiry::At(at)) => Some(lifetime_until(times::instant(&at)?, now)?),
                None => None,
            };
            create(store, PlatformKeyCreate { name, scopes, expires_in }).await
        }
        PlatformKeyCommand::List => list(store).await,
        PlatformKeyCommand::Revoke { id } => {
            let PlatformKey { id, name, prefix, .. } = find(store, &id).await?;
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            session.confirm(&format!(
                "Revoke platform key{name} ({prefix}…)? It is rejected from the next request on, and this cannot be undone."
            ))?;
            let revoked =
                store.write("platform_key.revoke", id, async |tx, &id| platform_keys::revoke(tx, id).await).await;
            let key = match revoked {
                Err(Error::NotFound) => return Err(unknown(id)),
                revoked => revoked?,
            };
            let text = format!("Revoked platform key {id} ({}…). It is rejected from now on.", key.prefix);
            Outcome::new(&key, text)
        }
    }
}

async fn create(store: &dyn Store, input: PlatformKeyCreate) -> Result<Outcome, Failure> {
    let new = store
        .write("platform_key.create", input, async |tx, input| platform_keys::create(tx, input.clone()).await)
        .await?;
    let key = &new.key;
    let shown = details(describe(key).into_iter().chain([text("key", new.text.reveal())]));
    let message =
        format!("Created a key of the platform API.\n\n{shown}\nStore the key now. It will not be shown again.\n");
    Outcome::new(&NewView { key, text: new.text.reveal() }, message)
}

fn describe(key: &PlatformKey) -> Vec<Property> {
    vec![
        text("id", key.id).column(1, "ID"),
        text("scopes", scopes(key)).column(4, "SCOPES"),
        text("expires at", expiry(key.expires_at)),
        optional("", key.name.as_ref()).column(2, "NAME"),
        state("", status(key.revoked_at, key.expires_at)).column(3, "STATUS"),
        time("", key.last_used_at).column(5, "LAST USED"),
        text("", &key.prefix).column(6, "PREFIX"),
        time("", key.created_at).column(7, "CREATED"),
        text("", &key.created_by).column(8, "CREATED BY"),
    ]
}

async fn read_all(store: &dyn Store) -> Result<Vec<PlatformKey>, Failure> {
    let list = store.read("platform_key.list", (), async |tx, ()| Ok(tx.platform_keys().await?));
    Ok(list.await?)
}

async fn list(store: &dyn Store) -> Result<Outcome, Failure> {
    let keys = read_all(store).await?;
    let empty = "There are no keys of the platform API; create one with `svc platform-key create`.";
    Outcome::list(&keys, &table(&keys, describe), empty)
}

/// Returns the key that was named by its id or by a part of it. There are few keys, so all are read.
async fn find(store: &dyn Store, id: &IdArg) -> Result<PlatformKey, Failure> {
    let mut keys = read_all(store).await?;
    keys.retain(|key| id.is_of(key.id.uuid()));
    lookup::single_match(
        keys,
        || unknown(id),
        |_| format!("Several platform keys have the part {id}; give more of it."),
    )
}

/// Returns the failure of a command that names no key.
fn unknown(id: impl Display) -> Failure {
    let hint = "`svc platform-key list` lists the keys of the platform API";
    Failure::new(Exit::NotFound, format!("There is no platform key {id}; {hint}."))
}

fn scopes(key: &PlatformKey) -> String {
    key.scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
