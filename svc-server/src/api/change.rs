//! A write as one transaction: the idempotency key, the change itself, its `If-Match` condition and the stored response.

use std::sync::Arc;

use svc_core::accounts::actor::Actor;
use svc_core::accounts::limits::RateLimits;
use svc_core::error::Error;
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::events::WrittenEvents;

use crate::api::client::{Client, Credentials};
use crate::api::handlers::OperationFn;
use crate::api::in_flight_keys::InFlightGuard;
use crate::api::response::ApiResponse;
use crate::api::router::RoutedOperation;

/// A parsed write and the conditions that it depends on.
pub(super) struct Change {
    pub(super) operation: OperationFn,
    /// Whether the change is rolled back in any case.
    pub(super) is_dry_run: bool,
    pub(super) tenant: TenantId,
    pub(super) routed: Arc<RoutedOperation>,
    /// The key, which is the actor of the transaction.
    pub(super) actor: Actor,
    pub(super) credentials: Credentials,
    /// What the idempotency key is unique within.
    pub(super) idempotency_scope: TenantId,
    pub(super) claim: Option<Arc<IdempotencyClaim>>,
    /// Responses that were stored before this time have expired.
    pub(super) stored_since: Timestamp,
    pub(super) condition: Option<Condition>,
}

/// The idempotency key of a running request.
pub(super) struct IdempotencyClaim {
    pub(super) key: String,
    pub(super) fingerprint: [u8; 32],
    pub(super) _guard: InFlightGuard,
}

/// An `If-Match` header.
pub(super) struct Condition {
    /// The tags that the header names.
    pub(super) tags: Vec<String>,
    /// The operation whose response has the current ETag.
    pub(super) current: OperationFn,
}

/// What became of a change.
pub(super) struct Changed {
    pub(super) response: ApiResponse,
    pub(super) written: WrittenEvents,
    /// The client, as the transaction looked it up.
    pub(super) client: Client,
}

impl Change {
    /// Makes the change, or returns the stored response of the first request with the same idempotency key.
    ///
    /// With `counted_for`, the request was counted for these rate limits without a look-up of its key. It changes nothing and
    /// returns `None` if the account has others by now.
    ///
    /// # Errors
    ///
    /// Returns the error of the operation, or [`Error::IdempotencyInProgress`], [`Error::IdempotencyKeyReused`] or
    /// [`Error::PreconditionFailed`], and those of the checks of the [client](super::client::Client).
    /// The transaction is rolled back then.
    pub(super) async fn run(&self, tx: &mut dyn Tx, counted_for: Option<RateLimits>) -> Result<Option<Changed>, Error> {
        let (tenant, scope) = (self.tenant, self.idempotency_scope);
        tx.act_as(self.actor.clone());
        // Another node may be running a request with the same key.
        if let Some(claim) = &self.claim
            && !tx.claim_idempotency(scope, &claim.key).await?
        {
            return Err(Error::IdempotencyInProgress);
        }
        // The key may have been revoked, or the account suspended, since it was looked up. The tenant is locked, so neither
        // happens before the change, and the stored response and the current ETag stay.
        let client = self.credentials.lock_and_authenticate(tx, tenant).await?;
        client.require(&self.routed.operation)?;
        if counted_for.is_some_and(|limits| client.limits() != Some(limits)) {
            return Ok(None);
        }
        if let Some(claim) = &self.claim
            && let Some(stored) = tx.stored_response(scope, &claim.key, self.stored_since).await?
        {
            let is_repeat = stored.fingerprint == claim.fingerprint;
            if !is_repeat {
                return Err(Error::IdempotencyKeyReused);
            }
            let response = ApiResponse::from_stored(stored);
            return Ok(Some(Changed { response, written: WrittenEvents::default(), client }));
        }
        client.require_account()?;
        let current_etag = match &self.condition {
            Some(condition) => (condition.current)(tx, tenant).await?.etag,
            None => None,
        };
        let response = (self.operation)(tx, tenant).await?;
        // The condition is checked last, as 404 and 409 come before 412. The change is rolled back when it fails.
        if let (Some(condition), Some(current_etag)) = (&self.condition, current_etag)
            && !condition.tags.iter().any(|tag| tag == "*" || *tag == current_etag)
        {
            return Err(Error::PreconditionFailed);
        }
        if let Some(claim) = &self.claim {
            let stored = response.to_stored(claim.fingerprint, tx.env().now());
            tx.store_response(scope, &claim.key, &stored).await?;
        }
        Ok(Some(Changed { response, written: tx.written_events(), client }))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use bytes::Bytes;
    use http::{Request, StatusCode};
    use http_body_util::Full;
    use svc_core::accounts::keys::{self, KeyCreate};
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::Env;
    use svc_core::store::Store;
    use svc_core::store::memory::MemoryStore;
    use svc_core::values::{HostPolicy, Timestamp};

    use crate::api::{Api, Settings};

    #[tokio::test]
    async fn a_change_is_audited_with_the_key_as_its_actor() {
        let mut env = Env::system();
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(env));
        let made = store.write("test", (), async |tx, ()| {
            let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
            let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
            Ok((tenant, keys::create(tx, tenant, input).await?))
        });
        let (tenant, key) = made.await.unwrap();
        let api = Api::new(Arc::clone(&store), Settings::default());
        let body = Bytes::from_static(br#"{"url": "https://example.com/hook", "events": ["*"]}"#);
        let request = Request::post("/api/v1/webhooks")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", key.text.reveal()))
            .body(Full::new(body))
            .unwrap();
        assert_eq!(api.call(request, Ipv4Addr::LOCALHOST.into()).await.status(), StatusCode::CREATED);
        let since = Timestamp::from_micros(0);
        let log = store.read("test", (tenant, since), async |tx, &(tenant, since)| {
            Ok(tx.audit_entries(tenant, since, Timestamp::MAX, 1).await?)
        });
        let newest = log.await.unwrap().remove(0);
        assert_eq!((newest.action.as_str(), newest.object_kind.as_str()), ("create", "webhook"));
        assert_eq!(newest.actor, format!("key:{}", key.key.id));
        let after = newest.after.unwrap();
        assert!(after.get().contains("https://example.com/hook") && !after.get().contains("whsec_"));
    }
}
