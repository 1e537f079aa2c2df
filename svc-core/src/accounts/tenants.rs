//! Tenants: business accounts with their settings and their number sequences.

use uuid::Uuid;

use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::limits::{MAX_WEBHOOKS, RateLimits};
use crate::accounts::operational::{self, AccountApproved, OperationalKind, PLATFORM_ACCOUNT};
use crate::error::{Error, FieldCode, Issue};
use crate::store::Tx;
use crate::values::{Currency, Note, TenantId, Text, TextEnum, TimeZone, Timestamp};

/// Whether the tenant's keys may use the API. An operator sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum DeveloperAccess {
    /// Access was not approved yet; every request is refused.
    Pending,
    /// The account's keys may use the API.
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
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Tenant {
    /// The id of the tenant.
    pub id: TenantId,
    /// The name of the business.
    pub name: String,
    /// Whether the keys of the tenant may use the API.
    pub developer_access: DeveloperAccess,
    /// The time zone in which dates such as "today" are computed.
    pub time_zone: TimeZone,
    /// The currency of quotes and invoices that name none.
    pub currency: Currency,
    /// The postal address of the business, for its invoices and quotes, in several lines.
    pub address: Option<Note<500>>,
    /// The number under which the business is known to the tax office, with its name, such as `ABN 51 824 753 556`.
    pub tax_number: Option<Text<100>>,
    /// How many days after its issue an invoice is due whose due date is not given, at most
    /// [`DaysUntilDue::MAX`](crate::platform::DaysUntilDue::MAX). `None` for invoices without a due date.
    pub days_until_due: Option<u32>,
    /// How customers pay, such as the number of a bank account, for invoices, in several lines.
    pub payment_details: Option<Note<500>>,
    /// Whether an email address may belong to one contact only. Deleted contacts do not count.
    pub unique_contact_email: bool,
    /// The rate limits that the keys of the tenant have in place of the server's.
    pub limits: RateLimits,
    /// How many live webhook subscriptions the tenant may have, in place of the server's limit.
    pub max_webhooks: Option<u32>,
    /// When the tenant was created.
    pub created_at: Timestamp,
    /// The account whose sandbox this tenant is. `None` for a real account. It is set at creation.
    pub sandbox_of: Option<TenantId>,
    /// The sandbox of this tenant. `None` while it has none.
    pub sandbox_id: Option<TenantId>,
}

impl Tenant {
    /// Returns a tenant with these settings, with the limits of the server and unique email addresses of contacts.
    pub(crate) fn new(id: TenantId, input: TenantCreate, created_at: Timestamp) -> Self {
        let TenantCreate { name, time_zone, currency, developer_access } = input;
        Self {
            id,
            name,
            developer_access,
            time_zone,
            currency,
            address: None,
            tax_number: None,
            days_until_due: None,
            payment_details: None,
            unique_contact_email: true,
            limits: RateLimits::default(),
            max_webhooks: None,
            created_at,
            sandbox_of: None,
            sandbox_id: None,
        }
    }

    /// Returns whether the tenant is the sandbox of an account.
    pub fn is_sandbox(&self) -> bool {
        self.sandbox_of.is_some()
    }

    /// Returns the currency of a new record: the one that it names, or that of the tenant, whose code may have ended.
    pub(crate) fn currency_or(&self, named: Option<Currency>) -> Result<Currency, Error> {
        match (named, Currency::successor(self.currency.code())) {
            (Some(named), _) => Ok(named),
            (None, None) => Ok(self.currency),
            (None, Some((successor, year))) => {
                let ended = self.currency;
                let reason = format!(
                    "is required, as the currency of the account, {ended}, was replaced by {successor} in {year}"
                );
                Err(Issue::new(FieldCode::Required, reason).on("currency"))
            }
        }
    }
}

/// The settings of a new tenant.
#[derive(Clone, Debug)]
pub struct TenantCreate {
    /// The name of the business.
    pub name: String,
    /// The time zone in which dates such as "today" are computed.
    pub time_zone: TimeZone,
    /// The currency of quotes and invoices that name none.
    pub currency: Currency,
    /// Whether the keys of the tenant may use the API.
    pub developer_access: DeveloperAccess,
}

