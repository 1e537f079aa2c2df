//! Marking of invoices that were not paid in time: by hand, and once a day for each tenant.
//!
//! Each tenant has a time of its next check, the beginning of its next day. [`check_overdue`] finds the tenants whose time has
//! come by an index, so a call that finds none costs one search, however many tenants there are. A server that was off at
//! midnight checks them when it starts. Of several processes that check a tenant at the same time, the first changes the
//! invoices, and the others find nothing left to change.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Invoice, InvoiceFilter, InvoiceStatus, store_change};
use crate::accounts::clocks::advance_clock;
use crate::accounts::tenants;
use crate::error::{Error, FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;
use crate::input::schema::deserialize_text;
use crate::pages::{ListQuery, Order};
use crate::resources::crud;
use crate::store::{Repository, Store, Tx};
use crate::values::EventKind;
use crate::values::{TenantId, Text, Timestamp};

/// The greatest number of invoices that one step reads, so that each step is a short transaction.
pub const OVERDUE_STEP: u32 = 200;

/// The statuses of an invoice that can become overdue.
const UNPAID: [InvoiceStatus; 3] = [InvoiceStatus::Sent, InvoiceStatus::Viewed, InvoiceStatus::Partial];

/// The number of tenants that one transaction finds.
const TENANTS: u32 = 256;
/// A day lasts up to 48 hours, where a date was repeated. A check that is later than this was planned under a clock that was
/// ahead, and is made now.
const LATEST_CHECK: Duration = Duration::from_secs(49 * 60 * 60);
/// How long a tenant is left out whose invoices cannot be read.
const RETRY_DELAY: Duration = Duration::from_secs(60 * 60);

/// The position of a walk over the invoices of a tenant. The default is the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverduePosition {
    /// Index of the status in [`UNPAID`] whose invoices are read.
    status: usize,
    /// The `created_at` of the last invoice that was read with this status.
    before: Option<Timestamp>,
}

/// Writes the position as a text for the client that takes the steps.
impl fmt::Display for OverduePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            Some(before) => write!(f, "{}@{before}", self.status),
            None => write!(f, "{}", self.status),
        }
    }
}

impl FromStr for OverduePosition {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        let (status, before) = match text.split_once('@') {
            Some((status, before)) => (status, Some(Timestamp::parse(before)?)),
            None => (text, None),
        };
        let status = status.parse().ok().filter(|status| *status < UNPAID.len());
        let invalid = || Issue::new(FieldCode::InvalidFormat, "must be the position that the previous step returned");
        Ok(Self { status: status.ok_or_else(invalid)?, before })
    }
}

impl Serialize for OverduePosition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OverduePosition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_text(deserializer)
    }
}

impl FromJson for OverduePosition {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Text::<100>::from_json(json)?.as_str().parse()
    }
}

impl JsonSchema for OverduePosition {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OverduePosition".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Text::<100>::json_schema(generator)
    }
}

/// Takes one step of the walk that marks invoices as overdue. Returns the invoices that changed, and the position of the
/// next step, or `None` after the last.
///
/// The step reads the next [`OVERDUE_STEP`] invoices that are sent, viewed or paid in part. Those with a due date before
/// today in the tenant's time zone become `overdue` and fire `invoice.updated`.
///
/// # Errors
/// [`Error::NotFound`] if there is no such tenant.
pub async fn overdue(
    tx: &mut dyn Tx,
    tenant: TenantId,
    from: OverduePosition,
) -> Result<(Vec<Invoice>, Option<OverduePosition>), Error> {
    let settings = tenants::get(tx, tenant).await?;
    let (mut position, mut rows) = (from, Vec::new());
    while let Some(status) = UNPAID.get(position.status).copied()
        && rows.len() < OVERDUE_STEP as usize
    {
        let limit = OVERDUE_STEP - rows.len() as u32;
        let filter = InvoiceFilter { status: Some(status), number: None };
        let order = Order::NewestFirst { before: position.before };
        let page = Repository::<Invoice>::list(tx, tenant, &ListQuery { limit, order, filter }).await?;
        position = if page.len() < limit as usize {
            OverduePosition { status: position.status + 1, before: None }
        } else {
            OverduePosition { before: page.last().map(|last| last.created_at), ..position }
        };
        rows.extend(page);
    }

    let today = settings.time_zone.date_at(tx.env().now());
    let is_due = |invoice: &Invoice| {
        UNPAID.contains(&invoice.status) && invoice.due_date.is_some_and(|due_date| due_date < today)
    };
    let mut changed = Vec::new();
    for row in rows.into_iter().filter(is_due) {
        let now = advance_clock(tx, tenant).await?;
        // Until `advance_clock` locked the tenant, another transaction may have changed the invoice. Read it again.
        let mut invoice: Invoice = crud::get(tx, tenant, row.id).await?;
        if is_due(&invoice) {
            invoice.status = InvoiceStatus::Overdue;
            store_change(tx, tenant, now, &mut invoice, &[EventKind::InvoiceUpdated]).await?;
            changed.push(invoice);
        }
    }
    Ok((changed, (position.status < UNPAID.len()).then_some(position)))
}

