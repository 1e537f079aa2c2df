//! Finds tenants and records by what was typed: whole ids, parts of ids, or nothing where there is one tenant only.
//!
//! Ids are unique within a tenant. An import can give records of two tenants the same id, so a whole id that is given
//! without a tenant is refused if several of them have it. Parts of ids are looked up within one tenant. Ids sort like the
//! times at which they were made, so those with a common beginning are next to each other in a list; those with a common
//! end are found only by reading the list, which is done as long as it is short.

use std::pin::Pin;

use svc_core::accounts::keys::{self, ApiKey};
use svc_core::accounts::tenants::Tenant;
use svc_core::env::time_of_id;
use svc_core::error::Error;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::crud::{self, Filter as _, Resource};
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::pages::{ListQuery, MAX_LIMIT, Order};
use svc_core::resources::quotes::Quote;
use svc_core::store::{DeliveryFilter, OwnedKind, Store, Tx};
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::deliveries::Delivery;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::cli::InTenant;
use crate::cli::records::ResourceCommands;
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, IdPart};
use crate::output::plain;

/// The number of tenants that an error lists.
const LISTED_TENANTS: u32 = 10;
/// The number of records among which an end of an id is looked for. A list that is longer is not searched.
const MAX_SEARCHED: usize = 10_000;

/// A record and the tenant that owns it.
pub(super) struct Owned<R> {
    pub(super) tenant_id: TenantId,
    pub(super) record: R,
}

/// The future of a lookup in a transaction.
pub(super) type Lookup<'t, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 't>>;

/// A type of record that is found by its id.
pub(super) trait Found: Clone + Send + Sync + Sized + 'static {
    /// The name of a record, which is the name of its command.
    const NAME: &'static str;
    /// The name of several.
    const PLURAL: &'static str;

    /// Returns the record of a tenant with this id, unless it is deleted.
    fn get(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>) -> Lookup<'_, Option<Self>>;

    /// Returns the tenants that have or had a record with this id, or `None` if it can be looked up in a tenant only.
    fn owners(tx: &mut dyn Tx, id: Id<Self>) -> Lookup<'_, Option<Vec<TenantId>>>;

    /// Returns the ids of a tenant's newest records that are older than `before`, newest first. Fewer than [`MAX_LIMIT`]
    /// are all.
    fn page(tx: &mut dyn Tx, tenant: TenantId, before: Option<Timestamp>) -> Lookup<'_, Vec<Id<Self>>>;
}

/// A resource that is found by its id.
pub(super) trait FoundResource: ResourceCommands {
    /// The kind by which the tenants of a record are looked up.
    const KIND: Option<OwnedKind>;
}

impl FoundResource for Contact {
    const KIND: Option<OwnedKind> = None;
}

impl FoundResource for Invoice {
    const KIND: Option<OwnedKind> = Some(OwnedKind::Invoice);
}

impl FoundResource for Quote {
    const KIND: Option<OwnedKind> = Some(OwnedKind::Quote);
}

impl FoundResource for Booking {
    const KIND: Option<OwnedKind> = None;
}

impl FoundResource for Job {
    const KIND: Option<OwnedKind> = None;
}

impl FoundResource for WebhookSubscription {
    const KIND: Option<OwnedKind> = Some(OwnedKind::Subscription);
}

impl<R: FoundResource> Found for R {
    const NAME: &'static str = <R as ResourceCommands>::NAME;
    const PLURAL: &'static str = R::COLLECTION;

    fn get(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>) -> Lookup<'_, Option<Self>> {
        Box::pin(async move {
            match crud::get(tx, tenant, id).await {
                Err(Error::NotFound) => Ok(None),
                found => found.map(Some),
            }
        })
    }

    fn owners(tx: &mut dyn Tx, id: Id<Self>) -> Lookup<'_, Option<Vec<TenantId>>> {
        Box::pin(async move {
            match R::KIND {
                Some(kind) => Ok(Some(tx.owners(kind, id.uuid()).await?)),
                None => Ok(None),
            }
        })
    }

    fn page(tx: &mut dyn Tx, tenant: TenantId, before: Option<Timestamp>) -> Lookup<'_, Vec<Id<Self>>> {
        let query = ListQuery {
            limit: MAX_LIMIT,
            order: Order::NewestFirst { before },
            filter: <R as Resource>::Filter::none(),
        };
        Box::pin(async move { Ok(R::repository(tx).list(tenant, &query).await?.iter().map(Resource::id).collect()) })
    }
}

