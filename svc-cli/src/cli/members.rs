//! `svc member`.

use clap::Subcommand;
use svc_core::accounts::sessions::Role;
use svc_core::values::Email;

use super::InAccount;
use crate::values;

/// `svc member …`
#[derive(Clone, Debug, Subcommand)]
pub enum MemberCommand {
    /// Add a member, or change the role of one.
    ///
    /// The person signs in to the dashboard at the identity provider that svc-server has by --oidc-issuer. An application
    /// that embeds the service signs the person in once it has verified the address. Without either, people sign in by
    /// `svc dashboard link`. A change of the role holds from the person's next request on.
    #[command(after_help = "Example:\n  svc member add --email ada@example.com --role owner")]
    Add {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// Email address of the person. Upper and lower case are the same.
        #[arg(long, value_parser = Email::parse, value_name = "ADDRESS")]
        email: Email,
        /// What the person may do. Each role may also do what the ones before it may.
        #[arg(long, value_parser = values::role(), value_name = "ROLE")]
        role: Role,
    },
    /// List the members of an account by email address.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc member list")]
    List {
        /// The account.
        #[command(flatten)]
        account: InAccount,
    },
    /// Remove a member, who sees nothing of the account from the next request on.
    #[command(after_help = "Example:\n  svc member remove --email ada@example.com")]
    Remove {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// Email address of the member.
        #[arg(long, value_parser = Email::parse, value_name = "ADDRESS")]
        email: Email,
    },
}
