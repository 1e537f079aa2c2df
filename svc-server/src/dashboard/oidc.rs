//! Signing in at an identity provider with OpenID Connect: the authorization code flow with PKCE.
//!
//! 1. The form of the sign-in page begins an [`Attempt`], whose secrets a cookie of ten minutes keeps, and sends the browser
//!    to the provider. The origin of the form is the address to which the provider sends it back, so no flag has to name it.
//! 2. The provider sends the browser to `/dashboard/oidc/callback` with a code, which [`Provider::verified_email`] exchanges
//!    for an ID token. The crate checks its signature, issuer, audience, expiry and nonce.
//! 3. Whoever has a verified email address that is a [member](svc_core::accounts::members) of an account is signed in.
//!
//! The cookie is deleted with the first answer of the provider, and the provider takes a code once.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken, CoreIdTokenClaims, CoreJwsSigningAlgorithm,
    CoreProviderMetadata, CoreUserInfoClaims,
};
use openidconnect::{
    AsyncHttpClient, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IssuerUrl, Nonce,
    OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, SignatureVerificationError,
    TokenResponse as _,
};
use svc_core::crypto::sha256;
use svc_core::env::Env;
use svc_core::sync::lock;
use svc_core::values::{Email, HostPolicy, Secret, Timestamp};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::context;
use super::identity::Origin;
use crate::deliver::dial::{CHECKED_ADDRESSES, Dialer};
use crate::deliver::resolver::Resolver;

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
    issuer: IssuerUrl,
    client_id: ClientId,
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
        let issuer =
            IssuerUrl::new(issuer.to_owned()).map_err(|error| format!("the issuer {issuer} is no URL: {error}"))?;
        Ok(Self { issuer, client_id: ClientId::new(client_id.to_owned()), client_secret, authorities: None })
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
    Token(ClaimsVerificationError),
    /// The provider has no verified email address of the person.
    UnverifiedEmail,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(error) => f.write_str(error),
            Self::Token(ClaimsVerificationError::SignatureVerification(error)) => write!(f, "the ID token: {error}"),
            Self::Token(error) => write!(f, "the ID token: {error}"),
            Self::UnverifiedEmail => f.write_str("the provider has no verified email address of the person"),
        }
    }
}

impl Refusal {
    /// Returns the refusal for an error while the provider was asked, with all its sources.
    fn of(asked_for: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut text = format!("{asked_for}: {error}");
        let mut source = error.source();
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        Self::Provider(text)
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
        context::cookie(COOKIE, &value, self.is_secure(), ATTEMPT_LIFETIME)
    }

    /// Returns the attempt in the cookie that the provider answers with this state.
    pub(super) fn answered(headers: &HeaderMap, state: &str) -> Option<Self> {
        let (value, is_secure) = context::read_cookie(headers, COOKIE)?;
        let mut parts = value.splitn(4, '.').map(str::to_owned);
        let (own, nonce, verifier) = (parts.next()?, parts.next()?, parts.next()?);
        let attempt = Self { state: own, nonce, verifier, origin: parts.next()?.parse().ok()? };
        // Digests are compared, so that the time of the comparison tells nothing.
        let is_own = !state.is_empty() && sha256(attempt.state.as_bytes()) == sha256(state.as_bytes());
        // A cookie without the prefix may come from a neighbour below the same domain, so it begins no session over TLS.
        (is_own && attempt.is_secure() == is_secure).then_some(attempt)
    }

    /// Returns the cookies that forget an attempt.
    pub(super) fn forgotten() -> [HeaderValue; 2] {
        context::expired(COOKIE)
    }
}

/// The identity provider.
pub(super) struct Provider {
    settings: OidcSettings,
    http: ProviderClient,
    /// The path of the callback behind the origin.
    callback: String,
    metadata: Mutex<Option<(Timestamp, Arc<CoreProviderMetadata>)>>,
}

type ClientOfProvider =
    CoreClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointMaybeSet, EndpointMaybeSet>;

