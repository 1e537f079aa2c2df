//! The life of the binary: open the database, listen, serve, stop in order.

pub mod config;
pub mod demo;
pub mod proxy;
pub mod serve;

use std::future::Future;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::env::Env;
use svc_core::store::Store;
use svc_core::values::HostPolicy;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::api::Api;
use crate::deliver::{self, HttpWebhookClient};
use crate::metrics::metered;
use crate::program::config::Config;
use crate::program::proxy::TrustedProxies;
use crate::program::serve::{Server, Tls};
use crate::telemetry;

const DEFAULT_DATABASE: &str = "sqlite://svc.db";
const DEFAULT_OPS_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);
/// How often last uses are written down and expired rows dropped.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(10);
/// How often it is looked for what is older than the retention.
const RETENTION_INTERVAL: Duration = Duration::from_secs(60);
/// For threads that the operating system keeps, once all else has ended.
const LAST_THREADS: Duration = Duration::from_millis(500);
/// Connections of operators.
const OPS_CONNECTIONS: u32 = 64;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database.
    #[error(transparent)]
    Open(#[from] svc_store::OpenError),
    /// A listener.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The certificate or its key.
    #[error("cannot serve TLS: {0}")]
    Tls(io::Error),
    /// The sample data.
    #[error("cannot make the sample data: {0}")]
    Demo(#[from] demo::DemoError),
    /// The runtime, a signal handler, or stdout.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RunError {
    /// 2 for a wrong URL, 5 for a database that is away, else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Open(svc_store::OpenError::InvalidUrl(_)) => ExitCode::from(2),
            Self::Open(svc_store::OpenError::Unavailable { .. }) => ExitCode::from(5),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Runs the server until SIGTERM or SIGINT.
///
/// # Errors
/// [`RunError`].
pub fn run(config: Config) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(config));
    // A look-up of a name that never answers must not keep the process.
    runtime.shutdown_timeout(LAST_THREADS);
    served
}

async fn serve(config: Config) -> Result<(), RunError> {
    let mut env = Env::system();
    if config.allow_private_webhooks || config.demo {
        env.webhook_hosts = HostPolicy::AllowPrivate;
    }
    let demo_folder = if config.demo && config.database_url.is_none() { Some(tempfile::tempdir()?) } else { None };
    let url = match (&config.database_url, &demo_folder) {
        (Some(url), _) => url.clone(),
        (None, Some(folder)) => format!("sqlite://{}", folder.path().join("demo.db").display()),
        (None, None) => DEFAULT_DATABASE.to_owned(),
    };
    let settings = config.settings();
    let metrics = Arc::clone(&settings.metrics);
    let store = metered(svc_store::open_with(&url, env, config.store_options()).await?, Arc::clone(&metrics));
    let client = HttpWebhookClient::new(store.env().clone(), config.webhook_timeout, Arc::clone(&settings.resolver));
    let api = Api::new(Arc::clone(&store), settings);

    let mut server = Server::bind(config.listen, config.max_connections)
        .await
        .map_err(|error| RunError::Listen(config.listen, error))?;
    if let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) {
        server = server.with_tls(certificate, key).map_err(RunError::Tls)?;
    }
    server = server.with_trusted_proxies(TrustedProxies::new(config.trusted_proxy.clone()));
    if let Some(tls) = server.tls() {
        reload_on_signal(tls)?;
    }
    let (stop, stopped) = watch::channel(());
    let until_stopped = move || {
        let mut stopped = stopped.clone();
        async move {
            let _ = stopped.changed().await;
        }
    };
    let ops = match listen_for_operators(config.ops_listen).await? {
        Some(ops) => {
            tracing::info!(url = ops.url()?, "operators listen");
            Some(tokio::spawn(ops.run(api.for_operators(), until_stopped(), config.shutdown_grace)))
        }
        None => None,
    };
    let upkeep = tokio::spawn(upkeep(api.clone(), until_stopped()));
    let retention = tokio::spawn(retain(api.clone(), until_stopped()));
    let sender = tokio::spawn(deliver::run(
        Arc::clone(&store),
        config.sender_policy(),
        Arc::new(client),
        metrics,
        until_stopped(),
        config.shutdown_grace,
    ));

    let signals = signals()?;
    announce(&config, &server, &store).await?;
    // Requests, attempts and upkeep all get the same grace, from the same moment on.
    tokio::spawn(async move {
        signals.await;
        drop(stop);
    });
    let mut end = Instant::now();
    let stop = async {
        until_stopped().await;
        end = Instant::now() + config.shutdown_grace;
    };
    server.run(api.clone(), stop, config.shutdown_grace).await;
    upkeep.abort();
    retention.abort();
    let _ = sender.await;
    if let Some(ops) = ops {
        let _ = ops.await;
    }
    if let Err(error) = api.flush_last_used().await {
        tracing::warn!(%error, "the last uses of keys were not written down");
    }
    telemetry::flush(end.saturating_duration_since(Instant::now())).await;
    tracing::info!("stopped");
    Ok(())
}

/// The address that was asked for, or else the usual one, which another server on this machine may have.
async fn listen_for_operators(asked: Option<SocketAddr>) -> Result<Option<Server>, RunError> {
    let address = asked.unwrap_or(DEFAULT_OPS_LISTEN);
    match Server::bind(address, OPS_CONNECTIONS).await {
        Ok(ops) => Ok(Some(ops)),
        Err(error) if asked.is_some() => Err(RunError::Listen(address, error)),
        Err(error) => {
            tracing::warn!(%error, %address, "no metrics: name another address by --ops-listen");
            Ok(None)
        }
    }
}

/// Tells programs, and people who try the demo, where to call.
async fn announce(config: &Config, server: &Server, store: &Arc<dyn Store>) -> Result<(), RunError> {
    let url = server.url()?;
    let guide = if config.demo { Some(demo::prepare(&**store, &url).await?) } else { None };
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on {url}")?;
    if let Some(guide) = guide {
        writeln!(stdout, "{guide}")?;
    }
    stdout.flush()?;
    Ok(())
}

/// Reads the certificate again on each SIGHUP.
fn reload_on_signal(tls: Arc<Tls>) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match tls.reload() {
                Ok(()) => tracing::info!("the certificate was read again"),
                Err(reason) => {
                    tracing::error!(error = %reason, "the certificate cannot be read again; the old one stays")
                }
            }
        }
    });
    Ok(())
}

/// Ready on the first SIGTERM or SIGINT.
fn signals() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn upkeep(api: Api, stopped: impl Future<Output = ()>) {
    tokio::pin!(stopped);
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            () = &mut stopped => return,
        }
        if let Err(error) = api.run_housekeeping().await {
            tracing::warn!(%error, "upkeep failed and will be tried again");
        }
    }
}

async fn retain(api: Api, stopped: impl Future<Output = ()>) {
    let sweeps = async {
        let mut interval = tokio::time::interval(RETENTION_INTERVAL);
        loop {
            interval.tick().await;
            match api.delete_expired_events().await {
                Ok(dropped) if dropped.rows() > 0 => {
                    tracing::info!(?dropped, "what was older than the retention is gone")
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "retention failed and will be tried again"),
            }
        }
    };
    tokio::select! {
        () = sweeps => {}
        () = stopped => {}
    }
}
