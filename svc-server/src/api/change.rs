//! A write as one transaction: the idempotency key, the change itself, its `If-Match` condition and the stored response.
//!
//! The database stores the responses of finished requests under their idempotency keys. [`InFlightKeys`] knows the running
//! requests of this process, so that a repeat in the meantime is refused at once. Between processes, the transaction claims
//! the key in the database.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use svc_core::accounts::actor::Actor;
use svc_core::error::{Error, StoreError};
use svc_core::operation::AnyOperation;
use svc_core::store::{Store, Tx};
use svc_core::sync::lock;
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::events::WrittenEvents;

use crate::api::run::OperationCall;
use crate::kernel::auth::Credentials;
use crate::kernel::problem::Problem;
use crate::kernel::response::ApiResponse;

/// A parsed write and the conditions that it depends on.
pub(super) struct Change {
    pub(super) call: OperationCall,
    /// Whether the change is rolled back in any case.
    pub(super) is_dry_run: bool,
    /// Replaces the response of a dry run by what the change would do.
    pub(super) preview: Option<Preview>,
    pub(super) tenant: TenantId,
    pub(super) operation: &'static dyn AnyOperation,
    /// The client, or the tool that it has called.
    pub(super) actor: Actor,
    pub(super) credentials: Credentials,
    pub(super) claim: Option<IdempotencyClaim>,
    /// Responses that were stored before this time have expired.
    pub(super) stored_since: Timestamp,
    pub(super) condition: Option<Condition>,
}

/// The preview of a change.
pub(super) struct Preview {
    /// Retrieves the record before the change. `None` if there is none.
    pub(super) before: Option<OperationCall>,
}

/// The effect that a change would have.
#[derive(Serialize)]
struct Previewed<'a> {
    /// The response of an operation that retrieves the record before the change.
    before: Option<&'a RawValue>,
    /// The response of the operation. `None` if it has no body.
    after: Option<&'a RawValue>,
    /// The kinds of the events that the change would fire, in their order.
    events: Vec<EventKind>,
}

/// The idempotency key of a running request.
pub(super) struct IdempotencyClaim {
    /// The scope in which the key is unique.
    pub(super) scope: TenantId,
    pub(super) key: String,
    pub(super) fingerprint: [u8; 32],
    pub(super) _guard: InFlightGuard,
}

/// An `If-Match` header.
pub(super) struct Condition {
    /// The tags that the header names.
    pub(super) tags: Vec<String>,
    /// The operation whose response has the current ETag.
    pub(super) current: OperationCall,
}

impl Condition {
    /// Returns whether all tags are weak. The comparison is strong (RFC 9110 §13.1.1), so none of them can match.
    fn is_weak(&self) -> bool {
        !self.tags.is_empty() && self.tags.iter().all(|tag| tag.starts_with("W/"))
    }
}

impl Change {
    /// Makes the change in a transaction, or returns the stored response of the first request with the same idempotency key.
    ///
    /// # Errors
    ///
    /// Returns the error of the operation, or [`Error::IdempotencyInProgress`], [`Error::IdempotencyKeyReused`] or
    /// [`Error::PreconditionFailed`], and those of the checks of the [client](super::auth::Principal).
    /// The transaction is rolled back then.
    pub(super) async fn make(self, store: &dyn Store) -> Result<(ApiResponse, WrittenEvents), Problem> {
        let (name, change) = (self.operation.id, Arc::new(self));
        let work = Arc::clone(&change);
        if change.is_dry_run {
            let (response, _) = store.dry_run(name, work, async |tx, change| change.run_in(tx).await).await?;
            // None of them was written.
            return Ok((response, WrittenEvents::default()));
        }
        let changed = store.write(name, work, async |tx, change| change.run_in(tx).await);
        let result = changed.await.map_err(|error| match (error, &change.condition) {
            (Error::PreconditionFailed, Some(condition)) if condition.is_weak() => Problem::WeakTags,
            (error, _) => error.into(),
        });
        // A conflict rolled the transaction back, so its response is stored in another one.
        if let Err(problem @ Problem::Core(Error::EmailTaken { .. } | Error::LimitReached { .. })) = &result {
            let response = ApiResponse { status: problem.status(), body: problem.body(), ..ApiResponse::no_content() };
            change.store_conflict(store, response).await?;
        }
        result
    }

