//! Lists of bookings and jobs by when they start, for calendars and for what is on tomorrow, and of unpaid invoices by when they
//! are due.
//!
//! Several records may start at the same time, so the time of a start is no position in a list. A [`StartPlace`] is one: of
//! the records that start at the same time, the one that was created first comes first. Its cursor has both times.

use serde::Serialize;

use crate::error::{Error, FieldCode, Issue};
use crate::input::Input;
use crate::pages::{CursorKey, CursorScope, Limit, ListParams, MAX_LIMIT, Page, SentCursor, Since};
use crate::resources::contacts::{self, ContactId, OfContact};
use crate::resources::{Filter as _, crud};
use crate::store::{RecordsByStart, Tx};
use crate::values::{TenantId, Timestamp, parse_uuid};

/// How many times as many records as a page has are read for it at most, when filters leave some of them out.
const READS: usize = 10;

/// A record of something that starts at a time, or may be planned to.
pub trait HasStart: OfContact {
    /// Whether it starts on a calendar date, which counts as its beginning in UTC.
    const STARTS_ON_DATE: bool = false;

    /// Returns when it starts. `None` while that is not planned.
    fn start(&self) -> Option<Timestamp>;

    /// Returns the repository of this resource by start in a transaction.
    fn by_start(tx: &mut dyn Tx) -> &mut dyn RecordsByStart<Self>;
}

/// A place in a list by start: before the records that start later, and before those that start at this time and were created
/// at `created_from` or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartPlace {
    /// The time of the start.
    pub start: Timestamp,
    /// The first time of creation.
    pub created_from: Timestamp,
}

/// The order of a list by start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum StartOrder {
    /// The soonest start comes first.
    #[default]
    SoonestFirst,
    /// The latest start comes first.
    LatestFirst,
}

/// The parameters of a list that can be sorted by when its records start.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct StartListParams {
    /// The maximum number of records on the page, from 1 to 200.
    pub limit: Option<Limit>,
    /// The `next_cursor` of the previous page. Send it with the same filters; only `limit` may change.
    pub cursor: Option<String>,
    /// Only records that changed at or after this time. Without `contact_id` and starts, the oldest change comes first.
    pub updated_since: Option<Since>,
    /// Only the records of this contact. A page may have fewer than `limit`: read on to the last one.
    pub contact_id: Option<ContactId>,
    /// Only what starts at or after this time, in RFC 3339 with the offset of the place, the soonest first.
    pub starts_from: Option<Since>,
    /// Only what starts before this time, the soonest first.
    pub starts_before: Option<Since>,
}

impl StartListParams {
    /// Returns the first place of the list by start, and the time of the last start. `None` if no starts are asked for.
    ///
    /// # Errors
    /// [`Error::Validation`] if there is no time between the two.
    fn starts(&self) -> Result<Option<(StartPlace, Timestamp)>, Error> {
        let first = Timestamp::from_micros(i64::MIN);
        let start = match (self.starts_from, self.starts_before) {
            (None, None) => return Ok(None),
            (from, _) => from.map_or(first, |from| from.0),
        };
        let last = match self.starts_before {
            Some(Since(before)) if before <= start => {
                return Err(Issue::new(FieldCode::OutOfRange, "must be after starts_from").on("starts_before"));
            }
            Some(Since(before)) => Timestamp::from_micros(before.as_micros() - 1),
            None => Timestamp::MAX,
        };
        Ok(Some((StartPlace { start, created_from: first }, last)))
    }

    /// Returns the highest number of records that are read at a time for a page.
    pub fn records_read(&self) -> u32 {
        let limit = self.limit.unwrap_or_default().get();
        match (self.starts_from.or(self.starts_before), self.contact_id) {
            (None, _) => limit,
            (Some(_), None) => 2 * limit,
            (Some(_), Some(_)) => MAX_LIMIT,
        }
    }
}

/// Returns one page of a list: by start, the soonest first, if the parameters name starts, and otherwise as the lists
/// [of a contact](contacts::list_filtered) and [of all](crud::list) are.
///
/// A page may have fewer records than the limit although there are more, when filters leave out most of those that start in
/// the range.
///
/// # Errors
/// [`Error::InvalidCursor`] if the cursor was not returned for this list with the same parameters, and [`Error::Validation`]
/// if the range of starts is empty.
pub async fn list<R: HasStart>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &StartListParams,
    filter: &R::Filter,
) -> Result<Page<R, String>, Error> {
    list_in_order(tx, tenant, params, StartOrder::SoonestFirst, filter).await
}

