//! The server under test: all of it, but that no request is refused for its rate and no log is written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use svc_core::env::Env;
use svc_server::serve::Server;
use svc_server::{Api, Settings};
use svc_store::SqliteStore;

use crate::Result;
use crate::child;

/// Far more than the load generator opens.
const CONNECTIONS: u32 = 10_000;

/// Serves until stdin ends.
pub(crate) fn serve(file: &Path) -> Result<()> {
    let store = Arc::new(SqliteStore::open(file, Env::system())?);
    let api = Api::new(store, Settings { limit_rates: false, ..Settings::default() });
    child::runtime()?.block_on(async {
        let server = Server::bind(([127, 0, 0, 1], 0).into(), CONNECTIONS).await?;
        let url = server.url()?;
        child::announce(url.trim_start_matches("http://").parse()?)?;
        server.run(api, child::told_to_stop(), Duration::from_secs(1)).await;
        Ok(())
    })
}
