//! Lists: limits, order and cursors (`docs/contract.md`, "Lists and incremental sync").
//!
//! Within a tenant `created_at` and `updated_at` are unique, so a timestamp is a position in a list. A cursor is a UUID
//! that contains such a position, encrypted and authenticated for one list with its filters. The server stores no
//! cursors.

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::crypto::{hmac_sha256, sha256};
use crate::error::{Error, FieldCode, Issue};
use crate::input::json::Json;
use crate::input::{FromJson, Input};
use crate::values::{TenantId, Timestamp, parse_uuid};

/// The number of records on a page if the request has no `limit`.
pub const DEFAULT_LIMIT: u32 = 50;
/// The greatest `limit` of a request.
pub const MAX_LIMIT: u32 = 200;

/// The `limit` parameter: the number of records on a page, 1 to 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Limit(u32);

impl Limit {
    /// Returns the limit, or `None` outside 1 to 200.
    pub fn new(limit: u32) -> Option<Self> {
        (1..=MAX_LIMIT).contains(&limit).then_some(Self(limit))
    }

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(DEFAULT_LIMIT)
    }
}

impl FromJson for Limit {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::from_query(json.into_number()?)
    }
    fn from_query(text: String) -> Result<Self, Issue> {
        let digits = text.strip_prefix('-').unwrap_or(&text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Issue::new(FieldCode::InvalidType, "must be an integer"));
        }
        text.parse()
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| Issue::new(FieldCode::OutOfRange, format!("must be from 1 to {MAX_LIMIT}")))
    }
}

impl schemars::JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Limit".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT })
    }
}

/// The `cursor` parameter as it was sent. A text that is no UUID is an invalid cursor, like any other that the service did
/// not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SentCursor(Option<Uuid>);

impl SentCursor {
    /// Returns the cursor, unless no list can have returned it.
    pub fn id(self) -> Option<Uuid> {
        self.0
    }
}

impl From<Uuid> for SentCursor {
    fn from(cursor: Uuid) -> Self {
        Self(Some(cursor))
    }
}

impl FromJson for SentCursor {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Ok(Self(parse_uuid(&json.into_string()?).ok()))
    }
}

impl schemars::JsonSchema for SentCursor {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cursor".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Uuid::json_schema(generator)
    }
}

/// The `updated_since` parameter, rounded up to microseconds so that "at or after" is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Since(pub Timestamp);

impl FromJson for Since {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Timestamp::parse_rounding_up(&json.into_string()?).map(Self)
    }
}

impl schemars::JsonSchema for Since {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Since".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Timestamp::json_schema(generator)
    }
}

/// The query parameters that every list has.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct ListParams {
    /// The maximum number of records on the page, from 1 to 200.
    pub limit: Option<Limit>,
    /// The `next_cursor` of the previous page. Send it with the same filters; only `limit` may change. A cursor is
    /// valid for the list and the account that it was returned for, and never expires. Without it, the list starts at
    /// its beginning.
    pub cursor: Option<SentCursor>,
    /// Returns only records whose `updated_at` is at or after this time, in RFC 3339 with an offset, and sorts them by
    /// `updated_at`, the oldest change first. Without it, records are sorted by `created_at`, the newest first.
    pub updated_since: Option<Since>,
}

/// The query that a store runs for a list.
#[derive(Clone, Debug)]
pub struct ListQuery<F> {
    /// The greatest number of rows to return.
    pub limit: u32,
    /// The order, and the position where the rows start.
    pub order: Order,
    /// The condition that rows must meet.
    pub filter: F,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By `created_at`, newest first.
    NewestFirst {
        /// Only rows created before this time, which is the position of the last row seen.
        before: Option<Timestamp>,
    },
    /// By `updated_at`, oldest first.
    OldestChangeFirst {
        /// Only rows changed at or after this time.
        from: Timestamp,
    },
}

