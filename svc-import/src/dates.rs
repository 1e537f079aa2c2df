//! Dates as other programs write them: in a form that an option names, with or without a time of day and a time zone.
//!
//! A date of this service is one of the account. A time that is known to be of another zone can be on another date there, so
//! it is converted and not cut off. A time whose zone nobody names is taken for one of the account. Letters such as `EST` name
//! several zones, and none is chosen.

use svc_core::values::{Date, TimeZone, Timestamp};

use crate::date_format::DateFormat;

/// How the dates of a column are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct DateReader<'r> {
    /// The form of the dates in the file.
    pub(super) format: Option<&'r DateFormat>,
    /// The time zone that the name of the column has, such as `Date (UTC)`.
    pub(super) column: Option<&'r Zone>,
    /// The account's time zone.
    pub(super) account: &'r TimeZone,
}

/// Which clocks show the times of a cell or a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// Those of the account.
    Account,
    /// Those of a named zone.
    Named(TimeZone),
    /// Those with an offset from UTC, as RFC 3339 writes it.
    Offset(String),
    /// Those of a zone whose name may stand for several, or for none.
    Unclear(String),
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
        let zone = self.zone(rest);
        if let Zone::Unclear(name) = &zone {
            return Err(unclear("a date of the account", name));
        }
        if let Zone::Account = zone {
            return Ok(Timestamp::parse(&format!("{day}T{time}Z")).is_ok().then_some(day));
        }
        let at = at(&day, &time, &zone);
        Ok(at.map(|at| self.account.date_at(at).to_string()))
    }

    /// Returns the time of a text that is no RFC 3339: the beginning of a date in the form of the file, in the
    /// account's time zone, or a time whose zone is named.
    ///
    /// # Errors
    /// A time whose zone is not known.
    pub(super) fn time(&self, text: &str) -> Result<Option<Timestamp>, String> {
        if Timestamp::parse(text).is_ok() {
            return Ok(None);
        }
        if let Some(day) = self.format.and_then(|format| format.to_iso(text)) {
            return Ok(Date::parse(&day).ok().map(|date| self.account.date_begins(date)));
        }
        let Some((day, time, rest)) = self.with_time(text) else { return Ok(None) };
        let zone = self.zone(rest);
        if let Zone::Unclear(name) = &zone {
            return Err(unclear("a time", name));
        }
        let is_exact = !(matches!(zone, Zone::Named(_)) && time.contains('.'));
        Ok(at(&day, &time, &zone).filter(|_| is_exact))
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

    /// Returns the zone that the rest of a cell names, or else its column.
    fn zone(&self, rest: &str) -> Zone {
        if rest.is_empty() {
            return self.column.cloned().unwrap_or(Zone::Account);
        }
        let upper = rest.to_ascii_uppercase();
        let after = ["UTC", "GMT"].into_iter().find_map(|name| upper.strip_prefix(name)).unwrap_or(&upper).trim_start();
        if matches!(after, "" | "Z") {
            return Zone::Offset("Z".to_owned());
        }
        let offset = offset(after).map(Zone::Offset);
        offset.or_else(|| zone_by_name(rest)).unwrap_or_else(|| Zone::Unclear(rest.to_owned()))
    }
}

/// Returns the zone with a name of the IANA database that has a place. The others, such as `EST`, are also those of zones
/// elsewhere.
fn zone_by_name(name: &str) -> Option<Zone> {
    TimeZone::parse(name).ok().filter(|_| name.contains('/')).map(Zone::Named)
}

/// Says of a time that its zone is not clear.
fn unclear(what: &str, zone: &str) -> String {
    let date = if what == "a time" { "" } else { ", or the date alone" };
    format!(
        "must be {what}, and the time zone {zone:?} is not clear; write its offset from UTC, such as +11:00, or its name with \
         a place, such as Australia/Sydney{date}"
    )
}

