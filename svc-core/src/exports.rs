//! Exports: all records of an account, page by page (`docs/contract.md`, "Back office").
//!
//! # Order
//!
//! Every record comes after the contact that it refers to, so [`restore`](crate::imports::restore()) takes the records as they
//! come: first the contacts, deleted ones included, then invoices, quotes, bookings and jobs, each type in the order of its
//! changes.
//!
//! Records may change while the pages are read. A page is read in one transaction, together with the contacts that have
//! changed since the page before, which come first on it. So the order holds without a snapshot of the whole account. What
//! changes after its page was read is not read again: an export since the time at which this one began has it.

use crate::error::Error;
use crate::pages::{CursorKey, CursorScope, ListQuery, Order, Since};
use crate::platform::{ExportPage, ExportParams};
use crate::resources::contacts::Contact;
use crate::resources::{AccountRecord, BusinessRecord, RecordKind};
use crate::store::Tx;
use crate::values::{TenantId, Timestamp, parse_uuid};
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
) -> Result<Vec<AccountRecord>, Error> {
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
        format!("{}.{contacts}.{records}", self.kind.collection())
    }

    fn open(key: &CursorKey, tenant: TenantId, since: Option<Since>, cursor: &str) -> Result<Self, Error> {
        let mut parts = cursor.split('.');
        let (Some(kind), Some(contacts), Some(records), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::InvalidCursor);
        };
        let uuid = |text| parse_uuid(text).map_err(|_| Error::InvalidCursor);
        let kind = RecordKind::of_collection(kind).ok_or(Error::InvalidCursor)?;
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::accounts::tenants::{self, TenantCreate};
    use crate::env::Env;
    use crate::input::Input as _;
    use crate::pages::Limit;
    use crate::resources::contacts::ContactId;
    use crate::resources::jobs::Job;
    use crate::resources::quotes::Quote;
    use crate::resources::{Create, crud};
    use crate::store::memory::MemoryStore;
    use crate::store::{Store, UnitOfWorkFn};

    struct Fixture {
        store: MemoryStore,
        tenant: TenantId,
    }

    impl Fixture {
        fn new() -> Self {
            let store = MemoryStore::new(Env::system());
            let tenant = Self::write(&store, (), async |tx, ()| tenants::create(tx, TenantCreate::named("X")).await).id;
            Self { store, tenant }
        }

        fn write<I, T>(store: &dyn Store, input: I, work: impl UnitOfWorkFn<I, T>) -> T
        where
            I: Send + Sync + 'static,
            T: Send + 'static,
        {
            store.write("test", input, work).now_or_never().unwrap().unwrap()
        }

        fn create<R: Create>(&self, body: String) -> R {
            let tenant = self.tenant;
            Self::write(&self.store, (body, tenant), async |tx, (body, tenant)| {
                let input = R::Input::from_body(body.as_bytes());
                crud::create::<R>(tx, *tenant, input?).await
            })
        }

        fn contact(&self) -> ContactId {
            self.create::<Contact>(format!(r#"{{"email": "{}@example.com"}}"#, self.store.env().now().as_micros())).id
        }

        fn quote(&self, contact: ContactId) {
            self.create::<Quote>(format!(r#"{{"contact_id": "{contact}", "total": 1}}"#));
        }

        fn page(&self, limit: u32, since: Option<Since>, cursor: Option<String>) -> Result<ExportPage, Error> {
            let (params, tenant) = (ExportParams { since, limit: Limit::new(limit), cursor }, self.tenant);
            let store: &dyn Store = &self.store;
            let read =
                store.read("test", (tenant, params), async |tx, (tenant, params)| page(tx, *tenant, params).await);
            read.now_or_never().unwrap()
        }
    }

    #[test]
    fn every_record_comes_once_and_after_its_contact_while_records_are_made() {
        for limit in [1, 2, 3, 5, 200] {
            let fixture = Fixture::new();
            for _ in 0..3 {
                let contact = fixture.contact();
                fixture.quote(contact);
                fixture.create::<Job>(format!(r#"{{"contact_id": "{contact}", "title": "Fix tap"}}"#));
            }
            let (mut exported, mut cursor) = (Vec::new(), None);
            loop {
                let page = fixture.page(limit, None, cursor).unwrap();
                assert!(page.data.len() <= limit as usize);
                exported.extend(page.data);
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
                // A new contact with a record of the type that is read at the moment.
                if exported.len() < 12 {
                    fixture.quote(fixture.contact());
                }
            }
            let mut contacts = Vec::new();
            for record in &exported {
                match record {
                    AccountRecord::Contact(contact) => contacts.push(contact.id),
                    AccountRecord::Quote(quote) => assert!(quote.contact_id.is_some_and(|id| contacts.contains(&id))),
                    AccountRecord::Job(job) => assert!(job.contact_id.is_some_and(|id| contacts.contains(&id))),
                    other => panic!("{other:?}"),
                }
            }
            let texts: std::collections::BTreeSet<String> =
                exported.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
            assert_eq!(texts.len(), exported.len(), "no record comes twice");
            assert!(exported.len() >= 9, "{}", exported.len());
        }
    }

    #[test]
    fn a_cursor_is_valid_for_its_account_and_since_and_as_a_whole() {
        let fixture = Fixture::new();
        for _ in 0..3 {
            fixture.contact();
        }
        let since = |micros| Some(Since(Timestamp::from_micros(micros)));
        let cursor = fixture.page(1, since(7), None).unwrap().next_cursor.unwrap();
        let other = fixture.page(2, since(7), None).unwrap().next_cursor.unwrap();
        assert_eq!(fixture.page(1, since(7), Some(cursor.clone())).unwrap().data.len(), 1);
        let mixed = |cursor: &str, other: &str| {
            format!("{}.{}", cursor.rsplit_once('.').unwrap().0, other.rsplit_once('.').unwrap().1)
        };
        let wrong = [
            String::new(),
            "x".to_owned(),
            cursor.replace("invoices", "jobs"),
            cursor.replace("invoices", "people"),
            format!("{cursor}."),
            mixed(&cursor, &other),
        ];
        for wrong in wrong {
            assert_eq!(fixture.page(1, since(7), Some(wrong.clone())), Err(Error::InvalidCursor), "{wrong}");
        }
        for since in [None, since(8)] {
            assert_eq!(fixture.page(1, since, Some(cursor.clone())), Err(Error::InvalidCursor));
        }
        assert_eq!(Fixture::new().page(1, since(7), Some(cursor)), Err(Error::InvalidCursor));
    }
}
