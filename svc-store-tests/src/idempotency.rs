//! Responses that are stored under an Idempotency-Key, and the deletion of expired ones.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys::{self, KeyCreate, KeyId};
use svc_core::prelude::*;
use svc_core::resources::crud;
use svc_core::service::Submission;

use crate::Harness;

impl Harness {
    async fn stored_response(&self, tenant: TenantId, key: &str, after: Timestamp) -> Option<StoredResponse> {
        let key = key.to_owned();
        self.read((tenant, key, after), async |tx, (tenant, key, after)| {
            Ok(tx.stored_response(*tenant, key, *after).await?)
        })
        .await
        .unwrap()
    }

    async fn store_response(&self, tenant: TenantId, key: &str, stored: &StoredResponse) {
        let (key, stored) = (key.to_owned(), stored.clone());
        self.write((tenant, key, stored), async |tx, (tenant, key, stored)| {
            Ok(tx.store_response(*tenant, key, stored).await?)
        })
        .await
        .unwrap();
    }

    pub(super) async fn delete_request_records(&self, stored_before: Timestamp, now: Timestamp, limit: u32) -> u64 {
        self.write((stored_before, now, limit), async |tx, &(stored_before, now, limit)| {
            Ok(tx.delete_request_records(stored_before, now, limit).await?)
        })
        .await
        .unwrap()
    }
}

fn beginning() -> Timestamp {
    Timestamp::from_micros(0)
}

fn response(created_at: Timestamp) -> StoredResponse {
    StoredResponse { fingerprint: [7; 32], status: 201, location: None, etag: None, body: Vec::new(), created_at }
}

pub(super) async fn a_response_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    let now = h.store.env().now();
    let full = StoredResponse {
        fingerprint: std::array::from_fn(|at| at as u8),
        status: 409,
        location: Some("/api/v1/contacts/0195a3c8-0000-7000-8000-000000000001".to_owned()),
        etag: Some("\"ä\"".to_owned()),
        body: (0..=255).cycle().take(70_000).collect(),
        created_at: now,
    };
    for (key, stored) in [("full", full), ("bare", response(now))] {
        assert_eq!(h.stored_response(tenant, key, beginning()).await, None);
        h.store_response(tenant, key, &stored).await;
        assert_eq!(h.stored_response(tenant, key, beginning()).await, Some(stored));
    }
}

pub(super) async fn keys_are_compared_exactly(h: Harness) {
    let tenant = h.tenant().await;
    let longest = "k".repeat(255);
    let keys = ["k", "K", "k ", " k", "k%", "k_", "'", "007", "7", &longest, &longest[..254]];
    for (at, key) in keys.iter().enumerate() {
        let stored = StoredResponse { status: at as u16, ..response(h.store.env().now()) };
        h.store_response(tenant, key, &stored).await;
    }
    for (at, key) in keys.iter().enumerate() {
        let status = h.stored_response(tenant, key, beginning()).await.map(|stored| stored.status);
        assert_eq!(status, Some(at as u16), "{key:?}");
    }
}

pub(super) async fn responses_of_another_tenant_are_not_returned(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mine = response(h.store.env().now());
    h.store_response(tenant, "k", &mine).await;
    assert_eq!(h.stored_response(other, "k", beginning()).await, None);
    let theirs = StoredResponse { status: 200, ..mine.clone() };
    h.store_response(other, "k", &theirs).await;
    assert_eq!(h.stored_response(tenant, "k", beginning()).await, Some(mine));
    assert_eq!(h.stored_response(other, "k", beginning()).await, Some(theirs));
}

pub(super) async fn a_newer_response_replaces_the_stored_one(h: Harness) {
    let tenant = h.tenant().await;
    let first = StoredResponse { etag: Some("e".to_owned()), body: vec![1], ..response(h.store.env().now()) };
    let second = StoredResponse { fingerprint: [8; 32], status: 200, ..response(first.created_at.next()) };
    h.store_response(tenant, "k", &first).await;
    h.store_response(tenant, "k", &second).await;
    assert_eq!(h.stored_response(tenant, "k", beginning()).await, Some(second));
}

pub(super) async fn an_expired_response_is_not_returned(h: Harness) {
    let tenant = h.tenant().await;
    let stored = response(h.store.env().now());
    h.store_response(tenant, "k", &stored).await;
    let at = stored.created_at;
    assert_eq!(h.stored_response(tenant, "k", Timestamp::from_micros(at.as_micros() - 1)).await, Some(stored));
    assert_eq!(h.stored_response(tenant, "k", at).await, None, "strictly after");
    assert_eq!(h.stored_response(tenant, "k", at.next()).await, None);
}

