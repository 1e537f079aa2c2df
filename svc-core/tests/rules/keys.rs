//! API keys: authentication, expiry, revocation and rotation.

use std::time::Duration;

use serde_json::json;
use svc_core::accounts::keys::{self, ApiKey, Caller, CallerId, KEY_PREFIX, KeyCreate, KeyHash, KeyId, NewKey, Scope};
use svc_core::accounts::tenants::{self, DeveloperAccess};
use svc_core::env::Clock as _;
use svc_core::error::Error;
use svc_core::values::{Id, TenantId, Timestamp};
use uuid::Uuid;

use super::{Rules, json_of, time};

const HOUR: Duration = Duration::from_secs(60 * 60);
const PLAIN: KeyCreate = KeyCreate { name: None, write: true, expires_in: None, signed: false };

impl Rules {
    fn key(&self, input: KeyCreate) -> NewKey {
        let tenant = self.tenant;
        self.write((tenant, input), async |tx, (tenant, input)| keys::create(tx, *tenant, input.clone()).await).unwrap()
    }

    fn authenticate(&self, key: &NewKey) -> Result<Caller, Error> {
        let hash = KeyHash::of(key.text.reveal()).unwrap();
        self.write(hash, async |tx, &hash| keys::authenticate(tx, hash).await)
    }

    fn stored(&self, id: KeyId) -> Result<ApiKey, Error> {
        self.write(id, async |tx, &id| keys::get(tx, id).await)
    }

    fn revoke(&self, id: KeyId) -> Result<ApiKey, Error> {
        self.write(id, async |tx, &id| keys::revoke(tx, id).await)
    }

    fn rotate(&self, id: KeyId, overlap: Duration) -> Result<NewKey, Error> {
        self.write((id, overlap), async |tx, &(id, overlap)| keys::rotate(tx, id, overlap).await)
    }

    /// Checks the last instant at which the key authenticates, and returns its error one microsecond later.
    fn assert_valid_until(&self, key: &NewKey, end: Timestamp) -> Error {
        self.clock.set(Timestamp::from_micros(end.as_micros() - 1));
        assert_eq!(self.authenticate(key).unwrap().id, CallerId::Key(key.key.id));
        self.clock.set(end);
        self.authenticate(key).unwrap_err()
    }
}

#[test]
fn the_text_of_a_key_is_shown_once() {
    let fixture = Rules::new();
    let input = KeyCreate { name: Some("Shop".to_owned()), expires_in: Some(HOUR), signed: true, ..PLAIN };
    let NewKey { key, text, .. } = fixture.key(input);
    assert!(text.reveal().starts_with(KEY_PREFIX) && text.reveal().len() == 9 + 32 + 6);
    let shown = json!({
        "id": key.id, "tenant_id": fixture.tenant, "name": "Shop", "scopes": ["read", "write"],
        "prefix": text.reveal()[..15], "created_at": "2026-03-14T15:09:26.535898Z",
        "expires_at": "2026-03-14T16:09:26.535898Z", "revoked_at": null, "last_used_at": null,
    });
    assert_eq!(json_of(&key), shown, "the record must contain neither text nor signing secret");
    assert!(key.signing_secret.as_ref().unwrap().reveal().starts_with("svcsig_"));
    assert_eq!(fixture.stored(key.id), Ok(key));
    assert_eq!(fixture.key(PLAIN).key.signing_secret, None);
    let unknown_tenant = TenantId(Uuid::nil());
    let refused =
        fixture.write(unknown_tenant, async |tx, &unknown_tenant| keys::create(tx, unknown_tenant, PLAIN).await);
    assert_eq!(refused.unwrap_err(), Error::NotFound);
}

#[test]
fn scopes_and_developer_access_are_checked() {
    let fixture = Rules::new();
    let reader = fixture.key(KeyCreate { write: false, ..PLAIN });
    let writer = fixture.key(PLAIN);
    assert_eq!(reader.key.scopes, [Scope::Read]);
    for (access, read, write_by_reader, write) in [
        (DeveloperAccess::Approved, Ok(()), Err(Error::InsufficientScope), Ok(())),
        (
            DeveloperAccess::Pending,
            Err(Error::AccessNotApproved),
            Err(Error::AccessNotApproved),
            Err(Error::AccessNotApproved),
        ),
        (
            DeveloperAccess::Suspended,
            Err(Error::AccessNotApproved),
            Err(Error::AccessNotApproved),
            Err(Error::AccessNotApproved),
        ),
    ] {
        let tenant = fixture.tenant.0;
        fixture
            .write((tenant, access), async |tx, &(tenant, access)| {
                tenants::update(tx, tenant, move |t| t.developer_access = access).await
            })
            .unwrap();
        let [reader, writer] = [&reader, &writer].map(|key| {
            let caller = fixture.authenticate(key).unwrap();
            assert_eq!((caller.id, caller.tenant_id), (CallerId::Key(key.key.id), fixture.tenant));
            caller
        });
        assert_eq!((reader.require(Scope::Read), writer.require(Scope::Read)), (read.clone(), read), "{access}");
        assert_eq!((reader.require(Scope::Write), writer.require(Scope::Write)), (write_by_reader, write), "{access}");
    }
}

