//! Records that an export wrote, put back as they were.

use async_trait::async_trait;

use super::batch::ImportRecord;
use super::identity::{self, Identity};
use super::import::{Import, ImportOptions, Imported};
use crate::accounts::clocks::advance_clock;
use crate::accounts::tenants::{self, Tenant};
use crate::error::{Error, FieldCode, Issue};
use crate::find;
use crate::pages::{ListQuery, Order};
use crate::resources::BusinessRecord;
use crate::resources::contacts::Contact;
use crate::resources::kinds::{AccountRecord, with_record};
use crate::store::{Repository, Tx};
use crate::values::{EventKind, TenantId};

/// Puts a record back as an export wrote it: with its id, number and times, and with its contact even if that is deleted.
/// Fires no event, since the events of the record were fired where it was made.
///
/// The records of a type must come in the order of their `updated_at`, and after the contacts that they refer to. A
/// record that exists and is the same is [`Imported::Unchanged`], and one that has changed since is
/// [`Imported::Updated`].
///
/// # Errors
/// The refusals of the rules, and [`Error::NotAllowed`] if another record of the type has changed later than this one: clients
/// that keep a copy by `updated_since` would never see it. After [`Error::Store`] the transaction must fail.
pub async fn restore<R: BusinessRecord>(tx: &mut dyn Tx, tenant: &Tenant, mut record: R) -> Result<Imported, Error> {
    let now = advance_clock(tx, tenant.id).await?;
    record.check()?;
    let key = (record.id(), Some(record.created_at()));
    let existing = match identity::by_id::<R>(tx, tenant.id, key, R::every(), now).await? {
        Identity::Existing(existing) if existing == record => return Ok(Imported::Unchanged),
        Identity::Existing(_) => true,
        Identity::New(..) => false,
    };
    if record.updated_at() < record.created_at() || record.updated_at() >= now {
        let reason = "must lie between created_at and now";
        return Err(Issue::new(FieldCode::OutOfRange, reason).on("updated_at"));
    }
    check_order(tx, tenant.id, &record).await?;
    record.check_others(tx, tenant).await?;
    if let Some(contact) = record.contact()
        && Repository::<Contact>::get(tx, tenant.id, contact.into()).await?.is_none()
    {
        return Err(Error::ReferenceNotFound("contact_id"));
    }
    if let Some((kind, field, number)) = record.number() {
        tenants::take_number(tx, tenant.id, kind, field, number).await?;
    }
    if existing {
        R::repository(tx).update(tenant.id, &record).await?;
    } else {
        R::repository(tx).insert(tenant.id, &record).await?;
    }
    // The index of searches has all changes until a later time, so it would never look for one with this time.
    find::index_record(tx, tenant.id, &record).await?;
    Ok(if existing { Imported::Updated } else { Imported::Added })
}

/// Checks that no record of the type has changed at the time of this one or later.
async fn check_order<R: BusinessRecord>(tx: &mut dyn Tx, tenant: TenantId, record: &R) -> Result<(), Error> {
    let order = Order::OldestChangeFirst { from: record.updated_at() };
    let later = R::repository(tx).list(tenant, &ListQuery { limit: 1, order, filter: R::every() }).await?;
    let Some(later) = later.first() else { return Ok(()) };
    let (id, at, collection) = (later.id(), later.updated_at(), R::COLLECTION);
    Err(Error::NotAllowed(format!(
        "This record changed at {}, but {id} changed at {at}, and clients that sync {collection} to that time would miss it. \
         Import into an account without {collection}.",
        record.updated_at(),
    )))
}

/// Rows are put back with [`restore`], whatever the options say.
#[async_trait]
impl Import for AccountRecord {
    const KIND: &'static str = "all";
    const EVENT: Option<EventKind> = None;
    type Row = Self;
    const NUMBERS: &'static [&'static str] = &[];
    const REQUIRED: &'static [&'static str] = &[];

    fn content(_row: &Self, _unique_email: bool) -> Option<[u8; 32]> {
        None
    }

    fn to_record(row: &Self) -> ImportRecord {
        ImportRecord::written(row)
    }

    async fn put(
        tx: &mut dyn Tx,
        tenant: &Tenant,
        row: Self,
        _before: u32,
        _options: ImportOptions,
    ) -> Result<Imported, Error> {
        with_record!(row, record => restore(tx, tenant, *record).await)
    }
}
