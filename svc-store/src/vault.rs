//! Encryption of secrets at rest, with XChaCha20-Poly1305.
//!
//! Secrets are encrypted before they are stored, and decrypted when they are read. The key comes from `SVC_SECRET_KEY`, or
//! from a key file beside a SQLite database, which is created with the database and can only be read by its owner. So a copy
//! of the database alone reveals no secret.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use svc_core::crypto::hmac_sha256;
use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::StoreResult;

use crate::new_file::{self, partial, publish, with_suffix};

/// The environment variable with the key: 32 bytes as 64 hex digits.
pub(crate) const VARIABLE: &str = "SVC_SECRET_KEY";

const KEY_LENGTH: usize = 32;
const NONCE_LENGTH: usize = 24;

/// The setting of a database by which a wrong key is detected.
pub(crate) const CHECK_SETTING: &str = "secret_key_check";

/// The key that encrypts secrets at rest. Everyone who has it and a copy of the database can read the secrets.
///
/// Its `Debug` output does not contain the key.
#[derive(Clone)]
pub struct SecretKey([u8; KEY_LENGTH]);

impl SecretKey {
    /// Creates a key from its 32 bytes, which must be random.
    pub fn new(bytes: [u8; KEY_LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns the key in `SVC_SECRET_KEY`, if it is set.
    pub(crate) fn optional_from_environment() -> io::Result<Option<Self>> {
        Ok(environment()?.map(Self))
    }

    /// Returns the key in `SVC_SECRET_KEY`, which must be set.
    pub(crate) fn from_environment() -> io::Result<Self> {
        match environment()? {
            Some(key) => Ok(Self(key)),
            None => Err(invalid(format!(
                "{VARIABLE} is not set, and a PostgreSQL database has no key file. Create a key with \
                 `openssl rand -hex 32`, keep a copy of it, and set {VARIABLE} to it on every node"
            ))),
        }
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// Encrypts and decrypts secrets.
pub(crate) struct Vault {
    cipher: XChaCha20Poly1305,
    env: Env,
    check: [u8; 32],
}

impl Vault {
    pub(crate) fn new(SecretKey(key): SecretKey, env: Env) -> Self {
        // The check reveals nothing about the key except whether it is the one that a database was created with.
        let check = hmac_sha256(&key, &[b"svc secret key check"]);
        Self { cipher: XChaCha20Poly1305::new(&key.into()), env, check }
    }

    /// Returns the value of [`CHECK_SETTING`] in databases that use this key.
    pub(crate) fn check(&self) -> [u8; 32] {
        self.check
    }

    /// Encrypts a secret, and returns the nonce and the ciphertext. Fails when the secret is too long for the cipher, which no
    /// secret is in practice.
    pub(crate) fn seal(&self, secret: &[u8]) -> StoreResult<Vec<u8>> {
        let nonce: [u8; NONCE_LENGTH] = self.env.bytes();
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), secret);
        let sealed = sealed.map_err(|_| StoreError::Internal("a secret cannot be encrypted".to_owned()))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Decrypts a secret. Returns `None` when it was encrypted with another key, or changed afterwards.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LENGTH>()?;
        self.cipher.decrypt(&XNonce::from(*nonce), sealed).ok()
    }
}

/// Returns the key of a SQLite database: that in the environment, or that in the key file.
///
/// A key file is only created for a new database, as a new key could not decrypt existing secrets.
pub(crate) fn key_for(database: &Path, env: &Env, is_new: bool) -> io::Result<SecretKey> {
    match environment()? {
        Some(key) => Ok(SecretKey(key)),
        None => key_from_file(database, env, is_new).map(SecretKey),
    }
}

fn environment() -> io::Result<Option<[u8; KEY_LENGTH]>> {
    match std::env::var(VARIABLE) {
        Ok(text) => match parse(&text) {
            Some(key) => Ok(Some(key)),
            None => Err(invalid(format!(
                "{VARIABLE} must be 64 hex digits (32 bytes), but has {} characters or contains others than hex digits",
                text.chars().count()
            ))),
        },
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(invalid(format!("{VARIABLE}: {error}"))),
    }
}

/// Returns the key file of a SQLite database if it is used and if others than its owner may read or change it.
pub(crate) fn exposed_key_file(database: &Path) -> Option<PathBuf> {
    let path = key_file(database);
    let is_used = std::env::var_os(VARIABLE).is_none();
    let mode = fs::metadata(&path).ok().filter(|_| is_used)?.permissions().mode();
    (mode & 0o077 != 0).then_some(path)
}

/// Returns the path of the key file of a SQLite database.
pub(crate) fn key_file(database: &Path) -> PathBuf {
    with_suffix(database, ".key")
}

/// Creates the key file of a SQLite database if it does not exist. Returns `false` when there is one with another key.
pub(crate) fn write_key_file(database: &Path, key: &SecretKey, env: &Env) -> io::Result<bool> {
    let path = key_file(database);
    if !path.exists() {
        create_key_file(&path, &key.0, env)?;
    }
    fits_key_file(database, key)
}

/// Returns `false` when a SQLite database has a key file with another key.
pub(crate) fn fits_key_file(database: &Path, key: &SecretKey) -> io::Result<bool> {
    let path = key_file(database);
    if path.exists() { read(&path).map(|known| known == key.0) } else { Ok(true) }
}

fn key_from_file(database: &Path, env: &Env, is_new: bool) -> io::Result<[u8; KEY_LENGTH]> {
    let path = key_file(database);
    if is_new && !path.exists() {
        create_key_file(&path, &env.bytes(), env)?;
    }
    read(&path)
}

fn read(path: &Path) -> io::Result<[u8; KEY_LENGTH]> {
    let text = fs::read_to_string(path).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    parse(text.trim()).ok_or_else(|| {
        invalid(format!("the key file {} does not contain 64 hex digits; restore it from a backup", path.display()))
    })
}

/// Creates a key file, unless there is one. Several processes may do so at the same time, so each writes beside it under a name
/// of its own.
fn create_key_file(path: &Path, key: &[u8; KEY_LENGTH], env: &Env) -> io::Result<()> {
    let unfinished = partial(&with_suffix(path, &format!(".{}", hex::encode(env.bytes::<8>()))));
    let published = new_file::create(&unfinished).and_then(|mut file| {
        writeln!(file, "{}", hex::encode(key))?;
        file.sync_all()?;
        publish(&unfinished, path)
    });
    // It is gone if it was renamed.
    let _ = fs::remove_file(&unfinished);
    match published {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Option<[u8; KEY_LENGTH]> {
    let mut key = [0; KEY_LENGTH];
    hex::decode_to_slice(text, &mut key).ok().map(|()| key)
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_that_others_can_read_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("svc.db");
        assert_eq!(exposed_key_file(&database), None, "there is none yet");
        key_from_file(&database, &Env::system(), true).unwrap();
        assert_eq!(exposed_key_file(&database), None);
        let path = key_file(&database);
        for (mode, is_exposed) in [(0o640, true), (0o604, true), (0o620, true), (0o400, false), (0o600, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(exposed_key_file(&database).is_some(), is_exposed, "{mode:o}");
        }
    }

    #[test]
    fn a_secret_is_decrypted_only_with_its_key_and_unchanged() {
        let vault = Vault::new(SecretKey([1; 32]), Env::system());
        let sealed = vault.seal(b"whsec_abc").unwrap();
        assert_eq!(vault.open(&sealed).as_deref(), Some(b"whsec_abc".as_slice()));
        assert_ne!(vault.seal(b"whsec_abc").unwrap(), sealed, "nonces differ");
        assert!(!sealed.windows(5).any(|bytes| bytes == b"whsec"));
        assert_eq!(Vault::new(SecretKey([2; 32]), Env::system()).open(&sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(vault.open(&changed), None, "byte {at}");
        }
        assert_eq!(vault.open(&[]), None);
    }

    #[test]
    fn a_key_file_is_created_once_and_private_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("svc.db");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| key_from_file(&database, &Env::system(), true).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        let mode = fs::metadata(folder.path().join("svc.db.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        fs::write(folder.path().join("svc.db.key"), "short").unwrap();
        assert!(key_from_file(&database, &Env::system(), true).is_err());
        fs::remove_file(folder.path().join("svc.db.key")).unwrap();
        assert!(key_from_file(&database, &Env::system(), false).is_err(), "a lost key is not replaced");
        assert!(!folder.path().join("svc.db.key").exists());
    }
}
