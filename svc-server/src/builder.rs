//! Builds an API with the work in the background that belongs to it.

#[cfg(feature = "dashboard")]
mod dashboard;

use std::sync::Arc;
use std::time::Duration;

use svc_core::Svc;
use svc_core::store::Store;
use svc_core::values::{StreamUrl, WebhookUrl};
use svc_core::webhooks::engine::Policy;

use crate::background::Background;
use crate::compose::{Api, Surfaces};
use crate::deliver::{HttpWebhookClient, WebhookClient};
use crate::kernel::settings::Settings;
use crate::metrics::metered;
use crate::streams::{self, StreamError, Streams};

/// Builds an [`Api`] and its [`Background`] over a store.
///
/// # Examples
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use svc_core::prelude::*;
/// use svc_server::Builder;
///
/// let svc = Svc::in_memory();
/// let (api, background) = Builder::new(&svc).mount("/business").build();
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let background = tokio::spawn(background.run(async { drop(stopped.await) }));
/// // Here the application serves `api` below /business, and ends when it is asked to.
/// # drop(api);
/// drop(stop);
/// background.await.unwrap();
/// # });
/// ```
pub struct Builder {
    store: Arc<dyn Store>,
    settings: Settings,
    surfaces: Surfaces,
    policy: Policy,
    client: Option<Arc<dyn WebhookClient>>,
    shutdown_grace: Duration,
    overdue: bool,
    streams: Streams,
}

impl Builder {
    /// Starts with the default settings over the store of `svc`.
    pub fn new(svc: &Svc) -> Self {
        Self {
            store: Arc::clone(svc.store()),
            settings: Settings::default(),
            surfaces: Surfaces::default(),
            policy: Policy::default(),
            client: None,
            shutdown_grace: Duration::from_secs(20),
            overdue: true,
            streams: Streams::default(),
        }
    }

    /// Replaces the settings of the API: rate limits, retention and others.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Replaces what is served besides the operations of the contract.
    #[must_use]
    pub fn surfaces(mut self, surfaces: Surfaces) -> Self {
        self.surfaces = surfaces;
        self
    }

    /// Sets the path under which the application mounts the API, such as `/business`; see [`Settings::mount`].
    #[must_use]
    pub fn mount(mut self, path: impl Into<String>) -> Self {
        self.settings.mount = path.into();
        self
    }

    /// Serves tools for assistants at `/mcp` below the mount, to requests for these hosts; see [`Surfaces::mcp`].
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_server::Builder;
    ///
    /// let (api, background) = Builder::new(&Svc::in_memory()).mcp(["api.example.com"]).build();
    /// # drop((api, background));
    /// ```
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn mcp(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.surfaces.mcp = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Sends operational events to this URL, such as that an account was approved; see [`Settings::platform_webhook`].
    #[must_use]
    pub fn platform_webhook(mut self, url: WebhookUrl) -> Self {
        self.settings.platform_webhook = Some(url);
        self
    }

    /// Sets the timeout of an attempt, the delays of retries and the number of attempts at the same time.
    #[must_use]
    pub fn delivery_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sends webhooks, and the requests by which the dashboard tries endpoints, with this client in place of an [`HttpWebhookClient`], as a test of an application may want.
    #[must_use]
    pub fn webhook_client(mut self, client: Arc<dyn WebhookClient>) -> Self {
        self.client = Some(client);
        self
    }

    /// Sets how long [`Background::run`] waits for attempts in flight when it is to end. 20 seconds by default.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// Sets whether invoices that were not paid in time become overdue once a day, after midnight in the time zone of their
    /// account. They do by default.
    #[must_use]
    pub fn overdue(mut self, overdue: bool) -> Self {
        self.overdue = overdue;
        self
    }

    /// Sends the events of all accounts to a broker, such as NATS; see [`streams`](crate::streams). It begins with the events
    /// from the time on when a process on this database first does so.
    ///
    /// # Errors
    /// [`StreamError`](crate::streams::StreamError), when this crate was built without the client of the broker, or the broker
    /// does not take the path or a parameter of the URL.
    pub fn stream(mut self, url: &StreamUrl) -> Result<Self, StreamError> {
        self.streams.server = Some((url.broker(), streams::open(url)?));
        Ok(self)
    }

    /// Returns the API, and the work in the background that each process has to run beside it.
    pub fn build(self) -> (Api, Background) {
        let Self { store, mut settings, surfaces, policy, client, shutdown_grace, overdue, streams } = self;
        let store = metered(store, Arc::clone(&settings.metrics));
        let client = client.unwrap_or_else(|| {
            let (resolver, proxy) = (Arc::clone(&settings.resolver), settings.egress_proxy.clone());
            Arc::new(HttpWebhookClient::with_proxy(store.env().clone(), policy.timeout, resolver, proxy))
        });
        settings.webhook_client.get_or_insert_with(|| Arc::clone(&client));
        let api = Api::with_surfaces(store, settings, surfaces);
        (api.clone(), Background { api, policy, client, shutdown_grace, overdue, streams })
    }
}
