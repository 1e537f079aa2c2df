//! `svc audit`.

use clap::Subcommand;

use super::InAccount;
use crate::values::{self, TimeArg};

/// `svc audit …`
#[derive(Clone, Debug, Subcommand)]
pub enum AuditCommand {
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
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// List only changes since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h or 7d.
        /// A date, such as 2026-03-14, is its start in the account's time zone.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        since: Option<TimeArg>,
        /// Maximum number of changes to list.
        #[arg(long, default_value = "50", value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
        limit: u32,
    },
}
