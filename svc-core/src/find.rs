//! Finds records of an account by a text: a part of a name, an email address, a phone number, a company, a suburb, or the
//! number of an invoice, a quote or a job.
//!
//! A store has an index with a text for each record. Writes do not touch it, since keeping it in their transactions would
//! cost each of them about half of its time more. [`index`] brings it up to date: one step takes the records that changed
//! since the last one, in the order of their changes. Changes of an account have different times, which only increase, so one
//! time says what the index has.
//!
//! [`find`] reads the records that changed since that time beside the index, the oldest change first, and fewer than
//! [`STEP`] of them are all. So it finds what was written a moment ago; [`SearchResults::is_complete`] is false when there were more.

mod folded;
mod list;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::tenants;
use crate::error::{Error, StoreError, Violations};
use crate::input::{Input, Record};
use crate::lookup::{self, IdPart};
use crate::pages::{ListQuery, MAX_LIMIT, Order};
use crate::resources::BusinessRecord;
use crate::resources::contacts::Contact;
pub use crate::store::IndexedText;
use crate::store::{Repository, Store, Tx};
use crate::values::{RecordKind, TenantId, Text, TimeZone, Timestamp, parse_uuid};
use crate::with_resource;

use self::folded::{digits, folded, is_unspaced, parts, seen, short_words, single_numbers};
pub use self::list::{SearchParams, list};

/// The advice when nothing was found by so few characters.
const NO_WHOLE_WORD: &str =
    "Nothing was found. One or two characters find whole words alone; give at least three of a longer one.";

/// The fewest characters by which a part of a word is found. A shorter text finds whole words, and any part of a text in a
/// script without spaces.
pub const MIN_TEXT: usize = 3;
/// The most characters of a text.
pub const MAX_TEXT: usize = 200;
/// The highest number of records that are found.
pub const MAX_HITS: usize = 20;
/// The number of changes that one step of [`index`] takes.
pub const STEP: usize = MAX_LIMIT as usize;
/// The number of accounts that are looked for at a time to bring their indexes up to date.
const TENANTS: u32 = 64;

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct Hit {
    /// The kind of the record.
    pub kind: RecordKind,
    /// The id of the record.
    pub id: Uuid,
    /// The name or number by which people know it.
    pub title: String,
    /// The difference from others with this title: its status, its amount or its time in the account's time zone, and its
    /// contact.
    pub detail: String,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct SearchResults {
    /// The records, at most 20: those that are named exactly, then those that changed last.
    pub data: Vec<Hit>,
    /// Whether all records were looked at. It is false after many records changed, until the index has caught up: a server
    /// takes some seconds for a thousand records, and minutes for a hundred thousand.
    pub is_complete: bool,
    /// The advice if nothing was found and the text may be too short. Left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[record(schema = String)]
    pub note: Option<String>,
}

/// The parameters of a search.
#[derive(Clone, Debug, PartialEq, Eq, Input)]
pub struct FindText {
    /// The text to find, at most 200 characters: the whole name, number or email address of a record, at least four characters
    /// of the beginning of its id, or at least three characters of its name, email address, phone number, company, suburb,
    /// title or number. One or two characters find only whole words of a name, a company, a suburb or a title, such as the
    /// surname Ng, and any part of a text in Chinese, Japanese or Korean. Case, accents, and what stands between the digits of a
    /// phone number make no difference.
    pub text: Text<MAX_TEXT>,
}

/// Begins the text of each record, so that the record is found by its whole title among all that contain it. No field has it.
pub const TITLE: char = '\u{1}';

fn indexed<R: BusinessRecord>(record: &R) -> IndexedText {
    let title = folded(&record.title());
    let others = record.searched().into_iter().flatten().map(folded).chain(record.other_name().as_deref().map(folded));
    let mut lines = vec![title];
    for other in others {
        if !lines.contains(&other) {
            lines.push(other);
        }
    }
    let phone = record.phone().map(folded);
    // Of email addresses and phone numbers, the short parts say nothing.
    let named = lines.iter().filter(|line| !line.contains('@') && Some(*line) != phone.as_ref()).map(String::as_str);
    let short = short_words(named);
    lines.extend(phone.as_deref().and_then(digits));
    lines.extend(phone.as_deref().map(single_numbers).unwrap_or_default());
    lines.extend(short);
    let text = if record.deleted_at().is_none() { format!("{TITLE}{}\n", lines.join("\n")) } else { String::new() };
    IndexedText { kind: R::KIND, id: record.id().uuid(), changed_at: record.updated_at(), text }
}

/// Returns the records that changed after a time, the oldest change first. Fewer than [`STEP`] are all of them.
async fn changes(tx: &mut dyn Tx, tenant: TenantId, after: Option<Timestamp>) -> Result<Vec<IndexedText>, Error> {
    let mut changes = Vec::new();
    for kind in RecordKind::ALL {
        changes.extend(with_resource!(*kind, R => changes_of::<R>(tx, tenant, after).await?));
    }
    // The first ones of all kinds are among the first ones of each kind.
    changes.sort_unstable_by_key(|change| change.changed_at);
    changes.truncate(STEP);
    Ok(changes)
}

async fn changes_of<R: BusinessRecord>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    after: Option<Timestamp>,
) -> Result<Vec<IndexedText>, Error> {
    let from = after.map_or(Timestamp::from_micros(0), Timestamp::next);
    let query = ListQuery { limit: MAX_LIMIT, order: Order::OldestChangeFirst { from }, filter: R::every() };
    Ok(R::repository(tx).list(tenant, &query).await?.iter().map(indexed).collect())
}

