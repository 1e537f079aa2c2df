//! `svc account sandbox`.

use serde_json::{Value, json};
use svc_core::operation::Operation;
use svc_core::platform::operations::{self, CREATE_SANDBOX, DELETE_SANDBOX, GET_SANDBOX, RESET_SANDBOX};
use svc_core::platform::{Account, NewSandbox, SandboxStep};
use svc_core::values::TenantId;

use super::{describe, view};
use crate::exit::{Exit, Failure};
use crate::output::Outcome;
use crate::record::{details, text};
use crate::service::Service;
use crate::session::Session;

pub(super) async fn run(
    session: &Session,
    service: &Service,
    account: &Account,
    reset: bool,
    delete: bool,
) -> Result<Outcome, Failure> {
    let name = &account.name;
    if delete {
        let question = format!("Delete the sandbox of {name}, with its keys and webhooks? This cannot be undone.");
        session.confirm(&question)?;
    } else if reset {
        let question = format!("Reset the sandbox of {name}? What it has is deleted, but for its keys and webhooks.");
        session.confirm(&question)?;
    }
    let existing = match service.call(&GET_SANDBOX, account.id, ()).await {
        Err(error) if error.is_not_found() => None,
        found => Some(found?),
    };
    match existing {
        None if delete && account.sandbox_id.is_some() => {
            repeat(service, &DELETE_SANDBOX, account.id).await?;
            let account = service.call(&operations::GET_ACCOUNT, account.id, ()).await?;
            let text = format!("The sandbox of {} was gone already; the account no longer names it.", account.name);
            Outcome::new(&view(&account), text)
        }
        None if reset || delete => {
            let reason = format!(
                "Account {} has no sandbox; create one with `svc account sandbox {}`.",
                account.name, account.id
            );
            Err(Failure::new(Exit::NotFound, reason))
        }
        None => create(service, account).await,
        Some(sandbox) if delete => {
            repeat(service, &DELETE_SANDBOX, account.id).await?;
            Outcome::new(&view(&sandbox), format!("Deleted the sandbox of {} with all that it had.", account.name))
        }
        Some(sandbox) if reset => {
            repeat(service, &RESET_SANDBOX, account.id).await?;
            let text =
                format!("Reset the sandbox of {name}. It has the sample records, and its keys and webhooks stay.");
            Outcome::new(&view(&sandbox), text)
        }
        Some(sandbox) => {
            let sandbox = service.call(&operations::GET_ACCOUNT, sandbox.id, ()).await?;
            let text = format!("Account {} has a sandbox.\n\n{}", account.name, details(describe(&sandbox)));
            let note = format!(
                "Its keys were shown when they were created; `svc key create --account {} --scopes read,write` creates \
                 another.",
                sandbox.id
            );
            Ok(Outcome::new(&with_key(&sandbox, None), text)?.with_note(Some(note)))
        }
    }
}

async fn create(service: &Service, account: &Account) -> Result<Outcome, Failure> {
    let NewSandbox { account: sandbox, key } = service.call(&CREATE_SANDBOX, account.id, ()).await?;
    let shown = details(describe(&sandbox).into_iter().chain([text("key", &key.key)]));
    let name = &account.name;
    let text = format!(
        "Created the sandbox of {name}, with sample records and a key.\n\n{shown}\nStore the key now. It will not be shown \
         again.\n"
    );
    Outcome::new(&with_key(&sandbox, Some(&key.key)), text)
}

/// Calls an operation until it has taken its last step.
async fn repeat(
    service: &Service,
    operation: &Operation<TenantId, (), SandboxStep>,
    account: TenantId,
) -> Result<(), Failure> {
    while !service.call(operation, account, ()).await?.is_done {}
    Ok(())
}

/// Formats a sandbox as JSON, with the text of its first key if it is new.
fn with_key(sandbox: &Account, key: Option<&str>) -> Value {
    let mut json = view(sandbox);
    json["key"] = json!(key);
    json
}
