//! Databases that a backup, a restore or a copy has left in part: they look like new ones, but must not be used as such.

use svc_core::error::StoreError;
use svc_core::store::StoreResult;

#[cfg(feature = "sqlite")]
pub(crate) use self::sqlite::{check_before_open, check_has_tables, check_log};

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
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::{self, Read as _};
    use std::os::unix::fs::MetadataExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;

    use svc_core::sync::lock;

    use super::{StoreError, StoreResult};
    use crate::new_file::with_suffix;
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

    /// Checks that no write-ahead log of another database lies beside a file. SQLite would take its pages for those of the file.
    ///
    /// # Errors
    /// The file is one that SQLite never opened with a log, such as a backup, and there is a log.
    pub(crate) fn check_log(database: &Path) -> StoreResult<()> {
        let log = with_suffix(database, "-wal");
        if fs::metadata(&log).is_ok_and(|log| log.len() > 0) && is_without_log(database).unwrap_or(false) {
            return Err(StoreError::Incomplete(format!(
                "the write-ahead log {} is not of this file, which is a backup that was put in the place of another database. \
                 Stop everything that uses the database, and delete that file and {}",
                log.display(),
                with_suffix(database, "-shm").display()
            )));
        }
        Ok(())
    }

    /// Returns whether the header of a file says that it has no write-ahead log. Each file is read once in a process.
    fn is_without_log(database: &Path) -> io::Result<bool> {
        static READ: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());
        let about = fs::metadata(database)?;
        if lock(&READ).contains(&(about.dev(), about.ino())) {
            return Ok(false);
        }
        let (file, mut header) = (fs::File::open(database)?, [0; 20]);
        let read = (&file).read_exact(&mut header);
        // To close it would release the locks that other connections of this process have on the file.
        std::mem::forget(file);
        read?;
        let is_without = header.starts_with(b"SQLite format 3\0") && header[18] == 1 && header[19] == 1;
        if !is_without {
            lock(&READ).insert((about.dev(), about.ino()));
        }
        Ok(is_without)
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
