//! Time zones, and what clocks in them show.

use std::fmt;
use std::ops::Range;

use jiff::civil;
use jiff::tz::{AmbiguousOffset, Offset};

use super::rfc3339::has_form;
use super::{Date, Timestamp};
use crate::error::{FieldCode, Issue};

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

    /// Returns the date and the time of day at this time in this zone, such as `2026-03-14 15:09:26`. A time that clocks show
    /// twice, when they are put back, has its offset as well, such as `2026-04-05 02:30:00 +10:00`.
    ///
    /// ```
    /// use svc_core::values::{TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney").unwrap();
    /// let at = Timestamp::parse("2026-03-14T15:09:26Z").unwrap();
    /// assert_eq!(sydney.date_and_time_at(at), "2026-03-15 02:09:26");
    /// ```
    pub fn date_and_time_at(&self, instant: Timestamp) -> String {
        let instant = jiff::Timestamp::from_microsecond(instant.0).unwrap_or(jiff::Timestamp::MAX);
        let (local, offset) = (self.0.to_datetime(instant), self.0.to_offset(instant));
        let shown = local.strftime("%Y-%m-%d %H:%M:%S");
        let is_twice = matches!(self.0.to_ambiguous_timestamp(local).offset(), AmbiguousOffset::Fold { .. });
        if is_twice { format!("{shown} {}", offset_text(offset)) } else { shown.to_string() }
    }

    /// Returns the date and the time of day at this time in this zone without its seconds, such as `2026-03-14 15:09`. A time that
    /// clocks show twice has its offset as well.
    ///
    /// ```
    /// use svc_core::values::{TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney").unwrap();
    /// assert_eq!(sydney.minute_at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap()), "2026-03-15 02:09");
    /// assert_eq!(sydney.minute_at(Timestamp::parse("2026-04-04T16:30:00Z").unwrap()), "2026-04-05 02:30 +10:00");
    /// ```
    pub fn minute_at(&self, instant: Timestamp) -> String {
        const SECONDS: Range<usize> = "2026-03-14 15:09".len().."2026-03-14 15:09:26".len();
        let mut shown = self.date_and_time_at(instant);
        shown.replace_range(SECONDS, "");
        shown
    }

    /// Returns this time as RFC 3339 with the offset of this zone, such as `2026-03-15T02:09:26.535897+11:00`. An offset of zero
    /// is `Z`, and so is one with seconds, which zones had long ago.
    ///
    /// ```
    /// use svc_core::values::{TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney")?;
    /// let at = Timestamp::parse("2026-03-14T15:09:26.535897Z")?;
    /// assert_eq!(sydney.rfc3339_at(at), "2026-03-15T02:09:26.535897+11:00");
    /// assert_eq!(TimeZone::UTC.rfc3339_at(at), "2026-03-14T15:09:26.535897Z");
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn rfc3339_at(&self, instant: Timestamp) -> String {
        let Ok(at) = jiff::Timestamp::from_microsecond(instant.0) else { return instant.to_string() };
        let offset = self.0.to_offset(at);
        if offset.seconds() == 0 || offset.seconds() % 60 != 0 {
            return instant.to_string();
        }
        format!("{}{}", self.0.to_datetime(at).strftime("%Y-%m-%dT%H:%M:%S%.6f"), offset_text(offset))
    }

    /// Returns when clocks in this zone show this date and time of day, such as `2026-03-15T02:09`: the form of a browser's
    /// field for it, with or without seconds. A time that clocks show twice, when they are put back, needs its `offset` from
    /// UTC, one of [`offsets_of`](Self::offsets_of); otherwise the offset does not matter.
    ///
    /// # Errors
    /// `invalid_format` for a text of another form, `out_of_range` for a time that clocks skip, and `required` for one that
    /// they show twice without one of its offsets.
    ///
    /// ```
    /// use svc_core::values::{TimeZone, Timestamp};
    /// let sydney = TimeZone::parse("Australia/Sydney")?;
    /// assert_eq!(sydney.time_of("2026-03-15T02:09", "")?, Timestamp::parse("2026-03-14T15:09:00Z")?);
    /// assert_eq!(sydney.time_of("2026-04-05T02:30", "+10:00")?, Timestamp::parse("2026-04-04T16:30:00Z")?);
    /// assert!(sydney.time_of("2026-04-05T02:30", "").is_err());
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn time_of(&self, local: &str, offset: &str) -> Result<Timestamp, Issue> {
        let form = Issue::new(FieldCode::InvalidFormat, "must be a date and a time such as 2026-03-14T15:09");
        let local = local_time(local).ok_or(form)?;
        let zoned = self.0.to_ambiguous_zoned(local);
        let late = |_| Issue::new(FieldCode::OutOfRange, "must be before 9999-12-30");
        let at = match zoned.offset() {
            AmbiguousOffset::Gap { .. } => {
                let text = format!("does not exist in {self}, where clocks are put forward then; take an hour later");
                return Err(Issue::new(FieldCode::OutOfRange, text));
            }
            AmbiguousOffset::Fold { before, after } => {
                match [before, after].map(|known| offset_text(known) == offset) {
                    [true, _] => zoned.earlier(),
                    [_, true] => zoned.later(),
                    _ => {
                        let text = format!(
                            "is shown twice by clocks in {self}, which are put back then; choose which is meant"
                        );
                        return Err(Issue::new(FieldCode::Required, text));
                    }
                }
            }
            AmbiguousOffset::Unambiguous { .. } => zoned.earlier(),
        };
        Ok(Timestamp::from_micros(at.map_err(late)?.timestamp().as_microsecond()))
    }

    /// Returns the two offsets from UTC of a date and time of day that clocks in this zone show twice, the earlier time first.
    /// `None` for any other text.
    pub fn offsets_of(&self, local: &str) -> Option<[String; 2]> {
        match self.0.to_ambiguous_zoned(local_time(local)?).offset() {
            AmbiguousOffset::Fold { before, after } => Some([before, after].map(offset_text)),
            _ => None,
        }
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

/// Reads a date and a time of day in the form of a browser's field, with or without seconds.
fn local_time(text: &str) -> Option<civil::DateTime> {
    let has_form = ["0000-00-00T00:00", "0000-00-00T00:00:00"].into_iter().any(|known| has_form(text, known));
    text.parse().ok().filter(|_| has_form)
}

/// Returns an offset from UTC as RFC 3339 writes it, such as `+11:00`. Seconds, which offsets had long ago, are left out.
fn offset_text(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_that_of_its_zone() {
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        for (local, want) in [
            ("2026-03-15T02:09", Ok("2026-03-14T15:09:00.000000Z")),
            ("2026-03-15T02:09:26", Ok("2026-03-14T15:09:26.000000Z")),
            // Clocks show 02:30 twice, an hour apart.
            ("2026-04-05T02:30", Err(FieldCode::Required)),
            ("2026-10-04T01:59", Ok("2026-10-03T15:59:00.000000Z")),
            ("2026-10-04T02:30", Err(FieldCode::OutOfRange)),
            ("2026-02-29T00:00", Err(FieldCode::InvalidFormat)),
            ("2026-03-15 02:09", Err(FieldCode::InvalidFormat)),
            ("2026-03-15T02:09Z", Err(FieldCode::InvalidFormat)),
            ("2026-03-15", Err(FieldCode::InvalidFormat)),
            ("", Err(FieldCode::InvalidFormat)),
        ] {
            let at = sydney.time_of(local, "").map(|at| at.to_string()).map_err(|issue| issue.code);
            assert_eq!(at.as_deref().map_err(|code| *code), want, "{local}");
        }
        assert!(TimeZone::UTC.time_of("9999-12-31T23:59", "").is_err(), "time zones end a day before");
    }

    #[test]
    fn a_time_that_clocks_show_twice_needs_its_offset() {
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        let read = |local, offset| sydney.time_of(local, offset).map(|at| at.to_string());
        assert_eq!(read("2026-04-05T02:30", "+11:00").unwrap(), "2026-04-04T15:30:00.000000Z");
        assert_eq!(read("2026-04-05T02:30", "+10:00").unwrap(), "2026-04-04T16:30:00.000000Z");
        assert_eq!(read("2026-04-05T02:30", "+09:00").unwrap_err().code, FieldCode::Required);
        // An offset that was chosen for another time does not matter.
        assert_eq!(read("2026-04-05T03:00", "+11:00").unwrap(), "2026-04-04T17:00:00.000000Z");
        assert_eq!(sydney.offsets_of("2026-04-05T02:00"), Some(["+11:00".to_owned(), "+10:00".to_owned()]));
        for unambiguous in ["2026-04-05T01:59", "2026-04-05T03:00", "2026-10-04T02:30", "soon"] {
            assert_eq!(sydney.offsets_of(unambiguous), None, "{unambiguous}");
        }
        let shown = |text| sydney.date_and_time_at(Timestamp::parse(text).unwrap());
        assert_eq!(shown("2026-04-04T15:30:00Z"), "2026-04-05 02:30:00 +11:00");
        assert_eq!(shown("2026-04-04T16:30:00Z"), "2026-04-05 02:30:00 +10:00");
        assert_eq!(shown("2026-04-04T17:00:00Z"), "2026-04-05 03:00:00");
        let shown = |text| sydney.rfc3339_at(Timestamp::parse(text).unwrap());
        assert_eq!(shown("2026-04-04T15:30:00Z"), "2026-04-05T02:30:00.000000+11:00");
        assert_eq!(shown("2026-04-04T16:30:00Z"), "2026-04-05T02:30:00.000000+10:00");
        assert_eq!(shown("1800-01-01T00:00:00Z"), "1800-01-01T00:00:00.000000Z", "clocks showed the time of the sun");
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
}