/// Returns the time zone that the name of a column has: `UTC` or `GMT` as a word, with or without an offset, or a name in
/// parentheses.
pub(super) fn zone_of_column(name: &str) -> Option<Zone> {
    let inner = name.rsplit_once('(').and_then(|(_, inner)| Some(inner.split_once(')')?.0.trim()));
    inner.and_then(zone_by_name).or_else(|| utc_of_column(name)).or_else(|| inner.and_then(abbreviated))
}

/// Returns the zone of a name that has `UTC` or `GMT` as a word.
fn utc_of_column(name: &str) -> Option<Zone> {
    let lower = name.to_ascii_lowercase();
    let is_word =
        |at: usize| !lower[..at].ends_with(char::is_alphanumeric) && !lower[at + 3..].starts_with(char::is_alphabetic);
    let mut found = ["utc", "gmt"].into_iter().flat_map(|zone| lower.match_indices(zone)).map(|(at, _)| at);
    let at = found.find(|at| is_word(*at))?;
    let after = lower[at + 3..].trim_start();
    let unclear = || Zone::Unclear(name[at..].trim_end_matches([')', ' ']).to_owned());
    let is_digit = |text: &str| text.starts_with(|char: char| char.is_numeric());
    Some(match after.chars().next() {
        // A dash before a word is none of a number.
        Some(sign @ ('+' | '-' | '−' | '–' | '±')) => {
            let number = after[sign.len_utf8()..].trim_start();
            if !is_digit(number) && sign != '+' && sign != '±' {
                return Some(Zone::Offset("Z".to_owned()));
            }
            let end = number.find(|char: char| !(char.is_ascii_digit() || char == ':')).unwrap_or(number.len());
            let is_end = !number[end..].starts_with(|char: char| char.is_alphanumeric() || matches!(char, '.' | ','));
            let read = offset(&format!("{sign}{}", &number[..end])).filter(|_| is_end);
            read.map_or_else(unclear, Zone::Offset)
        }
        Some(_) if is_digit(after) => unclear(),
        _ => Zone::Offset("Z".to_owned()),
    })
}

/// Returns the zone of a name that may be one of several, such as `AEST`.
fn abbreviated(name: &str) -> Option<Zone> {
    let is_short = (3..=5).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_zone = TimeZone::parse(name).is_ok() || is_short && name.ends_with('T');
    is_zone.then(|| Zone::Unclear(name.to_owned()))
}

