//! Dates as other programs write them: in a form that an option names, with or without a time of day and a time zone.
//!
//! A date of this service is one of the account. A time that is known to be of another zone can be on another date there, so
//! it is converted and not cut off. A time whose zone nobody names is taken for one of the account.

use svc_core::values::{Date, TimeZone, Timestamp};

use crate::values::DateFormat;

/// How the dates of a column are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct DateReader<'r> {
    /// The form of `--date-format`.
    pub(super) format: Option<&'r DateFormat>,
    /// The time zone that the name of the column has, such as `Date (UTC)`.
    pub(super) column: Option<&'r TimeZone>,
    /// The account's time zone.
    pub(super) account: &'r TimeZone,
}

/// What follows a date.
enum Zone {
    /// A time of the account.
    Account,
    /// A time of a named zone.
    Named(TimeZone),
    /// A time with an offset from UTC, as RFC 3339 writes it.
    Offset(String),
}

impl DateReader<'_> {
    /// Returns a date of the account as `YYYY-MM-DD`, or `None` if the text has another form.
    ///
    /// # Errors
    /// A date with a time whose zone is not known, which may be on another date in the account.
    pub(super) fn date(&self, text: &str) -> Result<Option<String>, String> {
        if let Some(day) = self.day(text) {
            return Ok(Some(day));
        }
        let Some((day, time, rest)) = self.with_time(text) else { return Ok(None) };
        let Some(zone) = self.zone(rest) else {
            return Err(format!(
                "must be a date of the account, and the time zone {rest:?} is not known; write its offset from UTC, such as \
                 +11:00, or the date alone"
            ));
        };
        if let Zone::Account = zone {
            return Ok(Timestamp::parse(&format!("{day}T{time}Z")).is_ok().then_some(day));
        }
        let at = at(&day, &time, &zone);
        Ok(at.map(|at| self.account.date_at(at).to_string()))
    }

    /// Returns the time of a text that is no RFC 3339: the beginning of a date in the form of `--date-format`, in the
    /// account's time zone, or a time whose zone is named.
    pub(super) fn time(&self, text: &str) -> Option<Timestamp> {
        if Timestamp::parse(text).is_ok() {
            return None;
        }
        if let Some(day) = self.format.and_then(|format| format.to_iso(text)) {
            return Date::parse(&day).ok().map(|date| self.account.date_begins(date));
        }
        let (day, time, rest) = self.with_time(text)?;
        let zone = self.zone(rest)?;
        let is_exact = !(matches!(zone, Zone::Named(_)) && time.contains('.'));
        at(&day, &time, &zone).filter(|_| is_exact)
    }

    /// Reads a date alone.
    fn day(&self, text: &str) -> Option<String> {
        let named = self.format.and_then(|format| format.to_iso(text));
        named.or_else(|| Date::parse(text).ok().map(|date| date.to_string()))
    }

    /// Returns the date and the time of day at the beginning of a text, and the rest.
    fn with_time<'t>(&self, text: &'t str) -> Option<(String, String, &'t str)> {
        let mut ends = text.match_indices([' ', '\u{a0}', '\u{202f}', 'T', 't']);
        ends.find_map(|(at, end)| {
            let (time, rest) = time_of_day(text[at + end.len()..].trim_start())?;
            Some((self.day(text[..at].trim_end())?, time, rest))
        })
    }

    fn zone(&self, rest: &str) -> Option<Zone> {
        let (upper, is_named) = (rest.to_ascii_uppercase(), !rest.is_empty());
        if !is_named {
            return Some(match self.column {
                Some(utc) if *utc == TimeZone::UTC => Zone::Offset("Z".to_owned()),
                Some(zone) => Zone::Named(zone.clone()),
                None => Zone::Account,
            });
        }
        let after = ["UTC", "GMT"].into_iter().find_map(|name| upper.strip_prefix(name)).unwrap_or(&upper).trim_start();
        if matches!(after, "" | "Z") {
            return Some(Zone::Offset("Z".to_owned()));
        }
        offset(after).map(Zone::Offset).or_else(|| TimeZone::parse(rest).ok().map(Zone::Named))
    }
}

