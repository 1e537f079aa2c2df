//! API keys (`docs/contract.md`, "API keys").
//!
//! A key is `svc_live_`, or `svc_test_` for a sandbox, 32 random base62 characters, and 6 base62 characters of their CRC-32,
//! so that a typo is refused without a database lookup. The store keeps only the SHA-256 of the key and its first 15 characters.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::scopes::Scope;
use crate::accounts::actor::Actor;
use crate::accounts::apps::AppId;
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::accounts::grants::GrantId;
use crate::accounts::limits::RateLimits;
use crate::accounts::tenants::{self, DeveloperAccess};
use crate::crypto::sha256;
use crate::env::Env;
use crate::error::Error;
use crate::input::Record;
use crate::store::Tx;
use crate::values::{Id, Secret, TenantId, Timestamp};

/// The id of an API key.
pub type KeyId = Id<ApiKey>;

/// The number of keys of an account that can work at a time. It bounds what one person can make.
pub const MAX_KEYS: usize = 500;
/// The prefix of the keys of accounts.
pub const KEY_PREFIX: &str = "svc_live_";
/// The prefix of the keys of sandboxes, which is as long.
pub const TEST_KEY_PREFIX: &str = "svc_test_";

const RANDOM_LENGTH: usize = 32;
const CHECKSUM_LENGTH: usize = 6;
/// The number of leading characters that are stored in plain text, to tell keys apart.
pub(crate) const VISIBLE_LENGTH: usize = KEY_PREFIX.len() + 6;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An API key without its secret text, which is shown once and not stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct ApiKey {
    /// The unique identifier of the key, a UUID of version 7. It names the key in the log and for operators.
    pub id: KeyId,
    /// The tenant that the key belongs to. The key opens the data of this tenant only.
    pub tenant_id: TenantId,
    /// The purpose of the key, in the words of its creator. Null if nothing was given.
    pub name: Option<String>,
    /// The scopes of the key: `read`, or `read` and `write`. Set at creation; a rotation passes it on.
    pub scopes: Vec<Scope>,
    /// The first 15 characters of the key, which tell keys apart.
    pub prefix: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// How long the key was made to work. `None` if it was made without an expiry. A rotation passes it on, and does not
    /// change it on the old key.
    #[serde(skip)]
    pub lifetime: Option<Duration>,
    /// When the key stops working; it is refused from this time on. Null if it does not expire. A rotation sets it on
    /// the old key to the end of the overlap.
    pub expires_at: Option<Timestamp>,
    /// When the key was revoked. Null while it has not been.
    pub revoked_at: Option<Timestamp>,
    /// When the key was last used, exact to about ten seconds. Null if it never was.
    pub last_used_at: Option<Timestamp>,
    /// The secret with which the key signs its requests. `None` for a key that does not sign.
    #[serde(skip)]
    pub signing_secret: Option<Secret>,
}

/// The part of a key and its tenant that authentication reads: one row per request.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The id of the key.
    pub key_id: KeyId,
    /// The tenant that the key belongs to.
    pub tenant_id: TenantId,
    /// Whether the key has the `write` scope.
    pub writes: bool,
    /// When the key expires; `None` when it does not.
    pub expires_at: Option<Timestamp>,
    /// Whether the key was revoked.
    pub revoked: bool,
    /// The secret that the writes of the key must be signed with; `None` when they need no signature.
    pub signing_secret: Option<Secret>,
    /// The developer access of the tenant.
    pub developer_access: DeveloperAccess,
    /// The rate limits that the tenant has in place of the server's.
    pub limits: RateLimits,
    /// Whether the tenant is the sandbox of an account.
    pub is_sandbox: bool,
}

/// The credential that authenticated a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerId {
    /// An API key.
    Key(KeyId),
    /// A token of an app, under the grant of the account.
    App {
        /// The app.
        app: AppId,
        /// The grant.
        grant: GrantId,
    },
}

impl CallerId {
    /// Returns the id of the key, or of the grant: what requests are counted and logged by.
    pub fn key_id(self) -> KeyId {
        match self {
            Self::Key(id) => id,
            Self::App { grant, .. } => grant.uuid().into(),
        }
    }

    /// Returns the client as the audit log names it.
    pub fn actor(self) -> Actor {
        match self {
            Self::Key(id) => Actor::Key(id),
            Self::App { app, grant } => Actor::App { app, grant },
        }
    }
}

