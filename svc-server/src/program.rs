//! The program `svc-server`: opens the database, listens, serves, and shuts down in order.
//!
//! # Startup
//!
//! The database is opened and migrated first, then the listeners are bound: public, platform and operations. When all
//! accept connections, the line `listening on URL` goes to stdout, for supervisors and scripts that start the server. All
//! log messages go to stderr.
//!
//! # Shutdown
//!
//! On SIGTERM or SIGINT the listeners stop accepting connections. Running requests and delivery attempts then have the
//! shutdown grace to end. Attempts that have not ended are repeated after the next start. SIGHUP reloads
//! the TLS certificate.

pub mod address;
pub mod config;
pub mod demo;
mod healthcheck;
pub mod proxy;
pub mod serve;

use std::future::Future;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::Svc;
use svc_core::env::{Env, SystemEntropy};
use svc_core::store::Store;
use svc_core::values::HostPolicy;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::builder::Builder;
use crate::program::address::ListenAddress;
use crate::program::config::{Command, Config, Switch};
use crate::program::demo::{DemoClock, DemoFolder};
use crate::program::proxy::TrustedProxies;
use crate::program::serve::{Server, Tls};
use crate::telemetry;

const DEFAULT_DATABASE: &str = "sqlite://svc.db";
static DEFAULT_OPS_LISTEN: ListenAddress = ListenAddress::local(9464);
/// The log filter of a demo unless `SVC_LOG` says otherwise. Some of its sample endpoints fail all the time, which is not
/// worth a line.
const DEMO_LOG: &str = "info,svc_server::deliver=warn,svc_server::program=warn,svc_server::background=warn";
/// How long to wait for blocked threads, such as DNS lookups, after everything else has ended.
const THREAD_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);
/// The highest number of connections to the operations listener.
const MAX_OPS_CONNECTIONS: u32 = 64;

/// Runs the program with the arguments and the environment of the process, and returns its exit code.
pub fn main() -> ExitCode {
    let config = Config::load();
    if let Some(Command::Healthcheck(options)) = &config.command {
        return healthcheck::main(&config, options);
    }
    telemetry::init_or(config.log_format, if config.demo { DEMO_LOG } else { telemetry::DEFAULT_FILTER });
    let exit_code = match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "cannot run the server");
            error.exit_code()
        }
    };
    telemetry::end_log();
    exit_code
}

/// The reason for which the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] svc_store::OpenError),
    /// A listener cannot be bound.
    #[error("cannot listen on {0}: {1}")]
    Listen(ListenAddress, io::Error),
    /// The TLS certificate or its key cannot be used.
    #[error("cannot serve TLS: {0}")]
    Tls(io::Error),
    /// The platform webhook cannot be set.
    #[error("cannot use the URL of --platform-webhook: {0}")]
    PlatformWebhook(svc_core::error::Error),
    /// The stream cannot be sent, by its URL or by this program.
    #[error("{0}")]
    Stream(String),
    /// The sample data of the demo cannot be created.
    #[error("cannot create the sample data: {0}")]
    Demo(#[from] demo::DemoError),
    /// The runtime, a signal handler or stdout failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RunError {
    /// Returns the exit code: 2 for an invalid URL of the database, of the stream or of the platform webhook, 5 for an unreachable database,
    /// and 1 for every other error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Open(svc_store::OpenError::InvalidUrl(_))
            | Self::Stream(_)
            | Self::PlatformWebhook(svc_core::error::Error::Validation(_)) => ExitCode::from(2),
            Self::Open(_) => ExitCode::from(5),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Runs the server until SIGTERM or SIGINT.
///
/// # Errors
/// [`RunError`] if the server cannot start.
pub fn run(config: Config) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // A runtime polls what it runs in three places. Behind a pointer, the program is compiled once and not thrice.
    let serve: Pin<Box<dyn Future<Output = Result<(), RunError>>>> = Box::pin(serve(config));
    let served = runtime.block_on(serve);
    // A DNS lookup without a response must not keep the process running.
    runtime.shutdown_timeout(THREAD_SHUTDOWN_TIMEOUT);
    served
}

