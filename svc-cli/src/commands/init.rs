//! `svc init`.

use clap::Args;
use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate, NewKey};
use svc_core::accounts::tenants::{self, Tenant, TenantCreate};
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::Text;

use crate::exit::Failure;
use crate::output::Outcome;
use crate::session::Session;

/// Set up a new database with an account and an API key.
///
/// Creates the database if it does not exist, an account with access to the API, and a key with the scopes read and
/// write. Prints lines for your shell that set SVC_DATABASE_URL, SVC_URL, SVC_TENANT and SVC_KEY. The key is printed
/// once and cannot be shown again. A database that already has an account is refused.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc init\n  svc init --name 'Harbour Plumbing'\n  \
                  eval \"$(svc init --database-url sqlite:///var/lib/svc/svc.db)\"")]
pub(crate) struct Init {
    /// Name of the account.
    #[arg(long, value_parser = Text::<300>::parse, default_value = "My business", value_name = "NAME")]
    name: Text<300>,
    /// URL at which the server will be reached.
    #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
}

pub(crate) async fn run(session: &Session, Init { name, url }: Init) -> Result<Outcome, Failure> {
    let database = session.database("svc init")?;
    let store = database.open(true).await?;
    let (account, key) = create(&*store, name).await?;
    let database_url = svc_store::absolute_url(&database.url);
    let view = json!({
        "database_url": database_url,
        "url": url,
        "tenant_id": account.id,
        "tenant_name": account.name,
        "key_id": key.key.id,
        "key": key.text.reveal(),
    });
    let lines = [
        ("SVC_DATABASE_URL", database_url),
        ("SVC_URL", url),
        ("SVC_TENANT", account.id.to_string()),
        ("SVC_KEY", key.text.reveal().to_owned()),
    ];
    // A value can be quoted unless it has a NUL, which no URL that was opened has.
    let line =
        |(variable, value): (_, String)| format!("export {variable}={}", shlex::try_quote(&value).unwrap_or_default());
    let lines = lines.map(line).join("\n");
    let note = format!(
        "Created the account {}, and a key that reads and writes. Store the key now. It will not be shown again. Set the \
         variables above in your shell, start `svc-server`, and try:\n  curl -H \"Authorization: Bearer $SVC_KEY\" \
         $SVC_URL/api/v1/ping",
        account.name
    );
    Ok(Outcome::new(&view, lines)?.with_note(Some(note)))
}

/// Creates the account and its key, unless the database has an account.
async fn create(store: &dyn Store, name: Text<300>) -> Result<(Tenant, NewKey), Failure> {
    let created = store.write("init", name, async |tx, name| {
        let input = TenantCreate::named(name.as_str());
        if let Some(account) = tx.tenants(None, 1, false).await?.first() {
            return Err(Error::NotAllowed(format!(
                "the database already has the account {} ({}); add another one with `svc account create`, or a key with \
                     `svc key create`",
                account.id, account.name
            )));
        }
        let account = tenants::create(tx, input).await?;
        let key = KeyCreate { name: None, write: true, expires_in: None, signed: false };
        let key = keys::create(tx, account.id, key).await?;
        Ok((account, key))
    });
    Ok(created.await?)
}
