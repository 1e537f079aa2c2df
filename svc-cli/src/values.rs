//! Parsers for the values of options and arguments, most of which use the parsers of the API.
//!
//! Every error says what the value must be.

mod date_format;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::num::NonZeroU32;
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use hyper::{Method, StatusCode, Uri};
use svc_core::accounts::limits::{CappedCollection, parse_limit, parse_max_webhooks, parse_write_limit};
use svc_core::accounts::sessions::Role;
use svc_core::env::Env;
use svc_core::error::Issue;
use svc_core::platform::{ImportKind, KeyScopes};
use svc_core::values::{Date, EventKind, EventKinds, Secret, Timestamp};
use svc_core::webhooks::deliveries::DeliveryStatus;
use url::Url;

pub use self::date_format::DateFormat;
use crate::presets::{PRESETS, Preset};

/// The file formats of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

/// The longest duration that can be given: about a hundred years.
const MAX_DURATION: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Parses `read` or `read,write`, in any order.
///
/// # Errors
/// The text is anything else. `write` alone is an error, since the key would silently get `read` too.
///
/// ```
/// use svc_cli::values::scopes;
/// assert!(scopes("read,write").unwrap().write);
/// assert!(!scopes("read").unwrap().write);
/// assert!(scopes("write").is_err());
/// ```
pub fn scopes(text: &str) -> Result<KeyScopes, &'static str> {
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
///
/// # Errors
/// The text is not a duration, or it is too long.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("must be a duration such as 90d, 24h or 30m: {error}"))?;
    if duration > MAX_DURATION {
        return Err("must be at most 100 years".to_owned());
    }
    Ok(duration)
}

/// Parses a duration that is not zero.
///
/// # Errors
/// Those of [`duration`], and a duration of zero.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be more than zero, such as 90d".to_owned()),
        lifetime => Ok(lifetime),
    }
}

/// A rate limit in requests per minute. `None` stands for the server's limit.
pub type Limit = Option<NonZeroU32>;

/// Parses a rate limit: a whole number of at least 1, or `default`.
///
/// # Errors
/// The text is neither.
///
/// ```
/// use svc_cli::values::limit;
/// assert_eq!(limit("600").unwrap().map(u32::from), Some(600));
/// assert_eq!(limit("default"), Ok(None));
/// assert!(limit("0").is_err());
/// ```
pub fn limit(text: &str) -> Result<Limit, Issue> {
    or_default(text, parse_limit)
}

/// Parses a limit, or `default`, which is `None`.
fn or_default<T>(text: &str, parse: fn(&str) -> Result<T, Issue>) -> Result<Option<T>, Issue> {
    if text == "default" {
        return Ok(None);
    }
    parse(text).map(Some).map_err(|issue| Issue { message: format!("{issue}, or default").into(), ..issue })
}

/// A limit of webhook subscriptions, or `None` for the server's.
pub type MaxWebhooks = Option<u32>;

/// Parses a number of webhook subscriptions, or `default`.
///
/// # Errors
/// The text is neither a whole number from 1 to 1000 nor `default`.
pub fn max_webhooks(text: &str) -> Result<MaxWebhooks, Issue> {
    or_default(text, parse_max_webhooks)
}

/// Parses the write limit of a resource, such as `quotes=20` or `quotes=default`.
///
/// # Errors
/// The resource is not known, or the limit is not valid.
pub fn write_limit(text: &str) -> Result<(CappedCollection, Limit), Issue> {
    parse_write_limit(text, limit)
}

/// The field that a column of an import is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMapping {
    /// The name of the column.
    pub column: String,
    /// The name of the field. `None` if the column is left out.
    pub field: Option<String>,
}

impl Display for ColumnMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.column, self.field.as_deref().unwrap_or_default())
    }
}

/// Parses the field that a column of an import is for, such as `First Name=first_name`, or `Notes=` for a column to leave
/// out.
///
/// # Errors
/// The text has no column or no equals sign.
///
/// ```
/// use svc_cli::values::column_mapping;
/// assert_eq!(column_mapping("- Email=email").unwrap().field.as_deref(), Some("email"));
/// assert_eq!(column_mapping("Notes=").unwrap().field, None);
/// assert!(column_mapping("Notes").is_err());
/// ```
pub fn column_mapping(text: &str) -> Result<ColumnMapping, &'static str> {
    // A field has no equals sign, but a column can.
    match text.rsplit_once('=').map(|(column, field)| (column.trim(), field.trim())) {
        Some((column, field)) if !column.is_empty() => {
            let field = Some(field.to_owned()).filter(|field| !field.is_empty());
            Ok(ColumnMapping { column: column.to_owned(), field })
        }
        _ => Err(
            "must be a column and a field, such as \"First Name=first_name\", or a column to leave out, such as \"Notes=\"",
        ),
    }
}

