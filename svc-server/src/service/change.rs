//! A change as one transaction: what was answered before, the change itself, its condition, its record.

use std::sync::Arc;

use svc_core::error::Error;
use svc_core::store::Tx;
use svc_core::types::{TenantId, Timestamp};

use crate::api::Work;
use crate::idempotency::Guard;
use crate::reply::Reply;

/// A change and what it depends on: one transaction.
pub(super) struct Change {
    pub(super) work: Work,
    pub(super) tenant: TenantId,
    pub(super) ticket: Option<Arc<Ticket>>,
    /// Answers that were kept before this are forgotten.
    pub(super) kept_since: Timestamp,
    pub(super) condition: Option<Condition>,
}

/// An Idempotency-Key in use. Its guard goes with the job, which may outlive the client.
pub(super) struct Ticket {
    pub(super) key: String,
    pub(super) fingerprint: [u8; 32],
    pub(super) _guard: Guard,
}

/// An `If-Match`.
pub(super) struct Condition {
    pub(super) tags: Vec<String>,
    pub(super) current: Work,
}

impl Change {
    pub(super) async fn run(&self, tx: &mut dyn Tx) -> Result<Reply, Error> {
        let tenant = self.tenant;
        if let Some(ticket) = &self.ticket
            && !tx.claim_idempotency(tenant, &ticket.key).await?
        {
            return Err(Error::IdempotencyInProgress);
        }
        // Another node may handle the same request, or change the record of the condition: what is read below stays
        // as it is only once the tenant is held.
        if (self.ticket.is_some() || self.condition.is_some()) && !tx.hold(tenant).await? {
            return Err(Error::NotFound);
        }
        if let Some(ticket) = &self.ticket
            && let Some(recorded) = tx.recorded(tenant, &ticket.key, self.kept_since).await?
        {
            let same = recorded.fingerprint == ticket.fingerprint;
            return if same { Ok(Reply::replay(recorded)) } else { Err(Error::IdempotencyKeyReused) };
        }
        let before = match &self.condition {
            Some(condition) => (condition.current)(tx, tenant).await?.etag,
            None => None,
        };
        let reply = (self.work)(tx, tenant).await?;
        // Compared last, as 404 and 409 come before 412; the transaction is undone then.
        if let (Some(condition), Some(before)) = (&self.condition, before)
            && !condition.tags.iter().any(|tag| tag == "*" || *tag == before)
        {
            return Err(Error::PreconditionFailed);
        }
        if let Some(ticket) = &self.ticket {
            let recorded = reply.record(ticket.fingerprint, tx.env().now());
            tx.record(tenant, &ticket.key, &recorded).await?;
        }
        Ok(reply)
    }
}
