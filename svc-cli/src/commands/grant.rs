//! `svc grant`.

use clap::Subcommand;
use svc_core::platform::{Account, AppGrant, operations};

use super::key::scopes;
use super::lookup;
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, plain};
use crate::record::{Property, table, text, time};
use crate::service::Service;
use crate::session::Session;
use crate::times::last_use;

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
            let grants = read_all(service, &lookup::account(service, &account).await?).await?;
            Outcome::list(&grants, &table(&grants, describe), "No app may work on this account.")
        }
        GrantCommand::Revoke { grant, account } => {
            let account = lookup::account(service, &account).await?;
            let grant = find(service, &account, &grant).await?;
            let (app, used, name) = (&grant.app_name, last_use(grant.last_used_at), &account.name);
            session.confirm(&format!(
                "End the access of {app}, {used}, to {name}? Its tokens are refused from the next request on."
            ))?;
            service.call(&operations::REVOKE_GRANT, (account.id, grant.id), ()).await?;
            Outcome::new(&grant, format!("{} has no access to {} from now on.", plain(app), plain(name)))
        }
    }
}

fn describe(grant: &AppGrant) -> Vec<Property> {
    vec![
        text("id", grant.id).column(1, "ID"),
        text("app", &grant.app_name).column(2, "APP"),
        text("scopes", scopes(&grant.scopes)).column(3, "SCOPES"),
        text("granted by", &grant.member).column(4, "GRANTED BY"),
        time("since", grant.created_at).column(5, "SINCE"),
        time("last used at", grant.last_used_at).column(6, "LAST USED"),
        text("requests", grant.requests).column(7, "REQUESTS"),
    ]
}

async fn read_all(service: &Service, account: &Account) -> Result<Vec<AppGrant>, Failure> {
    Ok(service.call(&operations::LIST_GRANTS, account.id, ()).await?.data)
}

/// Returns the grant that is named by its id, or by the name of its app.
async fn find(service: &Service, account: &Account, named: &IdArg) -> Result<AppGrant, Failure> {
    let text = named.to_string();
    let is_meant = |grant: &AppGrant| named.is_of(grant.id.uuid()) || grant.app_name.eq_ignore_ascii_case(&text);
    let unknown = || {
        let hint = "name one by its id, or by the name of its app, as `svc grant list` shows them";
        Failure::new(Exit::NotFound, format!("There is no grant {text}; {hint}."))
    };
    let mut grants = read_all(service, account).await?;
    grants.retain(is_meant);
    lookup::single_match(grants, unknown, |_| format!("Several grants are called {text}; name one by its id."))
}