/// Returns one page as [`list`] does, in one order or the other if the parameters name starts.
///
/// # Errors
/// As for [`list`].
pub async fn list_in_order<R: HasStart>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &StartListParams,
    order: StartOrder,
    filter: &R::Filter,
) -> Result<Page<R, String>, Error> {
    let Some((first, last)) = params.starts()? else { return list_unsorted(tx, tenant, params, filter).await };
    let key = tx.cursor_key().clone();
    let scope = Scope { tenant, params, order, filter };
    let begin = match order {
        StartOrder::SoonestFirst => first,
        StartOrder::LatestFirst => StartPlace { start: last, created_from: Timestamp::MAX },
    };
    let from = match &params.cursor {
        Some(cursor) => scope.open::<R>(&key, cursor)?,
        None => begin,
    };
    let has_changed = |row: &R| params.updated_since.is_none_or(|since| row.updated_at() >= since.0);
    let is_of_contact = |row: &R| params.contact_id.is_none_or(|contact| row.contact() == Some(contact.uuid()));
    let is_wanted = |row: &R| filter.matches(row) && has_changed(row) && is_of_contact(row);

    let limit = params.limit.unwrap_or_default().get();
    let mut data = Vec::new();
    let mut next = None;
    let contact = params.contact_id.filter(|_| order == StartOrder::SoonestFirst);
    if let Some(rows) = of_contact(tx, tenant, contact, from, last).await? {
        data.extend(rows.into_iter().filter(is_wanted));
    } else {
        next = Some(from);
        for _ in 0..READS {
            let Some(place) = next.filter(|_| data.len() < limit as usize) else { break };
            let records = R::by_start(tx);
            let mut rows = match order {
                StartOrder::SoonestFirst => records.records_by_start(tenant, place, last, limit + 1).await?,
                StartOrder::LatestFirst => records.records_before(tenant, place, first.start, limit + 1).await?,
            };
            let has_more = rows.len() > limit as usize;
            rows.truncate(limit as usize);
            next = rows.last().and_then(|row| after(row, order)).filter(|_| has_more);
            data.extend(rows.into_iter().filter(is_wanted));
        }
    }
    if data.len() > limit as usize {
        data.truncate(limit as usize);
        next = data.last().and_then(|row| after(row, order));
    }
    Ok(Page::new(data, next.map(|next| scope.seal::<R>(&key, next))))
}

async fn list_unsorted<R: HasStart>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &StartListParams,
    filter: &R::Filter,
) -> Result<Page<R, String>, Error> {
    let uuid = |cursor: &String| parse_uuid(cursor).map_err(|_| Error::InvalidCursor);
    let cursor = params.cursor.as_ref().map(uuid).transpose()?.map(SentCursor::from);
    let page = ListParams { limit: params.limit, cursor, updated_since: params.updated_since };
    let Page { data, next_cursor } = match params.contact_id {
        Some(contact) => contacts::list_filtered::<R>(tx, tenant, &page, contact, filter).await?,
        None => crud::list::<R>(tx, tenant, &page, filter).await?,
    };
    Ok(Page::new(data, next_cursor.map(|cursor| cursor.to_string())))
}

/// Returns the records of a contact from a place on, in the order of their starts. `None` without a contact, or if it has so many
/// that they are rather looked for among all.
async fn of_contact<R: HasStart>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    contact: Option<ContactId>,
    from: StartPlace,
    last: Timestamp,
) -> Result<Option<Vec<R>>, Error> {
    let Some(contact) = contact else { return Ok(None) };
    let all = R::of_contact(tx).records_of_contact(tenant, contact, Timestamp::MAX, MAX_LIMIT + 1).await?;
    if all.len() > MAX_LIMIT as usize {
        return Ok(None);
    }
    let place = |row: &R| row.start().map(|start| StartPlace { start, created_from: row.created_at() });
    let is_in_range = |row: &R| place(row).is_some_and(|place| place >= from && place.start <= last);
    let mut rows: Vec<R> = all.into_iter().filter(is_in_range).collect();
    rows.sort_by_key(place);
    Ok(Some(rows))
}

/// Returns the place at which a list goes on after a record.
pub(crate) fn after<R: HasStart>(row: &R, order: StartOrder) -> Option<StartPlace> {
    let created_from = match order {
        StartOrder::SoonestFirst => row.created_at().next(),
        StartOrder::LatestFirst => row.created_at(),
    };
    row.start().map(|start| StartPlace { start, created_from })
}

/// The list by start that a cursor is valid for.
struct Scope<'a, F> {
    tenant: TenantId,
    params: &'a StartListParams,
    order: StartOrder,
    filter: &'a F,
}

impl<F: Serialize> Scope<'_, F> {
    /// Returns the scope of a cursor that is valid beside others.
    fn of<R: HasStart>(&self, beside: impl Serialize) -> CursorScope {
        let StartListParams { contact_id, starts_from, starts_before, updated_since, .. } = *self.params;
        let filter = ("by start", self.order, contact_id, starts_from, starts_before, self.filter, beside);
        CursorScope::new(self.tenant, R::COLLECTION, updated_since, &filter)
    }

    /// Returns the cursor of a place: one for the start, with a sign if that is before 1970, and one for the time of creation,
    /// which is valid beside the first only.
    fn seal<R: HasStart>(&self, key: &CursorKey, place: StartPlace) -> String {
        let micros = place.start.as_micros();
        let sign = if micros < 0 { "-" } else { "" };
        let start = key.seal(&self.of::<R>(sign), Timestamp::from_micros(micros.abs()));
        let created = key.seal(&self.of::<R>(place.start), place.created_from);
        format!("{sign}{start}.{created}")
    }

    fn open<R: HasStart>(&self, key: &CursorKey, cursor: &str) -> Result<StartPlace, Error> {
        let (sign, cursor) = cursor.strip_prefix('-').map_or(("", cursor), |cursor| ("-", cursor));
        let (start, created) = cursor.split_once('.').ok_or(Error::InvalidCursor)?;
        let uuid = |text| parse_uuid(text).map_err(|_| Error::InvalidCursor);
        let start = key.open(&self.of::<R>(sign), uuid(start)?)?.as_micros();
        let start = Timestamp::from_micros(if sign.is_empty() { start } else { -start });
        let created_from = key.open(&self.of::<R>(start), uuid(created)?)?;
        Ok(StartPlace { start, created_from })
    }
}
