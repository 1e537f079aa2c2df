//! `svc find`.

use svc_core::find::MAX_HITS;

use super::lookup;
use crate::cli::Find;
use crate::exit::Failure;
use crate::output::{Outcome, Table, plain};
use crate::service::Service;

pub(super) async fn run(service: &Service, options: Find) -> Result<Outcome, Failure> {
    let account = lookup::account(service, &options.account).await?.id;
    let found = service.find(account, options.text).await?;
    let table = Table::new(["KIND", "ID", "NAME", "DETAILS"], &found.data, |hit| {
        [hit.kind.to_string(), hit.id.to_string(), plain(&hit.title), plain(&hit.detail)]
    });
    let note = if !found.is_complete {
        Some("Many records changed just now; what changed last may be missing. Repeat the command in some seconds.")
    } else if found.data.len() >= MAX_HITS {
        Some("There may be more records; give more of the text.")
    } else {
        None
    };
    let outcome = Outcome::list(&found.data, &table, found.note.as_deref().unwrap_or("Nothing was found."))?;
    Ok(outcome.with_note(note.map(str::to_owned)))
}
