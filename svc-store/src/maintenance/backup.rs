//! Backs a SQLite file up while it is in use.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use svc_core::error::StoreError;

use super::MaintenanceError;
use crate::sqlite::Connection;
use crate::vault::{self, SecretKey};
use crate::{is_postgres, sqlite_path, unavailable};

/// What was made.
#[derive(Clone, Debug)]
pub struct Backup {
    /// How large the file is.
    pub bytes: u64,
    /// Where the key of its secrets was copied to; `None` when it comes from the environment.
    pub key: Option<PathBuf>,
}

/// Copies a SQLite database as it is at one moment to a new file, and the file with its key to another beside that.
/// Neither is ever made in place of another, and both can be read by their owner only. Its schema stays as it is.
///
/// # Errors
/// [`MaintenanceError::Unsupported`] for PostgreSQL, [`MaintenanceError::Refused`] when there is such a file already.
pub async fn backup(url: &str, file: &Path) -> Result<Backup, MaintenanceError> {
    if is_postgres(url) {
        let reason = "PostgreSQL is backed up by its own program: `pg_dump --format=custom --file=FILE URL`. Keep \
             SVC_SECRET_KEY as well; without it a backup opens no secret.";
        return Err(MaintenanceError::Unsupported(reason.to_owned()));
    }
    let path = sqlite_path(url)?;
    let connection = Connection::open_read_only(&path).map_err(|reason| unavailable(url, reason))?;
    let key = match SecretKey::optional_from_environment().map_err(|reason| failed(&path, &reason))? {
        Some(_) => None,
        None => Some((vault::key_file(&path), vault::key_file(file))),
    };
    // What is not finished goes away again.
    let mut unfinished = Unfinished::default();
    if let Some((from, to)) = &key {
        let content = fs::read(from).map_err(|reason| failed(from, &reason))?;
        let mut made = unfinished.make(to)?;
        made.write_all(&content).and_then(|()| made.sync_all()).map_err(|reason| failed(to, &reason))?;
    }
    let made = unfinished.make(file)?;
    // An empty file is filled; its rights stay.
    connection.copy_into(file).map_err(|reason| not_filled(file, reason))?;
    made.sync_all().and_then(|()| sync_folder(file)).map_err(|reason| failed(file, &reason))?;
    let bytes = made.metadata().map_err(|reason| failed(file, &reason))?.len();
    unfinished.0.clear();
    Ok(Backup { bytes, key: key.map(|(_, to)| to) })
}

/// The name of a file must outlast a power cut as surely as what is in it.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn failed(path: &Path, error: &io::Error) -> MaintenanceError {
    MaintenanceError::File(format!("{}: {error}", path.display()))
}

/// It is the file that is wrong, most often its disk that is full; the database was opened and read before.
fn not_filled(file: &Path, reason: StoreError) -> MaintenanceError {
    let reason = match reason {
        StoreError::Unavailable(reason) => reason,
        other => other.to_string(),
    };
    MaintenanceError::File(format!("{}: {reason}", file.display()))
}

/// Files that were made, to be removed unless all goes well.
#[derive(Default)]
struct Unfinished(Vec<PathBuf>);

impl Unfinished {
    fn make(&mut self, path: &Path) -> Result<File, MaintenanceError> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let made = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => MaintenanceError::Refused(format!(
                "{} exists already, and nothing is overwritten; name another file.",
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
