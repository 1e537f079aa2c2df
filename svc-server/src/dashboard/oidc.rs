//! Signing in at an identity provider with OpenID Connect: the authorization code flow with PKCE.
//!
//! 1. The form of the sign-in page begins an [`Attempt`], whose secrets a cookie of ten minutes keeps, and sends the browser
//!    to the provider. The origin of the form is the address to which the provider sends it back, so no flag has to name it.
//! 2. The provider sends the browser to `/dashboard/oidc/callback` with a code, which [`Provider::verified_email`] exchanges
//!    for an ID token. [`id_token`] has the checks of its signature, issuer, audience, expiry
//!    and nonce.
//! 3. A person with a verified email address that is a [member](svc_core::accounts::members) of an account is signed in.
//!
//! The cookie is deleted with the first answer of the provider, and the provider takes a code once.
//!
//! The metadata and the keys of the provider are fetched when someone signs in, so the server starts without its provider. They
//! are kept for an hour, and for a minute at least when a token is signed with a key that is not among them. The page that
//! follows the form sends the browser on by `Refresh`: a redirect of a form to another host would need that host in the policy
//! of the page.

mod id_token;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use svc_core::crypto::sha256;
use svc_core::env::Env;
use svc_core::sync::lock;
use svc_core::values::{Email, HostPolicy, Secret, Timestamp};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use url::{Url, form_urlencoded};

use self::id_token::{Claims, EmailClaims, Expectations, Flag, Key, TokenError};
use super::cookies;
use crate::kernel::origin::Origin;
use crate::outbound::dial::{CHECKED_ADDRESSES, Dialer};
use crate::outbound::resolver::Resolver;

/// How long the provider may take for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest response of the provider, in bytes.
const MAX_RESPONSE: usize = 256 * 1024;
/// How long the metadata and the keys of the provider are used before they are fetched anew.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// How long they are used at least, also when an ID token is signed with a key that is not among them.
const MIN_AGE: Duration = Duration::from_secs(60);
/// How long a person has for signing in at the provider.
const ATTEMPT_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// The name of the cookie that keeps an attempt.
const COOKIE: &str = "svc_oidc";

/// An identity provider with which members sign in to the dashboard.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    issuer: Url,
    /// The issuer as it was given, which the provider writes into its tokens.
    issuer_text: String,
    client_id: String,
    client_secret: Secret,
    authorities: Option<Authorities>,
}

/// The certificate authorities of an identity provider whose certificate no public one has issued.
#[derive(Clone, Debug)]
pub struct Authorities(RootCertStore);

impl Authorities {
    /// Reads the certificates in a file of PEM.
    ///
    /// # Errors
    ///
    /// Returns a sentence when the file cannot be read, or has no certificate.
    pub fn read(path: &str) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())? {
            roots.add(certificate.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
        }
        if roots.is_empty() { Err("there is no certificate in this file".to_owned()) } else { Ok(Self(roots)) }
    }
}

impl OidcSettings {
    /// Returns the settings of a provider: its issuer, which has its metadata at `/.well-known/openid-configuration`, and the
    /// client that it knows this server as.
    ///
    /// # Errors
    ///
    /// Returns a sentence when the issuer is no URL of https. One of http is accepted on the machine of the server.
    pub fn new(issuer: &str, client_id: &str, client_secret: Secret) -> Result<Self, String> {
        let url = url::Url::parse(issuer).map_err(|error| format!("the issuer {issuer} is no URL: {error}"))?;
        let is_local = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err(format!("the issuer {issuer} must be a URL of https"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!("the issuer {issuer} must have no query and no fragment"));
        }
        let (issuer_text, client_id) = (issuer.to_owned(), client_id.to_owned());
        Ok(Self { issuer: url, issuer_text, client_id, client_secret, authorities: None })
    }

    /// Trusts these certificate authorities at the provider, in place of the public ones.
    #[must_use]
    pub fn authorities(mut self, authorities: Authorities) -> Self {
        self.authorities = Some(authorities);
        self
    }
}