impl Provider {
    /// Creates the client of a provider. `base` is the path of the dashboard.
    pub(super) fn new(settings: OidcSettings, base: &str, resolver: Arc<dyn Resolver>) -> Self {
        let http = ProviderClient::new(&settings, resolver);
        Self { settings, http, callback: format!("{base}/oidc/callback"), metadata: Mutex::new(None) }
    }

    /// Returns the host of the provider, which people know it by.
    pub(super) fn host(&self) -> &str {
        self.settings.issuer.url().host_str().unwrap_or_default()
    }

    /// Returns the URL at the provider where a person signs in.
    pub(super) async fn sign_in_url(&self, attempt: &Attempt, now: Timestamp) -> Result<String, Refusal> {
        let metadata = self.metadata(now, MAX_AGE).await?;
        let client = self.client(&metadata, &attempt.origin)?;
        let verifier = PkceCodeVerifier::new(attempt.verifier.clone());
        let (state, nonce) = (CsrfToken::new(attempt.state.clone()), Nonce::new(attempt.nonce.clone()));
        let request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, || state, || nonce)
            .add_scope(Scope::new("email".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        Ok(request.url().0.into())
    }

    /// Exchanges the code of an attempt for an ID token, and returns the email address that the provider has verified.
    pub(super) async fn verified_email(&self, attempt: Attempt, code: &str, now: Timestamp) -> Result<Email, Refusal> {
        let metadata = self.metadata(now, MAX_AGE).await?;
        let client = self.client(&metadata, &attempt.origin)?;
        let nonce = Nonce::new(attempt.nonce);
        let response = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .map_err(|error| Refusal::of("the metadata", &error))?
            .set_pkce_verifier(PkceCodeVerifier::new(attempt.verifier))
            .request_async(&self.http)
            .await
            .map_err(|error| Refusal::of("the exchange of the code", &error))?;
        let token =
            response.id_token().ok_or_else(|| Refusal::Provider("a response without an ID token".to_owned()))?;
        let mut claims = self.verify(&metadata, token, &nonce, now);
        if let Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey)) = claims {
            // The provider may have begun to sign with another key.
            claims = self.verify(&*self.metadata(now, MIN_AGE).await?, token, &nonce, now);
        }
        let claims = claims.map_err(Refusal::Token)?;
        let (email, is_verified) = match claims.email() {
            Some(email) => (email.clone(), claims.email_verified()),
            // With an access token beside it, an ID token need not have what the scopes ask for (OpenID Connect Core, 5.4).
            None => {
                let info: CoreUserInfoClaims = client
                    .user_info(response.access_token().clone(), Some(claims.subject().clone()))
                    .map_err(|_| Refusal::UnverifiedEmail)?
                    .request_async(&self.http)
                    .await
                    .map_err(|error| Refusal::of("the claims about the person", &error))?;
                (info.email().cloned().ok_or(Refusal::UnverifiedEmail)?, info.email_verified())
            }
        };
        if is_verified != Some(true) {
            return Err(Refusal::UnverifiedEmail);
        }
        Email::parse(&email).map_err(|_| Refusal::UnverifiedEmail)
    }

    fn verify<'t>(
        &self,
        metadata: &CoreProviderMetadata,
        token: &'t CoreIdToken,
        nonce: &Nonce,
        now: Timestamp,
    ) -> Result<&'t CoreIdTokenClaims, ClaimsVerificationError> {
        use CoreJwsSigningAlgorithm::{HmacSha256, HmacSha384, HmacSha512, None as Unsigned};
        // What everyone can make who knows the secret of the client, or nothing, proves nothing.
        let is_signed = |it: &&CoreJwsSigningAlgorithm| !matches!(it, HmacSha256 | HmacSha384 | HmacSha512 | Unsigned);
        let algorithms = metadata.id_token_signing_alg_values_supported().iter().filter(is_signed).cloned();
        let client = CoreClient::from_provider_metadata(metadata.clone(), self.settings.client_id.clone(), None);
        let verifier = client.id_token_verifier().set_allowed_algs(algorithms.collect::<Vec<_>>());
        let now: DateTime<Utc> = DateTime::from_timestamp_micros(now.as_micros()).unwrap_or_default();
        token.claims(&verifier.set_time_fn(move || now), nonce)
    }

    fn client(&self, metadata: &CoreProviderMetadata, origin: &Origin) -> Result<ClientOfProvider, Refusal> {
        let redirect = RedirectUrl::new(format!("{origin}{}", self.callback));
        let redirect = redirect.map_err(|error| Refusal::of("the URL of the callback", &error))?;
        let methods = metadata.token_endpoint_auth_methods_supported();
        let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
        let auth_type = match takes(CoreClientAuthMethod::ClientSecretBasic) {
            true => AuthType::BasicAuth,
            false => AuthType::RequestBody,
        };
        let secret = ClientSecret::new(self.settings.client_secret.reveal().to_owned());
        let client =
            CoreClient::from_provider_metadata(metadata.clone(), self.settings.client_id.clone(), Some(secret));
        Ok(client.set_redirect_uri(redirect).set_auth_type(auth_type))
    }

    /// Returns the endpoints and the keys of the provider, which are fetched anew when they are older than `max_age`.
    async fn metadata(&self, now: Timestamp, max_age: Duration) -> Result<Arc<CoreProviderMetadata>, Refusal> {
        if let Some((fetched_at, metadata)) = &*lock(&self.metadata)
            && now.since(*fetched_at) < max_age
        {
            return Ok(Arc::clone(metadata));
        }
        let fetched = CoreProviderMetadata::discover_async(self.settings.issuer.clone(), &self.http).await;
        let metadata = Arc::new(fetched.map_err(|error| Refusal::of("the metadata", &error))?);
        *lock(&self.metadata) = Some((now, Arc::clone(&metadata)));
        Ok(metadata)
    }
}

