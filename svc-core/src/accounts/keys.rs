//! API keys (decisions §9).
//!
//! A key is `svc_live_`, 32 random base62 characters, and 6 more that are the CRC-32 of those, so that a
//! typo is refused without a look-up. Only its SHA-256 is stored.

use std::time::Duration;

use uuid::Uuid;

use crate::accounts::audit::{self, Object};
use crate::accounts::limits::RateLimits;
use crate::accounts::tenants::{self, DeveloperAccess};
use crate::crypto::sha256;
use crate::env::Env;
use crate::error::Error;
use crate::input::record;
use crate::resources::crud::advance_clock;
use crate::store::Tx;
use crate::values::{Secret, TenantId, Timestamp, text_enum};

/// What every key begins with.
pub const KEY_PREFIX: &str = "svc_live_";

const RANDOM_LENGTH: usize = 32;
const CHECKSUM_LENGTH: usize = 6;
/// Characters of a key that are kept readable, to tell keys apart.
const VISIBLE_LENGTH: usize = KEY_PREFIX.len() + 6;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

text_enum! {
    /// What a key may do.
    pub enum Scope {
        Read = "read",
        Write = "write",
    }
}

record! {
    /// A key, without its text.
    pub struct ApiKey {
        /// Identifier.
        pub id: Uuid,
        /// The only tenant whose data it opens.
        pub tenant_id: TenantId,
        /// What it is for.
        pub name: Option<String>,
        /// `read`, or `read` and `write`.
        pub scopes: Vec<Scope>,
        /// Its first characters.
        pub prefix: String,
        /// When it was created.
        pub created_at: Timestamp,
        /// From when on it is refused.
        pub expires_at: Option<Timestamp>,
        /// When it was revoked.
        pub revoked_at: Option<Timestamp>,
        /// When it was last used, to about ten seconds.
        pub last_used_at: Option<Timestamp>,
        /// With which it signs its writes, if it opted in.
        #[serde(skip)]
        pub signing_secret: Option<Secret>,
    }
}

/// What is needed to admit the bearer of a key: one small row per request.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The key.
    pub key_id: Uuid,
    /// Its tenant.
    pub tenant_id: TenantId,
    /// Whether it may write.
    pub writes: bool,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// Whether it was revoked.
    pub revoked: bool,
    /// With which it signs its writes.
    pub signing_secret: Option<Secret>,
    /// The tenant's.
    pub developer_access: DeveloperAccess,
    /// The tenant's own.
    pub limits: RateLimits,
}

/// The bearer of a valid key.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key.
    pub key_id: Uuid,
    /// Its tenant.
    pub tenant_id: TenantId,
    /// With which it signs its writes.
    pub signing_secret: Option<Secret>,
    /// The tenant's own.
    pub limits: RateLimits,
    writes: bool,
    developer_access: DeveloperAccess,
}

impl Caller {
    /// Whether it may do this.
    ///
    /// # Errors
    /// [`Error::AccessNotApproved`] or [`Error::InsufficientScope`].
    pub fn require(&self, scope: Scope) -> Result<(), Error> {
        if self.developer_access != DeveloperAccess::Approved {
            return Err(Error::AccessNotApproved);
        }
        if scope == Scope::Write && !self.writes {
            return Err(Error::InsufficientScope);
        }
        Ok(())
    }
}

/// The SHA-256 of a key whose form and checksum are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Reads the text of a key.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] when its form or its checksum is wrong.
    pub fn of(key: &str) -> Result<Self, Error> {
        let body = key.strip_prefix(KEY_PREFIX).ok_or(Error::InvalidKey)?;
        if body.len() != RANDOM_LENGTH + CHECKSUM_LENGTH || !body.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(Error::InvalidKey);
        }
        let (random, sum) = body.split_at(RANDOM_LENGTH);
        if checksum(random) != sum {
            return Err(Error::InvalidKey);
        }
        Ok(Self(sha256(key.as_bytes())))
    }
}

/// CRC-32 of the random part in six base62 digits.
fn checksum(random: &str) -> String {
    let mut rest = crc32fast::hash(random.as_bytes()) as usize;
    let mut digits = [b'0'; CHECKSUM_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[rest % 62];
        rest /= 62;
    }
    digits.iter().copied().map(char::from).collect()
}

fn new_text(env: &Env) -> String {
    let mut random = String::with_capacity(RANDOM_LENGTH);
    while random.len() < RANDOM_LENGTH {
        // Bytes from 248 on would favour the first characters.
        let bytes: [u8; 64] = env.bytes();
        let fair = bytes.iter().filter(|b| **b < 248).take(RANDOM_LENGTH - random.len());
        random.extend(fair.map(|b| char::from(BASE62[usize::from(b % 62)])));
    }
    let sum = checksum(&random);
    format!("{KEY_PREFIX}{random}{sum}")
}

/// A new key and its text, which is handed out this once.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The key.
    pub key: ApiKey,
    /// Its text.
    pub text: Secret,
}

/// What a new key is to be.
#[derive(Clone, Debug)]
pub struct KeyCreate {
    /// What it is for.
    pub name: Option<String>,
    /// Whether it may write; every key may read.
    pub write: bool,
    /// After how long it is refused.
    pub expires_in: Option<Duration>,
    /// Whether its writes must be signed.
    pub signed: bool,
}