impl Found for Delivery {
    const NAME: &'static str = "delivery";
    const PLURAL: &'static str = "deliveries";

    fn get(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>) -> Lookup<'_, Option<Self>> {
        Box::pin(async move { Ok(tx.delivery(tenant, id).await?) })
    }

    fn owners(tx: &mut dyn Tx, id: Id<Self>) -> Lookup<'_, Option<Vec<TenantId>>> {
        Box::pin(async move { Ok(Some(tx.owners(OwnedKind::Delivery, id.uuid()).await?)) })
    }

    fn page(tx: &mut dyn Tx, tenant: TenantId, before: Option<Timestamp>) -> Lookup<'_, Vec<Id<Self>>> {
        let filter = DeliveryFilter { until: before, limit: MAX_LIMIT, ..DeliveryFilter::default() };
        Box::pin(async move {
            let mut ids: Vec<Id<Self>> = tx.list_deliveries(tenant, &filter).await?.iter().map(|it| it.id).collect();
            // The deliveries of one event are of one time, and the next page begins before it. So a full page is completed
            // by all deliveries of its last event.
            if let Some(last) = ids.last().copied().filter(|_| ids.len() == MAX_LIMIT as usize) {
                let at = time_of_id(last.uuid());
                let filter = DeliveryFilter { since: Some(at), until: Some(at.next()), ..DeliveryFilter::default() };
                ids.retain(|id| time_of_id(id.uuid()) != at);
                ids.extend(tx.list_deliveries(tenant, &filter).await?.iter().map(|it| it.id));
            }
            Ok(ids)
        })
    }
}

/// The ids of keys are unique among all tenants, since keys are never imported.
impl Found for ApiKey {
    const NAME: &'static str = "key";
    const PLURAL: &'static str = "keys";

    fn get(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>) -> Lookup<'_, Option<Self>> {
        Box::pin(async move {
            match keys::get(tx, id).await {
                Err(Error::NotFound) => Ok(None),
                found => found.map(|key| Some(key).filter(|key| key.tenant_id == tenant)),
            }
        })
    }

    fn owners(tx: &mut dyn Tx, id: Id<Self>) -> Lookup<'_, Option<Vec<TenantId>>> {
        Box::pin(async move {
            match keys::get(tx, id).await {
                Err(Error::NotFound) => Ok(Some(Vec::new())),
                found => found.map(|key| Some(vec![key.tenant_id])),
            }
        })
    }

    fn page(tx: &mut dyn Tx, tenant: TenantId, before: Option<Timestamp>) -> Lookup<'_, Vec<Id<Self>>> {
        Box::pin(async move {
            let mut ids: Vec<Id<Self>> = tx.api_keys(tenant).await?.iter().map(|key| key.id).collect();
            ids.retain(|id| before.is_none_or(|before| time_of_id(id.uuid()) < before));
            ids.reverse();
            ids.truncate(MAX_LIMIT as usize);
            Ok(ids)
        })
    }
}

/// Returns the tenant that a command works on: the one that was named, otherwise the only one of the database.
///
/// # Errors
/// There is no such tenant, or none was named and there are several.
pub(super) async fn tenant(store: &dyn Store, named: &InTenant) -> Result<Tenant, Failure> {
    if let Some(id) = &named.tenant {
        return tenant_by_id(store, id).await;
    }
    let one_more = LISTED_TENANTS + 1;
    let listed = store.read("tenant.list", move |tx| Box::pin(async move { Ok(tx.tenants(None, one_more).await?) }));
    let mut tenants = listed.await?;
    match tenants.len() {
        0 => {
            let reason = "The database has no tenants yet; create one with `svc tenant create`.";
            Err(Failure::new(Exit::NotFound, reason))
        }
        1 => Ok(tenants.remove(0)),
        count => {
            let (count, more) = match count {
                count if count > LISTED_TENANTS as usize => ("several".to_owned(), "\n  …"),
                count => (count.to_string(), ""),
            };
            tenants.truncate(LISTED_TENANTS as usize);
            let message = format!(
                "The database has {count} tenants; name one of them with --tenant or SVC_TENANT:{}{more}",
                listing(&tenants)
            );
            Err(Failure::new(Exit::Usage, message))
        }
    }
}

