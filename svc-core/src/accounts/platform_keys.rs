//! Platform keys: what programs of the operator use the platform API with (`docs/platform.md`).
//!
//! A platform key has the form of an [API key](super::keys), with another prefix, and belongs to no tenant: its
//! [scopes](PlatformScope) say what it may do with every account. Its row stays when it is revoked, and names who made and
//! who revoked it, so the list of keys is their audit log.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use super::scopes::Area;
use crate::accounts::keys::{self, Scope};
use crate::crypto::sha256;
use crate::error::{Error, FieldCode, Issue};
use crate::input::Record;
use crate::store::Tx;
use crate::values::{Id, Secret, Timestamp};

/// The id of a platform key.
pub type PlatformKeyId = Id<PlatformKey>;

/// The prefix of every platform key.
pub const PLATFORM_KEY_PREFIX: &str = "svc_plat_";

/// A right of a platform key: nearly everything, or reading or changing one area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlatformScope {
    /// Everything except links for operators: `*`. Such a link begins a session in the dashboard that sees all accounts and goes
    /// on when the key is revoked.
    All,
    /// Reading, or reading and changing, one area: `accounts:read` or `accounts:write`.
    Of(Area, Scope),
}

impl PlatformScope {
    /// Returns every scope, in the order in which they are explained.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_area = |area: &Area| {
            let area = *area;
            area.scopes().iter().map(move |scope| Self::Of(area, *scope))
        };
        std::iter::once(Self::All).chain(Area::ALL.iter().flat_map(of_area))
    }

    /// Returns whether a key with this scope may do what needs `scope` of `area`. A scope to write is one to read as well.
    pub fn allows(self, area: Area, scope: Scope) -> bool {
        match self {
            Self::All => area != Area::Operators,
            Self::Of(own, granted) => own == area && granted >= scope,
        }
    }
}

impl fmt::Display for PlatformScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Of(area, scope) => write!(f, "{area}:{scope}"),
        }
    }
}

impl FromStr for PlatformScope {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        Self::all().find(|scope| scope.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|scope| scope.to_string()).collect();
            Issue::new(FieldCode::InvalidEnum, format!("must be one of {}", names.join(", ")))
        })
    }
}

impl Serialize for PlatformScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PlatformScope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for PlatformScope {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PlatformScope".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = Self::all().map(|scope| scope.to_string()).collect();
        schemars::json_schema!({ "type": "string", "enum": names })
    }
}

/// A platform key without its secret text, which is shown once and not stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct PlatformKey {
    /// The unique identifier of the key, a UUID of version 7. It names the key in the log and in audit logs.
    pub id: PlatformKeyId,
    /// The purpose of the key, in the words of its creator. Null if nothing was given.
    pub name: Option<String>,
    /// The scopes of the key: `*`, or areas with `read` or `write`, such as `records:write`.
    pub scopes: Vec<PlatformScope>,
    /// The first 15 characters of the key, which tell keys apart.
    pub prefix: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// The creator of the key, as the audit log names them, such as `cli:ada`.
    pub created_by: String,
    /// When the key stops working; it is refused from this time on. Null if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// When the key was revoked. Null while it has not been.
    pub revoked_at: Option<Timestamp>,
    /// The person or program that revoked the key. Null while it has not been revoked.
    pub revoked_by: Option<String>,
    /// When the key was last used, exact to about ten seconds. Null if it never was.
    pub last_used_at: Option<Timestamp>,
}

impl PlatformKey {
    /// Checks that the key has the scope in the area.
    ///
    /// # Errors
    ///
    /// Returns [`Error::MissingPlatformScope`] with the name of the scope that is missing.
    pub fn require(&self, area: Area, scope: Scope) -> Result<(), Error> {
        if self.scopes.iter().any(|granted| granted.allows(area, scope)) {
            return Ok(());
        }
        Err(Error::MissingPlatformScope(PlatformScope::Of(area, scope).to_string()))
    }
}

/// A new platform key with its text, which is shown once and not stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewPlatformKey {
    /// The stored record of the key.
    pub key: PlatformKey,
    /// The text of the key, which a client sends.
    pub text: Secret,
}

/// The settings of a new platform key.
#[derive(Clone, Debug)]
pub struct PlatformKeyCreate {
    /// A name that tells people what the key is for.
    pub name: Option<String>,
    /// The scopes of the key. They are stored in order and once each.
    pub scopes: Vec<PlatformScope>,
    /// How long the key is valid; `None` for no expiry.
    pub expires_in: Option<Duration>,
}

/// The SHA-256 of a platform key whose form and checksum are valid. The store finds a key by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformKeyHash([u8; 32]);

impl PlatformKeyHash {
    /// Checks the form and the checksum of a key and hashes it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidKey`] when the form or the checksum is wrong.
    pub fn of(key: &str) -> Result<Self, Error> {
        keys::hash_of(PLATFORM_KEY_PREFIX, key).map(Self)
    }
}

