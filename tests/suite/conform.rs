//! Checks every response of the suite: against the OpenAPI document, and against the rules of docs/contract.md for
//! all responses ("Statuses", "Errors", "Response headers").

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use http::Method;
use jsonschema::Validator;
use serde_json::{Value, json};
use svc_core::operation::AnyOperation;
use svc_core::platform::operations as listed;
use svc_core::values::EventKinds;
use svc_server::api::openapi;
use svc_server::kernel::versions;
use svc_server::kernel::versions::method_of;

use crate::harness::{Response, operations};

/// The OpenAPI document as the service generates it.
pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| openapi::document(&all_operations(), "", versions::Version::V1, &EventKinds::default()));

/// Returns the operations of the contract, and those beyond it.
fn all_operations() -> Vec<&'static dyn AnyOperation> {
    operations().into_iter().chain(listed::extensions()).collect()
}

static CONTRACT: LazyLock<HashMap<String, DeclaredOperation>> = LazyLock::new(compile);

/// The codes of docs/contract.md, "Errors".
pub(crate) const CODES: [&str; 28] = [
    "invalid_json",
    "validation_failed",
    "unknown_parameter",
    "invalid_cursor",
    "empty_patch",
    "reference_not_found",
    "idempotency_key_reused",
    "missing_credentials",
    "invalid_key",
    "key_revoked",
    "key_expired",
    "signature_required",
    "signature_invalid",
    "signature_reused",
    "insufficient_scope",
    "access_not_approved",
    "not_found",
    "route_not_found",
    "method_not_allowed",
    "email_taken",
    "limit_reached",
    "idempotency_in_progress",
    "precondition_failed",
    "body_too_large",
    "unsupported_media_type",
    "rate_limited",
    "internal_error",
    "unavailable",
];
/// The codes of failures that occur before an operation is known.
pub(crate) const MORE_CODES: [&str; 3] = ["uri_too_long", "headers_too_large", "body_incomplete"];
/// The code of operations beyond the contract.
const EXTENSION_CODE: &str = "not_allowed";
const FIELD_CODES: [&str; 11] = [
    "required",
    "invalid_type",
    "invalid_format",
    "invalid_enum",
    "too_long",
    "too_short",
    "out_of_range",
    "not_nullable",
    "unknown_field",
    "read_only_field",
    "duplicate_key",
];

/// The schemas that the document declares for an operation.
struct DeclaredOperation {
    request: Option<Arc<Validator>>,
    responses: HashMap<u16, DeclaredResponse>,
}

struct DeclaredResponse {
    /// Name, whether the header is required, schema.
    headers: Vec<(String, bool, Arc<Validator>)>,
    body: Option<Arc<Validator>>,
}

fn compile() -> HashMap<String, DeclaredOperation> {
    let mut known: HashMap<String, Arc<Validator>> = HashMap::new();
    let mut validator = |schema: &Value| {
        let make = || Arc::new(validator(schema));
        Arc::clone(known.entry(schema.to_string()).or_insert_with(make))
    };
    let mut all = HashMap::new();
    for item in DOCUMENT["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let mut responses = HashMap::new();
            for (status, response) in operation["responses"].as_object().unwrap() {
                let response = resolve(response);
                let headers = response["headers"].as_object().into_iter().flatten();
                let headers = headers.map(|(name, header)| {
                    let header = resolve(header);
                    (name.clone(), header["required"] == true, validator(&header["schema"]))
                });
                let headers = headers.collect();
                let body = response.get("content").map(|content| validator(&content["application/json"]["schema"]));
                responses.insert(status.parse().unwrap(), DeclaredResponse { headers, body });
            }
            let request = operation.get("requestBody");
            let request = request.map(|body| validator(&body["content"]["application/json"]["schema"]));
            let id = operation["operationId"].as_str().unwrap();
            assert!(
                all.insert(id.to_owned(), DeclaredOperation { request, responses }).is_none(),
                "{id} is declared twice"
            );
        }
    }
    all
}

