//! Points in time, calendar dates and time zones (`docs/contract.md`, "Timestamps and ordering").

mod conversions;
mod rfc3339;
mod zone;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use jiff::tz::Offset;
use jiff::{SignedDuration, civil};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;

use self::rfc3339::{DateTime, has_form};
pub use self::zone::TimeZone;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The start of Unix time. Arithmetic uses civil time from here, since jiff's own timestamps end a day before the end of
/// the year 9999.
const EPOCH: civil::DateTime = civil::datetime(1970, 1, 1, 0, 0, 0, 0);

/// A point in time in microseconds since 1970-01-01T00:00:00Z, between the years 0000 and 9999.
///
/// It is read from any RFC 3339 offset with 0 to 9 fraction digits and always written in UTC with six.
///
/// ```
/// use svc_core::values::Timestamp;
/// let t = Timestamp::parse("2026-03-14T17:09:26.5+02:00")?;
/// assert_eq!(t.to_string(), "2026-03-14T15:09:26.500000Z");
/// # Ok::<(), svc_core::error::Issue>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first and the last microsecond that RFC 3339 can write in UTC.
    const MIN_MICROS: i64 = -62_167_219_200 * MICROS_PER_SECOND;
    const MAX_MICROS: i64 = 253_402_300_799 * MICROS_PER_SECOND + 999_999;

    /// The last time that there is, at the end of the year 9999.
    pub const MAX: Self = Self(Self::MAX_MICROS);

    /// Returns the time this many microseconds after the Unix epoch, clamped to the years 0000–9999.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(Self::MIN_MICROS, Self::MAX_MICROS))
    }

    /// Returns the microseconds since the Unix epoch.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the Unix epoch, rounded down.
    pub fn as_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    /// Returns the time `duration` later, or `None` if that is after the year 9999.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let micros = i64::try_from(duration.as_micros()).ok()?;
        self.0.checked_add(micros).filter(|sum| *sum <= Self::MAX_MICROS).map(Self)
    }

    /// Returns the time `duration` earlier, or the start of the year 0000 if that is later.
    pub fn minus(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the next microsecond.
    pub fn next(self) -> Self {
        Self::from_micros(self.0.saturating_add(1))
    }

    /// Returns the time from `earlier` to this one, or zero if `earlier` is not before it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339. Digits beyond microseconds are cut off.
    ///
    /// # Errors
    /// `invalid_format` if the text is not RFC 3339 with an offset, or is outside the years 0000–9999.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        Ok(DateTime::parse(text)?.timestamp)
    }

    /// Reads RFC 3339 and rounds up to the next microsecond, so that "at or after" stays exact.
    ///
    /// # Errors
    /// As for [`Timestamp::parse`].
    pub fn parse_rounding_up(text: &str) -> Result<Self, Issue> {
        let parsed = DateTime::parse(text)?;
        Ok(if parsed.cut { parsed.timestamp.next() } else { parsed.timestamp })
    }
}

impl Timestamp {
    /// Returns the calendar date in UTC.
    pub fn utc_date(self) -> Date {
        Date(self.civil().date())
    }

