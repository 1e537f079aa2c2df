//! What all requests to the API share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Once, OnceLock};

use svc_core::store::Store;
use tokio::sync::Semaphore;

use super::reminder::Reminder;
use crate::api::change::InFlightKeys;
#[cfg(feature = "docs")]
use crate::api::docs::Docs;
use crate::api::extensions;
use crate::api::home::{Home, Pages};
use crate::api::housekeeping::{LastUsed, RetentionSweep};
use crate::api::limits::RateLimiter;
use crate::api::openapi::Documents;
use crate::api::platform;
use crate::api::request_log::RequestLog;
use crate::api::response_memory::ResponseMemory;
use crate::api::router::Router;
use crate::api::routes::{self, Operation, VERSIONS, Version};
use crate::api::settings::Settings;
use crate::api::shares::Pool;
#[cfg(feature = "dashboard")]
use crate::dashboard::{Dashboard, Origin};
#[cfg(feature = "mcp")]
use crate::mcp::Mcp;
#[cfg(feature = "dashboard")]
use crate::oauth::Oauth;

/// The store, the settings and the state in memory of an [`Api`](crate::Api).
pub(super) struct State {
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: Settings,
    /// What the public listener serves.
    pub(super) public: Listener,
    /// What the platform listener serves, once there is one.
    platform: OnceLock<Listener>,
    pub(super) limits: RateLimiter,
    pub(super) in_flight: InFlightKeys,
    /// The memory of all requests and their connections.
    pub(super) requests: Pool,
    pub(super) responses: ResponseMemory,
    /// The permit to parse a large body, of which there is one.
    pub(super) large_body: Arc<Semaphore>,
    pub(super) home: Home,
    #[cfg(feature = "dashboard")]
    pub(super) dashboard: Option<Dashboard>,
    #[cfg(feature = "dashboard")]
    pub(super) oauth: Option<Oauth>,
    #[cfg(feature = "mcp")]
    pub(super) mcp: Option<Mcp>,
    pub(super) last_used: LastUsed,
    pub(super) request_log: RequestLog,
    pub(super) retention: RetentionSweep,
    pub(super) background_reminder: Reminder,
    /// Logs once that requests have no [`Peer`](crate::Peer).
    missing_peer: Once,
}

/// The operations of a listener, and what describes them.
pub(super) struct Listener {
    pub(super) router: Router,
    pub(super) documents: Documents,
    /// The tools of the platform API. [`State`] has those of the public API.
    #[cfg(feature = "mcp")]
    pub(super) mcp: Option<Mcp>,
    #[cfg(feature = "docs")]
    pub(super) docs: Option<Docs>,
}

impl Listener {
    fn new(
        operations: Vec<Operation>,
        versions: &'static [Version],
        store: &dyn Store,
        settings: &Settings,
        public_url: Option<&str>,
        issuer: Option<&str>,
    ) -> Self {
        // The platform API has a listener of its own and is never part of a host application.
        let is_platform = versions.contains(&Version::Platform);
        let mount = if is_platform { "" } else { settings.mount.as_str() };
        #[cfg(feature = "docs")]
        let has_dashboard = Pages::of(settings).dashboard && !is_platform;
        #[cfg(feature = "mcp")]
        let mcp = settings.mcp.as_ref().filter(|_| is_platform);
        Self {
            #[cfg(feature = "mcp")]
            mcp: mcp.map(|_| Mcp::of_platform(platform::operations(), &store.env().event_kinds)),
            documents: Documents::new(&operations, versions, mount, &store.env().event_kinds, public_url, issuer),
            #[cfg(feature = "docs")]
            docs: versions.first().filter(|_| settings.docs).map(|version| Docs::new(mount, *version, has_dashboard)),
            router: Router::new(operations, versions, &settings.write_rate_limits, mount),
        }
    }
}

impl State {
    pub(super) fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        let home = Home::new(&settings.mount, &Pages::of(&settings));
        let limits = RateLimiter::new(settings.rate_limit, settings.limit_rates, Arc::clone(&store));
        let requests = Pool::of_memory("request_memory", settings.request_memory, Arc::clone(&settings.metrics));
        let responses = ResponseMemory::new(settings.response_memory);
        #[cfg(feature = "dashboard")]
        let dashboard = settings.dashboard.then(|| Dashboard::new(Arc::clone(&store), &settings));
        #[cfg(feature = "dashboard")]
        let oauth = settings.oauth.as_ref().filter(|_| settings.dashboard).map(|url| Oauth::new(url, &settings));
        #[cfg(feature = "dashboard")]
        let issuer = oauth.as_ref().map(|oauth| oauth.issuer().url.as_str());
        #[cfg(not(feature = "dashboard"))]
        let issuer = None;
        let mut operations = routes::operations();
        if settings.extensions {
            operations.extend(extensions::operations());
        }
        let public_url = settings.public_url.as_deref();
        #[cfg(feature = "dashboard")]
        let public_url = public_url.or(settings.oauth.as_ref().map(Origin::as_str));
        let public = Listener::new(operations, &VERSIONS, &*store, &settings, public_url, issuer);
        #[cfg(feature = "mcp")]
        let mcp = settings.mcp.as_ref().map(|hosts| Mcp::new(hosts, &settings, &store.env().event_kinds));
        let background_reminder = Reminder::new(store.env().now());
        Self {
            store,
            settings,
            public,
            platform: OnceLock::new(),
            limits,
            in_flight: InFlightKeys::default(),
            requests,
            responses,
            large_body: Arc::new(Semaphore::new(1)),
            home,
            #[cfg(feature = "dashboard")]
            dashboard,
            #[cfg(feature = "dashboard")]
            oauth,
            #[cfg(feature = "mcp")]
            mcp,
            last_used: LastUsed::default(),
            request_log: RequestLog::default(),
            retention: RetentionSweep::default(),
            background_reminder,
            missing_peer: Once::new(),
        }
    }

    /// Returns whether apps may send requests with access tokens.
    #[cfg(feature = "dashboard")]
    pub(super) fn has_apps(&self) -> bool {
        self.oauth.is_some()
    }

    /// Returns that there are no apps, as no owner could consent.
    #[cfg(not(feature = "dashboard"))]
    #[expect(clippy::unused_self, reason = "with the feature `dashboard` there may be apps")]
    pub(super) fn has_apps(&self) -> bool {
        false
    }

    /// Returns what the platform listener serves.
    pub(super) fn platform(&self) -> &Listener {
        const VERSIONS: [Version; 1] = [Version::Platform];
        let new = || Listener::new(platform::operations(), &VERSIONS, &*self.store, &self.settings, None, None);
        self.platform.get_or_init(new)
    }

    /// Returns the address that stands for all clients whose address the application does not tell.
    pub(super) fn unknown_peer(&self) -> IpAddr {
        self.missing_peer.call_once(|| {
            tracing::warn!(
                "requests reach the API without the address of the client, so all clients without a valid key share one \
                 rate limit; add an svc_server::Peer to the extensions of each request"
            );
        });
        Ipv4Addr::UNSPECIFIED.into()
    }
}
