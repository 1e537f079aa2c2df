//! A server on a socket, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_client::{Client, ClientBuilder, Platform, Tokens};
use svc_core::accounts::apps::{AppId, NewApp};
use svc_core::accounts::dashboard_links::DashboardLinkCreate;
use svc_core::accounts::grants::{Grant, GrantId};
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::PlatformKeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::crypto::sha256;
use svc_core::env::{Env, ManualClock, SystemEntropy};
use svc_core::oauth::Parameters;
use svc_core::oauth::authorization::{self, Issuer};
use svc_core::oauth::tokens::{self, ClientCredentials};
use svc_core::prelude::{Account, Svc};
use svc_core::values::{HostPolicy, TenantId};
use svc_server::metrics::Metrics;
use svc_server::program::serve::Server;
use svc_server::{Api, Builder, Settings, Surfaces};
use svc_store::{Options, SecretKey};
use svc_test_support::Fixture;
use tokio::sync::oneshot;

/// A database that nothing is in yet.
pub(crate) struct Database {
    url: String,
    _folder: Option<tempfile::TempDir>,
}

/// Returns one database on SQLite, and one on PostgreSQL if it is installed.
pub(crate) fn databases() -> Vec<Database> {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("svc.db").display());
    let on_server = svc_test_support::postgres::quick_server();
    let on_server = on_server.map(|server| Database { url: server.database(), _folder: None });
    std::iter::once(Database { url, _folder: Some(folder) }).chain(on_server).collect()
}

/// Returns settings without rate limits.
pub(crate) fn unlimited() -> Settings {
    Settings { limit_rates: false, ..Settings::default() }
}

/// A server with an account. Its clock stands still, except that the waits of its clients pass on it.
pub(crate) struct LiveServer {
    pub(crate) address: SocketAddr,
    pub(crate) clock: ManualClock,
    pub(crate) tenant: TenantId,
    /// How often the clients waited.
    pub(crate) waits: Arc<AtomicUsize>,
    pub(crate) metrics: Arc<Metrics>,
    /// The listener of the platform API.
    platform: SocketAddr,
    pub(crate) svc: Svc,
    key: String,
    _stop: [oneshot::Sender<()>; 2],
}

impl LiveServer {
    /// Lets an app work on an account, as an owner does in the dashboard.
    pub(crate) async fn grant(&self, tenant_id: TenantId, app_id: AppId) -> GrantId {
        let granted = self.svc.store().write("test", (tenant_id, app_id), async |tx, &(tenant_id, app_id)| {
            let created_at = tx.env().now();
            let id = tx.env().id(created_at);
            let (scopes, member) = (vec![Scope::Read], "ada@example.com".to_owned());
            let grant = Grant { id, tenant_id, app_id, scopes, member, created_at, last_used_at: None, requests: 0 };
            tx.insert_grant(&grant).await?;
            Ok(id)
        });
        granted.await.unwrap()
    }
}

impl LiveServer {
    /// Returns the tokens of an app that the owner of the account lets work on it.
    pub(crate) async fn connect(&self, new: &NewApp) -> Tokens {
        const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters";
        let link = DashboardLinkCreate::to(self.tenant, Role::Owner);
        let link = self.svc.dashboard().create_link(link).await.unwrap();
        let session = self.svc.dashboard().sign_in(link.token.reveal()).await.unwrap().session;
        let issuer = Issuer { url: format!("http://{}", self.address), resources: Vec::new() };
        let client_id = new.app.client_id.clone();
        let challenge = URL_SAFE_NO_PAD.encode(sha256(VERIFIER.as_bytes()));
        let ask = format!(
            "response_type=code&client_id={client_id}&scope=read+write&code_challenge={challenge}&code_challenge_method=S256"
        );
        let client = ClientCredentials { client_id, secret: new.secret.clone() };
        let input = (session, self.tenant, Parameters::of(ask.as_bytes()), client, issuer);
        let given = self.svc.store().write("test", input, async |tx, (session, tenant, ask, client, issuer)| {
            let request = authorization::check(tx, ask, issuer).await?.unwrap();
            let code = authorization::allow(tx, session, *tenant, &request).await?;
            let exchange = format!("grant_type=authorization_code&code={}&code_verifier={VERIFIER}", code.reveal());
            tokens::request(tx, client, &Parameters::of(exchange.as_bytes()), issuer).await
        });
        let given = given.await.unwrap().unwrap();
        Tokens { access_token: given.access_token, refresh_token: given.refresh_token }
    }
}