/// Why the provider did not sign a person in. The texts are for the log.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The provider cannot be reached, or its response cannot be used.
    Provider(String),
    /// The ID token is not that of this attempt.
    Token(TokenError),
    /// The provider has no verified email address of the person.
    UnverifiedEmail,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(error) => f.write_str(error),
            Self::Token(error) => write!(f, "the ID token: {error}"),
            Self::UnverifiedEmail => f.write_str("the provider has no verified email address of the person"),
        }
    }
}

impl Refusal {
    fn provider(asked_for: &str, error: impl fmt::Display) -> Self {
        Self::Provider(format!("{asked_for}: {error}"))
    }
}

/// One attempt to sign in, from the form to the callback.
pub(super) struct Attempt {
    /// Ties the answer of the provider to this browser.
    state: String,
    /// Ties the ID token to this attempt.
    nonce: String,
    /// Proves to the provider that this server began the attempt (PKCE).
    verifier: String,
    /// The address of this server in the browser.
    pub(super) origin: Origin,
}

impl Attempt {
    /// Begins an attempt.
    pub(super) fn new(env: &Env, origin: Origin) -> Self {
        let token = || URL_SAFE_NO_PAD.encode(env.bytes::<32>());
        Self { state: token(), nonce: token(), verifier: token(), origin }
    }

    /// Returns whether the browser reaches this server over TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.origin.as_str().starts_with("https://")
    }

    /// Returns the cookie that keeps the attempt.
    pub(super) fn cookie(&self) -> Option<HeaderValue> {
        let Self { state, nonce, verifier, origin } = self;
        let value = format!("{state}.{nonce}.{verifier}.{origin}");
        cookies::cookie(COOKIE, &value, self.is_secure(), ATTEMPT_LIFETIME)
    }

    /// Returns the attempt in the cookie that the provider answers with this state.
    pub(super) fn answered(parts: &Parts, state: &str) -> Option<Self> {
        let (value, is_secure) = cookies::read_cookie(parts, COOKIE)?;
        let mut values = value.splitn(4, '.').map(str::to_owned);
        let (own, nonce, verifier) = (values.next()?, values.next()?, values.next()?);
        let attempt = Self { state: own, nonce, verifier, origin: values.next()?.parse().ok()? };
        // Digests are compared, so that the time of the comparison tells nothing.
        let is_own = !state.is_empty() && sha256(attempt.state.as_bytes()) == sha256(state.as_bytes());
        // A cookie without the prefix may come from a neighbour below the same domain, so it begins no session over TLS.
        (is_own && attempt.is_secure() == is_secure).then_some(attempt)
    }

    /// Returns the cookies that forget an attempt.
    pub(super) fn forgotten() -> [HeaderValue; 2] {
        cookies::expired(COOKIE)
    }
}

/// The identity provider.
pub(super) struct Provider {
    settings: OidcSettings,
    http: ProviderClient,
    /// The path of the callback behind the origin.
    callback: String,
    metadata: Mutex<Option<(Timestamp, Arc<Metadata>)>>,
}

/// The metadata of the provider (OpenID Connect Discovery, 3).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    userinfo_endpoint: Option<String>,
    jwks_uri: String,
    id_token_signing_alg_values_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    authorization_response_iss_parameter_supported: Option<Flag>,
    /// Those of `jwks_uri`.
    #[serde(skip)]
    keys: Vec<Key>,
}

/// The response to a code (OpenID Connect Core, 3.1.3.3).
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    id_token: Option<String>,
}

/// The response of the UserInfo endpoint (OpenID Connect Core, 5.3.2).
#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    #[serde(flatten)]
    email: EmailClaims,
}

impl Metadata {
    /// Returns whether each answer of the provider says who gave it (RFC 9207 §3).
    fn names_itself(&self) -> bool {
        self.authorization_response_iss_parameter_supported == Some(Flag(true))
    }
}

impl Provider {
    /// Creates the client of a provider. `base` is the path of the dashboard.
    pub(super) fn new(settings: OidcSettings, base: &str, resolver: Arc<dyn Resolver>) -> Self {
        let http = ProviderClient::new(&settings, resolver);
        Self { settings, http, callback: format!("{base}/oidc/callback"), metadata: Mutex::new(None) }
    }

    /// Returns the host of the provider, which people know it by.
    pub(super) fn host(&self) -> &str {
        self.settings.issuer.host_str().unwrap_or_default()
    }