/// The status or currency that a text in the cells of an import stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueMapping {
    /// The text of the cell.
    pub text: String,
    /// The name of the status or currency.
    pub value: String,
}

impl Display for ValueMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", format!("{}={}", self.text, self.value))
    }
}

/// Parses what a text in the cells of an import stands for, such as `Awaiting Payment=sent`.
///
/// # Errors
/// The text has no text of a cell or no value.
pub fn value_mapping(text: &str) -> Result<ValueMapping, &'static str> {
    match text.rsplit_once('=').map(|(text, value)| (text.trim(), value.trim())) {
        Some((text, value)) if !text.is_empty() && !value.is_empty() => {
            Ok(ValueMapping { text: text.to_owned(), value: value.to_owned() })
        }
        _ => Err("must be a text and a status or currency, such as \"Awaiting Payment=sent\""),
    }
}

/// Parses the character before the decimals of an amount.
///
/// # Errors
/// It is neither a point nor a comma.
pub fn decimal(text: &str) -> Result<char, &'static str> {
    match text {
        "." => Ok('.'),
        "," => Ok(','),
        _ => Err("must be , or ."),
    }
}

/// A time as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeArg {
    /// A moment.
    At(Timestamp),
    /// A date, which stands for its start in the time zone of the account.
    Date(Date),
}

/// When something expires, as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// After this long.
    In(Duration),
    /// At this time.
    At(TimeArg),
}

/// Parses a duration that is not zero, a date or an RFC 3339 time.
///
/// # Errors
/// The text is none of them.
///
/// ```
/// use svc_cli::values::{Expiry, TimeArg, expiry};
/// assert!(matches!(expiry("90d"), Ok(Expiry::In(_))));
/// assert!(matches!(expiry("2099-03-14"), Ok(Expiry::At(TimeArg::Date(_)))));
/// assert!(matches!(expiry("2099-03-14T15:09:26+11:00"), Ok(Expiry::At(TimeArg::At(_)))));
/// assert!(expiry("0s").is_err() && expiry("soon").is_err());
/// ```
pub fn expiry(text: &str) -> Result<Expiry, String> {
    if let Ok(date) = Date::parse(text) {
        return Ok(Expiry::At(TimeArg::Date(date)));
    }
    if let Ok(at) = Timestamp::parse_rounding_up(&text.replacen(' ', "T", 1)) {
        return Ok(Expiry::At(TimeArg::At(at)));
    }
    lifetime(text).map(Expiry::In).map_err(|error| format!("{error}; or a date such as 2026-03-14, or a time"))
}

/// Parses an RFC 3339 time, a date, or a duration back from now such as `2h` or `7d`.
///
/// # Errors
/// The text is none of them.
///
/// ```
/// use svc_cli::values::{TimeArg, since};
/// assert!(matches!(since("2h"), Ok(TimeArg::At(_))));
/// assert!(matches!(since("2026-03-14T15:09:26+11:00"), Ok(TimeArg::At(_))));
/// assert!(matches!(since("2026-03-14"), Ok(TimeArg::Date(_))));
/// assert!(since("yesterday").is_err());
/// ```
pub fn since(text: &str) -> Result<TimeArg, &'static str> {
    since_from(text, Env::system().now())
}

fn since_from(text: &str, now: Timestamp) -> Result<TimeArg, &'static str> {
    if let Ok(date) = Date::parse(text) {
        return Ok(TimeArg::Date(date));
    }
    // RFC 3339 allows a space in place of the T, which is how this program prints times.
    match (Timestamp::parse_rounding_up(&text.replacen(' ', "T", 1)), duration(text)) {
        (Ok(at), _) => Ok(TimeArg::At(at)),
        (_, Ok(ago)) => Ok(TimeArg::At(now.minus(ago))),
        _ => Err(
            "must be a time such as 2026-03-14T15:09:26Z, a date such as 2026-03-14, or a duration back from now such as 2h \
             or 7d",
        ),
    }
}

/// Parses the method of a request, in any case.
///
/// # Errors
/// The API has no such method.
pub fn method(text: &str) -> Result<Method, &'static str> {
    let method = text.to_ascii_uppercase().parse().ok();
    let known = [Method::GET, Method::POST, Method::PATCH, Method::DELETE];
    method.filter(|method| known.contains(method)).ok_or("must be GET, POST, PATCH or DELETE")
}

