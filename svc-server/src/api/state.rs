//! What all requests to the API share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Once};

use svc_core::store::Store;
use tokio::sync::Semaphore;

use crate::api::body::BodyMemory;
#[cfg(feature = "docs")]
use crate::api::docs::Docs;
use crate::api::home::{Home, Pages};
use crate::api::housekeeping::{LastUsed, RetentionSweep};
use crate::api::in_flight_keys::InFlightKeys;
use crate::api::limits::RateLimiter;
use crate::api::openapi::Documents;
use crate::api::request_log::RequestLog;
use crate::api::response_memory::ResponseMemory;
use crate::api::router::Router;
use crate::api::routes;
use crate::api::settings::Settings;
use crate::background::Reminder;
#[cfg(feature = "dashboard")]
use crate::dashboard::Dashboard;

/// The store, the settings and the state in memory of an [`Api`](crate::Api).
pub(super) struct State {
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: Settings,
    pub(super) router: Router,
    pub(super) limits: RateLimiter,
    pub(super) in_flight: InFlightKeys,
    pub(super) bodies: BodyMemory,
    pub(super) responses: Arc<ResponseMemory>,
    /// The permit to parse a large body, of which there is one.
    pub(super) large_body: Arc<Semaphore>,
    pub(super) documents: Documents,
    pub(super) home: Home,
    #[cfg(feature = "dashboard")]
    pub(super) dashboard: Option<Dashboard>,
    #[cfg(feature = "docs")]
    pub(super) docs: Option<Docs>,
    pub(super) last_used: LastUsed,
    pub(super) request_log: RequestLog,
    pub(super) retention: RetentionSweep,
    pub(super) background_reminder: Reminder,
    /// Logs once that requests have no [`Peer`](crate::Peer).
    missing_peer: Once,
}

impl State {
    pub(super) fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        let operations = routes::operations();
        let documents = Documents::new(&operations, &settings.mount, &store.env().event_kinds);
        #[cfg(feature = "docs")]
        let docs = settings.docs.then(|| Docs::new(&settings.mount));
        let home = Home::new(&settings.mount, &Pages::of(&settings));
        let router = Router::new(operations, &settings.write_rate_limits, &settings.mount);
        let limits = RateLimiter::new(settings.rate_limit, settings.limit_rates, Arc::clone(&store));
        let responses = ResponseMemory::new(settings.response_memory);
        #[cfg(feature = "dashboard")]
        let dashboard = settings.dashboard.then(|| Dashboard::new(Arc::clone(&store), &settings));
        let background_reminder = Reminder::new(store.env().now());
        Self {
            store,
            settings,
            router,
            limits,
            in_flight: InFlightKeys::default(),
            bodies: BodyMemory::default(),
            responses,
            large_body: Arc::new(Semaphore::new(1)),
            documents,
            home,
            #[cfg(feature = "dashboard")]
            dashboard,
            #[cfg(feature = "docs")]
            docs,
            last_used: LastUsed::default(),
            request_log: RequestLog::default(),
            retention: RetentionSweep::default(),
            background_reminder,
            missing_peer: Once::new(),
        }
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
