//! A call of a tool: the request that it becomes, and the result that its response becomes.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Version};
use http_body_util::{BodyExt as _, Collected, Full};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Map, Value, json};
use svc_core::error::{Error, FieldCode, Issue};

use super::handler::Session;
use super::schemas::{NOT_STORED, NOTICE, PAGE};
use super::tools::{MAX_QUERY, Tool, ToolOperation};
use crate::kernel::problem::Problem;
use crate::kernel::tool_call::ToolCall;
use crate::manual::search;

/// How many sections a search of the documentation returns.
const SECTIONS: usize = 3;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The headers of a message that its request has as well.
const PASSED_ON: [HeaderName; 3] = [AUTHORIZATION, HOST, USER_AGENT];

/// The arguments that a tool takes beside those of its operation.
struct Arguments {
    id: String,
    fields: Vec<String>,
    is_dry_run: bool,
    idempotency_key: Option<HeaderValue>,
    /// Those of the operation.
    rest: JsonObject,
}

/// Runs a tool. A failure is a result as well, so that the assistant can read what to mend.
pub(super) async fn run(session: &Session, tool: &Tool, arguments: JsonObject) -> CallToolResult {
    let Some(operation) = &tool.operation else { return search_docs(&arguments) };
    let arguments = match Arguments::parse(operation, arguments) {
        Ok(arguments) => arguments,
        Err(error) => return invalid(error),
    };
    let Ok(request) = request(session, tool, operation, &arguments) else {
        let text = "The arguments are too long, or have characters that no request can have.";
        return failure(&json!({ "error": text, "code": "validation_failed" }).to_string());
    };
    session.is_counted.store(true, Ordering::Relaxed);
    let mut waiting = session.waiting.clone();
    let response = tokio::select! {
        response = session.operations.call(request, session.peer) => response,
        // A change is made whether anybody waits for it or not.
        _ = waiting.changed(), if !operation.writes() => return invalid(Error::NotAllowed("The client has gone.".to_owned())),
    };
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await.map(Collected::to_bytes) else {
        return failure(r#"{"error":"The response could not be read.","code":"internal_error"}"#);
    };
    if !parts.status.is_success() {
        return failure(String::from_utf8_lossy(&body).trim_end());
    }
    success(operation, &arguments, &body)
}

impl Arguments {
    fn parse(operation: &ToolOperation, mut rest: JsonObject) -> Result<Self, Error> {
        let wrong = |name: &str, code, reason: &str| Err(Issue::new(code, reason.to_owned()).on(name));
        let mut id = String::new();
        if operation.about.has_id {
            match rest.remove("id") {
                Some(Value::String(text)) => id = text,
                _ => return wrong("id", FieldCode::Required, "is required: the id of the record, as a text"),
            }
        }
        if let Some(name) = NOT_STORED.into_iter().find(|name| rest.contains_key(*name)) {
            return wrong(
                name,
                FieldCode::UnknownField,
                "is not an argument of this tool, as the service does not store it",
            );
        }
        let (mut fields, mut is_dry_run, mut idempotency_key) = (Vec::new(), false, None);
        if operation.writes() {
            is_dry_run = match rest.remove("dry_run") {
                None | Some(Value::Null) => false,
                Some(Value::Bool(is_dry_run)) => is_dry_run,
                // Models send a value as a text now and then.
                Some(Value::String(text)) if text == "true" || text == "false" => text == "true",
                Some(_) => return wrong("dry_run", FieldCode::InvalidType, "must be true or false"),
            };
            idempotency_key = match rest.remove("idempotency_key") {
                None | Some(Value::Null) => None,
                Some(Value::String(key)) => match key.parse() {
                    Ok(key) => Some(key),
                    Err(_) => return wrong("idempotency_key", FieldCode::InvalidFormat, "must be printable ASCII"),
                },
                Some(_) => return wrong("idempotency_key", FieldCode::InvalidType, "must be a text"),
            };
        } else {
            // A filter without a value is none. Models send an empty text for it.
            rest.retain(|_, value| !value.as_str().is_some_and(|text| text.trim().is_empty()));
            fields = match rest.remove("fields") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(names)) => {
                    let text = |name: Value| name.as_str().map(str::to_owned);
                    let names: Option<Vec<String>> = names.into_iter().map(text).collect();
                    match names {
                        Some(names) => names,
                        None => return wrong("fields", FieldCode::InvalidType, "must have the names of fields"),
                    }
                }
                Some(_) => return wrong("fields", FieldCode::InvalidType, "must be an array of the names of fields"),
            };
        }
        if let Some(unknown) = fields.iter().find(|name| !operation.fields.contains(name)) {
            let reason = format!("has {unknown}; there are {}", operation.fields.join(", "));
            return wrong("fields", FieldCode::InvalidEnum, &reason);
        }
        if operation.is_paged {
            let limit = rest.entry("limit").or_insert(Value::Null);
            let number = match &*limit {
                Value::Null => Some(PAGE),
                Value::String(text) => text.trim().parse().ok(),
                number => number.as_u64(),
            };
            match number {
                Some(number @ 1..=PAGE) => *limit = number.into(),
                _ => {
                    let reason = format!("must be a whole number from 1 to {PAGE}");
                    return wrong("limit", FieldCode::OutOfRange, &reason);
                }
            }
        }
        // Nothing reads the arguments of an operation that has none, and a misspelt dry_run must not be one.
        if let Some(unknown) = rest.keys().next().filter(|_| operation.writes() && !operation.about.takes_body()) {
            let reason = "is not an argument of this tool; there are id, dry_run and idempotency_key";
            return wrong(unknown, FieldCode::UnknownField, reason);
        }
        Ok(Self { id, fields, is_dry_run, idempotency_key, rest })
    }
}