/// Creates a key.
///
/// # Errors
/// [`Error::NotFound`] when there is no such tenant.
pub async fn create(tx: &mut dyn Tx, tenant: TenantId, input: KeyCreate) -> Result<NewKey, Error> {
    tenants::get(tx, tenant).await?;
    let now = advance_clock(tx, tenant).await?;
    let text = new_text(tx.env());
    let scopes = if input.write { vec![Scope::Read, Scope::Write] } else { vec![Scope::Read] };
    let key = ApiKey {
        id: tx.env().id(now),
        tenant_id: tenant,
        name: input.name,
        scopes,
        prefix: text[..VISIBLE_LENGTH].to_owned(),
        created_at: now,
        expires_at: input.expires_in.and_then(|after| now.checked_add(after)),
        revoked_at: None,
        last_used_at: None,
        signing_secret: input.signed.then(|| crate::accounts::signing::new_request_secret(tx.env())),
    };
    tx.insert_api_key(&key, &sha256(text.as_bytes())).await?;
    note(tx, "create", None, &key).await?;
    Ok(NewKey { key, text: Secret::new(text) })
}

/// The key with this id.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn get(tx: &mut dyn Tx, id: Uuid) -> Result<ApiKey, Error> {
    tx.api_key(id).await?.ok_or(Error::NotFound)
}

/// The key with this id, which nobody else changes until the transaction ends.
async fn held(tx: &mut dyn Tx, id: Uuid) -> Result<ApiKey, Error> {
    let tenant = get(tx, id).await?.tenant_id;
    tx.lock_tenant(tenant).await?;
    get(tx, id).await
}

/// Refuses a key from now on. Doing it again changes nothing.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn revoke(tx: &mut dyn Tx, id: Uuid) -> Result<ApiKey, Error> {
    let mut key = held(tx, id).await?;
    if key.revoked_at.is_none() {
        let before = key.clone();
        key.revoked_at = Some(tx.env().now());
        tx.update_api_key(&key).await?;
        note(tx, "revoke", Some(&before), &key).await?;
    }
    Ok(key)
}

/// Replaces a key by a new one with the same name and rights; the old one is good for `overlap` more.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] for a key that is revoked or expired.
pub async fn rotate(tx: &mut dyn Tx, id: Uuid, overlap: Duration) -> Result<NewKey, Error> {
    let mut old = held(tx, id).await?;
    let now = tx.env().now();
    if old.revoked_at.is_some() || old.expires_at.is_some_and(|at| at <= now) {
        return Err(Error::NotAllowed("The key is revoked or expired; create a new one instead.".to_owned()));
    }
    let before = old.clone();
    let lifetime = old.expires_at.map(|at| at.since(old.created_at));
    let ends = now.checked_add(overlap).unwrap_or(now);
    old.expires_at = Some(old.expires_at.map_or(ends, |at| at.min(ends)));
    tx.update_api_key(&old).await?;
    note(tx, "rotate", Some(&before), &old).await?;
    let input = KeyCreate {
        name: old.name,
        write: old.scopes.contains(&Scope::Write),
        expires_in: lifetime,
        signed: old.signing_secret.is_some(),
    };
    create(tx, old.tenant_id, input).await
}

/// Notes a change of a key, which goes without its secrets.
async fn note(tx: &mut dyn Tx, action: &'static str, before: Option<&ApiKey>, after: &ApiKey) -> Result<(), Error> {
    audit::record(tx, after.tenant_id, action, Object { kind: "key", id: after.id }, before, Some(after)).await
}

/// Admits the bearer of a key.
///
/// # Errors
/// [`Error::InvalidKey`], [`Error::KeyRevoked`] or [`Error::KeyExpired`].
pub async fn authenticate(tx: &mut dyn Tx, hash: KeyHash) -> Result<Caller, Error> {
    let found = tx.credential(&hash.0).await?.ok_or(Error::InvalidKey)?;
    if found.revoked {
        return Err(Error::KeyRevoked);
    }
    if found.expires_at.is_some_and(|at| at <= tx.env().now()) {
        return Err(Error::KeyExpired);
    }
    Ok(Caller {
        key_id: found.key_id,
        tenant_id: found.tenant_id,
        signing_secret: found.signing_secret,
        limits: found.limits,
        writes: found.writes,
        developer_access: found.developer_access,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Entropy, SeededEntropy, SystemClock};

    #[test]
    fn a_typo_is_seen_without_a_look_up() {
        let key = new_text(&Env::new(SystemClock, SeededEntropy::new(1)));
        assert_eq!(key.len(), KEY_PREFIX.len() + RANDOM_LENGTH + CHECKSUM_LENGTH);
        assert!(KeyHash::of(&key).is_ok());
        for at in KEY_PREFIX.len()..key.len() {
            let mut typo = key.clone().into_bytes();
            typo[at] = if typo[at] == b'x' { b'y' } else { b'x' };
            let typo = String::from_utf8(typo).unwrap();
            assert_eq!(KeyHash::of(&typo), Err(Error::InvalidKey), "{typo}");
        }
    }

    /// Every byte of it is one that would favour some characters, but for a few.
    struct MostlyUnfair;

    impl Entropy for MostlyUnfair {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(248);
            bytes[..20].fill(247);
        }
    }

    #[test]
    fn a_key_has_its_length_however_many_bytes_are_left_out() {
        let key = new_text(&Env::new(SystemClock, MostlyUnfair));
        let random = &key[KEY_PREFIX.len()..key.len() - CHECKSUM_LENGTH];
        assert_eq!(random, char::from(BASE62[247 % 62]).to_string().repeat(RANDOM_LENGTH));
    }

    #[test]
    fn other_forms_are_refused() {
        for bad in ["", "svc_live_", "sk_live_abc", "svc_test_00000000000000000000000000000000000000", "svc_live_é"] {
            assert_eq!(KeyHash::of(bad), Err(Error::InvalidKey), "{bad}");
        }
    }
}
