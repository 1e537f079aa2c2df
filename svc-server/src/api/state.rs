//! What all requests to the API share.

use std::sync::Arc;

use svc_core::store::Store;
use tokio::sync::Semaphore;

use crate::api::body::BodyMemory;
use crate::api::home::Home;
use crate::api::housekeeping::{LastUsed, RetentionSweep};
use crate::api::in_flight_keys::InFlightKeys;
use crate::api::limits::RateLimiter;
use crate::api::openapi::Documents;
use crate::api::response_memory::ResponseMemory;
use crate::api::router::Router;
use crate::api::routes;
use crate::api::settings::Settings;

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
    pub(super) last_used: LastUsed,
    pub(super) retention: RetentionSweep,
}

impl State {
    pub(super) fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        let operations = routes::operations();
        let documents = Documents::new(&operations, &settings.mount);
        let home = Home::new(&settings.mount);
        let router = Router::new(operations, &settings.write_rate_limits);
        let limits = RateLimiter::new(settings.rate_limit, settings.limit_rates, Arc::clone(&store));
        let responses = ResponseMemory::new(settings.response_memory);
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
            last_used: LastUsed::default(),
            retention: RetentionSweep::default(),
        }
    }
}
