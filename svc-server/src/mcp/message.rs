//! The bodies that a client posts: a message of JSON-RPC 2.0, or a batch of them, which the revision 2025-03-26 has.
//!
//! Of what it cannot read, the library says nothing else, and it reads a member that comes twice. So what is posted is checked
//! here, before it gets there.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use svc_core::error::{Error, FieldCode};
use svc_core::input::json;

use super::JSON;

/// The methods of requests that there are.
const METHODS: [&str; 5] = ["initialize", "ping", "server/discover", "tools/call", "tools/list"];

/// How many messages a batch has at most. Each counts as one request, as it would by itself.
const MAX_BATCH: usize = 20;

/// The header with the revision that a client has agreed on. Clients of 2025-03-26 do not send it.
const REVISION: &str = "mcp-protocol-version";
/// The revision that has batches, alone.
const REVISION_WITH_BATCHES: &str = "2025-03-26";

/// The member of `_meta` with the revision of a request, in the revisions that have no `initialize`.
pub(super) const REVISION_OF_REQUEST: &str = "io.modelcontextprotocol/protocolVersion";

/// How many characters of the name of a method that there is none of are repeated.
const MAX_NAME: usize = 100;

/// The body that a client posts.
pub(crate) enum Posted {
    /// One message.
    Message(Message),
    /// Several, each of them or what is wrong with it.
    Batch(Vec<Result<Message, Refusal>>),
}

/// A message.
pub(crate) struct Message {
    /// Its JSON.
    pub(crate) bytes: Bytes,
    /// The id, if it is a request, which has a response.
    pub(crate) id: Option<Value>,
    method: String,
    /// The tool that it calls.
    pub(super) tool: Option<String>,
}

/// The fault of a body that is no message.
pub(crate) struct Refusal {
    /// The id of the request, or null if it is not known.
    id: Value,
    code: ErrorCode,
    message: String,
}

impl Posted {
    /// Reads what a client posts.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with a body that is neither.
    pub(crate) fn read(body: &Bytes, headers: &HeaderMap) -> Result<Self, Refusal> {
        let raw: &RawValue = serde_json::from_slice(body)
            .map_err(|error| Refusal::new(ErrorCode::PARSE_ERROR, format!("A message must be JSON: {error}.")))?;
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
            return Message::read(body.clone()).map(Self::Message);
        };
        let refuse = |message: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        if headers.get(REVISION).is_some_and(|revision| revision != REVISION_WITH_BATCHES) {
            return refuse(format!(
                "An array of messages belongs to the revision {REVISION_WITH_BATCHES}; send each message in a request of its own."
            ));
        }
        if items.is_empty() || items.len() > MAX_BATCH {
            return refuse(format!("An array must have 1 to {MAX_BATCH} messages; this one has {}.", items.len()));
        }
        let read = |item: &RawValue| {
            let message = Message::read(Bytes::copy_from_slice(item.get().as_bytes()))?;
            if message.method == "initialize" {
                let message_id = message.id.unwrap_or_default();
                let text = "initialize must be sent by itself, before anything else.".to_owned();
                return Err(Refusal { id: message_id, ..Refusal::new(ErrorCode::INVALID_REQUEST, text) });
            }
            Ok(message)
        };
        Ok(Self::Batch(items.into_iter().map(read).collect()))
    }
}

impl Message {
    fn read(bytes: Bytes) -> Result<Self, Refusal> {
        let invalid = |message: String| Refusal::new(ErrorCode::INVALID_REQUEST, message);
        let mut value: Value = serde_json::from_slice(&bytes).map_err(|error| invalid(format!("{error}.")))?;
        let id = value.get("id").cloned();
        let known_id = id.clone().filter(|id| id.is_string() || id.is_i64());
        let refuse = |mut refusal: Refusal| {
            refusal.id = known_id.clone().unwrap_or_default();
            refusal
        };
        if !value.is_object() {
            let example = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
            return Err(invalid(format!("A message must be an object such as {example}.")));
        }
        check_members(&bytes).map_err(refuse)?;
        if value["jsonrpc"] != "2.0" {
            return Err(refuse(invalid("jsonrpc must be \"2.0\".".to_owned())));
        }
        if id.is_some() && known_id.is_none() {
            return Err(invalid("id must be a text or a whole number.".to_owned()));
        }
        let is_response = value.get("result").is_some() || value.get("error").is_some();
        let method = match value.get("method") {
            Some(Value::String(method)) if !is_response => method.clone(),
            None if is_response => String::new(),
            _ => {
                return Err(refuse(invalid(
                    "method must be a text, and a message with one has no result or error.".to_owned(),
                )));
            }
        };
        let is_call = method == "tools/call";
        let tool = value.pointer_mut("/params/name").map(Value::take).filter(|_| is_call);
        Ok(Self { bytes, id: known_id, method, tool: tool.as_ref().and_then(Value::as_str).map(str::to_owned) })
    }

