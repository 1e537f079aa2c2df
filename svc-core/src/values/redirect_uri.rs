//! Redirect URIs of apps, and how a requested one is compared with them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use url::{ParseError, Url};

use crate::error::{FieldCode, Issue};

const MAX_LENGTH: usize = 2000;
/// The hosts of this device, on which a native app listens at any port (RFC 8252 §7.3).
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// A URI to which an app lets the browser return: `https` of any host, `http` of this device, or a scheme of a native app.
///
/// A requested URI is compared as a text, character by character. The port of a URI of this device alone may differ, since a
/// native app gets another one each time.
///
/// ```
/// use svc_core::values::RedirectUri;
///
/// let uri = RedirectUri::parse("http://127.0.0.1/callback")?;
/// assert!(uri.matches("http://127.0.0.1:52113/callback"));
/// assert!(!uri.matches("http://127.0.0.1:52113/callback/") && !uri.matches("http://localhost/callback"));
/// # Ok::<(), svc_core::error::Issue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RedirectUri(Box<str>);

impl RedirectUri {
    /// Checks a URI.
    ///
    /// # Errors
    /// `too_short`, `too_long` over 2000 characters, and `invalid_format` with what is wrong.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        if text.is_empty() {
            return Err(Issue::new(FieldCode::TooShort, "must not be empty"));
        }
        if text.len() > MAX_LENGTH {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_LENGTH} characters")));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("must consist of visible ASCII characters; encode others with %"));
        }
        if text.contains(['#', '\\', '*']) {
            return Err(invalid("must have no fragment (#), no backslash and no placeholder (*)"));
        }
        let url = Url::parse(text).map_err(|error| {
            invalid(match error {
                ParseError::RelativeUrlWithoutBase => "must begin with https://, as in https://example.com/callback",
                _ => "must be a URI such as https://example.com/callback",
            })
        })?;
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        if authority.split(['/', '?']).next().unwrap_or_default().contains('@') {
            return Err(invalid("must not contain a user name or password"));
        }
        match url.scheme() {
            "https" => {}
            "http" if loopback(text).is_some() => {}
            "http" => {
                return Err(invalid("must use https; http is for 127.0.0.1, [::1] and localhost alone"));
            }
            scheme if scheme.contains('.') => {}
            scheme if url.has_host() && !is_of_system(scheme) => {}
            _ => {
                return Err(invalid(
                    "must use https, or a scheme of your app, as in com.example.app:/callback or vscode://publisher/callback",
                ));
            }
        }
        if url.port() == Some(0) {
            return Err(invalid("must have a port from 1 to 65535, or none"));
        }
        // Browsers go to the canonical form, and what is compared as a text should have no other.
        if url.as_str() != text && url.as_str().strip_suffix('/') != Some(text) {
            return Err(invalid(format!("must be written in its canonical form, {url}")));
        }
        Ok(Self(text.into()))
    }

    /// Returns a URI from the store, which was checked before it was stored.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the URI.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the URI has a scheme of a native app that names no domain, such as `vscode`. Any program can register such a
    /// scheme for itself (RFC 8252 §7.1).
    pub fn has_short_scheme(&self) -> bool {
        let scheme = self.0.split(':').next().unwrap_or_default();
        !scheme.contains('.') && !matches!(scheme, "https" | "http")
    }

    /// Returns whether the browser returns to a native app by a scheme of its own.
    pub fn has_own_scheme(&self) -> bool {
        self.has_short_scheme() || self.0.split(':').next().is_some_and(|scheme| scheme.contains('.'))
    }

    /// Returns whether a requested URI is this one: the same text, but for the port if it is one of this device.
    pub fn matches(&self, requested: &str) -> bool {
        match (loopback(&self.0), loopback(requested)) {
            (Some(own), Some(requested)) => own == requested,
            _ => *self.0 == *requested,
        }
    }

    /// Returns the place to which the browser returns, for people: the host, `this device`, or the scheme of a native app.
    pub fn destination(&self) -> String {
        if loopback(&self.0).is_some() {
            return "this device".to_owned();
        }
        match self.0.strip_prefix("https://") {
            Some(rest) => rest.split(['/', '?']).next().unwrap_or_default().to_owned(),
            None => self.0.split(':').next().unwrap_or_default().to_owned(),
        }
    }
}

text_value!([] RedirectUri, as_str);

