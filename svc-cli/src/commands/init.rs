//! `svc init`.

use serde::Serialize;
use svc_core::accounts::keys::{self, KeyCreate, KeyId, NewKey};
use svc_core::accounts::tenants::{self, Tenant, TenantCreate};
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::TenantId;

use super::{Allowed, open_or_create};
use crate::exit::Failure;
use crate::output::Outcome;

#[derive(Serialize)]
struct View<'a> {
    database_url: &'a str,
    url: &'a str,
    tenant_id: TenantId,
    tenant_name: &'a str,
    key_id: KeyId,
    key: &'a str,
}

pub(super) async fn run(url: &str, allowed: Allowed, server_url: &str, name: String) -> Result<Outcome, Failure> {
    let store = open_or_create(url, allowed, true).await?;
    let (account, key) = create(&*store, name).await?;
    let database_url = svc_store::absolute_url(url);
    let view = View {
        database_url: &database_url,
        url: server_url,
        tenant_id: account.id,
        tenant_name: &account.name,
        key_id: key.key.id,
        key: key.text.reveal(),
    };
    let lines = [
        ("SVC_DATABASE_URL", view.database_url.to_owned()),
        ("SVC_URL", view.url.to_owned()),
        ("SVC_TENANT", view.tenant_id.to_string()),
        ("SVC_KEY", view.key.to_owned()),
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
async fn create(store: &dyn Store, name: String) -> Result<(Tenant, NewKey), Failure> {
    let created = store.write("init", name, async |tx, name| {
        let input = TenantCreate::named(name);

        if let Some(account) = tx.tenants(None, 1).await?.first() {
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
