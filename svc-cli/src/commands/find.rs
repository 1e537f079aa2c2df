//! `svc find`.

use clap::Args;
use svc_core::error::Issue;
use svc_core::find::{FindText, MAX_HITS, MAX_TEXT};
use svc_core::values::Text;

use super::lookup;
use crate::exit::Failure;
use crate::ids::InAccount;
use crate::output::{Outcome, Table, plain};
use crate::session::Session;

/// Find contacts, invoices, quotes, bookings and jobs by a text.
///
/// It looks for the text, in any case, in names, email addresses, phone numbers, companies, suburbs, titles and numbers, and
/// for records whose ids begin with it. It lists at most 20 records: those that are named exactly, then those that changed
/// last.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc find INV-0001\n  svc find 'ada lovelace'\n  svc find example.com --json")]
pub(crate) struct Find {
    /// The text to find: a whole name, number or email address, at least three characters of any text, or a word of one or two.
    /// Case, accents, and what stands between the digits of a phone number make no difference.
    #[arg(value_parser = text, value_name = "TEXT")]
    text: FindText,
    #[command(flatten)]
    account: InAccount,
}

fn text(text: &str) -> Result<FindText, Issue> {
    Text::<MAX_TEXT>::parse(text).map(|text| FindText { text })
}

pub(crate) async fn run(session: &Session, options: Find) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
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