async fn serve(config: Config) -> Result<(), RunError> {
    let demo_clock = DemoClock::default();
    let mut env = if config.demo { Env::new(demo_clock.clone(), SystemEntropy) } else { Env::system() };
    if config.allow_private_webhooks || config.demo {
        env.webhook_hosts = HostPolicy::AllowPrivate;
    }
    env.max_webhooks = config.max_webhooks;
    env.event_kinds = config.event_kinds.clone().unwrap_or_default();
    let demo_folder = if config.demo && config.database_url.is_none() { Some(DemoFolder::create()?) } else { None };
    let url = match (&config.database_url, &demo_folder) {
        (Some(url), _) => url.clone(),
        (None, Some(folder)) => format!("sqlite://{}", folder.database().display()),
        (None, None) => DEFAULT_DATABASE.to_owned(),
    };
    let store = svc_store::open_with(&url, env, config.store_options()).await?;
    if let Some(path) = svc_store::exposed_key_file(&url) {
        tracing::warn!(path = %path.display(), "other users may read or change the file of the secret key; set its mode to 600");
    }
    let received = if config.demo {
        // Nothing else may use the store while its clock is set back.
        let receivers = demo::receivers::Receivers::bind().await?;
        demo::fill(&*store, Some(&demo_clock), Some(receivers.url())).await?;
        Some(demo::receive(&*store, receivers).await?)
    } else {
        None
    };
    let settings = config.settings();
    telemetry::export(&settings.metrics);
    let mut builder = Builder::new(&Svc::new(Arc::clone(&store)));
    if let Some(url) = config.stream().map_err(RunError::Stream)? {
        tracing::info!(%url, "sending events to a stream");
        builder = builder.stream(&url).map_err(|error| RunError::Stream(error.to_string()))?;
    }
    let (api, background) = builder
        .settings(settings)
        .surfaces(config.surfaces())
        .delivery_policy(config.delivery_policy())
        .shutdown_grace(config.shutdown_grace)
        .overdue(config.overdue == Switch::On)
        .build();
    api.jobs().set_platform_webhook().await.map_err(RunError::PlatformWebhook)?;

    let server = listen(&config, &config.listen).await?;
    let platform = match &config.platform_listen {
        Some(address) => Some(listen(&config, address).await?),
        None => None,
    };
    for tls in [server.tls(), platform.as_ref().and_then(Server::tls)].into_iter().flatten() {
        reload_on_signal(tls)?;
    }
    let stopping = CancellationToken::new();
    let until_stopped = || stopping.clone().cancelled_owned();
    let ops = match listen_for_operators(config.ops_listen.as_ref()).await? {
        Some(ops) => {
            tracing::info!(url = ops.url()?, "listening for operators");
            Some(tokio::spawn(ops.run(api.for_operators(), until_stopped(), config.shutdown_grace)))
        }
        None => None,
    };
    let background = tokio::spawn(background.run(until_stopped()));

    let shutdown = shutdown_signal()?;
    announce(&config, &url, &server, platform.as_ref(), &store).await?;
    if let Some(received) = received {
        tokio::spawn(demo::print(received));
    }
    let platform =
        platform.map(|platform| tokio::spawn(platform.run(api.for_platform(), until_stopped(), config.shutdown_grace)));
    // Requests, delivery attempts and maintenance all stop at the same moment and have the same grace.
    let stop = stopping.clone();
    tokio::spawn(async move {
        shutdown.await;
        stop.cancel();
    });
    let mut end = Instant::now();
    let stop = async {
        stopping.cancelled().await;
        end = Instant::now() + config.shutdown_grace;
    };
    server.run(api.clone(), stop, config.shutdown_grace).await;
    let _ = background.await;
    for listener in [platform, ops].into_iter().flatten() {
        let _ = listener.await;
    }
    if let Err(error) = api.jobs().flush_last_used().await {
        tracing::warn!(%error, "cannot store when API keys were last used");
    }
    api.jobs().flush_request_log().await;
    telemetry::flush(end.saturating_duration_since(Instant::now())).await;
    tracing::info!("stopped");
    Ok(())
}

/// Binds the operations listener. The default address may be in use by another server on this machine; then there is no
/// operations listener. An address that was configured must be free.
async fn listen_for_operators(configured: Option<&ListenAddress>) -> Result<Option<Server>, RunError> {
    let address = configured.unwrap_or(&DEFAULT_OPS_LISTEN);
    match Server::listen(address, MAX_OPS_CONNECTIONS).await {
        Ok(ops) => Ok(Some(ops)),
        Err(error) if configured.is_some() => Err(RunError::Listen(address.clone(), error)),
        Err(error) => {
            tracing::warn!(%error, %address, "the default address for operators is not available, so metrics and health checks are not served; set --ops-listen");
            Ok(None)
        }
    }
}

/// Binds a listener of an API, with the certificate and the trusted proxies that all of them have.
async fn listen(config: &Config, address: &ListenAddress) -> Result<Server, RunError> {
    let server = Server::listen(address, config.max_connections)
        .await
        .map_err(|error| RunError::Listen(address.clone(), error))?
        .with_keep_alive(config.keep_alive)
        .with_trusted_proxies(TrustedProxies::new(config.trusted_proxy.clone()));
    match (&config.tls_cert, &config.tls_key) {
        (Some(certificate), Some(key)) => server.with_tls(certificate, key).map_err(RunError::Tls),
        _ => Ok(server),
    }
}

/// Prints the URLs of the server, and for the demo a guide.
async fn announce(
    config: &Config,
    database_url: &str,
    server: &Server,
    platform: Option<&Server>,
    store: &Arc<dyn Store>,
) -> Result<(), RunError> {
    let url = server.url()?;
    let guide = if config.demo { Some(demo::guide(&**store, &url, database_url).await?) } else { None };
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on {url}")?;
    if let Some(platform) = platform {
        writeln!(stdout, "platform API on {}", platform.url()?)?;
    }
    if let Some(guide) = guide {
        writeln!(stdout, "{guide}")?;
    }
    stdout.flush()?;
    Ok(())
}

/// Reloads the TLS certificate on each SIGHUP.
fn reload_on_signal(tls: Arc<Tls>) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match tls.reload() {
                Ok(()) => tracing::info!("reloaded the TLS certificate"),
                Err(error) => {
                    tracing::error!(%error, "cannot reload the TLS certificate; the old one stays in use")
                }
            }
        }
    });
    Ok(())
}

/// Returns a future that is ready on the first SIGTERM or SIGINT.
fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
