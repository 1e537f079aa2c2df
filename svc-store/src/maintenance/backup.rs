//! Backups of SQLite databases, which may be in use.
//!
//! Both files are written beside their names, which they get when they are complete: first the key file, so that a backup
//! under its name always has its key. A backup that is killed leaves files whose names end with `.partial`, and perhaps the
//! key file. The next backup to the same file replaces them.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use svc_core::error::StoreError;

use super::{MaintenanceError, open};
use crate::new_file::{self, partial, publish, with_suffix};
use crate::sqlite::SqliteConnection;
use crate::vault::{self, SecretKey};
use crate::{check_path, is_postgres, sqlite_path};

/// The result of a backup.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Backup {
    /// The size of the backup, in bytes.
    pub bytes: u64,
    /// The path to which the key file was copied. `None` when the key comes from the environment.
    pub key: Option<PathBuf>,
}

/// A step of a backup that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The file for the database was created, under its other name.
    Created,
    /// The key was written, under its other name.
    KeyWritten,
    /// The database was written, under its other name.
    Written,
    /// The key file has its name.
    KeyPublished,
    /// The database has its name.
    Published,
}

/// Backs up the SQLite database at `url` to the new file `file`, and its key file to `file.key`.
///
/// The backup is a consistent snapshot, even while a server writes to the database. Existing files are never overwritten,
/// and only their owner can read the new ones. The schema is not migrated.
///
/// The files are written as `file.partial` and `file.key.partial`. Under their own names they are complete, also when the
/// process is killed or the power fails. The remains of a killed backup are replaced by the next one to the same file.
///
/// # Errors
/// [`MaintenanceError::Unsupported`] for PostgreSQL, [`MaintenanceError::Refused`] when a file exists already or another
/// backup to it is running, [`MaintenanceError::File`] when a file cannot be written, and [`MaintenanceError::Open`] when the
/// database cannot be opened or is not one of svc. No file is left behind after an error.
pub async fn backup(url: &str, file: &Path) -> Result<Backup, MaintenanceError> {
    backup_in_steps(url, file, &mut |_| {})
}

/// Makes a backup, and calls `after` after each step.
pub(super) fn backup_in_steps(url: &str, file: &Path, after: &mut dyn FnMut(Step)) -> Result<Backup, MaintenanceError> {
    if is_postgres(url) {
        let reason = "This command backs up SQLite databases only. Back up PostgreSQL with `pg_dump --format=custom \
             --file=FILE URL`, and keep a copy of SVC_SECRET_KEY: without it the secrets in the backup cannot be decrypted.";
        return Err(MaintenanceError::Unsupported(reason.to_owned()));
    }
    let path = sqlite_path(url)?;
    check_path(&path, false)?;
    let connection = open::sqlite_file(url, &path)?;
    let key = match SecretKey::optional_from_environment().map_err(|reason| failed(&path, &reason))? {
        Some(_) => None,
        None => {
            let from = vault::key_file(&path);
            Some((vault::key_file(file), fs::read(&from).map_err(|reason| failed(&from, &reason))?))
        }
    };
    check_folder(file)?;
    if file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    // Unfinished files are removed after an error. As long as this one exists, it is locked.
    let mut unfinished = Unfinished::default();
    let written = create_locked(file)?;
    unfinished.0.push(partial(file));
    after(Step::Created);
    if let Some((to, content)) = &key {
        write_key(to, content, &mut unfinished)?;
        after(Step::KeyWritten);
    }
    let bytes = write_database(&connection, file, &written)?;
    after(Step::Written);
    if let Some((to, content)) = &key {
        match publish(&partial(to), to) {
            // It is the key that is wanted, such as that of a backup which was killed before its database had its name.
            Err(error) if is_taken(&error) && fs::read(to).is_ok_and(|known| known == *content) => {}
            published => {
                published.map_err(|error| if is_taken(&error) { exists(to) } else { failed(to, &error) })?;
                unfinished.0.push(to.clone());
            }
        }
        after(Step::KeyPublished);
    }
    publish(&partial(file), file)
        .map_err(|error| if is_taken(&error) { exists(file) } else { failed(file, &error) })?;
    after(Step::Published);
    let key = key.map(|(to, _)| to);
    unfinished.0.retain(|path| Some(path) != key.as_ref());
    Ok(Backup { bytes, key })
}

