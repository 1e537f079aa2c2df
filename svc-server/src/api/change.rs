//! A change as one transaction: what was answered before, the change itself, its condition, its record.

use std::sync::Arc;

use svc_core::accounts::audit::Actor;
use svc_core::error::Error;
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::api::handlers::OperationFn;
use crate::api::in_flight_keys::Guard;
use crate::api::response::ApiResponse;

/// A change and what it depends on: one transaction.
pub(super) struct Change {
    pub(super) run: OperationFn,
    pub(super) tenant: TenantId,
    /// The key that asks for it.
    pub(super) key: Uuid,
    pub(super) claim: Option<Arc<IdempotencyClaim>>,
    /// Answers that were kept before this are forgotten.
    pub(super) kept_since: Timestamp,
    pub(super) condition: Option<Condition>,
}

/// An Idempotency-Key in use. Its guard goes with the job, which may outlive the client.
pub(super) struct IdempotencyClaim {
    pub(super) key: String,
    pub(super) fingerprint: [u8; 32],
    pub(super) _guard: Guard,
}

/// An `If-Match`.
pub(super) struct Condition {
    pub(super) tags: Vec<String>,
    pub(super) current: OperationFn,
}

impl Change {
    pub(super) async fn run(&self, tx: &mut dyn Tx) -> Result<ApiResponse, Error> {
        let tenant = self.tenant;
        tx.act_as(Actor::Key(self.key));
        // Another node may handle the same request.
        if let Some(claim) = &self.claim
            && !tx.claim_idempotency(tenant, &claim.key).await?
        {
            return Err(Error::IdempotencyInProgress);
        }
        // What was recorded, and what a condition is about, must not change between the look and the work.
        if (self.claim.is_some() || self.condition.is_some()) && !tx.lock_tenant(tenant).await? {
            return Err(Error::NotFound);
        }
        if let Some(claim) = &self.claim
            && let Some(recorded) = tx.stored_response(tenant, &claim.key, self.kept_since).await?
        {
            let same = recorded.fingerprint == claim.fingerprint;
            return if same { Ok(ApiResponse::replay(recorded)) } else { Err(Error::IdempotencyKeyReused) };
        }
        let before = match &self.condition {
            Some(condition) => (condition.current)(tx, tenant).await?.etag,
            None => None,
        };
        let response = (self.run)(tx, tenant).await?;
        // Compared last, as 404 and 409 come before 412; the transaction is undone then.
        if let (Some(condition), Some(before)) = (&self.condition, before)
            && !condition.tags.iter().any(|tag| tag == "*" || *tag == before)
        {
            return Err(Error::PreconditionFailed);
        }
        if let Some(claim) = &self.claim {
            let recorded = response.record(claim.fingerprint, tx.env().now());
            tx.store_response(tenant, &claim.key, &recorded).await?;
        }
        Ok(response)
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
    async fn what_a_key_changes_is_noted_as_its_own() {
        let mut env = Env::system();
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(env));
        let made = store.write("test", |tx| {
            Box::pin(async move {
                let tenant = tenants::create(tx, TenantCreate::named("Test")).await?.id;
                let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
                Ok((tenant, keys::create(tx, tenant, input).await?))
            })
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
        let log = store.read("test", move |tx| Box::pin(async move { Ok(tx.audit_entries(tenant, since, 1).await?) }));
        let newest = log.await.unwrap().remove(0);
        assert_eq!((newest.action.as_str(), newest.object_kind.as_str()), ("create", "webhook"));
        assert_eq!(newest.actor, format!("key:{}", key.key.id));
        let after = newest.after.unwrap();
        assert!(after.get().contains("https://example.com/hook") && !after.get().contains("whsec_"));
    }
}