    /// Returns the date and the time of day in UTC.
    fn civil(self) -> civil::DateTime {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(timestamp) => Offset::UTC.to_datetime(timestamp),
            Err(_) => EPOCH.saturating_add(SignedDuration::from_micros(self.0)),
        }
    }

    /// Calls `write` with the text. A page of a list has a hundred of them and more, so each is written digit by digit, without
    /// a formatter.
    fn with_text<T>(self, write: impl FnOnce(&str) -> T) -> T {
        let civil = self.civil();
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut put = |digits: Range<usize>, mut number: u32| {
            for digit in text[digits].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        };
        put(0..4, civil.year().unsigned_abs().into());
        put(5..7, civil.month().unsigned_abs().into());
        put(8..10, civil.day().unsigned_abs().into());
        put(11..13, civil.hour().unsigned_abs().into());
        put(14..16, civil.minute().unsigned_abs().into());
        put(17..19, civil.second().unsigned_abs().into());
        put(20..26, civil.subsec_nanosecond().unsigned_abs() / 1000);
        write(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

text_value!(@read [] Timestamp);

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// A calendar date without a time, `YYYY-MM-DD`.
///
/// ```
/// use svc_core::values::Date;
/// assert_eq!(Date::parse("2026-03-14")?.plus_days(30).to_string(), "2026-04-13");
/// # Ok::<(), svc_core::error::Issue>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(civil::Date);

impl Date {
    /// Reads `YYYY-MM-DD`.
    ///
    /// # Errors
    /// `invalid_format` if the text is no date of the years 0000–9999.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        let date = has_form(text, "0000-00-00").then(|| text.parse().ok()).flatten();
        date.map(Self).ok_or_else(|| Issue::new(FieldCode::InvalidFormat, "must be a calendar date such as 2026-03-14"))
    }

    /// Returns the date `days` later, or earlier if the number is negative. The last date is 9999-12-31.
    pub fn plus_days(self, days: i64) -> Self {
        Self(self.0.saturating_add(jiff::Span::new().days(days.clamp(-3_000_000, 3_000_000))))
    }

    /// Returns the first date of its month.
    #[must_use]
    pub fn first_of_month(self) -> Self {
        Self(self.0.first_of_month())
    }

    /// Returns the first date of the month after its own. The last month has none.
    ///
    /// ```
    /// use svc_core::values::Date;
    /// assert_eq!(Date::parse("2026-12-14")?.first_of_next_month(), Date::parse("2027-01-01").ok());
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn first_of_next_month(self) -> Option<Self> {
        self.0.last_of_month().tomorrow().ok().map(Self)
    }

    /// Returns the first date of the month before its own. The first month has none.
    pub fn first_of_previous_month(self) -> Option<Self> {
        let last = self.0.first_of_month().yesterday().ok().filter(|date| date.year() >= 0)?;
        Some(Self(last.first_of_month()))
    }

    /// Returns the Monday of its week.
    ///
    /// ```
    /// use svc_core::values::Date;
    /// assert_eq!(Date::parse("2026-03-15")?.monday().to_string(), "2026-03-09");
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    #[must_use]
    pub fn monday(self) -> Self {
        self.plus_days(-i64::from(self.0.weekday().to_monday_zero_offset()))
    }

    /// Returns the name of its day of the week in English, such as `Sunday`.
    pub fn weekday(self) -> &'static str {
        const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        NAMES[usize::from(self.0.weekday().to_monday_zero_offset().unsigned_abs())]
    }

    /// Returns the date as people write it in English, such as `14 Mar 2026`, which no country reads as another day.
    ///
    /// ```
    /// use svc_core::values::Date;
    /// assert_eq!(Date::parse("2026-03-04")?.in_words(), "4 Mar 2026");
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn in_words(self) -> String {
        self.0.strftime("%-d %b %Y").to_string()
    }

    /// Returns its month and year in English, such as `March 2026`.
    pub fn month_and_year(self) -> String {
        self.0.strftime("%B %Y").to_string()
    }

    /// Returns the number of its day in the month.
    pub fn day_of_month(self) -> i8 {
        self.0.day()
    }

    /// Returns when it begins in UTC.
    pub fn begins_in_utc(self) -> Timestamp {
        Timestamp::from_micros(self.days() * 24 * 60 * 60 * MICROS_PER_SECOND)
    }

    /// Returns the days since 1970-01-01, as databases count them.
    pub fn days(self) -> i64 {
        self.0.duration_since(EPOCH.date()).as_hours() / 24
    }

    /// Returns the date `days` after 1970-01-01, or `None` outside the years 0000–9999.
    pub fn from_days(days: i64) -> Option<Self> {
        let days = jiff::Span::new().try_days(days).ok()?;
        EPOCH.date().checked_add(days).ok().filter(|date| date.year() >= 0).map(Self)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_value!([] Date);

impl JsonSchema for Date {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date" })
    }
}

/// A date that was sent as a plain date or as a date-time (`docs/contract.md`, "Quotes").
///
/// Of a date-time, the calendar date counts as it is written in its own offset. A plain date is accepted so that a value
/// from a response can be sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DateOrTime(pub Date);

impl FromJson for DateOrTime {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let text = json.into_string()?;
        Date::parse(&text).or_else(|_| DateTime::parse(&text).map(|parsed| Date(parsed.date))).map(Self)
    }
}

