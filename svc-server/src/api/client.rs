//! The client of a request: the bearer of an API key, or on the platform API that of a platform key.
//!
//! They differ in where the account comes from, which is the key or the path, and in what their scopes mean. Everything
//! else, and the order of the checks, is the same.

use svc_core::accounts::actor::Actor;
use svc_core::accounts::keys::{self, Caller, KeyHash};
use svc_core::accounts::limits::RateLimits;
use svc_core::accounts::platform_keys::{self, PlatformKey, PlatformKeyHash};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::Error;
use svc_core::store::Tx;
use svc_core::values::TenantId;
use uuid::Uuid;

use crate::api::routes::Operation;

/// The tenant of platform operations that concern no account. No account has this id.
const NO_ACCOUNT: TenantId = TenantId(Uuid::nil());

/// What a request is authenticated by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Credentials {
    /// An API key.
    Key(KeyHash),
    /// A platform key, and the account that the path names.
    Platform { hash: PlatformKeyHash, account: Option<TenantId> },
}

/// An authenticated client.
#[derive(Clone, Debug)]
pub(super) enum Client {
    /// The bearer of an API key.
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
    /// Looks the key up.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidKey`], [`Error::KeyRevoked`] or [`Error::KeyExpired`].
    pub(super) async fn authenticate(self, tx: &mut dyn Tx) -> Result<Client, Error> {
        match self {
            Self::Key(hash) => keys::authenticate(tx, hash).await.map(Client::Key),
            Self::Platform { hash, account: account_id } => {
                let key = Box::new(platform_keys::authenticate(tx, hash).await?);
                let account = match account_id {
                    Some(id) => tx.tenant(id).await?.map(Box::new),
                    None => None,
                };
                Ok(Client::Platform { key, account_id, account })
            }
        }
    }

    /// Locks the account of a write, and looks the key up.
    ///
    /// # Errors
    ///
    /// Those of [`authenticate`](Self::authenticate).
    pub(super) async fn lock_and_authenticate(self, tx: &mut dyn Tx, tenant: TenantId) -> Result<Client, Error> {
        match self {
            Self::Key(hash) => keys::lock_and_authenticate(tx, tenant, hash).await.map(Client::Key),
            Self::Platform { account, .. } => {
                if let Some(account) = account {
                    tx.lock_tenant(account).await?;
                }
                self.authenticate(tx).await
            }
        }
    }
}

impl Client {
    /// Checks that the key may run the operation.
    ///
    /// # Errors
    ///
    /// Returns [`Error::AccessNotApproved`], [`Error::InsufficientScope`] or [`Error::MissingPlatformScope`].
    pub(super) fn require(&self, operation: &Operation) -> Result<(), Error> {
        match (self, operation.area) {
            (Self::Key(caller), None) => caller.require(operation.scope),
            (Self::Platform { key, .. }, Some(area)) => key.require(area, operation.scope),
            // The routers keep the operations of the two apart.
            _ => Err(Error::InsufficientScope),
        }
    }

    /// Checks that the account in the path exists.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownTenant`].
    pub(super) fn require_account(&self) -> Result<(), Error> {
        match self {
            Self::Platform { account_id: Some(id), account: None, .. } => Err(Error::UnknownTenant(*id)),
            _ => Ok(()),
        }
    }

    /// Returns the account that the request is about.
    pub(super) fn account(&self) -> Option<TenantId> {
        match self {
            Self::Key(caller) => Some(caller.tenant_id),
            Self::Platform { account_id, .. } => *account_id,
        }
    }

    /// Returns the tenant that the operation gets.
    pub(super) fn tenant(&self) -> TenantId {
        self.account().unwrap_or(NO_ACCOUNT)
    }

    /// Returns the rate limits that the account of an API key has in place of the server's.
    pub(super) fn limits(&self) -> Option<RateLimits> {
        match self {
            Self::Key(caller) => Some(caller.limits),
            Self::Platform { .. } => None,
        }
    }

    /// Returns what an idempotency key is unique within: the account of an API key, or the platform key.
    pub(super) fn idempotency_scope(&self) -> TenantId {
        match self {
            Self::Key(caller) => caller.tenant_id,
            Self::Platform { key, .. } => TenantId(key.id.uuid()),
        }
    }

    /// Returns the id of the key.
    pub(super) fn key_id(&self) -> Uuid {
        match self {
            Self::Key(caller) => caller.key_id.uuid(),
            Self::Platform { key, .. } => key.id.uuid(),
        }
    }

    /// Returns the name of the client in the audit log.
    pub(super) fn actor(&self) -> Actor {
        match self {
            Self::Key(caller) => Actor::Key(caller.key_id),
            Self::Platform { key, .. } => Actor::PlatformKey(key.id),
        }
    }
}
