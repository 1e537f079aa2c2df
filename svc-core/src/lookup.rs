//! Finds records by their id alone, or by a part of it.
//!
//! Ids are unique within an account. An import can give records of two accounts the same id, so [`accounts_of`] returns all
//! accounts that have a record with an id. Parts of ids are looked up within one account, by [`ids_with`]. Ids sort like the
//! times at which they were made, so those with a common beginning are next to each other in a list; those with a common end
//! are found only by reading the list, which is done as long as it is short.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::accounts::keys;
use crate::accounts::tenants::Tenant;
use crate::env::time_of_id;
use crate::error::{Error, FieldCode, Issue};
use crate::input::json::Json;
use crate::input::{FromJson, Input, Record};
use crate::pages::{ListQuery, MAX_LIMIT, Order};
use crate::resources::{Filter as _, Resource, crud};
use crate::store::{DeliveryFilter, OwnedKind, Tx};
use crate::values::{RecordKind, TenantId, TextEnum, Timestamp, parse_uuid};
use crate::webhooks::subscriptions::WebhookSubscription;
use crate::with_resource;

/// The fewest characters of a part of an id.
pub const MIN_PART: usize = 4;
/// The number of records among which an end of an id is looked for. A list that is longer is not searched.
pub const MAX_SEARCHED: usize = 10_000;
/// The characters at the end of an id that make it unique, as they are random: 48 bits.
const UNIQUE_END: usize = 12;

/// A kind of record whose accounts are found by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum KindOfAll {
    /// Invoices.
    Invoice,
    /// Quotes.
    Quote,
    /// Webhook subscriptions.
    Webhook,
    /// Deliveries.
    Delivery,
    /// API keys, whose ids are unique among all accounts, since keys are never imported.
    Key,
}

/// A kind of record that is found within its account by a part of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum KindInAccount {
    /// Contacts that are not deleted.
    Contact,
    /// Bookings.
    Booking,
    /// Jobs.
    Job,
    /// Invoices.
    Invoice,
    /// Quotes.
    Quote,
    /// Webhook subscriptions that are not deleted.
    Webhook,
    /// Events.
    Event,
    /// Deliveries.
    Delivery,
    /// API keys.
    Key,
}

/// A part of an id: its beginning or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdPart {
    text: String,
    /// The first and the last id that begin with the text. `None` if none can.
    beginning: Option<(Uuid, Uuid)>,
}

/// The record that a part of an id stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct Matches {
    /// The ids that begin with the part, 200 at most; if there are none, those that end with it.
    pub data: Vec<Uuid>,
    /// Whether these are all. It is false if no id begins with the part, and there are too many records to look for those that
    /// end with it. An end of at least 12 characters is random, so that only one id has it; it is found among the newest
    /// 10,000 records however many there are.
    pub is_complete: bool,
}

impl IdPart {
    /// Parses at least [`MIN_PART`] characters of the beginning or the end of an id.
    ///
    /// ```
    /// use svc_core::lookup::IdPart;
    /// assert!(IdPart::parse("0195a3c8-00").is_some());
    /// assert!(IdPart::parse("INV-0001").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        const ZEROS: &str = "00000000-0000-0000-0000-000000000000";
        if text.len() < MIN_PART || !text.is_ascii() {
            return None;
        }
        let text = text.to_ascii_lowercase();
        let rest = ZEROS.get(text.len()..)?;
        let first = parse_uuid(&format!("{text}{rest}")).ok();
        let last = parse_uuid(&format!("{text}{}", rest.replace('0', "f"))).ok();
        let can_be_the_end = ZEROS.get(..rest.len()).is_some_and(|zeros| parse_uuid(&format!("{zeros}{text}")).is_ok());
        let beginning = first.zip(last);
        (beginning.is_some() || can_be_the_end).then_some(Self { text, beginning })
    }

    /// Returns the first id that begins with the part, if any can.
    pub fn first(&self) -> Option<Uuid> {
        self.beginning.map(|(first, _)| first)
    }

    /// Returns whether an id begins with the part.
    pub fn begins(&self, id: Uuid) -> bool {
        self.beginning.is_some_and(|(first, last)| (first..=last).contains(&id))
    }

    /// Returns those of a page of ids, the newest first, that begin with the part, which `first` is the first of.
    fn beginnings(&self, first: Uuid, page: Vec<Uuid>) -> Vec<Uuid> {
        page.into_iter().take_while(|id| *id >= first).filter(|id| self.begins(*id)).collect()
    }

    /// Returns whether an id ends with the part.
    pub fn ends(&self, id: Uuid) -> bool {
        id.to_string().ends_with(&self.text)
    }
}

