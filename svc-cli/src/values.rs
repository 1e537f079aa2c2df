//! Reads the single values of the command line, mostly with the parsers that the API itself uses. Every
//! error says what the value must be.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use hyper::{StatusCode, Uri};
use svc_core::accounts::limits::{CappedCollection, parse_limit, parse_write_limit};
use svc_core::error::Issue;
use svc_core::values::EventKind;
use svc_core::values::{Secret, TenantId, Text, Timestamp, parse_uuid};
use svc_core::webhooks::deliveries::DeliveryStatus;

/// The longest lifetime that can be asked for, in seconds: about a hundred years.
const MAX_DURATION: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// The rights of a new key. Every key may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes {
    /// Whether it may also write.
    pub write: bool,
}

/// Reads the id of a tenant.
///
/// # Errors
/// When it is no UUID.
pub fn tenant_id(text: &str) -> Result<TenantId, Issue> {
    parse_uuid(text).map(TenantId)
}

/// Reads a name: one line of at most 300 characters, trimmed.
///
/// # Errors
/// What is wrong with it.
pub fn name(text: &str) -> Result<String, Issue> {
    Text::<300>::parse(text).map(|name| name.as_str().to_owned())
}

/// Reads `read` or `read,write`.
///
/// # Errors
/// When it is anything else; `write` alone, since it would silently give `read` too.
///
/// ```
/// use svc_cli::values::scopes;
/// assert!(scopes("read,write").unwrap().write);
/// assert!(!scopes("read").unwrap().write);
/// assert!(scopes("write").is_err());
/// ```
pub fn scopes(text: &str) -> Result<Scopes, &'static str> {
    let (mut read, mut write) = (false, false);
    for scope in text.split(',') {
        match scope.trim() {
            "read" => read = true,
            "write" => write = true,
            _ => return Err("must be read or read,write"),
        }
    }
    if read { Ok(Scopes { write }) } else { Err("must be read or read,write: every key may read") }
}

/// Reads a duration such as `90d`, `24h` or `30m`, up to a hundred years.
///
/// # Errors
/// What is wrong with it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("must be a duration such as 90d, 24h or 30m: {error}"))?;
    if duration > MAX_DURATION {
        return Err("must be at most 100 years".to_owned());
    }
    Ok(duration)
}

/// Reads a duration that is not zero.
///
/// # Errors
/// What is wrong with it.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be more than zero, such as 90d".to_owned()),
        lifetime => Ok(lifetime),
    }
}

/// A limit of a tenant's own; `None` for the server's.
pub type Limit = Option<NonZeroU32>;

/// Reads a limit: a whole number from 1 on, or `default`.
///
/// # Errors
/// When it is neither.
///
/// ```
/// use svc_cli::values::limit;
/// assert_eq!(limit("600").unwrap().map(u32::from), Some(600));
/// assert_eq!(limit("default"), Ok(None));
/// assert!(limit("0").is_err());
/// ```
pub fn limit(text: &str) -> Result<Limit, Issue> {
    if text == "default" {
        return Ok(None);
    }
    parse_limit(text).map(Some).map_err(|issue| Issue { message: format!("{issue}, or default").into(), ..issue })
}

/// Reads the limit of the writes of a resource, such as `quotes=20` or `quotes=default`.
///
/// # Errors
/// Which resources there are, when it names none; what is wrong with the limit.
pub fn write_limit(text: &str) -> Result<(CappedCollection, Limit), Issue> {
    parse_write_limit(text, limit)
}

/// The beginning of a span of time that ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// This instant.
    At(Timestamp),
    /// So long ago.
    Ago(Duration),
}

impl Since {
    /// The instant that is meant at `now`.
    pub fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(duration) => now.minus(duration),
        }
    }
}

/// Reads a time of RFC 3339, or a duration back from now such as `2h` or `7d`.
///
/// # Errors
/// When it is neither.
///
/// ```
/// use svc_cli::values::{Since, since};
/// assert_eq!(since("2h"), Ok(Since::Ago(std::time::Duration::from_secs(7200))));
/// assert!(matches!(since("2026-03-14T15:09:26+11:00"), Ok(Since::At(_))));
/// ```
pub fn since(text: &str) -> Result<Since, &'static str> {
    // RFC 3339 allows a blank for the T, as times are shown here.
    match (Timestamp::parse_rounding_up(&text.replacen(' ', "T", 1)), duration(text)) {
        (Ok(at), _) => Ok(Since::At(at)),
        (_, Ok(ago)) => Ok(Since::Ago(ago)),
        _ => Err("must be a time such as 2026-03-14T15:09:26Z, or a duration back from now such as 2h or 7d"),
    }
}

/// Reads how far a delivery is.
pub fn delivery_states() -> impl TypedValueParser<Value = DeliveryStatus> {
    PossibleValuesParser::new(DeliveryStatus::ALL.iter().map(|state| state.as_str()))
        .try_map(|text| DeliveryStatus::from_text(&text).ok_or("must be a status of deliveries"))
}