/// One page of a list.
// A cursor is a UUID, except where a position is more than one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "{R}List")]
#[non_exhaustive]
pub struct Page<R, C = Uuid> {
    /// The records of this page.
    pub data: Vec<R>,
    /// The position after this page: send it as `cursor` to get the next one. Null on the last page.
    pub next_cursor: Option<C>,
}

impl<R, C> Page<R, C> {
    /// Returns a page with the position after it, if there is another one.
    pub fn new(data: Vec<R>, next_cursor: Option<C>) -> Self {
        Self { data, next_cursor }
    }

    /// Returns the page of a list that has only one.
    pub fn whole(data: Vec<R>) -> Self {
        Self::new(data, None)
    }
}

/// The key of cursors: 32 random bytes that the store keeps. With it one can make cursors, but they give access to
/// nothing without an API key.
#[derive(Clone, PartialEq, Eq)]
pub struct CursorKey([u8; 32]);

const POSITION_BITS: u32 = 58;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;

impl CursorKey {
    /// Returns the key with these random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn tag(&self, scope: &CursorScope, position: u64) -> [u8; 8] {
        first_half(&hmac_sha256(&self.0, &[b"tag", &scope.0, &position.to_be_bytes()]))
    }

    fn mask(&self, tag: [u8; 8]) -> u64 {
        u64::from_be_bytes(first_half(&hmac_sha256(&self.0, &[b"mask", &tag]))) & POSITION_MASK
    }

    /// Returns the cursor for a position in a list: a UUID of version 8 with 64 bits of a MAC over both, and the 58 bits
    /// of the position, encrypted with a mask that is derived from the MAC.
    pub fn seal(&self, scope: &CursorScope, position: Timestamp) -> Uuid {
        let position = position.as_micros().max(0).unsigned_abs() & POSITION_MASK;
        let tag = self.tag(scope, position);
        let bits = u128::from(u64::from_be_bytes(tag)) << POSITION_BITS | u128::from(position ^ self.mask(tag));
        // 122 bits around the version (4 bits, 8) and the variant (2 bits, binary 10).
        let (high, middle, low) = (bits >> 74, bits >> 62 & 0xfff, bits & ((1 << 62) - 1));
        Uuid::from_u128(high << 80 | 0x8 << 76 | middle << 64 | 0b10 << 62 | low)
    }

    /// Returns the position in a cursor.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if it was not made with this key for this list.
    pub fn open(&self, scope: &CursorScope, cursor: Uuid) -> Result<Timestamp, Error> {
        let bits = cursor.as_u128();
        if (bits >> 76 & 0xf, bits >> 62 & 0b11) != (0x8, 0b10) {
            return Err(Error::InvalidCursor);
        }
        let bits = bits >> 80 << 74 | (bits >> 64 & 0xfff) << 62 | bits & ((1 << 62) - 1);
        let tag = ((bits >> POSITION_BITS) as u64).to_be_bytes();
        let position = (bits as u64 & POSITION_MASK) ^ self.mask(tag);
        if !bool::from(self.tag(scope, position).ct_eq(&tag)) {
            return Err(Error::InvalidCursor);
        }
        Ok(Timestamp::from_micros(position.cast_signed()))
    }
}

fn first_half(mac: &[u8; 32]) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&mac[..8]);
    half
}

/// The list that a cursor belongs to: a digest of the tenant, the collection and the filters.
pub struct CursorScope([u8; 32]);

impl CursorScope {
    /// Returns the scope of a list with its filters.
    pub fn new(tenant: TenantId, collection: &str, since: Option<Since>, filter: &impl Serialize) -> Self {
        let parts = (tenant, collection, since.map(|since| since.0), filter);
        // Plain data with text keys always serialises.
        Self(sha256(&serde_json::to_vec(&parts).unwrap_or_default()))
    }
}

