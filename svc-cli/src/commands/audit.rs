//! `svc audit`.

use clap::Subcommand;
use svc_core::accounts::audit::summary;
use svc_core::platform::LogFilter;
use svc_core::platform::operations::LIST_AUDIT_LOG;

use super::lookup;
use crate::exit::Failure;
use crate::ids::InAccount;
use crate::output::{Outcome, Table, plain};
use crate::service::cut;
use crate::session::Session;
use crate::times::{self, full};
use crate::values::{self, TimeArg};

/// Show the audit log: who changed what, and when.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc audit list")]
pub(crate) enum AuditCommand {
    /// List the changes to an account, its keys, its webhooks and its records, newest first.
    ///
    /// The actor of a change is `cli:` and a user of this machine, `key:` and the id of an API key, `sender` or
    /// `system`. With --json, each entry also contains the values before and after the change, without secrets. Changes
    /// to records are listed as long as their events are kept. No other entry of the log is ever changed or deleted.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc audit list\n  \
                      svc audit list --since 7d --json"
    )]
    List {
        #[command(flatten)]
        account: InAccount,
        /// List only changes since this time, such as '2026-03-14 15:09' in the account's time zone, or this long ago, such
        /// as 2h or 7d. A date is its start.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        since: Option<TimeArg>,
        /// Maximum number of changes to list.
        #[arg(long, default_value = "50", value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
        limit: u32,
    },
}

pub(crate) async fn run(session: &Session, command: AuditCommand) -> Result<Outcome, Failure> {
    let AuditCommand::List { account, since, limit } = command;
    let service = &session.service().await?;
    let account = lookup::account(service, &account).await?.id;
    let since = times::since(since.as_ref())?;
    // One entry more than the limit tells whether there are more.
    let filter = LogFilter { since };
    let (mut entries, _) = service.newest(&LIST_AUDIT_LOG, account, &filter, limit.saturating_add(1)).await?;
    let more = cut(&mut entries, limit);
    let table = Table::new(["AT", "ACTION", "OBJECT", "ACTOR"], &entries, |entry| {
        let action = summary(&entry.object_kind, &entry.action);
        [full(entry.at), action, entry.object_id.to_string(), plain(&entry.actor)]
    });
    let note = more.then(|| "There are more entries; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&entries, &table, "No changes were recorded.")?.with_note(note))
}
