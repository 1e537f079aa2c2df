//! Puts the surfaces together that a server has: which there are, on which listener, and what they have of each other.
//!
//! The features of Cargo for surfaces stand here.

#[cfg(feature = "dashboard")]
mod pages;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use svc_core::operation::AnyOperation;
use svc_core::platform::operations;
use svc_core::store::Store;

use crate::api::openapi::Documents;
use crate::api::{self, Engine, Operations};
#[cfg(feature = "dashboard")]
use crate::dashboard::DashboardSettings;
#[cfg(feature = "docs")]
use crate::docs::Docs;
use crate::home::{Home, Pages};
use crate::jobs::Jobs;
use crate::kernel::Kernel;
use crate::kernel::body::Incoming;
use crate::kernel::listener::{After, Listener, Surface};
use crate::kernel::peer::Peer;
use crate::kernel::reminder::Reminder;
use crate::kernel::response::ResponseBody;
use crate::kernel::settings::Settings;
#[cfg(feature = "standalone")]
use crate::kernel::shares::Pool;
use crate::kernel::versions::{VERSIONS, Version};
#[cfg(feature = "mcp")]
use crate::mcp::{self, Mcp};
use crate::metrics::Metrics;
use crate::probes::Probes;

/// The memory of the connections of operators, in bytes.
#[cfg(feature = "standalone")]
const OPERATORS_MEMORY: usize = 8 * 1024 * 1024;

/// The parts of a server besides the operations of the contract.
///
/// # Examples
///
/// ```
/// use svc_server::Surfaces;
/// let surfaces = Surfaces { extensions: true, ..Surfaces::default() };
/// # drop(surfaces);
/// ```
#[derive(Clone)]
pub struct Surfaces {
    /// Whether the API has operations beyond the contract: to fetch events and deliveries that were missed, and to send them
    /// again. Not by default.
    pub extensions: bool,
    /// Whether the API reference is served at `/docs`. It is by default.
    #[cfg(feature = "docs")]
    pub docs: bool,
    /// The dashboard at `/dashboard`, and apps (OAuth 2.0), to which owners consent in it. None by default.
    #[cfg(feature = "dashboard")]
    pub dashboard: Option<DashboardSettings>,
    /// The hosts, such as `api.example.com`, at which assistants find tools at `/mcp` (MCP), besides the names of the machine
    /// itself, `localhost` and its addresses. `None` by default: then there are no tools. A request for another host is refused,
    /// so that no page in a browser reaches the tools by a name that it points at this server.
    #[cfg(feature = "mcp")]
    pub mcp: Option<Vec<String>>,
}

#[cfg_attr(not(feature = "docs"), expect(clippy::derivable_impls, reason = "the API reference is served by default"))]
impl Default for Surfaces {
    fn default() -> Self {
        Self {
            extensions: false,
            #[cfg(feature = "docs")]
            docs: true,
            #[cfg(feature = "dashboard")]
            dashboard: None,
            #[cfg(feature = "mcp")]
            mcp: None,
        }
    }
}

/// The API as a service. It is cheap to clone, and clones share their state.
///
/// # Examples
///
/// ```
/// use svc_core::env::Env;
/// use svc_core::store::memory::MemoryStore;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = std::sync::Arc::new(MemoryStore::new(Env::system()));
/// let api = svc_server::Api::new(store, svc_server::Settings::default());
/// let request = http::Request::get("/api/v1/ping").header("host", "localhost");
/// let body = http_body_util::Empty::<bytes::Bytes>::new();
/// let response = api.call(request.body(body).unwrap(), [127, 0, 0, 1].into()).await;
/// assert_eq!(response.status(), 401);
/// # });
/// ```
///
/// # Mounting
///
/// `Api` is a [`tower_service::Service`], so it can be nested in an axum or tower application.
/// [`Builder`](crate::Builder) makes one together with its background work, without which no webhook is sent. Add a
/// [`Peer`] to the extensions of each request.
#[derive(Clone)]
pub struct Api {
    server: Arc<Server>,
    listener: Arc<Listener>,
}

