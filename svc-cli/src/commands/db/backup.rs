//! Backs a SQLite database up.

use std::path::Path;

use serde_json::json;

use crate::exit::Failure;
use crate::output::Outcome;

pub(super) async fn run(url: &str, file: &Path) -> Result<Outcome, Failure> {
    let backup = svc_store::backup(url, file).await?;
    let key = backup.key.as_ref().map(|path| path.display().to_string());
    let (text, note) = match &key {
        Some(key) => (
            format!("Backed the database up to {} and the key of its secrets to {key}.", file.display()),
            "Without its key file the backup opens no secret: keep both, and best apart from each other.",
        ),
        None => (
            format!("Backed the database up to {}.", file.display()),
            "Without the key in SVC_SECRET_KEY the backup opens no secret: keep a copy of it too.",
        ),
    };
    let view = json!({ "file": file, "key_file": key, "bytes": backup.bytes });
    Ok(Outcome::new(&view, text)?.with_note(Some(note.to_owned())))
}
