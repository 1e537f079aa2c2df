//! `svc member`.

use svc_core::accounts::members::Member;
use svc_core::accounts::sessions::Role;
use svc_core::error::Error;
use svc_core::platform::{Account, MemberCreate, MemberUpdate, operations};
use svc_core::values::Email;

use super::lookup;
use crate::cli::MemberCommand;
use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table, plain};
use crate::service::{CallError, CallResult, Service};
use crate::times::full;

pub(super) async fn run(service: &Service, command: MemberCommand) -> Result<Outcome, Failure> {
    match command {
        MemberCommand::Add { account, email, role } => {
            add(service, lookup::account(service, &account).await?, email, role).await
        }
        MemberCommand::List { account } => list(service, lookup::account(service, &account).await?).await,
        MemberCommand::Remove { account, email } => {
            remove(service, lookup::account(service, &account).await?, email).await
        }
    }
}

/// Adds a member, or changes the role of one.
async fn add(service: &Service, account: Account, email: Email, role: Role) -> Result<Outcome, Failure> {
    let new = MemberCreate { email: email.clone(), role };
    let added = service.call(&operations::ADD_MEMBER, account.id, new).await;
    let member = match added {
        Err(CallError::Rules(Error::NotAllowed(_))) => match find(service, &account, &email).await? {
            Some(known) => {
                service.call(&operations::UPDATE_MEMBER, (account.id, known.id), MemberUpdate { role }).await
            }
            None => added,
        },
        added => added,
    }?;
    let text = format!("{} is a member of {} with the role {}.", member.email, plain(&account.name), member.role);
    Outcome::new(&member, text)
}

/// Returns all members of an account.
async fn all(service: &Service, account: &Account) -> CallResult<Vec<Member>> {
    Ok(service.call(&operations::LIST_MEMBERS, account.id, ()).await?.data)
}

/// Returns the member with an email address, if there is one.
async fn find(service: &Service, account: &Account, email: &Email) -> CallResult<Option<Member>> {
    let is_meant = |member: &Member| member.email.as_str().eq_ignore_ascii_case(email.as_str());
    Ok(all(service, account).await?.into_iter().find(is_meant))
}

async fn list(service: &Service, account: Account) -> Result<Outcome, Failure> {
    let listed = all(service, &account).await?;
    let table = Table::new(["EMAIL", "ROLE", "ADDED"], &listed, |member: &Member| {
        [member.email.to_string(), member.role.to_string(), full(member.created_at)]
    });
    Outcome::list(&listed, &table, "The account has no members; add one with `svc member add`.")
}

/// Returns the member with an email address.
///
/// # Errors
/// There is none.
pub(super) async fn member(service: &Service, account: &Account, email: &Email) -> Result<Member, Failure> {
    find(service, account, email).await?.ok_or_else(|| {
        let hint = "`svc member list` lists the members of an account";
        Failure::new(Exit::NotFound, format!("There is no member {email}; {hint}."))
    })
}

async fn remove(service: &Service, account: Account, email: Email) -> Result<Outcome, Failure> {
    let member = member(service, &account, &email).await?;
    service.call(&operations::REMOVE_MEMBER, (account.id, member.id), ()).await?;
    let text = format!("{} is no longer a member of {}.", member.email, plain(&account.name));
    Outcome::new(&member, text)
}
