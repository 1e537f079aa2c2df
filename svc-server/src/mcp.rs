//! Tools for assistants: the Model Context Protocol (MCP) at `/mcp`, and at `/mcp/readonly` without those that change
//! anything (`docs/agents.md`).
//!
//! # Protocol
//!
//! 1. An assistant posts a message with the key of an account, or with the token of an app. It is authenticated before its body
//!    is read, as a request of the API is.
//! 2. The crate `rmcp` speaks the protocol: the revision 2026-07-28, whose messages stand alone, and the ones before it, whose
//!    clients send `initialize` first. There are no sessions either way, so any node responds to any message, and a restart
//!    between two messages goes unnoticed.
//! 3. The [tools] are made of the table of operations. A [call] becomes a request of the API with the path `/mcp/…`, which goes
//!    through the same checks, limits and logs as any other: there is no second way to the rules.
//!
//! Texts that came from customers are data: each result says so, since an assistant may take a note of a customer for an
//! instruction.

mod call;
mod handler;
mod schemas;
mod search;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::json;
use svc_core::error::StoreError;
use svc_core::values::EventKinds;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::handler::Handler;
pub(crate) use self::handler::Session;
use self::tools::{ToolOperation, Tools};
use crate::api::Settings;
use crate::api::extensions;
use crate::api::router::Router;
use crate::api::routes::{self, Operation, Version};

/// The versions of the tools of the public API: the longer path first, since it begins with the other one.
pub(crate) const VERSIONS: [Version; 2] = [Version::McpReadOnly, Version::Mcp];

/// What is below the path of an account of the platform API.
const PLATFORM_PATHS: [(&str, bool); 2] = [("mcp", false), ("mcp/readonly", true)];

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The size of the largest message, in bytes.
pub(crate) const MAX_MESSAGE: usize = 256 * 1024;

/// How many messages are handled at a time. Each takes some 60 KB while it is, and most take a millisecond.
const MESSAGES: u32 = 128;
/// The size of a message, in bytes, over which it is large: its arguments take many times its size.
const LARGE_MESSAGE: usize = 16 * 1024;
/// How many large ones are handled at a time.
const LARGE_MESSAGES: u32 = 4;
/// How long a message waits to be handled.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The permits that a message holds while it is handled.
pub(crate) struct Permits {
    _own: Option<OwnedSemaphorePermit>,
    _large: Option<OwnedSemaphorePermit>,
}

/// The tools, and what serves them.
pub(crate) struct Mcp {
    /// The operations that the tools call. `None` on the platform listener, whose router has them.
    pub(crate) router: Option<Router>,
    tools: Arc<Tools>,
    service: StreamableHttpService<Handler, NeverSessionManager>,
    /// The permits to handle messages.
    permits: Arc<Semaphore>,
    /// The permits to handle large ones, which wait for each other and not in the way of small ones.
    large_permits: Arc<Semaphore>,
}

/// Returns the operations of the public API that are tools.
fn operations() -> Vec<Operation> {
    let all = routes::operations().into_iter().chain(extensions::operations()).chain(extensions::search());
    all.filter(|operation| tools::is_tool(operation.id)).collect()
}

/// Returns a host without the port that it may have.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // A colon in brackets belongs to an IPv6 address.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

/// The path of tools, to which a message is sent.
#[derive(Clone, Copy)]
pub(crate) struct ToolsPath<'a> {
    /// The API whose operations the tools call.
    pub(crate) version: Version,
    /// The account in the path, on the platform API.
    pub(crate) account: Option<&'a str>,
    /// Whether there are no tools that change anything.
    pub(crate) is_read_only: bool,
}

impl<'a> ToolsPath<'a> {
    /// Reads a path of the public listener. `None` if no tools are there.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let version = VERSIONS.into_iter().find(|version| version.path() == path)?;
        Some(Self { version, account: None, is_read_only: version == Version::McpReadOnly })
    }

    /// Reads a path of the platform listener, which names the account. `None` if no tools are there.
    pub(crate) fn on_platform(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix(Version::Platform.path())?.strip_prefix("/accounts/")?;
        let (account, rest) = rest.split_once('/')?;
        let (_, is_read_only) = PLATFORM_PATHS.into_iter().find(|(path, _)| *path == rest)?;
        Some(Self { version: Version::Platform, account: Some(account), is_read_only })
    }
}