/// Returns the tenant with this id, or the only one with this part of an id.
///
/// # Errors
/// There is no such tenant, or there are several.
pub(super) async fn tenant_by_id(store: &dyn Store, id: &IdArg) -> Result<Tenant, Failure> {
    let typed = id.clone();
    let found = store.read("tenant.show", move |tx| {
        let typed = typed.clone();
        Box::pin(async move {
            match typed {
                IdArg::Whole(id) => Ok(Matches::of(tx.tenant(TenantId(id)).await?.into_iter().collect())),
                IdArg::Part(part) => Ok(tenants_with(tx, &part).await?),
            }
        })
    });
    found
        .await?
        .only("tenant", "tenants", id, || format!("There is no tenant {id}; `svc tenant list` lists all tenants."))
}

/// Returns the tenants whose ids begin with a part, otherwise those whose ids end with it.
async fn tenants_with(tx: &mut dyn Tx, part: &IdPart) -> Result<Matches<Tenant>, Error> {
    if let Some((first, _)) = part.beginning() {
        let before = TenantId(Uuid::from_u128(first.as_u128().saturating_sub(1)));
        let next = tx.tenants(Some(before), MAX_LIMIT).await?;
        let found: Vec<Tenant> = next.into_iter().take_while(|tenant| part.begins(tenant.id.0)).collect();
        if !found.is_empty() {
            return Ok(Matches::of(found));
        }
    }
    let mut all = tx.tenants(None, MAX_SEARCHED as u32 + 1).await?;
    let is_complete = all.len() <= MAX_SEARCHED;
    all.retain(|tenant| part.ends(tenant.id.0));
    Ok(if is_complete { Matches::of(all) } else { Matches::TooManyToSearch })
}

/// Returns the record with this id, or the only one with this part of an id, and its tenant. A record never changes its
/// tenant, so the tenant is still right in a later transaction.
///
/// # Errors
/// There is no such record, or there are several.
pub(super) async fn find<R: Found>(store: &dyn Store, id: &IdArg, named: &InTenant) -> Result<Owned<R>, Failure> {
    if let (IdArg::Whole(whole), None) = (id, &named.tenant)
        && let Some(found) = find_in_all_tenants::<R>(store, Id::new(*whole)).await?
    {
        return Ok(found);
    }
    let tenant_id = tenant(store, named).await?.id;
    let id = id_in::<R>(store, tenant_id, id).await?;
    let found = store.read("cli.find", move |tx| R::get(tx, tenant_id, id)).await?;
    let record = found.ok_or_else(|| nothing_in::<R>(tenant_id, &IdArg::Whole(id.uuid())))?;
    Ok(Owned { tenant_id, record })
}

/// Returns the record with a whole id, whichever tenant has it. `None` if the tenants of such a record cannot be looked up.
async fn find_in_all_tenants<R: Found>(store: &dyn Store, id: Id<R>) -> Result<Option<Owned<R>>, Failure> {
    let found = store.read("cli.find", move |tx| {
        Box::pin(async move {
            let Some(owners) = R::owners(tx, id).await? else { return Ok(None) };
            let mut found = Vec::new();
            for tenant_id in owners {
                let record = R::get(tx, tenant_id, id).await?;
                let tenant = tx.tenant(tenant_id).await?;
                found.extend(tenant.zip(record));
            }
            Ok(Some(found))
        })
    });
    let Some(mut found) = found.await? else { return Ok(None) };
    let name = R::NAME;
    match found.pop() {
        None => {
            let reason = format!("There is no {name} {id}; `svc {name} list` lists the {} of a tenant.", R::PLURAL);
            Err(Failure::new(Exit::NotFound, reason))
        }
        Some((tenant, record)) if found.is_empty() => Ok(Some(Owned { tenant_id: tenant.id, record })),
        Some(last) => {
            let tenants: Vec<Tenant> = found.into_iter().chain([last]).map(|(tenant, _)| tenant).collect();
            let (count, tenants) = (tenants.len(), listing(&tenants));
            let reason = format!(
                "The {name} {id} exists in {count} tenants; name one of them with --tenant or SVC_TENANT:{tenants}"
            );
            Err(Failure::new(Exit::Refused, reason))
        }
    }
}

