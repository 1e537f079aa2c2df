//! `svc grant`.

use clap::Subcommand;
use svc_core::platform::{Account, AppGrant, operations};

use super::key::scopes;
use super::lookup;
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, Table, plain};
use crate::service::Service;
use crate::session::Session;
use crate::times::{full, full_or_dash, moment};

/// See and end the access of apps to an account.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc grant list")]
pub(crate) enum GrantCommand {
    /// List the apps that may work on an account, with who granted it and when they last did.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc grant list")]
    List {
        #[command(flatten)]
        account: InAccount,
    },
    /// End the access of an app to an account.
    ///
    /// Its tokens are refused from now on, and its webhook subscriptions are deleted.
    #[command(after_help = "Example:\n  svc grant revoke 'Route Planner'")]
    Revoke {
        /// Grant by its id, or the app by its name.
        grant: IdArg,
        #[command(flatten)]
        account: InAccount,
    },
}

pub(crate) async fn run(session: &Session, command: GrantCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        GrantCommand::List { account } => {
            let grants = all(service, &lookup::account(service, &account).await?).await?;
            let table =
                Table::new(["ID", "APP", "SCOPES", "GRANTED BY", "SINCE", "LAST USED", "REQUESTS"], &grants, |grant| {
                    [
                        grant.id.to_string(),
                        grant.app_name.clone(),
                        scopes(&grant.scopes),
                        grant.member.clone(),
                        full(grant.created_at),
                        full_or_dash(grant.last_used_at),
                        grant.requests.to_string(),
                    ]
                });
            Outcome::list(&grants, &table, "No app may work on this account.")
        }
        GrantCommand::Revoke { grant, account } => {
            let account = lookup::account(service, &account).await?;
            let grant = find(service, &account, &grant).await?;
            let used =
                grant.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", moment(at)));
            session.confirm(&format!(
                "End the access of {}, {used}, to {}? Its tokens are refused from the next request on.",
                grant.app_name, account.name
            ))?;
            service.call(&operations::REVOKE_GRANT, (account.id, grant.id), ()).await?;
            let (app, account) = (plain(&grant.app_name), plain(&account.name));
            Outcome::new(&grant, format!("{app} has no access to {account} from now on."))
        }
    }
}

async fn all(service: &Service, account: &Account) -> Result<Vec<AppGrant>, Failure> {
    Ok(service.call(&operations::LIST_GRANTS, account.id, ()).await?.data)
}

/// Returns the grant that is named by its id, or by the name of its app.
async fn find(service: &Service, account: &Account, named: &IdArg) -> Result<AppGrant, Failure> {
    let text = named.to_string();
    let mut grants = all(service, account).await?;
    grants.retain(|grant| match named {
        IdArg::Whole(id) => grant.id.uuid() == *id,
        IdArg::Part(part) if part.begins(grant.id.uuid()) || part.ends(grant.id.uuid()) => true,
        _ => grant.app_name.eq_ignore_ascii_case(&text),
    });
    match (grants.pop(), grants.len()) {
        (Some(grant), 0) => Ok(grant),
        (None, _) => {
            let reason = format!(
                "There is no grant {text}; name one by its id, or by the name of its app, as `svc grant list` shows them."
            );
            Err(Failure::new(Exit::NotFound, reason))
        }
        _ => Err(Failure::new(Exit::Refused, format!("Several grants are called {text}; name one by its id."))),
    }
}
