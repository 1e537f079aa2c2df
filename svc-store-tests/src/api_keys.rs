//! API keys and request signatures.

use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::future::join_all;
use svc_core::accounts::keys::{self, ApiKey, CallerId, Credential, KeyCreate, KeyHash, KeyId, NewKey, Scope};
use svc_core::accounts::limits::{CappedCollection, RateLimits};
use svc_core::accounts::tenants::{self, DeveloperAccess};
use svc_core::error::{Error, StoreError};
use svc_core::store::KeyUse;
use svc_core::values::{Id, Secret, TenantId, Timestamp};
use uuid::Uuid;

use crate::Harness;

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Harness {
    /// Creates a key that can write, and returns it with the hash of its text.
    pub(super) async fn key_with_hash(&self, tenant: TenantId) -> (ApiKey, [u8; 32]) {
        let NewKey { key, text, .. } = self.new_key(tenant, true, None, false).await;
        (key, svc_core::crypto::sha256(text.reveal().as_bytes()))
    }

    async fn new_key(&self, tenant: TenantId, write: bool, expires_in: Option<Duration>, signed: bool) -> NewKey {
        let name = Some("Zoë's key 🔑".to_owned());
        let input = KeyCreate { name, write, expires_in, signed };
        self.write((tenant, input), async |tx, (tenant, input)| keys::create(tx, *tenant, input.clone()).await)
            .await
            .unwrap()
    }

    async fn key(&self, id: KeyId) -> Option<ApiKey> {
        self.read(id, async |tx, &id| Ok(tx.api_key(id).await?)).await.unwrap()
    }

    async fn insert_api_key(&self, key: &ApiKey, hash: [u8; 32]) -> Result<(), Error> {
        let key = key.clone();
        self.write((key, hash), async |tx, (key, hash)| Ok(tx.insert_api_key(key, hash).await?)).await
    }

    async fn credential(&self, hash: [u8; 32]) -> Option<Credential> {
        self.read(hash, async |tx, &hash| Ok(tx.credential(&hash).await?)).await.unwrap()
    }

    async fn authenticate(&self, key: &NewKey) -> Result<keys::Caller, Error> {
        let hash = KeyHash::of(key.text.reveal()).unwrap();
        self.read(hash, async |tx, &hash| keys::authenticate(tx, hash).await).await
    }

    async fn revoke(&self, id: KeyId) -> ApiKey {
        self.write(id, async |tx, &id| keys::revoke(tx, id).await).await.unwrap()
    }

    async fn record_uses(&self, uses: &[(KeyId, Timestamp)]) {
        let uses: Vec<KeyUse> =
            uses.iter().map(|(key_id, used_at)| KeyUse { key_id: *key_id, used_at: *used_at }).collect();
        self.write(uses, async |tx, uses| Ok(tx.record_key_uses(uses).await?)).await.unwrap();
    }

    pub(super) async fn claim(&self, key: KeyId, mac: [u8; 32], expires_at: Timestamp) -> bool {
        self.write((key, mac, expires_at), async |tx, &(key, mac, expires_at)| {
            Ok(tx.claim_signature(key, &mac, expires_at).await?)
        })
        .await
        .unwrap()
    }
}

pub(super) async fn a_key_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    for (write, expires_in, signed) in [(true, None, true), (false, Some(HOUR), false)] {
        let new = h.new_key(tenant, write, expires_in, signed).await;
        assert_eq!(h.key(new.key.id).await, Some(new.key));
    }
    assert_eq!(h.key(Id::nil()).await, None);
    let now = h.advance_clock(tenant).await;
    let bare = ApiKey {
        id: h.store.env().id(now),
        tenant_id: tenant,
        name: None,
        scopes: vec![Scope::Read],
        prefix: "svc_live_000000".to_owned(),
        created_at: now,
        lifetime: None,
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
        signing_secret: None,
    };
    h.insert_api_key(&bare, [0; 32]).await.unwrap();
    assert_eq!(h.key(bare.id).await, Some(bare.clone()));
    let full = ApiKey {
        id: h.store.env().id(now),
        name: Some("漢".repeat(300)),
        scopes: vec![Scope::Read, Scope::Write],
        created_at: now.next(),
        lifetime: Some(HOUR + Duration::from_micros(1)),
        expires_at: Some(now.next()),
        revoked_at: Some(now),
        last_used_at: Some(now),
        signing_secret: Some(Secret::new("svcsig_c2VjcmV0+/==")),
        ..bare.clone()
    };
    h.insert_api_key(&full, [255; 32]).await.unwrap();
    assert_eq!(h.key(full.id).await, Some(full.clone()));

    // An update can set and clear the expiry and the revocation.
    let changed = ApiKey { expires_at: None, revoked_at: None, ..full };
    let stored = changed.clone();
    let write = h.write(stored, async |tx, stored| {
        let key = stored.clone();
        Ok(tx.update_api_key(&key).await?)
    });
    write.await.unwrap();
    assert_eq!(h.key(changed.id).await, Some(changed));
    assert_eq!(h.key(bare.id).await, Some(bare), "another key is unchanged");
}