/// A client that was authenticated by a valid key or token.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key, or the app.
    pub id: CallerId,
    /// The tenant that the key belongs to.
    pub tenant_id: TenantId,
    /// The secret that the writes of the key must be signed with; `None` when they need no signature.
    pub signing_secret: Option<Secret>,
    /// The rate limits that the tenant has in place of the server's.
    pub limits: RateLimits,
    writes: bool,
    developer_access: DeveloperAccess,
}

impl Caller {
    pub(super) fn new(
        id: CallerId,
        tenant_id: TenantId,
        signing_secret: Option<Secret>,
        limits: RateLimits,
        writes: bool,
        developer_access: DeveloperAccess,
    ) -> Self {
        Self { id, tenant_id, signing_secret, limits, writes, developer_access }
    }

    /// Checks that the tenant has developer access and that the key has the scope.
    ///
    /// # Errors
    ///
    /// Returns [`Error::AccessNotApproved`], and [`Error::InsufficientScope`] or, for an app, [`Error::InsufficientGrant`], checked in
    /// this order.
    pub fn require(&self, scope: Scope) -> Result<(), Error> {
        if self.developer_access != DeveloperAccess::Approved {
            return Err(Error::AccessNotApproved);
        }
        if scope == Scope::Write && !self.writes {
            return Err(match self.id {
                CallerId::Key(_) => Error::InsufficientScope,
                CallerId::App { .. } => Error::InsufficientGrant,
            });
        }
        Ok(())
    }
}

/// The SHA-256 of a key whose form and checksum are valid. The store finds a key by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHash {
    digest: [u8; 32],
    /// Whether the key has the prefix of a sandbox.
    is_test: bool,
}

impl KeyHash {
    /// Checks the form and the checksum of a key and hashes it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidKey`] when the form or the checksum is wrong.
    pub fn of(key: &str) -> Result<Self, Error> {
        let is_test = key.starts_with(TEST_KEY_PREFIX);
        let prefix = if is_test { TEST_KEY_PREFIX } else { KEY_PREFIX };
        Ok(Self { digest: hash_of(prefix, key)?, is_test })
    }
}

/// Checks the form and the checksum of a key with this prefix and returns its SHA-256.
pub(crate) fn hash_of(prefix: &str, key: &str) -> Result<[u8; 32], Error> {
    let body = key.strip_prefix(prefix).ok_or(Error::InvalidKey)?;
    if body.len() != RANDOM_LENGTH + CHECKSUM_LENGTH || !body.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(Error::InvalidKey);
    }
    let (random, sum) = body.split_at(RANDOM_LENGTH);
    if checksum(random) == sum { Ok(sha256(key.as_bytes())) } else { Err(Error::InvalidKey) }
}

/// Returns the CRC-32 of the random part as six base62 digits.
fn checksum(random: &str) -> String {
    let mut value = crc32fast::hash(random.as_bytes()) as usize;
    let mut digits = [b'0'; CHECKSUM_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[value % 62];
        value /= 62;
    }
    digits.iter().copied().map(char::from).collect()
}

/// Returns the text of a new key with this prefix.
pub(crate) fn new_text(env: &Env, prefix: &str) -> String {
    text_from(prefix, || env.bytes())
}

/// Returns the text of a key with this prefix, whose random part is made from these bytes.
pub(crate) fn text_from(prefix: &str, bytes: impl FnMut() -> [u8; 64]) -> String {
    let random = random_base62(RANDOM_LENGTH, bytes);
    let sum = checksum(&random);
    format!("{prefix}{random}{sum}")
}

/// Returns base62 characters that are as random as the bytes.
pub(crate) fn random_base62(length: usize, mut bytes: impl FnMut() -> [u8; 64]) -> String {
    let mut random = String::with_capacity(length);
    while random.len() < length {
        // 248 is the largest multiple of 62 in a byte: larger bytes would make the first characters more likely.
        let bytes = bytes();
        let fair = bytes.iter().filter(|b| **b < 248).take(length - random.len());
        random.extend(fair.map(|b| char::from(BASE62[usize::from(b % 62)])));
    }
    random
}

/// Returns the scopes of a client that may read, and perhaps write.
pub(crate) fn scopes(write: bool) -> Vec<Scope> {
    if write { vec![Scope::Read, Scope::Write] } else { vec![Scope::Read] }
}

/// A new key with its text, which is shown once and not stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewKey {
    /// The stored record of the key.
    pub key: ApiKey,
    /// The text of the key, which a client sends.
    pub text: Secret,
}

