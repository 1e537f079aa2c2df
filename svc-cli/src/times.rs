//! Times and durations formatted for people. Programs get RFC 3339, which is how [`Timestamp`] formats itself.

use std::time::Duration;

use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::platform::Seconds;
use svc_core::values::Timestamp;

use crate::output::or_dash;

/// The units of a relative time: length in seconds, name, and the count from which the next unit is used instead.
const UNITS: [(u64, &str, u64); 5] = [
    (60, "minute", 60),
    (3_600, "hour", 24),
    (86_400, "day", 30),
    // The mean month and year of the Gregorian calendar.
    (2_629_746, "month", 12),
    (31_556_952, "year", u64::MAX),
];

/// The parts of a duration: length in microseconds, and name.
const PARTS: [(u128, &str); 6] = [
    (86_400_000_000, "day"),
    (3_600_000_000, "hour"),
    (60_000_000, "minute"),
    (1_000_000, "second"),
    (1_000, "ms"),
    (1, "µs"),
];

/// Formats a time to the second, followed by the relative time: `2026-03-14 15:09:26Z (3 minutes ago)`.
pub(crate) fn moment(at: Timestamp) -> String {
    moment_at(at, Env::system().now())
}

/// Formats an optional time, with a dash for `None`.
pub(crate) fn moment_or_dash(at: Option<Timestamp>) -> String {
    or_dash(at.map(moment))
}

/// Formats a time like [`moment`], relative to `now`.
pub(crate) fn moment_at(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", full(at), relative(at, now))
}

/// Words when a thing was last used.
pub(crate) fn last_use(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", moment(at)))
}

/// Formats a time to the second, in UTC: `2026-03-14 15:09:26Z`.
pub(crate) fn full(at: Timestamp) -> String {
    let text = at.to_string();
    let (to_second, _) = text.split_once('.').unwrap_or((&text, ""));
    format!("{}Z", to_second.replace('T', " "))
}

/// Formats an optional time like [`full`], with a dash for `None`.
pub(crate) fn full_or_dash(at: Option<Timestamp>) -> String {
    or_dash(at.map(full))
}

/// Formats a time to the millisecond, in UTC: `2026-03-14 15:09:26.535Z`.
pub(crate) fn precise(at: Timestamp) -> String {
    let text = at.to_string();
    // The API writes six digits.
    let (to_millisecond, _) = text.split_at_checked(text.len().saturating_sub(4)).unwrap_or((&text, ""));
    format!("{}Z", to_millisecond.replace('T', " "))
}

/// Formats the distance of `at` from `now`, rounded to one unit of at least a minute.
fn relative(at: Timestamp, now: Timestamp) -> String {
    let ahead = at > now;
    let seconds = now.since(at).max(at.since(now)).as_secs();
    if seconds < 60 {
        return if ahead { "in a moment".to_owned() } else { "just now".to_owned() };
    }
    let rounded = |unit: u64| (seconds + unit / 2) / unit;
    let unit = UNITS.iter().map(|&(unit, name, limit)| (rounded(unit), name, limit)).find(|(n, _, limit)| n < limit);
    let words = unit.map_or_else(String::new, |(n, name, _)| counted(n.into(), name));
    if ahead { format!("in {words}") } else { format!("{words} ago") }
}

/// Formats a duration by its two largest parts: `1 minute 30 seconds`.
pub(crate) fn span(duration: Duration) -> String {
    let mut rest = duration.as_micros();
    let mut parts = Vec::new();
    for (size, name) in PARTS {
        let n = rest / size;
        rest %= size;
        if n > 0 {
            parts.push(counted(n, name));
        } else if !parts.is_empty() {
            break;
        }
        if parts.len() == 2 {
            break;
        }
    }
    if parts.is_empty() { "0 seconds".to_owned() } else { parts.join(" ") }
}

/// Formats a count with its unit: `1 minute`, `2 minutes`. Symbols such as ms have no plural.
fn counted(n: u128, name: &str) -> String {
    let plural = if n == 1 || name.ends_with('s') { "" } else { "s" };
    format!("{n} {name}{plural}")
}

/// Returns a length of time for a field of an input, which has an option of its name.
pub(crate) fn seconds(field: &str, duration: Duration) -> Result<Seconds, Error> {
    Seconds::new(duration).map_err(|issue| issue.on(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_formatted_absolute_and_relative() {
        let now = Timestamp::parse("2026-03-14T15:09:26.999999Z").unwrap();
        assert_eq!(moment_at(now, now), "2026-03-14 15:09:26Z (just now)");
        let then = Timestamp::parse("2026-03-14T16:06:26+01:00").unwrap();
        assert_eq!(moment_at(then, now), "2026-03-14 15:06:26Z (3 minutes ago)");
    }

    #[test]
    fn a_time_in_a_log_has_milliseconds() {
        let at = Timestamp::parse("2026-03-14T15:09:26.5358979Z").unwrap();
        assert_eq!((precise(at), full(at)), ("2026-03-14 15:09:26.535Z".to_owned(), "2026-03-14 15:09:26Z".to_owned()));
    }

    #[test]
    fn a_relative_time_is_rounded_to_one_unit() {
        let now = Timestamp::parse("2026-03-14T15:09:26Z").unwrap();
        let (minute, hour, day) = (60, 3_600, 86_400);
        for (seconds, past, future) in [
            (0, "just now", "just now"),
            (1, "just now", "in a moment"),
            (59, "just now", "in a moment"),
            (60, "1 minute ago", "in 1 minute"),
            (89, "1 minute ago", "in 1 minute"),
            (90, "2 minutes ago", "in 2 minutes"),
            (59 * minute + 29, "59 minutes ago", "in 59 minutes"),
            (59 * minute + 30, "1 hour ago", "in 1 hour"),
            (90 * minute, "2 hours ago", "in 2 hours"),
            (23 * hour + 1_799, "23 hours ago", "in 23 hours"),
            (23 * hour + 1_800, "1 day ago", "in 1 day"),
            (29 * day + 43_199, "29 days ago", "in 29 days"),
            (29 * day + 43_200, "1 month ago", "in 1 month"),
            (90 * day, "3 months ago", "in 3 months"),
            (350 * day, "11 months ago", "in 11 months"),
            (351 * day, "1 year ago", "in 1 year"),
            (3_652 * day, "10 years ago", "in 10 years"),
        ] {
            let away = Duration::from_secs(seconds);
            assert_eq!(relative(now.minus(away), now), past, "{seconds} s ago");
            assert_eq!(relative(now.checked_add(away).unwrap(), now), future, "in {seconds} s");
        }
        assert_eq!(relative(Timestamp::from_micros(i64::MIN), now), "2026 years ago");
    }

    #[test]
    fn a_duration_is_formatted_by_its_two_largest_parts() {
        for (micros, want) in [
            (0, "0 seconds"),
            (1, "1 µs"),
            (1_250_000, "1 second 250 ms"),
            (30_000_000, "30 seconds"),
            (90_000_000, "1 minute 30 seconds"),
            (3_600_000_000, "1 hour"),
            (3_601_000_000, "1 hour"),
            (2 * 86_400_000_000 + 10_800_000_000 + 5, "2 days 3 hours"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), want);
        }
    }
}
