//! `svc init`.

use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate, NewKey};
use svc_core::accounts::tenants::{self, Tenant, TenantCreate};
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::Text;

use super::Database;
use crate::exit::Failure;
use crate::output::Outcome;

pub(super) async fn run(database: &Database, server_url: &str, name: Text<300>) -> Result<Outcome, Failure> {
    let store = database.open(true).await?;
    let (account, key) = create(&*store, name).await?;
    let database_url = svc_store::absolute_url(&database.url);
    let view = json!({
        "database_url": database_url,
        "url": server_url,
        "tenant_id": account.id,
        "tenant_name": account.name,
        "key_id": key.key.id,
        "key": key.text.reveal(),
    });
    let lines = [
        ("SVC_DATABASE_URL", database_url),
        ("SVC_URL", server_url.to_owned()),
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