/// Returns a validator for a schema of the document that also checks formats.
pub(crate) fn validator(schema: &Value) -> Validator {
    let mut root = schema.clone();
    root["components"] = json!({ "schemas": DOCUMENT["components"]["schemas"] });
    jsonschema::draft202012::options().should_validate_formats(true).build(&root).unwrap()
}

fn resolve(item: &'static Value) -> &'static Value {
    match item["$ref"].as_str() {
        Some(path) => DOCUMENT.pointer(path.trim_start_matches('#')).unwrap(),
        None => item,
    }
}

/// Returns the id of the operation that serves a method and path.
pub(crate) fn operation_of(method: &Method, target: &str) -> Option<String> {
    let path = target.split('?').next().unwrap_or_default();
    let rest = path.strip_prefix("/api/v1").or_else(|| path.strip_prefix("/api/v2"))?;
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let fits = |template: &str| match template.split_once("{id}") {
        Some((start, end)) => {
            let id = rest.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            id.is_some_and(|id| !id.is_empty() && !id.contains('/'))
        }
        None => template == rest,
    };
    all_operations()
        .into_iter()
        .find(|operation| method_of(operation) == *method && fits(&operation.path_in_account()))
        .map(|operation| operation.id.to_owned())
}

/// Returns whether the schema of an operation's request body accepts a body.
pub(crate) fn accepts_body(operation: &str, body: &Value) -> bool {
    CONTRACT[operation].request.as_ref().is_none_or(|schema| schema.is_valid(body))
}

/// Checks one response; panics if it does not conform.
pub(crate) fn check(method: &Method, target: &str, response: &Response) {
    let shown = || format!("{method} {target} → {} {}", response.status, String::from_utf8_lossy(&response.body));
    let path = target.split('?').next().unwrap_or_default();
    // What apps and browsers ask for is not of the API.
    if path.starts_with("/oauth/") || path.starts_with("/.well-known/") && response.status < 400 {
        return;
    }
    let outside = matches!(path, "/healthz" | "/readyz");
    check_headers(response, outside, method, &shown);
    let names_methods = response.status == 405 || response.status < 400 && path == "*";
    assert_eq!(response.headers.contains_key("allow"), names_methods, "Allow: {}", shown());
    // Messages of assistants have a form of their own.
    if path.starts_with("/mcp") && (response.body.is_empty() || response.json()["jsonrpc"] == "2.0") {
        return;
    }
    // Access tokens are refused only where there are apps, which the document of the contract does not have.
    let is_of_token = *method != Method::HEAD && response.status == 401 && response.code() == "invalid_token";
    if is_of_token || lacks_scope(response) {
        return;
    }
    if response.status >= 400 && *method != Method::HEAD {
        check_error(response, &shown);
    }
    let Some(id) = operation_of(method, target) else { return };
    // These failures belong to the connection, not to an operation.
    if response.status == 400
        && *method != Method::HEAD
        && matches!(response.json()["field"].as_str(), Some("Host" | "Transfer-Encoding"))
    {
        return;
    }
    let responses = &CONTRACT[&id].responses;
    let declared =
        responses.get(&response.status).unwrap_or_else(|| panic!("{id} does not declare this response: {}", shown()));
    for (name, required, schema) in &declared.headers {
        match response.header(name) {
            // A server with apps says more, as the document that it serves does.
            Some(text) if name == "WWW-Authenticate" && text.contains("resource_metadata=") => {
                assert!(text.starts_with("Bearer "), "{text}");
            }
            Some(text) => {
                let value = text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number));
                assert!(schema.is_valid(&value) || schema.is_valid(&json!(text)), "{name}: {text}: {}", shown());
            }
            None => assert!(!required, "{name} is missing: {}", shown()),
        }
    }
    let protecting = ["cache-control", "x-content-type-options", "content-security-policy"];
    let common = ["content-type", "content-length", "date", "vary", "connection"];
    for name in response.headers.keys() {
        let is_declared = declared.headers.iter().any(|(header, ..)| header.eq_ignore_ascii_case(name.as_str()));
        let cors = name.as_str().starts_with("access-control-");
        let common = common.iter().chain(&protecting).any(|common| *common == name.as_str());
        assert!(is_declared || cors || common, "{name} is not declared: {}", shown());
    }
    if *method == Method::HEAD {
        return;
    }
    match &declared.body {
        None => assert!(response.body.is_empty(), "undeclared body: {}", shown()),
        Some(schema) => {
            let json = response.json();
            let failures: Vec<String> =
                schema.iter_errors(&json).map(|failure| format!("{}: {failure}", failure.instance_path())).collect();
            assert!(failures.is_empty(), "{}\n{}", shown(), failures.join("\n"));
        }
    }
}

