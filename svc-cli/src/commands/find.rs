//! `svc find`.

use svc_core::find;
use svc_core::platform::operations::FIND_RECORDS;

use super::lookup;
use crate::cli::InAccount;
use crate::exit::Failure;
use crate::output::{Outcome, plain};
use crate::service::Service;
use crate::table::Table;

pub(super) async fn run(service: &Service, account: &InAccount, text: &str) -> Result<Outcome, Failure> {
    let text = find::parse(text)?;
    let account = lookup::account(service, account).await?.id;
    let found = service.call(&FIND_RECORDS, account, text.clone()).await?;
    let table = Table::new(["KIND", "ID", "TITLE", "DETAIL"], &found.data, |hit| {
        [hit.kind.to_string(), hit.id.to_string(), plain(&hit.title), plain(&hit.detail)]
    });
    let note = "Many records changed just now; the newest of them are found in some seconds.".to_owned();
    let empty = format!("Nothing has {} in a name, an address or a number.", text.text.as_str());
    Ok(Outcome::list(&found.data, &table, &empty)?.with_note(Some(note).filter(|_| !found.is_complete)))
}
