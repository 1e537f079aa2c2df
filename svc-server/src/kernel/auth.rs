//! The sender of a request (`docs/contract.md`, "API keys" and "Request signing"): the bearer of an API key, or on the platform
//! API that of a platform key.
//!
//! The two differ in where the account comes from, which is the key or the path, and in what their scopes mean. Everything
//! else, and the order of the checks, is the same.

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use svc_core::accounts::actor::Actor;
use svc_core::accounts::grants::{self, ACCESS_TOKEN_PREFIX, TokenHash};
use svc_core::accounts::keys::{self, Caller, CallerId, KEY_PREFIX, KeyHash};
use svc_core::accounts::platform_keys::{self, PLATFORM_KEY_PREFIX, PlatformKey, PlatformKeyHash};
use svc_core::accounts::signing::{SignedRequest, VerifiedSignature};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::Error;
use svc_core::operation::About;
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use super::head::SentTarget;
use super::problem::Problem;

/// The tenant of platform operations that concern no account. No account has this id.
const NO_ACCOUNT: TenantId = TenantId(Uuid::nil());

const TIMESTAMP: HeaderName = HeaderName::from_static("x-svc-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-svc-signature");

/// The credential that authenticates a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credentials {
    /// An access token of an app, and the resource that is asked for, as a path below the issuer.
    Token(TokenHash, &'static str),
    /// An API key.
    Key(KeyHash),
    /// A platform key, and the account that the path names.
    Platform { hash: PlatformKeyHash, account: Option<TenantId> },
}

/// An authenticated client.
#[derive(Clone, Debug)]
pub(crate) enum Principal {
    /// The bearer of an API key, or of an access token of an app.
    Key(Caller),
    /// The bearer of a platform key.
    Platform {
        key: Box<PlatformKey>,
        /// The id of the account in the path.
        account_id: Option<TenantId>,
        /// The account with this id, if there is one.
        account: Option<Box<Tenant>>,
    },
}

impl Credentials {
    /// Returns what a request of an account is authenticated by: an API key or, if there are apps, an access token for the
    /// resource.
    ///
    /// # Errors
    ///
    /// Those of [`bearer`].
    pub(crate) fn of_account(headers: &HeaderMap, resource: &'static str, has_apps: bool) -> Result<Self, Problem> {
        let text = bearer(headers, if has_apps { ACCESS_TOKEN_PREFIX } else { KEY_PREFIX })?;
        if has_apps && text.starts_with(ACCESS_TOKEN_PREFIX) {
            return Ok(Self::Token(TokenHash::of(text)?, resource));
        }
        Ok(Self::Key(KeyHash::of(text)?))
    }

    /// Returns what a request of the platform API is authenticated by, about this account.
    ///
    /// # Errors
    ///
    /// Those of [`bearer`].
    pub(crate) fn of_platform(headers: &HeaderMap, account: Option<TenantId>) -> Result<Self, Problem> {
        let hash = PlatformKeyHash::of(bearer(headers, PLATFORM_KEY_PREFIX)?)?;
        Ok(Self::Platform { hash, account })
    }

    /// Looks the key up.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidKey`], [`Error::KeyRevoked`] or [`Error::KeyExpired`].
    pub(crate) async fn authenticate(self, tx: &mut dyn Tx) -> Result<Principal, Error> {
        match self {
            Self::Token(hash, resource) => grants::authenticate(tx, hash, resource).await.map(Principal::Key),
            Self::Key(hash) => keys::authenticate(tx, hash).await.map(Principal::Key),
            Self::Platform { hash, account: account_id } => {
                let key = Box::new(platform_keys::authenticate(tx, hash).await?);
                let account = match account_id {
                    Some(id) => tx.tenant(id).await?.map(Box::new),
                    None => None,
                };
                Ok(Principal::Platform { key, account_id, account })
            }
        }
    }

    /// Locks the account of a write, and looks the key up.
    ///
    /// # Errors
    ///
    /// Those of [`authenticate`](Self::authenticate).
    pub(crate) async fn lock_and_authenticate(self, tx: &mut dyn Tx, tenant: TenantId) -> Result<Principal, Error> {
        match self {
            Self::Token(..) => {
                tx.lock_tenant(tenant).await?;
                self.authenticate(tx).await
            }
            Self::Key(hash) => keys::lock_and_authenticate(tx, tenant, hash).await.map(Principal::Key),
            Self::Platform { account, .. } => {
                if let Some(account) = account {
                    tx.lock_tenant(account).await?;
                }
                self.authenticate(tx).await
            }
        }
    }
}