pub(super) async fn keys_of_a_tenant_are_listed(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mut want = Vec::new();
    for _ in 0..5 {
        want.push(h.new_key(tenant, true, None, false).await.key);
        h.new_key(other, true, None, false).await;
    }
    want[1] = h.revoke(want[1].id).await;
    let list = async |tenant| h.read(tenant, async |tx, &tenant| Ok(tx.api_keys(tenant).await?)).await.unwrap();
    assert_eq!(list(tenant).await, want, "oldest first, including revoked keys");
    assert_eq!(list(other).await.len(), 5);
    assert_eq!(list(TenantId(Uuid::nil())).await, []);
}

pub(super) async fn a_key_is_found_by_its_hash(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let keys = [
        h.new_key(tenant, true, None, true).await,
        h.new_key(other, false, Some(HOUR), false).await,
        h.new_key(tenant, false, None, false).await,
    ];
    for NewKey { key, text, .. } in &keys {
        let found = h.credential(svc_core::crypto::sha256(text.reveal().as_bytes())).await.unwrap();
        assert_eq!((found.key_id, found.tenant_id), (key.id, key.tenant_id));
        assert_eq!(found.writes, key.scopes.contains(&Scope::Write));
        assert_eq!((found.expires_at, found.revoked), (key.expires_at, false));
        assert_eq!(found.signing_secret, key.signing_secret);
        assert_eq!(found.developer_access, DeveloperAccess::Approved);
    }
    for unknown in [[0; 32], [255; 32]] {
        assert!(h.credential(unknown).await.is_none());
    }
}

/// Writers and a revocation at the same time: after the revocation, no writer sees a key that works.
pub(super) async fn a_locked_credential_does_not_change(h: Harness) {
    let tenant = h.tenant().await;
    let (key, hash) = h.key_with_hash(tenant).await;
    // The name of the tenant says whether the key was revoked, as only transactions that lock the tenant change it.
    let write = || {
        h.write((tenant, hash, key.id), async |tx, &(tenant, hash, id)| {
            let found = tx.lock_credential(tenant, &hash).await?.ok_or(Error::InvalidKey)?;
            assert_eq!((found.key_id, found.tenant_id), (id, tenant));
            Ok((found.revoked, tenants::get(tx, tenant).await?.name == "Revoked"))
        })
    };
    let revoke = h.write((key.id, tenant), async |tx, &(id, tenant)| {
        keys::revoke(tx, id).await?;
        tenants::update(tx, tenant.0, |tenant| tenant.name = "Revoked".to_owned()).await.map(|_| (true, true))
    });
    let before = join_all((0..16).map(|_| write())).await;
    assert!(before.iter().all(|seen| *seen == Ok((false, false))), "{before:?}");
    let mut concurrent: Vec<futures_util::future::BoxFuture<'_, Result<(bool, bool), Error>>> = vec![Box::pin(revoke)];
    concurrent.extend((0..32).map(|_| Box::pin(write()) as _));
    for seen in join_all(concurrent).await {
        let (revoked, renamed) = seen.unwrap();
        assert_eq!(revoked, renamed, "the credential is as old as the lock");
    }
    assert_eq!(write().await, Ok((true, true)));
    let unknown = h.write(tenant, async |tx, &tenant| Ok(tx.lock_credential(tenant, &[0; 32]).await?.is_some()));
    assert_eq!(unknown.await, Ok(false));
}