/// Returns the time zone that the name of a column has: `UTC` or `GMT` as a word, or a name in parentheses.
pub(super) fn zone_of_column(name: &str) -> Option<TimeZone> {
    let words = name.split(|char: char| !char.is_alphanumeric());
    if words.into_iter().any(|word| ["utc", "gmt"].contains(&word.to_lowercase().as_str())) {
        return Some(TimeZone::UTC);
    }
    let (_, inner) = name.rsplit_once('(')?;
    TimeZone::parse(inner.split_once(')')?.0.trim()).ok()
}

/// Returns when it is this time of this date in a zone. Of a time that clocks show twice, it is the first, and of one in a named
/// zone, it is the second in which it lies.
fn at(day: &str, time: &str, zone: &Zone) -> Option<Timestamp> {
    match zone {
        Zone::Account => None,
        Zone::Offset(offset) => Timestamp::parse(&format!("{day}T{time}{offset}")).ok(),
        Zone::Named(zone) => {
            let local = format!("{day}T{}", time.split_once('.').map_or(time, |(seconds, _)| seconds));
            let offset = zone.offsets_of(&local).map_or_else(String::new, |[first, _]| first);
            zone.time_of(&local, &offset).ok()
        }
    }
}

/// Reads a time of day such as `9:30`, `21:30:05.123` or `9:30 pm` at the beginning of a text. Returns it as `21:30:05` or
/// `21:30:05.123`, and the rest of the text.
fn time_of_day(text: &str) -> Option<(String, &str)> {
    let (hour, rest) = text.split_once(':')?;
    let is_hour = matches!(hour.len(), 1 | 2) && hour.bytes().all(|byte| byte.is_ascii_digit());
    let mut hour = hour.parse::<u8>().ok().filter(|_| is_hour)?;
    let two_digits = |text: &str| text.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !two_digits(rest) {
        return None;
    }
    let (minute, mut rest) = rest.split_at(2);
    let (mut second, mut fraction) = ("00", String::new());
    if let Some(after) = rest.strip_prefix(':').filter(|after| two_digits(after)) {
        (second, rest) = after.split_at(2);
        if let Some(decimals) = rest.strip_prefix(['.', ',']) {
            rest = decimals.trim_start_matches(|char: char| char.is_ascii_digit());
            fraction = format!(".{}", &decimals[..decimals.len() - rest.len()]);
        }
    }
    rest = rest.trim_start();
    let half = rest.get(..2).map(str::to_ascii_uppercase).filter(|half| ["AM", "PM"].contains(&half.as_str()));
    if let Some(half) = half {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if half == "PM" { 12 } else { 0 };
        rest = rest[2..].trim_start();
    }
    Some((format!("{hour:02}:{minute}:{second}{fraction}"), rest))
}

