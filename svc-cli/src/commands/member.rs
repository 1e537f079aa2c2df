//! `svc member`.

use clap::Subcommand;
use serde_json::json;
use svc_core::accounts::members::Member;
use svc_core::accounts::sessions::Role;
use svc_core::error::Error;
use svc_core::platform::{Account, DashboardLink, DashboardLinkCreate, MemberCreate, MemberUpdate, operations};
use svc_core::values::Email;

use super::lookup;
use crate::exit::{Exit, Failure};
use crate::ids::InAccount;
use crate::output::{Outcome, Table, plain};
use crate::public_url::PublicUrl;
use crate::service::{CallError, CallResult, Service};
use crate::session::Session;
use crate::times::full;
use crate::values;

/// Manage members, the people who may sign in to the dashboard of an account with their email address.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc member add --email ada@example.com --role owner")]
pub(crate) enum MemberCommand {
    /// Add a member, or change the role of one.
    ///
    /// The person signs in to the dashboard at the identity provider that svc-server has by --oidc-issuer. An application
    /// that embeds the service signs the person in once it has verified the address. Without either, the person signs in by
    /// a link: `svc dashboard link --email ADDRESS`. A change of the role holds from the person's next request on.
    #[command(after_help = "Example:\n  svc member add --email ada@example.com --role owner")]
    Add {
        #[command(flatten)]
        account: InAccount,
        /// Email address of the person. Upper and lower case are the same.
        #[arg(long, value_parser = Email::parse, value_name = "ADDRESS")]
        email: Email,
        /// The role of the person. Each role has the rights of those before it, too.
        #[arg(long, value_parser = values::role(), value_name = "ROLE")]
        role: Role,
    },
    /// Invite a person: add a member, and print a link that signs in as this member.
    ///
    /// The link works once, within seven days. Give it to the person alone. A member who is there already gets another link, and
    /// with --role another role.
    #[command(after_help = "Example:\n  svc member invite ada@example.com --role developer")]
    Invite {
        #[command(flatten)]
        account: InAccount,
        /// Email address of the person. Upper and lower case are the same.
        #[arg(value_parser = Email::parse, value_name = "EMAIL")]
        email: Email,
        /// The role of the person. Each role has the rights of those before it, too. The default is viewer for a new member.
        #[arg(long, value_parser = values::role(), value_name = "ROLE")]
        role: Option<Role>,
        #[command(flatten)]
        server: PublicUrl,
    },
    /// List the members of an account by email address.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc member list")]
    List {
        #[command(flatten)]
        account: InAccount,
    },
    /// Remove a member, who sees nothing of the account from the next request on.
    #[command(after_help = "Example:\n  svc member remove --email ada@example.com")]
    Remove {
        #[command(flatten)]
        account: InAccount,
        /// Email address of the member.
        #[arg(long, value_parser = Email::parse, value_name = "ADDRESS")]
        email: Email,
    },
}

pub(crate) async fn run(session: &Session, command: MemberCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        MemberCommand::Add { account, email, role } => {
            add(service, lookup::account(service, &account).await?, email, role).await
        }
        MemberCommand::Invite { account, email, role, server } => {
            let account = lookup::account(service, &account).await?;
            invite(service, account, email, role, &server).await
        }
        MemberCommand::List { account } => list(service, lookup::account(service, &account).await?).await,
        MemberCommand::Remove { account, email } => {
            let account = lookup::account(service, &account).await?;
            let member = find(service, &account, &email).await?.ok_or_else(|| {
                let hint = "`svc member list` lists the members of an account";
                Failure::new(Exit::NotFound, format!("There is no member {email}; {hint}."))
            })?;
            let (Member { email, role, .. }, name) = (&member, &account.name);
            session.confirm(&format!(
                "Remove {email}, {role} of {name}? They see nothing of it from the next request on."
            ))?;
            service.call(&operations::REMOVE_MEMBER, (account.id, member.id), ()).await?;
            let text = format!("{email} is no longer a member of {}.", plain(name));
            Outcome::new(&member, text)
        }
    }
}

/// Adds a member, or changes the role of one, and reports it.
async fn add(service: &Service, account: Account, email: Email, role: Role) -> Result<Outcome, Failure> {
    let member = put(service, &account, email, role).await?;
    let text = format!("{} is a member of {} with the role {}.", member.email, plain(&account.name), member.role);
    Outcome::new(&member, text)
}

/// Makes the link of an invitation, for a member who is added if need be.
async fn invite(
    service: &Service,
    account: Account,
    email: Email,
    role: Option<Role>,
    server: &PublicUrl,
) -> Result<Outcome, Failure> {
    let known = find(service, &account, &email).await?;
    if known.is_none() || role.is_some() {
        put(service, &account, email.clone(), role.unwrap_or(Role::Viewer)).await?;
    }
    let invitation = DashboardLinkCreate::invitation(email);
    let link = service.call(&operations::CREATE_DASHBOARD_LINK, account.id, invitation).await?;
    let DashboardLink { path, tenant_id, role, identity, expires_at } = link;
    let url = server.with(&path);
    let json = json!({ "url": url, "email": identity, "role": role, "tenant_id": tenant_id, "expires_at": expires_at });
    Outcome::new(&json, url)
}

/// Adds a member, or changes the role of one.
async fn put(service: &Service, account: &Account, email: Email, role: Role) -> CallResult<Member> {
    let new = MemberCreate { email: email.clone(), role };
    let added = service.call(&operations::ADD_MEMBER, account.id, new).await;
    match added {
        Err(CallError::Rules(Error::NotAllowed(_))) => match find(service, account, &email).await? {
            Some(known) => {
                service.call(&operations::UPDATE_MEMBER, (account.id, known.id), MemberUpdate { role }).await
            }
            None => added,
        },
        added => added,
    }
}

/// Returns all members of an account.
async fn read_all(service: &Service, account: &Account) -> CallResult<Vec<Member>> {
    Ok(service.call(&operations::LIST_MEMBERS, account.id, ()).await?.data)
}

/// Returns the member with an email address, if there is one.
async fn find(service: &Service, account: &Account, email: &Email) -> CallResult<Option<Member>> {
    let is_meant = |member: &Member| member.email.as_str().eq_ignore_ascii_case(email.as_str());
    Ok(read_all(service, account).await?.into_iter().find(is_meant))
}

async fn list(service: &Service, account: Account) -> Result<Outcome, Failure> {
    let listed = read_all(service, &account).await?;
    let table = Table::new(["EMAIL", "ROLE", "ADDED"], &listed, |member: &Member| {
        [member.email.to_string(), member.role.to_string(), full(member.created_at)]
    });
    Outcome::list(&listed, &table, "The account has no members; add one with `svc member add`.")
}
