//! Webhook targets.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use url::Url;

use crate::error::{FieldCode, Issue};
use crate::input::FromJson;
use crate::input::json::Json;

const MAX_LENGTH: usize = 2048;

/// Which hosts may receive webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// `https` on public hosts only.
    #[default]
    Public,
    /// Also `http` and private addresses: for development (`--allow-private-webhooks`).
    AllowPrivate,
}

/// The URL of a webhook endpoint, kept as given. Parsing one checks its form only;
/// [`check_url`](crate::webhooks::addresses::check_url) decides whether deliveries may be sent there.
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

fn invalid(message: impl Into<Cow<'static, str>>) -> Issue {
    Issue::new(FieldCode::InvalidFormat, message)
}

impl WebhookUrl {
    /// Trims and parses (WHATWG URL, so that an address in an odd spelling is seen for what it is).
    ///
    /// # Errors
    /// `too_short`, `too_long` over 2048 characters, or `invalid_format` when it is no `http` or `https`
    /// URL or carries a user name or password.
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
        let url = Url::parse(text)
            .map_err(|error| invalid(format!("must be a URL such as https://example.com/hook: {error}")))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(invalid("must be an https URL"));
        }
        // The WHATWG parser takes more for a name than any client that dials it.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !url.domain().unwrap_or_default().bytes().all(fits) {
            return Err(invalid("must name a host"));
        }
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        // An empty user name leaves no trace in the parsed URL.
        if !url.username().is_empty() || url.password().is_some() || authority.contains('@') {
            return Err(invalid("must not contain a user name or password; check the signature instead"));
        }
        Ok(Self { text: text.into(), url })
    }

    /// The host name to resolve, or `None` when the host is an address already.
    pub fn domain(&self) -> Option<&str> {
        self.url.domain()
    }

    /// The URL as given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The parsed URL.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for WebhookUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl FromJson for WebhookUrl {
    fn from_json(json: Json) -> Result<Self, Issue> {
        Self::parse(&json.into_string()?)
    }
}

impl JsonSchema for WebhookUrl {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "WebhookUrl".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_serialize() {
            return json_schema!({ "type": "string", "format": "uri" });
        }
        json_schema!({ "type": "string", "format": "uri", "maxLength": MAX_LENGTH })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_trimmed_and_kept_as_given() {
        assert_eq!(WebhookUrl::parse(" https://EXAMPLE.com").unwrap().as_str(), "https://EXAMPLE.com");
    }

    /// Found by fuzzing.
    #[test]
    fn a_name_that_no_client_reads_is_refused_even_for_development() {
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
