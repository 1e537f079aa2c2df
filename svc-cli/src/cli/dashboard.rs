//! `svc dashboard`.

use clap::Subcommand;
use svc_core::accounts::sessions::Role;

use super::InAccount;
use crate::values;

/// `svc dashboard …`
#[derive(Clone, Debug, Subcommand)]
pub enum DashboardCommand {
    /// Make a link that signs a person in to the dashboard.
    ///
    /// The link works once, for ten minutes. Opening it in a browser begins a session of at most twelve hours. Give it to
    /// that person alone. The dashboard's list of sessions shows who is signed in.
    #[command(after_help = "Examples:\n  svc dashboard link\n  \
                      svc dashboard link --role viewer --url https://api.example.com\n  \
                      svc dashboard link --operator")]
    Link {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// What the person may do. Each role may also do what the ones before it may.
        #[arg(long, value_parser = values::role(), default_value = "owner", value_name = "ROLE")]
        role: Role,
        /// Sign in as an operator, who sees all accounts, approves them and sets their limits.
        #[arg(long, conflicts_with = "role")]
        operator: bool,
        /// URL at which the browser reaches the server.
        #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
        url: String,
    },
}
