//! Points in time, calendar dates and time zones (`docs/contract.md`, "Timestamps and ordering").

mod conversions;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use jiff::tz::{AmbiguousOffset, Offset};
use jiff::{SignedDuration, civil};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;

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

/// The form of a timestamp, for error texts.
const TIMESTAMP_FORM: &str = "must be an RFC 3339 date and time with an offset, such as 2026-03-14T15:09:26Z";
const LOST_PLUS: &str = "must have a + before its offset, which is written %2B in a query";

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

/// A parsed RFC 3339 text: the point in time, the calendar date as written, and whether digits were cut.
struct DateTime {
    timestamp: Timestamp,
    date: civil::Date,
    cut: bool,
}

impl DateTime {
    fn parse(text: &str) -> Result<Self, Issue> {
        Self::read(text).ok_or_else(|| {
            // What remains of a + in a query that was not encoded.
            let lost =
                text.rsplit_once(' ').is_some_and(|(local, offset)| Self::read(&format!("{local}+{offset}")).is_some());
            Issue::new(FieldCode::InvalidFormat, if lost { LOST_PLUS } else { TIMESTAMP_FORM })
        })
    }

    /// Reads RFC 3339 §5.6, after a check of its form: jiff reads more forms than the contract has.
    fn read(text: &str) -> Option<Self> {
        let (local, ahead) = match text.strip_suffix(['Z', 'z']) {
            Some(local) => (local, SignedDuration::ZERO),
            None => {
                let (local, offset) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
                (local, read_offset(offset)?)
            }
        };
        let form = "0000-00-00T00:00:00.000000000";
        if local.len() < 19 || local.ends_with('.') || !has_form(local, form.get(..local.len())?) {
            return None;
        }
        let at: civil::DateTime = local.parse().ok()?;
        // A leap second, which jiff reads as the last second before it, ends an hour.
        if local[17..].starts_with("60") && at.minute() != 59 {
            return None;
        }
        let utc = at.checked_sub(ahead).ok().filter(|utc| utc.year() >= 0)?;
        let nanos = utc.duration_since(EPOCH).as_nanos();
        Some(Self {
            timestamp: Timestamp(i64::try_from(nanos.div_euclid(1000)).ok()?),
            date: at.date(),
            cut: nanos % 1000 != 0,
        })
    }
}

/// Returns how far the offset of a time zone, such as `+11:00`, is ahead of UTC.
fn read_offset(offset: &str) -> Option<SignedDuration> {
    let time = offset.get(1..).filter(|time| has_form(time, "00:00"))?;
    let distance = time.parse::<civil::Time>().ok()?.duration_since(civil::Time::midnight());
    match offset.as_bytes()[0] {
        b'+' => Some(distance),
        b'-' => Some(-distance),
        _ => None,
    }
}

/// Returns whether a text has a digit wherever the form has a zero, and otherwise the characters of the form. Letters may be
/// lower case.
fn has_form(text: &str, form: &str) -> bool {
    let fits =
        |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte.eq_ignore_ascii_case(&form) };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
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
        json_schema!({
            "anyOf": [{ "type": "string", "format": "date-time" }, { "type": "string", "format": "date" }],
        })
    }
}

/// A time zone of the IANA database, such as `Australia/Sydney`. It determines which date is today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone(jiff::tz::TimeZone);

impl TimeZone {
    /// Coordinated universal time, the default time zone of a tenant.
    pub const UTC: Self = Self(jiff::tz::TimeZone::UTC);

    /// Returns the time zone with this name in the IANA database, which is part of the program.
    ///
    /// # Errors
    /// `invalid_enum` if the database has no such name.
    pub fn parse(name: &str) -> Result<Self, Issue> {
        jiff::tz::TimeZone::get(name).map(Self).map_err(|_| {
            Issue::new(
                FieldCode::InvalidEnum,
                "must be a name of the IANA time zone database, such as Australia/Sydney",
            )
        })
    }

