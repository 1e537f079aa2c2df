//! The settings of the API, whatever surfaces it has.

use std::sync::Arc;
use std::time::Duration;

use svc_core::accounts::limits::WriteRateLimits;
use svc_core::values::WebhookUrl;

use super::cors::Cors;
use crate::deliver::WebhookClient;
use crate::metrics::Metrics;
use crate::outbound::EgressProxy;
use crate::outbound::resolver::{Resolver, SystemResolver};

/// The settings of an [`Api`](crate::Api). [`Surfaces`](crate::Surfaces) says what it serves.
///
/// # Examples
///
/// ```
/// use svc_server::Settings;
/// let settings = Settings { rate_limit: 600, mount: "/business".to_owned(), ..Settings::default() };
/// assert!(settings.limit_rates);
/// ```
pub struct Settings {
    /// The number of requests per 60 seconds of one API key, or of one address without a valid key. 60 by default.
    pub rate_limit: u32,
    /// The numbers of writes per 60 seconds of one key, method and route, in place of the defaults of collections.
    pub write_rate_limits: WriteRateLimits,
    /// Whether rate limits are enforced. If not, responses still have the headers of the limits.
    pub limit_rates: bool,
    /// How long responses to requests with an `Idempotency-Key` are stored. 24 hours by default.
    pub idempotency_ttl: Duration,
    /// How long events are kept, with their finished deliveries and logs. 30 days by default.
    pub retention: Duration,
    /// Whether requests are logged for their account, the newest 1,000 of the last 24 hours. They are by default.
    pub request_log: bool,
    /// How long a request body may take to arrive. 30 seconds by default.
    pub body_timeout: Duration,
    /// The number of bytes of memory that requests share with their connections, until they have their responses. 96 MiB by
    /// default. When they are used up, the address that has most loses its oldest idle connection or unfinished request.
    pub request_memory: usize,
    /// The number of bytes of memory that responses share, until clients have taken them. 64 MiB by default. An account gets a
    /// quarter of them at most. A read waits while they or its share are used up, and gets 503 after 10 seconds. A page of 200
    /// records needs 12.5 MiB at most, and what needs more than a share takes seven eighths of it.
    pub response_memory: usize,
    /// The origins whose pages may call the API from a browser. None by default.
    pub cors: Cors,
    /// The path under which a host application mounts the API, such as `/business`. Empty by default.
    ///
    /// The API puts it in front of the paths that a client sees: in `Location` headers, in the text that request
    /// signatures cover, and in the OpenAPI document.
    pub mount: String,
    /// The origin of this server as the world sees it, such as `https://api.example.com`. None by default. With it the OpenAPI
    /// document names its server by a whole URL, for programs that read the document elsewhere, and tools for assistants
    /// ([`Surfaces::mcp`](crate::Surfaces::mcp)) are for the pages of this origin.
    pub public_url: Option<String>,
    /// The client that sends the dashboard's tests of endpoints and reads the documents of apps.
    /// [`Builder::build`](crate::Builder::build) sets it to the client of deliveries. With `None`, neither can be done.
    pub webhook_client: Option<Arc<dyn WebhookClient>>,
    /// The URL that operational events are sent to, such as that an account was approved. None by default: then they are not
    /// recorded, and the webhook of an earlier URL is disabled. All processes on a database need the same.
    pub platform_webhook: Option<WebhookUrl>,
    /// The proxy that deliveries, operational events, requests for access tokens, tests of endpoints and the documents of apps go through. None by
    /// default.
    pub egress_proxy: Option<EgressProxy>,
    /// Resolves the hosts of webhook URLs.
    pub resolver: Arc<dyn Resolver>,
    /// The metrics that requests are counted in.
    pub metrics: Arc<Metrics>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate_limit: 60,
            write_rate_limits: WriteRateLimits::default(),
            limit_rates: true,
            idempotency_ttl: Duration::from_secs(24 * 60 * 60),
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            request_log: true,
            body_timeout: Duration::from_secs(30),
            request_memory: 96 * 1024 * 1024,
            response_memory: 64 * 1024 * 1024,
            cors: Cors::default(),
            mount: String::new(),
            public_url: None,
            webhook_client: None,
            platform_webhook: None,
            egress_proxy: None,
            resolver: Arc::new(SystemResolver::default()),
            metrics: Arc::default(),
        }
    }
}
