//! Profiles: servers and their platform keys, under names, in the configuration folder of the user.
//!
//! Each is a file that only the user can read, in a folder that only the user can open.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use svc_core::input::similar;
use svc_core::values::Secret;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::server::Server;

/// The name of a profile that is given none.
pub(crate) const DEFAULT: &str = "default";

/// The content of the file of a profile.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    server: String,
    key: String,
}

/// Returns the folder of the profiles.
fn folder() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    let config = config
        .ok_or_else(|| Failure::new(Exit::Failed, "There is no folder for profiles; set HOME or XDG_CONFIG_HOME."))?;
    Ok(config.join("svc").join("profiles"))
}

/// Parses the name of a profile: letters, digits, hyphens, underscores and dots, which does not begin with a dot.
///
/// # Errors
/// The text is anything else.
pub(crate) fn name(text: &str) -> Result<String, &'static str> {
    let is_plain = text.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char));
    if text.is_empty() || text.len() > 64 || text.starts_with('.') || !is_plain {
        return Err("must be up to 64 letters, digits, hyphens, underscores and dots, and not begin with a dot");
    }
    Ok(text.to_owned())
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("Cannot {what} {}: {error}.", path.display()))
}

/// Returns the path of the file of a profile.
fn path(name: &str) -> Result<PathBuf, Failure> {
    Ok(folder()?.join(format!("{name}.json")))
}

/// Returns the names of all profiles, sorted.
pub(crate) fn names() -> Result<Vec<String>, Failure> {
    let folder = folder()?;
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed("read", &folder, &error))?,
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter_map(|file| file.strip_suffix(".json").and_then(|text| name(text).ok())).collect();
    names.sort();
    Ok(names)
}

/// Returns the failure of a profile that is not there, with the one that was probably meant.
fn unknown(name: &str) -> Result<Failure, Failure> {
    let names = names()?;
    let meant = similar(name, names.iter().map(String::as_str)).map(|known| format!(", or did you mean {known}?"));
    let reason = format!(
        "There is no profile {name}{} `svc profiles` lists all, and `svc login` makes one.",
        meant.unwrap_or_else(|| ".".to_owned())
    );
    Ok(Failure::new(Exit::NotFound, reason))
}

/// Reads a profile.
///
/// # Errors
/// There is no such profile, or its file cannot be read.
pub(crate) fn load(name: &str) -> Result<Server, Failure> {
    let path = path(name)?;
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(unknown(name)?),
        text => text.map_err(|error| failed("read", &path, &error))?,
    };
    if fs::metadata(&path).is_ok_and(|file| file.mode() & 0o077 != 0) {
        let path = path.display();
        output::warning(&format!("Other users may read or change the platform key in {path}; run `chmod 600 {path}`."));
    }
    let File { server, key } = serde_json::from_slice(&text).map_err(|error| {
        let reason = format!(
            "The profile in {} is damaged: {error}. Make it again with `svc login --profile {name}`.",
            path.display()
        );
        Failure::new(Exit::Failed, reason)
    })?;
    Ok(Server { url: server, key: Secret::new(key.as_str()) })
}

/// Stores a profile, in place of one with the same name. Returns its path.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn store(name: &str, server: &Server) -> Result<PathBuf, Failure> {
    let path = path(name)?;
    let folder = folder()?;
    let write = || {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        // One that is there may have been made otherwise.
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        let file = File { server: server.url.clone(), key: server.key.reveal().to_owned() };
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).and_then(|mut out| {
            out.write_all(&serde_json::to_vec_pretty(&file)?)?;
            out.sync_all()?;
            // A reader finds the old profile or the new one.
            fs::rename(&new, &path)
        });
        if written.is_err() {
            // It is there unless it could not be made.
            let _ = fs::remove_file(&new);
        }
        written
    };
    write().map_err(|error| failed("write", &path, &error))?;
    Ok(path)
}

/// Deletes a profile.
///
/// # Errors
/// There is no such profile, or its file cannot be deleted.
pub(crate) fn delete(name: &str) -> Result<(), Failure> {
    let path = path(name)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown(name)?),
        deleted => deleted.map_err(|error| failed("delete", &path, &error)),
    }
}