    /// Returns the URL at the provider where a person signs in.
    pub(super) async fn sign_in_url(&self, attempt: &Attempt, now: Timestamp) -> Result<String, Refusal> {
        let url = Url::parse(&self.metadata(now, MAX_AGE).await?.authorization_endpoint);
        let mut url = url.map_err(|error| Refusal::provider("the metadata", error))?;
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &*self.settings.client_id),
            ("redirect_uri", &*self.redirect_uri(attempt)),
            ("scope", "openid email"),
            ("state", &*attempt.state),
            ("nonce", &*attempt.nonce),
            ("code_challenge", &*URL_SAFE_NO_PAD.encode(sha256(attempt.verifier.as_bytes()))),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url.into())
    }

    /// Checks that the provider gave an answer, which says so in `iss` if it says who it is at all (RFC 9207 §2.4).
    pub(super) async fn check_issuer(&self, iss: Option<&str>, now: Timestamp) -> Result<(), Refusal> {
        match iss {
            Some(iss) if iss == self.settings.issuer_text => Ok(()),
            Some(iss) => Err(Refusal::provider("the answer", format_args!("it is that of {iss:?}"))),
            None if self.metadata(now, MAX_AGE).await?.names_itself() => {
                Err(Refusal::provider("the answer", "it does not say who gave it, as this provider does"))
            }
            None => Ok(()),
        }
    }

    /// Exchanges the code of an attempt for an ID token, and returns the email address that the provider has verified.
    pub(super) async fn verified_email(&self, attempt: Attempt, code: &str, now: Timestamp) -> Result<Email, Refusal> {
        let metadata = self.metadata(now, MAX_AGE).await?;
        let tokens = self.exchange(&metadata, &attempt, code).await?;
        let token = tokens.id_token.ok_or_else(|| Refusal::Provider("a response without an ID token".to_owned()))?;
        let mut claims = self.verify(&metadata, &token, &attempt.nonce, now);
        if let Err(TokenError::UnknownKey) = claims {
            // The provider may have begun to sign with another key.
            claims = self.verify(&*self.metadata(now, MIN_AGE).await?, &token, &attempt.nonce, now);
        }
        let Claims { sub, mut email, .. } = claims.map_err(Refusal::Token)?;
        if email.email.is_none() {
            // With an access token beside it, an ID token need not have what the scopes ask for (OpenID Connect Core, 5.4).
            let url = metadata.userinfo_endpoint.as_ref().ok_or(Refusal::UnverifiedEmail)?;
            let request = Request::get(url).header(AUTHORIZATION, format!("Bearer {}", tokens.access_token));
            let info: UserInfo = self.http.json("the claims about the person", request, String::new()).await?;
            if info.sub != sub {
                return Err(Refusal::Provider("the claims about the person: they are about another one".to_owned()));
            }
            email = info.email;
        }
        match email {
            EmailClaims { email: Some(email), email_verified: Some(Flag(true)) } => match Email::parse(&email) {
                // An address with blanks around it may be that of somebody else.
                Ok(parsed) if parsed.as_str() == email => Ok(parsed),
                _ => Err(Refusal::UnverifiedEmail),
            },
            _ => Err(Refusal::UnverifiedEmail),
        }
    }

    async fn exchange(&self, metadata: &Metadata, attempt: &Attempt, code: &str) -> Result<Tokens, Refusal> {
        let OidcSettings { client_id, client_secret, .. } = &self.settings;
        let redirect_uri = self.redirect_uri(attempt);
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", &attempt.verifier),
        ];
        let mut request = Request::post(&metadata.token_endpoint);
        let methods = metadata.token_endpoint_auth_methods_supported.as_ref();
        if methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic")) {
            // Both are encoded as in a form before they become a name and a password (RFC 6749, 2.3.1).
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let credentials = format!("{}:{}", encoded(client_id), encoded(client_secret.reveal()));
            request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(credentials)));
        } else {
            form.extend([("client_id", &**client_id), ("client_secret", client_secret.reveal())]);
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.http.json("the exchange of the code", request, form).await
    }

    fn verify(&self, metadata: &Metadata, token: &str, nonce: &str, now: Timestamp) -> Result<Claims, TokenError> {
        let expected = Expectations {
            issuer: &self.settings.issuer_text,
            client_id: &self.settings.client_id,
            nonce,
            algorithms: &metadata.id_token_signing_alg_values_supported,
            keys: &metadata.keys,
            now,
        };
        expected.verify(token)
    }

    /// Returns the URL of the callback.
    fn redirect_uri(&self, attempt: &Attempt) -> String {
        format!("{}{}", attempt.origin, self.callback)
    }

    /// Returns the endpoints and the keys of the provider, which are fetched anew when they are older than `max_age`.
    async fn metadata(&self, now: Timestamp, max_age: Duration) -> Result<Arc<Metadata>, Refusal> {
        if let Some((fetched_at, metadata)) = &*lock(&self.metadata)
            && now.since(*fetched_at) < max_age
        {
            return Ok(Arc::clone(metadata));
        }
        let issuer = &*self.settings.issuer_text;
        let url = format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer));
        let mut metadata: Metadata = self.http.json("the metadata", Request::get(url), String::new()).await?;
        if metadata.issuer != issuer {
            return Err(Refusal::provider("the metadata", format_args!("it is that of {:?}", metadata.issuer)));
        }
        let request = Request::get(&metadata.jwks_uri);
        let KeySet { keys } = self.http.json("the keys", request, String::new()).await?;
        // Keys of types that are unknown here have other members, and are left out.
        metadata.keys = keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect();
        let metadata = Arc::new(metadata);
        *lock(&self.metadata) = Some((now, Arc::clone(&metadata)));
        Ok(metadata)
    }
}

