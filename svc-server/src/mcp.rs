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
//! 3. The [tools] are made of the operations. A [call] becomes a request of the API with the path `/mcp/…`, which goes
//!    through the same checks, limits and logs as any other: there is no second way to the rules.
//!
//! Texts that came from customers are data: each result says so, since an assistant may take a note of a customer for an
//! instruction.

mod call;
mod handler;
mod message;
mod messages;
mod permits;
mod schemas;
mod tools;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ORIGIN};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use svc_core::error::StoreError;
use svc_core::operation::AnyOperation;
use svc_core::platform::operations;

use self::handler::{Handler, Session};
use self::message::{Message, Posted, Refusal};
use self::permits::{Permits, Shares};
use self::tools::{ToolOperation, Tools};
use crate::kernel::listener::{Kind, Listener, Route, Surface};
use crate::kernel::response_memory::Holder;
use crate::kernel::versions::Version;
use crate::kernel::{Kernel, accept};

/// The versions of the tools of the public API: the longer path first, since it begins with the other one.
pub(crate) const VERSIONS: [Version; 2] = [Version::McpReadOnly, Version::Mcp];

/// The paths below that of an account of the platform API.
const PLATFORM_PATHS: [(&str, bool); 2] = [("mcp", false), ("mcp/readonly", true)];

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The media types that the library wants of each client. Responses are JSON alone.
const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The headers that a message has at most once. Of several, the library would look at the first.
const AT_MOST_ONCE: [HeaderName; 4] = [
    ORIGIN,
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
];

/// The size of the largest message, in bytes.
pub(crate) const MAX_MESSAGE: usize = 256 * 1024;

/// The tools, and what serves them.
pub(crate) struct Mcp {
    kernel: Arc<Kernel>,
    /// Where the requests go that calls become.
    operations: Arc<Listener>,
    is_on_platform: bool,
    tools: Arc<Tools>,
    service: StreamableHttpService<Handler, NeverSessionManager>,
    /// The permits to handle messages.
    permits: Shares,
}

/// Returns an origin as the library takes it: with its port, as one without is that of every port of its host. Origins such as
/// `chrome-extension://abc` have none.
fn with_port(origin: &str) -> String {
    match origin.rsplit_once(':') {
        // A colon in brackets belongs to an IPv6 address.
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => origin.to_owned(),
        None => origin.to_owned(),
        _ if origin.starts_with("https:") => format!("{origin}:443"),
        _ if origin.starts_with("http:") => format!("{origin}:80"),
        _ => format!("{origin}:*"),
    }
}

/// The path of tools, to which a message is sent.
#[derive(Clone, Copy)]
struct ToolsPath<'a> {
    /// The API whose operations the tools call.
    version: Version,
    /// The account in the path, on the platform API.
    account: Option<&'a str>,
    /// Whether there are no tools that change anything.
    is_read_only: bool,
}

impl<'a> ToolsPath<'a> {
    /// Reads a path of the public listener. `None` if no tools are there.
    fn at(path: &str) -> Option<Self> {
        let version = VERSIONS.into_iter().find(|version| version.path() == path)?;
        Some(Self { version, account: None, is_read_only: version == Version::McpReadOnly })
    }

    /// Reads a path of the platform listener, which names the account. `None` if no tools are there.
    fn on_platform(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix(Version::Platform.path())?.strip_prefix("/accounts/")?;
        let (account, rest) = rest.split_once('/')?;
        let (_, is_read_only) = PLATFORM_PATHS.into_iter().find(|(path, _)| *path == rest)?;
        Some(Self { version: Version::Platform, account: Some(account), is_read_only })
    }
}

/// The subject of a message, as far as it must be known before it is handled.
enum About<'a> {
    /// The call of a tool that is an operation of the API.
    Operation(&'a ToolOperation),
    /// Anything else, which is counted against the limit of the client when it arrives.
    Other,
}