impl TenantCreate {
    /// Returns the settings of a tenant with approved access, the time zone UTC and the currency AUD.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            time_zone: TimeZone::UTC,
            currency: Currency::AUD,
            developer_access: DeveloperAccess::Approved,
        }
    }
}

/// Creates a tenant, with the limits of the server and unique email addresses of contacts.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn create(tx: &mut dyn Tx, input: TenantCreate) -> Result<Tenant, Error> {
    let id = TenantId(tx.env().id(tx.env().now()));
    create_as(tx, id, input).await
}

/// Creates the tenant with this id.
pub(crate) async fn create_as(tx: &mut dyn Tx, id: TenantId, input: TenantCreate) -> Result<Tenant, Error> {
    let tenant = Tenant::new(id, input, tx.env().now());
    insert(tx, &tenant).await?;
    Ok(tenant)
}

/// Creates the [platform account](crate::accounts::operational::PLATFORM_ACCOUNT), which has a webhook for each app that wants one.
pub(crate) async fn create_platform(tx: &mut dyn Tx) -> Result<(), Error> {
    create_as(tx, PLATFORM_ACCOUNT, TenantCreate::named("Platform")).await?;
    update(tx, PLATFORM_ACCOUNT.0, |tenant| tenant.max_webhooks = Some(MAX_WEBHOOKS)).await.map(drop)
}

/// Adds a tenant that does not exist yet.
pub(crate) async fn insert(tx: &mut dyn Tx, tenant: &Tenant) -> Result<(), Error> {
    tx.insert_tenant(tenant).await?;
    tx.set_overdue_check_at(tenant.id, tenant.time_zone.next_date_begins(tenant.created_at)).await?;
    audit_change(tx, AuditAction::Create, None, tenant).await
}

/// Returns the tenant with this id.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such tenant.
pub async fn get(tx: &mut dyn Tx, id: TenantId) -> Result<Tenant, Error> {
    tx.tenant(id).await?.ok_or(Error::NotFound)
}

/// Changes the settings of a tenant and returns it. A change without effect is neither stored nor audited. Its sandbox gets the
/// same developer access.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such tenant, and [`Error::NotAllowed`] when the developer access of a sandbox is
/// changed.
pub async fn update(tx: &mut dyn Tx, id: Uuid, change: impl FnOnce(&mut Tenant)) -> Result<Tenant, Error> {
    tx.lock_tenant(TenantId(id)).await?;
    let before = get(tx, TenantId(id)).await?;
    let mut tenant = before.clone();
    change(&mut tenant);
    // Which account is the sandbox of which is no setting.
    (tenant.sandbox_of, tenant.sandbox_id) = (before.sandbox_of, before.sandbox_id);
    if tenant.is_sandbox() && tenant.developer_access != before.developer_access {
        let reason = "A sandbox has the developer access of its account. Change that of the account instead.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    if tenant != before {
        tx.update_tenant(&tenant).await?;
        if tenant.time_zone != before.time_zone {
            // The next midnight may be an earlier one now, or even be over.
            let now = tx.env().now();
            tx.set_overdue_check_at(tenant.id, now).await?;
        }
        audit_change(tx, AuditAction::Update, Some(&before), &tenant).await?;
        if tenant.developer_access != before.developer_access {
            share_access(tx, &tenant).await?;
        }
        if tenant.developer_access == DeveloperAccess::Approved && before.developer_access != tenant.developer_access {
            let mut report = operational::Report::default();
            report.add(
                OperationalKind::AccountApproved,
                &AccountApproved {
                    id: tenant.id,
                    account_id: tenant.id,
                    occurred_at: tx.env().now(),
                    name: tenant.name.clone(),
                    approved_by: tx.actor().to_string(),
                },
            )?;
            operational::record(tx, tenant.id, report).await?;
        }
    }
    Ok(tenant)
}