pub(super) async fn a_hash_is_unique(h: Harness) {
    let tenant = h.tenant().await;
    let (key, hash) = h.key_with_hash(tenant).await;
    let now = h.advance_clock(tenant).await;
    let twin = ApiKey { id: h.store.env().id(now), created_at: now, ..key.clone() };
    let same_hash = h.insert_api_key(&twin, hash).await;
    assert!(matches!(same_hash, Err(Error::Store(StoreError::Conflict { .. }))), "{same_hash:?}");
    let same_id = h.insert_api_key(&key, [7; 32]).await;
    assert!(matches!(same_id, Err(Error::Store(StoreError::Conflict { .. }))), "{same_id:?}");
    assert_eq!(h.credential(hash).await.map(|found| found.key_id), Some(key.id));
    assert!(h.credential([7; 32]).await.is_none());
}

pub(super) async fn a_credential_shows_revocation_and_expiry(h: Harness) {
    let tenant = h.tenant().await;
    let revoked = h.new_key(tenant, true, None, false).await;
    let expiring = h.new_key(tenant, true, Some(HOUR), false).await;
    assert_eq!(h.authenticate(&revoked).await.unwrap().id, CallerId::Key(revoked.key.id));
    h.revoke(revoked.key.id).await;
    assert_eq!(h.authenticate(&revoked).await.unwrap_err(), Error::KeyRevoked);
    let end = expiring.key.expires_at.unwrap();
    assert_eq!(end, expiring.key.created_at.checked_add(HOUR).unwrap());
    h.clock.set(Timestamp::from_micros(end.as_micros() - 1));
    assert_eq!(h.authenticate(&expiring).await.unwrap().id, CallerId::Key(expiring.key.id));
    h.clock.set(end);
    assert_eq!(h.authenticate(&expiring).await.unwrap_err(), Error::KeyExpired);
}

pub(super) async fn a_credential_shows_a_suspended_tenant(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let key = h.new_key(tenant, true, None, false).await;
    let bystander = h.new_key(other, true, None, false).await;
    for access in [DeveloperAccess::Suspended, DeveloperAccess::Pending, DeveloperAccess::Approved] {
        let update = h.write((tenant, access), async |tx, &(tenant, access)| {
            tenants::update(tx, tenant.0, move |tenant| tenant.developer_access = access).await
        });
        update.await.unwrap();
        let found = h.credential(svc_core::crypto::sha256(key.text.reveal().as_bytes())).await.unwrap();
        assert_eq!(found.developer_access, access);
        let approved = access == DeveloperAccess::Approved;
        let want = if approved { Ok(()) } else { Err(Error::AccessNotApproved) };
        assert_eq!(h.authenticate(&key).await.unwrap().require(Scope::Read), want);
        assert_eq!(h.authenticate(&bystander).await.unwrap().require(Scope::Write), Ok(()));
    }
}

pub(super) async fn a_credential_has_the_limits_of_its_tenant(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let [key, bystander] = [h.new_key(tenant, true, None, true).await, h.new_key(other, true, None, true).await];
    assert_eq!(h.authenticate(&key).await.unwrap().limits, RateLimits::default());
    let all = RateLimits {
        rate_limit: Some(NonZeroU32::MAX),
        write_rate_limits: CappedCollection::ALL.iter().map(|name| (*name, NonZeroU32::MAX)).collect(),
    };
    let one = RateLimits { rate_limit: Some(NonZeroU32::MIN), ..RateLimits::default() };
    for limits in [one, all, RateLimits { rate_limit: None, ..all }, RateLimits::default()] {
        let set = h.write((tenant, limits), async |tx, &(tenant, limits)| {
            tenants::update(tx, tenant.0, move |tenant| tenant.limits = limits).await
        });
        assert_eq!(set.await.unwrap().limits, limits);
        assert_eq!(h.authenticate(&key).await.unwrap().limits, limits);
        assert_eq!(h.authenticate(&bystander).await.unwrap().limits, RateLimits::default());
    }
}