#[test]
fn an_unknown_key_is_invalid() {
    let fixture = Rules::new();
    let unknown = Rules::new().key(PLAIN);
    assert_eq!(fixture.authenticate(&unknown).unwrap_err(), Error::InvalidKey);
}

#[test]
fn a_revoked_key_is_refused_at_once() {
    let fixture = Rules::new();
    let key = fixture.key(KeyCreate { expires_in: Some(HOUR), ..PLAIN });
    let kept = fixture.key(PLAIN);
    assert_eq!(fixture.authenticate(&key).unwrap().id, CallerId::Key(key.key.id));
    fixture.clock.advance(Duration::from_secs(1));
    let revoked = fixture.revoke(key.key.id).unwrap();
    assert_eq!(revoked.revoked_at, Some(time("2026-03-14T15:09:27.535897Z")));
    assert_eq!(fixture.authenticate(&key).unwrap_err(), Error::KeyRevoked);
    fixture.clock.advance(2 * HOUR);
    assert_eq!(fixture.revoke(key.key.id), Ok(revoked), "a second revocation changes nothing");
    assert_eq!(
        fixture.authenticate(&key).unwrap_err(),
        Error::KeyRevoked,
        "a revoked and expired key is reported as revoked"
    );
    assert!(fixture.authenticate(&kept).is_ok());
    assert_eq!(fixture.revoke(Id::nil()), Err(Error::NotFound));
}

#[test]
fn a_key_expires_at_the_exact_microsecond() {
    let fixture = Rules::new();
    let key = fixture.key(KeyCreate { expires_in: Some(HOUR), ..PLAIN });
    assert_eq!(fixture.assert_valid_until(&key, time("2026-03-14T16:09:26.535898Z")), Error::KeyExpired);
}

#[test]
fn both_keys_work_during_the_overlap_of_a_rotation() {
    let fixture = Rules::new();
    let old = fixture.key(KeyCreate { name: Some("Shop".to_owned()), write: false, signed: true, ..PLAIN });
    let new = fixture.rotate(old.key.id, HOUR).unwrap();
    assert_eq!((&new.key.name, &new.key.scopes, new.key.expires_at), (&old.key.name, &old.key.scopes, None));
    assert_ne!((new.key.id, new.text.reveal()), (old.key.id, old.text.reveal()));
    assert_ne!(new.key.signing_secret, old.key.signing_secret);
    assert!(new.key.signing_secret.is_some());
    assert!(fixture.authenticate(&new).is_ok());
    assert_eq!(fixture.assert_valid_until(&old, time("2026-03-14T16:09:26.535897Z")), Error::KeyExpired);
    assert!(fixture.authenticate(&new).is_ok());
    let refused = fixture.rotate(old.key.id, HOUR).unwrap_err();
    assert_eq!(refused, Error::NotAllowed("The key is revoked or expired; create a new one instead.".to_owned()));
}

#[test]
fn rotation_keeps_the_lifetime_and_does_not_extend_the_old_key() {
    let fixture = Rules::new();
    let old = fixture.key(KeyCreate { expires_in: Some(2 * HOUR), ..PLAIN });
    fixture.clock.advance(HOUR);
    let new = fixture.rotate(old.key.id, 24 * HOUR).unwrap();
    assert_eq!(fixture.stored(old.key.id).unwrap().expires_at, old.key.expires_at);
    assert_eq!(new.key.expires_at, new.key.created_at.checked_add(2 * HOUR));
    assert_eq!(fixture.assert_valid_until(&old, old.key.expires_at.unwrap()), Error::KeyExpired);
}

#[test]
fn every_replacement_has_the_lifetime_of_the_first_key() {
    let fixture = Rules::new();
    for lifetime in [Some(48 * HOUR), None] {
        let old = fixture.key(KeyCreate { expires_in: lifetime, ..PLAIN });
        let assert_lifetime = |key: &ApiKey| {
            assert_eq!(key.expires_at, lifetime.and_then(|lifetime| key.created_at.checked_add(lifetime)));
        };
        // The first rotation moves the expiry of the old key to the end of the overlap.
        let first = fixture.rotate(old.key.id, HOUR).unwrap();
        let second = fixture.rotate(old.key.id, HOUR).unwrap();
        let third = fixture.rotate(second.key.id, HOUR).unwrap();
        [first, second, third].iter().for_each(|new| assert_lifetime(&new.key));
        assert_eq!(fixture.stored(old.key.id).unwrap().expires_at, fixture.clock.now().checked_add(HOUR));
    }
}

#[test]
fn rotation_without_overlap_ends_the_old_key_at_once() {
    let fixture = Rules::new();
    let old = fixture.key(PLAIN);
    let new = fixture.rotate(old.key.id, Duration::ZERO).unwrap();
    assert_eq!(fixture.authenticate(&old).unwrap_err(), Error::KeyExpired);
    assert!(fixture.authenticate(&new).is_ok());
    fixture.revoke(new.key.id).unwrap();
    assert!(matches!(fixture.rotate(new.key.id, HOUR), Err(Error::NotAllowed(_))));
    assert_eq!(fixture.rotate(Id::nil(), HOUR).unwrap_err(), Error::NotFound);
}
