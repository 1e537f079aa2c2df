//! The limits that an operator sets for one tenant in place of the server's (`docs/contract.md`, "Rate limits" and
//! "Webhook subscriptions").
//!
//! Rate limits are requests per key in a window of 60 seconds. Authentication reads them with the key, so a change applies
//! from the next request on.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{FieldCode, Issue};
use crate::values::TextEnum;

/// A collection whose writes have a rate limit of their own, beside that of all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum CappedCollection {
    /// Writes to `/contacts`.
    Contacts,
    /// Writes to `/bookings`.
    Bookings,
    /// Writes to `/quotes`.
    Quotes,
    /// Writes to `/jobs`.
    Jobs,
    /// Writes to `/webhooks`.
    Webhooks,
}

/// The rate limits of one tenant. `None` stands for the server's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimits {
    /// The limit of all requests of a key, per 60 seconds.
    pub rate_limit: Option<NonZeroU32>,
    /// The limits of writes.
    pub write_rate_limits: WriteRateLimits,
}

/// The limits of writes by collection, each per key, method and route, and per 60 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRateLimits([Option<NonZeroU32>; CappedCollection::ALL.len()]);

impl WriteRateLimits {
    /// Returns the limit of a collection, or `None` when the default applies.
    pub fn of(&self, collection: CappedCollection) -> Option<NonZeroU32> {
        self.0[collection as usize]
    }

    /// Sets the limit of a collection; `None` restores the default.
    pub fn set(&mut self, collection: CappedCollection, limit: Option<NonZeroU32>) {
        self.0[collection as usize] = limit;
    }

    fn all(&self) -> impl Iterator<Item = (CappedCollection, Option<NonZeroU32>)> {
        CappedCollection::ALL.iter().copied().zip(self.0)
    }
}

/// Collects limits. The last one of a collection applies.
impl FromIterator<(CappedCollection, NonZeroU32)> for WriteRateLimits {
    fn from_iter<I: IntoIterator<Item = (CappedCollection, NonZeroU32)>>(limits: I) -> Self {
        let mut all = Self::default();
        for (collection, limit) in limits {
            all.set(collection, Some(limit));
        }
        all
    }
}

impl Serialize for WriteRateLimits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.all())
    }
}

impl<'de> Deserialize<'de> for WriteRateLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limits = BTreeMap::<CappedCollection, Option<NonZeroU32>>::deserialize(deserializer)?;
        Ok(limits.into_iter().filter_map(|(collection, limit)| Some((collection, limit?))).collect())
    }
}

/// The name of the limit of all requests in [`RateLimits::to_text`].
const ALL: &str = "all";

impl RateLimits {
    /// Writes the limits that are set as one text, such as `all=600 quotes=5`. The text is empty when none is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::accounts::limits::RateLimits;
    /// let limits = RateLimits::from_text("all=600 quotes=5").unwrap();
    /// assert_eq!(limits.rate_limit.map(u32::from), Some(600));
    /// assert_eq!(limits.to_text(), "all=600 quotes=5");
    /// assert_eq!(RateLimits::default().to_text(), "");
    /// ```
    pub fn to_text(&self) -> String {
        let writes = self.write_rate_limits.all().map(|(collection, limit)| (collection.as_str(), limit));
        let all = std::iter::once((ALL, self.rate_limit)).chain(writes);
        let all = all.filter_map(|(name, limit)| limit.map(|limit| format!("{name}={limit}")));
        all.collect::<Vec<_>>().join(" ")
    }

    /// Parses the text that [`to_text`](Self::to_text) writes. Returns `None` for any other text.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut limits = Self::default();
        for word in text.split_ascii_whitespace() {
            let (name, limit) = word.split_once('=')?;
            let limit = parse_limit(limit).ok();
            match CappedCollection::from_text(name) {
                Some(collection) => limits.write_rate_limits.set(collection, Some(limit?)),
                None if name == ALL => limits.rate_limit = Some(limit?),
                None => return None,
            }
        }
        Some(limits)
    }
}

/// Parses a limit: a whole number of at least 1.
///
/// # Errors
///
/// Returns `out_of_range` for any other text.
pub fn parse_limit(text: &str) -> Result<NonZeroU32, Issue> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = text.parse().ok().filter(|_| digits);
    limit.ok_or_else(|| Issue::new(FieldCode::OutOfRange, format!("must be a whole number from 1 to {}", u32::MAX)))
}

