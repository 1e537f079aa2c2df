//! Opens databases for work on the whole of them, and sees to the keys of their secrets.

use std::path::{Path, PathBuf};

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::Access;

use super::MaintenanceError;
use super::connection::MaintenanceConnection;
use super::copy_position::setting;
use crate::postgres::PostgresMaintenance;
use crate::sqlite::SqliteMaintenance;
use crate::vault::{self, CHECK_SETTING, SecretKey, VARIABLE, Vault};
use crate::{OpenError, is_postgres, not_opened, sqlite_path, unavailable};

/// A database, open.
pub(crate) struct OpenDatabase {
    pub(crate) connection: Box<dyn MaintenanceConnection>,
    /// The check of the key that its secrets are sealed with.
    pub(crate) check: [u8; 32],
    key: SecretKey,
    /// What to tell people where that key is.
    key_place: String,
}

/// Opens a database that must be there, with the key that its secrets are sealed with.
pub(crate) async fn existing(url: &str, env: &Env) -> Result<OpenDatabase, MaintenanceError> {
    let (key, key_place) = if is_postgres(url) {
        let key = SecretKey::from_environment().map_err(|error| closed(url, error.to_string()))?;
        (key, format!("the environment variable {VARIABLE}"))
    } else {
        let path = sqlite_path(url)?;
        if !path.exists() {
            return Err(closed(url, "there is no such file".to_owned()).into());
        }
        (vault::key_for(&path, env, false).map_err(|error| closed(url, error.to_string()))?, place_beside(&path))
    };
    with_key(url, key, key_place, env).await
}

/// Opens a database with this key, which must be the right one.
pub(crate) async fn with_key(
    url: &str,
    key: SecretKey,
    key_place: String,
    env: &Env,
) -> Result<OpenDatabase, MaintenanceError> {
    let vault = Vault::new(key.clone(), env.clone());
    let check = vault.check();
    let mut connection = connect(url, vault, env).await?;
    let known = setting(&mut *connection.begin(Access::Read).await?, CHECK_SETTING).await?;
    if known.is_some_and(|known| known != check) {
        return Err(closed(url, format!("its secrets were sealed with another key than that in {key_place}")).into());
    }
    Ok(OpenDatabase { connection, check, key, key_place })
}

/// Opens the target of a copy, which may be new: it must have, or gets, the key of the source.
pub(crate) async fn target(url: &str, env: &Env, source: &OpenDatabase) -> Result<OpenDatabase, MaintenanceError> {
    let refused = |reason: &str| {
        let sentence = format!(
            "{reason}: secrets are copied sealed, so both databases need the same key. Set {VARIABLE} to the source's key, \
             which is the content of {}.",
            source.key_place
        );
        MaintenanceError::Refused(sentence)
    };
    let given = SecretKey::optional_from_environment().map_err(|reason| closed(url, reason.to_string()))?;
    if is_postgres(url) && given.is_none() {
        return Err(refused("The target has no key for its secrets"));
    }
    let vault = Vault::new(source.key.clone(), env.clone());
    let mut connection = connect(url, vault, env).await?;
    let known = setting(&mut *connection.begin(Access::Read).await?, CHECK_SETTING).await?;
    if known.is_some_and(|known| known != source.check) {
        return Err(refused("The target's secrets are sealed with another key"));
    }
    if given.is_none() {
        // It will be opened with the key in the file beside it.
        let path = sqlite_path(url)?;
        let ours = vault::write_key_file(&path, &source.key, env).map_err(|reason| closed(url, reason.to_string()))?;
        if !ours {
            return Err(refused(&format!("{} holds another key than the source's", vault::key_file(&path).display())));
        }
    }
    Ok(OpenDatabase { connection, check: source.check, key: source.key.clone(), key_place: source.key_place.clone() })
}

fn place_beside(path: &Path) -> String {
    if std::env::var_os(VARIABLE).is_some() {
        format!("the environment variable {VARIABLE}")
    } else {
        vault::key_file(path).display().to_string()
    }
}

async fn connect(url: &str, vault: Vault, env: &Env) -> Result<Box<dyn MaintenanceConnection>, OpenError> {
    if is_postgres(url) {
        return Ok(Box::new(PostgresMaintenance::open(url, vault).await.map_err(|error| not_opened(url, error))?));
    }
    let path: PathBuf = sqlite_path(url)?;
    let connection = SqliteMaintenance::connect(&path, env.now()).map_err(|error| unavailable(url, error))?;
    Ok(Box::new(SqliteMaintenance::new(connection, vault)))
}

fn closed(url: &str, reason: String) -> OpenError {
    let url = if is_postgres(url) { crate::postgres::without_password(url) } else { url.to_owned() };
    OpenError::Unavailable { url, source: StoreError::Unavailable(reason) }
}