/// Serves an API until the sender is dropped.
async fn serve(api: Api, set: impl FnOnce(Server) -> Server) -> (SocketAddr, oneshot::Sender<()>) {
    let server = set(Server::bind(([127, 0, 0, 1], 0).into(), 100).await.unwrap());
    let address = server.url().unwrap().split_once("://").unwrap().1.parse().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(server.run(api, async { drop(stopped.await) }, Duration::from_secs(20)));
    (address, stop)
}

impl LiveServer {
    pub(crate) async fn start(database: &Database, settings: Settings) -> Self {
        Self::start_with(database, settings, |server| server).await
    }

    /// Starts a server with these surfaces, without limits.
    pub(crate) async fn serving(database: &Database, surfaces: Surfaces) -> Self {
        Self::of(database, surfaces, unlimited(), |server| server).await
    }

    pub(crate) async fn start_with(
        database: &Database,
        settings: Settings,
        set: impl FnOnce(Server) -> Server,
    ) -> Self {
        Self::of(database, Surfaces::default(), settings, set).await
    }

    pub(crate) async fn of(
        database: &Database,
        surfaces: Surfaces,
        settings: Settings,
        set: impl FnOnce(Server) -> Server,
    ) -> Self {
        let clock = ManualClock::at(Env::system().now());
        let mut env = Env::new(clock.clone(), SystemEntropy);
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let options = Options { secret_key: Some(SecretKey::new([7; 32])), ..Options::default() };
        let fixture = Fixture::on(svc_store::open_with(&database.url, env, options).await.unwrap()).await;
        let key = fixture.key().await.text;
        let Fixture { svc, tenant, .. } = fixture;

        let metrics = Arc::clone(&settings.metrics);
        let (api, background) = Builder::new(&svc).settings(settings).surfaces(surfaces).build();
        tokio::spawn(background.run(std::future::pending()));
        let (platform, stop_platform) = serve(api.for_platform(), |server| server).await;
        let (address, stop) = serve(api, set).await;
        let stop = [stop, stop_platform];
        Self { address, clock, tenant, waits: Arc::default(), metrics, platform, svc, key, _stop: stop }
    }

    /// Returns a client of the platform API with a key for everything.
    pub(crate) async fn platform(&self) -> Platform {
        self.platform_with(&["*", "operators:write"]).await
    }

    /// Returns a client of the platform API with a key of these scopes.
    pub(crate) async fn platform_with(&self, scopes: &[&str]) -> Platform {
        let scopes = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
        let key = PlatformKeyCreate { name: None, scopes, expires_in: None };
        let key = self.svc.platform_keys().create(key).await.unwrap();
        self.builder_for(&format!("http://{}", self.platform), key.text.reveal()).build_platform().unwrap()
    }

    pub(crate) fn account(&self) -> Account<'_> {
        self.svc.account(self.tenant)
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        self.builder_with(&self.key)
    }

    pub(crate) fn builder_with(&self, key: &str) -> ClientBuilder {
        self.builder_for(&format!("http://{}", self.address), key)
    }

    pub(crate) fn builder_at(&self, url: &str) -> ClientBuilder {
        self.builder_for(url, &self.key)
    }

    pub(crate) fn builder_for(&self, url: &str, key: &str) -> ClientBuilder {
        self.in_time(Client::builder(url, key))
    }

    /// Lets the waits of a client take no time of the test, and pass on the clock of the server.
    pub(crate) fn in_time(&self, builder: ClientBuilder) -> ClientBuilder {
        let (clock, waits) = (self.clock.clone(), Arc::clone(&self.waits));
        builder.env(Env::new(clock.clone(), SystemEntropy)).sleep(move |wait| {
            clock.advance(wait);
            waits.fetch_add(1, Ordering::SeqCst);
            Box::pin(std::future::ready(()))
        })
    }
}