/// Puts a record into the index at once, unless the account has no index yet. The index has it again in the order of changes.
///
/// # Errors
/// [`Error::Store`].
pub async fn index_record<R: BusinessRecord>(tx: &mut dyn Tx, tenant: TenantId, record: &R) -> Result<(), Error> {
    match tx.indexed_until(tenant).await? {
        Some(until) => Ok(tx.store_texts(tenant, &[indexed(record)], until).await?),
        None => Ok(()),
    }
}

/// Takes a step that brings the index of an account up to date, and returns whether it is.
///
/// # Errors
/// [`Error::Store`].
pub async fn index(tx: &mut dyn Tx, tenant: TenantId) -> Result<bool, Error> {
    // No write of the account is under way from here on, so none can commit an earlier time than those that are read.
    if !tx.lock_tenant(tenant).await? {
        return Ok(true);
    }
    let (until, clock) = (tx.indexed_until(tenant).await?, tx.clock(tenant).await?);
    let Some(clock) = clock.filter(|clock| until != Some(*clock)) else { return Ok(true) };
    // An index that is ahead of the clock has passed over changes. Nobody knows which, so it begins anew.
    let until = until.filter(|until| *until < clock);
    let changes = changes(tx, tenant, until).await?;
    let is_complete = changes.len() < STEP;
    let until = changes.last().map_or(clock, |last| if is_complete { clock } else { last.changed_at });
    tx.store_texts(tenant, &changes, until).await?;
    Ok(is_complete)
}

/// Brings the indexes of all accounts up to date, in steps of a transaction each. Every server does it every few seconds;
/// those on one database share the work. The accounts take turns, so none waits for another's many records, or for a step
/// that fails. Where accounts are on several servers, those of one that is away are left until the next time.
///
/// `pause` is called after each step with how long it took. A step of [`STEP`] long texts takes as long as that many writes, so
/// a server pauses many times as long, and its writes hardly notice.
///
/// # Errors
/// [`Error::Store`]: the first error of a step, after all other accounts are up to date.
pub async fn index_all<P, F>(store: &dyn Store, pause: P) -> Result<(), Error>
where
    P: Fn(Duration) -> F,
    F: Future<Output = ()>,
{
    let (mut failed, mut first_error) = (BTreeSet::new(), None);
    loop {
        let (mut after, mut is_complete) = (None, true);
        loop {
            let list = store
                .read("search.accounts", after, async |tx, &after| Ok(tx.tenants_to_index(after, TENANTS).await?));
            let tenants = list.await?;
            for tenant in tenants.iter().copied() {
                if failed.contains(&tenant) {
                    continue;
                }
                let began = Instant::now();
                let step = store.write("search.index", tenant, async |tx, &tenant| index(tx, tenant).await);
                match step.await {
                    Ok(is_last) => is_complete &= is_last,
                    Err(error) => {
                        tracing::warn!(%tenant, %error, "the index of searches of an account cannot be brought up to date");
                        failed.insert(tenant);
                        if matches!(error, Error::Store(StoreError::Unavailable(_))) {
                            failed.extend(beside(store, tenant).await);
                        }
                        first_error.get_or_insert(error);
                    }
                }
                pause(began.elapsed()).await;
            }
            after = tenants.last().copied();
            if tenants.len() < TENANTS as usize {
                break;
            }
        }
        if is_complete {
            return first_error.map_or(Ok(()), Err);
        }
    }
}

/// Returns the accounts on the server of an account that is away. The step of each of them would wait for it as well.
async fn beside(store: &dyn Store, tenant: TenantId) -> Vec<TenantId> {
    let Some(servers) = store.servers() else { return Vec::new() };
    let servers = servers.accounts().await.unwrap_or_default();
    servers.into_iter().map(|(_, accounts)| accounts).find(|accounts| accounts.contains(&tenant)).unwrap_or_default()
}

