//! Parsers for the values of options that several commands have. Every error says what the value must be.

use std::ffi::OsStr;
use std::fmt::Display;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, ValueEnum};
use svc_core::accounts::sessions::Role;
use svc_core::env::Env;
use svc_core::platform::KeyScopes;
use svc_core::values::{Date, EventKind, TimeZone, Timestamp, kinds_of};

/// The file formats of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Comma-separated values with a header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

impl From<Format> for svc_import::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Csv => Self::Csv,
            Format::Ndjson => Self::Ndjson,
        }
    }
}

/// The longest duration that can be given: about a hundred years.
const MAX_DURATION: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Parses `read` or `read,write`, in any order.
pub(crate) fn scopes(text: &str) -> Result<KeyScopes, &'static str> {
    let (mut read, mut write) = (false, false);
    for scope in text.split(',') {
        match scope.trim() {
            "read" => read = true,
            "write" => write = true,
            _ => return Err("must be read or read,write"),
        }
    }
    if read { Ok(KeyScopes { write }) } else { Err("must be read or read,write, since every key has the scope read") }
}

/// Parses a duration such as `90d`, `24h` or `30m`, up to a hundred years.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("must be a duration such as 90d, 24h or 30m: {error}"))?;
    if duration > MAX_DURATION {
        return Err("must be at most 100 years".to_owned());
    }
    Ok(duration)
}

/// Parses a duration that is not zero.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be more than zero, such as 90d".to_owned()),
        lifetime => Ok(lifetime),
    }
}

/// A time as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimeArg {
    /// A moment.
    At(Timestamp),
    /// A date and a time of day without an offset, as `2026-03-14T15:09`: what clocks show in the time zone of the account.
    Local(String),
    /// A date, which stands for its start in the time zone of the account.
    Date(Date),
}

/// When something expires, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// After this long.
    In(Duration),
    /// At this time.
    At(TimeArg),
}

/// Parses a date and a time of day, with or without seconds and an offset from UTC. Spaces and a T are the same.
fn moment(text: &str) -> Option<TimeArg> {
    let text = text.trim().replacen(" +", "+", 1).replacen(" -", "-", 1).replacen(' ', "T", 1);
    let minutes = "2026-03-14T15:09".len();
    let with_seconds = [text.get(..minutes)?, ":00", text.get(minutes..)?].concat();
    // RFC 3339 has seconds, and people leave them out.
    let at = [&text, &with_seconds].into_iter().find_map(|text| Timestamp::parse_rounding_up(text).ok());
    // In UTC, clocks show every time once.
    let is_local = || TimeZone::UTC.time_of(&text, "").is_ok();
    at.map(TimeArg::At).or_else(|| is_local().then(|| TimeArg::Local(text.clone())))
}

/// Parses the time of a field. A date alone is none.
pub(crate) fn time(text: &str) -> Result<TimeArg, &'static str> {
    moment(text)
        .ok_or("must be a date and a time, such as '2026-03-14 15:09', or with an offset 2026-03-14T15:09:26+11:00")
}

/// Parses a duration that is not zero, a date or a time.
pub(crate) fn expiry(text: &str) -> Result<Expiry, String> {
    if let Ok(date) = Date::parse(text) {
        return Ok(Expiry::At(TimeArg::Date(date)));
    }
    if let Some(at) = moment(text) {
        return Ok(Expiry::At(at));
    }
    lifetime(text)
        .map(Expiry::In)
        .map_err(|error| format!("{error}; or a date such as 2026-03-14, or a time such as '2026-03-14 15:09'"))
}

/// Parses a time, a date, or a duration back from now such as `2h` or `7d`.
pub(crate) fn since(text: &str) -> Result<TimeArg, &'static str> {
    since_from(text, Env::system().now())
}

fn since_from(text: &str, now: Timestamp) -> Result<TimeArg, &'static str> {
    if let Ok(date) = Date::parse(text) {
        return Ok(TimeArg::Date(date));
    }
    match (moment(text), duration(text)) {
        (Some(at), _) => Ok(at),
        (_, Ok(ago)) => Ok(TimeArg::At(now.minus(ago))),
        _ => Err(
            "must be a time such as '2026-03-14 15:09' or 2026-03-14T15:09:26Z, a date such as 2026-03-14, or a duration back \
             from now such as 2h or 7d",
        ),
    }
}

/// Returns a parser for what a person may do in the dashboard.
pub(crate) fn role() -> impl TypedValueParser<Value = Role> {
    one_of([
        (Role::Viewer, "See everything except secrets"),
        (Role::Developer, "Change records, take payments, manage webhooks and replay deliveries"),
        (Role::Owner, "Manage API keys, settings, members and sessions"),
    ])
}