/// The result of [`check_overdue`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverdueChecks {
    /// The number of invoices that became overdue.
    pub marked: u64,
    /// The tenants whose invoices could not be checked, such as for a damaged row. They are checked again after an hour.
    pub failed: Vec<(TenantId, Error)>,
}

/// Marks the overdue invoices of each tenant for which a day has begun since its last check, in steps with a `pause` after
/// each. Call it every minute or so.
///
/// # Errors
/// [`Error::Store`] while the store is not available; the next call goes on.
pub async fn check_overdue<P, F>(store: &dyn Store, pause: P) -> Result<OverdueChecks, Error>
where
    P: Fn() -> F,
    F: Future<Output = ()>,
{
    let mut checks = OverdueChecks::default();
    loop {
        let due = store.read("overdue.tenants", (), async |tx, ()| {
            let now = tx.env().now();
            Ok(tx.tenants_to_check_overdue(now, latest_check(now), TENANTS).await?)
        });
        let due = due.await?;
        if due.is_empty() {
            return Ok(checks);
        }
        for tenant in due {
            match check_tenant(store, tenant, &pause).await {
                Ok(marked) => checks.marked += marked,
                Err(Error::Store(error)) if error.is_transient() => return Err(error.into()),
                // A damaged row must not block other tenants.
                Err(error) => {
                    let defer = store.write("overdue.defer", tenant, async |tx, &tenant| defer(tx, tenant).await);
                    defer.await?;
                    checks.failed.push((tenant, error));
                }
            }
        }
    }
}

async fn check_tenant<P, F>(store: &dyn Store, tenant: TenantId, pause: &P) -> Result<u64, Error>
where
    P: Fn() -> F,
    F: Future<Output = ()>,
{
    let started_at = store.env().now();
    let (mut marked, mut position) = (0, Some(OverduePosition::default()));
    while let Some(from) = position {
        let step = store.write("overdue.step", (tenant, from, started_at), async |tx, &(tenant, from, started_at)| {
            step(tx, tenant, from, started_at).await
        });
        let (changed, next) = step.await?;
        marked += changed;
        position = next;
        pause().await;
    }
    Ok(marked)
}

/// Takes one step of the check that began at `started_at`, unless another process has finished it. The last step plans the
/// next check. Returns how many invoices became overdue, and where the next step begins.
async fn step(
    tx: &mut dyn Tx,
    tenant: TenantId,
    from: OverduePosition,
    started_at: Timestamp,
) -> Result<(u64, Option<OverduePosition>), Error> {
    tx.lock_tenant(tenant).await?;
    let check_at = tx.overdue_check_at(tenant).await?.ok_or(Error::NotFound)?;
    let now = tx.env().now();
    if now < check_at && check_at <= latest_check(now) {
        return Ok((0, None));
    }
    let (changed, next) = overdue(tx, tenant, from).await?;
    if next.is_none() {
        // If midnight has passed since the first step, the next check is due at once.
        let begins = tenants::get(tx, tenant).await?.time_zone.next_date_begins(started_at);
        tx.set_overdue_check_at(tenant, begins).await?;
    }
    Ok((changed.len() as u64, next))
}

async fn defer(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    tx.lock_tenant(tenant).await?;
    let later = tx.env().now().checked_add(RETRY_DELAY);
    Ok(tx.set_overdue_check_at(tenant, later.unwrap_or_default()).await?)
}

fn latest_check(now: Timestamp) -> Timestamp {
    now.checked_add(LATEST_CHECK).unwrap_or(now)
}
