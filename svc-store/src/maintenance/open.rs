//! Opens databases for maintenance, with the keys of their secrets.

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
use crate::{OpenError, check_path, is_postgres, sqlite_path, unavailable};

/// An open database.
pub(crate) struct OpenDatabase {
    pub(crate) connection: Box<dyn MaintenanceConnection>,
    /// The check value of `key`.
    pub(crate) check: [u8; 32],
    /// The key that its secrets are encrypted with.
    key: SecretKey,
    /// Where the key is, for error messages.
    key_location: String,
}

/// Opens a database that must exist, with the key that its secrets are encrypted with.
pub(crate) async fn existing(url: &str, env: &Env) -> Result<OpenDatabase, MaintenanceError> {
    let (key, key_location) = if is_postgres(url) {
        let key = SecretKey::from_environment().map_err(|error| unavailable_at(url, error.to_string()))?;
        (key, format!("the environment variable {VARIABLE}"))
    } else {
        let path = sqlite_path(url)?;
        check_path(&path, false)?;
        (
            vault::key_for(&path, env, false).map_err(|error| unavailable_at(url, error.to_string()))?,
            key_location_of(&path),
        )
    };
    with_key(url, key, key_location, env).await
}

/// Opens a database with this key, which must be the one that its secrets are encrypted with.
pub(crate) async fn with_key(
    url: &str,
    key: SecretKey,
    key_location: String,
    env: &Env,
) -> Result<OpenDatabase, MaintenanceError> {
    let vault = Vault::new(key.clone(), env.clone());
    let check = vault.check();
    let mut connection = connect(url, vault, env).await?;
    let known = setting(&mut *connection.begin(Access::Read).await?, CHECK_SETTING).await?;
    if known.is_some_and(|known| known != check) {
        return Err(unavailable_at(
            url,
            format!("its secrets are encrypted with another key than that in {key_location}"),
        )
        .into());
    }
    Ok(OpenDatabase { connection, check, key, key_location })
}

/// Opens the target of a copy, which is created if it does not exist. An existing target must have the key of the source, and
/// a new one gets it.
pub(crate) async fn copy_target(url: &str, env: &Env, source: &OpenDatabase) -> Result<OpenDatabase, MaintenanceError> {
    let refused = |reason: &str| {
        let sentence = format!(
            "{reason}. Secrets are copied in encrypted form, so both databases need the same key. Set {VARIABLE} to the \
             source's key, which is the content of {}.",
            source.key_location
        );
        MaintenanceError::Refused(sentence)
    };
    let given = SecretKey::optional_from_environment().map_err(|reason| unavailable_at(url, reason.to_string()))?;
    if is_postgres(url) && given.is_none() {
        return Err(refused(&format!("{VARIABLE} is not set, so the PostgreSQL target has no key")));
    }
    let vault = Vault::new(source.key.clone(), env.clone());
    let mut connection = connect(url, vault, env).await?;
    let known = setting(&mut *connection.begin(Access::Read).await?, CHECK_SETTING).await?;
    if known.is_some_and(|known| known != source.check) {
        return Err(refused("The secrets of the target are encrypted with another key than the source's"));
    }
    if given.is_none() {
        // The target will be opened with the key in its key file.
        let path = sqlite_path(url)?;
        let has_key =
            vault::write_key_file(&path, &source.key, env).map_err(|reason| unavailable_at(url, reason.to_string()))?;
        if !has_key {
            return Err(refused(&format!(
                "{} contains another key than the source's",
                vault::key_file(&path).display()
            )));
        }
    }
    Ok(OpenDatabase {
        connection,
        check: source.check,
        key: source.key.clone(),
        key_location: source.key_location.clone(),
    })
}

fn key_location_of(path: &Path) -> String {
    if std::env::var_os(VARIABLE).is_some() {
        format!("the environment variable {VARIABLE}")
    } else {
        vault::key_file(path).display().to_string()
    }
}

async fn connect(url: &str, vault: Vault, env: &Env) -> Result<Box<dyn MaintenanceConnection>, OpenError> {
    if is_postgres(url) {
        return Ok(Box::new(PostgresMaintenance::open(url, vault).await?));
    }
    let path: PathBuf = sqlite_path(url)?;
    check_path(&path, true)?;
    let connection = SqliteMaintenance::connect(&path, env.now()).map_err(|error| unavailable(url, error))?;
    Ok(Box::new(SqliteMaintenance::new(connection, vault)))
}

fn unavailable_at(url: &str, reason: String) -> OpenError {
    unavailable(url, StoreError::Unavailable(reason))
}