/// Reads the kind of an event.
pub fn event_kinds() -> impl TypedValueParser<Value = EventKind> {
    PossibleValuesParser::new(EventKind::ALL.iter().map(|kind| kind.as_str()))
        .try_map(|text| EventKind::from_text(&text).ok_or("must be a kind of events"))
}

/// Reads the kind of an event that can be emitted from outside: of stays and cohorts. The others are part of
/// the operations that they tell of.
#[derive(Clone, Copy, Debug)]
pub struct KindToEmit;

impl KindToEmit {
    fn read(text: &str) -> Result<EventKind, String> {
        let possible: Vec<&str> =
            EventKind::ALL.iter().filter(|kind| kind.is_external()).map(|kind| kind.as_str()).collect();
        match EventKind::from_text(text) {
            Some(kind) if kind.is_external() => Ok(kind),
            Some(kind) => {
                Err(format!("{kind} is fired by its own operation alone; must be one of {}", possible.join(", ")))
            }
            None => Err(format!("must be one of {}", possible.join(", "))),
        }
    }
}

impl TypedValueParser for KindToEmit {
    type Value = EventKind;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<EventKind, clap::Error> {
        TypedValueParser::parse_ref(&Self::read, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let kinds = EventKind::ALL.iter().filter(|kind| kind.is_external());
        Some(Box::new(kinds.map(|kind| PossibleValue::new(kind.as_str()))))
    }
}

/// Reads a secret. It is judged later, since an error about it here would show it.
///
/// # Errors
/// None.
pub fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

/// Reads a status that a sender takes for a failure.
///
/// # Errors
/// When it is not one of 300 to 599.
pub fn failing_status(text: &str) -> Result<StatusCode, &'static str> {
    let status = text.parse::<StatusCode>().ok().filter(|status| (300..600).contains(&status.as_u16()));
    status.ok_or("must be a status from 300 to 599, such as 500")
}

/// Reads the URL of a server on http; the `http://` may be left out.
///
/// # Errors
/// What is wrong with it.
///
/// ```
/// use svc_cli::values::http_url;
/// assert_eq!(http_url("localhost:3000/hook?a=1").unwrap(), "http://localhost:3000/hook?a=1");
/// assert!(http_url("https://example.com").is_err());
/// ```
pub fn http_url(text: &str) -> Result<Uri, &'static str> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url: Uri = whole.parse().map_err(|_| "must be a URL such as http://localhost:3000/webhooks")?;
    if url.scheme_str() != Some("http") {
        return Err("must be an http:// URL; TLS is not spoken here");
    }
    let named = url.host().is_some_and(|host| !host.is_empty());
    let bare = url.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if named && bare { Ok(url) } else { Err("must name a host, without user name and password") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_name_read() {
        let read = |text| scopes(text).ok().map(|scopes| scopes.write);
        assert_eq!(read("read"), Some(false));
        assert_eq!(read("write, read"), Some(true));
        for bad in ["", "write", "READ", "read,", "read,admin", "read write"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_are_bounded() {
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
        let read = |text| since(text).ok().map(|since| since.from(now).to_string());
        assert_eq!(read("7d").as_deref(), Some("2026-03-07T15:09:26.000000Z"));
        assert_eq!(read("2026-03-14 15:09:26Z"), Some(now.to_string()));
        assert_eq!(read("1h 30m").as_deref(), Some("2026-03-14T13:39:26.000000Z"));
        assert_eq!(read("2026-03-14T00:00:00.0000001+11:00").as_deref(), Some("2026-03-13T13:00:00.000001Z"));
        for bad in ["", "yesterday", "2026-03-14", "2026-03-14T15:09:26", "-2h", "101y"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_events_from_outside_can_be_emitted() {
        let possible = KindToEmit.possible_values().unwrap();
        let names: Vec<String> = possible.map(|value| value.get_name().to_owned()).collect();
        assert_eq!(names.len(), 7);
        assert!(names.iter().all(|name| KindToEmit::read(name).is_ok()));
        assert!(KindToEmit::read("invoice.paid").unwrap_err().contains("own operation"));
        assert!(KindToEmit::read("stay.Created").unwrap_err().starts_with("must be one of stay.created, "));
    }

    #[test]
    fn a_failing_status_is_one() {
        assert_eq!(failing_status("500"), Ok(StatusCode::INTERNAL_SERVER_ERROR));
        for bad in ["", "200", "299", "600", "999", "5xx"] {
            assert!(failing_status(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_url_to_forward_to_is_plain_http() {
        for good in ["http://[::1]:3000/", "HTTP://localhost", "127.0.0.1", "app:80/hook"] {
            assert!(http_url(good).is_ok(), "{good}");
        }
        for bad in ["", "/hook", "https://a", "http://", "http://a@b/", "ftp://a", "http://a b", "http://:80"] {
            assert!(http_url(bad).is_err(), "{bad}");
        }
    }
}