/// The settings of a new key. By default it reads, does not expire, and does not sign.
#[derive(Clone, Debug, Default)]
pub struct KeyCreate {
    /// A name that tells people what the key is for.
    pub name: Option<String>,
    /// Whether the key gets the `write` scope. Every key has the `read` scope.
    pub write: bool,
    /// How long the key is valid; `None` for no expiry.
    pub expires_in: Option<Duration>,
    /// Whether writes with the key must be signed. The key then gets a signing secret.
    pub signed: bool,
}

/// Creates a key.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the tenant does not exist, and [`Error::NotAllowed`] when it has [`MAX_KEYS`] that work.
pub async fn create(tx: &mut dyn Tx, tenant: TenantId, input: KeyCreate) -> Result<NewKey, Error> {
    let is_sandbox = tenants::get(tx, tenant).await?.is_sandbox();
    let now = advance_clock(tx, tenant).await?;
    let text = new_text(tx.env(), if is_sandbox { TEST_KEY_PREFIX } else { KEY_PREFIX });
    let wall_clock = WriteTime::new(tx, now).wall_clock;
    let is_live = |key: &&ApiKey| key.revoked_at.is_none() && key.expires_at.is_none_or(|at| wall_clock < at);
    // The clock locks the account, so the count is exact.
    if tx.api_keys(tenant).await?.iter().filter(is_live).count() >= MAX_KEYS {
        let reason = format!("The account has {MAX_KEYS} API keys that work. Revoke one before you create another.");
        return Err(Error::NotAllowed(reason));
    }
    let expires_at = input.expires_in.and_then(|after| wall_clock.checked_add(after));
    let scopes = scopes(input.write);
    let key = ApiKey {
        id: tx.env().id(now),
        tenant_id: tenant,
        name: input.name,
        scopes,
        prefix: text[..VISIBLE_LENGTH].to_owned(),
        created_at: now,
        lifetime: expires_at.map(|at| at.since(wall_clock)),
        expires_at,
        revoked_at: None,
        last_used_at: None,
        signing_secret: input.signed.then(|| crate::accounts::signing::new_request_secret(tx.env())),
    };
    tx.insert_api_key(&key, &sha256(text.as_bytes())).await?;
    audit_change(tx, AuditAction::Create, None, &key).await?;
    Ok(NewKey { key, text: Secret::new(text) })
}

/// Returns the key with this id.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such key.
pub async fn get(tx: &mut dyn Tx, id: KeyId) -> Result<ApiKey, Error> {
    tx.api_key(id).await?.ok_or(Error::NotFound)
}

/// Returns the key with this id, if it belongs to the account. Ids of keys say nothing of their account.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the account has no such key.
pub async fn get_of(tx: &mut dyn Tx, tenant: TenantId, id: KeyId) -> Result<ApiKey, Error> {
    let key = get(tx, id).await?;
    if key.tenant_id == tenant { Ok(key) } else { Err(Error::NotFound) }
}

/// Locks the tenant of a key and returns the key, which no other transaction changes until this one ends.
async fn get_for_update(tx: &mut dyn Tx, id: KeyId) -> Result<ApiKey, Error> {
    let tenant = get(tx, id).await?.tenant_id;
    tx.lock_tenant(tenant).await?;
    get(tx, id).await
}

/// Revokes a key, which is refused from the next request on. Revoking it again changes nothing.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such key.
pub async fn revoke(tx: &mut dyn Tx, id: KeyId) -> Result<ApiKey, Error> {
    let mut key = get_for_update(tx, id).await?;
    if key.revoked_at.is_none() {
        let before = key.clone();
        key.revoked_at = Some(tx.env().now());
        tx.update_api_key(&key).await?;
        audit_change(tx, AuditAction::Revoke, Some(&before), &key).await?;
    }
    Ok(key)
}