/// Returns an offset such as `+1100`, `+11` or `-03:30` as RFC 3339 writes it.
fn offset(text: &str) -> Option<String> {
    let sign = text.chars().next().filter(|sign| matches!(sign, '+' | '-' | '−'))?;
    let digits: String = text[sign.len_utf8()..].replacen(':', "", 1);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let sign = if sign == '+' { '+' } else { '-' };
    match digits.len() {
        1 => Some(format!("{sign}0{digits}:00")),
        2 => Some(format!("{sign}{digits}:00")),
        4 => Some(format!("{sign}{}:{}", &digits[..2], &digits[2..])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_never_guessed() {
        let (sydney, utc) = (TimeZone::parse("Australia/Sydney").unwrap(), TimeZone::UTC);
        let refused = "refused";
        for (format, is_utc, text, want) in [
            (None, false, "2025-12-31", Some("2025-12-31")),
            (None, true, "2025-12-31", Some("2025-12-31")),
            (None, false, "2025-12-31 14:05:00", Some("2025-12-31")),
            (None, false, "2025-12-31T22:30", Some("2025-12-31")),
            (None, true, "2025-12-31 22:30", Some("2026-01-01")),
            (None, true, "2025-12-31 12:59", Some("2025-12-31")),
            (None, true, "2025-12-31 22:30 +11:00", Some("2025-12-31")),
            (None, false, "2025-12-31T22:30:00Z", Some("2026-01-01")),
            (None, false, "2025-12-31T22:30:00.000z", Some("2026-01-01")),
            (None, false, "2025-12-31T22:30:00+11:00", Some("2025-12-31")),
            (None, false, "2026-01-01T00:30:00+14:00", Some("2025-12-31")),
            (None, false, "2025-12-31 22:30:00 -0800", Some("2026-01-01")),
            (None, false, "2025-12-31 22:30 UTC", Some("2026-01-01")),
            (None, false, "2025-12-31 22:30 GMT+1", Some("2026-01-01")),
            (None, false, "2025-12-31 22:30 Europe/Berlin", Some("2026-01-01")),
            (None, false, "2025-12-31 10:30 PM UTC", Some("2026-01-01")),
            (None, false, "2025-12-31 22:30 AEDT", Some(refused)),
            (None, false, "2025-12-31 22:30 in the evening", Some(refused)),
            (None, false, "2025-12-31T22:30:00+11:00[Australia/Sydney]", Some(refused)),
            (None, false, "2025-12-31 25:30", None),
            (None, false, "2025-12-31 13:30 pm", None),
            (None, false, "31/12/2025", None),
            (None, false, "2025-12-31 of May", None),
            (Some("DD/MM/YYYY"), false, "31/12/2025", Some("2025-12-31")),
            (Some("DD/MM/YYYY"), false, "31/12/2025 9:30 PM", Some("2025-12-31")),
            (Some("DD/MM/YYYY"), true, "31/12/2025 9:30 PM", Some("2026-01-01")),
            (Some("DD/MM/YYYY"), false, "2025-12-31", Some("2025-12-31")),
            (Some("DD/MM/YYYY"), false, "12/31/25", None),
            (Some("DD MM YYYY"), false, "31 12 2025", Some("2025-12-31")),
            (Some("DD MMM YYYY"), false, "31 Oct 2025 22:30 UTC", Some("2025-11-01")),
        ] {
            let format = format.map(|format| DateFormat::parse(format).unwrap());
            let column = Some(&utc).filter(|_| is_utc);
            let reader = DateReader { format: format.as_ref(), column, account: &sydney };
            let read = reader.date(text).unwrap_or_else(|_| Some(refused.to_owned()));
            assert_eq!(read.as_deref(), want, "{text} {is_utc}");
        }
    }

    #[test]
    fn a_time_begins_with_its_date_or_has_a_zone() {
        let (sydney, utc) = (TimeZone::parse("Australia/Sydney").unwrap(), TimeZone::UTC);
        let format = DateFormat::parse("DD/MM/YYYY").unwrap();
        for (column, text, want) in [
            (None, "31/12/2025", Some("2025-12-30T13:00:00.000000Z")),
            (None, "31/02/2025", None),
            (None, "2025-12-31", None),
            (None, "2025-12-31 22:30", None),
            (Some(&utc), "2025-12-31 22:30", Some("2025-12-31T22:30:00.000000Z")),
            (None, "31/12/2025 22:30 +1100", Some("2025-12-31T11:30:00.000000Z")),
            (Some(&utc), "2025-12-31 22:30:05.123456", Some("2025-12-31T22:30:05.123456Z")),
            (None, "2025-12-31 22:30:05 Australia/Sydney", Some("2025-12-31T11:30:05.000000Z")),
            (None, "2025-12-31 22:30:05.5 Australia/Sydney", None),
            (None, "2025-12-31T22:30:05.123456Z", None),
        ] {
            let reader = DateReader { format: Some(&format), column, account: &sydney };
            assert_eq!(reader.time(text).map(|at| at.to_string()).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn the_name_of_a_column_can_have_a_zone() {
        for (name, want) in [
            ("Date (UTC)", Some("UTC")),
            ("created_at_utc", Some("UTC")),
            ("Due Date (Europe/Berlin)", Some("Europe/Berlin")),
            ("Due Date", None),
            ("Outcome", None),
            ("Date (of issue)", None),
        ] {
            assert_eq!(zone_of_column(name).map(|zone| zone.to_string()).as_deref(), want, "{name}");
        }
    }
}
