//! `svc account`.

mod sandbox;

use serde_json::{Value, json};
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::platform::{
    Account, AccountCreate, AccountUpdate, AtLeastOne, WebhookCount, WriteLimitChanges, WriteLimits, Zone, operations,
};
use svc_core::values::{Patch, TenantId};

use super::lookup;
use crate::cli::{AccountChanges, AccountCommand};
use crate::exit::Failure;
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, state};
use crate::service::Service;
use crate::times::{full, moment};

pub(super) async fn run(service: &Service, command: AccountCommand) -> Result<Outcome, Failure> {
    match command {
        AccountCommand::Create { name, time_zone, currency, pending } => {
            let input = AccountCreate {
                name,
                time_zone: Some(Zone(time_zone)),
                currency: Some(currency),
                developer_access: pending.then_some(DeveloperAccess::Pending),
            };
            let account = service.call(&operations::CREATE_ACCOUNT, (), input).await?;
            outcome(&account, format!("Created account {}.\n\n{}", account.name, details(&account)))
        }
        AccountCommand::List { limit, after, sandboxes } => list(service, limit, after, sandboxes).await,
        AccountCommand::Sandbox { id, reset, delete } => {
            let account = lookup::account_by_id(service, &id).await?;
            sandbox::run(service, &account, reset, delete).await
        }
        AccountCommand::Show { id } => {
            let account = lookup::account_by_id(service, &id).await?;
            outcome(&account, details(&account))
        }
        AccountCommand::Approve { id } => {
            let account = change(service, &id, access(DeveloperAccess::Approved)).await?;
            outcome(&account, format!("Approved account {}. Its keys can use the API.", account.name))
        }
        AccountCommand::Suspend { id } => {
            let account = change(service, &id, access(DeveloperAccess::Suspended)).await?;
            outcome(&account, format!("Suspended account {}. Its keys are rejected from now on.", account.name))
        }
        AccountCommand::Set { id, changes } => {
            let account = change(service, &id, update(changes)).await?;
            outcome(&account, format!("Updated account {}.\n\n{}", account.name, details(&account)))
        }
    }
}

async fn list(service: &Service, limit: u32, after: Option<IdArg>, sandboxes: bool) -> Result<Outcome, Failure> {
    let after = match after {
        None => None,
        Some(IdArg::Whole(id)) => Some(TenantId(id)),
        Some(part) => Some(lookup::account_by_id(service, &part).await?.id),
    };
    let (accounts, has_more) = match sandboxes {
        true => service.accounts_and_sandboxes(after, limit).await?,
        false => service.accounts(after, limit).await?,
    };
    let last = accounts.last().filter(|_| has_more);
    let note = last.map(|last| format!("There are more accounts; list them with --after {}.", last.id));
    let heading = ["ID", "NAME", "ACCESS", "CURRENCY", "TIME ZONE", "CREATED"];
    let table = Table::new(heading.into_iter().chain(sandboxes.then_some("SANDBOX OF")), &accounts, |account| {
        let cells = [
            account.id.to_string(),
            account.name.clone(),
            state(account.developer_access),
            account.currency.to_string(),
            account.time_zone.clone(),
            full(account.created_at),
        ];
        cells.into_iter().chain(sandboxes.then(|| or_dash(account.sandbox_of.as_ref())))
    });
    let views: Vec<Value> = accounts.iter().map(view).collect();
    let empty = "There are no accounts yet; create one with `svc account create`.";
    Ok(Outcome::list(&views, &table, empty)?.with_note(note))
}

async fn change(service: &Service, id: &IdArg, change: AccountUpdate) -> Result<Account, Failure> {
    let id = lookup::account_by_id(service, id).await?.id;
    Ok(service.call(&operations::UPDATE_ACCOUNT, id, change).await?)
}

fn access(developer_access: DeveloperAccess) -> AccountUpdate {
    AccountUpdate { developer_access: Patch::Set(developer_access), ..AccountUpdate::default() }
}

fn update(changes: AccountChanges) -> AccountUpdate {
    let AccountChanges { name, time_zone, currency, unique_contact_email, rate_limit, write_rate_limit, max_webhooks } =
        changes;
    let write_rate_limits = Some(write_rate_limit).filter(|limits| !limits.is_empty()).map(WriteLimitChanges);
    AccountUpdate {
        name: set(name),
        time_zone: set(time_zone.map(Zone)),
        currency: set(currency),
        developer_access: Patch::Keep,
        unique_contact_email: set(unique_contact_email),
        rate_limit: set(rate_limit.map(|limit| limit.map(AtLeastOne))),
        write_rate_limits: set(write_rate_limits),
        max_webhooks: set(max_webhooks.map(|limit| limit.map(WebhookCount))),
    }
}

/// Returns the change of a setting that may have been given.
fn set<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Keep, Patch::Set)
}

fn outcome(account: &Account, text: String) -> Result<Outcome, Failure> {
    Outcome::new(&view(account), text)
}

fn view(account: &Account) -> Value {
    json!({
        "id": account.id,
        "name": account.name,
        "developer_access": account.developer_access,
        "time_zone": account.time_zone,
        "currency": account.currency,
        "created_at": account.created_at,
        "unique_contact_email": account.unique_contact_email,
        "limits": { "rate_limit": account.rate_limit, "write_rate_limits": account.write_rate_limits },
        "max_webhooks": account.max_webhooks,
        "sandbox_of": account.sandbox_of,
        "sandbox_id": account.sandbox_id,
    })
}

fn details(account: &Account) -> String {
    fields(facts(account))
}

fn facts(account: &Account) -> impl Iterator<Item = (&'static str, String)> {
    let of = account.sandbox_of.map(|of| ("sandbox of", of.to_string()));
    let sandbox = account.sandbox_id.map(|sandbox| ("sandbox", sandbox.to_string()));
    let always = [
        ("id", account.id.to_string()),
        ("name", account.name.clone()),
        ("developer access", account.developer_access.to_string()),
        ("time zone", account.time_zone.clone()),
        ("currency", account.currency.to_string()),
        ("unique contact email", account.unique_contact_email.to_string()),
        ("rate limit", limit(account.rate_limit)),
        ("write rate limits", write_limits(&account.write_rate_limits)),
        ("max webhooks", account.max_webhooks.map_or_else(|| "default".to_owned(), |limit| limit.to_string())),
        ("created at", moment(account.created_at)),
    ];
    always.into_iter().chain(of).chain(sandbox)
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
