//! Origins of pages.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// The origin of a page, such as `https://app.example.com`.
///
/// ```
/// use svc_server::Origin;
/// assert!("https://app.example.com".parse::<Origin>().is_ok());
/// assert!("https://app.example.com/page".parse::<Origin>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// Returns the origin as a browser writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Origin {
    type Err = &'static str;

    /// Reads an origin. It has no path, not even `/`, and is written as browsers write it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
        // A policy separates its parts by characters that a host may have.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:/[]_".contains(&byte));
        match Url::parse(text) {
            Ok(url) if is_plain && is_web(&url) && url.origin().ascii_serialization() == text => {
                Ok(Self(text.to_owned()))
            }
            _ => Err("must be an origin such as https://app.example.com, without a path"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for good in
            ["https://app.example.com", "http://localhost:3000", "https://[::1]:8443", "https://xn--mller-kva.example"]
        {
            assert_eq!(good.parse::<Origin>().map(|origin| origin.0), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "*",
            "null",
            "app.example.com",
            "https://app.example.com/",
            "https://app.example.com/x",
            "https://APP.example.com",
            "https://app.example.com:443",
            "https://*.example.com",
            "https://a;script-src",
            "https://a b",
            "https://müller.example",
            "https://user@app.example.com",
            "ftp://app.example.com",
            "data:text/html,x",
            "https://a.example,https://b.example",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