/// Parses the path of a request, whose first slash can be omitted.
///
/// # Errors
/// The text has a host, a space or a control character, or leads out of the platform API.
///
/// ```
/// use svc_cli::values::api_path;
/// assert_eq!(api_path("contacts?limit=1").unwrap(), "/contacts?limit=1");
/// assert_eq!(api_path("/platform/v1/accounts").unwrap(), "/accounts");
/// assert!(api_path("https://example.com").is_err());
/// assert!(api_path("/accounts/../../metrics").is_err());
/// ```
pub fn api_path(text: &str) -> Result<String, &'static str> {
    let path = text.strip_prefix("/platform/v1").filter(|rest| rest.starts_with('/')).unwrap_or(text);
    let path = path.strip_prefix('/').unwrap_or(path);
    let (segments, _) = path.split_once('?').unwrap_or((path, ""));
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['#', '\\']);
    if !is_plain || segments.contains("//") || segments.split('/').any(|segment| [".", ".."].contains(&segment)) {
        return Err("must be a path below /platform/v1, such as /contacts?limit=10 or /accounts");
    }
    Ok(format!("/{path}"))
}

/// Returns a parser for the status of a delivery.
pub fn delivery_statuses() -> impl TypedValueParser<Value = DeliveryStatus> {
    PossibleValuesParser::new(DeliveryStatus::ALL.iter().map(|status| status.as_str()))
        .try_map(|text| DeliveryStatus::from_text(&text).ok_or("must be the status of a delivery"))
}

/// Returns a parser for what a person may do in the dashboard.
pub fn role() -> impl TypedValueParser<Value = Role> {
    one_of([
        (Role::Viewer, "See everything except secrets"),
        (Role::Developer, "Manage webhooks, and replay deliveries"),
        (Role::Owner, "Manage API keys, settings, members and sessions"),
    ])
}

/// Returns a parser for the type of the records of an import.
pub fn import_kind() -> impl TypedValueParser<Value = ImportKind> {
    one_of([
        (ImportKind::Contacts, "People and companies"),
        (ImportKind::Invoices, "Invoices, with any status"),
        (ImportKind::All, "All records of an account, as `svc export all` writes them"),
    ])
}

/// Returns a parser for the name of a program whose exports can be imported.
pub fn preset() -> impl TypedValueParser<Value = Preset> {
    one_of(PRESETS.map(|preset| (preset, preset.title)))
}

