//! Platform keys.

use std::time::Duration;

use futures_util::future::join_all;
use svc_core::accounts::actor::Actor;
use svc_core::accounts::platform_keys::{
    self, NewPlatformKey, PlatformKey, PlatformKeyCreate, PlatformKeyHash, PlatformKeyId, PlatformScope,
};
use svc_core::error::{Error, StoreError};
use svc_core::store::KeyUse;
use svc_core::values::Id;

use crate::Harness;

const HOUR: Duration = Duration::from_secs(60 * 60);

impl Harness {
    async fn new_platform_key(&self, scopes: &[PlatformScope], expires_in: Option<Duration>) -> NewPlatformKey {
        let input = PlatformKeyCreate { name: Some("Zoë's 🔑".to_owned()), scopes: scopes.to_vec(), expires_in };
        self.write(input, async |tx, input| {
            tx.act_as(Actor::Cli("ada".to_owned()));
            platform_keys::create(tx, input.clone()).await
        })
        .await
        .unwrap()
    }

    async fn platform_key(&self, id: PlatformKeyId) -> Result<PlatformKey, Error> {
        self.read(id, async |tx, &id| platform_keys::get(tx, id).await).await
    }

    async fn platform_key_ids(&self) -> Vec<PlatformKeyId> {
        let keys = self.read((), async |tx, ()| Ok(tx.platform_keys().await?)).await.unwrap();
        keys.iter().map(|key| key.id).collect()
    }

    async fn authenticate_platform_key(&self, new: &NewPlatformKey) -> Result<PlatformKey, Error> {
        let hash = PlatformKeyHash::of(new.text.reveal()).unwrap();
        self.read(hash, async |tx, &hash| platform_keys::authenticate(tx, hash).await).await
    }
}

pub(super) async fn a_platform_key_is_stored(h: Harness) {
    let every: Vec<PlatformScope> = PlatformScope::all().collect();
    let before = h.platform_key_ids().await;
    let mut ids = Vec::new();
    for (scopes, expires_in) in [(&every[..], Some(HOUR)), (&every[3..4], None)] {
        let new = h.new_platform_key(scopes, expires_in).await;
        assert_eq!(new.key.created_by, "cli:ada");
        assert_eq!(h.platform_key(new.key.id).await, Ok(new.key.clone()));
        assert_eq!(h.authenticate_platform_key(&new).await, Ok(new.key.clone()));
        ids.push(new.key.id);
        h.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(h.platform_key_ids().await, [before, ids].concat());
    assert_eq!(h.platform_key(Id::nil()).await, Err(Error::NotFound));
}

pub(super) async fn a_platform_key_is_unique(h: Harness) {
    let new = h.new_platform_key(&[PlatformScope::All], None).await;
    let insert = |key: PlatformKey, hash: [u8; 32]| {
        h.write((key, hash), async |tx, (key, hash)| Ok(tx.insert_platform_key(key, hash).await?))
    };
    let hash = svc_core::crypto::sha256(new.text.reveal().as_bytes());
    for (key, hash) in [
        (new.key.clone(), [9; 32]),
        (PlatformKey { id: h.store.env().id(new.key.created_at), ..new.key.clone() }, hash),
    ] {
        assert!(matches!(insert(key, hash).await, Err(Error::Store(StoreError::Conflict { .. }))));
    }
}

pub(super) async fn a_revoked_or_expired_platform_key_is_refused(h: Harness) {
    let revoked = h.new_platform_key(&[PlatformScope::All], None).await;
    let expiring = h.new_platform_key(&[PlatformScope::All], Some(HOUR)).await;
    let id = revoked.key.id;
    let revoke = || {
        h.write(id, async |tx, &id| {
            tx.act_as(Actor::Cli("bob".to_owned()));
            platform_keys::revoke(tx, id).await
        })
    };
    let first = revoke().await.unwrap();
    assert!(first.revoked_at.is_some() && first.revoked_by.as_deref() == Some("cli:bob"));
    h.clock.advance(HOUR - Duration::from_micros(1));
    assert_eq!(revoke().await.as_ref(), Ok(&first), "revoking it again changes nothing");
    assert_eq!(h.platform_key(id).await, Ok(first));
    assert_eq!(h.authenticate_platform_key(&revoked).await, Err(Error::KeyRevoked));
    assert!(h.authenticate_platform_key(&expiring).await.is_ok());
    h.clock.advance(Duration::from_micros(1));
    assert_eq!(h.authenticate_platform_key(&expiring).await, Err(Error::KeyExpired));
}

pub(super) async fn of_concurrent_revocations_the_first_counts(h: Harness) {
    let id = h.new_platform_key(&[PlatformScope::All], None).await.key.id;
    let revocations = (0..16).map(|at| {
        h.write((id, at), async |tx, &(id, at)| {
            tx.act_as(Actor::Cli(at.to_string()));
            platform_keys::revoke(tx, id).await
        })
    });
    let stored = join_all(revocations).await;
    let key = h.platform_key(id).await.unwrap();
    assert!(key.revoked_by.is_some() && stored.into_iter().all(|revoked| revoked.as_ref() == Ok(&key)));
    assert_eq!(h.write(Id::nil(), async |tx, &id| Ok(tx.lock_platform_key(id).await?)).await, Ok(None));
}

pub(super) async fn last_use_of_a_platform_key_never_goes_back(h: Harness) {
    let key_id = h.new_platform_key(&[PlatformScope::All], None).await.key.id;
    let later = h.store.env().now().next();
    for used_at in [h.store.env().now(), later, h.store.env().now()] {
        let uses = [KeyUse { key_id, used_at }];
        h.write(uses, async |tx, &uses| Ok(tx.record_platform_key_uses(&uses).await?)).await.unwrap();
    }
    assert_eq!(h.platform_key(key_id).await.unwrap().last_used_at, Some(later));
}