/// The keys of a provider (RFC 7517, 5).
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

/// The response to a request that the provider refuses (RFC 6749, 5.2).
#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
    error_description: Option<String>,
}

/// The HTTP client for the provider: that of webhooks, with private addresses allowed. It follows no redirects.
struct ProviderClient {
    client: Client<Dialer, Full<Bytes>>,
    dialer: Dialer,
    /// Whether the metadata may name URLs of http.
    allows_http: bool,
}

impl ProviderClient {
    fn new(settings: &OidcSettings, resolver: Arc<dyn Resolver>) -> Self {
        let dialer = match &settings.authorities {
            Some(Authorities(roots)) => Dialer::with_authorities(resolver, HostPolicy::AllowPrivate, roots.clone()),
            None => Dialer::new(resolver, HostPolicy::AllowPrivate),
        };
        let allows_http = settings.issuer.scheme() == "http";
        Self { client: Client::builder(TokioExecutor::new()).build(dialer.clone()), dialer, allows_http }
    }

    /// Returns the body of the response to a request, which has to be JSON.
    async fn json<T: DeserializeOwned>(
        &self,
        asked_for: &str,
        request: http::request::Builder,
        body: String,
    ) -> Result<T, Refusal> {
        let refused = |error: &dyn fmt::Display| Refusal::provider(asked_for, error);
        let request = request.header(ACCEPT, "application/json").body(Full::from(body)).map_err(|it| refused(&it))?;
        let host = request.uri().host().unwrap_or_default().to_owned();
        let (status, body) = match tokio::time::timeout(TIMEOUT, self.request(request)).await {
            Ok(response) => response.map_err(|error| refused(&format_args!("{host}: {error}")))?,
            Err(_) => return Err(refused(&format_args!("{host}: no response within {TIMEOUT:?}"))),
        };
        if status != StatusCode::OK {
            let error = serde_json::from_slice(&body).ok().map(|ErrorResponse { error, error_description }| {
                format!(" with the error {error:?} {:?}", error_description.unwrap_or_default())
            });
            return Err(refused(&format_args!("{host}: the status {status}{}", error.unwrap_or_default())));
        }
        serde_json::from_slice(&body).map_err(|error| refused(&format_args!("{host}: {error}")))
    }

    async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        if !self.allows_http && request.uri().scheme_str() != Some("https") {
            return Err("the metadata names a URL that is not https".into());
        }
        let addresses = self.dialer.check_addresses(request.uri()).await?;
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(concat!("svc/", env!("CARGO_PKG_VERSION"))));
        let response = CHECKED_ADDRESSES.scope(addresses, self.client.request(request)).await?;
        let status = response.status();
        Ok((status, Limited::new(response.into_body(), MAX_RESPONSE).collect().await?.to_bytes()))
    }
}
