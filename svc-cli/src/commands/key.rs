//! `svc key`.

use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};
use svc_core::accounts::keys::Scope;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::env::Env;
use svc_core::platform::{Account, ApiKey, ApiKeyCreate, ApiKeyRotation, ApiKeyWithSecret, KeyScopes, operations};
use svc_core::values::{Text, Timestamp};

use super::lookup::{self, FoundRecord};
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, fields};
use crate::record::{Property, details, json_without, optional, state, table, text, time};
use crate::service::Service;
use crate::session::Session;
use crate::times::{self, full, last_use, moment, moment_or_dash, seconds};
use crate::values::{self, Expiry};

/// Manage API keys, with which an account's programs authenticate.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc key create --scopes read,write")]
pub(crate) enum KeyCommand {
    /// Create an API key.
    ///
    /// The key is printed once and cannot be shown again: the database stores only a hash of it.
    #[command(after_help = "Examples:\n  svc key create --scopes read,write\n  \
                      svc key create --scopes read --name Reports --expires 90d")]
    Create {
        #[command(flatten)]
        account: InAccount,
        /// The scopes of the key: read, or read,write.
        #[arg(long, value_parser = values::scopes, value_name = "read[,write]")]
        scopes: KeyScopes,
        /// Name that tells what the key is for: one line of at most 300 characters.
        #[arg(long, value_parser = Text::<300>::parse, value_name = "TEXT")]
        name: Option<Text<300>>,
        /// When the key expires: a duration such as 90d, a time, or a date, which is its start in the account's time zone. The
        /// default is never.
        #[arg(long, value_parser = values::expiry, allow_hyphen_values = true, value_name = "DURATION|TIME")]
        expires: Option<Expiry>,
        /// Require signed writes. The signing secret is also printed once.
        #[arg(long)]
        signed: bool,
    },
    /// List the keys of an account, oldest first.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc key list")]
    List {
        #[command(flatten)]
        account: InAccount,
    },
    /// Show a key, without its secret text.
    #[command(after_help = "Example:\n  svc key show 27c9e60b13fa")]
    Show {
        /// Id of the key.
        id: IdArg,
        #[command(flatten)]
        account: InAccount,
    },
    /// Revoke a key, so that requests with it are rejected from now on.
    ///
    /// A revocation cannot be undone. Revoking a revoked key changes nothing.
    #[command(after_help = "Example:\n  svc key revoke 27c9e60b13fa")]
    Revoke {
        /// Id of the key.
        id: IdArg,
        #[command(flatten)]
        account: InAccount,
    },
    /// Replace a key with a new one that has the same name and scopes.
    ///
    /// The old key remains valid for the overlap, so that programs can switch to the new one. The new key is printed
    /// once and cannot be shown again.
    #[command(after_help = "Examples:\n  svc key rotate 27c9e60b13fa\n  \
                      svc key rotate 27c9e60b13fa --overlap 7d")]
    Rotate {
        /// Id of the key.
        id: IdArg,
        #[command(flatten)]
        account: InAccount,
        /// How long the old key remains valid; 0s invalidates it immediately.
        #[arg(long, value_parser = values::duration, allow_hyphen_values = true, default_value = "24h", value_name = "DURATION")]
        overlap: Duration,
    },
}

pub(crate) async fn run(session: &Session, command: KeyCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        KeyCommand::Create { account, scopes, name, expires, signed } => {
            let account = lookup::account(service, &account).await?;
            let expires = match expires {
                Some(expires) => Some(lifetime(service, &expires)?),
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
            Outcome::new(&view(&key), details(describe(&key)))
        }
        KeyCommand::Revoke { id, account } => {
            let found = lookup::find::<ApiKey>(service, &id, &account).await?;
            session.confirm(&revocation(&found.record))?;
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
fn lifetime(service: &Service, expires: &Expiry) -> Result<Duration, Failure> {
    match expires {
        Expiry::In(duration) => Ok(*duration),
        Expiry::At(at) => lifetime_until(times::instant(at)?, service.now()),
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
    let views: Vec<Value> = keys.iter().map(view).collect();
    Outcome::list(&views, &table(&keys, describe), "The account has no keys; create one with `svc key create`.")
}

async fn rotate(service: &Service, key: FoundRecord<ApiKey>, overlap: Duration) -> Result<Outcome, Failure> {
    let rotation = ApiKeyRotation { overlap: Some(seconds("overlap", overlap)?) };
    let new = key.call(service, &operations::ROTATE_KEY, rotation).await?;
    // Its text must not be lost, whatever becomes of this.
    let old = key.call(service, &operations::GET_KEY, ()).await.ok().and_then(|old| old.expires_at);
    let text = format!("Replaced key {}, which is valid until {}.\n\n{}", key.id, moment_or_dash(old), secrets(&new));
    Outcome::new(&new_view(&new), text)
}

/// Returns the question before a key is revoked, which names it by its name, its beginning and its last use.
fn revocation(key: &ApiKey) -> String {
    let name = key.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let (prefix, used) = (&key.prefix, last_use(key.last_used_at));
    format!("Revoke key{name} ({prefix}…), {used}? It is rejected from the next request on, and this cannot be undone.")
}

/// Formats a key as JSON. `signed` is last.
fn view(key: &ApiKey) -> Value {
    let mut json = json_without(key, &["signed"]);
    json["signed"] = key.signed.into();
    json
}

/// Formats a new key as JSON, with its secrets, which are never shown again.
fn new_view(key: &ApiKeyWithSecret) -> Value {
    let mut json = json!(key);
    json["revoked_at"] = Value::Null;
    json["last_used_at"] = Value::Null;
    json
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

fn describe(key: &ApiKey) -> Vec<Property> {
    vec![
        text("id", key.id).column(1, "ID"),
        text("account id", key.tenant_id),
        optional("name", key.name.as_ref()).column(2, "NAME"),
        text("prefix", &key.prefix).column(6, "PREFIX"),
        text("scopes", scopes(&key.scopes)).column(4, "SCOPES"),
        text("signed", key.signed),
        state("status", status(key.revoked_at, key.expires_at)).column(3, "STATUS"),
        time("created at", key.created_at).column(7, "CREATED"),
        text("expires at", expiry(key.expires_at)),
        time("revoked at", key.revoked_at),
        time("last used at", key.last_used_at).column(5, "LAST USED"),
    ]
}

pub(super) fn scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",")
}

pub(super) fn expiry(expires_at: Option<Timestamp>) -> String {
    expires_at.map_or_else(|| "never".to_owned(), moment)
}

/// Returns whether a key can be used: `active`, `expired` or `revoked`.
pub(super) fn status(revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> &'static str {
    if revoked_at.is_some() {
        "revoked"
    } else if expires_at.is_some_and(|at| at <= Env::system().now()) {
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