impl fmt::Display for IdPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromJson for IdPart {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::parse(&json.into_string()?).ok_or_else(|| {
            let reason = format!("must be at least {MIN_PART} characters of the beginning or the end of an id");
            Issue::new(FieldCode::InvalidFormat, reason)
        })
    }
}

impl JsonSchema for IdPart {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "IdPart".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": MIN_PART, "maxLength": 35, "examples": ["0195a3c8"] })
    }
}

impl Serialize for IdPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The parameters of a lookup of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Input)]
pub struct RecordId {
    /// The kind of the record.
    pub kind: KindOfAll,
    /// The id of the record.
    pub id: Uuid,
}

/// The parameters of a lookup of ids.
#[derive(Clone, Debug, PartialEq, Eq, Input)]
pub struct PartOfId {
    /// The kind of the records.
    pub kind: KindInAccount,
    /// The beginning or the end of the id, at least 4 characters.
    pub part: IdPart,
}

/// Returns the tenants that have a record with this id. A record that is deleted does not count.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn accounts_of(tx: &mut dyn Tx, kind: KindOfAll, id: Uuid) -> Result<Vec<Tenant>, Error> {
    let owned = match kind {
        KindOfAll::Invoice => OwnedKind::Invoice,
        KindOfAll::Quote => OwnedKind::Quote,
        KindOfAll::Webhook => OwnedKind::Subscription,
        KindOfAll::Delivery => OwnedKind::Delivery,
        KindOfAll::Key => {
            let key = found(keys::get(tx, id.into()).await)?;
            return match key {
                Some(key) => Ok(tx.tenant(key.tenant_id).await?.into_iter().collect()),
                None => Ok(Vec::new()),
            };
        }
    };
    let mut tenants = Vec::new();
    for tenant in tx.owners(owned, id).await? {
        // Only subscriptions can be deleted.
        let exists = match kind {
            KindOfAll::Webhook => found(crud::get::<WebhookSubscription>(tx, tenant, id.into()).await)?.is_some(),
            _ => true,
        };
        if exists {
            tenants.extend(tx.tenant(tenant).await?);
        }
    }
    Ok(tenants)
}

/// Returns the ids of a tenant's records that begin with a part.
pub(crate) async fn ids_that_begin<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    part: &IdPart,
) -> Result<Vec<Uuid>, Error> {
    let Some((first, before)) = newest_with(tx, tenant, part).await? else { return Ok(Vec::new()) };
    Ok(part.beginnings(first, page_of::<R>(tx, tenant, before).await?))
}

/// Returns the first id that a part can be the beginning of, and the time before which the newest one was made. Nothing is newer
/// than the tenant's clock, which may be ahead of now, so the ids of later times are not asked for.
async fn newest_with(
    tx: &mut dyn Tx,
    tenant: TenantId,
    part: &IdPart,
) -> Result<Option<(Uuid, Option<Timestamp>)>, Error> {
    let Some((first, last)) = part.beginning else { return Ok(None) };
    let (now, last) = (tx.env().now(), time_of_id(last));
    let is_past = last < now || last < tx.clock(tenant).await?.unwrap_or_default();
    Ok(Some((first, is_past.then(|| last.next()))))
}

fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(Error::NotFound) => Ok(None),
        result => result.map(Some),
    }
}

/// Returns the ids of a tenant's records that begin with a part, otherwise those that end with it.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn ids_with(tx: &mut dyn Tx, kind: KindInAccount, tenant: TenantId, part: &IdPart) -> Result<Matches, Error> {
    if let Some((first, before)) = newest_with(tx, tenant, part).await? {
        let found = part.beginnings(first, page(tx, kind, tenant, before).await?);
        if !found.is_empty() {
            return Ok(Matches { data: found, is_complete: true });
        }
    }
    let (mut found, mut searched, mut before) = (Vec::new(), 0, None);
    loop {
        let page = page(tx, kind, tenant, before).await?;
        found.extend(page.iter().copied().filter(|id| part.ends(*id)));
        searched += page.len();
        before = page.last().map(|last| time_of_id(*last));
        if page.len() < MAX_LIMIT as usize {
            return Ok(Matches { data: found, is_complete: true });
        }
        if searched > MAX_SEARCHED {
            let is_complete = part.text.len() >= UNIQUE_END && !found.is_empty();
            return Ok(Matches { data: if is_complete { found } else { Vec::new() }, is_complete });
        }
    }
}