    /// Returns the date and the time of day at this time in this zone, such as `2026-03-14 15:09:26`.
    ///
    /// ```
    /// use svc_core::values::{TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney").unwrap();
    /// let at = Timestamp::parse("2026-03-14T15:09:26Z").unwrap();
    /// assert_eq!(sydney.date_and_time_at(at), "2026-03-15 02:09:26");
    /// ```
    pub fn date_and_time_at(&self, instant: Timestamp) -> String {
        let instant = jiff::Timestamp::from_microsecond(instant.0).unwrap_or(jiff::Timestamp::MAX);
        self.0.to_datetime(instant).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// Returns when clocks in this zone show this date and time of day, such as `2026-03-15T02:09`: the form of a browser's
    /// field for it, with or without seconds. Of a time that clocks show twice, when they are put back, it is the first.
    ///
    /// # Errors
    /// `invalid_format` for a text of another form, and `out_of_range` for a time that clocks skip.
    ///
    /// ```
    /// use svc_core::values::{TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney")?;
    /// assert_eq!(sydney.time_of("2026-03-15T02:09")?, Timestamp::parse("2026-03-14T15:09:00Z")?);
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn time_of(&self, local: &str) -> Result<Timestamp, Issue> {
        let form = Issue::new(FieldCode::InvalidFormat, "must be a date and a time such as 2026-03-14T15:09");
        let has_form = ["0000-00-00T00:00", "0000-00-00T00:00:00"].into_iter().any(|known| has_form(local, known));
        let local: civil::DateTime = local.parse().ok().filter(|_| has_form).ok_or(form)?;
        let skipped = || {
            let zone = self.0.iana_name().unwrap_or("UTC");
            let text = format!("does not exist in {zone}, where clocks are put forward then; take an hour later");
            Issue::new(FieldCode::OutOfRange, text)
        };
        let zoned = self.0.to_ambiguous_zoned(local);
        if matches!(zoned.offset(), AmbiguousOffset::Gap { .. }) {
            return Err(skipped());
        }
        let at = zoned.earlier().map_err(|_| Issue::new(FieldCode::OutOfRange, "must be before 9999-12-30"))?;
        Ok(Timestamp::from_micros(at.timestamp().as_microsecond()))
    }

    /// Returns the calendar date at this time in this zone.
    pub fn date_at(&self, instant: Timestamp) -> Date {
        let instant = jiff::Timestamp::from_microsecond(instant.0).unwrap_or(jiff::Timestamp::MAX);
        Date(self.0.to_datetime(instant).date())
    }

    /// Returns when a calendar date begins in this zone: at midnight, or later where clocks are put forward across midnight.
    ///
    /// ```
    /// use svc_core::values::{Date, TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney")?;
    /// let begins = sydney.date_begins(Date::parse("2026-03-15")?);
    /// assert_eq!(begins, Timestamp::parse("2026-03-15T00:00:00+11:00")?);
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn date_begins(&self, date: Date) -> Timestamp {
        let begins = date.0.to_zoned(self.0.clone()).map_or(i64::MAX, |begins| begins.timestamp().as_microsecond());
        Timestamp::from_micros(begins)
    }

    /// Returns when the next calendar date begins in this zone, which is after `instant`.
    ///
    /// ```
    /// use svc_core::values::{TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney")?;
    /// let next = sydney.next_date_begins(Timestamp::parse("2026-03-14T15:09:26Z")?);
    /// assert_eq!(next, Timestamp::parse("2026-03-16T00:00:00+11:00")?);
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn next_date_begins(&self, instant: Timestamp) -> Timestamp {
        let next = self.date_at(instant).0.tomorrow().ok();
        // Where clocks are put back across midnight, the date begins twice. The later time is after every `instant` before.
        let begins = next.and_then(|next| self.0.to_ambiguous_zoned(next.at(0, 0, 0, 0)).later().ok());
        Timestamp::from_micros(begins.map_or(i64::MAX, |begins| begins.timestamp().as_microsecond()))
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

text_value!([] TimeZone);

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

    #[test]
    fn a_time_of_day_is_that_of_its_zone() {
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        for (local, want) in [
            ("2026-03-15T02:09", Ok("2026-03-14T15:09:00.000000Z")),
            ("2026-03-15T02:09:26", Ok("2026-03-14T15:09:26.000000Z")),
            // Clocks show 02:30 twice, an hour apart.
            ("2026-04-05T02:30", Ok("2026-04-04T15:30:00.000000Z")),
            ("2026-10-04T01:59", Ok("2026-10-03T15:59:00.000000Z")),
            ("2026-10-04T02:30", Err(FieldCode::OutOfRange)),
            ("2026-02-29T00:00", Err(FieldCode::InvalidFormat)),
            ("2026-03-15 02:09", Err(FieldCode::InvalidFormat)),
            ("2026-03-15T02:09Z", Err(FieldCode::InvalidFormat)),
            ("2026-03-15", Err(FieldCode::InvalidFormat)),
            ("", Err(FieldCode::InvalidFormat)),
        ] {
            let at = sydney.time_of(local).map(|at| at.to_string()).map_err(|issue| issue.code);
            assert_eq!(at.as_deref().map_err(|code| *code), want, "{local}");
        }
        assert!(TimeZone::UTC.time_of("9999-12-31T23:59").is_err(), "time zones end a day before");
    }

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
    fn the_date_depends_on_the_time_zone() {
        let late = Timestamp::parse("2026-03-14T15:09:26Z").unwrap();
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        assert_eq!(sydney.date_at(late).to_string(), "2026-03-15");
        assert_eq!(TimeZone::UTC.date_at(late).to_string(), "2026-03-14");
        assert_eq!(sydney.to_string(), "Australia/Sydney");
        assert!(TimeZone::parse("Mars/Olympus").is_err());
    }

    #[test]
    fn a_date_begins_at_its_first_moment() {
        let begins = |zone, date| TimeZone::parse(zone).unwrap().date_begins(Date::parse(date).unwrap()).to_string();
        assert_eq!(begins("UTC", "2026-03-14"), "2026-03-14T00:00:00.000000Z");
        // Clocks are put forward at midnight, and back to the hour before midnight.
        assert_eq!(begins("Africa/Cairo", "2026-04-24"), "2026-04-23T22:00:00.000000Z");
        assert_eq!(begins("America/Havana", "2026-11-01"), "2026-11-01T04:00:00.000000Z");
        assert_eq!(begins("Australia/Sydney", "0000-01-01"), "0000-01-01T00:00:00.000000Z");
        assert_eq!(begins("America/Los_Angeles", "9999-12-31"), Timestamp::MAX.to_string());
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