fn check_headers(response: &Response, outside: bool, method: &Method, shown: &dyn Fn() -> String) {
    let id = response.header("x-request-id").unwrap_or_else(|| panic!("no X-Request-Id: {}", shown()));
    assert!((1..=128).contains(&id.len()), "{}", shown());
    let limits = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "ratelimit-policy"];
    for name in limits {
        assert_eq!(response.header(name).is_some(), !outside, "{name}: {}", shown());
    }
    let mut caching =
        if matches!(method.as_str(), "GET" | "HEAD") { "private, no-cache" } else { "no-store" }.to_owned();
    if response.headers.contains_key("etag") {
        caching += ", no-transform";
    }
    assert_eq!(response.header("cache-control"), Some(caching.as_str()), "{}", shown());
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{}", shown());
    let policy = "default-src 'none'; frame-ancestors 'none'";
    assert_eq!(response.header("content-security-policy"), Some(policy), "{}", shown());
    let length = response.header("content-length").map(|text| text.parse::<usize>().unwrap());
    if response.body.is_empty() {
        assert!(*method == Method::HEAD || length.is_none_or(|length| length == 0), "{}", shown());
    } else {
        assert_eq!(length, Some(response.body.len()), "{}", shown());
        assert_eq!(response.header("content-type"), Some("application/json"), "{}", shown());
        response.json();
    }
    let present = |name: &str| response.headers.contains_key(name);
    let challenged = response.status == 401 || lacks_scope(response);
    assert_eq!(present("www-authenticate"), challenged, "WWW-Authenticate: {}", shown());
    assert_eq!(present("retry-after"), matches!(response.status, 429 | 503), "Retry-After: {}", shown());
}

/// Returns whether an app is told that its token lacks a scope (RFC 6750 §3.1).
fn lacks_scope(response: &Response) -> bool {
    let challenge = response.header("www-authenticate").unwrap_or_default();
    response.status == 403 && challenge.contains("insufficient_scope")
}

fn check_error(response: &Response, shown: &dyn Fn() -> String) {
    let json = response.json();
    let code = json["code"].as_str().unwrap_or_default();
    let is_known = CODES.contains(&code) || MORE_CODES.contains(&code) || code == EXTENSION_CODE;
    assert!(is_known, "unknown code: {}", shown());
    let sentence = json["error"].as_str().unwrap_or_default();
    assert!(
        sentence.ends_with(['.', '…']) && !sentence.contains('\n'),
        "the error text is not one sentence: {}",
        shown()
    );
    let errors = json["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(json.get("field"), errors.first().map(|first| &first["field"]), "{}", shown());
    if response.status != 400 {
        assert!(errors.is_empty(), "errors of fields outside 400: {}", shown());
    }
    if code == "validation_failed" {
        assert!(!errors.is_empty(), "no error of a field: {}", shown());
        for error in errors {
            assert!(FIELD_CODES.contains(&error["code"].as_str().unwrap()), "{}", shown());
        }
    }
    assert_eq!(json.get("existing_id").is_some(), code == "email_taken", "{}", shown());
}