pub(super) async fn last_use_never_goes_back(h: Harness) {
    let tenant = h.tenant().await;
    let ids = [h.new_key(tenant, true, None, false).await.key.id, h.new_key(tenant, true, None, false).await.key.id];
    let now = h.store.env().now();
    let earlier = Timestamp::from_micros(now.as_micros() - 1);
    let used = async || [h.key(ids[0]).await.unwrap().last_used_at, h.key(ids[1]).await.unwrap().last_used_at];
    assert_eq!(used().await, [None, None]);
    h.record_uses(&[(ids[0], now), (Id::nil(), now)]).await;
    assert_eq!(used().await, [Some(now), None], "an unknown key is ignored");
    h.record_uses(&[(ids[0], earlier), (ids[1], earlier)]).await;
    assert_eq!(used().await, [Some(now), Some(earlier)]);
    h.record_uses(&[(ids[1], now), (ids[0], now.next())]).await;
    assert_eq!(used().await, [Some(now.next()), Some(now)]);
    h.record_uses(&Vec::new()).await;
    assert_eq!(used().await, [Some(now.next()), Some(now)]);
    // Revoking with a record that was read before keeps the last use.
    h.revoke(ids[0]).await;
    assert_eq!(used().await, [Some(now.next()), Some(now)]);
}

/// A clock that runs ahead lets signatures expire early. They are not accepted again when it is set back.
pub(super) async fn a_signature_that_may_be_deleted_is_not_accepted(h: Harness) {
    let tenant = h.tenant().await;
    let key = h.new_key(tenant, true, None, true).await.key.id;
    let other = h.new_key(tenant, true, None, true).await.key.id;
    let start = h.store.env().now();
    let at = |second: u64| start.checked_add(Duration::from_secs(second)).unwrap();
    for second in 1..=4_u8 {
        assert!(h.claim(key, [second; 32], at(second.into())).await);
    }
    assert_eq!(h.delete_request_records(at(0), at(4), 2).await, 2);
    assert!(!h.claim(key, [2; 32], at(2)).await, "it was used and deleted");
    assert!(!h.claim(key, [9; 32], at(1)).await, "it could have been");
    assert!(h.claim(key, [8; 32], at(3)).await, "every used one that expires later is stored");
    assert!(!h.claim(key, [3; 32], at(3)).await);
    assert!(h.claim(other, [1; 32], at(1)).await, "another key");
    // Deleting an earlier one later does not take it back.
    assert_eq!(h.delete_request_records(at(0), at(4), 10).await, 5);
    assert_eq!(h.delete_request_records(at(0), at(4), 10).await, 0);
    for second in 1..=3_u8 {
        assert!(!h.claim(key, [second; 32], at(second.into())).await, "{second}");
    }
    assert!(!h.claim(key, [4; 32], at(4)).await);
    assert!(h.claim(key, [5; 32], at(5)).await);
}

pub(super) async fn a_signature_is_accepted_once(h: Harness) {
    let tenant = h.tenant().await;
    let key = h.new_key(tenant, true, None, true).await.key.id;
    let other = h.new_key(tenant, true, None, true).await.key.id;
    let end = h.store.env().now().checked_add(HOUR).unwrap();
    assert!(h.claim(key, [1; 32], end).await);
    assert!(!h.claim(key, [1; 32], end).await);
    assert!(!h.claim(key, [1; 32], end.next()).await);
    assert!(h.claim(key, [2; 32], end).await, "another signature");
    assert!(h.claim(other, [1; 32], end).await, "another key");
    let claims = join_all((0..32).map(|_| h.claim(key, [3; 32], end))).await;
    assert_eq!(claims.iter().filter(|claimed| **claimed).count(), 1, "one of the concurrent claims succeeds");
    // A claim is part of its transaction.
    let failed = h.write((key, end), async |tx, &(key, end)| {
        let claimed = tx.claim_signature(key, &[4; 32], end).await?;
        Err::<(), _>(Error::NotAllowed(claimed.to_string()))
    });
    assert_eq!(failed.await, Err(Error::NotAllowed("true".to_owned())));
    assert!(h.claim(key, [4; 32], end).await);
}