impl Mcp {
    /// Makes the tools of the public API, for requests to these hosts and to the names of the machine itself. `operations` serves
    /// what they call.
    pub(crate) fn new(kernel: Arc<Kernel>, operations: Arc<Listener>, hosts: &[String]) -> Self {
        let mut config = StreamableHttpServerConfig::default();
        config.allowed_hosts.extend(hosts.iter().cloned());
        // Pages of this server, of this machine, and of the origins that may call the API. None can send a key that it
        // does not have, but pages of others are refused before that counts.
        let own: Vec<String> = match &kernel.settings.public_url {
            Some(origin) => vec![origin.clone()],
            None => hosts.iter().map(|host| format!("https://{host}")).collect(),
        };
        let own = own.iter().map(String::as_str).chain(kernel.settings.cors.origins()).map(with_port);
        let local = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned);
        config.allowed_origins = own.chain(local).collect();
        Self::of(kernel, operations, &operations::tools(), false, config)
    }

    /// Makes the same tools of operations of the platform API, for programs at any host, and for no page.
    pub(crate) fn of_platform(
        kernel: Arc<Kernel>,
        operations: Arc<Listener>,
        all: &[&'static dyn AnyOperation],
    ) -> Self {
        let known: Vec<&str> = operations::tools().iter().map(|operation| operation.id).collect();
        let all: Vec<_> = all.iter().copied().filter(|operation| known.contains(&operation.id)).collect();
        Self::of(kernel, operations, &all, true, StreamableHttpServerConfig::default().disable_allowed_hosts())
    }

    fn of(
        kernel: Arc<Kernel>,
        operations: Arc<Listener>,
        all: &[&'static dyn AnyOperation],
        is_on_platform: bool,
        config: StreamableHttpServerConfig,
    ) -> Self {
        let version = if is_on_platform { Version::Platform } else { Version::Mcp };
        let tools = Arc::new(Tools::new(all, version, &kernel.env().event_kinds));
        let config = config
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE)
            .enforce_origin_validation();
        let handler = Handler::new(Arc::clone(&tools));
        let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config);
        Self { kernel, operations, is_on_platform, tools, service, permits: Shares::default() }
    }

    /// Returns what a message is about.
    fn about(&self, message: &Message, is_read_only: bool) -> About<'_> {
        let tool = message.tool.as_ref().and_then(|name| self.tools.named(name, is_read_only));
        tool.and_then(|tool| tool.operation.as_ref()).map_or(About::Other, About::Operation)
    }

    /// Returns the response to a request of HTTP whose headers cannot be those of a message.
    fn check_headers(parts: &Parts) -> Result<(), Box<Response<Bytes>>> {
        let refuse = |status, text: &str| {
            let error = json!({ "code": ErrorCode::INVALID_REQUEST.0, "message": text });
            Err(Box::new(message::response(status, &json!({ "jsonrpc": "2.0", "id": null, "error": error }))))
        };
        for name in AT_MOST_ONCE {
            if parts.headers.get_all(&name).iter().count() > 1 {
                let status = if name == ORIGIN { StatusCode::FORBIDDEN } else { StatusCode::BAD_REQUEST };
                return refuse(status, &format!("The header {name} must be sent only once."));
            }
        }
        if parts.method != Method::POST {
            // The library says that a POST is wanted.
            return Ok(());
        }
        if accept::weight(&parts.headers, "application/json") <= 0.0 {
            return refuse(StatusCode::NOT_ACCEPTABLE, "Responses are JSON; Accept must have application/json.");
        }
        let media_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send the message as Content-Type: application/json.");
        }
        Ok(())
    }

    /// Waits until a message of this size can be handled for a holder. Nothing that a call needs may be held meanwhile.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] after ten seconds.
    async fn admit(&self, holder: Holder, size: usize) -> Result<Permits, StoreError> {
        self.permits.admit(holder, size).await
    }

    /// Waits until a batch can be handled. Its responses are kept until all of them are there, so a batch is large, whatever
    /// its size.
    ///
    /// # Errors
    ///
    /// As [`admit`](Self::admit).
    async fn admit_batch(&self, holder: Holder) -> Result<Permits, StoreError> {
        self.admit(holder, usize::MAX).await
    }

    /// Lets the library respond to a message, whose sender is in the extensions of its request. Its headers have been checked.
    async fn pass_on(&self, message: Option<&Message>, mut request: Request<Full<Bytes>>) -> Response<Bytes> {
        request.headers_mut().insert(ACCEPT, BOTH_TYPES);
        let (mut parts, body) = self.service.handle(request).await.into_parts();
        let Ok(body) = body.collect().await;
        let mut body = body.to_bytes();
        let id = message.and_then(|message| message.id.clone()).unwrap_or_default();
        if !parts.status.is_success() && parts.headers.get(CONTENT_TYPE) != Some(&JSON) {
            if parts.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
                // The media type was right, so it is a message that the library cannot read.
                if let Some(refusal) = message.and_then(Message::explain) {
                    return refusal.to_response();
                }
                parts.status = StatusCode::BAD_REQUEST;
            }
            // A text is no message, and clients show messages alone.
            let text = String::from_utf8_lossy(&body).trim().to_owned();
            let error = json!({ "code": ErrorCode::INVALID_REQUEST.0, "message": text });
            body = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into();
            parts.headers.insert(CONTENT_TYPE, JSON);
        } else if let Some(message) = message.filter(|message| message.is_unknown() && !body.is_empty())
            && let Ok(mut error) = serde_json::from_slice::<Value>(&body)
            && error["error"]["code"] == ErrorCode::METHOD_NOT_FOUND.0
        {
            // The library has the name of the method as the whole text.
            error["error"]["message"] = message.unknown_method().into();
            body = error.to_string().into();
        }
        Response::from_parts(parts, body)
    }
}

impl Surface for Mcp {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let path = parts.uri.path();
        let tools = if self.is_on_platform { ToolsPath::on_platform(path) } else { ToolsPath::at(path) };
        let tools = tools?;
        Some(Route::new(Kind::Operation("mcp"), move |request| self.respond(tools, request)))
    }
}
