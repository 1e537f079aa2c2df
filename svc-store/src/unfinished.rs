//! Databases that a backup, a restore or a copy has left in part: they look like new ones, but must not be used as such.

use svc_core::error::StoreError;
use svc_core::store::StoreResult;

#[cfg(feature = "sqlite")]
pub(crate) use self::sqlite::{check_before_open, check_has_tables};

/// The setting with the position of a copy into a database. Its field `table` is null once all tables are copied.
pub(crate) const COPY_SETTING: &str = "copy";

/// Checks that the copy into a database is finished, if there was one. `position` is the setting [`COPY_SETTING`].
pub(crate) fn check_copy(position: Option<&[u8]>) -> StoreResult<()> {
    let Some(position) = position else { return Ok(()) };
    let position: serde_json::Value = serde_json::from_slice(position).unwrap_or_default();
    if position.get("table").is_some_and(serde_json::Value::is_null) {
        return Ok(());
    }
    let reason = "it has only a part of the data of another database, as the copy into it was interrupted. Continue the copy \
                  with `svc db copy FROM TO --resume`";
    Err(StoreError::Incomplete(reason.to_owned()))
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{StoreError, StoreResult};
    use crate::vault;

    /// Returns the key file beside a database. It is made after the schema, also on the first start, so a database that has
    /// one has tables.
    ///
    /// # Errors
    /// The database is missing or empty although it has a key file.
    pub(crate) fn check_before_open(database: &Path) -> StoreResult<Option<PathBuf>> {
        // The order matters: another process may make both files meanwhile.
        let Some(key) = Some(vault::key_file(database)).filter(|key| key.exists()) else { return Ok(None) };
        match fs::metadata(database) {
            Ok(file) if file.len() == 0 => Err(without_tables(&key, "is empty")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(without_tables(&key, "does not exist")),
            _ => Ok(Some(key)),
        }
    }

    /// Checks that a database that has this key file has tables.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn check_has_tables(key: Option<&Path>, has_tables: bool) -> StoreResult<()> {
        match key {
            Some(key) if !has_tables => Err(without_tables(key, "has no tables")),
            _ => Ok(()),
        }
    }

    fn without_tables(key: &Path, what: &str) -> StoreError {
        StoreError::Incomplete(format!(
            "the file {what}, but it has the key file {}: a backup or its restore did not finish. Restore both files from a \
             complete backup. To begin with a new database instead, move the key file away",
            key.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_copy_that_was_begun_and_not_finished_is_refused() {
        assert_eq!(check_copy(None), Ok(()));
        assert_eq!(check_copy(Some(br#"{"source": "00", "table": null, "after": null}"#)), Ok(()));
        for position in [br#"{"source": "00", "table": "tenants", "after": null}"#.as_slice(), b"{}", b"x"] {
            assert!(matches!(check_copy(Some(position)), Err(StoreError::Incomplete(_))));
        }
    }
}
