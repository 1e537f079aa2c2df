//! The tools of the service for assistants (Model Context Protocol), as a way for messages that somebody else writes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::error::Result;
use crate::transport::{Request, Response, Transport, unexpected};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A way to the tools of one account. It passes messages on as they are, each in a request of its own.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: svc_client::Client) -> Result<(), svc_client::Error> {
/// let tools = client.mcp(true);
/// let response = tools.send(br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#.to_vec()).await?;
/// println!("{}", String::from_utf8_lossy(&response.unwrap_or_default()));
/// # Ok(())
/// # }
/// ```
pub struct Mcp {
    url: Url,
    transport: Arc<Transport>,
    /// The revision that an `initialize` has agreed on, of clients that send one.
    agreed: Mutex<Option<HeaderValue>>,
}

/// The parts of a message that are also in the headers of its request.
#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default, rename = "_meta")]
    meta: Meta,
    name: Option<String>,
    uri: Option<String>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

#[derive(Deserialize)]
struct Initialized {
    result: Agreed,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Agreed {
    protocol_version: String,
}

impl Mcp {
    pub(crate) fn new(base: &Url, path: &str, read_only: bool, transport: Arc<Transport>) -> Self {
        let mut url = base.clone();
        url.set_path(&format!("{}{path}{}", url.path(), if read_only { "/readonly" } else { "" }));
        Self { url, transport, agreed: Mutex::new(None) }
    }

    /// Sends a message, once, and returns the message that it is answered with; `None` for one that has no answer. A batch of
    /// messages, which the revision 2025-03-26 has, is answered with an array.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) if the service refuses it, such as for its key or a rate limit, [`Error::Transport`](crate::Error::Transport), and
    /// [`Error::UnexpectedResponse`](crate::Error::UnexpectedResponse) if something else than the service responds.
    pub async fn send(&self, message: Vec<u8>) -> Result<Option<Bytes>> {
        let read: Message = serde_json::from_slice(&message).unwrap_or_default();
        let mut request = Request::new(Method::POST, self.url.clone())
            .json(message)
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let text = |text: &str| HeaderValue::from_str(text).ok();
        let is_first = read.method == "initialize";
        let version = match (&read.params.meta.version, is_first) {
            (Some(version), _) => text(version),
            (None, true) => None,
            (None, false) => self.agreed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let name = read.params.name.as_deref().or(read.params.uri.as_deref());
        // They repeat what is in the message, so one that cannot be a header is left out.
        for (header, value) in [
            (PROTOCOL_VERSION, version),
            (METHOD, Some(read.method.as_str()).filter(|method| !method.is_empty()).and_then(text)),
            (NAME, name.and_then(text)),
        ] {
            if let Some(value) = value {
                request = request.header(header, value);
            }
        }
        let Response { status, headers, body } = self.transport.send_once(request).await?;
        // A refusal of the protocol is a message as well, whatever its status.
        let is_one = |message: &Value| message["jsonrpc"] == "2.0";
        let is_message = serde_json::from_slice::<Value>(&body).is_ok_and(|body| match &body {
            // The responses to a batch.
            Value::Array(messages) => messages.iter().all(is_one),
            message => is_one(message),
        });
        if !is_message {
            return match status.is_success() {
                true if body.is_empty() => Ok(None),
                true => {
                    let reason = "it is no message of MCP".to_owned();
                    Err(unexpected(status, &headers, &body, reason, &self.transport.env))
                }
                false => Err(self.transport.failure(status, &headers, &body)),
            };
        }
        if is_first
            && let Ok(Initialized { result }) = serde_json::from_slice(&body)
            && let Some(version) = text(&result.protocol_version)
        {
            *self.agreed.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
        }
        Ok(Some(body))
    }
}

impl fmt::Debug for Mcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcp").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}
