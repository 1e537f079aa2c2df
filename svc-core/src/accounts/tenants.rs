//! Tenants: business accounts with their settings and their numbers.

use uuid::Uuid;

use crate::accounts::audit::{self, Object};
use crate::accounts::limits::RateLimits;
use crate::error::{Error, FieldCode, Issue};
use crate::store::Tx;
use crate::values::{Currency, TenantId, TextEnum, TimeZone, Timestamp};

/// Whether the tenant's keys may use the API. An operator sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum DeveloperAccess {
    /// Access was not approved yet; every request is refused.
    Pending,
    /// The tenant's keys may use the API.
    Approved,
    /// Access was withdrawn; every request is refused until it is approved again.
    Suspended,
}

/// A series of numbers that each tenant has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum NumberKind {
    /// The numbers of invoices, from `INV-0001` on.
    #[text = "INV"]
    Invoice,
    /// The numbers of quotes, from `QUO-0001` on.
    #[text = "QUO"]
    Quote,
    /// The numbers of jobs, from `JOB-0001` on.
    #[text = "JOB"]
    Job,
}

/// A business account.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Tenant {
    /// Identifier.
    pub id: TenantId,
    /// Name of the business.
    pub name: String,
    /// Whether its keys may use the API.
    pub developer_access: DeveloperAccess,
    /// Decides what "today" is.
    pub time_zone: TimeZone,
    /// Of quotes and invoices that name none.
    pub currency: Currency,
    /// Whether two live contacts may not have the same email.
    pub unique_contact_email: bool,
    /// What its keys may do in place of the server's rate limits.
    pub limits: RateLimits,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A new tenant.
#[derive(Clone, Debug)]
pub struct TenantCreate {
    /// Name of the business.
    pub name: String,
    /// Decides what "today" is.
    pub time_zone: TimeZone,
    /// Of quotes and invoices that name none.
    pub currency: Currency,
    /// Whether its keys may use the API at once.
    pub developer_access: DeveloperAccess,
}

impl TenantCreate {
    /// An approved tenant in UTC and AUD.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            time_zone: TimeZone::UTC,
            currency: Currency::AUD,
            developer_access: DeveloperAccess::Approved,
        }
    }
}

/// Creates a tenant.
///
/// # Errors
/// [`Error::Store`].
pub async fn create(tx: &mut dyn Tx, input: TenantCreate) -> Result<Tenant, Error> {
    let created_at = tx.env().now();
    let tenant = Tenant {
        id: TenantId(tx.env().id(created_at)),
        name: input.name,
        developer_access: input.developer_access,
        time_zone: input.time_zone,
        currency: input.currency,
        unique_contact_email: true,
        limits: RateLimits::default(),
        created_at,
    };
    tx.insert_tenant(&tenant).await?;
    note(tx, "create", None, &tenant).await?;
    Ok(tenant)
}

/// The tenant.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn get(tx: &mut dyn Tx, id: TenantId) -> Result<Tenant, Error> {
    tx.tenant(id).await?.ok_or(Error::NotFound)
}

/// Changes settings.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn update(tx: &mut dyn Tx, id: Uuid, change: impl FnOnce(&mut Tenant)) -> Result<Tenant, Error> {
    tx.lock_tenant(TenantId(id)).await?;
    let before = get(tx, TenantId(id)).await?;
    let mut tenant = before.clone();
    change(&mut tenant);
    if tenant != before {
        tx.update_tenant(&tenant).await?;
        note(tx, "update", Some(&before), &tenant).await?;
    }
    Ok(tenant)
}

async fn note(tx: &mut dyn Tx, action: &'static str, before: Option<&Tenant>, after: &Tenant) -> Result<(), Error> {
    audit::record(tx, after.id, action, Object { kind: "tenant", id: after.id.0 }, before, Some(after)).await
}

/// The next number as text: `INV-0001`, growing past four digits.
///
/// # Errors
/// [`Error::Store`].
pub async fn next_number(tx: &mut dyn Tx, tenant: TenantId, kind: NumberKind) -> Result<String, Error> {
    Ok(format!("{kind}-{:04}", tx.next_number(tenant, kind).await?))
}

/// The largest number that can be taken by hand: far beyond any that is counted up to, far below what a store holds.
pub const MAX_NUMBER: u64 = 1_000_000_000_000;

/// Notes that a number was taken by hand, as on import: if it has the form of those that are counted, the count goes
/// on behind it. Numbers of another form never meet one that is counted.
///
/// # Errors
/// `out_of_range` on `field` beyond [`MAX_NUMBER`]; [`Error::Store`].
pub async fn take_number(
    tx: &mut dyn Tx,
    tenant: TenantId,
    kind: NumberKind,
    field: &str,
    text: &str,
) -> Result<(), Error> {
    let digits = text.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('-'));
    let Some(digits) = digits.filter(|digits| digits.len() >= 4 && digits.bytes().all(|digit| digit.is_ascii_digit()))
    else {
        return Ok(());
    };
    // `INV-00007` is not how seven is written.
    if digits.len() > 4 && digits.starts_with('0') {
        return Ok(());
    }
    match digits.parse::<u64>().ok().filter(|number| *number <= MAX_NUMBER) {
        Some(0) => Ok(()),
        Some(number) => Ok(tx.raise_number(tenant, kind, number).await?),
        None => Err(Issue::new(FieldCode::OutOfRange, format!("must be at most {kind}-{MAX_NUMBER}")).on(field)),
    }
}