/// Of concurrent requests with one key, one does the work. The others get its response, or the error that it is in progress.
pub(super) async fn a_key_is_claimed_by_one_transaction(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let claims = h.write((tenant, other), async |tx, &(tenant, other)| {
        let (first, again) = (tx.claim_idempotency(tenant, "k").await?, tx.claim_idempotency(tenant, "k").await?);
        Ok([first, again, tx.claim_idempotency(other, "k").await?, tx.claim_idempotency(tenant, "K").await?])
    });
    assert_eq!(claims.await, Ok([true; 4]), "a transaction can claim a key twice");
    let requests = (0..32).map(|_| {
        h.write(tenant, async |tx, &tenant| {
            if !tx.claim_idempotency(tenant, "k").await? {
                return Err(Error::IdempotencyInProgress);
            }
            tx.lock_tenant(tenant).await?;
            if tx.stored_response(tenant, "k", beginning()).await?.is_some() {
                return Ok(false);
            }
            let now = tx.env().now();
            tx.store_response(tenant, "k", &response(now)).await?;
            Ok(true)
        })
    });
    let done = join_all(requests).await;
    assert_eq!(done.iter().filter(|done| **done == Ok(true)).count(), 1, "{done:?}");
    assert!(done.iter().all(|done| matches!(done, Ok(_) | Err(Error::IdempotencyInProgress))), "{done:?}");
    let after = h.write(tenant, async |tx, &tenant| Ok(tx.claim_idempotency(tenant, "k").await?));
    assert_eq!(after.await, Ok(true), "a claim ends with its transaction");
}

/// Of the same form sent many times at once, one changes something, and all get its result.
pub(super) async fn a_form_changes_once(h: Harness) {
    let tenant = h.tenant().await;
    let svc = Svc::new(Arc::clone(&h.store));
    let form = Submission::new("k", "/jobs/new", b"title=x").unwrap();
    let sent = join_all((0..32).map(|_| {
        h.write((tenant, form.clone()), async |tx, (tenant, form)| {
            if let Some(id) = form.outcome(tx, *tenant).await? {
                return Ok(id);
            }
            let job = JobCreate::new(Text::parse("x").map_err(|issue| issue.on("title"))?);
            let id = crud::create::<Job>(tx, *tenant, job).await?.id;
            form.remember(tx, *tenant, &id).await?;
            Ok::<JobId, Error>(id)
        })
    }));
    let sent = sent.await;
    let jobs = svc.account(tenant).jobs().list(JobFilter::default(), ListParams::default()).await.unwrap().data;
    assert_eq!(jobs.len(), 1);
    assert!(sent.iter().all(|id| *id == Ok(jobs[0].id)), "{sent:?}");
    let other = Submission::new("k", "/jobs/new", b"title=y").unwrap();
    let refused = h.write((tenant, other), async |tx, (tenant, other)| other.outcome::<JobId>(tx, *tenant).await);
    assert_eq!(refused.await, Err(Error::IdempotencyKeyReused));
}

pub(super) async fn expired_records_are_deleted_in_steps(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: true };
    let key: KeyId = h
        .write((tenant, input), async |tx, (tenant, input)| keys::create(tx, *tenant, input.clone()).await)
        .await
        .unwrap()
        .key
        .id;
    let start = h.store.env().now();
    let at = |second: u64| start.checked_add(Duration::from_secs(second)).unwrap();
    for second in 0..5_u8 {
        let owner = if second % 2 == 0 { tenant } else { other };
        h.store_response(owner, &format!("k{second}"), &response(at(second.into()))).await;
        assert!(h.claim(key, [second; 32], at(second.into())).await);
    }
    // The other tenant's response under a key that expires is kept.
    h.store_response(other, "k0", &response(at(4))).await;
    assert_eq!(h.delete_request_records(at(0), at(0), 100).await, 0, "strictly before");
    assert_eq!(h.delete_request_records(at(4), at(0), 1).await, 1, "the limit applies to each kind");
    assert_eq!(h.delete_request_records(at(4), at(3), 2).await, 4, "two responses and two signatures");
    assert_eq!(h.delete_request_records(at(4), at(3), 2).await, 2, "the rest of both");
    assert_eq!(h.delete_request_records(at(4), at(3), 2).await, 0);
    let mut remaining = Vec::new();
    for second in 0..5 {
        let owner = if second % 2 == 0 { tenant } else { other };
        remaining
            .extend(h.stored_response(owner, &format!("k{second}"), beginning()).await.map(|stored| stored.created_at));
    }
    assert_eq!(remaining, [at(4)]);
    assert!(h.stored_response(other, "k0", beginning()).await.is_some());
    for second in 0..5_u8 {
        let is_deleted = h.claim(key, [second; 32], at(9)).await;
        assert_eq!(is_deleted, second < 3, "signature {second}");
    }
}
