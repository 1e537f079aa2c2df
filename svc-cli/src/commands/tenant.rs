//! `svc tenant`.

use serde_json::{Value, json};
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::error::{Error, Issue};
use svc_core::platform::{
    Account, AccountCreate, AccountUpdate, AtLeastOne, WebhookCount, WriteLimitChanges, WriteLimits, Zone, operations,
};
use svc_core::values::{Patch, TenantId, Text};

use super::lookup;
use crate::cli::{TenantChanges, TenantCommand};
use crate::exit::{Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, state};
use crate::service::Service;
use crate::times::{full, moment};

/// Says how to find the id of a tenant.
pub(super) const HINT: &str = "`svc tenant list` lists all tenants";

pub(super) async fn run(service: &Service, command: TenantCommand) -> Result<Outcome, Failure> {
    match command {
        TenantCommand::Create { name, time_zone, currency, pending } => {
            let input = AccountCreate {
                name: text(&name)?,
                time_zone: Some(Zone(time_zone)),
                currency: Some(currency),
                developer_access: pending.then_some(DeveloperAccess::Pending),
            };
            let tenant = service.call(&operations::CREATE_ACCOUNT, (), input).await?;
            outcome(&tenant, format!("Created tenant {}.\n\n{}", tenant.name, details(&tenant)))
        }
        TenantCommand::List { limit, after } => list(service, limit, after).await,
        TenantCommand::Show { id } => {
            let tenant = lookup::tenant_by_id(service, &id).await?;
            outcome(&tenant, details(&tenant))
        }
        TenantCommand::Approve { id } => {
            let tenant = change(service, &id, access(DeveloperAccess::Approved)).await?;
            outcome(&tenant, format!("Approved tenant {}. Its keys can use the API.", tenant.name))
        }
        TenantCommand::Suspend { id } => {
            let tenant = change(service, &id, access(DeveloperAccess::Suspended)).await?;
            outcome(&tenant, format!("Suspended tenant {}. Its keys are rejected from now on.", tenant.name))
        }
        TenantCommand::Set { id, changes } => {
            let tenant = change(service, &id, update(changes)?).await?;
            outcome(&tenant, format!("Updated tenant {}.\n\n{}", tenant.name, details(&tenant)))
        }
    }
}

/// Returns a name, which was checked when it was parsed.
fn text(name: &str) -> Result<Text<300>, Error> {
    Text::parse(name).map_err(|issue: Issue| issue.on("name"))
}

async fn list(service: &Service, limit: u32, after: Option<IdArg>) -> Result<Outcome, Failure> {
    let after = match after {
        None => None,
        Some(IdArg::Whole(id)) => Some(TenantId(id)),
        Some(part) => Some(lookup::tenant_by_id(service, &part).await?.id),
    };
    let (tenants, has_more) = service.accounts(after, limit).await?;
    let last = tenants.last().filter(|_| has_more);
    let note = last.map(|last| format!("There are more tenants; list them with --after {}.", last.id));
    let heading = ["ID", "NAME", "ACCESS", "CURRENCY", "TIME ZONE", "CREATED"];
    let table = Table::new(heading, &tenants, |tenant| {
        [
            tenant.id.to_string(),
            tenant.name.clone(),
            state(tenant.developer_access),
            tenant.currency.to_string(),
            tenant.time_zone.clone(),
            full(tenant.created_at),
        ]
    });
    let views: Vec<Value> = tenants.iter().map(view).collect();
    let empty = "There are no tenants yet; create one with `svc tenant create`.";
    Ok(Outcome::list(&views, &table, empty)?.with_note(note))
}

async fn change(service: &Service, id: &IdArg, change: AccountUpdate) -> Result<Account, Failure> {
    let id = lookup::tenant_by_id(service, id).await?.id;
    service.call(&operations::UPDATE_ACCOUNT, id, change).await.or_not_found("tenant", id, HINT)
}

fn access(developer_access: DeveloperAccess) -> AccountUpdate {
    AccountUpdate { developer_access: Patch::Set(developer_access), ..AccountUpdate::default() }
}

fn update(changes: TenantChanges) -> Result<AccountUpdate, Failure> {
    let TenantChanges { name, time_zone, currency, unique_contact_email, rate_limit, write_rate_limit, max_webhooks } =
        changes;
    let write_rate_limits = Some(write_rate_limit).filter(|limits| !limits.is_empty()).map(WriteLimitChanges);
    Ok(AccountUpdate {
        name: set(name.as_deref().map(text).transpose()?),
        time_zone: set(time_zone.map(Zone)),
        currency: set(currency),
        developer_access: Patch::Keep,
        unique_contact_email: set(unique_contact_email),
        rate_limit: set(rate_limit.map(|limit| limit.map(AtLeastOne))),
        write_rate_limits: set(write_rate_limits),
        max_webhooks: set(max_webhooks.map(|limit| limit.map(WebhookCount))),
    })
}

/// Returns the change of a setting that may have been given.
fn set<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Keep, Patch::Set)
}

fn outcome(tenant: &Account, text: String) -> Result<Outcome, Failure> {
    Outcome::new(&view(tenant), text)
}

fn view(tenant: &Account) -> Value {
    json!({
        "id": tenant.id,
        "name": tenant.name,
        "developer_access": tenant.developer_access,
        "time_zone": tenant.time_zone,
        "currency": tenant.currency,
        "created_at": tenant.created_at,
        "unique_contact_email": tenant.unique_contact_email,
        "limits": { "rate_limit": tenant.rate_limit, "write_rate_limits": tenant.write_rate_limits },
        "max_webhooks": tenant.max_webhooks,
    })
}

fn details(tenant: &Account) -> String {
    fields([
        ("id", tenant.id.to_string()),
        ("name", tenant.name.clone()),
        ("developer access", tenant.developer_access.to_string()),
        ("time zone", tenant.time_zone.clone()),
        ("currency", tenant.currency.to_string()),
        ("unique contact email", tenant.unique_contact_email.to_string()),
        ("rate limit", limit(tenant.rate_limit)),
        ("write rate limits", write_limits(&tenant.write_rate_limits)),
        ("max webhooks", tenant.max_webhooks.map_or_else(|| "default".to_owned(), |limit| limit.to_string())),
        ("created at", moment(tenant.created_at)),
    ])
}

fn limit(limit: Option<u32>) -> String {
    limit.map_or_else(|| "default".to_owned(), |limit| format!("{limit} per minute"))
}

/// Formats the limits that differ from the server's, in the form of the option.
fn write_limits(limits: &WriteLimits) -> String {
    let WriteLimits { contacts, bookings, quotes, jobs, webhooks } = limits;
    let all =
        [("contacts", contacts), ("bookings", bookings), ("quotes", quotes), ("jobs", jobs), ("webhooks", webhooks)];
    let own: Vec<String> =
        all.iter().filter_map(|(name, limit)| limit.map(|limit| format!("{name}={limit}"))).collect();
    if own.is_empty() { limit(None) } else { format!("{} per minute", own.join(", ")) }
}
