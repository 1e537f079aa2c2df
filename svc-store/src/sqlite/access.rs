//! The obstacles between this process and a SQLite file: the rights to the file and its folder, or a medium that cannot be written to.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use svc_core::error::StoreError;

use crate::new_file::with_suffix;

/// Adds to an error of SQLite, which says neither, whose the file and its folder are and who this process is.
pub(super) fn explained(path: &Path, error: StoreError) -> StoreError {
    let StoreError::Unavailable(text) = &error else { return error };
    let is_of_rights = ["unable to open database file", "readonly database", "ermission denied", "access permission"];
    if !is_of_rights.iter().any(|part| text.contains(part)) {
        return error;
    }
    if path.is_dir() {
        return StoreError::Unavailable(format!("{text}. {} is a folder; name a file in it", path.display()));
    }
    let mut text = text.clone();
    let folder = folder_of(path);
    if let Ok(about) = fs::metadata(&folder) {
        let _ = write!(text, ". The folder {} belongs to {}", folder.display(), owner(&about));
    }
    if let Ok(about) = fs::metadata(path) {
        let _ = write!(text, ", the file to {}", owner(&about));
    }
    // The owner of a process is that of its files there, where the system has them.
    if let Ok(me) = fs::metadata("/proc/self") {
        let _ = write!(text, "; this process has the uid {}", me.uid());
    }
    text += ". It has to read and write the file, and to create files in the folder";
    StoreError::Unavailable(text)
}

fn owner(about: &fs::Metadata) -> String {
    format!("the uid {} (mode {:03o})", about.uid(), about.mode() & 0o777)
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Returns whether a file is on a medium that cannot be written to, so that nobody changes it, and has no write-ahead log.
pub(super) fn is_unchangeable(path: &Path) -> bool {
    let is_complete = fs::metadata(with_suffix(path, "-wal")).map_or(true, |log| log.len() == 0);
    let opened = OpenOptions::new().append(true).open(path);
    is_complete && opened.is_err_and(|error| error.kind() == ErrorKind::ReadOnlyFilesystem)
}

/// Returns the URI of a file that nobody changes, which SQLite reads without a lock and without files beside it.
pub(super) fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => uri.push(char::from(*byte)),
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri + "?immutable=1"
}