/// Returns when it is this time of this date in a zone. Of a time that clocks show twice, it is the first, and of one in a named
/// zone, it is the second in which it lies.
fn at(day: &str, time: &str, zone: &Zone) -> Option<Timestamp> {
    match zone {
        Zone::Account | Zone::Unclear(_) => None,
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

/// Returns an offset such as `+1100`, `+11`, `+5:30` or `-03:30` as RFC 3339 writes it.
fn offset(text: &str) -> Option<String> {
    let sign = text.chars().next().filter(|sign| matches!(sign, '+' | '-' | '−' | '–'))?;
    let digits = &text[sign.len_utf8()..];
    let (hours, minutes) = match digits.split_once(':') {
        Some(both) => both,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(hours.len(), 1 | 2) || minutes.len() != 2 || !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let sign = if sign == '+' { '+' } else { '-' };
    let offset = format!("{sign}{hours:0>2}:{minutes}");
    Timestamp::parse(&format!("2000-01-01T00:00:00{offset}")).is_ok().then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_never_guessed() {
        let (sydney, utc) = (TimeZone::parse("Australia/Sydney").unwrap(), Zone::Offset("Z".to_owned()));
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
            (None, false, "2025-12-31 22:30 UTC+10:30", Some("2025-12-31")),
            (None, false, "2025-12-31 22:30 +5:30", Some("2026-01-01")),
            (None, false, "2025-12-31 22:30 Etc/GMT-11", Some("2025-12-31")),
            (None, false, "2025-12-31 22:30 +99", Some(refused)),
            (None, false, "2025-12-31 22:30 +1:100", Some(refused)),
            (None, false, "2025-12-31 22:30 EST", Some(refused)),
            (None, true, "2025-12-31 22:30 CET", Some(refused)),
            (None, false, "2025-12-31 22:30 MST7MDT", Some(refused)),
            (None, false, "2025-12-31 22:30 Japan", Some(refused)),
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
        let sydney = TimeZone::parse("Australia/Sydney").unwrap();
        let [utc, late, unclear] = ["UTC", "Paid (UTC-5)", "Paid (EST)"].map(|name| zone_of_column(name).unwrap());
        let format = DateFormat::parse("DD/MM/YYYY").unwrap();
        for (column, text, want) in [
            (None, "31/12/2025", Some("2025-12-30T13:00:00.000000Z")),
            (None, "31/02/2025", None),
            (None, "2025-12-31", None),
            (None, "2025-12-31 22:30", None),
            (Some(&utc), "2025-12-31 22:30", Some("2025-12-31T22:30:00.000000Z")),
            (Some(&late), "2025-12-31 22:30", Some("2026-01-01T03:30:00.000000Z")),
            (Some(&late), "2025-12-31 22:30 +1100", Some("2025-12-31T11:30:00.000000Z")),
            (Some(&unclear), "2025-12-31 22:30 UTC", Some("2025-12-31T22:30:00.000000Z")),
            (None, "31/12/2025 22:30 +1100", Some("2025-12-31T11:30:00.000000Z")),
            (Some(&utc), "2025-12-31 22:30:05.123456", Some("2025-12-31T22:30:05.123456Z")),
            (None, "2025-12-31 22:30:05 Australia/Sydney", Some("2025-12-31T11:30:05.000000Z")),
            (None, "2025-12-31 22:30:05.5 Australia/Sydney", None),
            (None, "2025-12-31T22:30:05.123456Z", None),
        ] {
            let reader = DateReader { format: Some(&format), column, account: &sydney };
            assert_eq!(reader.time(text).unwrap().map(|at| at.to_string()).as_deref(), want, "{text}");
        }
        for (column, text) in [(Some(&unclear), "2025-12-31 22:30"), (None, "2025-12-31 22:30 EST")] {
            let reader = DateReader { format: Some(&format), column, account: &sydney };
            let reason = reader.time(text).unwrap_err();
            assert!(reason.contains("the time zone \"EST\" is not clear") && reason.contains("+11:00"), "{reason}");
            assert!(reader.date(text).is_err());
        }
    }

    #[test]
    fn the_name_of_a_column_can_have_a_zone() {
        let offset = |text: &str| Some(Zone::Offset(text.to_owned()));
        let unclear = |text: &str| Some(Zone::Unclear(text.to_owned()));
        for (name, want) in [
            ("Date (UTC)", offset("Z")),
            ("created_at_utc", offset("Z")),
            ("Created UTC - by", offset("Z")),
            ("UTC time", offset("Z")),
            ("Due Date (UTC+10)", offset("+10:00")),
            ("Date (GMT+11:00)", offset("+11:00")),
            ("Date (GMT +5:30)", offset("+05:30")),
            ("created UTC-5", offset("-05:00")),
            ("created utc−0330 time", offset("-03:30")),
            ("Date (UTC+AEST)", unclear("UTC+AEST")),
            ("Date (UTC+10.5)", unclear("UTC+10.5")),
            ("Date (UTC+99)", unclear("UTC+99")),
            ("Date (GMT10)", unclear("GMT10")),
            ("Date (UTC 10)", unclear("UTC 10")),
            ("Date (UTC±1)", unclear("UTC±1")),
            ("Date (EST)", unclear("EST")),
            ("Date (AEST)", unclear("AEST")),
            ("Due Date (Europe/Berlin)", TimeZone::parse("Europe/Berlin").ok().map(Zone::Named)),
            ("Date (Etc/GMT+5)", TimeZone::parse("Etc/GMT+5").ok().map(Zone::Named)),
            ("Due Date", None),
            ("Outcome", None),
            ("Date (of issue)", None),
            ("gmtime", None),
        ] {
            assert_eq!(zone_of_column(name), want, "{name}");
        }
    }
}
