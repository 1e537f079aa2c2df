//! `svc platform-key`.

use clap::Subcommand;
use svc_core::accounts::platform_keys::PlatformScope;
use svc_core::values::Text;

use crate::ids::IdArg;
use crate::values::{self, Expiry};

/// `svc platform-key …`
#[derive(Clone, Debug, Subcommand)]
pub enum PlatformKeyCommand {
    /// Create a key of the platform API.
    ///
    /// The key is printed once and cannot be shown again: the database stores only a hash of it. It works with the data of
    /// all accounts as far as its scopes allow: `*`, or a list of AREA:read and AREA:write. The areas are accounts, keys,
    /// members, apps, records, events, webhooks and deliveries; audit and export, which are only read; and import and operators,
    /// which only write. AREA:write includes AREA:read. members:write also makes links that sign in to the dashboard of each
    /// account, with any role: whoever has the key can do all that an owner can. `*` is all but operators:write, which makes
    /// links that sign operators in to the dashboard.
    #[command(after_help = "Examples:\n  svc platform-key create --name Backend\n  \
                      svc platform-key create --scopes accounts:read,records:write --expires 90d")]
    Create {
        /// What the key may do, separated by commas.
        #[arg(long, value_delimiter = ',', default_value = "*", hide_possible_values = true, value_name = "SCOPE,…")]
        scopes: Vec<PlatformScope>,
        /// Name that tells what the key is for: one line of at most 300 characters.
        #[arg(long, value_parser = Text::<300>::parse, value_name = "TEXT")]
        name: Option<Text<300>>,
        /// When the key expires: a duration such as 90d, a time, or a date, which is its start in UTC. The default is never.
        #[arg(long, value_parser = values::expiry, allow_hyphen_values = true, value_name = "DURATION|TIME")]
        expires: Option<Expiry>,
    },
    /// List the keys of the platform API, oldest first, with who created and who revoked them.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc platform-key list")]
    List,
    /// Revoke a key of the platform API, so that requests with it are rejected from now on.
    ///
    /// A revocation cannot be undone. Revoking a revoked key changes nothing.
    #[command(after_help = "Example:\n  svc platform-key revoke 0195a3c2")]
    Revoke {
        /// Id of the key.
        id: IdArg,
    },
}
