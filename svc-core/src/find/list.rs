//! Lists of one kind of record that have a text.

use std::collections::BTreeMap;

use super::{MAX_TEXT, with_text};
use crate::error::{Error, FieldCode, Issue};
use crate::input::Input;
use crate::pages::{ListParams, MAX_LIMIT, Page};
use crate::resources::{BusinessRecord, Filter as _};
use crate::store::Tx;
use crate::values::{Id, TenantId, Text};

/// The query parameter of a list that can be searched, besides those that every list has.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct SearchParams {
    /// Returns only records that have this text: a whole name, number or email address, at least four characters of the
    /// beginning of an id, or at least three characters of a name, email address, phone number, company, suburb, title or
    /// number, in any case. One or two characters find only whole words, and any part of a text in Chinese, Japanese or Korean.
    /// Those that are named exactly come first, then those that changed last.
    ///
    /// The response is one page of at most `limit` records. The other filters are applied to the 200 records that come
    /// first. It cannot be combined with `cursor` and `updated_since`. For some seconds after more than 200 records changed at
    /// once, the newest of them may be missing.
    pub search: Option<Text<MAX_TEXT>>,
}

/// Returns one page of the records of a list that have a text: those that are named exactly first, then those that changed last.
///
/// # Errors
/// [`Error::Validation`] if the parameters ask for another page or another order.
pub async fn list<R: BusinessRecord>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    text: &Text<MAX_TEXT>,
    params: &ListParams,
    filter: &R::Filter,
) -> Result<Page<R>, Error> {
    let others = [("cursor", params.cursor.is_some()), ("updated_since", params.updated_since.is_some())];
    if let Some((field, _)) = others.iter().find(|(_, is_sent)| *is_sent) {
        return Err(Issue::new(FieldCode::UnknownField, "cannot be combined with search").on(field));
    }
    let (mut found, _) = with_text(tx, tenant, text, Some(R::KIND), MAX_LIMIT).await?;
    found.truncate(MAX_LIMIT as usize);
    let ids: Vec<Id<R>> = found.into_iter().map(|(_, id)| id.into()).collect();
    let places: BTreeMap<Id<R>, usize> = ids.iter().copied().zip(0..).collect();
    let mut records = R::repository(tx).get_many(tenant, &ids).await?;
    records.retain(|record| filter.matches(record));
    records.sort_by_key(|record| places.get(&record.id()).copied());
    records.truncate(params.limit.unwrap_or_default().get() as usize);
    Ok(Page::whole(records))
}