impl JsonSchema for DateOrTime {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "DateOrTime".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // A date is read as well, which a schema could only say by alternatives that few generators of clients can read.
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

    #[test]
    fn reads_every_rfc_3339_form_and_writes_one() {
        for (text, want) in [
            ("2026-03-14T15:09:26Z", "2026-03-14T15:09:26.000000Z"),
            ("2026-03-14t15:09:26z", "2026-03-14T15:09:26.000000Z"),
            ("2026-03-14T15:09:26.1234567Z", "2026-03-14T15:09:26.123456Z"),
            ("2026-03-14T15:09:26.123456789-23:59", "2026-03-15T15:08:26.123456Z"),
            ("2024-02-29T00:00:00+11:00", "2024-02-28T13:00:00.000000Z"),
            ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.000000Z"),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), want, "{text}");
        }
    }

    #[test]
    fn a_timestamp_is_written_on_the_day_that_the_calendar_has() {
        // Every seventh day of all years, in the middle and at the last microsecond.
        for days in (-719_528..=2_932_896).step_by(7) {
            let date = Date::from_days(days).unwrap().to_string();
            let at = |micros| Timestamp::from_micros(days * MICROS_PER_DAY + micros).to_string();
            assert_eq!(at(43_323_000_456), format!("{date}T12:02:03.000456Z"));
            assert_eq!(at(MICROS_PER_DAY - 1), format!("{date}T23:59:59.999999Z"));
        }
    }

    #[test]
    fn a_date_is_a_number_of_days() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-01-01", 10_957),
            ("0000-01-01", -719_528),
            ("9999-12-31", 2_932_896),
        ] {
            let date = Date::parse(text).unwrap();
            assert_eq!((date.days(), Date::from_days(days)), (days, Some(date)));
        }
        for days in [-719_529, 2_932_897, i64::MIN, i64::MAX] {
            assert_eq!(Date::from_days(days), None);
        }
    }

    #[test]
    fn refuses_what_is_not_rfc_3339() {
        for text in [
            "",
            "2026-03-14",
            "2026-03-14T15:09:26",
            "2026-03-14 15:09:26Z",
            "2026-03-14T15:09Z",
            "2026-03-14T24:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-03-14T15:09:26.Z",
            "2026-03-14T15:09:26.1234567890Z",
            "2026-03-14T15:09:26+1100",
            "2026-03-14T15:09:26+24:00",
            "2026-03-14T15:09:26+11:60",
            "2026-03-14T15:09:26Z ",
            "+2026-03-14T15:09:26Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "2026-03-14T15:09:26Z[UTC]",
            "２０26-03-14T15:09:26Z",
            "2026-03-14T15:60:26Z",
            "2026-03-14T15:09:61Z",
            "2026-03-14T15:10:60Z",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rounding_up_gives_the_next_microsecond() {
        let up = |text| Timestamp::parse_rounding_up(text).unwrap().to_string();
        assert_eq!(up("2026-03-14T15:09:26.123456Z"), "2026-03-14T15:09:26.123456Z");
        assert_eq!(up("2026-03-14T15:09:26.123456001Z"), "2026-03-14T15:09:26.123457Z");
        assert_eq!(up("2026-03-14T15:09:26.999999999Z"), "2026-03-14T15:09:27.000000Z");
    }

    #[test]
    fn a_date_is_taken_as_written_in_its_own_offset() {
        let read = |text: &str| DateOrTime::from_json(Json::String(text.into()));
        assert_eq!(read("2026-03-14T23:30:00-10:00").unwrap().0.to_string(), "2026-03-14");
        assert_eq!(read("2026-03-14").unwrap().0.to_string(), "2026-03-14");
        assert!(read("14 March").is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_written_timestamp_is_read_back(micros in Timestamp::MIN_MICROS..=Timestamp::MAX_MICROS) {
            let t = Timestamp(micros);
            proptest::prop_assert_eq!(Timestamp::parse(&t.to_string()), Ok(t));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