/// The HTTP client for the provider: that of webhooks, with private addresses allowed. It follows no redirects.
struct ProviderClient {
    client: Client<Dialer, Full<Bytes>>,
    dialer: Dialer,
    /// Whether the metadata may name URLs of http.
    allows_http: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RequestError(String);

impl ProviderClient {
    fn new(settings: &OidcSettings, resolver: Arc<dyn Resolver>) -> Self {
        let dialer = match &settings.authorities {
            Some(Authorities(roots)) => Dialer::with_authorities(resolver, HostPolicy::AllowPrivate, roots.clone()),
            None => Dialer::new(resolver, HostPolicy::AllowPrivate),
        };
        let allows_http = settings.issuer.url().scheme() == "http";
        Self { client: Client::builder(TokioExecutor::new()).build(dialer.clone()), dialer, allows_http }
    }

    async fn request(&self, request: HttpRequest) -> Result<HttpResponse, Box<dyn std::error::Error + Send + Sync>> {
        if !self.allows_http && request.uri().scheme_str() != Some("https") {
            return Err("the metadata names a URL that is not https".into());
        }
        let addresses = self.dialer.check_addresses(request.uri()).await?;
        let mut request = request.map(Full::from);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(concat!("svc/", env!("CARGO_PKG_VERSION"))));
        let response = CHECKED_ADDRESSES.scope(addresses, self.client.request(request)).await?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE).collect().await?.to_bytes();
        Ok(HttpResponse::from_parts(head, body.to_vec()))
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderClient {
    type Error = RequestError;
    type Future = BoxFuture<'c, Result<HttpResponse, RequestError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        let host = request.uri().host().unwrap_or_default().to_owned();
        Box::pin(async move {
            match tokio::time::timeout(TIMEOUT, self.request(request)).await {
                Ok(response) => response.map_err(|error| RequestError(format!("{host}: {error}"))),
                Err(_) => Err(RequestError(format!("{host}: no response within {TIMEOUT:?}"))),
            }
        })
    }
}