/// What a message is about, as far as it must be known before it is handled.
pub(crate) enum Kind<'a> {
    /// The call of a tool that is an operation of the API.
    Operation(&'a ToolOperation),
    /// Anything else, which is counted against the limit of the client when it arrives.
    Other,
}

impl Mcp {
    /// Makes the tools of the public API, for requests to these hosts and to the names of the machine itself.
    pub(crate) fn new(hosts: &[String], settings: &Settings, kinds: &EventKinds) -> Self {
        let tools = Self::of(&operations(), kinds, |mut config| {
            config.allowed_hosts.extend(hosts.iter().cloned());
            // Pages of this server, of this machine, and of the origins that may call the API. None can send a key that it
            // does not have, but pages of others are refused before that counts.
            let own = hosts.iter().map(|host| format!("https://{}:*", without_port(host)));
            let local = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned);
            config.allowed_origins = settings.cors.origins().map(str::to_owned).chain(own).chain(local).collect();
            config
        });
        let router = Router::new(operations(), &VERSIONS, &settings.write_rate_limits, "");
        Self { router: Some(router), ..tools }
    }

    /// Makes the same tools of operations of the platform API, for programs at any host, and for no page.
    pub(crate) fn of_platform(all: Vec<Operation>, kinds: &EventKinds) -> Self {
        let known: Vec<&str> = operations().iter().map(|operation| operation.id).collect();
        let operations: Vec<Operation> = all.into_iter().filter(|operation| known.contains(&operation.id)).collect();
        Self::of(&operations, kinds, StreamableHttpServerConfig::disable_allowed_hosts)
    }

    fn of(
        all: &[Operation],
        kinds: &EventKinds,
        allow: impl FnOnce(StreamableHttpServerConfig) -> StreamableHttpServerConfig,
    ) -> Self {
        let tools = Arc::new(Tools::new(all, kinds));
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE);
        let config = allow(config).enforce_origin_validation();
        let handler = Handler::new(Arc::clone(&tools));
        let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config);
        Self {
            router: None,
            tools,
            service,
            permits: Arc::new(Semaphore::new(MESSAGES as usize)),
            large_permits: Arc::new(Semaphore::new(LARGE_MESSAGES as usize)),
        }
    }

    /// Returns what a message is about.
    pub(crate) fn kind_of(&self, message: &[u8], is_read_only: bool) -> Kind<'_> {
        #[derive(Deserialize)]
        struct Message {
            method: String,
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        struct Params {
            name: Option<String>,
        }
        let Ok(Message { method, params: Some(Params { name: Some(name) }) }) = serde_json::from_slice(message) else {
            return Kind::Other;
        };
        let tool = self.tools.named(&name, is_read_only).filter(|_| method == "tools/call");
        tool.and_then(|tool| tool.operation.as_ref()).map_or(Kind::Other, Kind::Operation)
    }

    /// Waits until a message of this size can be handled. Nothing that a call needs may be held meanwhile.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] after ten seconds.
    pub(crate) async fn admit(&self, size: usize) -> Result<Permits, StoreError> {
        let permits = async {
            let large = match size > LARGE_MESSAGE {
                true => Some(Arc::clone(&self.large_permits).acquire_owned().await),
                false => None,
            };
            // They are never closed.
            let own = Arc::clone(&self.permits).acquire_owned().await.ok();
            Permits { _own: own, _large: large.and_then(Result::ok) }
        };
        let late = |_| StoreError::Unavailable("too many messages of assistants are handled".to_owned());
        tokio::time::timeout(MAX_WAIT, permits).await.map_err(late)
    }

    /// Responds to a message, whose sender is in the extensions of its request.
    pub(crate) async fn respond(&self, request: Request<Full<Bytes>>) -> http::Response<Bytes> {
        let (mut parts, body) = self.service.handle(request).await.into_parts();
        let Ok(body) = body.collect().await;
        let mut body = body.to_bytes();
        if !parts.status.is_success() && parts.headers.get(CONTENT_TYPE) != Some(&JSON) {
            // A text is no message, and clients show messages alone.
            let message = String::from_utf8_lossy(&body).trim().to_owned();
            let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": message } });
            body = error.to_string().into();
            parts.headers.insert(CONTENT_TYPE, JSON);
        }
        http::Response::from_parts(parts, body)
    }
}
