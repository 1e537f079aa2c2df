//! `svc dashboard`.

use clap::Subcommand;
use serde_json::json;
use svc_core::accounts::sessions::Role;
use svc_core::platform::{DashboardLinkCreate, OperatorLinkCreate, operations};
use svc_core::values::Email;

use super::lookup;
use crate::exit::Failure;
use crate::ids::InAccount;
use crate::output::Outcome;
use crate::public_url::PublicUrl;
use crate::session::Session;
use crate::values;

/// Sign people in to the dashboard, the pages of the server in the browser.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc dashboard link --role viewer")]
pub(crate) enum DashboardCommand {
    /// Make a link that signs a person in to the dashboard.
    ///
    /// The link works once, for ten minutes. Opening it in a browser begins a session of twelve hours, or of 30 days where
    /// the person stays signed in. Give it to that person alone. The dashboard's list of sessions shows who is signed in.
    #[command(after_help = "Examples:\n  svc dashboard link\n  \
                      svc dashboard link --role viewer --url https://api.example.com\n  \
                      svc dashboard link --email ada@example.com\n  \
                      svc dashboard link --operator")]
    Link {
        #[command(flatten)]
        account: InAccount,
        /// The role of the person: owner, if neither this nor --email is given. Each role has the rights of those before it, too.
        #[arg(long, value_parser = values::role(), value_name = "ROLE")]
        role: Option<Role>,
        /// Email address of a member of the account. The link signs in as this member, with the member's role; the audit log and
        /// the list of sessions name the address. The session shows this account alone.
        #[arg(long, value_parser = Email::parse, conflicts_with_all = ["role", "operator"], value_name = "ADDRESS")]
        email: Option<Email>,
        /// Sign in as an operator, who sees all accounts, approves them and sets their limits.
        #[arg(long, conflicts_with = "role")]
        operator: bool,
        #[command(flatten)]
        server: PublicUrl,
    },
}

pub(crate) async fn run(session: &Session, command: DashboardCommand) -> Result<Outcome, Failure> {
    let DashboardCommand::Link { account, role, email, operator, server } = command;
    let service = &session.service().await?;
    let (path, account, role, expires_at) = if operator {
        let link = service.call(&operations::CREATE_OPERATOR_LINK, (), OperatorLinkCreate::default()).await?;
        (link.path, None, Role::Owner, link.expires_at)
    } else {
        let id = lookup::account(service, &account).await?.id;
        let input = match email {
            Some(email) => DashboardLinkCreate::to_member(email),
            None => DashboardLinkCreate::new(role.unwrap_or(Role::Owner)),
        };
        let link = service.call(&operations::CREATE_DASHBOARD_LINK, id, input).await?;
        (link.path, Some(id), link.role, link.expires_at)
    };
    let url = server.with(&path);
    Outcome::new(&json!({ "url": url, "tenant_id": account, "role": role, "expires_at": expires_at }), url)
}
