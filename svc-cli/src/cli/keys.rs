//! `svc key`.

use std::time::Duration;

use clap::Subcommand;
use svc_core::values::{TenantId, parse_uuid};
use uuid::Uuid;

use crate::values::{self, Scopes};

/// `svc key …`
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key.
    ///
    /// Its text is printed once: the database keeps only a hash of it.
    #[command(
        after_help = "Examples:\n  svc key create --tenant 0195a3c8-0000-7000-8000-000000000001 --scopes read,write\n  \
                      svc key create --tenant 0195a3c8-0000-7000-8000-000000000001 --scopes read \\\n    \
                      --name Reports --expires 90d"
    )]
    Create {
        /// Id of the tenant whose data the key opens.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
        /// What it may do: read, or read,write.
        #[arg(long, value_parser = values::scopes, value_name = "read[,write]")]
        scopes: Scopes,
        /// What it is for.
        #[arg(long, value_parser = values::name, value_name = "TEXT")]
        name: Option<String>,
        /// Refuse it after this long, such as 90d or 24h; without it, it does not expire.
        #[arg(long, value_parser = values::lifetime, allow_hyphen_values = true, value_name = "DURATION")]
        expires: Option<Duration>,
        /// Demand that its writes are signed, with a secret that is printed once too.
        #[arg(long)]
        signed: bool,
    },
    /// List the keys of a tenant, oldest first.
    #[command(after_help = "Example:\n  svc key list --tenant 0195a3c8-0000-7000-8000-000000000001")]
    List {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
    },
    /// Show a key, without its text.
    #[command(after_help = "Example:\n  svc key show 0195a3c8-0000-7000-8000-000000000002")]
    Show {
        /// Id of the key.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Refuse a key from now on.
    ///
    /// There is no way back. Revoking it again changes nothing.
    #[command(after_help = "Example:\n  svc key revoke 0195a3c8-0000-7000-8000-000000000002")]
    Revoke {
        /// Id of the key.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Replace a key by a new one with the same name and rights.
    ///
    /// The old key stays good for the overlap, so that programs can change over. The new key's text is
    /// printed once.
    #[command(after_help = "Examples:\n  svc key rotate 0195a3c8-0000-7000-8000-000000000002\n  \
                      svc key rotate 0195a3c8-0000-7000-8000-000000000002 --overlap 7d")]
    Rotate {
        /// Id of the key.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
        /// For how long the old key stays good; 0s ends it at once.
        #[arg(long, value_parser = values::duration, allow_hyphen_values = true, default_value = "24h", value_name = "DURATION")]
        overlap: Duration,
    },
}