    async fn run_in(&self, tx: &mut dyn Tx) -> Result<(ApiResponse, WrittenEvents), Error> {
        tx.act_as(self.actor.clone());
        // Another node may be running a request with the same key.
        if let Some(claim) = &self.claim
            && !tx.claim_idempotency(claim.scope, &claim.key).await?
        {
            return Err(Error::IdempotencyInProgress);
        }
        // The key may have been revoked, or the account suspended, since it was looked up. The tenant is locked, so neither
        // happens before the change, and the stored response and the current ETag stay.
        let client = self.credentials.lock_and_authenticate(tx, self.tenant).await?;
        client.require(self.operation)?;
        if let Some(claim) = &self.claim
            && let Some(stored) = tx.stored_response(claim.scope, &claim.key, self.stored_since).await?
        {
            if stored.fingerprint != claim.fingerprint {
                return Err(Error::IdempotencyKeyReused);
            }
            return Ok((ApiResponse::from_stored(stored), WrittenEvents::default()));
        }
        client.require_account()?;
        let current_etag = match &self.condition {
            Some(condition) => condition.current.run(tx, self.tenant).await?.etag,
            None => None,
        };
        let before = match &self.preview {
            Some(Preview { before: Some(before) }) => Some(before.run(tx, self.tenant).await?.body),
            _ => None,
        };
        let response = self.call.run(tx, self.tenant).await?;
        if self.preview.is_some() {
            return Ok((self.previewed(tx, before.as_deref(), &response).await?, tx.written_events()));
        }
        // The condition is checked last, as 404 and 409 come before 412. The change is rolled back when it fails.
        if let (Some(condition), Some(current_etag)) = (&self.condition, current_etag)
            && !condition.tags.iter().any(|tag| tag == "*" || *tag == current_etag)
        {
            return Err(Error::PreconditionFailed);
        }
        self.store_response(tx, &response).await?;
        Ok((response, tx.written_events()))
    }

    async fn previewed(
        &self,
        tx: &mut dyn Tx,
        before: Option<&[u8]>,
        response: &ApiResponse,
    ) -> Result<ApiResponse, Error> {
        let json = |body| serde_json::from_slice(body).map_err(|error| StoreError::Internal(error.to_string()));
        let before = before.map(json).transpose()?;
        let after = Some(&*response.body).filter(|body| !body.is_empty()).map(json).transpose()?;
        let events = tx.written_events().of(tx, self.tenant).await?.into_iter().map(|event| event.kind).collect();
        Ok(ApiResponse::json(StatusCode::OK, &Previewed { before, after, events })?)
    }

    async fn store_response(&self, tx: &mut dyn Tx, response: &ApiResponse) -> Result<(), StoreError> {
        let Some(claim) = &self.claim else { return Ok(()) };
        let stored = response.to_stored(claim.fingerprint, tx.env().now());
        tx.store_response(claim.scope, &claim.key, &stored).await
    }

    /// Stores the response of a change that was rolled back.
    async fn store_conflict(self: Arc<Self>, store: &dyn Store, response: ApiResponse) -> Result<(), Error> {
        if self.claim.is_none() {
            return Ok(());
        }
        let stored = store.write("idempotency.record", (self, response), async |tx, (change, response)| {
            let Some(claim) = &change.claim else { return Ok(()) };
            // Another node may have run a request with the same key meanwhile, whose response is then kept.
            if tx.claim_idempotency(claim.scope, &claim.key).await?
                && tx.stored_response(claim.scope, &claim.key, change.stored_since).await?.is_none()
            {
                change.store_response(tx, response).await?;
            }
            Ok(())
        });
        stored.await
    }
}

type TenantKey = (TenantId, String);

/// The idempotency keys whose first request is still running in this process. Clones share the registry.
#[derive(Clone, Default)]
pub(super) struct InFlightKeys(Arc<Mutex<HashSet<TenantKey>>>);

/// Keeps a key registered until it is dropped.
///
/// The transaction owns it, as that may still run after the client has disconnected.
pub(super) struct InFlightGuard {
    registry: InFlightKeys,
    key: TenantKey,
}

impl InFlightKeys {
    /// Registers the key of a request that starts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::IdempotencyInProgress`] while another request with the key is running.
    pub(super) fn register(&self, tenant: TenantId, key: &str) -> Result<InFlightGuard, Error> {
        let key = (tenant, key.to_owned());
        let is_new = lock(&self.0).insert(key.clone());
        if is_new { Ok(InFlightGuard { registry: self.clone(), key }) } else { Err(Error::IdempotencyInProgress) }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        lock(&self.registry.0).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bytes::Bytes;
    use http::Request;
    use http_body_util::Full;
    use svc_core::accounts::keys::{self, KeyCreate};
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::Env;
    use svc_core::store::memory::MemoryStore;
    use svc_core::values::HostPolicy;

    use super::*;
    use crate::{Api, Settings};

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
        assert!(after.as_str().contains("https://example.com/hook") && !after.as_str().contains("whsec_"));
    }

    #[test]
    fn a_key_is_registered_per_tenant_until_the_guard_is_dropped() {
        let registry = InFlightKeys::default();
        let (one, two) = (TenantId(uuid::Uuid::nil()), TenantId(uuid::Uuid::max()));
        let guard = registry.register(one, "k").ok();
        assert_eq!(registry.register(one, "k").err(), Some(Error::IdempotencyInProgress));
        assert!(registry.register(two, "k").is_ok());
        drop(guard);
        assert!(registry.register(one, "k").is_ok());
    }
}