/// Creates a key with the name, scopes, lifetime and signing choice of another one, which expires after `overlap`.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such key, and [`Error::NotAllowed`] when it is revoked or expired.
pub async fn rotate(tx: &mut dyn Tx, id: KeyId, overlap: Duration) -> Result<NewKey, Error> {
    let mut old = get_for_update(tx, id).await?;
    let now = tx.env().now();
    if old.revoked_at.is_some() || old.expires_at.is_some_and(|at| at <= now) {
        return Err(Error::NotAllowed("The key is revoked or expired; create a new one instead.".to_owned()));
    }
    let before = old.clone();
    let ends = now.checked_add(overlap).unwrap_or(now);
    old.expires_at = Some(old.expires_at.map_or(ends, |at| at.min(ends)));
    tx.update_api_key(&old).await?;
    audit_change(tx, AuditAction::Rotate, Some(&before), &old).await?;
    let input = KeyCreate {
        name: old.name,
        write: old.scopes.contains(&Scope::Write),
        expires_in: old.lifetime,
        signed: old.signing_secret.is_some(),
    };
    create(tx, old.tenant_id, input).await
}

/// Records a change of a key in the audit log, without its secrets.
async fn audit_change(
    tx: &mut dyn Tx,
    action: AuditAction,
    before: Option<&ApiKey>,
    after: &ApiKey,
) -> Result<(), Error> {
    audit::record(tx, after.tenant_id, action, Object { kind: "key", id: after.id.uuid() }, before, Some(after)).await
}

/// Returns the client that a key belongs to.
///
/// # Errors
///
/// Returns [`Error::InvalidKey`] when the key is unknown, [`Error::KeyRevoked`] or [`Error::KeyExpired`].
pub async fn authenticate(tx: &mut dyn Tx, hash: KeyHash) -> Result<Caller, Error> {
    let found = tx.credential(&hash.digest).await?;
    caller(tx, hash, found)
}

/// Locks a tenant and returns the client that one of its keys belongs to, as [`authenticate`] does. The key keeps working
/// until the transaction ends, unless it expires.
///
/// # Errors
///
/// Returns [`Error::InvalidKey`] when the key is unknown, [`Error::KeyRevoked`] or [`Error::KeyExpired`].
pub async fn lock_and_authenticate(tx: &mut dyn Tx, tenant: TenantId, hash: KeyHash) -> Result<Caller, Error> {
    let found = tx.lock_credential(tenant, &hash.digest).await?;
    caller(tx, hash, found)
}

fn caller(tx: &dyn Tx, hash: KeyHash, found: Option<Credential>) -> Result<Caller, Error> {
    // The prefix of a key tells what it opens, whatever is stored.
    let found = found.filter(|found| found.is_sandbox == hash.is_test).ok_or(Error::InvalidKey)?;
    if found.revoked {
        return Err(Error::KeyRevoked);
    }
    if found.expires_at.is_some_and(|at| at <= tx.env().now()) {
        return Err(Error::KeyExpired);
    }
    let Credential { key_id, tenant_id, signing_secret, limits, writes, developer_access, .. } = found;
    Ok(Caller::new(CallerId::Key(key_id), tenant_id, signing_secret, limits, writes, developer_access))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Entropy, SeededEntropy, SystemClock};

    #[test]
    fn the_checksum_detects_every_typo_of_one_character() {
        let key = new_text(&Env::new(SystemClock, SeededEntropy::new(1)), KEY_PREFIX);
        assert_eq!(key.len(), KEY_PREFIX.len() + RANDOM_LENGTH + CHECKSUM_LENGTH);
        assert!(KeyHash::of(&key).is_ok());
        for at in KEY_PREFIX.len()..key.len() {
            let mut typo = key.clone().into_bytes();
            typo[at] = if typo[at] == b'x' { b'y' } else { b'x' };
            let typo = String::from_utf8(typo).unwrap();
            assert_eq!(KeyHash::of(&typo), Err(Error::InvalidKey), "{typo}");
        }
    }

    /// Returns mostly bytes that a new key has to discard.
    struct MostlyDiscarded;

    impl Entropy for MostlyDiscarded {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(248);
            bytes[..20].fill(247);
        }
    }

    #[test]
    fn a_key_has_its_full_length_when_random_bytes_are_discarded() {
        let key = new_text(&Env::new(SystemClock, MostlyDiscarded), KEY_PREFIX);
        let random = &key[KEY_PREFIX.len()..key.len() - CHECKSUM_LENGTH];
        assert_eq!(random, char::from(BASE62[247 % 62]).to_string().repeat(RANDOM_LENGTH));
    }

    #[test]
    fn keys_of_another_form_are_refused() {
        for bad in [
            "",
            "svc_live_",
            "svc_test_",
            "sk_live_abc",
            "svc_test_00000000000000000000000000000000000000",
            "svc_live_é",
        ] {
            assert_eq!(KeyHash::of(bad), Err(Error::InvalidKey), "{bad}");
        }
    }
}