/// The highest number of webhook subscriptions that an operator can allow a tenant. Each event of the tenant is matched
/// with all of them in one transaction.
pub const MAX_WEBHOOKS: u32 = 1000;

/// Parses a number of webhook subscriptions: a whole number from 1 to [`MAX_WEBHOOKS`].
///
/// # Errors
///
/// Returns `out_of_range` for any other text.
pub fn parse_max_webhooks(text: &str) -> Result<u32, Issue> {
    let limit = parse_limit(text).ok().map(u32::from).filter(|limit| *limit <= MAX_WEBHOOKS);
    limit.ok_or_else(|| Issue::new(FieldCode::OutOfRange, format!("must be a whole number from 1 to {MAX_WEBHOOKS}")))
}

/// Parses the limit of a collection, as in `quotes=20`. `limit` parses the text after the equals sign.
///
/// # Errors
///
/// Returns `invalid_format` without an equals sign, `invalid_enum` for an unknown collection, and the error of `limit`.
///
/// # Examples
///
/// ```
/// use svc_core::accounts::limits::{CappedCollection, parse_limit, parse_write_limit};
/// let (collection, limit) = parse_write_limit("quotes=20", parse_limit).unwrap();
/// assert_eq!((collection, u32::from(limit)), (CappedCollection::Quotes, 20));
/// assert!(parse_write_limit("invoices=20", parse_limit).is_err());
/// ```
pub fn parse_write_limit<T>(
    text: &str,
    limit: impl FnOnce(&str) -> Result<T, Issue>,
) -> Result<(CappedCollection, T), Issue> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Issue::new(FieldCode::InvalidFormat, "must be RESOURCE=N, such as quotes=20"));
    };
    let collection = CappedCollection::from_text(name).ok_or_else(|| {
        let names: Vec<&str> = CappedCollection::ALL.iter().map(|collection| collection.as_str()).collect();
        Issue::new(FieldCode::InvalidEnum, format!("{name:?} has no writes; use one of {}", names.join(", ")))
    })?;
    Ok((collection, limit(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_whole_number_of_at_least_1() {
        for (text, limit) in [("1", 1), ("060", 60), ("4294967295", u32::MAX)] {
            assert_eq!(parse_limit(text).map(u32::from), Ok(limit));
        }
        for bad in ["", "0", "-1", "+1", "1.5", " 1", "4294967296", "default"] {
            assert!(parse_limit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn at_most_1000_webhooks_can_be_allowed() {
        for (text, limit) in [("1", 1), ("0100", 100), ("1000", 1000)] {
            assert_eq!(parse_max_webhooks(text), Ok(limit));
        }
        for bad in ["", "0", "1001", "-1", "default"] {
            assert!(parse_max_webhooks(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_write_limit_names_its_collection() {
        let read = |text| parse_write_limit(text, parse_limit).map_err(|issue| issue.message.into_owned());
        assert_eq!(read("webhooks=1"), Ok((CappedCollection::Webhooks, NonZeroU32::MIN)));
        let names = "\"invoices\" has no writes; use one of contacts, bookings, quotes, jobs, webhooks";
        assert_eq!(read("invoices=1"), Err(names.to_owned()));
        for bad in ["quotes", "quotes=", "quotes=0", "quotes=1=2", "Quotes=1", "=1", ""] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_survive_their_text_form() {
        let mut limits = RateLimits { rate_limit: Some(NonZeroU32::MAX), ..RateLimits::default() };
        for collection in CappedCollection::ALL.iter().copied() {
            limits.write_rate_limits.set(collection, Some(NonZeroU32::MIN));
            assert_eq!(RateLimits::from_text(&limits.to_text()), Some(limits));
        }
        assert_eq!(RateLimits::from_text(""), Some(RateLimits::default()));
        for damaged in ["all", "all=", "all=0", "invoices=5", "all=5,quotes=5"] {
            assert_eq!(RateLimits::from_text(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn json_lists_every_collection() {
        let mut limits = RateLimits::default();
        limits.write_rate_limits.set(CappedCollection::Jobs, NonZeroU32::new(7));
        let json = serde_json::to_value(limits).unwrap();
        let writes =
            serde_json::json!({ "contacts": null, "bookings": null, "quotes": null, "jobs": 7, "webhooks": null });
        assert_eq!(json, serde_json::json!({ "rate_limit": null, "write_rate_limits": writes }));
    }
}
