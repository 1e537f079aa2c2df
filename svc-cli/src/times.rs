//! Times and durations formatted for people, and times as people type them. Programs get RFC 3339 in UTC, which is how
//! [`Timestamp`] formats itself.
//!
//! People type and see times in the time zone of the account that the command works on, which a lookup of the account sets
//! here, or in UTC with --utc.

use std::sync::OnceLock;
use std::time::Duration;

use svc_core::env::Env;
use svc_core::error::{Error, FieldCode, Issue};
use svc_core::pages::Since;
use svc_core::platform::{Account, Seconds};
use svc_core::values::{TimeZone, Timestamp};

use crate::exit::{Exit, Failure};
use crate::output::or_dash;
use crate::values::TimeArg;

/// The time zone of this run of the program, which works on one account. Until it is set, it is UTC.
static ZONE: OnceLock<RunZone> = OnceLock::new();

/// The time zone of a run of the program.
enum RunZone {
    Known(TimeZone),
    /// One that this program does not know, by its name. Times are shown in UTC.
    Unknown(String),
}

/// Uses UTC, whatever the account has.
pub(crate) fn use_utc() {
    // It is set before any account is looked up.
    let _ = ZONE.set(RunZone::Known(TimeZone::UTC));
}

/// Uses the time zone of the account that the command works on, unless one is used already.
pub(crate) fn use_zone_of(account: &Account) {
    let name = &account.time_zone;
    ZONE.get_or_init(|| TimeZone::parse(name).map_or_else(|_| RunZone::Unknown(name.clone()), RunZone::Known));
}

/// Returns when a time that was typed is. A date is its start.
///
/// # Errors
/// Clocks skip the time or show it twice, or this program does not know the time zone.
pub(crate) fn instant(typed: &TimeArg) -> Result<Timestamp, Failure> {
    match (typed, ZONE.get()) {
        (TimeArg::At(at), _) => Ok(*at),
        (_, Some(RunZone::Unknown(name))) => {
            let reason =
                format!("The time zone {name} of the account is not known here; give a time with its offset from UTC.");
            Err(Failure::new(Exit::Failed, reason))
        }
        (typed, Some(RunZone::Known(zone))) => instant_in(zone, typed),
        (typed, None) => instant_in(&TimeZone::UTC, typed),
    }
}

/// Returns when a time that may have been typed is, for a list.
pub(crate) fn since(typed: Option<&TimeArg>) -> Result<Option<Since>, Failure> {
    typed.map(|typed| instant(typed).map(Since)).transpose()
}

fn instant_in(zone: &TimeZone, typed: &TimeArg) -> Result<Timestamp, Failure> {
    let local = match typed {
        TimeArg::At(at) => return Ok(*at),
        TimeArg::Date(date) => return Ok(zone.date_begins(*date)),
        TimeArg::Local(local) => local,
    };
    let seconds = if local.len() == "2026-03-14T15:09".len() { ":00" } else { "" };
    zone.time_of(local, "").map_err(|issue| {
        let reason = match (issue.code, zone.offsets_of(local)) {
            (_, Some([first, second])) => format!(
                "Clocks in {zone} show {local} twice, as they are put back then; give the first one as \
                 {local}{seconds}{first}, or the second one as {local}{seconds}{second}."
            ),
            (FieldCode::OutOfRange, None) => {
                format!(
                    "Clocks in {zone} never show {local}, as they are put forward then; give an earlier or later time."
                )
            }
            _ => format!("{local} {}.", issue.message),
        };
        Failure::new(Exit::Usage, reason)
    })
}

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

/// Formats a time to the second with its offset from UTC: `2026-03-14 15:09:26Z`.
pub(crate) fn full(at: Timestamp) -> String {
    full_in(&zone(), at)
}

/// Returns the time zone in which times are shown.
fn zone() -> TimeZone {
    match ZONE.get() {
        Some(RunZone::Known(zone)) => zone.clone(),
        _ => TimeZone::UTC,
    }
}

fn full_in(zone: &TimeZone, at: Timestamp) -> String {
    with_decimals(zone, at, 0)
}

/// Formats a time with this many decimals of a second.
fn with_decimals(zone: &TimeZone, at: Timestamp, decimals: usize) -> String {
    let text = zone.rfc3339_at(at).replace('T', " ");
    // There are six decimals.
    let Some((to_second, rest)) = text.split_once('.') else { return text };
    let (digits, offset) = rest.split_at_checked(6).unwrap_or((rest, ""));
    match digits.get(..decimals).filter(|digits| !digits.is_empty()) {
        Some(digits) => format!("{to_second}.{digits}{offset}"),
        None => format!("{to_second}{offset}"),
    }
}

/// Formats an optional time like [`full`], with a dash for `None`.
pub(crate) fn full_or_dash(at: Option<Timestamp>) -> String {
    or_dash(at.map(full))
}

/// Formats a time to the millisecond with its offset from UTC: `2026-03-14 15:09:26.535Z`.
pub(crate) fn precise(at: Timestamp) -> String {
    with_decimals(&zone(), at, 3)
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
    // The API words it in seconds, which nobody types.
    Seconds::new(duration)
        .map_err(|issue| Issue { message: "must be at most 3660d, about ten years".into(), ..issue }.on(field))
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
    fn a_time_is_shown_with_the_offset_of_its_zone() {
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        let at = Timestamp::parse("2026-03-14T15:09:26.5358979Z").unwrap();
        assert_eq!(full_in(&sydney, at), "2026-03-15 02:09:26+11:00");
        assert_eq!(with_decimals(&sydney, at, 3), "2026-03-15 02:09:26.535+11:00");
        // What is shown is read as what it was.
        let shown = full_in(&sydney, at);
        assert_eq!(crate::values::time(&shown), Ok(TimeArg::At(Timestamp::parse("2026-03-14T15:09:26Z").unwrap())));
    }

    #[test]
    fn a_time_without_an_offset_is_what_clocks_of_the_zone_show_once() {
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        let read = |text: &str| instant_in(&sydney, &crate::values::time(text).unwrap());
        assert_eq!(read("2026-03-15 02:09").unwrap().to_string(), "2026-03-14T15:09:00.000000Z");
        assert_eq!(read("2026-03-15 02:09Z").unwrap().to_string(), "2026-03-15T02:09:00.000000Z");
        for (text, reason) in [
            (
                "2026-04-05 02:30",
                "Clocks in Australia/Sydney show 2026-04-05T02:30 twice, as they are put back then; give the first one as \
                 2026-04-05T02:30:00+11:00, or the second one as 2026-04-05T02:30:00+10:00.",
            ),
            (
                "2026-10-04T02:30:15",
                "Clocks in Australia/Sydney never show 2026-10-04T02:30:15, as they are put forward then; give an earlier or \
                 later time.",
            ),
        ] {
            assert_eq!(read(text), Err(Failure::new(Exit::Usage, reason)), "{text}");
        }
        // Each of the two that the error names is one of the times.
        let [first, second] =
            ["2026-04-05T02:30:00+11:00", "2026-04-05T02:30:00+10:00"].map(|text| read(text).unwrap());
        assert_eq!(second.since(first), Duration::from_secs(3_600));
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