/// Returns the whole id of what was typed. A whole id is returned as it is, whether or not the tenant has the record.
///
/// # Errors
/// The tenant has no record with this part of an id, or several.
pub(super) async fn id_in<R: Found>(store: &dyn Store, tenant: TenantId, id: &IdArg) -> Result<Id<R>, Failure> {
    let part = match id {
        IdArg::Whole(id) => return Ok(Id::new(*id)),
        IdArg::Part(part) => part.clone(),
    };
    let found = store.read("cli.find", move |tx| {
        let part = part.clone();
        Box::pin(async move { ids_with::<R>(tx, tenant, &part).await })
    });
    found.await?.only(R::NAME, R::PLURAL, id, || nothing_in::<R>(tenant, id).message().to_owned())
}

/// Returns the ids of a tenant's records that begin with a part, otherwise those that end with it.
async fn ids_with<R: Found>(tx: &mut dyn Tx, tenant: TenantId, part: &IdPart) -> Result<Matches<Id<R>>, Error> {
    if let Some((first, last)) = part.beginning() {
        // The newest records that the part can be the beginning of. Nothing is newer than the tenant's clock, which is not
        // far ahead, so the ids of later times are not asked for.
        let before = Some(time_of_id(last)).filter(|last| *last < tx.env().now()).map(Timestamp::next);
        let page = R::page(tx, tenant, before).await?;
        let found: Vec<Id<R>> =
            page.into_iter().take_while(|id| id.uuid() >= first).filter(|id| part.begins(id.uuid())).collect();
        if !found.is_empty() {
            return Ok(Matches::of(found));
        }
    }
    let (mut found, mut searched, mut before) = (Vec::new(), 0, None);
    loop {
        let page = R::page(tx, tenant, before).await?;
        found.extend(page.iter().copied().filter(|id| part.ends(id.uuid())));
        searched += page.len();
        before = page.last().map(|last| time_of_id(last.uuid()));
        if page.len() < MAX_LIMIT as usize {
            return Ok(Matches::of(found));
        }
        if searched > MAX_SEARCHED {
            return Ok(Matches::TooManyToSearch);
        }
    }
}

/// What a part of an id stands for.
enum Matches<T> {
    /// These are all, or the first of [`MAX_LIMIT`] or more.
    Found(Vec<T>),
    /// No id begins with the part, and there are too many to find those that end with it.
    TooManyToSearch,
}

impl<T> Matches<T> {
    fn of(found: Vec<T>) -> Self {
        Self::Found(found)
    }

    /// Returns the only match.
    fn only(self, name: &str, plural: &str, id: &IdArg, nothing: impl FnOnce() -> String) -> Result<T, Failure> {
        let mut found = match self {
            Self::Found(found) => found,
            Self::TooManyToSearch => {
                let reason = format!(
                    "No {name} has an id that begins with {id}, and there are too many {plural} to look for one that ends with it; \
                     give the whole id."
                );
                return Err(Failure::new(Exit::NotFound, reason));
            }
        };
        match (found.pop(), found.len()) {
            (None, _) => Err(Failure::new(Exit::NotFound, nothing())),
            (Some(only), 0) => Ok(only),
            (Some(_), others) => {
                let count = match others + 1 {
                    count if count < MAX_LIMIT as usize => count.to_string(),
                    _ => format!("{MAX_LIMIT} or more"),
                };
                let reason = format!("{count} {plural} have an id that begins or ends with {id}; give more of the id.");
                Err(Failure::new(Exit::Usage, reason))
            }
        }
    }
}

/// Returns the failure of a lookup in a tenant that found nothing.
pub(super) fn nothing_in<R: Found>(tenant: TenantId, id: &IdArg) -> Failure {
    let name = R::NAME;
    Failure::new(
        Exit::NotFound,
        format!("Tenant {tenant} has no {name} {id}; `svc {name} list` lists its {}.", R::PLURAL),
    )
}

/// Lists tenants, one per line.
fn listing(tenants: &[Tenant]) -> String {
    tenants.iter().map(|tenant| format!("\n  {}  {}", tenant.id, plain(&tenant.name))).collect()
}
