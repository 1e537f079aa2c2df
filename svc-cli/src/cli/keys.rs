//! `svc key`.

use std::time::Duration;

use clap::Subcommand;
use svc_core::platform::KeyScopes;
use svc_core::values::Text;

use super::InAccount;
use crate::ids::IdArg;
use crate::values::{self, Expiry};

/// `svc key …`
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Create an API key.
    ///
    /// The key is printed once and cannot be shown again: the database stores only a hash of it.
    #[command(after_help = "Examples:\n  svc key create --scopes read,write\n  \
                      svc key create --scopes read --name Reports --expires 90d")]
    Create {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// What the key may do: read, or read,write.
        #[arg(long, value_parser = values::scopes, value_name = "read[,write]")]
        scopes: KeyScopes,
        /// Name that tells what the key is for: one line of at most 300 characters.
        #[arg(long, value_parser = Text::<300>::parse, value_name = "TEXT")]
        name: Option<Text<300>>,
        /// When the key expires: a duration such as 90d, a time, or a date, which is its start in the account's time zone. The
        /// default is never.
        #[arg(long, value_parser = values::expiry, allow_hyphen_values = true, value_name = "DURATION|TIME")]
        expires: Option<Expiry>,
        /// Require signed writes. The signing secret is also printed once.
        #[arg(long)]
        signed: bool,
    },
    /// List the keys of an account, oldest first.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc key list")]
    List {
        /// The account.
        #[command(flatten)]
        account: InAccount,
    },
    /// Show a key, without its secret text.
    #[command(after_help = "Example:\n  svc key show 0195a3c2")]
    Show {
        /// Id of the key.
        id: IdArg,
        /// The account that owns the key.
        #[command(flatten)]
        account: InAccount,
    },
    /// Revoke a key, so that requests with it are rejected from now on.
    ///
    /// A revocation cannot be undone. Revoking a revoked key changes nothing.
    #[command(after_help = "Example:\n  svc key revoke 0195a3c2")]
    Revoke {
        /// Id of the key.
        id: IdArg,
        /// The account that owns the key.
        #[command(flatten)]
        account: InAccount,
    },
    /// Replace a key with a new one that has the same name and scopes.
    ///
    /// The old key remains valid for the overlap, so that programs can switch to the new one. The new key is printed
    /// once and cannot be shown again.
    #[command(after_help = "Examples:\n  svc key rotate 0195a3c2\n  \
                      svc key rotate 0195a3c2 --overlap 7d")]
    Rotate {
        /// Id of the key.
        id: IdArg,
        /// The account that owns the key.
        #[command(flatten)]
        account: InAccount,
        /// How long the old key remains valid; 0s invalidates it immediately.
        #[arg(long, value_parser = values::duration, allow_hyphen_values = true, default_value = "24h", value_name = "DURATION")]
        overlap: Duration,
    },
}