/// Returns a parser for one of these values, each with its help.
pub(crate) fn one_of<T>(values: impl IntoIterator<Item = (T, &'static str)>) -> impl TypedValueParser<Value = T>
where
    T: Copy + Display + Send + Sync + 'static,
{
    let values: Vec<(T, &str)> = values.into_iter().collect();
    let possible: Vec<PossibleValue> =
        values.iter().map(|(value, help)| PossibleValue::new(value.to_string()).help(*help)).collect();
    PossibleValuesParser::new(possible).try_map(move |text| {
        let named = values.iter().find(|(value, _)| value.to_string() == text);
        named.map(|(value, _)| *value).ok_or("must be one of the possible values")
    })
}

/// Returns a parser for the kind of an event: a built-in one, or the name of a custom one, which may be in the file of event
/// kinds.
pub(crate) fn kind_of_event() -> impl TypedValueParser<Value = EventKind> {
    KindsOfEvents(EventKind::BUILT_IN.iter().map(ToString::to_string).collect())
        .try_map(|text| text.parse::<EventKind>())
}

/// A parser for one of the event kinds of a webhook: one of these texts, or the name of a custom kind.
#[derive(Clone, Debug)]
pub(crate) struct KindsOfEvents(pub(crate) Vec<String>);

impl TypedValueParser for KindsOfEvents {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let text = value.to_str().unwrap_or_default();
        if let Some(kind) = EventKind::from_text(text) {
            return Ok(kind.to_string());
        }
        let refused = PossibleValuesParser::new(self.0.clone()).parse_ref(command, arg, value);
        // `contact.*` is no kind: each one is named.
        let known = self.0.iter().filter_map(|name| EventKind::from_text(name));
        let meant: Vec<String> = kinds_of(text, known).iter().map(ToString::to_string).collect();
        refused.map_err(|mut error| {
            if !meant.is_empty() {
                error.insert(ContextKind::SuggestedValue, ContextValue::Strings(meant));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_must_include_read() {
        let read = |text| scopes(text).ok().map(|scopes| scopes.write);
        assert_eq!(read("read"), Some(false));
        assert_eq!(read("write, read"), Some(true));
        for bad in ["", "write", "READ", "read,", "read,admin", "read write"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_are_validated() {
        assert_eq!(duration("90d"), Ok(Duration::from_secs(90 * 24 * 3600)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for bad in ["", "90", "-1d", "90x", "101y", "9999999999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(lifetime("0s").is_err());
    }

    #[test]
    fn since_is_a_time_or_a_duration() {
        let now = Timestamp::parse("2026-03-14T15:09:26Z").unwrap();
        let read = |text| match since_from(text, now) {
            Ok(TimeArg::At(at)) => Some(at.to_string()),
            Ok(TimeArg::Local(text)) => Some(text),
            Ok(TimeArg::Date(date)) => Some(date.to_string()),
            Err(_) => None,
        };
        assert_eq!(read("7d").as_deref(), Some("2026-03-07T15:09:26.000000Z"));
        assert_eq!(read("2026-03-14 15:09:26Z"), Some(now.to_string()));
        assert_eq!(read("1h 30m").as_deref(), Some("2026-03-14T13:39:26.000000Z"));
        assert_eq!(read("2026-03-14T00:00:00.0000001+11:00").as_deref(), Some("2026-03-13T13:00:00.000001Z"));
        assert_eq!(read("2026-03-14").as_deref(), Some("2026-03-14"));
        // What is shown can be typed again, and seconds can be left out.
        for same in
            ["2026-03-14 15:09:00+11:00", "2026-03-14T15:09+11:00", "2026-03-14 15:09 +11:00", "2026-03-14 04:09Z"]
        {
            assert_eq!(read(same).as_deref(), Some("2026-03-14T04:09:00.000000Z"), "{same}");
        }
        for local in ["2026-03-14T15:09:26", "2026-03-14 15:09:26"] {
            assert_eq!(read(local).as_deref(), Some("2026-03-14T15:09:26"));
        }
        assert_eq!(read(" 2026-03-14 15:09").as_deref(), Some("2026-03-14T15:09"));
        for bad in
            ["", "yesterday", "2026-02-30", "2026-3-14", "2026-03-14 25:00", "15:09", "-2h", "101y", "٢٠٢٦-03-14 15"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_expiry_is_a_duration_a_date_or_a_time() {
        assert!(matches!(expiry("90d"), Ok(Expiry::In(_))));
        assert!(matches!(expiry("2099-03-14"), Ok(Expiry::At(TimeArg::Date(_)))));
        assert!(matches!(expiry("2099-03-14T15:09:26+11:00"), Ok(Expiry::At(TimeArg::At(_)))));
        assert!(matches!(expiry("2099-03-14 15:09"), Ok(Expiry::At(TimeArg::Local(_)))));
        assert!(expiry("0s").is_err() && expiry("soon").is_err());
    }
}