/// Returns the request that a call becomes.
fn request(
    session: &Session,
    tool: &Tool,
    operation: &ToolOperation,
    arguments: &Arguments,
) -> Result<Request<Full<Bytes>>, http::Error> {
    // One segment, whatever the text is.
    let id: String = url::form_urlencoded::byte_serialize(arguments.id.as_bytes()).collect();
    let account = session.account.as_deref().unwrap_or_default();
    let path = operation.path.replace("{account_id}", account).replace("{id}", &id);
    let mut target = format!("{}{path}", session.base);
    let mut body = Vec::new();
    if operation.method == Method::GET {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in &arguments.rest {
            match value {
                Value::Null => {}
                Value::String(text) => drop(query.append_pair(name, text)),
                // The operation says what it wants instead of an array or an object.
                other => drop(query.append_pair(name, &other.to_string())),
            }
        }
        let query = query.finish();
        if !query.is_empty() {
            let _ = write!(target, "?{query}");
        }
    } else if operation.about.takes_body() {
        body = serde_json::to_vec(&arguments.rest).unwrap_or_default();
    }
    let (name, memory) = (tool.described.name.to_string(), session.memory.clone());
    let call = ToolCall { name, is_dry_run: arguments.is_dry_run, memory };
    // HTTP/2 requests need no Host.
    let request = Request::builder().method(operation.method.clone()).uri(target).version(Version::HTTP_2);
    let mut request = request.extension(call);
    for name in PASSED_ON {
        if let Some(value) = session.headers.get(&name) {
            request = request.header(name, value);
        }
    }
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some(key) = &arguments.idempotency_key {
        request = request.header(IDEMPOTENCY_KEY, key);
    }
    request.body(Full::new(body.into()))
}

fn success(operation: &ToolOperation, arguments: &Arguments, body: &[u8]) -> CallToolResult {
    let mut result = Map::new();
    result.insert("notice".to_owned(), NOTICE.into());
    let response: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap_or_default() };
    let choose = |record: &mut Value| choose_fields(operation, &arguments.fields, record);
    if arguments.is_dry_run {
        let [before, after] = ["before", "after"].map(|name| response[name]["data"].clone());
        result.insert("dry_run".to_owned(), true.into());
        match (&before, &after) {
            (Value::Object(before), Value::Object(after)) => {
                result.insert("changes".to_owned(), changes(before, after));
            }
            (Value::Object(_), _) => drop(result.insert("deleted".to_owned(), true.into())),
            _ => {}
        }
        let mut data = if after.is_object() { after } else { before };
        choose(&mut data);
        result.insert("data".to_owned(), data);
        result.insert("events".to_owned(), response["events"].clone());
    } else if let Value::Object(mut members) = response {
        match members.get_mut("data") {
            Some(Value::Array(records)) => records.iter_mut().for_each(choose),
            Some(record) => choose(record),
            None => {}
        }
        result.append(&mut members);
    } else {
        result.insert("deleted".to_owned(), true.into());
    }
    structured(Value::Object(result))
}

/// Returns a result as an object, and as the text of that object for clients that read texts alone.
fn structured(result: Value) -> CallToolResult {
    let mut structured = CallToolResult::success(vec![ContentBlock::text(result.to_string())]);
    structured.structured_content = Some(result);
    structured
}

/// Returns the failure of arguments that no operation gets to see, in the form of one of the API.
fn invalid(error: Error) -> CallToolResult {
    failure(String::from_utf8_lossy(&Problem::Core(error).body()).trim_end())
}

fn failure(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Leaves out of a record what was not asked for. A record of a list has no fields without a value.
fn choose_fields(operation: &ToolOperation, fields: &[String], record: &mut Value) {
    let Some(members) = record.as_object_mut() else { return };
    members.retain(|name, value| match fields {
        [] => !(operation.left_out.contains(&name.as_str()) || (operation.is_list && value.is_null())),
        fields => fields.contains(name),
    });
}

/// Returns the fields that differ between two records, each with what it is and what it would be. The time of the change is
/// known only once it is made. A field that is missing has no value.
fn changes(before: &JsonObject, after: &JsonObject) -> Value {
    let names = after.keys().chain(before.keys().filter(|name| !after.contains_key(*name)));
    let mut changes = JsonObject::new();
    for name in names.filter(|name| *name != "updated_at") {
        let [from, to] = [before, after].map(|record| record.get(name).cloned().unwrap_or_default());
        if from != to {
            changes.insert(name.clone(), json!({ "from": from, "to": to }));
        }
    }
    Value::Object(changes)
}

fn search_docs(arguments: &JsonObject) -> CallToolResult {
    let Some(query) = arguments.get("query").and_then(Value::as_str).filter(|query| !query.trim().is_empty()) else {
        return invalid(Issue::new(FieldCode::Required, "is required: words to look for").on("query"));
    };
    if query.chars().count() > MAX_QUERY {
        let reason = format!("must have at most {MAX_QUERY} characters");
        return invalid(Issue::new(FieldCode::TooLong, reason).on("query"));
    }
    let found = search::search(query, SECTIONS)
        .into_iter()
        .map(|section| json!({ "page": section.page, "title": section.title, "text": section.text }));
    structured(json!({ "data": found.collect::<Vec<_>>() }))
}
