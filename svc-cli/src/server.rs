//! A server that commands work on, and the clients of its listeners.

use std::path::Path;

use svc_client::{Client, ClientBuilder, Platform};
use svc_core::accounts::keys::{KEY_PREFIX, TEST_KEY_PREFIX};
use svc_core::values::Secret;
use url::{Host, Url};

use crate::exit::{Exit, Failure};
use crate::output;

/// A server, and the key for it.
pub(crate) struct Server {
    /// The URL of its platform listener, or for an API key that of its public one.
    pub(crate) url: String,
    /// The platform key, or the API key of an account.
    pub(crate) key: Secret,
}

impl Server {
    /// Returns a client of its platform API. The file has certificates (PEM) to trust beside those of the system.
    ///
    /// # Errors
    /// The URL is not valid, or the file cannot be read or has no certificates.
    pub(crate) fn client(&self, ca_file: Option<&Path>) -> Result<Platform, Failure> {
        self.build(ca_file, ClientBuilder::build_platform)
    }

    /// Returns a client of its public API.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub(crate) fn account_client(&self, ca_file: Option<&Path>) -> Result<Client, Failure> {
        self.build(ca_file, ClientBuilder::build)
    }

    /// Checks that the key is one of the platform API.
    ///
    /// # Errors
    /// It is the API key of an account.
    pub(crate) fn require_platform_key(&self) -> Result<(), Failure> {
        if !self.has_api_key() {
            return Ok(());
        }
        let reason = "The key is the API key of an account, which `svc mcp` alone works with. Other commands need a platform key, \
                      which `svc platform-key create` makes beside the database.";
        Err(Failure::new(Exit::Usage, reason))
    }

    /// Returns whether the key is the API key of an account.
    pub(crate) fn has_api_key(&self) -> bool {
        [KEY_PREFIX, TEST_KEY_PREFIX].iter().any(|prefix| self.key.reveal().starts_with(prefix))
    }

    fn build<T>(
        &self,
        ca_file: Option<&Path>,
        build: impl FnOnce(ClientBuilder) -> svc_client::Result<T>,
    ) -> Result<T, Failure> {
        if sends_in_clear(&self.url) {
            output::warning(&format!(
                "The key and all data are sent to {} without encryption, and others on the way can read them. Use an https:// \
                 URL.",
                self.url
            ));
        }
        let mut builder =
            Client::builder(&self.url, self.key.reveal()).user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")));
        let mut options = format!("--server {}", self.url);
        if let Some(file) = ca_file {
            let name = file.display();
            let pem = std::fs::read(file)
                .map_err(|error| Failure::new(Exit::Failed, format!("Cannot read --ca-file {name}: {error}.")))?;
            builder = builder.add_root_certificates(&pem);
            options += &format!(" with --ca-file {name}");
        }
        build(builder).map_err(|error| Failure::new(Exit::Usage, format!("{options} cannot be used: {error}.")))
    }
}

/// Returns whether requests to a URL leave this machine without TLS.
fn sends_in_clear(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    };
    url.scheme() == "http" && !is_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_to_another_machine_is_sent_in_clear() {
        for url in
            ["http://api.example.com", "HTTP://10.0.0.7:8080/api", "http://[2001:db8::1]/", "http://localhost.example"]
        {
            assert!(sends_in_clear(url), "{url}");
        }
        for url in [
            "https://api.example.com",
            "http://localhost:8081",
            "http://127.0.0.1",
            "http://127.8.9.10:1",
            "http://[::1]:8081",
        ] {
            assert!(!sends_in_clear(url), "{url}");
        }
    }
}
