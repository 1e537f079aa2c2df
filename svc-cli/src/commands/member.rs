//! `svc member`.

use svc_core::accounts::members::{self, Member};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::Tenant;
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::Email;

use super::lookup;
use crate::cli::MemberCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table, plain};
use crate::times::full;

/// Says how to find the members.
const HINT: &str = "`svc member list` lists the members of a tenant";

pub(super) async fn run(store: &dyn Store, command: MemberCommand) -> Result<Outcome, Failure> {
    match command {
        MemberCommand::Add { tenant, email, role } => {
            add(store, lookup::tenant(store, &tenant).await?, email, role.into()).await
        }
        MemberCommand::List { tenant } => list(store, lookup::tenant(store, &tenant).await?).await,
        MemberCommand::Remove { tenant, email } => remove(store, lookup::tenant(store, &tenant).await?, email).await,
    }
}

async fn add(store: &dyn Store, tenant: Tenant, email: Email, role: Role) -> Result<Outcome, Failure> {
    let id = tenant.id;
    let added = store.write("member.add", move |tx| {
        let email = email.clone();
        Box::pin(async move {
            match members::get_by_email(tx, id, &email).await {
                Err(Error::NotFound) => members::add(tx, id, &email, role).await,
                known => members::set_role(tx, id, known?.id, role).await,
            }
        })
    });
    let member = added.await?;
    let text = format!("{} is a member of {} with the role {}.", member.email, plain(&tenant.name), member.role);
    Outcome::new(&member, text)
}

async fn list(store: &dyn Store, tenant: Tenant) -> Result<Outcome, Failure> {
    let listed = store.read("member.list", move |tx| Box::pin(members::list(tx, tenant.id))).await?;
    let table = Table::new(["EMAIL", "ROLE", "ADDED"], &listed, |member: &Member| {
        [member.email.to_string(), member.role.to_string(), full(member.created_at)]
    });
    Outcome::list(&listed, &table, "The tenant has no members; add one with `svc member add`.")
}

async fn remove(store: &dyn Store, tenant: Tenant, email: Email) -> Result<Outcome, Failure> {
    let (id, typed) = (tenant.id, email.clone());
    let removed = store.write("member.remove", move |tx| {
        let email = email.clone();
        Box::pin(async move {
            let member = members::get_by_email(tx, id, &email).await?;
            members::remove(tx, id, member.id).await
        })
    });
    let member = removed.await.or_not_found("member", typed, HINT)?;
    let text = format!("{} is no longer a member of {}.", member.email, plain(&tenant.name));
    Outcome::new(&member, text)
}
