//! The settings of the API.

use std::sync::Arc;
use std::time::Duration;

use svc_core::accounts::limits::WriteRateLimits;
use svc_core::values::WebhookUrl;

use crate::api::cors::Cors;
#[cfg(feature = "oidc")]
use crate::dashboard::OidcSettings;
#[cfg(feature = "dashboard")]
use crate::dashboard::{Identify, Origin};
use crate::deliver::EgressProxy;
#[cfg(feature = "dashboard")]
use crate::deliver::WebhookClient;
use crate::deliver::resolver::{Resolver, SystemResolver};
use crate::metrics::Metrics;

/// Which apps owners can let work on their accounts (OAuth 2.0, draft-ietf-oauth-client-id-metadata-document).
#[cfg(feature = "dashboard")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "standalone", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum OauthClients {
    /// Those that were registered with the operator.
    #[default]
    Registered,
    /// Also those that publish what they are at a URL, which is their client id, as assistants do. The page of consent says that
    /// nobody has verified them.
    Metadata,
}

/// The settings of an [`Api`](crate::Api).
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
    /// ([`Settings::mcp`]) are for the pages of this origin.
    pub public_url: Option<String>,
    /// Whether the API has operations beyond the contract: to fetch events and deliveries that were missed, and to send them
    /// again. Not by default.
    pub extensions: bool,
    /// Whether the dashboard is served at `/dashboard`. Not by default.
    #[cfg(feature = "dashboard")]
    pub dashboard: bool,
    /// The origin whose pages may show the dashboard in a frame. None by default.
    #[cfg(feature = "dashboard")]
    pub dashboard_frame_ancestor: Option<Origin>,
    /// Tells who asks for a page of the dashboard, in an application that signs people in itself; see
    /// [`Builder::dashboard_identity`](crate::Builder::dashboard_identity).
    #[cfg(feature = "dashboard")]
    pub dashboard_identity: Option<Identify>,
    /// The origin of this server as the world sees it, such as `https://api.example.com`, at which it is an authorization server
    /// for apps (OAuth 2.0). None by default: then there are no apps. It needs the dashboard, in which owners consent.
    #[cfg(feature = "dashboard")]
    pub oauth: Option<Origin>,
    /// Which apps owners can let work on their accounts. Those that were registered by default.
    #[cfg(feature = "dashboard")]
    pub oauth_clients: OauthClients,
    /// The identity provider with which members sign in to the dashboard. None by default.
    #[cfg(feature = "oidc")]
    pub oidc: Option<OidcSettings>,
    /// What the dashboard tries endpoints with, by one request each, and reads what apps publish with.
    /// [`Builder::build`](crate::Builder::build) sets it to the client of deliveries. With `None`, neither can be done.
    #[cfg(feature = "dashboard")]
    pub webhook_client: Option<Arc<dyn WebhookClient>>,
    /// Whether the API reference is served at `/docs`. It is by default.
    #[cfg(feature = "docs")]
    pub docs: bool,
    /// The hosts, such as `api.example.com`, at which assistants find tools at `/mcp` (MCP), besides the names of the machine
    /// itself, `localhost` and its addresses. `None` by default: then there are no tools. A request for another host is refused,
    /// so that no page in a browser reaches the tools by a name that it points at this server.
    #[cfg(feature = "mcp")]
    pub mcp: Option<Vec<String>>,
    /// The URL that operational events are sent to, such as that an account was approved. None by default: then they are not
    /// recorded, and a subscription of an earlier URL is disabled. All processes on a database need the same.
    pub platform_webhook: Option<WebhookUrl>,
    /// The proxy that deliveries, operational events, requests for access tokens and tries of endpoints go through. None by
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
            extensions: false,
            #[cfg(feature = "dashboard")]
            dashboard: false,
            #[cfg(feature = "dashboard")]
            dashboard_frame_ancestor: None,
            #[cfg(feature = "dashboard")]
            dashboard_identity: None,
            #[cfg(feature = "dashboard")]
            webhook_client: None,
            #[cfg(feature = "dashboard")]
            oauth: None,
            #[cfg(feature = "dashboard")]
            oauth_clients: OauthClients::Registered,
            #[cfg(feature = "oidc")]
            oidc: None,
            #[cfg(feature = "docs")]
            docs: true,
            #[cfg(feature = "mcp")]
            mcp: None,
            platform_webhook: None,
            egress_proxy: None,
            resolver: Arc::new(SystemResolver::default()),
            metrics: Arc::default(),
        }
    }
}