/// The state that all listeners of a process share.
struct Server {
    kernel: Arc<Kernel>,
    engine: Arc<Engine>,
    surfaces: Surfaces,
    jobs: Jobs,
    platform: OnceLock<Arc<Listener>>,
    /// The steps after the requests of every API.
    after: Vec<After>,
}

impl Api {
    /// Creates the API over a store, without its background work: for tests that call it alone.
    ///
    /// Use [`Builder`](crate::Builder) to serve it.
    pub fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self::with_surfaces(store, settings, Surfaces::default())
    }

    /// The same, with these surfaces.
    pub fn with_surfaces(store: Arc<dyn Store>, settings: Settings, surfaces: Surfaces) -> Self {
        #[cfg(feature = "dashboard")]
        let apps = surfaces.apps(&settings.mount);
        // Without the dashboard no owner could consent.
        #[cfg(not(feature = "dashboard"))]
        let apps = None;
        let kernel = Arc::new(Kernel::new(store, settings, apps));
        let mut server = Server {
            engine: Engine::new(Arc::clone(&kernel)),
            jobs: Jobs::new(Arc::clone(&kernel)),
            platform: OnceLock::new(),
            after: Vec::new(),
            kernel,
            surfaces,
        };
        let listener = Arc::new(server.public());
        Self { server: Arc::new(server), listener }
    }

    /// Returns the service for operators, which has only `/healthz`, `/readyz` and `/metrics`.
    #[must_use]
    pub fn for_operators(&self) -> Self {
        let kernel = &self.server.kernel;
        let listener = Listener {
            surfaces: vec![Arc::new(kernel.settings.cors.clone()), Arc::new(Probes::with_metrics(Arc::clone(kernel)))],
            methods: "GET, HEAD, OPTIONS".to_owned(),
            is_for_clients: false,
            ..Listener::new(Arc::clone(kernel), "/metrics, /healthz and /readyz")
        };
        Self { listener: Arc::new(listener), ..self.clone() }
    }

    /// Returns the platform API, with which programs of the operator work on all accounts by platform keys
    /// (`docs/platform.md`). Serve it on a listener of its own, which only they reach.
    #[must_use]
    pub fn for_platform(&self) -> Self {
        let listener = self.server.platform.get_or_init(|| Arc::new(self.server.platform()));
        Self { listener: Arc::clone(listener), ..self.clone() }
    }

    /// Responds to a request from the address `peer`. A failure is a response, too.
    pub async fn call<B: Incoming>(&self, request: Request<B>, peer: IpAddr) -> Response<ResponseBody> {
        self.listener.call(request, peer).await
    }

    /// Returns the background work, step by step: for tests that choose when it is done.
    pub fn jobs(&self) -> &Jobs {
        &self.server.jobs
    }

    /// Returns the memory of requests, of which a listener takes that of its connections. The few connections of operators
    /// have memory of their own, so that health checks are answered whatever others do.
    #[cfg(feature = "standalone")]
    pub(crate) fn request_memory(&self) -> Pool {
        match self.listener.is_for_clients {
            true => self.server.kernel.requests.clone(),
            false => Pool::of_memory("operators_memory", OPERATORS_MEMORY, self.metrics()),
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.server.kernel.store)
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.server.kernel.settings.metrics)
    }

    pub(crate) fn background_reminder(&self) -> &Reminder {
        &self.server.kernel.background_reminder
    }

    /// Ends the responses that would not end by themselves, so that their connections can be closed. Those that begin later end
    /// at once.
    pub(crate) fn end_streams(&self) {
        self.listener.surfaces.iter().for_each(|surface| surface.stop());
    }
}

impl Surfaces {
    /// Returns the pages besides.
    fn pages(&self) -> Pages {
        let pages = Pages::default();
        #[cfg(feature = "docs")]
        let pages = Pages { docs: self.docs, ..pages };
        #[cfg(feature = "dashboard")]
        let pages = Pages { dashboard: self.dashboard.is_some(), ..pages };
        pages
    }
}

