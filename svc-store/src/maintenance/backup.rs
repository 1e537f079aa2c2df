//! Backups of SQLite databases, which may be in use.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use svc_core::error::StoreError;

use super::MaintenanceError;
use crate::sqlite::SqliteConnection;
use crate::vault::{self, SecretKey};
use crate::{check_path, is_postgres, sqlite_path, unavailable};

/// The result of a backup.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Backup {
    /// The size of the backup, in bytes.
    pub bytes: u64,
    /// The path to which the key file was copied. `None` when the key comes from the environment.
    pub key: Option<PathBuf>,
}

/// Backs up the SQLite database at `url` to the new file `file`, and its key file to `file.key`.
///
/// The backup is a consistent snapshot, even while a server writes to the database. Existing files are never overwritten,
/// and only their owner can read the new ones. The schema is not migrated.
///
/// # Errors
/// [`MaintenanceError::Unsupported`] for PostgreSQL, [`MaintenanceError::Refused`] when a file exists already,
/// [`MaintenanceError::File`] when a file cannot be written, and [`MaintenanceError::Open`] when the database cannot be
/// opened. No file is left behind after an error.
pub async fn backup(url: &str, file: &Path) -> Result<Backup, MaintenanceError> {
    if is_postgres(url) {
        let reason = "This command backs up SQLite databases only. Back up PostgreSQL with `pg_dump --format=custom \
             --file=FILE URL`, and keep a copy of SVC_SECRET_KEY: without it the secrets in the backup cannot be decrypted.";
        return Err(MaintenanceError::Unsupported(reason.to_owned()));
    }
    let path = sqlite_path(url)?;
    check_path(&path, false)?;
    let connection = SqliteConnection::open_read_only(&path).map_err(|reason| unavailable(url, reason))?;
    let key = match SecretKey::optional_from_environment().map_err(|reason| failed(&path, &reason))? {
        Some(_) => None,
        None => Some((vault::key_file(&path), vault::key_file(file))),
    };
    // Unfinished files are removed after an error.
    let mut unfinished = Unfinished::default();
    if let Some((from, to)) = &key {
        let content = fs::read(from).map_err(|reason| failed(from, &reason))?;
        let mut made = unfinished.make(to)?;
        made.write_all(&content).and_then(|()| made.sync_all()).map_err(|reason| failed(to, &reason))?;
    }
    let made = unfinished.make(file)?;
    // SQLite writes to an existing file if it is empty, and keeps its permissions.
    connection.copy_into(file).map_err(|reason| not_filled(file, reason))?;
    made.sync_all().and_then(|()| sync_folder(file)).map_err(|reason| failed(file, &reason))?;
    let bytes = made.metadata().map_err(|reason| failed(file, &reason))?.len();
    unfinished.0.clear();
    Ok(Backup { bytes, key: key.map(|(_, to)| to) })
}

/// Syncs the directory of a file, so that the file name survives a power failure.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
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

/// The files that were created, which are removed unless the backup succeeds.
#[derive(Default)]
struct Unfinished(Vec<PathBuf>);

impl Unfinished {
    fn make(&mut self, path: &Path) -> Result<File, MaintenanceError> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let made = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => MaintenanceError::Refused(format!(
                "{} exists already, and existing files are not overwritten. Choose another file name.",
                path.display()
            )),
            _ => failed(path, &error),
        })?;
        self.0.push(path.to_owned());
        Ok(made)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