    /// Returns whether nothing here responds to the method.
    pub(super) fn is_unknown(&self) -> bool {
        !METHODS.contains(&self.method.as_str())
    }

    /// Returns what is wrong with a request that the library cannot read.
    pub(super) fn explain(&self) -> Option<Refusal> {
        let id = self.id.clone()?;
        let value: Value = serde_json::from_slice(&self.bytes).ok()?;
        let params = value.get("params");
        let has_revision = params.is_some_and(|params| !params["_meta"][REVISION_OF_REQUEST].is_null());
        let (code, message) = explain(&self.method, params, has_revision);
        Some(Refusal { id, code, message })
    }

    /// Returns what is said of a method that there is none of.
    pub(super) fn unknown_method(&self) -> String {
        unknown_method(&self.method)
    }
}

/// Checks that no member comes twice at any depth, as the API does in a body.
fn check_members(bytes: &[u8]) -> Result<(), Refusal> {
    match json::parse(bytes) {
        Err(Error::Validation(violations)) => {
            let twice = violations.as_slice().iter().find(|violation| violation.code == FieldCode::DuplicateKey);
            let Some(twice) = twice else { return Ok(()) };
            let code = match twice.field.starts_with("params.") {
                true => ErrorCode::INVALID_PARAMS,
                false => ErrorCode::INVALID_REQUEST,
            };
            Err(Refusal::new(code, format!("{} must be sent only once.", twice.field)))
        }
        Err(error) => Err(Refusal::new(ErrorCode::INVALID_REQUEST, error.to_string())),
        Ok(_) => Ok(()),
    }
}

impl Refusal {
    fn new(code: ErrorCode, message: String) -> Self {
        Self { id: Value::Null, code, message }
    }

    /// Returns the message that says what is wrong.
    pub(crate) fn to_message(&self) -> Value {
        let error = json!({ "code": self.code.0, "message": self.message });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }

    /// Returns the response of HTTP. Wrong parameters of a request are no fault of HTTP.
    pub(crate) fn to_response(&self) -> Response<Bytes> {
        let is_fault_of_http = matches!(self.code, ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST);
        let status = if is_fault_of_http || self.id.is_null() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        response(status, &self.to_message())
    }
}