fn write_key(to: &Path, content: &[u8], unfinished: &mut Unfinished) -> Result<(), MaintenanceError> {
    let path = partial(to);
    remove(&path)?;
    let mut file = new_file::create(&path).map_err(|error| failed(&path, &error))?;
    unfinished.0.push(path.clone());
    file.write_all(content).and_then(|()| file.sync_all()).map_err(|error| failed(&path, &error))
}

/// Writes the database to the empty file, and returns its size.
fn write_database(connection: &SqliteConnection, file: &Path, written: &File) -> Result<u64, MaintenanceError> {
    let path = partial(file);
    // SQLite would take the journal of a backup that was killed for one of this file.
    remove(&with_suffix(&path, "-journal"))?;
    // SQLite writes to an existing file if it is empty, and keeps its permissions.
    connection.copy_into(&path).map_err(|reason| not_filled(&path, reason))?;
    let synced = written.sync_all().and_then(|()| written.metadata());
    Ok(synced.map_err(|reason| failed(&path, &reason))?.len())
}

/// Checks that the folder of a file exists.
fn check_folder(file: &Path) -> Result<(), MaintenanceError> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => Err(MaintenanceError::File(format!(
            "{} cannot be created, as the folder {} does not exist. Create it, or choose another file name.",
            file.display(),
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Creates the file that a backup is written to, in place of one that a killed backup has left. It is locked, so that two
/// backups at a time never write to the same file.
fn create_locked(file: &Path) -> Result<File, MaintenanceError> {
    let path = partial(file);
    let failed = |error: io::Error| failed(&path, &error);
    let lock = |file: &File| match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(MaintenanceError::Refused(format!(
            "Another backup is being written to {}. Wait for it, or choose another file name.",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    };
    loop {
        match new_file::create(&path) {
            Ok(created) => {
                lock(&created)?;
                if is_named(&created, &path).map_err(failed)? {
                    return Ok(created);
                }
            }
            Err(error) if is_taken(&error) => {
                if path.symlink_metadata().is_ok_and(|left| !left.is_file()) {
                    return Err(exists(&path));
                }
                let left = match File::open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    opened => opened.map_err(failed)?,
                };
                lock(&left)?;
                // It is not emptied but removed: if a backup was killed at the end, the finished backup is the same file.
                if is_named(&left, &path).map_err(failed)? {
                    remove(&path)?;
                }
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Returns whether the path is that of an open file, which another process may have removed.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    Ok(path.symlink_metadata().is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())))
}

/// Removes a file if there is one.
fn remove(path: &Path) -> Result<(), MaintenanceError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

fn exists(path: &Path) -> MaintenanceError {
    MaintenanceError::Refused(format!(
        "{} exists already, and existing files are not overwritten. Choose another file name.",
        path.display()
    ))
}

fn failed(path: &Path, error: &io::Error) -> MaintenanceError {
    MaintenanceError::File(format!("{}: {error}", path.display()))
}

/// Returns the error of writing the backup. Its cause is the backup file, most often a full disk, as the database was opened
/// and read before.
fn not_filled(file: &Path, reason: StoreError) -> MaintenanceError {
    let reason = match reason {
        StoreError::Unavailable(reason) => reason,
        other => other.to_string(),
    };
    MaintenanceError::File(format!("{}: {reason}", file.display()))
}

/// The files that were created and are removed at the end. These are the names under which they were written, and after a
/// failure the key file as well.
#[derive(Default)]
struct Unfinished(Vec<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