impl ListParams {
    /// Returns the query for the store. It asks for one row more than the page has, to know whether there is another page.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor was not returned for this list.
    pub fn query<F: Clone>(&self, key: &CursorKey, scope: &CursorScope, filter: &F) -> Result<ListQuery<F>, Error> {
        let position = match self.cursor {
            None => None,
            Some(SentCursor(None)) => return Err(Error::InvalidCursor),
            Some(SentCursor(Some(cursor))) => Some(key.open(scope, cursor)?),
        };
        let order = match (self.updated_since, position) {
            (None, before) => Order::NewestFirst { before },
            (Some(Since(from)), None) => Order::OldestChangeFirst { from },
            (Some(_), Some(seen)) => Order::OldestChangeFirst { from: seen.next() },
        };
        let limit = self.limit.unwrap_or_default().get() + 1;
        Ok(ListQuery { limit, order, filter: filter.clone() })
    }

    /// Returns the page of the rows that the store returned for [`query`](Self::query).
    pub fn page<R>(
        &self,
        key: &CursorKey,
        scope: &CursorScope,
        mut rows: Vec<R>,
        created_at: impl Fn(&R) -> Timestamp,
        updated_at: impl Fn(&R) -> Timestamp,
    ) -> Page<R> {
        let limit = self.limit.unwrap_or_default().get() as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let position = |row: &R| if self.updated_since.is_some() { updated_at(row) } else { created_at(row) };
        let next_cursor = rows.last().filter(|_| more).map(|last| key.seal(scope, position(last)));
        Page { data: rows, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(collection: &str) -> CursorScope {
        CursorScope::new(TenantId(Uuid::nil()), collection, None, &())
    }

    #[test]
    fn a_cursor_is_valid_only_for_its_list() {
        let key = CursorKey::new([7; 32]);
        let at = Timestamp::parse("2026-03-14T15:09:26.535897Z").unwrap();
        let cursor = key.seal(&scope("contacts"), at);
        assert_eq!((cursor.get_version_num(), cursor.get_variant()), (8, uuid::Variant::RFC4122));
        assert_eq!(key.open(&scope("contacts"), cursor), Ok(at));
        assert_eq!(key.open(&scope("jobs"), cursor), Err(Error::InvalidCursor));
        assert_eq!(CursorKey::new([8; 32]).open(&scope("contacts"), cursor), Err(Error::InvalidCursor));
        let other_tenant = CursorScope::new(TenantId(Uuid::max()), "contacts", None, &());
        assert_eq!(key.open(&other_tenant, cursor), Err(Error::InvalidCursor));
        let since = CursorScope::new(TenantId(Uuid::nil()), "contacts", Some(Since(at)), &());
        assert_eq!(key.open(&since, cursor), Err(Error::InvalidCursor));
    }

    #[test]
    fn a_limit_is_an_integer_from_1_to_200() {
        let read = |text: &str| Limit::from_query(text.into()).map(Limit::get).map_err(|issue| issue.code);
        assert_eq!((read("1"), read("200")), (Ok(1), Ok(200)));
        for bad in ["0", "201", "-1", "99999999999"] {
            assert_eq!(read(bad), Err(FieldCode::OutOfRange), "{bad}");
        }
        for bad in ["ten", "1.0", "+5", "0x10", "-"] {
            assert_eq!(read(bad), Err(FieldCode::InvalidType), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_position_round_trips_and_no_bit_can_be_changed(micros in 0..=(POSITION_MASK as i64 - 1), bit in 0_u32..128) {
            let key = CursorKey::new([7; 32]);
            let at = Timestamp::from_micros(micros);
            let cursor = key.seal(&scope("contacts"), at);
            proptest::prop_assert_eq!(key.open(&scope("contacts"), cursor), Ok(at));
            let forged = Uuid::from_u128(cursor.as_u128() ^ 1 << bit);
            proptest::prop_assert!(key.open(&scope("contacts"), forged).is_err());
        }
    }
}