impl Principal {
    /// Checks that the key may run an operation. Its router has operations that keys of its kind can run.
    ///
    /// # Errors
    ///
    /// Returns [`Error::AccessNotApproved`], [`Error::InsufficientScope`] or [`Error::MissingPlatformScope`].
    pub(crate) fn require(&self, operation: &About) -> Result<(), Error> {
        match self {
            Self::Key(caller) => caller.require(operation.scope()),
            Self::Platform { key, .. } => key.require(operation.area, operation.scope()),
        }
    }

    /// Checks that the account in the path exists.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownTenant`].
    pub(crate) fn require_account(&self) -> Result<(), Error> {
        match self {
            Self::Platform { account_id: Some(id), account: None, .. } => Err(Error::UnknownTenant(*id)),
            _ => Ok(()),
        }
    }

    /// Returns the account that the request is about.
    pub(crate) fn account(&self) -> Option<TenantId> {
        match self {
            Self::Key(caller) => Some(caller.tenant_id),
            Self::Platform { account_id, .. } => *account_id,
        }
    }

    /// Returns the tenant that the operation gets.
    pub(crate) fn tenant(&self) -> TenantId {
        self.account().unwrap_or(NO_ACCOUNT)
    }

    /// Returns whether the client signs its writes, which no assistant does.
    pub(crate) fn signs(&self) -> bool {
        matches!(self, Self::Key(caller) if caller.signing_secret.is_some())
    }

    /// Returns what an idempotency key is unique within: the account of an API key, the grant of an app, or the platform key.
    pub(crate) fn idempotency_scope(&self) -> TenantId {
        match self {
            Self::Key(caller) => match caller.id {
                CallerId::Key(_) => caller.tenant_id,
                CallerId::App { grant, .. } => TenantId(grant.uuid()),
            },
            Self::Platform { key, .. } => TenantId(key.id.uuid()),
        }
    }

    /// Returns whether it is an app, with an access token.
    pub(crate) fn is_app(&self) -> bool {
        matches!(self, Self::Key(Caller { id: CallerId::App { .. }, .. }))
    }

    /// Returns the id of the key, or of the grant of an app.
    pub(crate) fn key_id(&self) -> Uuid {
        match self {
            Self::Key(caller) => caller.id.key_id().uuid(),
            Self::Platform { key, .. } => key.id.uuid(),
        }
    }

    /// Returns the name of the client in the audit log.
    pub(crate) fn actor(&self) -> Actor {
        match self {
            Self::Key(caller) => caller.id.actor(),
            Self::Platform { key, .. } => Actor::PlatformKey(key.id),
        }
    }
}

/// Returns the key that a request carries. `prefix` is that of the keys of this API.
///
/// # Errors
///
/// Returns [`Problem::MissingCredentials`] without an `Authorization: Bearer` header, [`Problem::RepeatedCredentials`] when the
/// header is repeated, and [`Error::InvalidKey`] when it is no text.
pub fn bearer<'a>(headers: &'a HeaderMap, prefix: &'static str) -> Result<&'a str, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Problem::MissingCredentials(prefix))?;
    if values.next().is_some() {
        return Err(Problem::RepeatedCredentials);
    }
    let text = value.to_str().map_err(|_| Error::InvalidKey)?;
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(key.trim()),
        _ => Err(Problem::MissingCredentials(prefix)),
    }
}

/// The two headers of a signed request.
pub(crate) struct SignatureHeaders<'a> {
    timestamp: &'a str,
    signature: &'a str,
}

impl<'a> SignatureHeaders<'a> {
    /// Returns the two headers.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::SignatureRequired`] when one of them is missing, and
    /// [`Problem::SignatureHeaderMalformed`] when one is repeated or is not ASCII.
    pub(crate) fn from_headers(headers: &'a HeaderMap) -> Result<Self, Problem> {
        Ok(Self { timestamp: single(headers, TIMESTAMP)?, signature: single(headers, SIGNATURE)? })
    }

    /// Verifies the signature of a request with the signing secret of its key. It may be used once.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::SignatureInvalid`] with the reason.
    pub(crate) fn verify(
        &self,
        caller: &Caller,
        parts: &Parts,
        mount: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<VerifiedSignature, Problem> {
        let secret = caller.signing_secret.as_ref().ok_or(Problem::SignatureRequired)?;
        let uri = parts.extensions.get::<SentTarget>().map_or(&parts.uri, |sent| &sent.0);
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let signed = SignedRequest {
            timestamp: self.timestamp,
            method: parts.method.as_str(),
            path_and_query: &format!("{mount}{target}"),
            body,
        };
        let verified = signed.verify(secret, self.signature, now);
        verified.map_err(Problem::SignatureInvalid)
    }
}

fn single(headers: &HeaderMap, name: HeaderName) -> Result<&str, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(Problem::SignatureRequired)?;
    match (values.next(), value.to_str()) {
        (None, Ok(text)) => Ok(text),
        _ => Err(Problem::SignatureHeaderMalformed),
    }
}
