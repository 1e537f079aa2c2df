//! Opens databases for maintenance, with the keys of their secrets.

use std::path::{Path, PathBuf};

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::Access;

use super::MaintenanceError;
use super::copy_position::setting;
use crate::maintenance_connection::{MaintenanceConnection, Opening};
use crate::migrations::ExpectedSchema;
use crate::postgres::PostgresMaintenance;
use crate::sqlite::{SqliteConnection, SqliteMaintenance};
use crate::unfinished::{self, COPY_SETTING};
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

/// Opens a database of svc that must be complete, as [`existing`] does.
pub(crate) async fn complete(url: &str, env: &Env, opening: Opening) -> Result<OpenDatabase, MaintenanceError> {
    let mut database = existing(url, env, opening).await?;
    let position = setting(&mut *database.connection.begin(Access::Read).await?, COPY_SETTING).await?;
    unfinished::check_copy(position.as_deref()).map_err(|reason| unavailable(url, reason))?;
    Ok(database)
}

/// Opens a database of svc that must exist, with the key that its secrets are encrypted with.
pub(crate) async fn existing(url: &str, env: &Env, opening: Opening) -> Result<OpenDatabase, MaintenanceError> {
    let (key, key_location) = if is_postgres(url) {
        let key = SecretKey::from_environment().map_err(|error| unavailable_at(url, error.to_string()))?;
        (key, format!("the environment variable {VARIABLE}"))
    } else {
        let path = sqlite_path(url)?;
        check_path(&path, false)?;
        // A file without a schema needs no key, so it is refused before its key is missed.
        sqlite_file(url, &path)?;
        (
            vault::key_for(&path, env, false).map_err(|error| unavailable_at(url, error.to_string()))?,
            key_location_of(&path),
        )
    };
    with_key(url, opening, key, key_location, env).await
}

/// Opens a SQLite file for reading, which must have a schema of svc.
pub(super) fn sqlite_file(url: &str, path: &Path) -> Result<SqliteConnection, OpenError> {
    let opened = SqliteConnection::open_read_only(path).and_then(|mut connection| {
        connection.check_schema(ExpectedSchema::Any)?;
        Ok(connection)
    });
    opened.map_err(|reason| unavailable(url, reason))
}

/// Opens a database with this key, which must be the one that its secrets are encrypted with.
pub(crate) async fn with_key(
    url: &str,
    opening: Opening,
    key: SecretKey,
    key_location: String,
    env: &Env,
) -> Result<OpenDatabase, MaintenanceError> {
    let vault = Vault::new(key.clone(), env.clone());
    let check = vault.check();
    let mut connection = connect(url, opening, vault, env).await?;
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
    // Without a key in the environment, the target will be opened with that in its key file.
    let key_file_of = if given.is_none() { Some(sqlite_path(url)?) } else { None };
    let unreadable = |reason: std::io::Error| unavailable_at(url, reason.to_string());
    let has_another_key =
        |path: &Path| refused(&format!("{} contains another key than the source's", vault::key_file(path).display()));
    if let Some(path) = &key_file_of
        && !path.exists()
        && !vault::fits_key_file(path, &source.key).map_err(unreadable)?
    {
        return Err(has_another_key(path));
    }
    let vault = Vault::new(source.key.clone(), env.clone());
    let mut connection = connect(url, Opening::Create, vault, env).await?;
    let known = setting(&mut *connection.begin(Access::Read).await?, CHECK_SETTING).await?;
    if known.is_some_and(|known| known != source.check) {
        return Err(refused("The secrets of the target are encrypted with another key than the source's"));
    }
    if let Some(path) = &key_file_of
        && !vault::write_key_file(path, &source.key, env).map_err(unreadable)?
    {
        return Err(has_another_key(path));
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

async fn connect(
    url: &str,
    opening: Opening,
    vault: Vault,
    env: &Env,
) -> Result<Box<dyn MaintenanceConnection>, OpenError> {
    if is_postgres(url) {
        return Ok(Box::new(PostgresMaintenance::open(url, opening, vault).await?));
    }
    let path: PathBuf = sqlite_path(url)?;
    check_path(&path, true)?;
    let connection = SqliteMaintenance::connect(&path, opening, env.now());
    let connection = connection.map_err(|error| unavailable(url, error))?;
    Ok(Box::new(SqliteMaintenance::new(connection, vault)))
}

fn unavailable_at(url: &str, reason: String) -> OpenError {
    unavailable(url, StoreError::Unavailable(reason))
}
