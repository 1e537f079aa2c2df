//! Addresses at which people see an invoice, a quote or the calendar of an account without signing in.

use clap::Args;
use serde_json::{Value, json};
use svc_core::platform::{SharedAddress, SharedAddressCreate};

use crate::exit::Failure;
use crate::output::Outcome;
use crate::public_url::PublicUrl;

/// The change of an address, and the URL before it.
#[derive(Args, Clone, Debug)]
pub(crate) struct AddressArgs {
    /// End the address that there is, and print another one.
    #[arg(long, conflicts_with = "revoke")]
    renew: bool,
    /// End the address.
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    server: PublicUrl,
}

/// Prints the address, which `share` returns, or ends it by `unshare`.
pub(super) async fn run(
    args: AddressArgs,
    share: impl AsyncFnOnce(SharedAddressCreate) -> Result<SharedAddress, Failure>,
    unshare: impl AsyncFnOnce() -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    let AddressArgs { renew, revoke, server } = args;
    if revoke {
        unshare().await?;
        return Outcome::new(&json!({ "url": Value::Null }), "The address has ended.".to_owned());
    }
    let SharedAddress { path, created_at } = share(SharedAddressCreate { renew: Some(renew) }).await?;
    let url = server.with(&path);
    Outcome::new(&json!({ "url": url, "created_at": created_at }), url)
}
