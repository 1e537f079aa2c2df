//! Exports: all records of an account, page by page (`docs/contract.md`, "Back office").
//!
//! # Order
//!
//! Every record comes after the contact that it refers to, so [`restore`](crate::imports::restore()) takes the records as they
//! come: first the contacts, deleted ones included, then invoices, quotes, bookings and jobs, each type in the order of its
//! changes.
//!
//! Records may change while the pages are read. A page is read in one transaction, together with the contacts that have
//! changed since the page before, which come first on it. So the order holds without a snapshot of the whole account. A record that
//! changes after its page was read is not read again: an export since the beginning of this one has it.

use crate::error::Error;
use crate::pages::{CursorKey, CursorScope, ListQuery, Order, Since};
use crate::platform::{ExportPage, ExportParams};
use crate::resources::BusinessRecord;
use crate::resources::contacts::Contact;
use crate::resources::kinds::{self, AccountRecord};
use crate::store::Tx;
use crate::values::{RecordKind, TenantId, Timestamp, parse_uuid};
use crate::with_resource;

/// Returns the page of an export that the parameters ask for.
///
/// # Errors
/// [`Error::InvalidCursor`] if the cursor was not returned for this account with the same `since`.
pub async fn page(tx: &mut dyn Tx, tenant: TenantId, params: &ExportParams) -> Result<ExportPage, Error> {
    let mut position = match &params.cursor {
        Some(cursor) => Position::open(tx.cursor_key(), tenant, params.since, cursor)?,
        None => Position::start(params.since),
    };
    let limit = params.limit.unwrap_or_default().get();
    // One record more than the page has, to know whether there is another page.
    let mut data = changed::<Contact>(tx, tenant, position.contacts, limit + 1).await?;
    for kind in RecordKind::ALL.iter().copied().skip_while(|kind| *kind != position.kind) {
        let from = if kind == position.kind { position.records } else { Position::start(params.since).records };
        let room = limit + 1 - u32::try_from(data.len()).unwrap_or(limit + 1);
        if room == 0 {
            break;
        }
        if kind != RecordKind::Contact {
            data.extend(with_resource!(kind, R => changed::<R>(tx, tenant, from, room).await?));
        }
    }
    let has_more = data.len() > limit as usize;
    data.truncate(limit as usize);
    data.iter().for_each(|record| position.pass(record));
    let next_cursor = has_more.then(|| position.seal(tx.cursor_key(), tenant, params.since));
    Ok(ExportPage { data, next_cursor })
}

/// Returns the records of a type that have changed at or after a time, the oldest change first.
async fn changed<R: BusinessRecord>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    from: Timestamp,
    limit: u32,
) -> Result<Vec<AccountRecord>, Error>
where
    AccountRecord: From<R>,
{
    let query = ListQuery { limit, order: Order::OldestChangeFirst { from }, filter: R::every() };
    Ok(R::repository(tx).list(tenant, &query).await?.into_iter().map(AccountRecord::from).collect())
}

/// How far an export has come.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Position {
    /// Contacts that changed before this time were exported.
    contacts: Timestamp,
    /// The type of the last other record.
    kind: RecordKind,
    /// Records of this type that changed before this time were exported.
    records: Timestamp,
}

impl Position {
    fn start(since: Option<Since>) -> Self {
        let since = since.map_or(Timestamp::from_micros(0), |since| since.0);
        Self { contacts: since, kind: RecordKind::Invoice, records: since }
    }

    /// Moves the position behind a record.
    fn pass(&mut self, record: &AccountRecord) {
        let next = record.updated_at().next();
        match record.kind() {
            RecordKind::Contact => self.contacts = next,
            kind => (self.kind, self.records) = (kind, next),
        }
    }

    /// Returns the cursor of the position: the type, and a cursor for each of the two times. The second is valid beside the
    /// first only.
    fn seal(self, key: &CursorKey, tenant: TenantId, since: Option<Since>) -> String {
        let contacts = key.seal(&contacts_scope(tenant, since, self.kind), self.contacts);
        let records = key.seal(&records_scope(tenant, since, self.kind, self.contacts), self.records);
        format!("{}.{contacts}.{records}", kinds::collection(self.kind))
    }

    fn open(key: &CursorKey, tenant: TenantId, since: Option<Since>, cursor: &str) -> Result<Self, Error> {
        let mut parts = cursor.split('.');
        let (Some(kind), Some(contacts), Some(records), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::InvalidCursor);
        };
        let uuid = |text| parse_uuid(text).map_err(|_| Error::InvalidCursor);
        let kind = kinds::of_collection(kind).ok_or(Error::InvalidCursor)?;
        let contacts = key.open(&contacts_scope(tenant, since, kind), uuid(contacts)?)?;
        let records = key.open(&records_scope(tenant, since, kind, contacts), uuid(records)?)?;
        Ok(Self { contacts, kind, records })
    }
}

fn contacts_scope(tenant: TenantId, since: Option<Since>, kind: RecordKind) -> CursorScope {
    CursorScope::new(tenant, "export", since, &kind)
}

fn records_scope(tenant: TenantId, since: Option<Since>, kind: RecordKind, contacts: Timestamp) -> CursorScope {
    CursorScope::new(tenant, "export", since, &(kind, contacts))
}