impl Server {
    /// Returns the listener of the public API.
    fn public(&mut self) -> Listener {
        let kernel = Arc::clone(&self.kernel);
        let (settings, kinds) = (&kernel.settings, &kernel.env().event_kinds);
        let mount = settings.mount.as_str();
        let mut listener = Listener::new(Arc::clone(&kernel), &format!("{mount}{}/openapi.json", Version::V1.path()));
        #[cfg(feature = "dashboard")]
        self.add_pages(&mut listener);
        listener.add(settings.cors.clone());
        #[cfg(feature = "mcp")]
        if let Some(hosts) = &self.surfaces.mcp {
            let mut calls = Listener::new(Arc::clone(&kernel), &format!("{}/openapi.json", mcp::VERSIONS[0].path()));
            calls.add(Operations::new(Arc::clone(&self.engine), &operations::tools(), &mcp::VERSIONS, ""));
            listener.add(Mcp::new(Arc::clone(&kernel), Arc::new(calls), hosts));
        }
        let pages = self.surfaces.pages();
        #[cfg(feature = "docs")]
        if pages.docs {
            listener.add(Docs::new(mount, Version::V1.path(), pages.dashboard));
        }
        listener.add(Home::new(mount, &pages));
        listener.add(Probes::new(Arc::clone(&kernel)));
        let mut all = operations::public();
        if self.surfaces.extensions {
            all.extend(operations::extensions());
        }
        let (origin, issuer) = kernel.apps.as_ref().map(|apps| (apps.origin.as_str(), &*apps.issuer.url)).unzip();
        let public_url = settings.public_url.as_deref().or(origin);
        let documents = Documents::new(&all, &VERSIONS, mount, kinds, public_url, issuer);
        listener.methods = methods_of_server(&all);
        listener.add(Operations::new(Arc::clone(&self.engine), &all, &VERSIONS, mount).with_documents(documents));
        listener
    }

    /// Returns the listener of the platform API, which is never part of a host application.
    fn platform(&self) -> Listener {
        const VERSIONS: [Version; 1] = [Version::Platform];
        let kernel = &self.kernel;
        let base = Version::Platform.path();
        let new = || Listener {
            has_cors: false,
            after: self.after.clone(),
            ..Listener::new(Arc::clone(kernel), &format!("{base}/openapi.json"))
        };
        let mut listener = new();
        let all = operations::platform();
        let documents = Documents::new(&all, &VERSIONS, "", &kernel.env().event_kinds, None, None);
        listener.methods = methods_of_server(&all);
        let operations = Operations::new(Arc::clone(&self.engine), &all, &VERSIONS, "");
        let operations: Arc<dyn Surface> = Arc::new(operations.with_documents(documents));
        #[cfg(feature = "dashboard")]
        self.add_introspection(&mut listener);
        #[cfg(feature = "mcp")]
        if self.surfaces.mcp.is_some() {
            let calls = Listener { surfaces: vec![Arc::clone(&operations)], ..new() };
            listener.add(Mcp::of_platform(Arc::clone(kernel), Arc::new(calls), &all));
        }
        #[cfg(feature = "docs")]
        if self.surfaces.docs {
            listener.add(Docs::new("", base, false));
        }
        listener.add(Probes::new(Arc::clone(kernel)));
        listener.surfaces.push(operations);
        listener
    }
}

impl<B> tower_service::Service<Request<B>> for Api
where
    B: Incoming + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.clone();
        let peer = match request.extensions().get() {
            Some(Peer(address)) => *address,
            None => self.server.kernel.unknown_peer(),
        };
        Box::pin(async move { Ok(Self::call(&api, request, peer).await) })
    }
}

/// Returns the methods of a server with these operations, as a value of `Allow`.
fn methods_of_server(operations: &[&'static dyn AnyOperation]) -> String {
    format!("{}, OPTIONS", api::methods_of(operations.iter().copied()))
}