/// Returns the sandbox of a tenant. A tenant that names a sandbox which is gone has none.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn sandbox_of(tx: &mut dyn Tx, owner: &Tenant) -> Result<Option<Tenant>, Error> {
    match owner.sandbox_id {
        Some(id) => Ok(tx.tenant(id).await?),
        None => Ok(None),
    }
}

/// Returns the sandbox of a tenant as [`sandbox_of`] does, and locks it. The account is always locked before its sandbox.
pub(crate) async fn lock_sandbox_of(tx: &mut dyn Tx, owner: &Tenant) -> Result<Option<Tenant>, Error> {
    if let Some(id) = owner.sandbox_id {
        tx.lock_tenant(id).await?;
    }
    sandbox_of(tx, owner).await
}

/// Gives the sandbox of a tenant its developer access.
async fn share_access(tx: &mut dyn Tx, tenant: &Tenant) -> Result<(), Error> {
    let Some(before) = lock_sandbox_of(tx, tenant).await? else { return Ok(()) };
    let sandbox = Tenant { developer_access: tenant.developer_access, ..before.clone() };
    tx.update_tenant(&sandbox).await?;
    audit_change(tx, AuditAction::Update, Some(&before), &sandbox).await
}

/// Sets the sandbox of a tenant, which is locked.
pub(crate) async fn set_sandbox(tx: &mut dyn Tx, before: &Tenant, sandbox_id: Option<TenantId>) -> Result<(), Error> {
    let after = Tenant { sandbox_id, ..before.clone() };
    tx.update_tenant(&after).await?;
    audit_change(tx, AuditAction::Update, Some(before), &after).await
}

/// Records that the sandbox of a tenant was reset.
pub(crate) async fn audit_reset(tx: &mut dyn Tx, tenant: &Tenant, sandbox: TenantId) -> Result<(), Error> {
    let object = Object { kind: audit::TENANT, id: sandbox.0 };
    audit::record::<Tenant>(tx, tenant.id, AuditAction::Reset, object, None, None).await
}

async fn audit_change(
    tx: &mut dyn Tx,
    action: AuditAction,
    before: Option<&Tenant>,
    after: &Tenant,
) -> Result<(), Error> {
    audit::record(tx, after.id, action, Object { kind: audit::TENANT, id: after.id.0 }, before, Some(after)).await
}

/// Takes the next number of a sequence, such as `INV-0001`. Numbers have at least four digits.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn next_number(tx: &mut dyn Tx, tenant: TenantId, kind: NumberKind) -> Result<String, Error> {
    Ok(format!("{kind}-{:04}", tx.next_number(tenant, kind).await?))
}

/// The largest number that [`take_number`] accepts. A sequence does not reach it by counting, and every store can hold
/// it.
pub const MAX_NUMBER: u64 = 1_000_000_000_000;

/// Moves a sequence past a number that was assigned outside it, as by an import. A number in another form than
/// [`next_number`] returns changes nothing, as the sequence can never return it.
///
/// # Errors
///
/// Returns `out_of_range` on `field` for a number over [`MAX_NUMBER`], and [`Error::Store`] when the store fails.
pub async fn take_number(
    tx: &mut dyn Tx,
    tenant: TenantId,
    kind: NumberKind,
    field: &str,
    text: &str,
) -> Result<(), Error> {
    let digits = text.strip_prefix(kind.as_str()).and_then(|number| number.strip_prefix('-'));
    let Some(digits) = digits.filter(|digits| digits.len() >= 4 && digits.bytes().all(|digit| digit.is_ascii_digit()))
    else {
        return Ok(());
    };
    // The sequence writes seven as `INV-0007`, never as `INV-00007`.
    if digits.len() > 4 && digits.starts_with('0') {
        return Ok(());
    }
    match digits.parse::<u64>().ok().filter(|number| *number <= MAX_NUMBER) {
        Some(0) => Ok(()),
        Some(number) => Ok(tx.raise_number(tenant, kind, number).await?),
        None => Err(Issue::new(FieldCode::OutOfRange, format!("must be at most {kind}-{MAX_NUMBER}")).on(field)),
    }
}
