//! Conversions of timestamps and dates from and to those of jiff and, with the feature `chrono`, of chrono.
//!
//! A [`Timestamp`] has microseconds and lies between the years 0000 and 9999, and a [`Date`] lies between these as well.
//! Each conversion that can fail or lose something says so.

use jiff::civil;

use super::{Date, Timestamp};
use crate::error::{FieldCode, Issue};

fn out_of_range() -> Issue {
    Issue::new(FieldCode::OutOfRange, "must lie between the years 0000 and 9999")
}

fn from_micros(micros: i64) -> Result<Timestamp, Issue> {
    Some(Timestamp::from_micros(micros)).filter(|time| time.as_micros() == micros).ok_or_else(out_of_range)
}

/// Nanoseconds are cut off. Fails before the year 0000.
impl TryFrom<jiff::Timestamp> for Timestamp {
    type Error = Issue;

    fn try_from(time: jiff::Timestamp) -> Result<Self, Issue> {
        // Rounded down, also before 1970.
        let micros = time.as_nanosecond().div_euclid(1_000);
        i64::try_from(micros).map_err(|_| out_of_range()).and_then(from_micros)
    }
}

/// Loses nothing. Fails in the last 26 hours of the year 9999, which jiff does not have.
impl TryFrom<Timestamp> for jiff::Timestamp {
    type Error = jiff::Error;

    fn try_from(time: Timestamp) -> Result<Self, jiff::Error> {
        Self::from_microsecond(time.as_micros())
    }
}

/// Fails before the year 0000.
impl TryFrom<civil::Date> for Date {
    type Error = Issue;

    fn try_from(date: civil::Date) -> Result<Self, Issue> {
        if date.year() < 0 { Err(out_of_range()) } else { Ok(Self(date)) }
    }
}

/// Loses nothing.
impl From<Date> for civil::Date {
    fn from(date: Date) -> Self {
        date.0
    }
}

#[cfg(feature = "chrono")]
mod chrono {
    use chrono::{DateTime, Datelike as _, NaiveDate, TimeZone, Utc};

    use super::{Date, Issue, Timestamp, civil, from_micros, out_of_range};

    /// The time zone is lost, and nanoseconds are cut off. Fails outside the years 0000 to 9999.
    impl<Tz: TimeZone> TryFrom<DateTime<Tz>> for Timestamp {
        type Error = Issue;

        fn try_from(time: DateTime<Tz>) -> Result<Self, Issue> {
            from_micros(time.timestamp_micros())
        }
    }

    /// Loses nothing.
    impl From<Timestamp> for DateTime<Utc> {
        fn from(time: Timestamp) -> Self {
            // chrono has all years of a `Timestamp`.
            Self::from_timestamp_micros(time.as_micros()).unwrap_or_default()
        }
    }

    /// Fails outside the years 0000 to 9999.
    impl TryFrom<NaiveDate> for Date {
        type Error = Issue;

        fn try_from(date: NaiveDate) -> Result<Self, Issue> {
            let part = |number: u32| i8::try_from(number).ok();
            let converted = i16::try_from(date.year()).ok().zip(part(date.month()).zip(part(date.day())));
            let converted = converted.and_then(|(year, (month, day))| civil::Date::new(year, month, day).ok());
            converted.ok_or_else(out_of_range).and_then(Self::try_from)
        }
    }

    /// Loses nothing.
    impl From<Date> for NaiveDate {
        fn from(date: Date) -> Self {
            let part = i8::unsigned_abs;
            let converted =
                Self::from_ymd_opt(date.0.year().into(), part(date.0.month()).into(), part(date.0.day()).into());
            // chrono has all dates of a `Date`.
            converted.unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first and the last value, and some around 1970.
    const TIMES: [&str; 6] = [
        "0000-01-01T00:00:00.000000Z",
        "0004-02-29T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00.000000Z",
        "2026-03-14T15:09:26.535897Z",
        "9999-12-30T21:59:59.999999Z",
    ];
    const LAST: &str = "9999-12-31T23:59:59.999999Z";

    #[test]
    fn jiff_and_back() {
        for text in TIMES {
            let time = Timestamp::parse(text).unwrap();
            let there = jiff::Timestamp::try_from(time).unwrap();
            assert_eq!(there, text.parse().unwrap(), "{text}");
            assert_eq!(Timestamp::try_from(there), Ok(time));
            let date = Date::parse(&text[..10]).unwrap();
            assert_eq!(civil::Date::from(date).to_string(), text[..10]);
            assert_eq!(Date::try_from(civil::Date::from(date)), Ok(date));
        }
        assert!(jiff::Timestamp::try_from(Timestamp::parse(LAST).unwrap()).is_err());
        assert_eq!(Timestamp::try_from(jiff::Timestamp::MIN).unwrap_err().code, FieldCode::OutOfRange);
        assert_eq!(Date::try_from(civil::Date::MIN).unwrap_err().code, FieldCode::OutOfRange);
    }

    #[test]
    fn nanoseconds_are_cut_off() {
        for (nanoseconds, micros) in [(1_999, 1), (1_000, 1), (999, 0), (-1, -1), (-1_000, -1), (-1_001, -2)] {
            let time = jiff::Timestamp::from_nanosecond(nanoseconds).unwrap();
            assert_eq!(Timestamp::try_from(time), Ok(Timestamp::from_micros(micros)), "{nanoseconds}");
            #[cfg(feature = "chrono")]
            {
                let nanoseconds = i64::try_from(nanoseconds).unwrap();
                let time = ::chrono::DateTime::from_timestamp_nanos(nanoseconds);
                assert_eq!(Timestamp::try_from(time), Ok(Timestamp::from_micros(micros)), "{nanoseconds}");
            }
        }
    }

    #[cfg(feature = "chrono")]
    #[test]
    fn chrono_and_back() {
        use ::chrono::{DateTime, FixedOffset, NaiveDate, Utc};
        for text in TIMES.into_iter().chain([LAST]) {
            let time = Timestamp::parse(text).unwrap();
            let there = DateTime::<Utc>::from(time);
            assert_eq!(there, text.parse::<DateTime<Utc>>().unwrap(), "{text}");
            assert_eq!(Timestamp::try_from(there), Ok(time));
            let elsewhere = there.with_timezone(&FixedOffset::east_opt(0).unwrap());
            assert_eq!(Timestamp::try_from(elsewhere), Ok(time));
            let date = Date::parse(&text[..10]).unwrap();
            assert_eq!(NaiveDate::from(date).to_string(), text[..10]);
            assert_eq!(Date::try_from(NaiveDate::from(date)), Ok(date));
        }
        for year in [-1, 10_000, 200_000] {
            let date = NaiveDate::from_ymd_opt(year, 6, 1).unwrap();
            assert_eq!(Date::try_from(date).unwrap_err().code, FieldCode::OutOfRange, "{year}");
            let time = date.and_hms_opt(0, 0, 0).unwrap().and_utc();
            assert_eq!(Timestamp::try_from(time).unwrap_err().code, FieldCode::OutOfRange, "{year}");
        }
    }
}
