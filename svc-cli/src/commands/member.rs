//! `svc member`.

use svc_core::accounts::members::Member;
use svc_core::accounts::sessions::Role;
use svc_core::error::Error;
use svc_core::platform::{Account, MemberCreate, MemberUpdate, operations};
use svc_core::values::Email;

use super::lookup;
use crate::cli::MemberCommand;
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, Table, plain};
use crate::service::{CallError, CallResult, Service};
use crate::times::full;

/// Says how to find the members.
const HINT: &str = "`svc member list` lists the members of a tenant";

pub(super) async fn run(service: &Service, command: MemberCommand) -> Result<Outcome, Failure> {
    match command {
        MemberCommand::Add { tenant, email, role } => {
            add(service, lookup::tenant(service, &tenant).await?, email, role.into()).await
        }
        MemberCommand::List { tenant } => list(service, lookup::tenant(service, &tenant).await?).await,
        MemberCommand::Remove { tenant, email } => {
            remove(service, lookup::tenant(service, &tenant).await?, email).await
        }
    }
}

/// Adds a member, or changes the role of one.
async fn add(service: &Service, tenant: Account, email: Email, role: Role) -> Result<Outcome, Failure> {
    let new = MemberCreate { email: email.clone(), role };
    let added = service.call(&operations::ADD_MEMBER, tenant.id, new).await;
    let member = match added {
        Err(CallError::Rules(Error::NotAllowed(_))) => match find(service, &tenant, &email).await? {
            Some(known) => service.call(&operations::UPDATE_MEMBER, (tenant.id, known.id), MemberUpdate { role }).await,
            None => added,
        },
        added => added,
    };
    let member = member.or_not_found("member", email, HINT)?;
    let text = format!("{} is a member of {} with the role {}.", member.email, plain(&tenant.name), member.role);
    Outcome::new(&member, text)
}

/// Returns all members of a tenant.
async fn all(service: &Service, tenant: &Account) -> CallResult<Vec<Member>> {
    Ok(service.call(&operations::LIST_MEMBERS, tenant.id, ()).await?.data)
}

/// Returns the member with an email address.
async fn find(service: &Service, tenant: &Account, email: &Email) -> CallResult<Option<Member>> {
    let is_meant = |member: &Member| member.email.as_str().eq_ignore_ascii_case(email.as_str());
    Ok(all(service, tenant).await?.into_iter().find(is_meant))
}

async fn list(service: &Service, tenant: Account) -> Result<Outcome, Failure> {
    let listed = all(service, &tenant).await?;
    let table = Table::new(["EMAIL", "ROLE", "ADDED"], &listed, |member: &Member| {
        [member.email.to_string(), member.role.to_string(), full(member.created_at)]
    });
    Outcome::list(&listed, &table, "The tenant has no members; add one with `svc member add`.")
}

async fn remove(service: &Service, tenant: Account, email: Email) -> Result<Outcome, Failure> {
    let nobody = || Failure::new(Exit::NotFound, format!("There is no member {email}; {HINT}."));
    let member = find(service, &tenant, &email).await?.ok_or_else(nobody)?;
    let removed = service.call(&operations::REMOVE_MEMBER, (tenant.id, member.id), ()).await;
    removed.or_not_found("member", &email, HINT)?;
    let text = format!("{} is no longer a member of {}.", member.email, plain(&tenant.name));
    Outcome::new(&member, text)
}
