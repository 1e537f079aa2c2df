//! A session on a server elsewhere, where the output and the exit codes are those beside the database.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::{self, Area, PlatformKeyCreate, PlatformScope};
use svc_core::env::Env;
use svc_core::store::Store;
use svc_server::program::serve::Server;
use svc_server::{Api, Settings};

use crate::harness::Backend;

/// What works on a database only, so the session runs it there: it makes or reads what no operation does.
const LOCAL: [&[&str]; 4] = [&["db"], &["init"], &["platform-key"], &["listen"]];

/// The scopes of a key that may do everything.
const EVERYTHING: [PlatformScope; 2] = [PlatformScope::All, PlatformScope::Of(Area::Operators, Scope::Write)];

/// A server on the session's database, which starts with the first command for it.
#[derive(Default)]
pub(crate) struct OnServer(OnceLock<LiveServer>);

/// A server with a platform listener.
pub(crate) struct LiveServer {
    pub(crate) url: String,
    pub(crate) key: String,
}

impl Backend for OnServer {
    fn prepare(&self, folder: &Path, args: &[&str], command: &mut Command) {
        let database = folder.join("svc.db");
        if LOCAL.iter().any(|local| args.starts_with(local)) || !database.exists() {
            return;
        }
        let server = self.0.get_or_init(|| LiveServer::start(&database, &EVERYTHING));
        command.env("SVC_SERVER", &server.url).env("SVC_PLATFORM_KEY", &server.key);
    }
}

impl LiveServer {
    /// Starts a server on a database, on a thread that lasts as long as the tests, with a key for these scopes.
    pub(crate) fn start(database: &Path, scopes: &[PlatformScope]) -> Self {
        let url = format!("sqlite://{}", database.display());
        let scopes = scopes.to_vec();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let store: Arc<dyn Store> = svc_store::open(&url, Env::system()).await.unwrap();
                let input = PlatformKeyCreate { name: None, scopes, expires_in: None };
                let new =
                    store.write("test", move |tx| Box::pin(platform_keys::create(tx, input.clone()))).await.unwrap();
                let api = Api::new(store, Settings { limit_rates: false, ..Settings::default() }).for_platform();
                let server = Server::bind(([127, 0, 0, 1], 0).into(), 100).await.unwrap();
                sender.send(Self { url: server.url().unwrap(), key: new.text.reveal().to_owned() }).unwrap();
                server.run(api, std::future::pending(), Duration::ZERO).await;
            });
        });
        receiver.recv().unwrap()
    }
}
