//! The URL of a webhook endpoint.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use url::{ParseError, Position, Url};

use super::{StreamBroker, StreamUrl};
use crate::error::{FieldCode, Issue};

const MAX_LENGTH: usize = 2048;

/// The hosts that may receive webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// Public hosts, over `https`.
    #[default]
    Public,
    /// Private addresses and `http` as well. For development (`--allow-private-webhooks`).
    AllowPrivate,
}

/// The URL of a webhook endpoint, as it was sent.
///
/// Parsing checks the form only. Whether deliveries may be sent to the host is checked when a subscription is created or
/// changed, and again before each attempt.
///
/// ```
/// use svc_core::values::WebhookUrl;
/// assert_eq!(WebhookUrl::parse(" https://example.com/hook ")?.domain(), Some("example.com"));
/// assert!(WebhookUrl::parse("https://user:password@example.com/").is_err());
/// # Ok::<(), svc_core::error::Issue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl {
    text: Box<str>,
    url: Url,
}

fn is_of_stream(url: &Url) -> bool {
    StreamBroker::ALL.iter().any(|broker| broker.schemes().contains(&url.scheme()))
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Issue {
    Issue::new(FieldCode::InvalidFormat, message)
}

impl WebhookUrl {
    /// Returns whether requests to another URL go to the same place: its scheme, host and port are the same. Secrets that were
    /// stored for one of them go to no other place.
    pub fn has_origin_of(&self, other: &Self) -> bool {
        self.url().origin() == other.url().origin()
    }

    /// Trims and parses a URL by the WHATWG URL standard, which recognises an address in any spelling.
    ///
    /// # Errors
    /// `too_short`, `too_long` over 2048 characters, and `invalid_format` if it is no `http` or `https` URL or has a
    /// user name, a password or port 0.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Issue::new(FieldCode::TooShort, "must not be empty"));
        }
        if text.chars().count() > MAX_LENGTH {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_LENGTH} characters")));
        }
        if text.chars().any(char::is_control) {
            return Err(invalid("must not contain control characters"));
        }
        let url = Url::parse(text).map_err(|error| {
            invalid(match error {
                ParseError::RelativeUrlWithoutBase => "must begin with https://, as in https://example.com/hook",
                ParseError::EmptyHost => "must name a host, as in https://example.com/hook",
                ParseError::InvalidPort => "must have a port from 1 to 65535, or none",
                _ => "must be a URL such as https://example.com/hook",
            })
        })?;
        if !matches!(url.scheme(), "https" | "http") && !is_of_stream(&url) {
            return Err(invalid("must be an https URL"));
        }
        // The WHATWG parser accepts host names that no client can connect to.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !url.domain().unwrap_or_default().bytes().all(fits) {
            return Err(invalid("must name a host"));
        }
        if url.port() == Some(0) {
            return Err(invalid("must not have port 0, to which nothing can be sent"));
        }
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        // The parsed URL does not show an empty user name.
        if !url.username().is_empty() || url.password().is_some() || authority.contains('@') {
            return Err(invalid("must not contain a user name or password; check the signature instead"));
        }
        Ok(Self { text: text.into(), url })
    }

    /// Returns the URL of a stream as it is shown, without its credentials and parameters. No request can set it.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn of_stream(stream: &StreamUrl) -> Result<Self, Issue> {
        Self::parse(&stream.to_string())
    }

    /// Returns whether it is that of a stream, to which nothing is delivered by HTTP.
    pub fn is_of_stream(&self) -> bool {
        is_of_stream(&self.url)
    }

    /// Returns the host name to resolve, or `None` if the host is an IP address.
    pub fn domain(&self) -> Option<&str> {
        self.url.domain()
    }

    /// Returns the host, and the port if the URL names another than the usual one. Nothing of it is secret, while a path or
    /// a query may be.
    ///
    /// ```
    /// use svc_core::values::WebhookUrl;
    /// assert_eq!(WebhookUrl::parse("https://example.com:8443/hook?token=secret")?.host(), "example.com:8443");
    /// assert_eq!(WebhookUrl::parse("https://[2606:4700::1]/")?.host(), "[2606:4700::1]");
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn host(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Returns the URL as it was sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parsed URL.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

text_value!([] WebhookUrl, as_str);

impl JsonSchema for WebhookUrl {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "WebhookUrl".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_serialize() {
            // What was sent comes back as it was, also where it is no URI by RFC 3986, such as https://example.com/{id}.
            return json_schema!({ "type": "string" });
        }
        json_schema!({ "type": "string", "format": "uri", "maxLength": MAX_LENGTH })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_trimmed_and_otherwise_kept_as_sent() {
        assert_eq!(WebhookUrl::parse(" https://EXAMPLE.com").unwrap().as_str(), "https://EXAMPLE.com");
    }

    #[test]
    fn port_0_is_refused() {
        for bad in ["https://example.com:0/", "http://127.0.0.1:000", "https://[2606:4700::1]:0/hook"] {
            let issue = WebhookUrl::parse(bad).unwrap_err();
            assert_eq!(issue, invalid("must not have port 0, to which nothing can be sent"), "{bad}");
        }
        for good in
            ["https://example.com:443/", "https://example.com/:0", "http://127.0.0.1:1", "https://example.com:/"]
        {
            assert!(WebhookUrl::parse(good).is_ok(), "{good}");
        }
    }

    /// Found by fuzzing.
    #[test]
    fn a_host_name_that_no_client_can_connect_to_is_refused() {
        for bad in ["https://}etadata.ga.g/", "http://a|b.example.com/", "https://a~b.example/", "http://a%7db/"] {
            assert!(WebhookUrl::parse(bad).is_err(), "{bad}");
        }
        for good in
            ["http://receiver/", "http://my_receiver.test:9000/", "http://b%C3%BCcher.example/", "http://[::1]/"]
        {
            assert!(WebhookUrl::parse(good).is_ok(), "{good}");
        }
    }
}
