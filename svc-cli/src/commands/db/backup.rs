//! `svc db backup`.

use std::path::Path;

use serde_json::json;

use crate::exit::Failure;
use crate::output::Outcome;

pub(super) async fn run(url: &str, file: &Path) -> Result<Outcome, Failure> {
    let backup = svc_store::backup(url, file).await?;
    let key = backup.key.as_ref().map(|path| path.display().to_string());
    let (text, note) = match &key {
        Some(key) => (
            format!("Backed up the database to {} and its encryption key to {key}.", file.display()),
            "The secrets in the backup cannot be decrypted without the key file: keep both, preferably in different places.",
        ),
        None => (
            format!("Backed up the database to {}.", file.display()),
            "The secrets in the backup cannot be decrypted without the key in SVC_SECRET_KEY: keep a copy of it too.",
        ),
    };
    let view = json!({ "file": file, "key_file": key, "bytes": backup.bytes });
    Ok(Outcome::new(&view, text)?.with_note(Some(note.to_owned())))
}
