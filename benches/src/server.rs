//! svc's server as it is measured: complete, except that no request is refused by its rate limit and no log is
//! written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use svc_core::Svc;
use svc_core::env::Env;
use svc_core::store::Store;
use svc_core::values::HostPolicy;
use svc_core::webhooks::engine::Policy;
use svc_server::deliver::{self, HttpWebhookClient};
use svc_server::outbound::resolver::SystemResolver;
use svc_server::program::serve::Server;
use svc_server::{Api, Builder, DashboardSettings, OauthSettings, Settings, Surfaces};
use svc_store::{Options, SecretKey, SqliteStore, open_with};
use tokio::sync::watch;

use crate::apps;
use crate::child;
use crate::error::Result;

/// Far more than the load generator opens.
const CONNECTIONS: u32 = 10_000;

/// The interval of the program.
const INDEX_INTERVAL: Duration = Duration::from_secs(5);

/// How long requests and attempts in progress may take at the end.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until stdin is closed. With `sending` it also sends deliveries, with the default settings except that
/// receivers may be local. With `indexing` it brings the index of searches up to date as often as the program does.
pub(crate) fn serve(database: &Path, sending: bool, counting: bool, indexing: bool) -> Result<()> {
    child::runtime()?.block_on(async {
        let store = open(database).await?;
        // With apps, as a token is told from a key by its beginning.
        let limits = Settings { limit_rates: counting, rate_limit: u32::MAX, ..Settings::default() };
        let api = Api::with_surfaces(Arc::clone(&store), limits, surfaces());
        let server = Server::bind(([127, 0, 0, 1], 0).into(), CONNECTIONS).await?;
        let url = server.url()?;
        let (stop, stopped) = watch::channel(());
        let until_stopped = |mut stopped: watch::Receiver<()>| async move {
            let _ = stopped.changed().await;
        };
        let policy = Policy::default();
        let client = HttpWebhookClient::new(store.env().clone(), policy.timeout, Arc::new(SystemResolver::default()));
        let sender =
            deliver::run(store, policy, Arc::new(client), Arc::default(), until_stopped(stopped.clone()), GRACE);
        let sender = sending.then(|| tokio::spawn(sender));
        child::print_address(url.trim_start_matches("http://").parse()?)?;
        tokio::spawn(async move {
            child::stdin_closed().await;
            drop(stop);
        });
        let index = indexing.then(|| tokio::spawn(index(api.clone())));
        server.run(api, until_stopped(stopped), GRACE).await;
        if let Some(index) = index {
            index.abort();
        }
        if let Some(sender) = sender {
            sender.await?;
        }
        Ok(())
    })
}

async fn index(api: Api) -> Result<()> {
    let mut interval = tokio::time::interval(INDEX_INTERVAL);
    loop {
        interval.tick().await;
        api.jobs().index_changes().await?;
    }
}

/// Serves the API with the dashboard and all its background work until stdin is closed.
pub(crate) fn serve_whole(database: &Path, request_log: bool) -> Result<()> {
    child::runtime()?.block_on(async {
        let settings = Settings { limit_rates: false, request_log, ..Settings::default() };
        let svc = Svc::new(SqliteStore::open(database, Env::system())?);
        let (api, background) = Builder::new(&svc).settings(settings).surfaces(surfaces()).build();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), CONNECTIONS).await?;
        child::print_address(server.url()?.trim_start_matches("http://").parse()?)?;
        let (stop, stopped) = watch::channel(());
        let until_stopped = |mut stopped: watch::Receiver<()>| async move {
            let _ = stopped.changed().await;
        };
        let background = tokio::spawn(background.run(until_stopped(stopped.clone())));
        tokio::spawn(async move {
            child::stdin_closed().await;
            drop(stop);
        });
        server.run(api, until_stopped(stopped), GRACE).await;
        Ok(background.await?)
    })
}

/// Returns the dashboard and apps beside the API.
fn surfaces() -> Surfaces {
    let oauth = apps::ISSUER.parse().ok().map(OauthSettings::new);
    Surfaces { dashboard: Some(DashboardSettings { oauth, ..DashboardSettings::default() }), ..Surfaces::default() }
}

/// Opens the store with its default settings.
pub(crate) async fn open(database: &Path) -> Result<Arc<dyn Store>> {
    let mut env = Env::system();
    env.webhook_hosts = HostPolicy::AllowPrivate;
    match postgres_url(database) {
        Some(url) => {
            // Every process of a run uses the same key, whatever the environment contains.
            let options = Options { secret_key: Some(SecretKey::new([7; 32])), ..Options::default() };
            Ok(open_with(url, env, options).await?)
        }
        None => Ok(Arc::new(SqliteStore::open(database, env)?)),
    }
}

/// Returns the URL if the database is on PostgreSQL rather than in a file.
fn postgres_url(database: &Path) -> Option<&str> {
    database.to_str().filter(|url| url.starts_with("postgres://"))
}
