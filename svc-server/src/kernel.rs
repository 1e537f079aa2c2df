//! The parts that all surfaces share: requests with their bodies, authentication, limits, memory, problems, CORS and logs.
//!
//! It knows none of the surfaces. Each is a `Surface`, and `compose` puts them into a `Listener`, which takes each request through
//! the same steps:
//!
//! 1. The head is checked, and the surface found that has the request.
//! 2. The request gets memory for its body, which is counted while it arrives.
//! 3. The surface authenticates, counts and answers it. A failure is a [`Problem`], the only place that knows the statuses of
//!    failures.
//! 4. The response gets the headers that all of them have, and the request its line in the log, its span and its place in the
//!    metrics.

pub(crate) mod accept;
pub(crate) mod access;
pub(crate) mod apps;
pub mod auth;
pub(crate) mod body;
pub mod cors;
pub(crate) mod head;
pub(crate) mod last_used;
pub mod limits;
pub(crate) mod listener;
pub(crate) mod origin;
pub(crate) mod peer;
pub mod problem;
pub(crate) mod reminder;
pub(crate) mod request_log;
pub(crate) mod response;
pub(crate) mod response_memory;
pub(crate) mod settings;
pub(crate) mod shares;
pub(crate) mod tool_call;
pub mod versions;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Once};

use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::Timestamp;

use self::access::AccessRecord;
use self::apps::Apps;
use self::auth::{Credentials, Principal};
use self::last_used::LastUsed;
use self::limits::{RateLimitKey, RateLimited, RateLimiter, WriteLimit};
use self::problem::Problem;
use self::reminder::Reminder;
use self::request_log::RequestLog;
use self::response_memory::ResponseMemory;
use self::settings::Settings;
use self::shares::Pool;

/// The store, the settings and the state in memory that the surfaces of an [`Api`](crate::Api) share.
pub(crate) struct Kernel {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    /// The properties of this service as apps see it, which send requests with access tokens. `None` if there are no apps.
    pub(crate) apps: Option<Arc<Apps>>,
    pub(crate) limits: RateLimiter,
    /// The memory of all requests and their connections.
    pub(crate) requests: Pool,
    pub(crate) responses: ResponseMemory,
    pub(crate) last_used: LastUsed,
    pub(crate) request_log: RequestLog,
    pub(crate) background_reminder: Reminder,
    /// Logs once that requests have no [`Peer`](crate::Peer).
    missing_peer: Once,
}

impl Kernel {
    pub(crate) fn new(store: Arc<dyn Store>, settings: Settings, apps: Option<Apps>) -> Self {
        Self {
            limits: RateLimiter::new(settings.rate_limit, settings.limit_rates, Arc::clone(&store)),
            requests: Pool::of_memory("request_memory", settings.request_memory, Arc::clone(&settings.metrics)),
            responses: ResponseMemory::new(settings.response_memory),
            last_used: LastUsed::default(),
            request_log: RequestLog::default(),
            background_reminder: Reminder::new(store.env().now()),
            missing_peer: Once::new(),
            apps: apps.map(Arc::new),
            store,
            settings,
        }
    }

    pub(crate) fn env(&self) -> &Env {
        self.store.env()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.env().now()
    }

    /// Returns the address that stands for all clients whose address the application does not tell.
    pub(crate) fn unknown_peer(&self) -> IpAddr {
        self.missing_peer.call_once(|| {
            tracing::warn!(
                "requests reach the API without the address of the client, so all clients without a valid key share one \
                 rate limit; add an svc_server::Peer to the extensions of each request"
            );
        });
        Ipv4Addr::UNSPECIFIED.into()
    }

    /// Looks the client up whose credentials a request has. One without valid ones counts against its address.
    ///
    /// # Errors
    ///
    /// Those of [`Credentials::authenticate`], [`Problem::RateLimited`], and that of the credentials.
    pub(crate) async fn authenticate(
        &self,
        credentials: Result<Credentials, Problem>,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<(Principal, Credentials), Problem> {
        let looked_up = async {
            let credentials = credentials?;
            let client = self.store.read("authenticate", credentials, async |tx, key| key.authenticate(tx).await);
            Ok((client.await?, credentials))
        };
        match looked_up.await {
            Ok((client, credentials)) => {
                access.client = Some(client.clone());
                Ok((client, credentials))
            }
            Err(problem) => Err(self.count_anonymous(peer, problem, access).await),
        }
    }

    /// Records that a client has sent a request.
    pub(crate) fn record_use(&self, client: &Principal) {
        match client {
            Principal::Key(caller) => self.last_used.record(caller, self.now()),
            Principal::Platform { key, .. } => self.last_used.record_platform_key(key.id, self.now()),
        }
    }

    /// Returns the windows that a request with a valid key counts in.
    pub(crate) fn limit_key(&self, client: &Principal, write_limit: Option<WriteLimit>) -> RateLimitKey {
        match client {
            Principal::Key(caller) => self.limits.key_of_caller(caller, write_limit),
            Principal::Platform { key, account, .. } => {
                self.limits.key_of_platform_key(key.id, account.as_deref(), write_limit)
            }
        }
    }

    /// Counts a request with a valid key.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::RateLimited`].
    pub(crate) async fn count(&self, key: RateLimitKey, access: &mut AccessRecord) -> Result<(), Problem> {
        match self.limits.count(key, self.now()).await {
            Ok(status) => {
                access.status = Some(status);
                Ok(())
            }
            Err(limited) => Err(self.rate_limited(limited, access)),
        }
    }

    /// Counts a request without a valid key against its address, unless the store failed to look the key up.
    pub(crate) async fn count_anonymous(&self, peer: IpAddr, problem: Problem, access: &mut AccessRecord) -> Problem {
        if matches!(problem, Problem::Core(Error::Store(_))) {
            return problem;
        }
        self.count(self.limits.key_of_peer(peer), access).await.err().unwrap_or(problem)
    }

    fn rate_limited(&self, limited: RateLimited, access: &mut AccessRecord) -> Problem {
        access.status = Some(limited.status);
        self.settings.metrics.rate_limited(limited.status.policy());
        Problem::RateLimited { retry_after: limited.retry_after }
    }
}
