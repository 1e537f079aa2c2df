//! The file of an import, or stdin.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;

use crate::output::plain;

/// Returns the name of the file as messages have it.
pub(super) fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { plain(&path.to_string_lossy()) }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file, or stdin for `-`. Input from a pipe is read to its end first, into a file without a name, since it has
/// to be checked before it is imported.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = if is_stdin(path) { file_of_stdin() } else { Some(File::open(path)?) };
    let mut once: Box<dyn Read> = match file {
        Some(file) if file.metadata()?.is_file() => return Ok(file),
        Some(pipe) => Box::new(pipe),
        None => Box::new(io::stdin()),
    };
    let no_copy = |error: io::Error| {
        let folder = std::env::temp_dir();
        let reason = format!("no copy of it can be made in {}: {error}; TMPDIR names another folder", folder.display());
        io::Error::new(error.kind(), reason)
    };
    let mut copy = tempfile::tempfile().map_err(no_copy)?;
    match io::copy(&mut once, &mut copy) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(no_copy(error)),
        copied => copied.and_then(|_| copy.rewind()).map(|()| copy),
    }
}

/// Returns stdin if the system lets it be opened again as a file.
#[cfg(unix)]
fn file_of_stdin() -> Option<File> {
    use std::os::fd::AsFd as _;
    Some(File::from(io::stdin().as_fd().try_clone_to_owned().ok()?))
}

#[cfg(not(unix))]
fn file_of_stdin() -> Option<File> {
    None
}
