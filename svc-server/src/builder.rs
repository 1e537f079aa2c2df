//! Builds an API with the work in the background that belongs to it.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "dashboard")]
use futures_util::future::BoxFuture;
#[cfg(feature = "dashboard")]
use http::request::Parts;
use svc_core::Svc;
use svc_core::store::Store;
use svc_core::values::{StreamUrl, WebhookUrl};
use svc_core::webhooks::engine::Policy;

use crate::api::{Api, Settings};
use crate::background::Background;
#[cfg(feature = "dashboard")]
use crate::dashboard::Identity;
use crate::deliver::{HttpWebhookClient, WebhookClient};
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

    /// Sets the path under which the application mounts the API, such as `/business`; see [`Settings::mount`].
    #[must_use]
    pub fn mount(mut self, path: impl Into<String>) -> Self {
        self.settings.mount = path.into();
        self
    }

    /// Sets whether the dashboard is served at `/dashboard` below the mount; see [`Settings::dashboard`].
    #[cfg(feature = "dashboard")]
    #[must_use]
    pub fn dashboard(mut self, dashboard: bool) -> Self {
        self.settings.dashboard = dashboard;
        self
    }

    /// Lets the application say who asks for a page of the dashboard, from its own session, so that nobody needs a link. The
    /// closure is called for each request; with `None`, the person needs a link as without it.
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_server::Builder;
    /// use svc_server::dashboard::Identity;
    ///
    /// /// What a layer of the application has put into the request.
    /// #[derive(Clone)]
    /// struct SignedIn {
    ///     account: TenantId,
    ///     email: String,
    ///     token: String,
    /// }
    ///
    /// let svc = Svc::in_memory();
    /// let builder = Builder::new(&svc).mount("/business").dashboard(true).dashboard_identity(|request| {
    ///     Box::pin(async move {
    ///         let person = request.extensions.get::<SignedIn>()?;
    ///         Some(Identity::new(person.account, Role::Developer, &person.email, &person.token))
    ///     })
    /// });
    /// let (api, background) = builder.build();
    /// # drop((api, background));
    /// ```
    ///
    /// # Changes
    ///
    /// Forms of the dashboard are accepted from pages of the same origin with a token that follows from the secret that
    /// [`Identity::new`](crate::dashboard::Identity::new) gets. The closure does not have to check anything for that.
    #[cfg(feature = "dashboard")]
    #[must_use]
    pub fn dashboard_identity(
        mut self,
        identify: impl for<'a> Fn(&'a Parts) -> BoxFuture<'a, Option<Identity>> + Send + Sync + 'static,
    ) -> Self {
        self.settings.dashboard_identity = Some(Arc::new(identify));
        self
    }

    /// Serves tools for assistants at `/mcp` below the mount, to requests for these hosts; see [`Settings::mcp`].
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
        self.settings.mcp = Some(hosts.into_iter().map(Into::into).collect());
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

    /// Sends the events of all accounts to an engine, such as NATS; see [`streams`](crate::streams). It begins with the events
    /// from the time on when a process on this database first does so.
    ///
    /// # Errors
    /// [`StreamError`](crate::streams::StreamError), when this crate was built without the client of the engine, or the engine
    /// does not take the path or a parameter of the URL.
    pub fn stream(mut self, url: &StreamUrl) -> Result<Self, StreamError> {
        self.streams.server = Some((url.engine(), streams::open(url)?));
        Ok(self)
    }

    /// Returns the API, and the work in the background that each process has to run beside it.
    pub fn build(self) -> (Api, Background) {
        #[cfg_attr(not(feature = "dashboard"), expect(unused_mut, reason = "the dashboard alone changes a setting"))]
        let Self { store, mut settings, policy, client, shutdown_grace, overdue, streams } = self;
        let store = metered(store, Arc::clone(&settings.metrics));
        let client = client.unwrap_or_else(|| {
            let (resolver, proxy) = (Arc::clone(&settings.resolver), settings.egress_proxy.clone());
            Arc::new(HttpWebhookClient::with_proxy(store.env().clone(), policy.timeout, resolver, proxy))
        });
        #[cfg(feature = "dashboard")]
        settings.webhook_client.get_or_insert_with(|| Arc::clone(&client));
        let api = Api::new(store, settings);
        (api.clone(), Background { api, policy, client, shutdown_grace, overdue, streams })
    }
}