/// Creates a key. The actor of the transaction is stored as the one who made it.
///
/// # Errors
///
/// Returns [`Error::Validation`] without scopes.
pub async fn create(tx: &mut dyn Tx, input: PlatformKeyCreate) -> Result<NewPlatformKey, Error> {
    let PlatformKeyCreate { name, mut scopes, expires_in } = input;
    if scopes.is_empty() {
        return Err(Issue::new(FieldCode::TooShort, "must have at least one scope").on("scopes"));
    }
    scopes.sort_unstable();
    scopes.dedup();
    let created_at = tx.env().now();
    let is_live = |key: &&PlatformKey| key.revoked_at.is_none() && key.expires_at.is_none_or(|at| created_at < at);
    if tx.platform_keys().await?.iter().filter(is_live).count() >= keys::MAX_KEYS {
        let reason =
            format!("There are {} platform keys that work. Revoke one before you create another.", keys::MAX_KEYS);
        return Err(Error::NotAllowed(reason));
    }
    let text = keys::new_text(tx.env(), PLATFORM_KEY_PREFIX);
    let key = PlatformKey {
        id: tx.env().id(created_at),
        name,
        scopes,
        prefix: text[..keys::VISIBLE_LENGTH].to_owned(),
        created_at,
        created_by: tx.actor().to_string(),
        expires_at: expires_in.and_then(|after| created_at.checked_add(after)),
        revoked_at: None,
        revoked_by: None,
        last_used_at: None,
    };
    tx.insert_platform_key(&key, &sha256(text.as_bytes())).await?;
    Ok(NewPlatformKey { key, text: Secret::new(text) })
}

/// Returns the key with this id.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such key.
pub async fn get(tx: &mut dyn Tx, id: PlatformKeyId) -> Result<PlatformKey, Error> {
    tx.platform_key(id).await?.ok_or(Error::NotFound)
}

/// Revokes a key, which is refused from the next request on. The actor of the transaction is stored as the one who revoked
/// it. Revoking it again changes nothing.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such key.
pub async fn revoke(tx: &mut dyn Tx, id: PlatformKeyId) -> Result<PlatformKey, Error> {
    let mut key = tx.lock_platform_key(id).await?.ok_or(Error::NotFound)?;
    if key.revoked_at.is_none() {
        key.revoked_at = Some(tx.env().now());
        key.revoked_by = Some(tx.actor().to_string());
        tx.update_platform_key(&key).await?;
    }
    Ok(key)
}

/// Returns the key of a client, if it is valid.
///
/// # Errors
///
/// Returns [`Error::InvalidKey`] when the key is unknown, [`Error::KeyRevoked`] or [`Error::KeyExpired`].
pub async fn authenticate(tx: &mut dyn Tx, hash: PlatformKeyHash) -> Result<PlatformKey, Error> {
    let key = tx.platform_key_by_hash(&hash.0).await?.ok_or(Error::InvalidKey)?;
    if key.revoked_at.is_some() {
        return Err(Error::KeyRevoked);
    }
    if key.expires_at.is_some_and(|at| at <= tx.env().now()) {
        return Err(Error::KeyExpired);
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_is_read_from_its_text() {
        let texts: Vec<String> = PlatformScope::all().map(|scope| scope.to_string()).collect();
        assert_eq!(texts.len(), 1 + 2 * 8 + 4);
        for (scope, text) in PlatformScope::all().zip(&texts) {
            assert_eq!(text.parse(), Ok(scope));
        }
        for bad in [
            "",
            "read",
            "accounts",
            "accounts:",
            "audit:write",
            "export:write",
            "import:read",
            "*:read",
            "Accounts:read",
        ] {
            assert!(bad.parse::<PlatformScope>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_scope_to_write_is_one_to_read_in_the_same_area_alone() {
        let scope = |text: &str| text.parse::<PlatformScope>().unwrap();
        for (text, area, needed, allowed) in [
            ("*", Area::Audit, Scope::Read, true),
            ("*", Area::Keys, Scope::Write, true),
            ("*", Area::Operators, Scope::Write, false),
            ("members:write", Area::Operators, Scope::Write, false),
            ("operators:write", Area::Operators, Scope::Write, true),
            ("keys:write", Area::Keys, Scope::Read, true),
            ("keys:write", Area::Keys, Scope::Write, true),
            ("keys:read", Area::Keys, Scope::Read, true),
            ("keys:read", Area::Keys, Scope::Write, false),
            ("keys:write", Area::Records, Scope::Read, false),
        ] {
            assert_eq!(scope(text).allows(area, needed), allowed, "{text} {area}:{needed}");
        }
    }

    #[test]
    fn keys_of_tenants_are_no_platform_keys() {
        use crate::env::{Env, SeededEntropy, SystemClock};
        let env = Env::new(SystemClock, SeededEntropy::new(1));
        let text = keys::new_text(&env, PLATFORM_KEY_PREFIX);
        assert!(PlatformKeyHash::of(&text).is_ok());
        assert_eq!(keys::KeyHash::of(&text), Err(Error::InvalidKey));
        assert_eq!(PlatformKeyHash::of(&keys::new_text(&env, keys::KEY_PREFIX)), Err(Error::InvalidKey));
    }
}
