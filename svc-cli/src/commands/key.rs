//! `svc key`.

use std::time::Duration;

use serde_json::{Value, json};
use svc_core::accounts::keys::Scope;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::platform::{Account, ApiKey, ApiKeyCreate, ApiKeyRotation, ApiKeyWithSecret, operations};
use svc_core::values::Timestamp;

use super::lookup::{self, Owned};
use crate::cli::KeyCommand;
use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table, fields, or_dash, state};
use crate::service::Service;
use crate::times::{full, full_or_dash, moment, moment_or_dash, seconds};
use crate::values::Expiry;

pub(super) async fn run(service: &Service, command: KeyCommand) -> Result<Outcome, Failure> {
    match command {
        KeyCommand::Create { account, scopes, name, expires, signed } => {
            let account = lookup::account(service, &account).await?;
            let expires = match expires {
                Some(expires) => Some(lifetime(service, &account, expires).await?),
                None => None,
            };
            let input = ApiKeyCreate {
                scopes,
                name,
                // In whole seconds. Less than one is over at once.
                expires_in: expires
                    .map(|expires| seconds("expires_in", Duration::from_secs(expires.as_secs())))
                    .transpose()?,
                signed: Some(signed),
            };
            create(service, &account, input).await
        }
        KeyCommand::List { account } => list(service, &lookup::account(service, &account).await?).await,
        KeyCommand::Show { id, account } => {
            let key: ApiKey = lookup::find(service, &id, &account).await?.record;
            Outcome::new(&view(&key), details(&key, service.now()))
        }
        KeyCommand::Revoke { id, account } => {
            let found = lookup::find::<ApiKey>(service, &id, &account).await?;
            let key = found.call(service, &operations::REVOKE_KEY, ()).await?;
            let text = format!("Revoked key {} ({}…). It is rejected from now on.", key.id, key.prefix);
            Outcome::new(&view(&key), text)
        }
        KeyCommand::Rotate { id, account, overlap } => {
            rotate(service, lookup::find(service, &id, &account).await?, overlap).await
        }
    }
}

/// Returns how long a key is valid.
///
/// # Errors
/// The time at which it expires is not after now.
async fn lifetime(service: &Service, account: &Account, expires: Expiry) -> Result<Duration, Failure> {
    match expires {
        Expiry::In(duration) => Ok(duration),
        Expiry::At(at) => lifetime_until(lookup::time_in(service, account.id, at).await?, service.now()),
    }
}

/// Returns how long a key is valid that expires at a time.
///
/// # Errors
/// The time is not after now.
pub(super) fn lifetime_until(at: Timestamp, now: Timestamp) -> Result<Duration, Failure> {
    if at <= now {
        return Err(Failure::new(Exit::Usage, format!("--expires must be after now; {} is past.", full(at))));
    }
    // In whole seconds, so that a key of a date is valid until it begins.
    Ok(Duration::from_secs(at.since(now).as_secs() + 1))
}

async fn create(service: &Service, account: &Account, input: ApiKeyCreate) -> Result<Outcome, Failure> {
    let new = service.call(&operations::CREATE_KEY, account.id, input).await?;
    let text = format!("Created a key for {}.\n\n{}", account.name, secrets(&new));
    Ok(Outcome::new(&new_view(&new), text)?.with_note(access_note(account)))
}

async fn list(service: &Service, account: &Account) -> Result<Outcome, Failure> {
    let keys = service.call(&operations::LIST_KEYS, account.id, ()).await?.data;
    let now = service.now();
    let heading = ["ID", "NAME", "STATUS", "SCOPES", "LAST USED", "PREFIX", "CREATED"];
    let table = Table::new(heading, &keys, |key| {
        [
            key.id.to_string(),
            or_dash(key.name.as_ref()),
            state(status(key.revoked_at, key.expires_at, now)),
            scopes(&key.scopes),
            full_or_dash(key.last_used_at),
            key.prefix.clone(),
            full(key.created_at),
        ]
    });
    let views: Vec<Value> = keys.iter().map(view).collect();
    Outcome::list(&views, &table, "The account has no keys; create one with `svc key create`.")
}

async fn rotate(service: &Service, key: Owned<ApiKey>, overlap: Duration) -> Result<Outcome, Failure> {
    let rotation = ApiKeyRotation { overlap: Some(seconds("overlap", overlap)?) };
    let new = key.call(service, &operations::ROTATE_KEY, rotation).await?;
    // Its text must not be lost, whatever becomes of this.
    let old = key.call(service, &operations::GET_KEY, ()).await.ok().and_then(|old| old.expires_at);
    let text = format!("Replaced key {}, which is valid until {}.\n\n{}", key.id, moment_or_dash(old), secrets(&new));
    Outcome::new(&new_view(&new), text)
}

/// Formats a key as JSON. `signed` is last.
fn view(key: &ApiKey) -> Value {
    let ApiKey { id, tenant_id, name, scopes, signed, prefix, created_at, expires_at, revoked_at, last_used_at } = key;
    json!({
        "id": id,
        "tenant_id": tenant_id,
        "name": name,
        "scopes": scopes,
        "prefix": prefix,
        "created_at": created_at,
        "expires_at": expires_at,
        "revoked_at": revoked_at,
        "last_used_at": last_used_at,
        "signed": signed,
    })
}

/// Formats a new key as JSON, with its secrets, which are never shown again.
fn new_view(key: &ApiKeyWithSecret) -> Value {
    json!({
        "id": key.id,
        "tenant_id": key.tenant_id,
        "name": key.name,
        "scopes": key.scopes,
        "key": key.key,
        "signing_secret": key.signing_secret,
        "prefix": key.prefix,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": null,
        "last_used_at": null,
    })
}

/// Formats a new key for people, with its secrets.
fn secrets(key: &ApiKeyWithSecret) -> String {
    let signing_secret = key.signing_secret.as_ref().map(|secret| ("signing secret", secret.clone()));
    let shown = [("id", key.id.to_string()), ("scopes", scopes(&key.scopes)), ("expires at", expiry(key.expires_at))]
        .into_iter()
        .chain(signing_secret)
        .chain([("key", key.key.clone())]);
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
        ("account id", key.tenant_id.to_string()),
        ("name", or_dash(key.name.as_ref())),
        ("prefix", key.prefix.clone()),
        ("scopes", scopes(&key.scopes)),
        ("signed", key.signed.to_string()),
        ("status", status(key.revoked_at, key.expires_at, now).to_owned()),
        ("created at", moment(key.created_at)),
        ("expires at", expiry(key.expires_at)),
        ("revoked at", moment_or_dash(key.revoked_at)),
        ("last used at", moment_or_dash(key.last_used_at)),
    ])
}

pub(super) fn scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",")
}

fn expiry(expires_at: Option<Timestamp>) -> String {
    expires_at.map_or_else(|| "never".to_owned(), moment)
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

/// Returns a note if the account is not approved, since its keys are then rejected with a 403.
fn access_note(account: &Account) -> Option<String> {
    let access = account.developer_access;
    (access != DeveloperAccess::Approved).then(|| {
        format!(
            "Developer access of account {} is {access}, so its keys are rejected until `svc account approve {}`.",
            account.name, account.id
        )
    })
}