/// Returns the ids of a tenant's newest records that are older than `before`, newest first. Fewer than [`MAX_LIMIT`] are all.
async fn page(
    tx: &mut dyn Tx,
    kind: KindInAccount,
    tenant: TenantId,
    before: Option<Timestamp>,
) -> Result<Vec<Uuid>, Error> {
    match kind {
        KindInAccount::Webhook => page_of::<WebhookSubscription>(tx, tenant, before).await,
        KindInAccount::Event => {
            let ids = tx.event_ids(tenant, before.unwrap_or(Timestamp::MAX), MAX_LIMIT).await?;
            Ok(ids.into_iter().map(|id| id.uuid()).collect())
        }
        KindInAccount::Delivery => page_of_deliveries(tx, tenant, before).await,
        KindInAccount::Key => {
            let mut ids: Vec<Uuid> = tx.api_keys(tenant).await?.iter().map(|key| key.id.uuid()).collect();
            ids.retain(|id| before.is_none_or(|before| time_of_id(*id) < before));
            ids.reverse();
            ids.truncate(MAX_LIMIT as usize);
            Ok(ids)
        }
        // The others have the names of kinds of records, which a test compares.
        kind => match RecordKind::from_text(kind.as_str()) {
            Some(kind) => with_resource!(kind, R => page_of::<R>(tx, tenant, before).await),
            None => Ok(Vec::new()),
        },
    }
}

async fn page_of<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    before: Option<Timestamp>,
) -> Result<Vec<Uuid>, Error> {
    let query = ListQuery { limit: MAX_LIMIT, order: Order::NewestFirst { before }, filter: R::Filter::none() };
    Ok(R::repository(tx).list(tenant, &query).await?.iter().map(|record| record.id().uuid()).collect())
}

async fn page_of_deliveries(tx: &mut dyn Tx, tenant: TenantId, before: Option<Timestamp>) -> Result<Vec<Uuid>, Error> {
    let filter = DeliveryFilter { until: before, limit: MAX_LIMIT, ..DeliveryFilter::default() };
    let mut ids: Vec<Uuid> = tx.list_deliveries(tenant, &filter).await?.iter().map(|it| it.id.uuid()).collect();
    // The deliveries of one event are of one time, and the next page begins before it. So a full page is completed by all
    // deliveries of its last event.
    if let Some(last) = ids.last().copied().filter(|_| ids.len() == MAX_LIMIT as usize) {
        let at = time_of_id(last);
        let filter = DeliveryFilter { since: Some(at), until: Some(at.next()), ..DeliveryFilter::default() };
        ids.retain(|id| time_of_id(*id) != at);
        ids.extend(tx.list_deliveries(tenant, &filter).await?.iter().map(|it| it.id.uuid()));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_of_record_is_looked_up_by_its_name() {
        use KindInAccount::{Delivery, Event, Key, Webhook};
        let others = KindInAccount::ALL.iter().filter(|kind| !matches!(kind, Webhook | Event | Delivery | Key));
        let names: BTreeSet<&str> = others.map(|kind| kind.as_str()).collect();
        assert_eq!(names, RecordKind::ALL.iter().map(|kind| kind.as_str()).collect());
    }

    #[test]
    fn a_part_is_the_beginning_or_the_end_of_an_id() {
        let id = parse_uuid("0195a3c8-0000-7000-8000-00000000abcd").unwrap();
        let part = |text: &str| IdPart::parse(text).map(|part| (part.begins(id), part.ends(id)));
        for text in ["0195", "0195A3C8", "0195a3c8-", "0195a3c8-0000-7000-8000-00000000abc"] {
            assert_eq!(part(text), Some((true, false)), "{text}");
        }
        for text in ["abcd", "ABCD", "-00000000abcd", "195a3c8-0000-7000-8000-00000000abcd"] {
            assert_eq!(part(text), Some((false, true)), "{text}");
        }
        for text in ["", "195", "bcd", "INV-0001", "0195a3c8-0000-8-", "01é5", "0195a3c8-0000-7000-8000-00000000abcd0"]
        {
            assert_eq!(part(text), None, "{text}");
        }
    }
}
