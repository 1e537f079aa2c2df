//! `svc key`.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use svc_core::accounts::keys::{self, ApiKey, KeyCreate, KeyId, NewKey};
use svc_core::accounts::tenants::{self, DeveloperAccess, Tenant};
use svc_core::store::Store;
use svc_core::values::{Secret, TenantId, Timestamp};

use super::{lookup, tenant};
use crate::cli::KeyCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table, fields, or_dash, state};
use crate::times::{full, full_or_dash, moment, moment_or_dash};

/// Says how to find the id of a key.
const HINT: &str = "`svc key list` lists the keys of a tenant";

/// A key in the JSON output of `list`, `show` and `revoke`.
#[derive(Serialize)]
struct View<'a> {
    #[serde(flatten)]
    key: &'a ApiKey,
    signed: bool,
}

pub(super) async fn run(store: &dyn Store, command: KeyCommand) -> Result<Outcome, Failure> {
    match command {
        KeyCommand::Create { tenant, scopes, name, expires, signed } => {
            let tenant = lookup::tenant(store, &tenant).await?.id;
            create(store, tenant, KeyCreate { name, write: scopes.write, expires_in: expires, signed }).await
        }
        KeyCommand::List { tenant } => list(store, lookup::tenant(store, &tenant).await?.id).await,
        KeyCommand::Show { id, tenant } => {
            let key = lookup::find::<ApiKey>(store, &id, &tenant).await?.record;
            Outcome::new(&view(&key), details(&key, store.env().now()))
        }
        KeyCommand::Revoke { id, tenant } => {
            let id = lookup::find::<ApiKey>(store, &id, &tenant).await?.record.id;
            let revoked = store.write("key.revoke", move |tx| Box::pin(keys::revoke(tx, id))).await;
            let key = revoked.or_not_found("key", id, HINT)?;
            let text = format!("Revoked key {id} ({}…). It is rejected from now on.", key.prefix);
            Outcome::new(&view(&key), text)
        }
        KeyCommand::Rotate { id, tenant, overlap } => {
            let id = lookup::find::<ApiKey>(store, &id, &tenant).await?.record.id;
            rotate(store, id, overlap).await
        }
    }
}

async fn create(store: &dyn Store, tenant: TenantId, input: KeyCreate) -> Result<Outcome, Failure> {
    let created = store
        .write("key.create", move |tx| {
            let input = input.clone();
            Box::pin(async move {
                let new = keys::create(tx, tenant, input).await?;
                Ok((new, tenants::get(tx, tenant).await?))
            })
        })
        .await;
    let (new, tenant) = created.or_not_found("tenant", tenant, tenant::HINT)?;
    let text = format!("Created a key for {}.\n\n{}", tenant.name, secrets(&new));
    Ok(Outcome::new(&new_view(&new), text)?.with_note(access_note(&tenant)))
}

async fn list(store: &dyn Store, tenant: TenantId) -> Result<Outcome, Failure> {
    let listed = store
        .read("key.list", move |tx| {
            Box::pin(async move {
                tenants::get(tx, tenant).await?;
                Ok(tx.api_keys(tenant).await?)
            })
        })
        .await;
    let keys = listed.or_not_found("tenant", tenant, tenant::HINT)?;
    let now = store.env().now();
    let heading = ["ID", "NAME", "STATUS", "SCOPES", "LAST USED", "PREFIX", "CREATED"];
    let table = Table::new(heading, &keys, |key| {
        [
            key.id.to_string(),
            or_dash(key.name.as_ref()),
            state(status(key.revoked_at, key.expires_at, now)),
            scopes(key),
            full_or_dash(key.last_used_at),
            key.prefix.clone(),
            full(key.created_at),
        ]
    });
    let views: Vec<View<'_>> = keys.iter().map(view).collect();
    Outcome::list(&views, &table, "The tenant has no keys; create one with `svc key create`.")
}

async fn rotate(store: &dyn Store, id: KeyId, overlap: Duration) -> Result<Outcome, Failure> {
    let rotated = store
        .write("key.rotate", move |tx| {
            Box::pin(async move {
                let new = keys::rotate(tx, id, overlap).await?;
                Ok((new, keys::get(tx, id).await?))
            })
        })
        .await;
    let (new, old) = rotated.or_not_found("key", id, HINT)?;
    let text =
        format!("Replaced key {id}, which is valid until {}.\n\n{}", moment_or_dash(old.expires_at), secrets(&new));
    Outcome::new(&new_view(&new), text)
}

fn view(key: &ApiKey) -> View<'_> {
    View { key, signed: key.signing_secret.is_some() }
}

/// Formats a new key as JSON, with its secrets, which are never shown again.
fn new_view(new: &NewKey) -> Value {
    let key = &new.key;
    json!({
        "id": key.id,
        "tenant_id": key.tenant_id,
        "name": key.name,
        "scopes": key.scopes,
        "key": new.text.reveal(),
        "signing_secret": key.signing_secret.as_ref().map(Secret::reveal),
        "prefix": key.prefix,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
    })
}

/// Formats a new key for people, with its secrets.
fn secrets(new: &NewKey) -> String {
    let key = &new.key;
    let signing_secret = key.signing_secret.as_ref().map(|secret| ("signing secret", secret.reveal().to_owned()));
    let shown = [("id", key.id.to_string()), ("scopes", scopes(key)), ("expires at", expiry(key))]
        .into_iter()
        .chain(signing_secret)
        .chain([("key", new.text.reveal().to_owned())]);
    let advice = if key.signing_secret.is_some() {
        "Store the key and the signing secret now. They will not be shown again."
    } else {
        "Store the key now. It will not be shown again."
    };
    format!("{}\n{advice}\n", fields(shown))
}

fn details(key: &ApiKey, now: Timestamp) -> String {
    fields([
        ("id", key.id.to_string()),
        ("tenant id", key.tenant_id.to_string()),
        ("name", or_dash(key.name.as_ref())),
        ("prefix", key.prefix.clone()),
        ("scopes", scopes(key)),
        ("signed", key.signing_secret.is_some().to_string()),
        ("status", status(key.revoked_at, key.expires_at, now).to_owned()),
        ("created at", moment(key.created_at)),
        ("expires at", expiry(key)),
        ("revoked at", moment_or_dash(key.revoked_at)),
        ("last used at", moment_or_dash(key.last_used_at)),
    ])
}

fn scopes(key: &ApiKey) -> String {
    key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",")
}

fn expiry(key: &ApiKey) -> String {
    key.expires_at.map_or_else(|| "never".to_owned(), moment)
}

/// Returns whether a key can be used: `active`, `expired` or `revoked`.
pub(super) fn status(revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>, now: Timestamp) -> &'static str {
    if revoked_at.is_some() {
        "revoked"
    } else if expires_at.is_some_and(|at| at <= now) {
        "expired"
    } else {
        "active"
    }
}

/// Returns a note if the tenant is not approved, since its keys are then rejected with a 403.
fn access_note(tenant: &Tenant) -> Option<String> {
    let access = tenant.developer_access;
    (access != DeveloperAccess::Approved).then(|| {
        format!(
            "Developer access of tenant {} is {access}, so its keys are rejected until `svc tenant approve {}`.",
            tenant.name, tenant.id
        )
    })
}