impl JsonSchema for RedirectUri {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "RedirectUri".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Parsers of the format `uri` refuse some of what is sent back as it was registered.
        json_schema!({ "type": "string", "maxLength": MAX_LENGTH })
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Issue {
    Issue::new(FieldCode::InvalidFormat, message)
}

/// The schemes without a dot that browsers and operating systems handle themselves, or that other programs than apps have.
const OF_SYSTEM: [&str; 50] = [
    "about",
    "acct",
    "afp",
    "android-app",
    "blob",
    "cid",
    "data",
    "dns",
    "facetime",
    "feed",
    "file",
    "filesystem",
    "ftp",
    "ftps",
    "geo",
    "git",
    "gopher",
    "http",
    "https",
    "imap",
    "intent",
    "irc",
    "ircs",
    "itms",
    "jar",
    "javascript",
    "ldap",
    "ldaps",
    "mailto",
    "market",
    "mid",
    "mms",
    "news",
    "nfs",
    "nntp",
    "pop",
    "res",
    "resource",
    "rtsp",
    "search",
    "sftp",
    "shell",
    "sip",
    "sips",
    "smb",
    "sms",
    "ssh",
    "tel",
    "telnet",
    "vbscript",
];

/// Returns whether a scheme can be no app's own.
fn is_of_system(scheme: &str) -> bool {
    let beginnings =
        ["ms-", "search-", "view-source", "chrome", "moz-", "edge", "x-apple", "itms-", "ws", "git+", "svn"];
    scheme.len() < 3 || OF_SYSTEM.contains(&scheme) || beginnings.iter().any(|begin| scheme.starts_with(begin))
}

/// Returns the host and what follows the port of an `http` URI of this device.
fn loopback(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("http://")?;
    let host = LOOPBACK.into_iter().find(|host| rest.starts_with(host))?;
    let (host, rest) = rest.split_at(host.len());
    let rest = match rest.strip_prefix(':') {
        Some(port) => {
            let digits = port.bytes().take_while(u8::is_ascii_digit).count();
            let (port, rest) = port.split_at(digits);
            port.parse::<u16>().ok().filter(|port| *port > 0)?;
            rest
        }
        None => rest,
    };
    (rest.is_empty() || rest.starts_with(['/', '?'])).then_some((host, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_to_which_a_browser_can_safely_return_are_accepted() {
        for (text, destination) in [
            ("https://example.com", "example.com"),
            ("https://example.com/cb?app=1", "example.com"),
            ("https://example.com:8443/cb", "example.com:8443"),
            ("http://127.0.0.1/cb", "this device"),
            ("http://127.0.0.1:8080/cb", "this device"),
            ("http://[::1]:1/", "this device"),
            ("http://localhost:3000/cb", "this device"),
            ("com.example.app:/cb", "com.example.app"),
            ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor"),
            ("vscode://publisher.extension/callback", "vscode"),
            ("vscode-insiders://publisher.extension/callback", "vscode-insiders"),
            ("windsurf://codeium.windsurf/callback", "windsurf"),
            ("zed://oauth/callback", "zed"),
            ("obsidian://callback", "obsidian"),
        ] {
            assert_eq!(RedirectUri::parse(text).map(|uri| uri.destination()), Ok(destination.to_owned()), "{text}");
        }
    }

    #[test]
    fn other_uris_are_refused() {
        let too_long = format!("https://example.com/{}", "a".repeat(MAX_LENGTH));
        for text in [
            "",
            " ",
            "/callback",
            "example.com/cb",
            "https://",
            "https://example.com/#",
            "https://example.com/cb#a",
            "https://ada@example.com/cb",
            "https://@example.com/cb",
            "https://*.example.com/cb",
            "https://example.com\\@evil.example/",
            "https://EXAMPLE.com/cb",
            "https://example.com:443/cb",
            "https://example.com/a/../cb",
            "https:/example.com/cb",
            "https://example.com/ü",
            "https://example.com/a b",
            "http://example.com/cb",
            "http://127.0.0.1.example.com/cb",
            "http://127.1/cb",
            "http://localhost.example.com/cb",
            "http://localhost:0/cb",
            "http://localhost:65536/cb",
            "http://127.0.0.1:80@example.com/cb",
            "javascript:alert(1)",
            "data:text/html,x",
            "myapp:/cb",
            "myapp:///cb",
            "vscode:",
            "file:///etc/passwd",
            "javascript://example.com/%0aalert(1)",
            "vbscript://example.com/",
            "data://text/html",
            "mailto://ada@example.com",
            "ms-msdt://a/",
            "search-ms://a/",
            "chrome-extension://a/",
            "view-source://example.com/",
            "wss://example.com/",
            "ab://c/",
            &too_long,
        ] {
            assert!(RedirectUri::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_scheme_of_an_app_is_known() {
        let of = |text: &str| RedirectUri::parse(text).map(|uri| (uri.has_short_scheme(), uri.has_own_scheme()));
        assert_eq!(of("vscode://publisher.extension/callback"), Ok((true, true)));
        assert_eq!(of("com.example.app:/cb"), Ok((false, true)));
        assert_eq!(of("https://app.example.com/cb"), Ok((false, false)));
        assert_eq!(of("http://localhost/cb"), Ok((false, false)));
    }

    #[test]
    fn a_requested_uri_is_the_same_text() {
        let uri = RedirectUri::parse("https://example.com/cb").unwrap();
        assert!(uri.matches("https://example.com/cb"));
        for other in [
            "",
            "https://example.com/cb/",
            "https://example.com/CB",
            "https://example.com/cb?",
            "https://example.com/cb#",
            "https://example.com:443/cb",
            "https://example.com/%63b",
            "http://example.com/cb",
            "https://example.com/cb/../cb",
        ] {
            assert!(!uri.matches(other), "{other}");
        }
        let bare = RedirectUri::parse("http://localhost:3000").unwrap();
        assert!(bare.matches("http://localhost") && bare.matches("http://localhost:1"));
        for other in [
            "http://localhost/",
            "http://localhost:",
            "http://localhost:0",
            "http://localhost:99999",
            "http://localhostx",
            "http://localhost:1x",
            "http://localhost:1@evil.example",
            "http://127.0.0.1",
            "https://localhost",
        ] {
            assert!(!bare.matches(other), "{other}");
        }
    }

    /// Web addresses and those of this device, as close to each other as can be.
    const URI: &str = r"(https://[ab]\.example(:8443)?|http://(127\.0\.0\.1|localhost|\[::1\])(:[1-9][0-9]{0,4})?)(/[ab.]{0,3}){0,2}(\?[ab=&]{0,3})?";

    /// Returns where a browser goes: everything but the port if it is one of this device.
    fn place(text: &str) -> Option<Url> {
        let mut url = Url::parse(text).ok()?;
        if loopback(text).is_some() {
            url.set_port(None).ok()?;
        }
        Some(url)
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_what_is_accepted_is_accepted_again(text in "(https?://|[a-z.]{1,5}:)?[ -~é]{0,40}") {
            if let Ok(uri) = RedirectUri::parse(&text) {
                proptest::prop_assert_eq!(RedirectUri::parse(uri.as_str()), Ok(uri.clone()));
                proptest::prop_assert!(uri.matches(&text) && !uri.destination().is_empty());
            }
        }

        /// A changed URI does not lead to another place.
        #[test]
        fn a_changed_uri_matches_only_if_the_browser_goes_to_the_same_place(
            text in URI,
            at in 0_usize..60,
            removed in 0_usize..3,
            inserted in r"[/:@.?#\\%0-9a-b \[\]]{0,4}",
        ) {
            let Ok(uri) = RedirectUri::parse(&text) else { return Ok(()) };
            let at = at.min(text.len());
            let changed = format!("{}{inserted}{}", &text[..at], &text[(at + removed).min(text.len())..]);
            if uri.matches(&changed) {
                proptest::prop_assert_eq!(place(&changed), place(&text));
                proptest::prop_assert!(changed == text || loopback(&text).is_some(), "{} for {}", changed, text);
            }
        }

        #[test]
        fn two_uris_match_only_if_they_differ_in_the_port_of_this_device(text in URI, other in URI) {
            let Ok(uri) = RedirectUri::parse(&text) else { return Ok(()) };
            let is_same_place = loopback(&text).is_some() && loopback(&text) == loopback(&other);
            proptest::prop_assert_eq!(uri.matches(&other), text == other || is_same_place);
            if uri.matches(&other) {
                proptest::prop_assert_eq!(place(&other), place(&text));
            }
        }
    }
}
