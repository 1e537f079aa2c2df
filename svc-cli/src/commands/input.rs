//! Makes inputs of operations of what is typed.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use svc_core::values::Patch;

use crate::exit::{Exit, Failure};

/// The largest input, in bytes, which is also the limit of the API.
const MAX_DATA: u64 = 1 << 20;

/// Reads what is given with `--data`: a file, or stdin for `-`.
pub(super) fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    let stdin = path.as_os_str() == "-";
    let mut bytes = Vec::new();
    let done = if stdin {
        io::stdin().lock().take(MAX_DATA + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(MAX_DATA + 1).read_to_end(&mut bytes))
    };
    let name = if stdin { "stdin".into() } else { path.to_string_lossy() };
    match done {
        Err(error) => Err(Failure::new(Exit::Failed, format!("Cannot read {name}: {error}."))),
        Ok(size) if size as u64 > MAX_DATA => {
            Err(Failure::new(Exit::Usage, format!("--data must be at most 1 MiB; {name} is larger.")))
        }
        Ok(_) => Ok(bytes),
    }
}

/// Returns the change of a field that has an option.
pub(super) fn patch<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Keep, Patch::Set)
}