/// Returns a parser for one of these values, each with its help.
fn one_of<T, const N: usize>(values: [(T, &'static str); N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Display + Send + Sync + 'static,
{
    let possible = values.map(|(value, help)| PossibleValue::new(value.to_string()).help(help));
    PossibleValuesParser::new(possible).try_map(move |text| {
        let named = values.iter().find(|(value, _)| value.to_string() == text);
        named.map(|(value, _)| *value).ok_or("must be one of the possible values")
    })
}

/// Returns a parser of the file of event kinds.
pub fn event_kinds_file() -> impl TypedValueParser<Value = EventKinds> {
    PathBufValueParser::new().try_map(|path| EventKinds::from_file(&path))
}

/// Returns a parser for the kind of an event: a built-in one, or the name of a custom one, which may be in the file of event
/// kinds.
pub fn kind_of_event() -> impl TypedValueParser<Value = EventKind> {
    KindsOfEvents(EventKind::BUILT_IN.iter().map(ToString::to_string).collect())
        .try_map(|text| text.parse::<EventKind>())
}

/// A parser for one of the event kinds of a webhook: one of these texts, or the name of a custom kind.
#[derive(Clone, Debug)]
pub struct KindsOfEvents(pub Vec<String>);

impl TypedValueParser for KindsOfEvents {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        match value.to_str().and_then(EventKind::from_text) {
            Some(kind) => Ok(kind.to_string()),
            None => PossibleValuesParser::new(self.0.clone()).parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// A parser for the event kinds that `svc event emit` can emit: those of stays and cohorts, and custom ones. All other
/// kinds are emitted only by the operations that they report.
#[derive(Clone, Copy, Debug)]
pub struct KindToEmit;

/// Returns whether `svc event emit` can emit events of this kind.
pub fn can_be_emitted(kind: EventKind) -> bool {
    kind.is_external() || !kind.is_built_in()
}

impl KindToEmit {
    fn parse_kind(text: &str) -> Result<EventKind, String> {
        let possible: Vec<&str> =
            EventKind::BUILT_IN.iter().filter(|kind| kind.is_external()).map(|kind| kind.as_str()).collect();
        let possible = format!("must be one of {}, or of --event-kinds", possible.join(", "));
        match EventKind::from_text(text) {
            Some(kind) if can_be_emitted(kind) => Ok(kind),
            Some(kind) => Err(format!("{kind} is emitted only by its own operation; {possible}")),
            None => Err(possible),
        }
    }
}

impl TypedValueParser for KindToEmit {
    type Value = EventKind;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<EventKind, clap::Error> {
        TypedValueParser::parse_ref(&Self::parse_kind, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let kinds = EventKind::BUILT_IN.iter().filter(|kind| kind.is_external());
        Some(Box::new(kinds.map(|kind| PossibleValue::new(kind.as_str()))))
    }
}

/// Wraps a secret. It is validated later, since clap would print the value in its error message.
///
/// # Errors
/// Never.
pub fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

/// Parses an HTTP status that a sender treats as a failure.
///
/// # Errors
/// The status is not between 300 and 599.
pub fn failing_status(text: &str) -> Result<StatusCode, &'static str> {
    let status = text.parse::<StatusCode>().ok().filter(|status| (300..600).contains(&status.as_u16()));
    status.ok_or("must be a status from 300 to 599, such as 500")
}

/// Parses an `http://` URL. The scheme can be omitted, and a number alone is a port of this machine. Characters that a
/// request line cannot have are percent-encoded.
///
/// # Errors
/// The URL is not valid, has another scheme, names no host, or contains a user name or password.
///
/// ```
/// use svc_cli::values::http_url;
/// assert_eq!(http_url("localhost:3000/hook?a=1").unwrap(), "http://localhost:3000/hook?a=1");
/// assert_eq!(http_url("3000").unwrap(), "http://localhost:3000/");
/// assert!(http_url("https://example.com").is_err());
/// ```
pub fn http_url(text: &str) -> Result<Uri, &'static str> {
    const INVALID: &str = "must be a URL such as http://localhost:3000/webhooks, or a port such as 3000";
    let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']));
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let whole = match (has_scheme, host.bytes().all(|byte| byte.is_ascii_digit())) {
        (true, _) => text.to_owned(),
        (false, _) if host.is_empty() => return Err("must name a host, without a user name or password"),
        (false, true) => format!("http://localhost:{text}"),
        (false, false) => format!("http://{text}"),
    };
    let mut url = Url::parse(&whole).map_err(|_| INVALID)?;
    if url.scheme() != "http" {
        return Err("must be an http:// URL; https:// is not supported here");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must name a host, without a user name or password");
    }
    url.set_fragment(None);
    url.as_str().parse().map_err(|_| INVALID)
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
            Ok(TimeArg::Date(date)) => Some(date.to_string()),
            Err(_) => None,
        };
        assert_eq!(read("7d").as_deref(), Some("2026-03-07T15:09:26.000000Z"));
        assert_eq!(read("2026-03-14 15:09:26Z"), Some(now.to_string()));
        assert_eq!(read("1h 30m").as_deref(), Some("2026-03-14T13:39:26.000000Z"));
        assert_eq!(read("2026-03-14T00:00:00.0000001+11:00").as_deref(), Some("2026-03-13T13:00:00.000001Z"));
        assert_eq!(read("2026-03-14").as_deref(), Some("2026-03-14"));
        for bad in ["", "yesterday", "2026-02-30", "2026-3-14", "2026-03-14T15:09:26", "-2h", "101y"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_kinds_of_external_events_can_be_emitted() {
        let possible = KindToEmit.possible_values().unwrap();
        let names: Vec<String> = possible.map(|value| value.get_name().to_owned()).collect();
        assert_eq!(names.len(), 7);
        assert!(names.iter().all(|name| KindToEmit::parse_kind(name).is_ok()));
        assert!(KindToEmit::parse_kind("invoice.paid").unwrap_err().contains("own operation"));
        assert!(KindToEmit::parse_kind("stay.Created").unwrap_err().starts_with("must be one of stay.created, "));
    }

    #[test]
    fn a_failing_status_is_between_300_and_599() {
        assert_eq!(failing_status("500"), Ok(StatusCode::INTERNAL_SERVER_ERROR));
        for bad in ["", "200", "299", "600", "999", "5xx"] {
            assert!(failing_status(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_forward_url_is_plain_http() {
        for (good, url) in [
            ("http://[::1]:3000/", "http://[::1]:3000/"),
            ("HTTP://localhost", "http://localhost/"),
            ("127.0.0.1", "http://127.0.0.1/"),
            ("app:8080/hook", "http://app:8080/hook"),
            ("3000", "http://localhost:3000/"),
            ("3000/hook?a", "http://localhost:3000/hook?a"),
            ("localhost:3000/é ü?q=ß#part", "http://localhost:3000/%C3%A9%20%C3%BC?q=%C3%9F"),
            ("localhost/?next=http://b/", "http://localhost/?next=http://b/"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ] {
            assert_eq!(http_url(good).map(|url| url.to_string()).as_deref(), Ok(url), "{good}");
        }
        for bad in ["", "/hook", "https://a", "http://", "http://a@b/", "ftp://a", "http://a b", "http://:80", "65536"]
        {
            assert!(http_url(bad).is_err(), "{bad}");
        }
    }
}
