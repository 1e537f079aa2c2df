//! Dates and times of day of the sample account, in its time zone.

use std::collections::HashMap;
use std::time::Duration;

use svc_core::values::{Date, TimeZone, Timestamp};

/// The numbers of days before and after today that the calendar has.
const PAST: u32 = 100;
const FUTURE: i64 = 60;

/// The days around today.
pub(super) struct Calendar {
    pub(super) now: Timestamp,
    pub(super) today: Date,
    /// When each day begins, by its number.
    begins: HashMap<i64, Timestamp>,
}

impl Calendar {
    pub(super) fn new(zone: &TimeZone, now: Timestamp) -> Self {
        let today = zone.date_at(now);
        let mut begins = HashMap::new();
        let mut at = zone.next_date_begins(now.minus(Duration::from_secs(86_400) * PAST));
        while zone.date_at(at).days() <= today.days() + FUTURE {
            begins.insert(zone.date_at(at).days(), at);
            at = zone.next_date_begins(at);
        }
        Self { now, today, begins }
    }

    /// Returns the time that is so many minutes after the beginning of the day that is `day` days after today. On the day
    /// of a change to or from summer time, which is a Sunday, it is an hour off.
    pub(super) fn at(&self, day: i64, minutes: u64) -> Timestamp {
        let begins = self.begins.get(&(self.today.days() + day)).copied().unwrap_or(self.now);
        plus(begins, minutes)
    }

    /// Returns how many days after today the `n`th workday after today is, or before today if `n` is negative. For 0, it is
    /// today, or Monday if today is a day of a weekend.
    pub(super) fn workday(&self, n: i64) -> i64 {
        // 1970-01-01 was a Thursday.
        let is_workday = |day: i64| (self.today.days() + day + 3).rem_euclid(7) < 5;
        if n == 0 {
            return (0..).find(|day| is_workday(*day)).unwrap_or_default();
        }
        let mut days = (1..).map(|distance| distance * n.signum()).filter(|day| is_workday(*day));
        let before = usize::try_from(n.unsigned_abs() - 1).unwrap_or_default();
        days.nth(before).unwrap_or_default()
    }

    /// Returns a time of day, such as `09:30`, of the `n`th workday.
    pub(super) fn at_workday(&self, n: i64, time: &str) -> Timestamp {
        let (hours, minutes) = time.split_once(':').unwrap_or((time, "0"));
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        self.at(self.workday(n), number(hours) * 60 + number(minutes))
    }
}

/// Returns the time that is so many minutes later.
pub(super) fn plus(at: Timestamp, minutes: u64) -> Timestamp {
    at.checked_add(Duration::from_secs(minutes * 60)).unwrap_or(at)
}

/// Returns the time that is so many minutes earlier.
pub(super) fn minus(at: Timestamp, minutes: u64) -> Timestamp {
    at.minus(Duration::from_secs(minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workdays_leave_out_weekends() {
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        // A Sunday in Sydney, on which summer time ends.
        let calendar = Calendar::new(&sydney, Timestamp::parse("2026-04-05T01:00:00Z").unwrap());
        for (n, time, expected) in [
            (0, "09:30", "2026-04-06 09:30:00"),
            (1, "09:30", "2026-04-06 09:30:00"),
            (5, "16:00", "2026-04-10 16:00:00"),
            (6, "07:00", "2026-04-13 07:00:00"),
            (-1, "09:00", "2026-04-03 09:00:00"),
            (-6, "09:00", "2026-03-27 09:00:00"),
        ] {
            assert_eq!(sydney.date_and_time_at(calendar.at_workday(n, time)), expected, "{n}");
        }
    }
}
