//! `svc platform-key`.

use std::fmt::Display;

use serde::Serialize;
use svc_core::accounts::platform_keys::{self, PlatformKey, PlatformKeyCreate};
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::TimeZone;

use super::key::{lifetime_until, status};
use crate::cli::PlatformKeyCommand;
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, state};
use crate::times::{full, full_or_dash, moment};
use crate::values::{Expiry, TimeArg};

/// A new key in the JSON output, with its text, which is never shown again.
#[derive(Serialize)]
struct NewView<'a> {
    #[serde(flatten)]
    key: &'a PlatformKey,
    #[serde(rename = "key")]
    text: &'a str,
}

pub(super) async fn run(store: &dyn Store, command: PlatformKeyCommand) -> Result<Outcome, Failure> {
    match command {
        PlatformKeyCommand::Create { scopes, name, expires } => {
            let name = name.map(|name| name.as_str().to_owned());
            let now = store.env().now();
            let expires_in = match expires {
                Some(Expiry::In(duration)) => Some(duration),
                Some(Expiry::At(TimeArg::At(at))) => Some(lifetime_until(at, now)?),
                Some(Expiry::At(TimeArg::Date(date))) => Some(lifetime_until(TimeZone::UTC.date_begins(date), now)?),
                None => None,
            };
            create(store, PlatformKeyCreate { name, scopes, expires_in }).await
        }
        PlatformKeyCommand::List => list(store).await,
        PlatformKeyCommand::Revoke { id } => {
            let id = find(store, &id).await?.id;
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
    let shown = fields([
        ("id", key.id.to_string()),
        ("scopes", scopes(key)),
        ("expires at", key.expires_at.map_or_else(|| "never".to_owned(), moment)),
        ("key", new.text.reveal().to_owned()),
    ]);
    let text =
        format!("Created a key of the platform API.\n\n{shown}\nStore the key now. It will not be shown again.\n");
    Outcome::new(&NewView { key, text: new.text.reveal() }, text)
}

async fn all(store: &dyn Store) -> Result<Vec<PlatformKey>, Failure> {
    let list = store.read("platform_key.list", (), async |tx, ()| Ok(tx.platform_keys().await?));
    Ok(list.await?)
}

async fn list(store: &dyn Store) -> Result<Outcome, Failure> {
    let keys = all(store).await?;
    let now = store.env().now();
    let heading = ["ID", "NAME", "STATUS", "SCOPES", "LAST USED", "PREFIX", "CREATED", "CREATED BY"];
    let table = Table::new(heading, &keys, |key| {
        [
            key.id.to_string(),
            or_dash(key.name.as_ref()),
            state(status(key.revoked_at, key.expires_at, now)),
            scopes(key),
            full_or_dash(key.last_used_at),
            key.prefix.clone(),
            full(key.created_at),
            key.created_by.clone(),
        ]
    });
    let empty = "There are no keys of the platform API; create one with `svc platform-key create`.";
    Outcome::list(&keys, &table, empty)
}

/// Returns the key that was named by its id or by a part of it. There are few keys, so all are read.
pub(super) async fn find(store: &dyn Store, id: &IdArg) -> Result<PlatformKey, Failure> {
    let is_named = |key: &PlatformKey| match id {
        IdArg::Whole(id) => key.id.uuid() == *id,
        IdArg::Part(part) => part.begins(key.id.uuid()) || part.ends(key.id.uuid()),
        IdArg::Name(_) => false,
    };
    let mut named = all(store).await?;
    named.retain(is_named);
    match (named.pop(), named.len()) {
        (Some(key), 0) => Ok(key),
        (None, _) => Err(unknown(id)),
        _ => Err(Failure::new(Exit::Refused, format!("Several platform keys have the part {id}; give more of it."))),
    }
}

/// Returns the failure of a command that names no key.
fn unknown(id: impl Display) -> Failure {
    let hint = "`svc platform-key list` lists the keys of the platform API";
    Failure::new(Exit::NotFound, format!("There is no platform key {id}; {hint}."))
}

fn scopes(key: &PlatformKey) -> String {
    key.scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
