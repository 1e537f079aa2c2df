//! The settings of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;
use svc_core::env::Env;
use svc_core::values::Secret;
use url::Url;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::platform::Platform;
use crate::retry::RetryPolicy;
use crate::signer::Signer;
use crate::transport::{Credential, Sleep, Transport, bearer};

/// Sets up a [`Client`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use svc_client::{Client, RetryPolicy};
///
/// let client = Client::builder("https://svc.example.com", "svc_live_…")
///     .user_agent("ledger/2.1")
///     .timeout(Duration::from_secs(10))
///     .retry(RetryPolicy::default().attempts(6))
///     .build()?;
/// # Ok::<(), svc_client::Error>(())
/// ```
#[must_use]
pub struct ClientBuilder {
    url: String,
    credential: Credential,
    signing_secret: Option<Secret>,
    connect_timeout: Duration,
    timeout: Duration,
    user_agent: String,
    retry: RetryPolicy,
    /// Texts with certificates (PEM).
    certificates: Vec<Vec<u8>>,
    env: Env,
    sleep: Sleep,
}

impl ClientBuilder {
    pub(crate) fn new(url: &str, credential: Credential) -> Self {
        Self {
            url: url.to_owned(),
            credential,
            signing_secret: None,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            user_agent: concat!("svc-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            retry: RetryPolicy::default(),
            certificates: Vec::new(),
            env: Env::system(),
            sleep: Arc::new(|wait| Box::pin(tokio::time::sleep(wait))),
        }
    }

    /// Signs every request that changes something, as a key needs that was created with `--signed`. `secret` is the
    /// text that begins with `svcsig_`.
    ///
    /// The service accepts signatures of at most 300 seconds ago. When it refuses one, and its clock differs from that of this
    /// machine by a minute or more, the client signs by the clock of the service from then on.
    pub fn signing_secret(mut self, secret: &str) -> Self {
        self.signing_secret = Some(Secret::new(secret));
        self
    }

    /// Sets the longest time for a connection, 5 seconds by default.
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self { connect_timeout, ..self }
    }

    /// Sets the longest time for one attempt, from the connection to the end of the response: 30 seconds by default.
    /// [`RetryPolicy::total`] bounds all attempts of a call together, and ends the one that runs.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the header `User-Agent`. By default it is `svc-client/` and the version of this crate.
    pub fn user_agent(mut self, user_agent: &str) -> Self {
        user_agent.clone_into(&mut self.user_agent);
        self
    }

    /// Sets how often and for how long a call is attempted.
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// Trusts the certificates in this text (PEM) as well as those that the operating system trusts: those of an
    /// authority of your own. It must have one or more.
    pub fn add_root_certificates(mut self, pem: &[u8]) -> Self {
        self.certificates.push(pem.to_vec());
        self
    }

    /// Sets the clock and the source of randomness, from which signatures, idempotency keys and the lengths of waits
    /// follow, for tests.
    pub fn env(self, env: Env) -> Self {
        Self { env, ..self }
    }

    /// Sets how the client waits between attempts, for tests.
    pub fn sleep(mut self, sleep: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        self.sleep = Arc::new(sleep);
        self
    }

    /// Returns the client. It does not connect before its first call.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the URL is not `http` or `https`, the key or the user agent cannot be sent, the
    /// certificates cannot be read, or an app is to sign.
    pub fn build(self) -> Result<Client> {
        if matches!(self.credential, Credential::Tokens(_)) && self.signing_secret.is_some() {
            return Err(Error::InvalidArgument("apps do not sign their requests; leave the signing secret out".into()));
        }
        self.connect().map(|(base, transport)| Client::new(&base, "api/v1", transport))
    }

    /// Returns a client of the platform API, for a platform key. The URL is that of the platform listener.
    ///
    /// # Errors
    /// As [`build`](Self::build), and with the tokens of an app.
    pub fn build_platform(self) -> Result<Platform> {
        if matches!(self.credential, Credential::Tokens(_)) {
            return Err(Error::InvalidArgument("the platform API takes platform keys, and no tokens of apps".into()));
        }
        self.connect().map(|(base, transport)| Platform::new(base, transport))
    }

    fn connect(self) -> Result<(Url, Arc<Transport>)> {
        let base = base_url(&self.url)?;
        if let Credential::Key(key) = &self.credential {
            bearer(key.reveal())?;
        }
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(&self.certificates)?)
            // The service redirects nothing, and the key is for this host alone.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.connect_timeout)
            .user_agent(self.user_agent)
            .build()
            .map_err(|error| Error::InvalidArgument(format!("the client cannot be set up: {error}")))?;
        let Self { credential, signing_secret, timeout, retry, env, sleep, .. } = self;
        let signer = signing_secret.map(Signer::new);
        let mut token_url = base.clone();
        token_url.set_path(&format!("{}oauth/token", base.path()));
        Ok((base, Arc::new(Transport { http, credential, token_url, signer, timeout, retry, env, sleep })))
    }
}

impl fmt::Debug for ClientBuilder {
    /// Shows no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("url", &self.url)
            .field("credential", &self.credential)
            .field("signing_secret", &self.signing_secret)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .field("user_agent", &self.user_agent)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// Returns the URL that the paths of the API are below: with a slash at its end, without a query and a fragment.
fn base_url(text: &str) -> Result<Url> {
    let refuse = |reason: &str| Error::InvalidArgument(format!("the URL of the service {reason}"));
    let mut url = Url::parse(text).map_err(|error| refuse(&format!("is not valid: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("must have no user name and no password; the key says who calls"));
    }
    url.set_query(None);
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

/// Returns rustls with ring, whichever provider the process has as its default.
fn tls(extra_certificates: &[Vec<u8>]) -> Result<rustls::ClientConfig> {
    let refuse = |error: &dyn fmt::Display| Error::InvalidArgument(format!("TLS cannot be set up: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut extra = Vec::new();
    for pem in extra_certificates {
        let before = extra.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            extra.push(certificate.map_err(|error| refuse(&format!("a certificate cannot be read: {error}")))?);
        }
        if extra.len() == before {
            return Err(refuse(&"there is no certificate (PEM) in the text that has those to trust"));
        }
    }
    let verifier = if extra.is_empty() {
        Verifier::new(Arc::clone(&provider))
    } else {
        Verifier::new_with_extra_roots(extra, Arc::clone(&provider))
    };
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier.map_err(|error| refuse(&error))?))
        .with_no_client_auth())
}