/// Returns a response with a message.
pub(super) fn response(status: StatusCode, message: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(message.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Returns what is wrong with a request that the library has not recognised.
///
/// `has_revision` is whether the request has its revision in its `_meta`, as those have that follow no `initialize`.
pub(super) fn explain(method: &str, params: Option<&Value>, has_revision: bool) -> (ErrorCode, String) {
    if !METHODS.contains(&method) {
        return (ErrorCode::METHOD_NOT_FOUND, unknown_method(method));
    }
    if method == "initialize" && has_revision {
        let text =
            "The revision 2026-07-28 has no initialize: send each request with its _meta, and nothing before it.";
        return (ErrorCode::METHOD_NOT_FOUND, text.to_owned());
    }
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let nothing = json!({});
    let message = match params.unwrap_or(&nothing) {
        Value::Object(members) if method == "tools/call" => match (members.get("name"), members.get("arguments")) {
            (Some(Value::String(_)), Some(arguments)) if !arguments.is_object() => format!(
                "arguments must be an object, such as {{\"limit\": 5}}, and is {}; send the object itself, not its JSON as a text.",
                kind(arguments)
            ),
            (Some(Value::String(_)), _) => "_meta, or another member of params, has not the form that the protocol gives it.".to_owned(),
            (Some(name), _) => format!("name must be the name of a tool as a text, and is {}.", kind(name)),
            (None, _) => "name is required: the name of a tool, which tools/list has.".to_owned(),
        },
        Value::Object(_) if method == "initialize" => {
            "params must have protocolVersion, a text such as 2025-11-25; capabilities, an object; and clientInfo, an object with \
             name and version."
                .to_owned()
        }
        Value::Object(_) => "params has a member that has not the form that the protocol gives it.".to_owned(),
        other => format!("params must be an object, and is {}.", kind(other)),
    };
    (ErrorCode::INVALID_PARAMS, message)
}

fn unknown_method(method: &str) -> String {
    let name: String = method.chars().take(MAX_NAME).collect();
    format!("There is no method {name}; there are {}.", METHODS.join(", "))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(body: &str) -> Result<Posted, Value> {
        Posted::read(&Bytes::copy_from_slice(body.as_bytes()), &HeaderMap::new())
            .map_err(|refusal| refusal.to_message())
    }

    fn refusal(body: &str) -> (Value, i64, String) {
        let message = read(body).err().unwrap_or_else(|| panic!("{body} is taken"));
        let error = &message["error"];
        (message["id"].clone(), error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_no_message_is_named() {
        for (body, id, code, text) in [
            ("", json!(null), -32700, "A message must be JSON: EOF while parsing a value at line 1 column 0."),
            ("nonsense", json!(null), -32700, "A message must be JSON: "),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,", json!(null), -32700, "A message must be JSON: "),
            ("\"ping\"", json!(null), -32600, "A message must be an object such as {\"jsonrpc\":\"2.0\","),
            ("7", json!(null), -32600, "A message must be an object such as "),
            ("{}", json!(null), -32600, "jsonrpc must be \"2.0\"."),
            ("{\"id\":1,\"method\":\"ping\"}", json!(1), -32600, "jsonrpc must be \"2.0\"."),
            ("{\"jsonrpc\":\"1.0\",\"id\":\"a\",\"method\":\"ping\"}", json!("a"), -32600, "jsonrpc must be \"2.0\"."),
            ("{\"jsonrpc\":\"2.0\",\"id\":1}", json!(1), -32600, "method must be a text"),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", json!(1), -32600, "method must be a text"),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}",
                json!(1),
                -32600,
                "method must be a text, and a message with one has no result",
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
                json!(null),
                -32600,
                "id must be a text or a whole",
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
                json!(null),
                -32600,
                "id must be a text or a whole",
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
                json!(2),
                -32600,
                "id must be sent only once.",
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"arguments\":{\"a\":1,\"a\":2}}}",
                json!(1),
                -32602,
                "params.arguments.a must be sent only once.",
            ),
            ("[]", json!(null), -32600, "An array must have 1 to 20 messages; this one has 0."),
        ] {
            let refused = refusal(body);
            assert_eq!((&refused.0, refused.1), (&id, code), "{body}: {}", refused.2);
            assert!(refused.2.starts_with(text), "{body}: {}", refused.2);
        }
        let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"params\":{}{}}}", "[".repeat(60), "]".repeat(60));
        assert_eq!(refusal(&deep).1, -32600);
        let many = format!("[{}]", vec!["7"; 21].join(","));
        assert_eq!(refusal(&many).2, "An array must have 1 to 20 messages; this one has 21.");
    }

    #[test]
    fn a_batch_belongs_to_its_revision() {
        let batch = Bytes::from_static(b" [{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}, 7]");
        for (revision, is_taken) in [(None, true), (Some("2025-03-26"), true), (Some("2025-06-18"), false)] {
            let revision = revision.map(|revision| (REVISION.parse().unwrap(), HeaderValue::from_static(revision)));
            let read = Posted::read(&batch, &revision.into_iter().collect());
            assert_eq!(read.is_ok(), is_taken);
            if let Ok(Posted::Batch(messages)) = read {
                assert!(messages[0].is_ok() && messages[1].is_err());
            }
        }
    }

    /// Input that an operation refuses better, such as a NUL in a text, gets there.
    #[test]
    fn a_message_is_taken_whatever_its_texts_are() {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\\u0000\"}}";
        let Ok(Posted::Message(message)) = read(body) else { panic!("it is refused") };
        assert_eq!((message.id, message.tool.as_deref()), (Some(json!(1)), Some("x\0")));
        let Ok(Posted::Message(response)) = read("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}") else { panic!() };
        assert!(response.is_unknown());
    }

    #[test]
    fn parameters_that_do_not_fit_are_explained() {
        for (method, params, text) in [
            ("tools/call", json!({}), "name is required"),
            ("tools/call", json!({ "name": 7 }), "name must be the name of a tool as a text, and is a number."),
            ("tools/call", json!({ "name": "a", "arguments": "{}" }), "arguments must be an object, such as"),
            ("tools/call", json!({ "name": "a", "arguments": [] }), "arguments must be an object, such as"),
            ("tools/call", json!(["a"]), "params must be an object, and is an array."),
            ("initialize", json!({ "protocolVersion": 1 }), "params must have protocolVersion"),
            ("tools/list", json!({ "cursor": 7 }), "params has a member"),
        ] {
            let (code, message) = explain(method, Some(&params), false);
            assert_eq!(code, ErrorCode::INVALID_PARAMS);
            assert!(message.starts_with(text), "{method} {params}: {message}");
        }
        let (code, message) = explain("initialize", Some(&json!({})), true);
        assert_eq!(code, ErrorCode::METHOD_NOT_FOUND, "{message}");
        let (code, message) = explain("prompts/list", None, false);
        assert_eq!(code, ErrorCode::METHOD_NOT_FOUND);
        assert!(message.starts_with("There is no method prompts/list; there are initialize, ping,"), "{message}");
    }
}
