//! `svc tenant`.

use serde_json::{Value, json};
use svc_core::accounts::limits::{CappedCollection, WriteRateLimits};
use svc_core::accounts::tenants::{self, DeveloperAccess, Tenant, TenantCreate};
use svc_core::store::Store;
use svc_core::values::TenantId;

use super::lookup;
use crate::cli::{TenantChanges, TenantCommand};
use crate::exit::{Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, state};
use crate::times::{full, moment};
use crate::values::Limit;

/// Says how to find the id of a tenant.
pub(super) const HINT: &str = "`svc tenant list` lists all tenants";

pub(super) async fn run(store: &dyn Store, command: TenantCommand) -> Result<Outcome, Failure> {
    match command {
        TenantCommand::Create { name, time_zone, currency, pending } => {
            let developer_access = if pending { DeveloperAccess::Pending } else { DeveloperAccess::Approved };
            create(store, TenantCreate { name, time_zone, currency, developer_access }).await
        }
        TenantCommand::List { limit, after } => list(store, limit, after).await,
        TenantCommand::Show { id } => {
            let tenant = lookup::tenant_by_id(store, &id).await?;
            outcome(&tenant, details(&tenant))
        }
        TenantCommand::Approve { id } => {
            let tenant = change(store, &id, |tenant| tenant.developer_access = DeveloperAccess::Approved).await?;
            outcome(&tenant, format!("Approved tenant {}. Its keys can use the API.", tenant.name))
        }
        TenantCommand::Suspend { id } => {
            let tenant = change(store, &id, |tenant| tenant.developer_access = DeveloperAccess::Suspended).await?;
            outcome(&tenant, format!("Suspended tenant {}. Its keys are rejected from now on.", tenant.name))
        }
        TenantCommand::Set { id, changes } => {
            let tenant = change(store, &id, move |tenant| apply(&changes, tenant)).await?;
            outcome(&tenant, format!("Updated tenant {}.\n\n{}", tenant.name, details(&tenant)))
        }
    }
}

async fn create(store: &dyn Store, input: TenantCreate) -> Result<Outcome, Failure> {
    let tenant = store
        .write("tenant.create", move |tx| {
            let input = input.clone();
            Box::pin(tenants::create(tx, input))
        })
        .await?;
    outcome(&tenant, format!("Created tenant {}.\n\n{}", tenant.name, details(&tenant)))
}

async fn list(store: &dyn Store, limit: u32, after: Option<IdArg>) -> Result<Outcome, Failure> {
    let after = match after {
        None => None,
        Some(IdArg::Whole(id)) => Some(TenantId(id)),
        Some(part) => Some(lookup::tenant_by_id(store, &part).await?.id),
    };
    let one_more = limit.saturating_add(1);
    let page = store.read("tenant.list", move |tx| Box::pin(async move { Ok(tx.tenants(after, one_more).await?) }));
    let mut tenants = page.await?;
    let has_more = tenants.len() > limit as usize;
    tenants.truncate(limit as usize);
    let last = tenants.last().filter(|_| has_more);
    let note = last.map(|last| format!("There are more tenants; list them with --after {}.", last.id));
    let heading = ["ID", "NAME", "ACCESS", "CURRENCY", "TIME ZONE", "CREATED"];
    let table = Table::new(heading, &tenants, |tenant| {
        [
            tenant.id.to_string(),
            tenant.name.clone(),
            state(tenant.developer_access),
            tenant.currency.to_string(),
            tenant.time_zone.to_string(),
            full(tenant.created_at),
        ]
    });
    let views: Vec<Value> = tenants.iter().map(view).collect();
    let empty = "There are no tenants yet; create one with `svc tenant create`.";
    Ok(Outcome::list(&views, &table, empty)?.with_note(note))
}

async fn change(
    store: &dyn Store,
    id: &IdArg,
    change: impl Fn(&mut Tenant) + Clone + Send + Sync + 'static,
) -> Result<Tenant, Failure> {
    let id = lookup::tenant_by_id(store, id).await?.id;
    let changed = store
        .write("tenant.set", move |tx| {
            let change = change.clone();
            Box::pin(tenants::update(tx, id.0, change))
        })
        .await;
    changed.or_not_found("tenant", id, HINT)
}

fn apply(changes: &TenantChanges, tenant: &mut Tenant) {
    if let Some(name) = &changes.name {
        tenant.name.clone_from(name);
    }
    if let Some(time_zone) = &changes.time_zone {
        tenant.time_zone = time_zone.clone();
    }
    if let Some(currency) = changes.currency {
        tenant.currency = currency;
    }
    if let Some(unique) = changes.unique_contact_email {
        tenant.unique_contact_email = unique;
    }
    if let Some(limit) = changes.rate_limit {
        tenant.limits.rate_limit = limit;
    }
    if let Some(limit) = changes.max_webhooks {
        tenant.max_webhooks = limit;
    }
    for (collection, limit) in changes.write_rate_limit.iter().copied() {
        tenant.limits.write_rate_limits.set(collection, limit);
    }
}

fn outcome(tenant: &Tenant, text: String) -> Result<Outcome, Failure> {
    Outcome::new(&view(tenant), text)
}

fn view(tenant: &Tenant) -> Value {
    json!({
        "id": tenant.id,
        "name": tenant.name,
        "developer_access": tenant.developer_access,
        "time_zone": tenant.time_zone,
        "currency": tenant.currency,
        "created_at": tenant.created_at,
        "unique_contact_email": tenant.unique_contact_email,
        "limits": tenant.limits,
        "max_webhooks": tenant.max_webhooks,
    })
}

fn details(tenant: &Tenant) -> String {
    fields([
        ("id", tenant.id.to_string()),
        ("name", tenant.name.clone()),
        ("developer access", tenant.developer_access.to_string()),
        ("time zone", tenant.time_zone.to_string()),
        ("currency", tenant.currency.to_string()),
        ("unique contact email", tenant.unique_contact_email.to_string()),
        ("rate limit", limit(tenant.limits.rate_limit)),
        ("write rate limits", write_limits(&tenant.limits.write_rate_limits)),
        ("max webhooks", tenant.max_webhooks.map_or_else(|| "default".to_owned(), |limit| limit.to_string())),
        ("created at", moment(tenant.created_at)),
    ])
}

fn limit(limit: Limit) -> String {
    limit.map_or_else(|| "default".to_owned(), |limit| format!("{limit} per minute"))
}

/// Formats the limits that differ from the server's, in the form of the option.
fn write_limits(limits: &WriteRateLimits) -> String {
    let own = CappedCollection::ALL.iter().filter_map(|name| Some(format!("{name}={}", limits.of(*name)?)));
    let own: Vec<String> = own.collect();
    if own.is_empty() { limit(None) } else { format!("{} per minute", own.join(", ")) }
}
