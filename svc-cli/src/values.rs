//! Reads the single values of the command line, mostly with the parsers that the API itself uses. Every
//! error says what the value must be.

use std::time::Duration;

use svc_core::error::Issue;
use svc_core::types::{TenantId, Text, parse_uuid};

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
    let duration =
        humantime::parse_duration(text).map_err(|why| format!("must be a duration such as 90d, 24h or 30m: {why}"))?;
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
}