/// Finds records of an account.
///
/// # Errors
/// [`Error::Store`].
pub async fn find(tx: &mut dyn Tx, tenant: TenantId, input: &FindText) -> Result<SearchResults, Error> {
    let (ids, is_complete) = with_text(tx, tenant, &input.text, None, 2 * MAX_HITS as u32).await?;
    let zone = tenants::get(tx, tenant).await?.time_zone;
    let mut data = Vec::new();
    for (kind, id) in ids {
        if data.len() == MAX_HITS {
            break;
        }
        data.extend(with_resource!(kind, R => hit::<R>(tx, tenant, &zone, id).await?));
    }
    let note = (data.is_empty() && finds_whole_words_alone(input.text.as_str())).then(|| NO_WHOLE_WORD.to_owned());
    Ok(SearchResults { data, is_complete, note })
}

async fn hit<R: BusinessRecord>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    zone: &TimeZone,
    id: Uuid,
) -> Result<Option<Hit>, Error> {
    let record = R::repository(tx).get(tenant, id.into()).await?.filter(|record| record.deleted_at().is_none());
    let Some(record) = record else { return Ok(None) };
    let mut details = record.details(zone);
    let contact = match record.contact() {
        Some(id) => Repository::<Contact>::get(tx, tenant, id.into()).await?.map(|contact| contact.display_name()),
        None => None,
    };
    details.extend(contact.filter(|name| !details.contains(name)));
    Ok(Some(Hit { kind: R::KIND, id, title: record.title(), detail: details.join(" · ") }))
}

/// Returns the records that have a text, of one kind or of all: those that it names as a whole, then those that changed last. At
/// most `limit` of either come from the index. The second value says whether all records were looked at.
async fn with_text(
    tx: &mut dyn Tx,
    tenant: TenantId,
    text: &Text<MAX_TEXT>,
    kind: Option<RecordKind>,
    limit: u32,
) -> Result<(Vec<(RecordKind, Uuid)>, bool), Error> {
    let typed = seen(text.as_str());
    let typed = typed.as_str();
    let is_wanted = |found: RecordKind| kind.is_none_or(|kind| kind == found);
    let mut found = Vec::new();
    for kind in RecordKind::ALL.iter().copied().filter(|kind| is_wanted(*kind)) {
        let named = with_resource!(kind, R => named::<R>(tx, tenant, typed).await?);
        found.extend(named.into_iter().map(|id| (kind, id)));
    }
    let folded = folded(typed);
    let until = tx.indexed_until(tenant).await?;
    let newest = changes(tx, tenant, until).await?;
    let mut seen: BTreeSet<_> = found.iter().copied().collect();
    for text in if folded.is_empty() { Vec::new() } else { parts(&folded) } {
        if seen.len() >= limit as usize {
            break;
        }
        let changed = newest.iter().rev().filter(|change| is_wanted(change.kind) && change.text.contains(&text));
        found.extend(changed.map(|change| (change.kind, change.id)));
        let indexed = tx.records_with_text(tenant, kind, &text, limit).await?;
        found.extend(indexed.into_iter().filter(|id| !newest.iter().any(|new| (new.kind, new.id) == *id)));
        seen.extend(found.iter().copied());
    }
    let mut seen = BTreeSet::new();
    found.retain(|id| seen.insert(*id));
    Ok((found, newest.len() < STEP))
}

/// Returns the records of one kind that a text names as a whole: by an id or its beginning, a number, or an email address.
async fn named<R: BusinessRecord>(tx: &mut dyn Tx, tenant: TenantId, text: &str) -> Result<Vec<Uuid>, Error> {
    let mut found = Vec::new();
    if let Some(filter) = R::named(text) {
        let query = ListQuery { limit: MAX_HITS as u32, order: Order::NewestFirst { before: None }, filter };
        found.extend(R::repository(tx).list(tenant, &query).await?.iter().map(|record| record.id().uuid()));
    }
    match (parse_uuid(text), IdPart::parse(text)) {
        (Ok(id), _) => found.push(id),
        (Err(_), Some(part)) => found.extend(lookup::ids_that_begin::<R>(tx, tenant, &part).await?),
        (Err(_), None) => {}
    }
    Ok(found)
}

/// Returns whether a text is so short that it finds whole words alone, and no longer words that it is a part of.
fn finds_whole_words_alone(text: &str) -> bool {
    let text = folded(&seen(text));
    text.chars().count() < MIN_TEXT && !text.chars().all(is_unspaced)
}

/// Parses what a person typed to find something.
///
/// # Errors
/// [`Error::Validation`] if there is nothing to look for, or the text is longer than [`MAX_TEXT`] characters.
pub fn parse(text: &str) -> Result<FindText, Error> {
    Text::parse(text.trim()).map(|text| FindText { text }).map_err(|issue| {
        let mut violations = Violations::default();
        violations.push("text", issue);
        Error::Validation(violations)
    })
}
