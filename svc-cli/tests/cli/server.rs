//! A session on a server elsewhere, where the output and the exit codes are those beside the database.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use svc_core::Svc;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::{self, Area, PlatformKeyCreate, PlatformScope};
use svc_core::env::Env;
use svc_core::values::HostPolicy;
use svc_server::program::serve::Server;
use svc_server::{Builder, Settings};
use svc_test_support::postgres::TEST_DATABASE;
use tokio::sync::oneshot;

use crate::harness::{Backend, SECRET_KEY, open, sqlite_url};

/// What works on a database only, so the session runs it there: it makes or reads what no operation does.
const LOCAL: [&[&str]; 4] = [&["db"], &["init"], &["platform-key"], &["listen"]];

/// The scopes of a key that may do everything.
const EVERYTHING: [PlatformScope; 2] = [PlatformScope::All, PlatformScope::Of(Area::Operators, Scope::Write)];

/// A server on the session's database, which starts with the first command for it.
pub(crate) struct OnServer {
    /// The URL of the database, unless it is the one in the session's directory.
    postgres: Option<String>,
    server: OnceLock<LiveServer>,
}

/// A server with a platform listener, which is stopped when it is dropped.
pub(crate) struct LiveServer {
    pub(crate) url: String,
    pub(crate) key: String,
    _stop: oneshot::Sender<()>,
}

/// What a server does besides.
#[derive(Default)]
pub(crate) struct Options {
    /// The files of a certificate and of its private key (PEM), for https.
    pub(crate) tls: Option<[PathBuf; 2]>,
    /// Whether it sends webhooks, also to private addresses.
    pub(crate) sends_webhooks: bool,
}

impl Default for OnServer {
    fn default() -> Self {
        let server = std::env::var(TEST_DATABASE).is_ok_and(|choice| choice == "postgres");
        let server = server.then(svc_test_support::postgres::quick_server).flatten();
        Self { postgres: server.map(svc_test_support::postgres::Server::database), server: OnceLock::new() }
    }
}

impl Backend for OnServer {
    fn prepare(&self, folder: &Path, args: &[&str], command: &mut Command) {
        if LOCAL.iter().any(|local| args.starts_with(local)) {
            if let Some(url) = &self.postgres {
                let key = SECRET_KEY.map(|byte| format!("{byte:02x}")).concat();
                command.env("SVC_DATABASE_URL", url).env("SVC_SECRET_KEY", key);
            }
        } else if self.postgres.is_some() || folder.join("svc.db").exists() {
            let server = self.server.get_or_init(|| LiveServer::start(&self.database_url(folder), &EVERYTHING));
            command.env("SVC_SERVER", &server.url).env("SVC_PLATFORM_KEY", &server.key);
        }
    }

    fn database_url(&self, folder: &Path) -> String {
        self.postgres.clone().unwrap_or_else(|| sqlite_url(folder))
    }
}

impl LiveServer {
    /// Starts a server on a database, on a thread of its own, with a key for these scopes.
    pub(crate) fn start(database_url: &str, scopes: &[PlatformScope]) -> Self {
        Self::start_with(database_url, scopes, Options::default())
    }

    pub(crate) fn start_with(database_url: &str, scopes: &[PlatformScope], options: Options) -> Self {
        let (url, scopes) = (database_url.to_owned(), scopes.to_vec());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let mut env = Env::system();
                if options.sends_webhooks {
                    env.webhook_hosts = HostPolicy::AllowPrivate;
                }
                let store = open(&url, env).await;
                let input = PlatformKeyCreate { name: None, scopes, expires_in: None };
                let new = store
                    .write("test", input, async |tx, input| platform_keys::create(tx, input.clone()).await)
                    .await
                    .unwrap();
                let settings = Settings { limit_rates: false, ..Settings::default() };
                let local: [&str; 0] = [];
                let (api, background) = Builder::new(&Svc::new(store)).settings(settings).mcp(local).build();
                if options.sends_webhooks {
                    tokio::spawn(background.run(std::future::pending()));
                }
                let mut server = Server::bind(([127, 0, 0, 1], 0).into(), 100).await.unwrap();
                if let Some([certificate, key]) = options.tls {
                    server = server.with_tls(&certificate, &key).unwrap();
                }
                let (stop, stopped) = oneshot::channel();
                let key = new.text.reveal().to_owned();
                sender.send(Self { url: server.url().unwrap(), key, _stop: stop }).unwrap();
                let until_dropped = async { drop(stopped.await) };
                server.run(api.for_platform(), until_dropped, Duration::ZERO).await;
            });
        });
        receiver.recv().unwrap()
    }
}
