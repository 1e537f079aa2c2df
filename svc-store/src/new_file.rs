//! Files that appear under their names only when they are complete, and never in place of another file.
//!
//! They are written beside under another name, which ends with `.partial`, and synced. Then they get their name. A process
//! that is killed meanwhile leaves the file with the other name at most.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Returns the path under which a file is written.
pub(crate) fn partial(path: &Path) -> PathBuf {
    with_suffix(path, ".partial")
}

/// Returns the path with this text at its end.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates an empty file that only its owner can read. Fails if there is one.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Gives a complete file its name, and syncs its folder. The file keeps its other name as well.
///
/// Fails with [`io::ErrorKind::AlreadyExists`] if there is a file with that name, which stays as it is.
pub(crate) fn publish(partial: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(partial, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Some file systems, such as those of USB sticks, have no hard links.
        Err(error) if path.symlink_metadata().is_ok() || !partial.exists() => return Err(error),
        Err(_) => fs::rename(partial, path)?,
        Ok(()) => {}
    }
    sync_folder(path)
}

/// Syncs the folder of a file, so that the names in it survive a power failure.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
